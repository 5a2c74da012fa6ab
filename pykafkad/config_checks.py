"""Relations that config keys must have to each other: Kafka's checks across keys, with its messages.

Owns the rules that a single value cannot break. Those of a broker are checked at start on the parsed values, those of a
topic whenever its configs are set. Values that are wrong by themselves were found by config_def before.
"""

from __future__ import annotations

from pykafkad.config_def import ConfigError, show

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from pykafkad.config_def import Value

# (key, "<=" or ">=", other key) in Kafka's order; the message is "key must be less than or equal to other"
_GROUP_ORDER = (
    *(
        (f"group.{kind}.{left}", relation, f"group.{kind}.{right}")
        for kind in ("consumer", "share", "streams")
        for left, relation, right in (
            ("max.heartbeat.interval.ms", ">=", "min.heartbeat.interval.ms"),
            ("heartbeat.interval.ms", ">=", "min.heartbeat.interval.ms"),
            ("heartbeat.interval.ms", "<=", "max.heartbeat.interval.ms"),
            ("max.session.timeout.ms", ">=", "min.session.timeout.ms"),
            ("session.timeout.ms", ">=", "min.session.timeout.ms"),
            ("session.timeout.ms", "<=", "max.session.timeout.ms"),
            ("max.assignment.interval.ms", ">=", "min.assignment.interval.ms"),
            ("assignment.interval.ms", ">=", "min.assignment.interval.ms"),
            ("assignment.interval.ms", "<=", "max.assignment.interval.ms"),
        )
    ),
    ("group.streams.num.standby.replicas", "<=", "group.streams.max.standby.replicas"),
    ("group.share.record.lock.duration.ms", ">=", "group.share.min.record.lock.duration.ms"),
    ("group.share.max.record.lock.duration.ms", ">=", "group.share.record.lock.duration.ms"),
    ("group.share.partition.max.record.locks", ">=", "group.share.min.partition.max.record.locks"),
    ("group.share.max.partition.max.record.locks", ">=", "group.share.partition.max.record.locks"),
    ("group.share.delivery.count.limit", ">=", "group.share.min.delivery.count.limit"),
    ("group.share.max.delivery.count.limit", ">=", "group.share.delivery.count.limit"),
    ("group.share.max.share.sessions", ">=", "group.share.max.size"),
)
_SAID = {"<=": "less than or equal to", ">=": "greater than or equal to"}

_COMPRESSION_CODECS = ("offsets.topic.compression.codec", "share.coordinator.state.topic.compression.codec")


# There are no others here: custom ones are Java classes.
_ASSIGNORS = (
    "uniform",
    "range",
    "org.apache.kafka.coordinator.group.assignor.UniformAssignor",
    "org.apache.kafka.coordinator.group.assignor.RangeAssignor",
)


def _refuse(values: Mapping[str, Value], key: str, message: str, allowed: str) -> ConfigError:
    return ConfigError(key, show(values[key]), message, allowed)


def _require(values: Mapping[str, Value], key: str, message: str, allowed: str) -> ConfigError:
    """For rules that Kafka's code asserts; the message is the one that clients see."""
    return ConfigError(key, show(values[key]), message, allowed, f"requirement failed: {message}")


def check_broker(values: Mapping[str, Value]) -> None:
    """Check everything but the listeners and the quorum; ConfigError for the first rule that is broken."""
    _check_log(values)
    _check_replica(values)
    _check_network(values)
    for key in _COMPRESSION_CODECS:
        if values[key] not in range(5):
            raise _refuse(values, key, f"Unknown compression type id: {values[key]}", "0 to 4")
    for key, relation, other in _GROUP_ORDER:
        left, right = _number(values, key), _number(values, other)
        if left > right if relation == "<=" else left < right:
            message = f"{key} must be {_SAID[relation]} {other}"
            raise _refuse(values, key, message, f"{relation} {right}")
    for name in values["group.consumer.assignors"]:  # type: ignore[union-attr]
        if name not in _ASSIGNORS:
            message = f"Class {name} cannot be found"
            raise _refuse(values, "group.consumer.assignors", message, "uniform, range")
    protocols = values["group.coordinator.rebalance.protocols"]
    if "classic" not in protocols:  # type: ignore[operator]
        message = "Disabling the 'classic' protocol is not supported."
        raise _refuse(values, "group.coordinator.rebalance.protocols", message, "a list with classic in it")


def _number(values: Mapping[str, Value], key: str) -> float:
    value = values[key]
    assert isinstance(value, int | float)
    return value


