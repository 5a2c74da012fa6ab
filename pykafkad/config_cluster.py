"""What a config means where `zookeeper.connect` makes the broker one of a cluster: Kafka 3.9's rules.

What Kafka would accept and cannot be done here is refused: ids that ZooKeeper gives, a quorum of controllers beside it,
and inter-broker protocols from before topics had ids.
"""

from __future__ import annotations

from pykafkad.config_def import ConfigError
from pykafkad.pure import releases

TYPE_CHECKING = False
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


# What counts in a version's text are two numbers: 3.9-IV0 is 3.9.
OLDEST, NEWEST = (2, 8), (3, 9)
KEY = "zookeeper.connect"
PROTOCOL = "inter.broker.protocol.version"
# From this protocol on records have one format, whatever is said of it.
ONE_FORMAT = (3, 0)
FORMAT, FORMAT_OF_RECORDS = "message.format.version", "3.0-IV1"
# What was said of both directions at once, before each had a key of its own.
DIFFERENCE = "message.timestamp.difference.max.ms"
DIRECTIONS = ("message.timestamp.before.max.ms", "message.timestamp.after.max.ms")
NO_BOUND = 9223372036854775807


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


def resolve_defaults(defaults: dict[str, Value], protocol: str) -> None:
    """What topics have where they say nothing themselves."""
    resolve_timestamps(defaults)
    version = protocol_version(protocol)
    if version is None or version >= ONE_FORMAT:
        defaults[FORMAT] = FORMAT_OF_RECORDS
    else:
        defaults[FORMAT] = releases.full_name(str(defaults[FORMAT]))


def resolve_timestamps(values: dict[str, Value]) -> None:
    """A direction without a bound has the one of both; one that is set to no bound, too, as in Kafka."""
    for key in DIRECTIONS:
        if values[key] == NO_BOUND:
            values[key] = values[DIFFERENCE]
