"""Whom a broker asks what somebody may do: `authorizer.class.name`, and the configs of Kafka's authorizers.

No class is loaded: the names stand for the rules that Kafka's own classes have, of which there is one where the ACLs are
in a metadata log, and one where they are in ZooKeeper. Any other name is refused: a broker that ignored it would let
everybody in.
"""

from __future__ import annotations

from pykafkad.config_def import ConfigError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Protocol

    from pykafkad.pure.acl_rules import Rules
    from pykafkad.quiet import Allows

    class Config(Protocol):
        """What is needed of a BrokerConfig."""

        on_zookeeper: bool
        texts: dict[str, str]

        def __getitem__(self, key: str, /) -> Any: ...


KEY = "authorizer.class.name"
SUPER_USERS = "super.users"
EVERYONE = "allow.everyone.if.no.acl.found"
STANDARD = "org.apache.kafka.metadata.authorizer.StandardAuthorizer"
OF_ZOOKEEPER = "kafka.security.authorizer.AclAuthorizer"
OF_ANOTHER_ZOOKEEPER = "authorizer.zookeeper."


def check(config: Config) -> None:
    known = OF_ZOOKEEPER if config.on_zookeeper else STANDARD
    if config[KEY] not in ("", known):
        message = f"Invalid value {config[KEY]} for configuration {KEY}: access cannot be checked by it here"
        raise ConfigError(KEY, config[KEY], message, f"{known}, or nothing")
    elsewhere = next((key for key in config.texts if key.startswith(OF_ANOTHER_ZOOKEEPER)), None)
    if config[KEY] and elsewhere is not None:
        message = f"{elsewhere} cannot be set: ACLs are in the ZooKeeper of zookeeper.connect"
        raise ConfigError(elsewhere, config.texts[elsewhere], message, "nothing")
    super_users(config)


def unused(config: Config) -> tuple[str, ...]:
    """What is known to nobody without an authorizer."""
    return () if config[KEY] else (SUPER_USERS, EVERYONE)


def super_users(config: Config) -> frozenset[str]:
    """Type:name;Type:name"""
    found = frozenset(filter(None, map(str.strip, config[SUPER_USERS].split(";"))))
    for each in found:
        if ":" not in each:
            message = f"expected a string in format principalType:principalName but got {each}"
            raise ConfigError(SUPER_USERS, config[SUPER_USERS], message, "User:NAME;User:NAME")
    return found


def rules_of(config: Config, allows: Allows) -> Rules:
    """`allows`: whether a line of the log may be written."""
    from pykafkad.denials import Denials
    from pykafkad.pure.acl_rules import Rules, RulesOfZooKeeper

    kind = RulesOfZooKeeper if config.on_zookeeper else Rules
    return kind(super_users(config), everyone_if_no_acl=config[EVERYONE], note_denied=Denials(allows).note)
