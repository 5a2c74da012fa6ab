"""What the broker's log says of configs that have changed, in Kafka's words; and of those that change nothing here."""

from __future__ import annotations

from itertools import islice

from pykafkad.cluster.config_rules import CLIENT_METRICS, GROUP, shown
from pykafkad.cluster.dynamic_config import without_effect
from pykafkad.cluster.image import BROKER_RESOURCE, TOPIC_RESOURCE
from pykafkad.config_entities import TOPIC_HONOURED, TOPIC_HONOURED_IN_CLUSTER
from pykafkad.logs import logger
from pykafkad.slices import GO_ON

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from pykafkad.cluster.delta import Delta
    from pykafkad.cluster.image import Image
    from pykafkad.slices import Work

SAID_MAX = 100  # keys in a log line
NAMES = {TOPIC_RESOURCE: "topic", BROKER_RESOURCE: "node", CLIENT_METRICS: "client metrics", GROUP: "group"}

log = logger("config")


def report(delta: Delta, image: Image, *, is_clustered: bool) -> Work:
    for (resource_type, name), written in delta.configs.items():
        if resource_type in NAMES:
            configs = image.configs.get((resource_type, name), {})
            report_one(resource_type, name, configs, written, is_clustered=is_clustered)
        yield GO_ON


def report_one(
    resource_type: int,
    name: str,
    configs: Mapping[str, str],
    written: Mapping[str, str | None],
    *,
    is_clustered: bool,
) -> None:
    """`configs`: all that it has by now."""
    keys = list(islice(configs, SAID_MAX))
    said = ", ".join(f"{key} -> {shown(resource_type, key, configs[key])}" for key in keys)
    more = f" and {len(configs) - len(keys)} more" if len(configs) > len(keys) else ""
    log.info(f"Updating {NAMES[resource_type]} {name} with new configuration : {said}{more}")
    unheard = [
        key
        for key, value in islice(written.items(), SAID_MAX)
        if is_unheard(resource_type, key, value, is_clustered=is_clustered)
    ]
    if unheard:
        log.warn(f"These configurations '[{', '.join(unheard)}]' are known, but change nothing here.")


def is_unheard(resource_type: int, key: str, value: str | None, *, is_clustered: bool) -> bool:
    """Kafka's, set, and without any effect here."""
    if value is None:
        return False
    if resource_type == TOPIC_RESOURCE:
        return key not in TOPIC_HONOURED and not (is_clustered and key in TOPIC_HONOURED_IN_CLUSTER)
    return resource_type == BROKER_RESOURCE and without_effect(key, is_clustered=is_clustered)
