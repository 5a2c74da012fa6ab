"""Clients' telemetry (KIP-714): who is subscribed to what, when a client may ask and push, what is refused.

Owns the subscriptions (CLIENT_METRICS resources) and what is remembered of each client instance. No clock, no
randomness: times are given. Invariants: at most INSTANCES_MAX instances are remembered, the one heard of longest ago is
forgotten first; an instance's subscription id changes when what it is subscribed to does. Kafka without a receiver
plugin takes what is pushed and hands it to nobody; so do we, after counting it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pykafkad import errors
from pykafkad.errors import KafkaError
from pykafkad.pure import java

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Mapping, Sequence
    from re import Pattern

INSTANCES_MAX = 16_384
DEFAULT_INTERVAL_MS = 300_000
SHORTEST_MEMORY_MS = 60_000
INTERVALS_REMEMBERED = 3
COMPRESSIONS = (4, 3, 1, 2)  # zstd, lz4, gzip, snappy: as Kafka offers them
KNOWN_COMPRESSIONS = range(5)
ALL_METRICS = "*"
NO_ID = bytes(16)
RESERVED_IDS = (NO_ID, bytes(15) + b"\x01")

CLIENT_INSTANCE_ID = "client_instance_id"
ATTRIBUTES = frozenset({
    CLIENT_INSTANCE_ID, "client_id", "client_software_name", "client_software_version", "client_source_address",
    "client_source_port",
})  # fmt: skip


class MatchError(ValueError):
    """Not a list of ATTRIBUTE=REGULAR EXPRESSION; str() is Kafka's text."""


class Match:
    """Which clients a subscription is for: those whose attributes match all of its patterns, whole."""

    __slots__ = ("patterns",)

    def __init__(self, texts: Sequence[str]) -> None:
        self.patterns: dict[str, Pattern[str]] = {}
        for text in texts:
            attribute, pattern = self._parse(text)
            self.patterns[attribute] = pattern

    @staticmethod
    def _parse(text: str) -> tuple[str, Pattern[str]]:
        import re  # few brokers have a subscription

        parts = text.split("=")
        while len(parts) > 1 and not parts[-1]:  # Java's split drops empty ends
            parts.pop()
        try:
            attribute, pattern = (part.strip() for part in parts)
            if attribute not in ATTRIBUTES:
                raise ValueError(attribute)
            return attribute, re.compile(pattern)
        except (ValueError, re.error, OverflowError, RecursionError):
            raise MatchError(f"Illegal client matching pattern: {text}") from None

    def takes(self, attributes: Mapping[str, str | None]) -> bool:
        for name, pattern in self.patterns.items():
            value = attributes.get(name)
            if value is None or pattern.fullmatch(value) is None:
                return False
        return True


class Subscription:
    __slots__ = ("interval_ms", "match", "metrics")

    def __init__(self, metrics: Sequence[str], interval_ms: int, match: Match) -> None:
        self.metrics = tuple(metrics)
        self.interval_ms = interval_ms
        self.match = match


class Instance:
    """A client instance: what it is subscribed to, and when it was heard of last."""

    __slots__ = (
        "attributes",
        "connection",
        "expires_ms",
        "interval_ms",
        "is_terminating",
        "last_get_ms",
        "last_push_ms",
        "metrics",
        "subscription_id",
        "version",
    )

    def __init__(self, attributes: Mapping[str, str | None], connection: Hashable) -> None:
        self.attributes = attributes
        self.connection = connection
        self.metrics: list[str] = []
        self.interval_ms = DEFAULT_INTERVAL_MS
        self.subscription_id = 0
        self.version = -1
        self.last_get_ms = self.last_push_ms = 0
        self.is_terminating = False
        self.expires_ms = 0


