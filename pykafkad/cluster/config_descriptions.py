"""What DescribeConfigs says of each config: value, where it comes from, what else says something of it (KIP-226).

A description lists all keys that are no secret of Kafka's own, and what else was set. Synonyms are in the order in
which they count: the resource's own value, then what the broker's keys say in its layers (this broker's dynamic ones,
those of all brokers, server.properties, the default). Nothing sensitive is ever shown; of a key that nobody knows it
is not known whether it is.
"""

from __future__ import annotations

from typing import NamedTuple

from pykafkad.cluster.config_rules import CLIENT_METRICS_KEYS, GROUP_KEYS, client_metrics_values, group_values
from pykafkad.cluster.dynamic_config import LISTENER_PREFIX, DynamicConfig, base_name
from pykafkad.cluster.topic_configs import (
    DEFAULT_CONFIG,
    DYNAMIC_BROKER_CONFIG,
    DYNAMIC_DEFAULT_BROKER_CONFIG,
    DYNAMIC_TOPIC_CONFIG,
    STATIC_BROKER_CONFIG,
)
from pykafkad.config import ConfigError
from pykafkad.config_def import to_text
from pykafkad.config_entities import GROUP_SYNONYMS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping

    from pykafkad.config import BrokerConfig
    from pykafkad.config_def import Key, Value
    from pykafkad.config_keys import Keys

DYNAMIC_BROKER_LOGGER_CONFIG, CLIENT_METRICS_CONFIG, GROUP_CONFIG = 6, 7, 8

TYPES = {
    "BOOLEAN": 1,
    "STRING": 2,
    "INT": 3,
    "SHORT": 4,
    "LONG": 5,
    "DOUBLE": 6,
    "LIST": 7,
    "CLASS": 8,
    "PASSWORD": 9,
}
UNKNOWN_TYPE = 0

# Broker keys that say the same in another unit or place; the first one that is set counts.
SAME = (
    ("log.roll.ms", "log.roll.hours"),
    ("log.roll.jitter.ms", "log.roll.jitter.hours"),
    ("log.retention.ms", "log.retention.minutes", "log.retention.hours"),
)
SYNONYMS: dict[str, tuple[str, ...]] = {
    **{name: names for names in SAME for name in names},
    "log.flush.interval.ms": ("log.flush.interval.ms", "log.flush.scheduler.interval.ms"),
}
# Keys of a listener that have a SASL mechanism before them.
OF_MECHANISMS = (
    "connections.max.reauth.ms",
    "sasl.jaas.config",
    "sasl.login.callback.handler.class",
    "sasl.login.class",
    "sasl.server.callback.handler.class",
)


class Synonym(NamedTuple):
    name: str
    value: str | None
    source: int


class Description(NamedTuple):
    name: str
    value: str | None
    source: int
    is_sensitive: bool
    is_read_only: bool
    type: int
    synonyms: list[Synonym]


