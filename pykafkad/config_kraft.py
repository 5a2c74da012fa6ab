"""What a config means where `process.roles=broker` makes this one a broker of a cluster whose controllers are real ones.

The controllers are Apache Kafka's: controller.quorum.voters or controller.quorum.bootstrap.servers names them. What Kafka
refuses of such a config is refused here in its words, and also what this broker cannot do: reach controllers by TLS or
SASL.
"""

from __future__ import annotations

from pykafkad.config_def import ConfigError
from pykafkad.pure import java

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any, Protocol

    from pykafkad import config_cluster

    class Config(config_cluster.Config, Protocol):
        """What is needed of a BrokerConfig."""

        node_id: int

        @property
        def controller_listeners(self) -> Sequence[Any]: ...


KEY = "process.roles"
VOTERS, BOOTSTRAP = "controller.quorum.voters", "controller.quorum.bootstrap.servers"
TOPICS = "pykafkad.create.topics"
NAMES = "controller.listener.names"


def check(config: Config) -> None:
    if config.single_node:
        raise ConfigError(
            KEY, "broker", f"{KEY}=broker cannot be set together with --single-node", "one of the two"
        )
    if config[TOPICS]:
        message = f"{TOPICS} cannot be set together with {KEY}=broker: the cluster has its controllers"
        raise ConfigError(TOPICS, config.text(TOPICS), message)
    if not config.explicit("node.id") and not config.explicit("broker.id"):
        raise ConfigError(
            "node.id", None, "Missing required configuration `node.id` which has no default value."
        )
    if not config[VOTERS] and not config[BOOTSTRAP]:
        message = (
            f"If using {KEY}, either {BOOTSTRAP} must contain the set of bootstrap controllers or {VOTERS} must"
            " contain a parseable set of controllers."
        )
        raise ConfigError(VOTERS, config.text(VOTERS), message, "ID@HOST:PORT,…")
    if config.node_id in voters_of(config[VOTERS]):
        message = (
            f"If {KEY} contains just the 'broker' role, the node id {config.node_id} must not be included in the set"
            f" of voters {VOTERS}={config.text(VOTERS)}"
        )
        raise ConfigError(VOTERS, config.text(VOTERS), message)


def check_listeners(config: Config) -> None:
    """When they are known."""
    if not config[NAMES]:
        message = f"{NAMES} must contain at least one value when running KRaft with just the broker role"
        raise ConfigError(NAMES, "", message, "the name of the controllers' listener")
    if config.controller_listeners:
        message = (
            f"{NAMES} must not contain a value appearing in the 'listeners' configuration when running KRaft with"
            " just the broker role"
        )
        raise ConfigError(NAMES, config.text(NAMES), message)
    protocol = protocol_of(config, config[NAMES][0].upper())
    if protocol != "PLAINTEXT":
        message = f"The controllers' listener {config[NAMES][0]} has the security protocol {protocol}"
        raise ConfigError(NAMES, config.text(NAMES), message, "PLAINTEXT")
    if config.inter_broker_listener not in [each.name for each in config.advertised_listeners]:
        message = "inter.broker.listener.name must be a listener name defined in advertised.listeners"
        raise ConfigError("inter.broker.listener.name", config.inter_broker_listener, message)


def protocol_of(config: Config, name: str) -> str:
    """Kafka's default map has no controllers' listener: while it is in place, such a one is PLAINTEXT."""
    entries = (entry.rpartition(":") for entry in str(config["listener.security.protocol.map"]).split(","))
    found = {key.strip().upper(): protocol.strip().upper() for key, _, protocol in entries}
    return found.get(name, "PLAINTEXT")


def voters_of(texts: Sequence[str]) -> dict[int, tuple[str, int]]:
    """Where each voter of controller.quorum.voters listens."""
    found = {}
    for text in texts:
        number, _, address = text.partition("@")
        found[java.parse_int(number)] = address_of(address)
    return found


def address_of(text: str) -> tuple[str, int]:
    host, _, port = text.rpartition(":")
    return host.removeprefix("[").removesuffix("]"), int(port)
