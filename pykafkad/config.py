"""The configuration of the broker and of topics: where values come from, and what they are.

Owns the merge of the sources (a later one wins: defaults, server.properties or what counts where there is none, KAFKA_
environment variables, the command line), the parsed values, the derived ones (listeners, log directories, the topics'
defaults) and the messages about keys at start (unknown ones, ones not honoured). The facts are in config_table and
config_entities, which of them count in config_keys, the rules in config_def, config_checks and config_listeners.

A broker's config changes while it runs (KIP-226): `adopt` takes over what `with_dynamic` made, in place, so that
`config[...]` always gives the value that is in effect. `texts` stays what the sources contain.

Some keys that Kafka requires have a default here: node.id is 1, process.roles is both, and the broker listens on the
loopback interface.
"""

from __future__ import annotations

from pykafkad import (
    config_authorizer,
    config_checks,
    config_cluster,
    config_environment,
    config_kraft,
    config_listeners,
    config_names,
    config_single_node,
    config_table,
    first_topics,
    uuids,
)
from pykafkad.config_def import ConfigError, Key, show, to_text
from pykafkad.config_keys import BROKER_KEYS, OF_3_9, OF_4_3, OWN_KEYS, TOPIC_KEYS
from pykafkad.config_listeners import Endpoint
from pykafkad.pure import java

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any


__all__ = [
    "BROKER_KEYS",
    "OWN_KEYS",
    "TOPIC_KEYS",
    "BrokerConfig",
    "ConfigError",
    "Endpoint",
    "Key",
    "TopicConfig",
    "validate_topic_configs",
]

# What counts where there is no server.properties, as if one said so: clients see it as static configs. Whoever tries
# things out, or tests, does not want each new group to wait 3 s for members (the file that came with Kafka 3 said so,
# too), nor a member of a KIP-848 group 5 s for the next heartbeat of the one that is to give it a partition.
# None of a line's keys where somebody sets one of them, since their values have to go together.
WITHOUT_FILE = (
    {"group.initial.rebalance.delay.ms": "0"},
    {"group.consumer.heartbeat.interval.ms": "250", "group.consumer.min.heartbeat.interval.ms": "250"},
)


