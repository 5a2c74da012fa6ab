"""ListConfigResources (key 74), versions 0 and 1: the resources that have, or can have, configs (KIP-714, KIP-1142).

Version 0 lists client metrics subscriptions alone. Groups and subscriptions are listed if they have configs.
"""

from __future__ import annotations

from pykafkad.errors import UNSUPPORTED_VERSION
from pykafkad.messages import ListConfigResourcesResponse
from pykafkad.pure.authorization import CLUSTER, DESCRIBE_CONFIGS, Need

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pykafkad.context import Context
    from pykafkad.handlers.broker import Broker
    from pykafkad.messages import ListConfigResourcesRequest
    from pykafkad.slices import Work


Resource = ListConfigResourcesResponse.ConfigResource

TOPIC, BROKER, BROKER_LOGGER, CLIENT_METRICS, GROUP = 2, 4, 8, 16, 32
A_TIME = 64
LISTED = (GROUP, CLIENT_METRICS, BROKER_LOGGER, BROKER, TOPIC)  # in Kafka's order


needs = (Need(DESCRIBE_CONFIGS, CLUSTER),)


def handle(
    broker: Broker, request: ListConfigResourcesRequest, context: Context
) -> Work[ListConfigResourcesResponse]:
    if context.version == 0:
        wanted = {CLIENT_METRICS}
    else:
        wanted = set(request.resource_types or LISTED)
    if not wanted <= set(LISTED):
        return ListConfigResourcesResponse(error_code=UNSUPPORTED_VERSION)
    found = []
    for kind in LISTED:
        for name in names(broker, kind) if kind in wanted else ():
            found.append(Resource(resource_name=name, resource_type=kind))
            if len(found) % A_TIME == 0:
                yield
    return ListConfigResourcesResponse(config_resources=found)


def names(broker: Broker, kind: int) -> list[str]:
    image = broker.image
    if kind == TOPIC:
        return list(image.topics)
    if kind in (BROKER, BROKER_LOGGER):
        return [str(identity) for identity in image.brokers]
    return [name for (of_kind, name), configs in image.configs.items() if of_kind == kind and configs]
