"""A topic's configs with where each comes from: its own, the brokers' dynamic ones, server.properties,
the default.

Kafka's order of precedence: the topic's own; this broker's dynamic ones; those of all brokers;
server.properties; the default. A broker key in another unit (log.retention.hours) is shown in the topic
key's.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pykafkad.cluster.image import ALL_BROKERS
from pykafkad.config import TOPIC_KEYS, ConfigError, validate_topic_configs
from pykafkad.config_def import to_text
from pykafkad.config_entities import TOPIC_SYNONYMS
from pykafkad.pure import java

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from pykafkad.cluster.image import Image
    from pykafkad.config import BrokerConfig

# ConfigSource of DescribeConfigs and CreateTopics answers
(
    DYNAMIC_TOPIC_CONFIG,
    DYNAMIC_BROKER_CONFIG,
    DYNAMIC_DEFAULT_BROKER_CONFIG,
    STATIC_BROKER_CONFIG,
    DEFAULT_CONFIG,
) = range(1, 6)

Entry = tuple[str, str | None, int, bool]  # name, value, source, sensitive (then the value is not shown)

SHOWN = frozenset(name for name, key in TOPIC_KEYS.items() if not key.internal)


def why_refused(config: BrokerConfig, wanted: Mapping[str, str | None]) -> str | None:
    """Kafka's text on what is wrong with these topic configs, or None."""
    if not wanted:
        return None
    try:
        validate_topic_configs(config, wanted)
    except ConfigError as error:
        return str(error)
    return None


def effective(config: BrokerConfig, image: Image, node_id: int, own: Mapping[str, str]) -> Iterator[Entry]:
    """Every config of a topic, by name; one of Kafka's internal ones only where it is set."""
    layers = (
        (image.broker_configs(str(node_id)), DYNAMIC_BROKER_CONFIG),
        (image.broker_configs(ALL_BROKERS), DYNAMIC_DEFAULT_BROKER_CONFIG),
        (config.texts, STATIC_BROKER_CONFIG),
    )
    for name in sorted({*SHOWN, *own}):
        key = TOPIC_KEYS[name]
        if name in own:
            value, source = own[name], DYNAMIC_TOPIC_CONFIG
        else:
            value, source = inherited(name, layers) or (to_text(key.default) or "", DEFAULT_CONFIG)
        yield name, None if key.sensitive else value, source, key.sensitive


def inherited(name: str, layers: Iterable[tuple[Mapping[str, str], int]]) -> tuple[str, int] | None:
    for texts, source in layers:
        value = of_broker(name, texts)
        if value is not None:
            return value, source
    return None


def of_broker(name: str, texts: Mapping[str, str]) -> str | None:
    """What broker configs say about a topic config, in its unit."""
    for broker_key, factor in TOPIC_SYNONYMS.get(name, ()):
        text = texts.get(broker_key)
        if text is not None:
            return text if factor == 1 else str(_whole(text) * factor)
    return None


def _whole(text: str) -> int:
    """Kafka reads what is in another unit leniently."""
    try:
        return java.parse_int(text.strip(java.BLANKS))
    except ValueError:
        return 0