class Telemetry:
    """`checksum` is CRC-32C."""

    def __init__(self, max_bytes: int, checksum: Callable[[bytes], int]) -> None:
        self.max_bytes = max_bytes
        self.subscriptions: dict[str, Subscription] = {}
        self.instances: dict[bytes, Instance] = {}  # the one heard of longest ago first
        self.pushes = 0
        self.pushed_bytes = 0
        self._of_connection: dict[Hashable, bytes] = {}
        self._checksum = checksum
        self._version = 0

    # -- subscriptions

    def subscribe(self, name: str, subscription: Subscription | None) -> None:
        """A subscription is new, other than before, or (None) gone."""
        if subscription is not None:
            self.subscriptions[name] = subscription
        elif self.subscriptions.pop(name, None) is None:
            return
        self._version += 1

    # -- requests

    def get(
        self,
        instance_id: bytes,
        attributes: Callable[[bytes], Mapping[str, str | None]],
        connection: Hashable,
        now_ms: int,
    ) -> Instance:
        """What a client is subscribed to; KafkaError where it asks too soon."""
        instance = self._instance(instance_id, attributes, connection, now_ms)
        since_ms = now_ms - max(instance.last_get_ms, instance.last_push_ms)
        if since_ms < instance.interval_ms:
            raise KafkaError(errors.THROTTLING_QUOTA_EXCEEDED)
        instance.last_get_ms = now_ms
        return instance

    def push(
        self,
        instance_id: bytes,
        attributes: Callable[[bytes], Mapping[str, str | None]],
        connection: Hashable,
        now_ms: int,
        *,
        subscription_id: int,
        is_terminating: bool,
        compression: int,
        size: int,
    ) -> None:
        """A client's metrics; KafkaError says why they are not taken."""
        if instance_id in RESERVED_IDS:
            raise KafkaError(errors.INVALID_REQUEST)
        instance = self._instance(instance_id, attributes, connection, now_ms)
        try:
            self._check_push(instance, now_ms, subscription_id, is_terminating, compression, size)
        finally:
            instance.is_terminating = is_terminating

    def count(self, size: int) -> None:
        """Metrics of that size were taken."""
        self.pushes += 1
        self.pushed_bytes += size

    def _check_push(
        self,
        instance: Instance,
        now_ms: int,
        subscription_id: int,
        is_terminating: bool,
        compression: int,
        size: int,
    ) -> None:
        if instance.is_terminating:
            raise KafkaError(errors.INVALID_REQUEST)
        # A push right after the question may come early: clients vary the first interval.
        after_question = instance.last_get_ms > instance.last_push_ms
        if after_question or now_ms - instance.last_push_ms >= instance.interval_ms:
            instance.last_push_ms = now_ms
        elif not is_terminating:
            raise KafkaError(errors.THROTTLING_QUOTA_EXCEEDED)
        if subscription_id != instance.subscription_id:
            raise KafkaError(errors.UNKNOWN_SUBSCRIPTION_ID)
        if compression not in KNOWN_COMPRESSIONS:
            raise KafkaError(errors.UNSUPPORTED_COMPRESSION_TYPE)
        if size > self.max_bytes:
            raise KafkaError(errors.TELEMETRY_TOO_LARGE)

    def disconnected(self, connection: Hashable) -> None:
        """The client is gone, and what was known of it too."""
        instance_id = self._of_connection.pop(connection, None)
        if instance_id is not None:
            self.instances.pop(instance_id, None)

    # -- instances

    def _instance(
        self,
        instance_id: bytes,
        attributes: Callable[[bytes], Mapping[str, str | None]],
        connection: Hashable,
        now_ms: int,
    ) -> Instance:
        self._forget_silent(now_ms)
        instance = self.instances.pop(instance_id, None)
        if instance is None:
            instance = Instance(attributes(instance_id), connection)
        if instance.version < self._version:
            # As new: the client may ask at once for what it is subscribed to now.
            instance = Instance(instance.attributes, connection)
            self._evaluate(instance, instance_id)
            self._of_connection[connection] = instance_id
        self.instances[instance_id] = instance
        instance.expires_ms = now_ms + max(SHORTEST_MEMORY_MS, instance.interval_ms * INTERVALS_REMEMBERED)
        if len(self.instances) > INSTANCES_MAX:
            self._forget(next(iter(self.instances)))
        return instance

    def _evaluate(self, instance: Instance, instance_id: bytes) -> None:
        metrics: list[str] = []
        for subscription in self.subscriptions.values():
            if subscription.match.takes(instance.attributes):
                metrics += subscription.metrics
                instance.interval_ms = min(instance.interval_ms, subscription.interval_ms)
        instance.metrics = [ALL_METRICS] if ALL_METRICS in metrics else java.set_order(metrics)
        said = f"[{', '.join(instance.metrics)}]{instance.interval_ms}".encode()
        instance.subscription_id = java.as_int(self._checksum(said) ^ java.uuid_hash_code(instance_id))
        instance.version = self._version

    def _forget_silent(self, now_ms: int) -> None:
        while self.instances:
            instance_id = next(iter(self.instances))
            if self.instances[instance_id].expires_ms > now_ms:
                return
            self._forget(instance_id)

    def _forget(self, instance_id: bytes) -> None:
        connection = self.instances.pop(instance_id).connection
        if self._of_connection.get(connection) == instance_id:
            del self._of_connection[connection]
