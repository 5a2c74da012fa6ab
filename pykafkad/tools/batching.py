"""Records before they are sent: the choice of their partitions, and the batches that they fill.

Owns what Kafka's producer does before it sends: keys go to partitions by murmur2, records without a key stay with one
partition until a batch's worth was sent there (KIP-480, KIP-794), a batch is ready when it is full or old enough.
"""

from __future__ import annotations

from random import randrange

from pykafkad.hot import records
from pykafkad.hot.records import murmur2

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from typing import TypeAlias

    from pykafkad.hot.records import Columns, Headers

    # called for each record, with its error or None
    Done = Callable[[Exception | None], object]

Row: TypeAlias = "tuple[bytes | None, bytes | None, Headers, int]"
"""A record's key, value, headers and time."""

BATCH_OVERHEAD = 61
RECORD_OVERHEAD = 21  # the largest, without headers: lengths, deltas and counts as varints
HEADER_OVERHEAD = 10


def partition_of_key(key: bytes, partition_count: int) -> int:
    return (murmur2(key) & 0x7FFFFFFF) % partition_count


class Sticky:
    """Chooses the partition for records without a key: another one after every `batch_bytes`."""

    __slots__ = ("_batch_bytes", "_bytes", "_partition")

    def __init__(self, batch_bytes: int) -> None:
        self._batch_bytes = batch_bytes
        self._partition = -1
        self._bytes = 0

    def choose(self, available: Sequence[int], size: int) -> int:
        if self._partition < 0 or self._bytes >= self._batch_bytes or self._partition not in available:
            self._partition = available[randrange(len(available))]
            self._bytes = 0
        self._bytes += size
        return self._partition


class Batch:
    """Records of one partition that are sent together. `sequence` is -1 until the batch is first sent."""

    __slots__ = ("attempts", "created", "deadline", "done", "partition", "rows", "sequence", "size", "topic")

    def __init__(self, topic: str, partition: int, now: float, delivery_timeout_s: float) -> None:
        self.topic = topic
        self.partition = partition
        self.rows: list[Row] = []
        self.done: list[Done | None] = []
        self.size = BATCH_OVERHEAD
        self.created = now
        self.deadline = now + delivery_timeout_s
        self.attempts = 0
        self.sequence = -1

    def add(self, row: Row, size: int, done: Done | None) -> None:
        self.rows.append(row)
        self.done.append(done)
        self.size += size

    @property
    def count(self) -> int:
        return len(self.rows)

    def halves(self) -> Sequence[Batch]:
        """The same records in two batches, which have not been sent yet."""
        middle = len(self.rows) // 2
        found = []
        for part in (slice(0, middle), slice(middle, None)):
            half = Batch(self.topic, self.partition, self.created, 0)
            half.deadline = self.deadline
            half.rows, half.done = self.rows[part], self.done[part]
            half.size += sum(size_of(key, value, headers) for key, value, headers, _ in half.rows)
            found.append(half)
        return found

    def encode(
        self, codec: str, level: int | None, producer_id: int, epoch: int, transactional: bool
    ) -> bytes:
        return records.build(
            self.rows,
            codec=codec,
            level=level,
            producer_id=producer_id,
            producer_epoch=epoch,
            base_sequence=self.sequence,
            transactional=transactional,
        )

    def finish(self, problem: Exception | None) -> None:
        for done in self.done:
            if done is not None:
                done(problem)


class ColumnBatch(Batch):
    """Some of the records of columns. `done` is called once for all of them."""

    __slots__ = ("columns", "indexes")

    def __init__(
        self,
        topic: str,
        partition: int,
        now: float,
        delivery_timeout_s: float,
        columns: Columns,
        indexes: memoryview[int],
        done: Done,
    ) -> None:
        super().__init__(topic, partition, now, delivery_timeout_s)
        self.columns, self.indexes = columns, indexes
        self.size += size_of_rows(columns, indexes)
        self.done.append(done)

    @property
    def count(self) -> int:
        return len(self.indexes)

    def halves(self) -> list[ColumnBatch]:
        (done,) = self.done
        assert done is not None
        found = []
        for indexes in halves(self.indexes):
            half = ColumnBatch(self.topic, self.partition, self.created, 0, self.columns, indexes, done)
            half.deadline = self.deadline
            found.append(half)
        return found

    def encode(
        self, codec: str, level: int | None, producer_id: int, epoch: int, transactional: bool
    ) -> bytes:
        return self.columns.build(
            self.indexes,
            codec=codec,
            level=level,
            producer_id=producer_id,
            producer_epoch=epoch,
            base_sequence=self.sequence,
            transactional=transactional,
        )


def halves(indexes: memoryview[int]) -> tuple[memoryview[int], memoryview[int]]:
    middle = len(indexes) // 2
    return indexes[:middle], indexes[middle:]


def pieces(columns: Columns, indexes: memoryview[int], limit: int) -> Iterator[memoryview[int]]:
    """The indexes in so many parts that each is a batch of at most so many bytes, or one record."""
    if len(indexes) == 1 or BATCH_OVERHEAD + size_of_rows(columns, indexes) <= limit:
        yield indexes
        return
    for half in halves(indexes):
        yield from pieces(columns, half, limit)


def size_of_rows(columns: Columns, indexes: memoryview[int]) -> int:
    return columns.bytes_of(indexes) + RECORD_OVERHEAD * len(indexes)


def size_of(key: bytes | None, value: bytes | None, headers: Headers) -> int:
    """An upper bound of the bytes of a record in a batch."""
    size = RECORD_OVERHEAD + (len(key) if key else 0) + (len(value) if value else 0)
    for name, content in headers:
        size += HEADER_OVERHEAD + len(name.encode()) + (len(content) if content else 0)
    return size
