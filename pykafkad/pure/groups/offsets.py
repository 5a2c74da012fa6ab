"""Committed offsets of the groups of one partition of `__consumer_offsets`, and those of open transactions.

Invariants: they change only in replay() and end_transaction(), so what is answered is what a restart finds; an offset
that was committed in a transaction counts from the transaction's commit marker on, unless a later commit without a
transaction has replaced it (KIP-98, KIP-447).
"""

from __future__ import annotations

from sys import intern

from pykafkad.messages import OffsetCommitKey

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from pykafkad.messages import OffsetCommitValue
    from pykafkad.pure.effects import Record

NO_PRODUCER = -1


class Offset:
    """A committed offset of a partition."""

    __slots__ = ("commit_ms", "expire_ms", "leader_epoch", "metadata", "offset", "record_offset", "topic_id")

    def __init__(self, value: OffsetCommitValue, record_offset: int) -> None:
        self.offset: int = value.offset
        self.leader_epoch: int = value.leader_epoch
        self.metadata: str = value.metadata
        self.commit_ms: int = value.commit_timestamp
        self.expire_ms: int = value.expire_timestamp
        self.topic_id: bytes = value.topic_id
        self.record_offset = record_offset  # the record's offset in the log


TopicOffsets = dict[str, dict[int, Offset]]


class Table:
    """Offsets by group, topic and partition."""

    __slots__ = ("by_group",)

    def __init__(self) -> None:
        self.by_group: dict[str, TopicOffsets] = {}

    def get(self, group_id: str, topic: str, partition: int) -> Offset | None:
        topics = self.by_group.get(group_id)
        partitions = topics.get(topic) if topics is not None else None
        return partitions.get(partition) if partitions is not None else None

    def put(self, group_id: str, topic: str, partition: int, offset: Offset) -> None:
        topics = self.by_group.get(group_id)
        if topics is None:
            topics = self.by_group[group_id] = {}
        partitions = topics.get(topic)
        if partitions is None:
            partitions = topics[intern(topic)] = {}  # which very many groups may have
        partitions[partition] = offset

    def remove(self, group_id: str, topic: str, partition: int) -> None:
        topics = self.by_group.get(group_id)
        partitions = topics.get(topic) if topics is not None else None
        if topics is None or partitions is None or partitions.pop(partition, None) is None:
            return
        if not partitions:
            del topics[topic]
            if not topics:
                del self.by_group[group_id]

    def partitions_of(self, group_id: str) -> Iterator[tuple[str, int]]:
        for topic, partitions in self.by_group.get(group_id, {}).items():
            for partition in partitions:
                yield topic, partition


class Offsets(Table):
    __slots__ = ("open_transactions", "pending")

    def __init__(self) -> None:
        super().__init__()
        self.pending: dict[int, Table] = {}  # by producer id
        self.open_transactions: dict[str, set[int]] = {}  # group -> producer ids

    def is_pending(self, group_id: str, topic: str, partition: int) -> bool:
        """Whether an open transaction has an offset for the partition."""
        for producer_id in self.open_transactions.get(group_id, ()):
            if self.pending[producer_id].get(group_id, topic, partition) is not None:
                return True
        return False

    def replay(
        self,
        key: OffsetCommitKey,
        value: OffsetCommitValue | None,
        record_offset: int = -1,
        producer_id: int = NO_PRODUCER,
    ) -> None:
        if value is None:
            self._replay_tombstone(key)
        elif producer_id == NO_PRODUCER:
            topics = self.by_group.get(key.group)
            partitions = topics.get(key.topic) if topics is not None else None
            if partitions is not None:
                partitions[key.partition] = Offset(value, record_offset)
            else:
                self.put(key.group, key.topic, key.partition, Offset(value, record_offset))
        else:
            table = self.pending.setdefault(producer_id, Table())
            table.put(key.group, key.topic, key.partition, Offset(value, record_offset))
            self.open_transactions.setdefault(key.group, set()).add(producer_id)

    def _replay_tombstone(self, key: OffsetCommitKey) -> None:
        self.remove(key.group, key.topic, key.partition)
        for producer_id in self.open_transactions.get(key.group, ()):
            self.pending[producer_id].remove(key.group, key.topic, key.partition)

    def end_transaction(self, producer_id: int, committed: bool) -> None:
        """The end marker of a transaction: its offsets count from now on, or are dropped."""
        table = self.pending.pop(producer_id, None)
        if table is None:
            return
        for group_id in [each for each, ids in self.open_transactions.items() if producer_id in ids]:
            producer_ids = self.open_transactions[group_id]
            producer_ids.discard(producer_id)
            if not producer_ids:
                del self.open_transactions[group_id]
        if committed:
            for group_id, topics in table.by_group.items():
                self._merge(group_id, topics)

    def _merge(self, group_id: str, topics: TopicOffsets) -> None:
        """The offset that is later in the log wins: compaction may leave the record of an older transaction behind a
        newer commit."""
        for topic, partitions in topics.items():
            for partition, offset in partitions.items():
                existing = self.get(group_id, topic, partition)
                if existing is None or offset.record_offset > existing.record_offset:
                    self.put(group_id, topic, partition, offset)

    def tombstones(self, group_id: str) -> list[Record]:
        """Tombstones for all offsets of a group."""
        doomed = dict.fromkeys(self.partitions_of(group_id))
        for producer_id in self.open_transactions.get(group_id, ()):
            doomed.update(dict.fromkeys(self.pending[producer_id].partitions_of(group_id)))
        return [tombstone(group_id, topic, partition) for topic, partition in doomed]

    def tables(self) -> list[Table]:
        """The tables of offsets: the committed ones, and those of each open transaction."""
        return [self, *self.pending.values()]


def tombstone(group_id: str, topic: str, partition: int) -> Record:
    return OffsetCommitKey(group=group_id, topic=topic, partition=partition), None