def _check_log(values: Mapping[str, Value]) -> None:
    roll_ms, jitter_ms = values["log.roll.ms"], values["log.roll.jitter.ms"]
    if isinstance(roll_ms, int) and roll_ms < 1:
        raise _require(values, "log.roll.ms", "log.roll.ms must be greater than or equal to 1", "1 or more")
    if isinstance(jitter_ms, int) and jitter_ms < 0:
        message = "log.roll.jitter.ms must be greater than or equal to 0"
        raise _require(values, "log.roll.jitter.ms", message, "0 or more")
    for key in ("log.retention.ms", "log.retention.minutes", "log.retention.hours"):
        if values[key] is not None:
            if values[key] == 0:
                message = "log.retention.ms must be unlimited (-1) or, greater than or equal to 1"
                raise _require(values, key, message, "-1, or 1 or more")
            break
    threads = _number(values, "log.cleaner.threads")
    if not threads:
        raise ConfigError("log.cleaner.threads", 0, "/ by zero", "1 or more")
    if _number(values, "log.cleaner.dedupe.buffer.size") // threads <= 1 << 20:
        message = "log.cleaner.dedupe.buffer.size must be at least 1MB per cleaner thread."
        raise _require(values, "log.cleaner.dedupe.buffer.size", message, "more than 1048576 for each thread")


def _check_replica(values: Mapping[str, Value]) -> None:
    wait_ms = _number(values, "replica.fetch.wait.max.ms")
    if wait_ms > _number(values, "replica.socket.timeout.ms"):
        message = (
            "replica.socket.timeout.ms should always be at least replica.fetch.wait.max.ms"
            " to prevent unnecessary socket timeouts"
        )
        raise _require(values, "replica.socket.timeout.ms", message, f"{wait_ms} or more")
    if wait_ms > _number(values, "replica.lag.time.max.ms"):
        message = (
            "replica.fetch.wait.max.ms should always be less than or equal to replica.lag.time.max.ms"
            " to prevent frequent changes in ISR"
        )
        raise _require(values, "replica.lag.time.max.ms", message, f"{wait_ms} or more")


def _check_network(values: Mapping[str, Value]) -> None:
    if values["max.connections.per.ip"] == 0 and not values["max.connections.per.ip.overrides"]:
        message = (
            "max.connections.per.ip can be set to zero only if max.connections.per.ip.overrides"
            " property is set."
        )
        raise _require(values, "max.connections.per.ip", message, "1 or more")
    queued = _number(values, "queued.max.request.bytes")
    if 0 < queued < _number(values, "socket.request.max.bytes"):
        message = "queued.max.request.bytes must be larger or equal to socket.request.max.bytes"
        raise _require(values, "queued.max.request.bytes", message, "-1, or socket.request.max.bytes or more")
    idle_ms, delay_ms = values["connections.max.idle.ms"], values["connection.failed.authentication.delay.ms"]
    if isinstance(idle_ms, int) and isinstance(delay_ms, int) and 0 <= idle_ms <= delay_ms:
        message = (
            f"connection.failed.authentication.delay.ms={delay_ms} should always be less than"
            f" connections.max.idle.ms={idle_ms} to prevent failed authentication responses from timing out"
        )
        raise _require(
            values, "connections.max.idle.ms", message, f"more than {delay_ms}, or 0 or less for never"
        )


def check_topic(values: Mapping[str, Value], *, remote_system: bool) -> None:
    """The rules across a topic's keys, on its effective values (defaults resolved)."""
    least, most = values["min.compaction.lag.ms"], values["max.compaction.lag.ms"]
    assert isinstance(least, int) and isinstance(most, int)
    if least > most:
        message = (
            f"conflict topic config setting min.compaction.lag.ms ({least}) > max.compaction.lag.ms ({most})"
        )
        raise _refuse(values, "min.compaction.lag.ms", message, f"{most} or less")
    if values["remote.storage.enable"]:
        _check_remote(values, remote_system=remote_system)


def _check_remote(values: Mapping[str, Value], *, remote_system: bool) -> None:
    if not remote_system:
        message = (
            "Tiered Storage functionality is disabled in the broker."
            " Topic cannot be configured with remote log storage."
        )
        raise _refuse(values, "remote.storage.enable", message, "false")
    policy = values["cleanup.policy"]
    if policy not in ([], ["delete"]):
        message = (
            "Remote log storage only supports topics with cleanup.policy=delete"
            " or cleanup.policy being an empty list."
        )
        raise _refuse(values, "cleanup.policy", message, "delete, or nothing")
    for unit in ("bytes", "ms"):
        _check_local_retention(values, f"local.retention.{unit}", f"retention.{unit}")
    if values["remote.log.copy.disable"]:
        for unit in ("bytes", "ms"):
            _check_copy_disabled(values, f"local.retention.{unit}", f"retention.{unit}")


def _check_local_retention(values: Mapping[str, Value], local_key: str, key: str) -> None:
    local, whole = values[local_key], values[key]
    assert isinstance(local, int) and isinstance(whole, int)
    if whole == -1:  # unlimited
        return
    if local == -1:
        why = f"Value must not be -1 as {key} value is set as {whole}."
    elif local > whole:
        why = f"Value must not be more than {key} property value: {whole}"
    else:
        return
    message = f"Invalid value {local} for configuration {local_key}: {why}"
    raise _refuse(values, local_key, message, f"-2, or {whole} or less")


def _check_copy_disabled(values: Mapping[str, Value], local_key: str, key: str) -> None:
    if values[local_key] not in (-2, values[key]):
        message = (
            f"When `remote.log.copy.disable` is set to true, the `{local_key}` and `{key}` must be set to the"
            " identical value because there will be no more logs copied to the remote storage."
        )
        raise _refuse(values, local_key, message, f"-2, or {values[key]}")