class Describer:
    def __init__(self, config: BrokerConfig, dynamic: DynamicConfig) -> None:
        self._config = config
        self._keys = config.keys
        self._layers = (
            (dynamic.of_this | dynamic.custom_of_this, DYNAMIC_BROKER_CONFIG),
            (dynamic.of_all | dynamic.custom_of_all, DYNAMIC_DEFAULT_BROKER_CONFIG),
            (static_texts(config), STATIC_BROKER_CONFIG),
        )
        self._of_brokers: set[str] | None = None

    # -- one kind of resource each; `names`: the keys that are asked for, None for all

    def broker(self, names: Iterable[str] | None = None) -> Iterator[Description]:
        """This broker's keys, and whatever else was set for it."""
        if self._of_brokers is None:
            shown = {name for name, key in self._keys.broker.items() if not key.internal}
            self._of_brokers = shown.union(*(texts for texts, _ in self._layers))
        for name in chosen(self._of_brokers, names):
            yield self._of_broker(name, self._broker_value(name), None)

    def all_brokers(self, names: Iterable[str] | None = None) -> Iterator[Description]:
        """What is set for all brokers."""
        texts, source = self._layers[1]
        for name in chosen(texts, names):
            yield self._of_broker(name, texts[name], source)

    def topic(self, own: Mapping[str, str], names: Iterable[str] | None = None) -> Iterator[Description]:
        """Each key by itself: not what another one of the topic's makes of it (internal.segment.bytes)."""
        keys = self._keys.topic
        for name in chosen(shown_of(keys, own), names):
            key = keys.get(name)
            if key is None:
                value: str | None = own[name]
            else:
                value = to_text(parsed(key, own[name]) if name in own else self._config.topic_defaults[name])
            of_broker = self._keys.synonyms.get(name)
            synonyms = self._synonyms(of_broker[0][0]) if of_broker else []
            if name in own:
                synonyms.insert(0, Synonym(name, value, DYNAMIC_TOPIC_CONFIG))
            yield describe(key, name, value, synonyms)

    def group(self, own: Mapping[str, str], names: Iterable[str] | None = None) -> Iterator[Description]:
        values = group_values(self._config, {name: own[name] for name in own if name in GROUP_KEYS})
        for name in chosen(shown_of(GROUP_KEYS, own), names):
            key = GROUP_KEYS.get(name)
            value = own[name] if key is None else to_text(values[name])
            if name in GROUP_SYNONYMS:
                synonyms = self._synonyms(GROUP_SYNONYMS[name])
            else:
                synonyms = [] if key is None else [Synonym(name, to_text(key.default), DEFAULT_CONFIG)]
            if name in own:
                synonyms.insert(0, Synonym(name, value, GROUP_CONFIG))
            yield describe(key, name, value, synonyms)

    def client_metrics(
        self, own: Mapping[str, str], names: Iterable[str] | None = None
    ) -> Iterator[Description]:
        values = client_metrics_values(own)
        for name in chosen(CLIENT_METRICS_KEYS, names):
            value = to_text(values[name])
            synonyms = [Synonym(name, value, CLIENT_METRICS_CONFIG)] if name in own else []
            yield describe(CLIENT_METRICS_KEYS[name], name, value, synonyms)

    # -- what the broker's keys say

    def _broker_value(self, name: str) -> str | None:
        if name in self._keys.broker and not self._keys.broker[name].internal:
            return self._config.text(name)
        return next(texts[name] for texts, _ in self._layers if name in texts)

    def _of_broker(self, name: str, value: str | None, only: int | None) -> Description:
        """`only`: the one layer that is shown."""
        key = row_of(self._keys, name)
        synonyms = [each for each in self._synonyms(name) if only is None or each.source == only]
        return describe(key, name, value, synonyms, is_read_only=name not in self._keys.dynamic)

    def _synonyms(self, name: str) -> list[Synonym]:
        """All that says something of a broker's key, as it counts; from the first that names the key itself on."""
        key = row_of(self._keys, name)
        is_sensitive = key is None or key.sensitive
        names = synonyms_of(name)
        found = [
            Synonym(each, None if is_sensitive else texts[each], source)
            for texts, source in self._layers
            for each in names
            if each in texts
        ]
        for each in names:
            default = self._config.default_text(each)
            if default is not None:
                found.append(Synonym(each, None if is_sensitive else default, DEFAULT_CONFIG))
        while found and found[0].name != name:
            found.pop(0)
        return found


def describe(
    key: Key | None, name: str, value: str | None, synonyms: list[Synonym], *, is_read_only: bool = False
) -> Description:
    is_sensitive = key is None or key.sensitive
    return Description(
        name,
        None if is_sensitive else value,
        synonyms[0].source if synonyms else DEFAULT_CONFIG,
        is_sensitive,
        is_read_only,
        UNKNOWN_TYPE if key is None else TYPES[key.type],
        synonyms,
    )


def static_texts(config: BrokerConfig) -> dict[str, str]:
    """server.properties and what counts as much; the node's two ids are one."""
    texts = dict(config.texts)
    if "node.id" in texts or "broker.id" in texts:
        texts["node.id"] = texts["broker.id"] = str(config.node_id)
    return texts


def synonyms_of(name: str) -> tuple[str, ...]:
    if name.startswith(LISTENER_PREFIX):
        base = base_name(name)
        if base != name:
            return name, next((key for key in OF_MECHANISMS if base.endswith(key)), base)
    return SYNONYMS.get(name, (name,))


def row_of(keys: Keys, name: str) -> Key | None:
    """The row of a broker's key, be it said for a listener."""
    for each in (name, *synonyms_of(name)):
        row = keys.broker.get(each) or keys.dynamic.get(each)
        if row is not None:
            return row
    return None


def shown_of(keys: Mapping[str, Key], own: Mapping[str, str]) -> set[str]:
    return {name for name, key in keys.items() if not key.internal} | own.keys()


def chosen(all_names: Collection[str], names: Iterable[str] | None) -> list[str]:
    """Those of all that are asked for, by name; all of them where no list, or an empty one, was given."""
    wanted = set(names or ())
    return sorted(name for name in wanted if name in all_names) if wanted else sorted(all_names)


def parsed(key: Key, text: str) -> Value:
    """The value of a text that was taken once; one that would not be taken today is shown as it stands."""
    try:
        return key.parse(text)
    except ConfigError:
        return text