class BrokerConfig:
    """The effective configuration of one broker; `config["log.segment.bytes"]` is a parsed value."""

    __slots__ = (
        "_values",
        "advertised_listeners",
        "auto_create_topics_enable",
        "beside_kraft",
        "connections_per_ip_overrides",
        "controller_listeners",
        "delete_topic_enable",
        "dynamic",
        "fetch_max_bytes",
        "ignored_variables",
        "is_clustered",
        "keys",
        "listeners",
        "log_dirs",
        "lowered",
        "metadata_log_dir",
        "node_id",
        "on_zookeeper",
        "origins",
        "single_node",
        "texts",
        "topic_defaults",
        "unknown",
    )

    listeners: list[Endpoint]  # the first one is what the ready line names
    advertised_listeners: list[Endpoint]  # for an empty host and port 0 the server fills in the real ones
    controller_listeners: list[Endpoint]  # configured, and not opened

    def __init__(
        self,
        texts: Mapping[str, str],
        origins: Mapping[str, str] | None = None,
        dynamic: Mapping[str, str] | None = None,
    ) -> None:
        self.texts = dict(texts)
        self.origins = dict(origins or {})
        self.dynamic = dict(dynamic or {})  # override the texts
        self.ignored_variables: list[str] = []
        # With process.roles set Kafka 3.9 leaves ZooKeeper alone, too.
        self.on_zookeeper = "zookeeper.connect" in self.texts and "process.roles" not in self.texts
        self.keys = OF_3_9 if self.on_zookeeper else OF_4_3
        self._values = dict(self.keys.defaults)
        everything = self.texts | self.dynamic
        for keys in (self.keys.broker, OWN_KEYS):
            for name in keys:
                if name in everything:
                    self._values[name] = keys[name].parse(everything[name])
        of_nobody = config_authorizer.unused(self)
        self.unknown = [name for name in self.texts if self.keys.known(name) is None or name in of_nobody]
        self.beside_kraft = self["process.roles"] == ["broker"]  # the controllers are other processes
        self.is_clustered = self.on_zookeeper or self.beside_kraft
        self.single_node: bool = self["pykafkad.single.node"]
        self.lowered = self._lower() if self.single_node else []
        self._check_own()
        self._resolve_node_id()
        if self.on_zookeeper:
            config_cluster.check(self)
        elif self.beside_kraft:
            config_kraft.check(self)
        else:
            self._check_quorum()
        config_authorizer.check(self)
        self._resolve_listeners()
        config_checks.check_broker(self._values)
        self._resolve_log_dirs()
        self.topic_defaults = self.keys.topic_defaults(self._values)
        if self.on_zookeeper:
            config_cluster.resolve_defaults(self.topic_defaults, self[config_cluster.PROTOCOL])
        self._name_the_hot_ones()

    @classmethod
    def from_sources(
        cls,
        properties: Mapping[str, str] | None = None,
        env: Mapping[str, str] | None = None,
        overrides: Mapping[str, str] | None = None,
        *,
        host: str | None = None,
        port: int | None = None,
    ) -> BrokerConfig:
        """Merge the file's properties (None: there is no file), the environment's and the command line's; a later source
        wins.

        `host` and `port` replace those of the first client listener.
        """
        texts: dict[str, str] = {}
        origins: dict[str, str] = {}
        environment = config_environment.properties_from_environment(env or {})
        if properties is None:
            properties = _without_file({*environment, *(overrides or ())})
        sources = (
            ("server.properties", properties),
            ("environment", environment),
            ("command line", overrides or {}),
        )
        for origin, source in sources:
            for name, text in source.items():
                texts[name] = text
                origins[name] = origin
        if origins.get("advertised.listeners") == "environment" and "listeners" not in texts:
            texts["listeners"] = config_environment.listeners_for(texts["advertised.listeners"])
            origins["listeners"] = "environment"
        if host is not None or port is not None:
            config_listeners.move(texts, origins, host, port)
        config = cls(texts, origins)
        config.ignored_variables = config_environment.ignored(env or {})
        return config

    def __getitem__(self, name: str) -> Any:
        return self._values[name]

    def explicit(self, name: str) -> bool:
        """Whether one of the sources sets the key, even if only to its default."""
        return name in self.texts

    def default_text(self, name: str) -> str | None:
        """The value that clients see of a key that nobody has set: our own default for keys that Kafka requires."""
        if name in self.keys.broker:
            return to_text(
                self.keys.broker[name].default if self.explicit(name) else self.keys.defaults[name]
            )
        return None

    def listener_text(self, listener: str, key: str) -> str | None:
        """The value of a key for one listener alone, which is set with the prefix `listener.name.NAME.`."""
        name = f"listener.name.{listener.lower()}.{key}"
        return self.dynamic.get(name, self.texts.get(name))

    def with_dynamic(self, texts: Mapping[str, str]) -> BrokerConfig:
        """This config with these dynamic texts in place of its present ones; ConfigError if they are not valid."""
        return BrokerConfig(self.texts, self.origins, texts)

    def adopt(self, other: BrokerConfig) -> set[str]:
        """Take over what `with_dynamic` made; returns the names of keys whose values, or texts for a listener, have
        changed."""
        changed = {name for name, value in other._values.items() if value != self._values[name]}
        for name in self.dynamic.keys() | other.dynamic.keys():
            if name not in self.keys.broker and self.dynamic.get(name) != other.dynamic.get(name):
                changed.add(name)
        for slot in self.__slots__:
            setattr(self, slot, getattr(other, slot))
        return changed

    def text(self, name: str) -> str | None:
        """The value as a client is shown it."""
        return to_text(self._values[name])

    @property
    def inter_broker_listener(self) -> str:
        """The name of the listener on which brokers of a cluster reach each other."""
        name: str = self["inter.broker.listener.name"] or self["security.inter.broker.protocol"]
        return name

    @property
    def unhonoured(self) -> list[str]:
        """Known keys that are set and have no effect in this broker."""
        honoured = config_table.honoured(is_clustered=self.is_clustered, beside_kraft=self.beside_kraft)
        return [
            name
            for name in self.texts
            if (key := self.keys.known(name))
            and key not in honoured
            and key not in OWN_KEYS
            and self.origins.get(name) != config_single_node.ORIGIN
        ]

    def notes(self) -> list[tuple[str, str]]:
        """Messages for the log at start, as (level, line)."""
        notes = []
        if self.unknown:
            said = f"These configurations '{show(self.unknown)}' were supplied but are not used yet."
            hints = [f" {name}{hint}" for name in self.unknown if (hint := config_names.hint(name))]
            notes.append(("warn", said + "".join(hints)))
        if self.unhonoured:
            said = f"These configurations '{show(self.unhonoured)}' are known, but change nothing here."
            notes.append(("warn", said))
        if self.ignored_variables:
            notes.append(
                ("info", f"{', '.join(self.ignored_variables)}: these variables change nothing here.")
            )
        if self["zookeeper.connect"] is not None and not self.on_zookeeper:
            kind = "the controllers are Kafka's" if self.beside_kraft else "this is a single node"
            said = f"zookeeper.connect changes nothing: process.roles is set, so {kind}"
            notes.append(("warn", said))
        if self.lowered:
            said = f"{', '.join(self.lowered)}: this is a single node, so each counts as 1"
            notes.append(("info", said))
        if self.controller_listeners:
            said = ", ".join(map(str, self.controller_listeners))
            said = f"Not opening {said}: this broker is its own controller and needs no port for that"
            notes.append(("info", said))
        return notes

    def _lower(self) -> list[str]:
        changed, said = config_single_node.lower(self._values, self.texts, self.dynamic)
        self.origins.update(dict.fromkeys(changed, config_single_node.ORIGIN))
        return said

    def _check_own(self) -> None:
        if topics := self["pykafkad.create.topics"]:
            first_topics.parse(topics)
        key = "pykafkad.cluster.id"
        if cluster_id := self[key]:
            try:
                uuids.from_text(cluster_id)
            except ValueError as problem:
                said = f"Cluster ID string {cluster_id} does not appear to be a valid UUID: {problem}"
                raise ConfigError(key, cluster_id, said, "22 characters of base64") from None

    def _resolve_node_id(self) -> None:
        values = self._values
        if self.explicit("broker.id"):
            if not self.explicit("node.id"):
                if self["broker.id"] < 0:
                    raise BROKER_KEYS["broker.id"].error(self["broker.id"], "Value must be at least 0")
                values["node.id"] = values["broker.id"]
            elif values["broker.id"] != values["node.id"]:
                message = "You must set `node.id` to the same value as `broker.id`."
                raise ConfigError("broker.id", values["broker.id"], message, f"{values['node.id']}")
        values["broker.id"] = values["node.id"]
        node_id = values["node.id"]
        assert isinstance(node_id, int)
        self.node_id = node_id

    def _check_quorum(self) -> None:
        """This broker is its own controller: a config that names other controllers is refused, not ignored."""
        roles = self["process.roles"]
        if sorted(roles) != ["broker", "controller"]:
            message = (
                f"Invalid value {','.join(roles)} for configuration process.roles: "
                "this broker is its own controller, or a broker alone, beside controllers of Apache Kafka"
            )
            raise ConfigError("process.roles", ",".join(roles), message, "broker,controller or broker")
        voters = {java.parse_int(voter.partition("@")[0]) for voter in self["controller.quorum.voters"]}
        if voters and self.node_id not in voters:
            message = (
                "If process.roles contains the 'controller' role, the node id "
                f"{self.node_id} must be included in the set of voters "
                f"controller.quorum.voters=Set({', '.join(map(str, sorted(voters)))})"
            )
            raise ConfigError("controller.quorum.voters", self.text("controller.quorum.voters"), message)
        for key in ("controller.quorum.voters", "controller.quorum.bootstrap.servers"):
            if len(self[key]) > 1:
                message = (
                    f"Invalid value {self.text(key)} for configuration {key}: cannot join a quorum of others"
                )
                raise ConfigError(key, self.text(key), message, "this node alone")

    def _resolve_listeners(self) -> None:
        found = config_listeners.Listeners(self._values, self.texts | self.dynamic)
        self.listeners = found.clients
        self.advertised_listeners = found.advertised
        self.controller_listeners = found.controllers
        if self.on_zookeeper:
            config_cluster.check_listeners(self)
        elif self.beside_kraft:
            config_kraft.check_listeners(self)
        overrides = self["max.connections.per.ip.overrides"]
        self.connections_per_ip_overrides = config_listeners.parse_overrides(overrides)

    def _resolve_log_dirs(self) -> None:
        log_dirs = self["log.dirs"]
        self.log_dirs: list[str] = self["log.dir"] if log_dirs is None else log_dirs
        self.metadata_log_dir: str = self["metadata.log.dir"] or self.log_dirs[0]
        missing = [path for path in self["cordoned.log.dirs"] if path not in self.log_dirs]
        if missing and missing != ["*"]:
            key = "cordoned.log.dirs"
            message = (
                f"All entries in {key} must be present in log.dirs or log.dir."
                f" Missing entries : {', '.join(missing)}"
            )
            told = f"requirement failed: {message}"
            raise ConfigError(key, ",".join(missing), message, ",".join(self.log_dirs), told)

    def _name_the_hot_ones(self) -> None:
        self.auto_create_topics_enable: bool = self["auto.create.topics.enable"]
        self.delete_topic_enable: bool = self["delete.topic.enable"]
        self.fetch_max_bytes: int = self["fetch.max.bytes"]


