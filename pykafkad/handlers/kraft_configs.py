"""AlterConfigs and IncrementalAlterConfigs beside controllers of Apache Kafka: this broker looks first, as in Kafka (its
own configs, the levels of its loggers), and what it finds nothing wrong with is forwarded."""

from __future__ import annotations

from typing import cast

from pykafkad import messages
from pykafkad.handlers.alter_configs import denial_of, result
from pykafkad.slices import Wait

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from pykafkad.cluster.kraft.cluster import KraftCluster
    from pykafkad.context import Context
    from pykafkad.handlers.broker import Broker
    from pykafkad.slices import Work

INCREMENTAL = 44

needs = ()  # but for levels of loggers, the controller asks who may alter what


def handle(broker: Broker, request: Any, context: Context) -> Work[Any]:
    from pykafkad.handlers import alter_configs, incremental_alter_configs

    is_incremental = context.api_key == INCREMENTAL
    wanted_of = incremental_alter_configs.wanted_of if is_incremental else alter_configs.wanted_of
    wanted = yield from wanted_of(request)
    yield from broker.config_changes.look(wanted, request.validate_only, denial_of(broker, context))
    left = [each for each, ours in zip(request.resources, wanted, strict=True) if not ours.is_settled]
    told: dict[tuple[int, str], Any] = {}
    if left:
        request.resources = left
        wait = Wait()
        cast("KraftCluster", broker.cluster).forwarding.forward(request, context, wait.come)
        answer = yield from wait.result()
        if isinstance(answer, Exception):
            raise answer
        told = {(row.resource_type, row.resource_name): row for row in answer.responses}
    response: Any = (
        messages.IncrementalAlterConfigsResponse if is_incremental else messages.AlterConfigsResponse
    )
    kind = response.AlterConfigsResourceResponse
    return response(
        responses=[told.get(each.resource) or result(each, kind, texts_fit=True) for each in wanted]
    )
