"""The broker's configs about groups, as the group machines read them.

A setting is one line of GroupSettings: its attribute, the broker's key, and Kafka's default, which is its value before
the first update. Invariant: an attribute always has the value that is in effect, since `update` sets it after a dynamic
change; so nobody keeps a copy.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Protocol, TypeVar

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    class Partition(Protocol):
        @property
        def replicas(self) -> Sequence[int]: ...

    class Broker(Protocol):
        @property
        def rack(self) -> str | None: ...


MINUTE_MS = 60_000

# attribute -> (broker key, Kafka's default), as GroupSettings names them
KEYS: dict[str, tuple[str, Any]] = {}

T = TypeVar("T")


class Setting:
    """Stands in the body of the class for an attribute: its default, and the broker key that says its value."""

    def __init__(self, key: str, default: Any) -> None:
        self.key = key
        self.default = default

    def __set_name__(self, owner: type, attribute: str) -> None:
        KEYS[attribute] = self.key, self.default
        setattr(owner, attribute, self.default)


def setting(key: str, default: T) -> T:
    """Said to be what reading it gives."""
    return Setting(key, default)  # type: ignore[return-value]


class Topic(Protocol):
    """A topic of the image."""

    @property
    def id(self) -> bytes: ...
    @property
    def name(self) -> str: ...
    @property
    def partitions(self) -> Sequence[Partition]: ...


class Topics(Protocol):
    """The image, as far as groups need it. `topic_changes` goes up with every change to any topic."""

    @property
    def topics(self) -> Mapping[str, Topic]: ...
    @property
    def topics_by_id(self) -> Mapping[bytes, Topic]: ...
    @property
    def topic_changes(self) -> int: ...
    @property
    def offset(self) -> int: ...  # the version of the image
    @property
    def brokers(self) -> Mapping[int, Broker]: ...  # by broker id


class NoTopics:
    """An image without topics."""

    def __init__(self) -> None:
        self.topics: dict[str, Topic] = {}
        self.topics_by_id: dict[bytes, Topic] = {}
        self.topic_changes = 0
        self.offset = 0
        self.brokers: dict[int, Broker] = {}


def no_group_config(group_id: str) -> Mapping[str, Any]:
    return {}


class GroupSettings:
    min_session_timeout_ms = setting("group.min.session.timeout.ms", 6_000)
    max_session_timeout_ms = setting("group.max.session.timeout.ms", 1_800_000)
    initial_rebalance_delay_ms = setting("group.initial.rebalance.delay.ms", 3_000)
    max_size = setting("group.max.size", 0x7FFFFFFF)
    consumer_session_timeout_ms = setting("group.consumer.session.timeout.ms", 45_000)
    consumer_min_session_timeout_ms = setting("group.consumer.min.session.timeout.ms", 45_000)
    consumer_max_session_timeout_ms = setting("group.consumer.max.session.timeout.ms", 60_000)
    consumer_heartbeat_interval_ms = setting("group.consumer.heartbeat.interval.ms", 5_000)
    consumer_min_heartbeat_interval_ms = setting("group.consumer.min.heartbeat.interval.ms", 5_000)
    consumer_max_heartbeat_interval_ms = setting("group.consumer.max.heartbeat.interval.ms", 15_000)
    consumer_max_size = setting("group.consumer.max.size", 0x7FFFFFFF)
    consumer_assignors: tuple[str, ...] = setting("group.consumer.assignors", ("uniform", "range"))
    consumer_migration_policy = setting("group.consumer.migration.policy", "bidirectional")
    consumer_assignment_interval_ms = setting("group.consumer.assignment.interval.ms", 1_000)
    consumer_min_assignment_interval_ms = setting("group.consumer.min.assignment.interval.ms", 0)
    consumer_max_assignment_interval_ms = setting("group.consumer.max.assignment.interval.ms", 15_000)
    consumer_regex_refresh_interval_ms = setting("group.consumer.regex.refresh.interval.ms", 600_000)
    offset_metadata_max_bytes = setting("offset.metadata.max.bytes", 4_096)
    offsets_retention_minutes = setting("offsets.retention.minutes", 10_080)

    def __init__(
        self,
        new_id: Callable[[], str],
        topics: Topics | None = None,
        group_config: Callable[[str], Mapping[str, Any]] = no_group_config,
        log: Callable[[str], None] = lambda text: None,
    ) -> None:
        self.new_id = new_id  # makes a random UUID in hexadecimal digits with dashes
        self.new_short_id = new_id  # and one in Kafka's own 22 characters, for members of consumer groups
        self.topics: Topics = topics or NoTopics()
        # The dynamic configs of a group, typed: "consumer.session.timeout.ms" -> 60000.
        self.group_config = group_config
        self.log = log  # logs a line at info level
        self.topic_watch: Any = None  # topic_watch.TopicWatch, once there is a consumer group

    def update(self, value_of: Callable[[str], Any]) -> None:
        """Take all values from the broker's config."""
        for attribute, (key, _) in KEYS.items():
            setattr(self, attribute, value_of(key))
        self.consumer_assignors = tuple(self.consumer_assignors)

    @property
    def offsets_retention_ms(self) -> int:
        return self.offsets_retention_minutes * MINUTE_MS