def _without_file(others: set[str]) -> dict[str, str]:
    """What counts where there is no file, beside what others set."""
    return {key: text for line in WITHOUT_FILE if others.isdisjoint(line) for key, text in line.items()}


def validate_topic_configs(broker: BrokerConfig, overrides: Mapping[str, str | None]) -> None:
    """Check all configs of a topic: names, values, and their relations; raises Kafka's first error."""
    nulls = [name for name, value in overrides.items() if value is None]
    if nulls:
        message = f"Null value not supported for topic configs: {','.join(nulls)}"
        raise ConfigError(nulls[0], None, message)
    for name in overrides:
        if name not in broker.keys.topic:
            broker.keys.check_topic(name, overrides[name])
    TopicConfig(broker, {name: text for name, text in overrides.items() if text is not None}).check()


class TopicConfig:
    """The effective configuration of one topic: its own configs over the broker's defaults.

    `config["retention.ms"]` is a parsed value. If `internal.segment.bytes` is set, it replaces `segment.bytes`: that is
    how Kafka's own tests get small segments, and ours.
    """

    __slots__ = ("_remote_system", "_values", "overrides")

    def __init__(self, broker: BrokerConfig, overrides: Mapping[str, str] | None = None) -> None:
        self.overrides = dict(overrides or {})
        if broker.single_node:
            self.overrides = config_single_node.lowered(self.overrides)
        self._remote_system = bool(broker["remote.log.storage.system.enable"])
        self._values = values = dict(broker.topic_defaults)
        if self.overrides:
            keys = broker.keys.topic
            for name in keys if len(self.overrides) > 1 else self.overrides:
                if name in self.overrides:
                    values[name] = keys[name].parse(self.overrides[name])
            if broker.on_zookeeper:
                config_cluster.resolve_timestamps(values)
            if values["internal.segment.bytes"] is not None:
                values["segment.bytes"] = values["internal.segment.bytes"]

    def __getitem__(self, name: str) -> Any:
        return self._values[name]

    def text(self, name: str) -> str | None:
        """The value as a client is shown it."""
        if name == "segment.bytes" and name in self.overrides:
            return self.overrides[name]
        return to_text(self._values[name])

    def check(self) -> None:
        """Check the rules across keys when the configs are set; raises ConfigError for the first one that is broken."""
        config_checks.check_topic(self._values, remote_system=self._remote_system)
