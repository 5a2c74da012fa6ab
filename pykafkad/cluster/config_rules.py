"""What the configs of topics, groups, client metrics subscriptions and loggers may be: Kafka's rules and words.

Functions raise a KafkaError with the code and the text to answer with, or return nothing. Those of brokers are in
dynamic_checks.
"""

from __future__ import annotations

from pykafkad import config_entities, errors, logs
from pykafkad.cluster.image import BROKER_RESOURCE, TOPIC_RESOURCE
from pykafkad.config import BROKER_KEYS, ConfigError, validate_topic_configs
from pykafkad.config_def import rows
from pykafkad.config_entities import GROUP_SYNONYMS
from pykafkad.config_keys import OF_3_9
from pykafkad.errors import KafkaError
from pykafkad.pure import java
from pykafkad.pure.telemetry import Match, MatchError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from pykafkad.config import BrokerConfig
    from pykafkad.config_def import Key, Value
    from pykafkad.config_keys import Keys

BROKER_LOGGER, CLIENT_METRICS, GROUP = 8, 16, 32  # kinds of resources, besides those in the image
SET, DELETE, APPEND, SUBTRACT = range(4)  # operations of IncrementalAlterConfigs

GROUP_KEYS = rows(config_entities.GROUP)
CLIENT_METRICS_KEYS = rows(config_entities.CLIENT_METRICS)
MIN_INTERVAL_MS, MAX_INTERVAL_MS = 100, 3_600_000
HIDDEN = "[hidden]"
ORDERED_MAX = 1_000

LEVELS = ("DEBUG", "ERROR", "FATAL", "INFO", "TRACE", "WARN")

# In Kafka's order. (The broker's own values are within its bounds.)
_BOUNDED = (
    "consumer.heartbeat.interval.ms",
    "consumer.session.timeout.ms",
    "consumer.assignment.interval.ms",
    "share.heartbeat.interval.ms",
    "share.session.timeout.ms",
    "share.record.lock.duration.ms",
    "share.delivery.count.limit",
    "share.partition.max.record.locks",
    "share.assignment.interval.ms",
    "streams.heartbeat.interval.ms",
    "streams.session.timeout.ms",
    "streams.num.standby.replicas",
    "streams.assignment.interval.ms",
)


def key_of(keys: Keys, resource_type: int, name: str) -> Key | None:
    """The row of a key as the controller knows it: of topics and brokers alone."""
    if resource_type == TOPIC_RESOURCE:
        return keys.topic.get(name)
    return keys.broker.get(name) if resource_type == BROKER_RESOURCE else None


def node_number(name: str, what: str = "Node") -> int:
    """The number that a broker's resource is named by."""
    try:
        return java.parse_int(name)
    except ValueError:
        raise KafkaError(errors.INVALID_REQUEST, f"{what} id must be an integer, but it is: {name}") from None


def shown(resource_type: int, name: str, value: str) -> str:
    """A value as a log line may have it."""
    if resource_type != BROKER_RESOURCE:
        return value
    key = OF_3_9.dynamic.get(name)
    return HIDDEN if key is None or key.sensitive else value


def check_topic(config: BrokerConfig, after: Mapping[str, str]) -> None:
    try:
        validate_topic_configs(config, after)
    except ConfigError as error:
        raise KafkaError(errors.INVALID_CONFIG, error.told) from None


def first_unknown(known: Mapping[str, Key], names: Collection[str]) -> str | None:
    """The first that Kafka finds in its set; of very many, one of them."""
    if all(name in known for name in names):
        return None
    ordered = java.set_order(names) if len(names) <= ORDERED_MAX else names
    return next(name for name in ordered if name not in known)


# -- groups


