"""A broker without sockets that coordinates groups: requests about offsets, restarts, and the contents of its log."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from pykafkad import messages
from pykafkad.config import TopicConfig
from pykafkad.coordinator.groups import GroupCoordinator
from pykafkad.dispatcher import Dispatcher
from pykafkad.hot import records
from pykafkad.pure.groups.records import decode
from pykafkad.serving import ServingBroker
from pykafkad.workers import submit_inline
from tests.storage_kit import lead
from tests.unit.data_kit import Connection, Desk, Ticket, Topic

OFFSETS = "__consumer_offsets"
COMMIT_VERSION, FETCH_VERSION = 8, 8


class GroupDesk(Desk):
    """With the topics `orders` (3 partitions, known but without logs) and `__consumer_offsets`."""

    def __init__(self, directory: Path, partitions: int = 1, **overrides: str) -> None:
        super().__init__(directory, **overrides)
        self.add("orders", 3)
        self.create(OFFSETS, partitions, cleanup_policy="compact")

    def add(self, name: str, partitions: int) -> None:
        """Add a topic to the metadata alone, since nobody writes to it."""
        topic = Topic(name, name.encode().ljust(16, b"\1")[:16], partitions)
        self.image.topics[name] = self.image.topics_by_id[topic.id] = topic  # type: ignore[assignment]

    def restarted(self, clean: bool = True) -> GroupDesk:
        """The same directory in a new broker."""
        self.group_coordinator.stop()
        self.storage.close(clean=clean)
        return RestartedDesk(self)

    def settle(self) -> None:
        """Run what was put off to later passes, and these passes."""
        while any(timer.due_ms <= self.clock.monotonic_ms() and not timer.cancelled for timer in self.timers):
            self.advance(0)
            self.end_pass()

    def ask_in_turns(self, request: Any, version: int) -> Any:
        """For a request that is answered in slices, behind other work: its answer, when there is one."""
        given = self.send(request, version)
        for _ in range(1_000):
            if isinstance(given, Ticket) and given.parts is None:
                self.advance(0)
        self.end_pass()
        return self.answer_of(given, type(request).__name__, version)

    def commit(
        self, group_id: str, *rows: tuple[Any, ...], topic: str = "orders", **fields: Any
    ) -> list[int]:
        """Commit rows of (partition, offset, [metadata, [leader epoch]]); returns the error codes."""
        answer = self.ask(
            commit_request(group_id, *rows, topic=topic, **fields), fields.pop("version", COMMIT_VERSION)
        )
        return [row.error_code for each in answer.topics for row in each.partitions]

    def committed(self, group_id: str, require_stable: bool = False) -> dict[tuple[str, int], int]:
        """All committed offsets of the group; for a refused partition its negated error code."""
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
        ServingBroker.__init__(self, before.config, before.clock, Dispatcher(self), self, submit_inline)
        self.open_storage()
        known = {
            (name, index): topic.id
            for name, topic in self.image.topics.items()
            for index in range(len(topic.partitions))
            if (name, index) in before.storage.partitions
        }
        assert self.storage.open_all(known, lambda topic: TopicConfig(self.config)) == []
        for partition in self.storage:
            lead(partition, 0)
        self.group_coordinator = GroupCoordinator(
            self.config, self.coordinator_loop, self.replicas, self.image
        )
        self.group_coordinator.start()
        self.transaction_coordinator = self.new_transaction_coordinator()
        self.transaction_coordinator.start()
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
