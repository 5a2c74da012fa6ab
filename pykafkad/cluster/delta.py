"""A delta: what records that were applied to the image have changed, for those who act upon it (see publishing).

It names what changed; what that is now, the image says. Only what makes a difference is in it: a topic that was created
and deleted since is in neither list. The first delta of an image comes from nothing: it names everything there is.
Invariant: of a topic in `created` nothing else is noted, since all of it is new.
"""

from __future__ import annotations

from itertools import chain

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from pykafkad.cluster.image import Topic
    from pykafkad.messages import ConfigRecord


class Delta:
    __slots__ = (
        "acls",
        "broker_keys",
        "brokers",
        "client_quotas",
        "configs",
        "created",
        "delegation_tokens",
        "deleted",
        "elected",
        "features",
        "grown",
        "is_whole",
        "scram_users",
    )

    def __init__(self, *, is_whole: bool = False) -> None:
        self.is_whole = is_whole  # from nothing: a start
        self.created: dict[bytes, Topic] = {}  # topics by id
        self.deleted: dict[bytes, Topic] = {}
        self.grown: dict[bytes, int] = {}  # topic id -> the first of its new partitions
        self.elected: dict[bytes, set[int]] = {}  # topic id -> partitions with a new leader epoch
        # (resource type, name) -> the keys that were written: their values, None where they are no longer set
        self.configs: dict[tuple[int, str], dict[str, str | None]] = {}
        self.brokers: set[int] = set()  # registered, changed or gone
        self.features: set[str] = set()
        self.client_quotas: set[tuple[tuple[str, str | None], ...]] = set()  # entities
        self.acls: set[bytes] = set()
        self.scram_users: set[tuple[str, int]] = set()  # names and mechanisms
        self.delegation_tokens: set[str] = set()
        # Keys of this broker's own configuration that have other values: dynamic_config finds out when it is published.
        self.broker_keys: set[str] = set()

    def topic_created(self, topic: Topic) -> None:
        self.created[topic.id] = topic

    def topic_deleted(self, topic: Topic) -> None:
        self.grown.pop(topic.id, None)
        self.elected.pop(topic.id, None)
        if self.created.pop(topic.id, None) is None:
            self.deleted[topic.id] = topic

    def partition_added(self, topic: Topic, index: int) -> None:
        if topic.id not in self.created:
            self.grown.setdefault(topic.id, index)

    def leader_elected(self, topic: Topic, index: int) -> None:
        if topic.id not in self.created and index < self.grown.get(topic.id, index + 1):
            self.elected.setdefault(topic.id, set()).add(index)

    def config_written(self, record: ConfigRecord, topic: Topic | None) -> None:
        """`topic`: whose config it is, where it is a topic's."""
        if topic is None or topic.id not in self.created:
            resource = (record.resource_type, record.resource_name)
            self.configs.setdefault(resource, {})[record.name] = record.value

    def leaders_of(self, topic: Topic) -> Iterator[int]:
        """The partitions of a topic that are new, or have a new leader epoch."""
        count = len(topic.partitions)
        if topic.id in self.created:
            return iter(range(count))
        return chain(sorted(self.elected.get(topic.id, ())), range(self.grown.get(topic.id, count), count))

    @property
    def is_empty(self) -> bool:
        """Nothing has changed that anybody acts upon."""
        topics = self.created or self.deleted or self.grown or self.elected
        others = self.client_quotas or self.acls or self.scram_users or self.delegation_tokens
        return not (self.is_whole or topics or self.configs or self.brokers or self.features or others)

    @property
    def only_adds(self) -> bool:
        """There are new partitions, and nothing else has changed."""
        changed = self.deleted or self.elected or self.configs or self.brokers or self.features
        others = self.client_quotas or self.acls or self.scram_users or self.delegation_tokens
        return bool(self.created or self.grown) and not (self.is_whole or changed or others)
