"""What the broker's configuration says about groups, as the machines read it.

Owns the table of the keys. Invariant: an attribute always has the value that holds now; a dynamic change of the
configuration sets it (`update`), so nobody keeps a copy. Without an update the values are Kafka's defaults.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Protocol

MINUTE_MS = 60_000

# attribute -> (broker key, Kafka's default)
KEYS: dict[str, tuple[str, Any]] = {
    "min_session_timeout_ms": ("group.min.session.timeout.ms", 6_000),
    "max_session_timeout_ms": ("group.max.session.timeout.ms", 1_800_000),
    "initial_rebalance_delay_ms": ("group.initial.rebalance.delay.ms", 3_000),
    "max_size": ("group.max.size", 0x7FFFFFFF),
    "consumer_session_timeout_ms": ("group.consumer.session.timeout.ms", 45_000),
    "consumer_min_session_timeout_ms": ("group.consumer.min.session.timeout.ms", 45_000),
    "consumer_max_session_timeout_ms": ("group.consumer.max.session.timeout.ms", 60_000),
    "consumer_heartbeat_interval_ms": ("group.consumer.heartbeat.interval.ms", 5_000),
    "consumer_min_heartbeat_interval_ms": ("group.consumer.min.heartbeat.interval.ms", 5_000),
    "consumer_max_heartbeat_interval_ms": ("group.consumer.max.heartbeat.interval.ms", 15_000),
    "consumer_max_size": ("group.consumer.max.size", 0x7FFFFFFF),
    "consumer_assignors": ("group.consumer.assignors", ("uniform", "range")),
    "consumer_migration_policy": ("group.consumer.migration.policy", "bidirectional"),
    "consumer_assignment_interval_ms": ("group.consumer.assignment.interval.ms", 1_000),
    "consumer_min_assignment_interval_ms": ("group.consumer.min.assignment.interval.ms", 0),
    "consumer_max_assignment_interval_ms": ("group.consumer.max.assignment.interval.ms", 15_000),
    "consumer_regex_refresh_interval_ms": ("group.consumer.regex.refresh.interval.ms", 600_000),
    "offset_metadata_max_bytes": ("offset.metadata.max.bytes", 4_096),
    "offsets_retention_minutes": ("offsets.retention.minutes", 10_080),
}


class Topic(Protocol):
    """A topic of the image."""

    @property
    def id(self) -> bytes: ...
    @property
    def name(self) -> str: ...
    @property
    def partitions(self) -> list[Any]: ...


class Topics(Protocol):
    """The image, as far as groups look at it. `topic_changes` goes up with every change to any topic."""

    @property
    def topics(self) -> Mapping[str, Topic]: ...
    @property
    def topics_by_id(self) -> Mapping[bytes, Topic]: ...
    @property
    def topic_changes(self) -> int: ...
    @property
    def offset(self) -> int: ...  # the version of the image
    @property
    def brokers(self) -> Mapping[int, Any]: ...  # by id; they have a `rack`


class NoTopics:
    """An image without topics."""

    def __init__(self) -> None:
        self.topics: dict[str, Topic] = {}
        self.topics_by_id: dict[bytes, Topic] = {}
        self.topic_changes = 0
        self.offset = 0
        self.brokers: dict[int, Any] = {}


def no_group_config(group_id: str) -> Mapping[str, Any]:
    return {}


class GroupSettings:
    min_session_timeout_ms: int
    max_session_timeout_ms: int
    initial_rebalance_delay_ms: int
    max_size: int
    consumer_session_timeout_ms: int
    consumer_min_session_timeout_ms: int
    consumer_max_session_timeout_ms: int
    consumer_heartbeat_interval_ms: int
    consumer_min_heartbeat_interval_ms: int
    consumer_max_heartbeat_interval_ms: int
    consumer_max_size: int
    consumer_assignors: tuple[str, ...]
    consumer_migration_policy: str
    consumer_assignment_interval_ms: int
    consumer_min_assignment_interval_ms: int
    consumer_max_assignment_interval_ms: int
    consumer_regex_refresh_interval_ms: int
    offset_metadata_max_bytes: int
    offsets_retention_minutes: int

    def __init__(
        self,
        new_id: Callable[[], str],
        topics: Topics | None = None,
        group_config: Callable[[str], Mapping[str, Any]] = no_group_config,
        log: Callable[[str], None] = lambda text: None,
    ) -> None:
        self.new_id = new_id  # a random UUID as text, in hexadecimal with dashes
        self.new_short_id = new_id  # and in Kafka's own 22 characters, as members of consumer groups have it
        self.topics: Topics = topics or NoTopics()
        # Dynamic configs of a group that are set for it: "consumer.session.timeout.ms" -> 60000, typed.
        self.group_config = group_config
        self.log = log  # a line at info level
        self.topic_watch: Any = None  # topic_watch.TopicWatch, once there is a consumer group
        for attribute, (_, default) in KEYS.items():
            setattr(self, attribute, default)

    def update(self, value_of: Callable[[str], Any]) -> None:
        """Take every value from the configuration."""
        for attribute, (key, _) in KEYS.items():
            setattr(self, attribute, value_of(key))
        self.consumer_assignors = tuple(self.consumer_assignors)

    @property
    def offsets_retention_ms(self) -> int:
        return self.offsets_retention_minutes * MINUTE_MS
