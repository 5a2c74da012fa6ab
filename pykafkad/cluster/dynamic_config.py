"""The broker's dynamic configs (KIP-226): what the metadata log holds of them, and making it count.

Two layers lie over server.properties: what all brokers have (resource name "") and, above it, what this broker has
(its node id). Owns which of the stored texts count (one that Kafka would ignore is ignored, and logged), and
`refresh`, which gives the merged ones to the broker's config in place. It is the first publisher: those behind it find
the names that have new values in the delta. What may be stored is decided in dynamic_checks.
Invariant: what counts while serving is what a restart finds.
"""

from __future__ import annotations

from pykafkad.cluster.image import ALL_BROKERS, BROKER_RESOURCE
from pykafkad.config import ConfigError
from pykafkad.config_keys import OF_3_9, OF_4_3, OWN_KEYS
from pykafkad.config_table import honoured
from pykafkad.logs import logger

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from pykafkad.cluster.delta import Delta
    from pykafkad.cluster.image import Image
    from pykafkad.config import BrokerConfig
    from pykafkad.config_def import Key
    from pykafkad.config_keys import Keys
    from pykafkad.slices import Work

LISTENER_PREFIX = "listener.name."

QUOTAS_HONOURED = frozenset({"replica.alter.log.dirs.io.max.bytes.per.second"})
QUOTAS_IN_CLUSTER = frozenset({"follower.replication.throttled.rate", "leader.replication.throttled.rate"})
OF_TOPICS = frozenset(key for synonyms in OF_3_9.synonyms.values() for key, _ in synonyms)

SECURITY = frozenset({
    "ssl.key.password", "ssl.keystore.certificate.chain", "ssl.keystore.key", "ssl.keystore.location",
    "ssl.keystore.password", "ssl.keystore.type", "ssl.truststore.certificates", "ssl.truststore.location",
    "ssl.truststore.password", "ssl.truststore.type",
})  # fmt: skip
FOR_ALL_BROKERS_OF_LISTENERS = frozenset(
    {"max.connections", "max.connection.creation.rate", "num.network.threads"}
)

log = logger("config")


class DynamicConfig:
    def __init__(self, config: BrokerConfig, image: Image, node_id: int) -> None:
        self.config = config
        self.node_id = node_id
        self.of_all: dict[str, str] = {}  # the two layers, as far as they count
        self.of_this: dict[str, str] = {}
        self.custom_of_all: dict[str, str] = {}  # what is stored for nobody here, and shown
        self.custom_of_this: dict[str, str] = {}
        self._image = image

    def publish(self, delta: Delta) -> Work:
        if delta.configs and not delta.is_whole:
            from pykafkad.cluster import config_reports

            yield from config_reports.report(delta, self._image, is_clustered=self.config.is_clustered)
        ours = (BROKER_RESOURCE, ALL_BROKERS), (BROKER_RESOURCE, str(self.node_id))
        if any(resource in delta.configs for resource in ours):
            delta.broker_keys = self.refresh()
            if delta.broker_keys:
                log.info(f"dynamic configs changed: {', '.join(sorted(delta.broker_keys))}")

    def refresh(self) -> set[str]:
        """What the image says counts from now on; the names that have other values than before."""
        keys = self.config.keys
        stored_of_all = self._image.broker_configs(ALL_BROKERS)
        stored_of_this = self._image.broker_configs(str(self.node_id))
        self.custom_of_all, self.custom_of_this = (
            custom(keys, stored) for stored in (stored_of_all, stored_of_this)
        )
        of_all = accepted(keys, stored_of_all, per_broker=False)
        of_this = accepted(keys, stored_of_this, per_broker=True)
        if of_all == self.of_all and of_this == self.of_this:
            return set()
        try:
            changed = self.config.adopt(self.config.with_dynamic(of_all | of_this))
        except ConfigError as error:
            log.error(f"dynamic configs of the broker could not be applied: {error}")
            return set()
        self.of_all, self.of_this = of_all, of_this
        return changed


def accepted(keys: Keys, stored: Mapping[str, str], *, per_broker: bool) -> dict[str, str]:
    """The stored texts that count; what is left out is logged, but for keys that mean nothing to anybody here."""
    found = {}
    for name, text in stored.items():
        if not means_something(keys, name):
            continue
        why = why_ignored(keys, name, text, per_broker=per_broker)
        if why is None:
            found[name] = text
        else:
            log.error(f"the dynamic config {name} is ignored: {why}")
    return found


def custom(keys: Keys, stored: Mapping[str, str]) -> dict[str, str]:
    """The others."""
    return {name: text for name, text in stored.items() if not means_something(keys, name)}


def means_something(keys: Keys, name: str) -> bool:
    """Whether it may be a broker's key; Kafka stores any other one too, for plugins."""
    return name in keys.broker or name in keys.dynamic or name.startswith(LISTENER_PREFIX)


def without_effect(name: str, *, is_clustered: bool = False) -> bool:
    """Whether it is a dynamic key of Kafka's that changes nothing here: it is stored and shown."""
    base = base_name(name)
    if (
        base not in (OF_3_9 if is_clustered else OF_4_3).dynamic
        or base in OWN_KEYS
        or base in QUOTAS_HONOURED
    ):
        return False
    if is_clustered and base in QUOTAS_IN_CLUSTER:
        return False
    return base not in honoured(is_clustered=is_clustered)


def why_ignored(keys: Keys, name: str, text: str, *, per_broker: bool) -> str | None:
    key = key_of(keys, name)
    if key is not None:
        try:
            key.parse(text)
        except ConfigError as error:
            return str(error)
    if name in keys.broker and not keys.broker[name].scope:
        return "it is not dynamic"
    if name in SECURITY:
        return "it needs the name of a listener before it"
    if not per_broker and is_per_broker(keys, name):
        return "it belongs to one broker and was set for all"
    return None


def base_name(name: str) -> str:
    """What follows `listener.name.NAME.`; else the name itself."""
    if name.startswith(LISTENER_PREFIX) and name.count(".") > 2:
        return name.split(".", 3)[3]
    return name


def key_of(keys: Keys, name: str) -> Key | None:
    """The dynamic key that a name stands for, if it is one."""
    return keys.dynamic.get(base_name(name))


def is_per_broker(keys: Keys, name: str) -> bool:
    """Whether it can be set for one broker alone."""
    base = base_name(name)
    if base != name:
        return base not in FOR_ALL_BROKERS_OF_LISTENERS
    return name in keys.dynamic and keys.dynamic[name].scope == "broker"
