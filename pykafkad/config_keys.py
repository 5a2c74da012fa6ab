"""Which keys there are: those of Kafka 4.3.1; in a cluster on ZooKeeper, those that 3.9.2 has besides, or otherwise.

Owns the tables as keys by name, one Keys a release. Which of them counts is a property of the BrokerConfig. What 4.3.1
has and 3.9.2 had not stays known in a cluster, too: a broker keeps its file when it moves. Invariant: OF_3_9 has every
name that OF_4_3 has.
"""

from __future__ import annotations

from pykafkad import config_entities, config_table
from pykafkad.config_def import ConfigError, Key, rows

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from pykafkad.config_def import Value

    Synonyms = dict[str, tuple[tuple[str, int], ...]]

BROKER_KEYS: dict[str, Key] = rows(config_table.BROKER)
OWN_KEYS: dict[str, Key] = rows((*config_table.OWN, *config_table.ZOOKEEPER, *config_table.AUTHORIZER))
TOPIC_KEYS: dict[str, Key] = rows(config_entities.TOPIC)
# Keys that are in no server.properties: they are set while the broker runs.
QUOTAS = rows(config_entities.QUOTA_BROKER)

DEFAULT_HOST = "127.0.0.1"
DEFAULT_PORT = 9092
DEFAULT_NODE_ID = 1
# What Kafka requires has a default here.
DEFAULTS_HERE: dict[str, Value] = {
    "node.id": DEFAULT_NODE_ID,
    "process.roles": ["broker", "controller"],
    "controller.listener.names": [],
    "listeners": [f"PLAINTEXT://{DEFAULT_HOST}:{DEFAULT_PORT}"],
}


class Keys:
    __slots__ = ("broker", "defaults", "dynamic", "name", "shown_of_topics", "synonyms", "topic")

    def __init__(self, name: str, broker: dict[str, Key], topic: dict[str, Key], synonyms: Synonyms) -> None:
        self.name = name
        self.broker = broker
        self.topic = topic
        self.synonyms = synonyms  # of a topic's key: the broker's keys that its default comes from
        both = broker | OWN_KEYS
        self.defaults: dict[str, Value] = {name: key.default for name, key in both.items()} | DEFAULTS_HERE
        self.dynamic = {**QUOTAS, **{name: key for name, key in both.items() if key.scope}}
        self.shown_of_topics = sorted(name for name, key in topic.items() if not key.internal)

    def check_topic(self, name: str, value: str | None) -> None:
        """One topic config by itself; ConfigError with the message that Kafka answers with."""
        key = self.topic.get(name)
        if key is None:
            known = f"a topic config of Kafka {self.name}"
            raise ConfigError(name, value, f"Unknown topic config name: {name}", known)
        if value is None:
            message = f"Null value not supported for topic configs: {name}"
            raise ConfigError(name, value, message, key.allowed())
        key.parse(value)

    def known(self, name: str) -> str | None:
        """The key that a name refers to: itself, or what follows `listener.name.NAME.`; None if unknown."""
        if name in self.broker or name in OWN_KEYS:
            return name
        if name.startswith("listener.name."):
            suffix = name.split(".", 3)[-1]
            for candidate in (
                suffix,
                suffix.partition(".")[2],
            ):  # with a SASL mechanism before it, or without
                if candidate in self.broker:
                    return candidate
        return None

    def topic_defaults(self, values: Mapping[str, Value]) -> dict[str, Value]:
        """The config of a topic without configs of its own: its keys' defaults, as the broker's keys set them."""
        defaults: dict[str, Value] = {}
        for name, key in self.topic.items():
            defaults[name] = key.default
            for broker_key, factor in self.synonyms.get(name, ()):
                value = values[broker_key]
                if value is not None:
                    scaled = value if factor == 1 else value * factor
                    defaults[name] = scaled
                    break
        if defaults["retention.ms"] < 0:  # type: ignore[operator]
            defaults["retention.ms"] = -1  # any negative value of the broker's keys means unlimited
        return defaults


OF_4_3 = Keys("4.3", BROKER_KEYS, TOPIC_KEYS, config_entities.TOPIC_SYNONYMS)
OF_3_9 = Keys(
    "3.9",
    BROKER_KEYS | rows(config_table.OF_3_9),
    TOPIC_KEYS | rows(config_entities.TOPIC_OF_3_9),
    config_entities.TOPIC_SYNONYMS | config_entities.TOPIC_SYNONYMS_OF_3_9,
)
