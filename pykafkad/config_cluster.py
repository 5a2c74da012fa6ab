"""What a config means where `zookeeper.connect` makes the broker one of a cluster: Kafka 3.9's defaults and rules.

What Kafka would accept and cannot be done here is refused: ids that ZooKeeper gives, a quorum of controllers beside it,
and inter-broker protocols from before topics had ids.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pykafkad.config_def import ConfigError

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any, Protocol

    from pykafkad.config_def import Value

    class Listener(Protocol):
        @property
        def name(self) -> str: ...

    class Config(Protocol):
        """What is needed of a BrokerConfig."""

        single_node: bool

        def __getitem__(self, key: str, /) -> Any: ...
        def explicit(self, name: str) -> bool: ...
        def text(self, name: str) -> str | None: ...
        @property
        def advertised_listeners(self) -> Sequence[Listener]: ...
        @property
        def inter_broker_listener(self) -> str: ...


# Those that are others in 3.9, and make a difference.
DEFAULTS: dict[str, Value] = {
    "group.coordinator.rebalance.protocols": ["classic"],
    "log.message.timestamp.after.max.ms": 9223372036854775807,
}
# What counts in a version's text are two numbers: 3.9-IV0 is 3.9.
OLDEST, NEWEST = (2, 8), (3, 9)
KEY = "zookeeper.connect"
PROTOCOL = "inter.broker.protocol.version"


def check(config: Config) -> None:
    if not config[KEY].strip():
        raise ConfigError(
            KEY, config[KEY], f"Invalid value for configuration {KEY}", "HOST:PORT,HOST:PORT/CHROOT"
        )
    if config.single_node:
        raise ConfigError(
            KEY, config[KEY], f"{KEY} cannot be set together with --single-node", "one of the two"
        )
    for key in ("controller.quorum.voters", "controller.quorum.bootstrap.servers"):
        if config.explicit(key):
            raise ConfigError(
                key, config.text(key), f"{key} cannot be set together with {KEY}", "one of the two"
            )
    if not config.explicit("broker.id") and not config.explicit("node.id"):
        raise ConfigError("broker.id", -1, "broker.id must be set: ids are not generated here", "0 or more")
    version = protocol_version(config[PROTOCOL])
    if version is None or not OLDEST <= version <= NEWEST:
        message = f"Invalid value {config[PROTOCOL]} for configuration {PROTOCOL}"
        raise ConfigError(PROTOCOL, config[PROTOCOL], message, "2.8 to 3.9")


def protocol_version(text: str) -> tuple[int, int] | None:
    """The first two numbers; None: there are none."""
    major, _, minor = text.partition("-")[0].partition(".")
    minor = minor.partition(".")[0]
    return (int(major), int(minor)) if major.isdecimal() and minor.isdecimal() else None


def check_listeners(config: Config) -> None:
    """When they are known: other brokers, and the controller, must be able to reach this one."""
    names = [endpoint.name for endpoint in config.advertised_listeners]
    for key in ("inter.broker.listener.name", "control.plane.listener.name"):
        name = config.inter_broker_listener if key.startswith("inter") else config[key]
        if name is not None and name not in names:
            message = f"{key} must be a listener name defined in advertised.listeners"
            raise ConfigError(key, name, message, ", ".join(names))
