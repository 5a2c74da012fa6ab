"""A broker without sockets that coordinates groups: requests about offsets, restarts, and what lies in its log."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from data_kit import Connection, Desk, Topic

from pykafkad import messages
from pykafkad.config import TopicConfig
from pykafkad.coordinator.groups import GroupCoordinator
from pykafkad.dispatcher import Dispatcher
from pykafkad.hot import records
from pykafkad.pure.groups.records import decode
from pykafkad.storage.manager import LogManager
from pykafkad.waiting import Waiting

OFFSETS = "__consumer_offsets"
COMMIT_VERSION, FETCH_VERSION = 8, 8


class GroupDesk(Desk):
    """With the topics `orders` (3 partitions, known but without logs) and `__consumer_offsets`."""

    def __init__(self, directory: Path, partitions: int = 1, **overrides: str) -> None:
        super().__init__(directory, **overrides)
        self.add("orders", 3)
        self.create(OFFSETS, partitions, cleanup_policy="compact")

    def add(self, name: str, partitions: int) -> None:
        """A topic that is in the metadata only: nobody writes to it."""
        topic = Topic(name, name.encode().ljust(16, b"\1")[:16], partitions)
        self.image.topics[name] = self.image.topics_by_id[topic.id] = topic  # type: ignore[assignment, index]

    def restarted(self, clean: bool = True) -> GroupDesk:
        """The same directory in a new broker."""
        self.groups.stop()
        self.storage.close(clean=clean)
        return RestartedDesk(self)

    def settle(self) -> None:
        """Run what was put off to later passes, and the passes."""
        while any(timer.due_ms <= self.clock.monotonic_ms() and not timer.cancelled for timer in self.timers):
            self.advance(0)
            self.end_pass()

    def commit(
        self, group_id: str, *rows: tuple[Any, ...], topic: str = "orders", **fields: Any
    ) -> list[int]:
        """Rows of (partition, offset, [metadata, [leader epoch]]); the error codes."""
        answer = self.ask(
            commit_request(group_id, *rows, topic=topic, **fields), fields.pop("version", COMMIT_VERSION)
        )
        return [row.error_code for each in answer.topics for row in each.partitions]

    def committed(self, group_id: str, require_stable: bool = False) -> dict[tuple[str, int], int]:
        """All the group has committed; of what is refused, the error code below zero."""
        kind = messages.OffsetFetchRequest
        request = kind(
            groups=[kind.OffsetFetchRequestGroup(group_id=group_id, topics=None)],
            require_stable=require_stable,
        )
        answer = self.ask(request, FETCH_VERSION).groups[0]
        assert answer.error_code == 0, answer
        return {
            (topic.name, row.partition_index): -row.error_code if row.error_code else row.committed_offset
            for topic in answer.topics
            for row in topic.partitions
        }

    def listed(self) -> dict[str, str]:
        """Groups and their states."""
        answer = self.ask(messages.ListGroupsRequest(), 5)
        assert answer.error_code == 0, answer
        return {group.group_id: group.group_state for group in answer.groups}

    def log(self, index: int = 0) -> list[tuple[Any, Any]]:
        """The records of a partition of `__consumer_offsets`."""
        partition = self.storage.partitions[OFFSETS, index]
        found = partition.read(0, 1 << 30, limit_offset=partition.high_watermark, at_least_one=True)
        return [decode(row.key, row.value) for row in records.read(found.read())] if found else []


class RestartedDesk(GroupDesk):
    def __init__(self, before: GroupDesk) -> None:
        self.__dict__.update(before.__dict__)
        self.timers = []
        self.waiting = Waiting(self.call_later)
        self.appends = []
        self.storage = LogManager(self.config, self.clock)
        known = {
            (name, index): topic.id
            for name, topic in self.image.topics.items()
            for index in range(len(topic.partitions))
            if (name, index) in before.storage.partitions
        }
        assert self.storage.open_all(known, lambda topic: TopicConfig(self.config)) == []
        for partition in self.storage:
            partition.become_leader(0)
        self.storage.on_advance = self.waiting.advanced
        self.groups = GroupCoordinator(
            self.config,
            self.clock,
            self.storage,
            self.image,
            self.call_later,
            self.call_soon,
            self.storage.submit,
        )
        self.groups.start()
        self.dispatcher = Dispatcher(self)
        self.connection = Connection()


def commit_request(group_id: str, *rows: tuple[Any, ...], topic: str = "orders", **fields: Any) -> Any:
    kind = messages.OffsetCommitRequest

    def partition(index: int, offset: int, metadata: str | None = "", leader_epoch: int = -1) -> Any:
        return kind.OffsetCommitRequestPartition(
            partition_index=index,
            committed_offset=offset,
            committed_metadata=metadata,
            committed_leader_epoch=leader_epoch,
        )

    topics = [kind.OffsetCommitRequestTopic(name=topic, partitions=[partition(*row) for row in rows])]
    fields.pop("version", None)
    return kind(group_id=group_id, topics=topics, **fields)
