"""IncrementalAlterConfigs (key 44), versions 0 and 1: sets, removes, appends to or subtracts from single configs of
resources (KIP-339), and sets the levels of loggers (KIP-412).

The answer is sent when the new configs are durable and in effect.
"""

from __future__ import annotations

from pykafkad.handlers.alter_configs import alter
from pykafkad.messages import IncrementalAlterConfigsResponse
from pykafkad.pure.authorization import ALTER_CONFIGS, on_configs
from pykafkad.slices import chunks

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pykafkad.cluster.config_changes import Alteration
    from pykafkad.context import Context
    from pykafkad.handlers.broker import Broker
    from pykafkad.messages import IncrementalAlterConfigsRequest
    from pykafkad.slices import Work


needs = on_configs(ALTER_CONFIGS, by_handler=True)


def handle(broker: Broker, request: IncrementalAlterConfigsRequest, context: Context) -> Work[Context]:
    wanted = yield from wanted_of(request)
    return alter(broker, wanted, request.validate_only, context, IncrementalAlterConfigsResponse)


def wanted_of(request: IncrementalAlterConfigsRequest) -> Work[list[Alteration]]:
    from pykafkad.cluster.config_changes import Alteration

    wanted = []
    for resource in request.resources:
        alteration = Alteration(resource.resource_type, resource.resource_name, is_legacy=False)
        for some in chunks(resource.configs):
            alteration.changes += [(config.name, config.config_operation, config.value) for config in some]
            yield
        wanted.append(alteration)
        yield
    return wanted
