"""A topic's configs with where each comes from: its own, the brokers' dynamic ones, server.properties,
the default.

Kafka's order of precedence: the topic's own; this broker's dynamic ones; those of all brokers;
server.properties; the default. A broker key in another unit (log.retention.hours) is shown in the topic
key's.
"""

from __future__ import annotations

from functools import lru_cache

from pykafkad import config_cluster
from pykafkad.cluster.image import ALL_BROKERS
from pykafkad.config import ConfigError, validate_topic_configs
from pykafkad.config_def import to_text
from pykafkad.config_keys import OF_3_9
from pykafkad.pure import java

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from pykafkad.cluster.image import Image
    from pykafkad.config import BrokerConfig
    from pykafkad.config_def import Value
    from pykafkad.config_keys import Keys

# ConfigSource of DescribeConfigs and CreateTopics answers
(
    DYNAMIC_TOPIC_CONFIG,
    DYNAMIC_BROKER_CONFIG,
    DYNAMIC_DEFAULT_BROKER_CONFIG,
    STATIC_BROKER_CONFIG,
    DEFAULT_CONFIG,
) = range(1, 6)

# In 3.9 these come of more than one key: what counts is shown, not what was said.
DERIVED = (config_cluster.FORMAT, *config_cluster.DIRECTIONS)

Texts = tuple[tuple[str, str], ...]
Entry = tuple[str, str | None, int, bool]  # name, value, source, sensitive (then the value is not shown)


def why_refused(config: BrokerConfig, wanted: Mapping[str, str | None]) -> str | None:
    """Kafka's text on what is wrong with these topic configs, or None."""
    if not wanted:
        return None
    try:
        validate_topic_configs(config, wanted)
    except ConfigError as error:
        return str(error)
    return None


def effective(config: BrokerConfig, image: Image, node_id: int, own: Mapping[str, str]) -> tuple[Entry, ...]:
    """Every config of a topic, by name; one of Kafka's internal ones only where it is set."""
    inherited = _inherited(
        config.keys,
        tuple(map(config.topic_defaults.get, DERIVED)),
        tuple(image.broker_configs(str(node_id)).items()),
        tuple(image.broker_configs(ALL_BROKERS).items()),
        tuple(config.texts.items()),
    )
    if not own:
        return inherited
    entries = {entry[0]: entry for entry in inherited}
    for name, value in own.items():
        entries[name] = _entry(config.keys, name, value, DYNAMIC_TOPIC_CONFIG)
    return tuple(entries[name] for name in sorted(entries))


@lru_cache(maxsize=1)
def _inherited(
    keys: Keys, derived: tuple[Value, ...], of_broker: Texts, of_all_brokers: Texts, static: Texts
) -> tuple[Entry, ...]:
    """The entries of a topic without configs of its own: the same for all, until a broker's configs change."""
    layers = (
        (dict(of_broker), DYNAMIC_BROKER_CONFIG),
        (dict(of_all_brokers), DYNAMIC_DEFAULT_BROKER_CONFIG),
        (dict(static), STATIC_BROKER_CONFIG),
    )
    values = dict(zip(DERIVED, derived, strict=True)) if keys is OF_3_9 else {}
    found = []
    for name in keys.shown_of_topics:
        value, source = _inherited_value(keys, name, layers)
        found.append(_entry(keys, name, to_text(values[name]) or "" if name in values else value, source))
    return tuple(found)


def _inherited_value(
    keys: Keys, name: str, layers: Iterable[tuple[Mapping[str, str], int]]
) -> tuple[str, int]:
    for texts, source in layers:
        value = of_broker(keys, name, texts)
        if value is not None:
            return value, source
    return to_text(keys.topic[name].default) or "", DEFAULT_CONFIG


def _entry(keys: Keys, name: str, value: str, source: int) -> Entry:
    sensitive = keys.topic[name].sensitive
    return name, None if sensitive else value, source, sensitive


def of_broker(keys: Keys, name: str, texts: Mapping[str, str]) -> str | None:
    """What broker configs say about a topic config, in its unit."""
    for broker_key, factor in keys.synonyms.get(name, ()):
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
