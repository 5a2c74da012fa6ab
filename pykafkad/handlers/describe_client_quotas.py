"""DescribeClientQuotas (key 48), versions 0 and 1: the quotas of users, client ids and addresses that match a filter
(KIP-546).
"""

from __future__ import annotations

from pykafkad.errors import KafkaError
from pykafkad.messages import DescribeClientQuotasResponse
from pykafkad.pure.authorization import CLUSTER, DESCRIBE_CONFIGS, Need

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from pykafkad.context import Context
    from pykafkad.handlers.broker import Broker
    from pykafkad.messages import DescribeClientQuotasRequest
    from pykafkad.slices import Work


Entry = DescribeClientQuotasResponse.EntryData
Entity = DescribeClientQuotasResponse.EntityData
Value = DescribeClientQuotasResponse.ValueData

LOOKED_AT_A_TIME = 32


needs = (Need(DESCRIBE_CONFIGS, CLUSTER),)


def handle(
    broker: Broker, request: DescribeClientQuotasRequest, context: Context
) -> Work[DescribeClientQuotasResponse]:
    from pykafkad.cluster.client_quotas import Filter

    components = [(each.entity_type, each.match_type, each.match) for each in request.components]
    try:
        wanted = Filter(components, strict=request.strict)
    except KafkaError as error:
        return DescribeClientQuotasResponse(error_code=error.code, error_message=error.text, entries=None)
    entries = []
    for number, (entity, values) in enumerate(list(broker.image.client_quotas.items())):
        if wanted.takes(entity):
            entries.append(entry_of(entity, values))
        if number % LOOKED_AT_A_TIME == 0:
            yield
    return DescribeClientQuotasResponse(entries=entries)


def unauthorized(
    request: DescribeClientQuotasRequest, version: int, code: int
) -> DescribeClientQuotasResponse:
    return DescribeClientQuotasResponse(error_code=code, error_message=None, entries=None)


def entry_of(entity: Iterable[tuple[str, str | None]], values: Mapping[str, float]) -> Entry:
    return Entry(
        entity=[Entity(entity_type=type, entity_name=name) for type, name in entity],
        values=[Value(key=key, value=value) for key, value in values.items()],
    )
