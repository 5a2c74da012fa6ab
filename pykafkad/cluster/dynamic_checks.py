"""Which values a broker's dynamic configs may have: Kafka's checks before it stores them, in its order and words.

First what can be seen of the names and the values by themselves, then whether the broker could be what they make of
it (all the rules of a start), then what the parts that would change have to say. Nothing is changed here.
"""

from __future__ import annotations

from pykafkad.cluster.dynamic_config import (
    SECURITY,
    DynamicConfig,
    base_name,
    is_per_broker,
    key_of,
    means_something,
)
from pykafkad.config import BROKER_KEYS, ConfigError
from pykafkad.errors import TEXT_MAX
from pykafkad.pure import java
from pykafkad.slices import GO_ON

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Generator, Iterable, Mapping

    from pykafkad.config import BrokerConfig
    from pykafkad.config_keys import Keys

    Steps = Generator[bool, None, None]

A_TIME = 128  # keys between two looks at the clock
POOLS = (
    "background.threads",
    "num.io.threads",
    "num.recovery.threads.per.data.dir",
    "num.replica.fetchers",
    "remote.log.manager.copier.thread.pool.size",
    "remote.log.manager.expiration.thread.pool.size",
    "remote.log.manager.follower.thread.pool.size",
    "remote.log.reader.threads",
)
REPORTERS = "org.apache.kafka.common.metrics.JmxReporter"
IMMUTABLE = "Advertised listeners cannot be altered when using a Raft-based metadata quorum."


class Refused(Exception):
    """Why not, as Kafka tells the client."""


def check(dynamic: DynamicConfig, texts: Mapping[str, str], *, per_broker: bool) -> Steps:
    """Refused, if this layer cannot be all that these texts say."""
    keys = dynamic.config.keys
    known = {}
    for number, name in enumerate(texts):
        if means_something(keys, name):
            known[name] = texts[name]
        if number % A_TIME == 0:
            yield GO_ON
    try:
        yield from _check_names_and_values(keys, known, per_broker=per_broker)
        layers = dynamic.of_all | known if per_broker else known | dynamic.of_this
        wanted = dynamic.config.with_dynamic(layers)
    except ConfigError as error:
        raise Refused(error.told) from None
    yield GO_ON
    try:
        _check_change(dynamic.config, wanted)
    except ConfigError as error:
        what = f"org.apache.kafka.common.config.ConfigException: {error.told}"
        raise Refused(f"Invalid value {what} for configuration Invalid dynamic configuration") from None


def _check_names_and_values(keys: Keys, texts: Mapping[str, str], *, per_broker: bool) -> Steps:
    _refuse_any(
        (name for name in texts if name in keys.broker and name not in keys.dynamic),
        "Cannot update these configs dynamically",
    )
    _refuse_any(
        SECURITY & texts.keys(),
        "These security configs can be dynamically updated only per-listener using the listener prefix",
    )
    by_base = {}
    of_one_broker = []
    for number, (name, text) in enumerate(texts.items()):
        by_base[base_name(name)] = text
        if is_per_broker(keys, name):
            of_one_broker.append(name)
        if number % A_TIME == 0:
            yield GO_ON
    for name, key in keys.dynamic.items():
        if name in by_base:
            text = by_base[name]
            if key.parse(text) != key.default and key.type == "CLASS":
                raise key.error(text, f"Class {text} could not be found.")
    if not per_broker:
        _refuse_any(
            of_one_broker,
            "Cannot update these configs at default cluster level, broker id must be specified",
        )


def _refuse_any(names: Iterable[str], why: str) -> None:
    found = list(names)
    if found:
        if sum(map(len, found)) <= TEXT_MAX:  # else nobody is told
            found = java.set_order(found)
        raise ConfigError(found[0], None, f"{why}: [{', '.join(found)}]")


def _check_change(present: BrokerConfig, wanted: BrokerConfig) -> None:
    """What the parts of the broker say that would have to change."""
    if wanted["metric.reporters"] != present["metric.reporters"]:
        _check_reporters(present, wanted)
    for endpoint in present.listeners:
        _check_listener(present, wanted, endpoint.name)
    for key in POOLS:
        _check_pool(key, present[key], wanted[key])
    _check_cleaners(present["log.cleaner.threads"], wanted["log.cleaner.threads"])
    _check_local_retention(wanted, "log.local.retention.ms", "log.retention.ms", _retention_ms(wanted))
    _check_local_retention(
        wanted, "log.local.retention.bytes", "log.retention.bytes", wanted["log.retention.bytes"]
    )
    _check_listeners(present, wanted)


def _check_reporters(present: BrokerConfig, wanted: BrokerConfig) -> None:
    """There is one reporter of Kafka's, and nothing can load classes here."""
    if set(wanted["metric.reporters"]) - {REPORTERS}:
        changed = [
            name
            for name, text in wanted.dynamic.items()
            if present.dynamic.get(name) != text and key_of(present.keys, name) is not None
        ]
        message = (
            f"Validation of dynamic config update of Set({', '.join(changed)}) failed with class"
            " class kafka.server.DynamicMetricsReporters"
        )
        raise ConfigError("metric.reporters", wanted["metric.reporters"], message)


def _check_pool(key: str, present: int, wanted: int) -> None:
    if wanted == present:
        return
    why = f"Dynamic thread count update validation failed for {key}={wanted}"
    if wanted < present // 2:
        raise ConfigError(key, wanted, f"{why}, value should be at least half the current value {present}")
    if wanted > present * 2:
        raise ConfigError(
            key, wanted, f"{why}, value should not be greater than double the current value {present}"
        )


def _check_listener(present: BrokerConfig, wanted: BrokerConfig, name: str) -> None:
    """What a listener may be given, be it of its own or of the broker's."""
    for key in ("max.connections", "max.connection.creation.rate"):
        value = _of_listener(wanted, name, key)
        if value <= 0 and value != _of_listener(present, name, key):
            raise ConfigError(key, value, f"Invalid {key} {value}")
    threads = "num.network.threads"
    _check_pool(threads, _of_listener(present, name, threads), _of_listener(wanted, name, threads))


def _of_listener(config: BrokerConfig, name: str, key: str) -> int:
    text = config.listener_text(name, key)
    value = config[key] if text is None else BROKER_KEYS[key].parse(text)
    assert isinstance(value, int)
    return value


def _check_cleaners(present: int, wanted: int) -> None:
    why = "Log cleaner threads cannot be"
    if wanted < present // 2:
        message = f"{why} reduced to less than half the current value {present}"
        raise ConfigError("log.cleaner.threads", wanted, message)
    if wanted > present * 2:
        message = f"{why} increased to more than double the current value {present}"
        raise ConfigError("log.cleaner.threads", wanted, message)


def _retention_ms(config: BrokerConfig) -> int:
    retention_ms: int = config.topic_defaults["retention.ms"]  # type: ignore[assignment]  # a LONG
    return retention_ms


def _check_local_retention(config: BrokerConfig, local_key: str, key: str, whole: int) -> None:
    local = config[local_key]
    if whole == -1 or local == -2:
        return
    if local == -1:
        why = f"Value must not be -1 as {key} value is set as {whole}."
    elif local > whole:
        why = f"Value must not be more than {key} property value: {whole}"
    else:
        return
    raise BROKER_KEYS[local_key].error(local, why)


def _check_listeners(present: BrokerConfig, wanted: BrokerConfig) -> None:
    """Brokers register what they advertise once, at start."""
    if set(wanted.advertised_listeners) != set(present.advertised_listeners):
        raise ConfigError("listeners", None, IMMUTABLE)
