"""ListConfigResources (key 74), versions 0 and 1: what there is that can have configs (KIP-714, KIP-1142).

Version 0 lists client metrics subscriptions alone. Groups and subscriptions are listed where they have configs.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pykafkad.errors import UNSUPPORTED_VERSION
from pykafkad.messages import ListConfigResourcesResponse

if TYPE_CHECKING:
    from pykafkad.dispatcher import Context
    from pykafkad.server import Broker


Resource = ListConfigResourcesResponse.ConfigResource

TOPIC, BROKER, BROKER_LOGGER, CLIENT_METRICS, GROUP = 2, 4, 8, 16, 32
LISTED = (GROUP, CLIENT_METRICS, BROKER_LOGGER, BROKER, TOPIC)  # in Kafka's order


def handle(broker: Broker, request: Any, context: Context) -> Any:
    if context.version == 0:
        wanted = {CLIENT_METRICS}
    else:
        wanted = set(request.resource_types or LISTED)
    if not wanted <= set(LISTED):
        return ListConfigResourcesResponse(error_code=UNSUPPORTED_VERSION)
    return ListConfigResourcesResponse(
        config_resources=[
            Resource(resource_name=name, resource_type=kind)
            for kind in LISTED
            if kind in wanted
            for name in names(broker, kind)
        ]
    )


def names(broker: Broker, kind: int) -> list[str]:
    image = broker.image
    if kind == TOPIC:
        return list(image.topics)
    if kind in (BROKER, BROKER_LOGGER):
        return [str(identity) for identity in image.brokers]
    return [name for (of_kind, name), configs in image.configs.items() if of_kind == kind and configs]