def check_group(config: BrokerConfig, name: str, after: Mapping[str, str]) -> None:
    if not name:
        raise KafkaError(errors.INVALID_REQUEST, "Default group resources are not allowed.")
    unknown = first_unknown(GROUP_KEYS, [*GROUP_KEYS, *after])  # Kafka looks at all of them at once
    if unknown is not None:
        raise KafkaError(errors.INVALID_CONFIG, f"Unknown group config name: {unknown}")
    try:
        values = group_values(config, after)
    except ConfigError as error:
        raise KafkaError(errors.INVALID_CONFIG, error.told) from None
    for key in _BOUNDED:
        if key in after:
            _check_bounds(config, key, values[key])
    for kind in ("consumer", "share", "streams"):
        timeout, interval = f"{kind}.session.timeout.ms", f"{kind}.heartbeat.interval.ms"
        if values[timeout] <= values[interval]:  # type: ignore[operator]  # both are INTs
            raise KafkaError(errors.INVALID_CONFIG, f"{timeout} must be greater than {interval}")


def group_values(config: BrokerConfig, own: Mapping[str, str]) -> dict[str, Value]:
    """What counts for a group: its own configs over the broker's."""
    values: dict[str, Value] = {}
    for name, key in GROUP_KEYS.items():
        if name in own:
            values[name] = key.parse(own[name])
        else:
            values[name] = config[GROUP_SYNONYMS[name]] if name in GROUP_SYNONYMS else key.default
    return values


def _check_bounds(config: BrokerConfig, key: str, value: Value) -> None:
    kind, _, rest = key.partition(".")
    for bound, said in (("min", "greater"), ("max", "less")):
        broker_key = f"group.{kind}.{bound}.{rest.removeprefix('num.')}"
        if broker_key not in BROKER_KEYS:
            continue
        limit = config[broker_key]
        if value < limit if bound == "min" else value > limit:
            why = f"{key} must be {said} than or equal to {broker_key}"
            raise KafkaError(errors.INVALID_CONFIG, why)


# -- client metrics subscriptions (KIP-714)


def check_client_metrics(name: str, after: Mapping[str, str]) -> None:
    if not name:
        raise KafkaError(errors.INVALID_REQUEST, "Subscription name can't be empty")
    unknown = first_unknown(CLIENT_METRICS_KEYS, after)
    if unknown is not None:
        raise KafkaError(errors.INVALID_REQUEST, f"Unknown client metrics configuration: {unknown}")
    try:
        values = client_metrics_values(after)
        Match(values["match"])  # type: ignore[arg-type]  # a LIST
    except (ConfigError, MatchError) as error:
        raise KafkaError(errors.INVALID_CONFIG, str(error)) from None
    interval_ms = values["interval.ms"]
    assert isinstance(interval_ms, int)
    if not MIN_INTERVAL_MS <= interval_ms <= MAX_INTERVAL_MS:
        why = (
            f"Invalid value {interval_ms} for interval.ms, interval must be between"
            f" {MIN_INTERVAL_MS} and {MAX_INTERVAL_MS} (1 hour)"
        )
        raise KafkaError(errors.INVALID_REQUEST, why)


def client_metrics_values(own: Mapping[str, str]) -> dict[str, Value]:
    return {
        name: key.parse(own[name]) if name in own else key.default
        for name, key in CLIENT_METRICS_KEYS.items()
    }


# -- levels of loggers (KIP-412)


def check_level(name: str, operation: int, value: str | None) -> None:
    if operation in (SET, DELETE) and name not in logs.levels():
        raise KafkaError(errors.INVALID_CONFIG, f"Logger {name} does not exist!")
    if operation == SET:
        if value not in LEVELS:
            why = (
                f"Cannot set the log level of {name} to {value} as it is not a supported log level."
                f" Valid log levels are {', '.join(LEVELS)}"
            )
            raise KafkaError(errors.INVALID_CONFIG, why)
    elif operation == DELETE:
        if name == logs.ROOT:
            why = f"Removing the log level of the {logs.ROOT} logger is not allowed"
            raise KafkaError(errors.INVALID_REQUEST, why)
    elif operation in (APPEND, SUBTRACT):
        word = "APPEND" if operation == APPEND else "SUBTRACT"
        why = f"{word} operation is not allowed for the BROKER_LOGGER resource"
        raise KafkaError(errors.INVALID_REQUEST, why)
    else:
        raise KafkaError(errors.UNKNOWN_SERVER_ERROR)
