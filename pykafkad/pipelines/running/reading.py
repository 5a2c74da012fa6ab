"""Topics read for a query: its records in the order of their times, as far as what has arrived lets one say.

Kafka Streams' rule: of the first records of all partitions the oldest is next, once each partition has one or is known to
have no more. `Merging` is that rule; `Reading` fills it from a cluster.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping
from heapq import heappop, heappush

from pykafkad.errors import UNKNOWN_TOPIC_OR_PARTITION, KafkaError
from pykafkad.pipelines.plan.ends import Record
from pykafkad.pipelines.running.broker import Broker
from pykafkad.tools.admin import Partition
from pykafkad.tools.fetching import READ_COMMITTED, Fetcher, FetchSettings

MAX_WAITING = 10_000
"""Records of a partition that wait for those of others; more are not fetched."""


class Merging:
    """`positions` are the offsets behind what was added, `taken` those behind what was given out."""

    def __init__(self, starts: Mapping[Partition, int]) -> None:
        self.positions = dict(starts)
        self.taken = dict(starts)
        self.ends: dict[Partition, int] = {}
        self._stops: dict[Partition, int] = {}
        self._waiting: dict[Partition, deque[Record]] = {partition: deque() for partition in starts}
        self._order = {partition: place for place, partition in enumerate(starts)}
        self._first: list[tuple[int, int, Partition]] = []
        """Of each partition with records the first one's time: a heap."""
        self._awaited: set[Partition] = set()
        """Partitions without a record that are known to have more."""

    def learn(self, ends: Mapping[Partition, int]) -> None:
        """Where the partitions end now."""
        self.ends = dict(ends)
        for partition in self._waiting:
            self._note(partition)

    def stop_at(self, ends: Mapping[Partition, int]) -> None:
        """Of these partitions nothing is given out from these offsets on. To be said before anything was added."""
        self._stops = {partition: end for partition, end in ends.items() if partition in self.positions}

    def add(self, partition: Partition, records: Iterable[Record], next_offset: int) -> None:
        stop = self._stops.get(partition)
        if stop is not None:
            records = [record for record in records if record.offset < stop]
            next_offset = min(next_offset, max(stop, self.positions[partition]))
        waiting = self._waiting[partition]
        had = bool(waiting)
        waiting.extend(records)
        if waiting and not had:
            self._queue(partition)
        self.positions[partition] = next_offset
        self._note(partition)

    def next(self) -> Record | None:
        """None while more has to be read first, or nothing is left."""
        if self._awaited or not self._first:
            return None
        partition = heappop(self._first)[2]
        waiting = self._waiting[partition]
        record = waiting.popleft()
        self.taken[partition] = record.offset + 1
        if waiting:
            self._queue(partition)
        else:
            self._note(partition)
        return record

    def _queue(self, partition: Partition) -> None:
        heappush(self._first, (self._waiting[partition][0].time, self._order[partition], partition))

    def _note(self, partition: Partition) -> None:
        """Where nothing waits, what has no records (markers, gaps) was given out too, and more may be awaited."""
        if self._waiting[partition]:
            self._awaited.discard(partition)
            return
        self.taken[partition] = self.positions[partition]
        if self.positions[partition] < self.ends.get(partition, 0) and not self._is_done(partition):
            self._awaited.add(partition)
        else:
            self._awaited.discard(partition)

    @property
    def has_room(self) -> dict[Partition, int]:
        """Where to read on, of the partitions that may."""
        return {
            partition: self.positions[partition]
            for partition, waiting in self._waiting.items()
            if len(waiting) < MAX_WAITING and not self._is_done(partition)
        }

    def _is_done(self, partition: Partition) -> bool:
        return partition in self._stops and self.positions[partition] >= self._stops[partition]

    def is_behind(self, ends: Mapping[Partition, int]) -> bool:
        return any(
            taken < ends.get(partition, 0) and not (self._is_done(partition) and not self._waiting[partition])
            for partition, taken in self.taken.items()
        )


class Reading:
    def __init__(self, broker: Broker, starts: Mapping[Partition, int]) -> None:
        self._broker = broker
        settings = FetchSettings()
        settings.isolation = READ_COMMITTED
        self._fetcher = Fetcher(broker.cluster, settings)
        self.merging = Merging(starts)

    @property
    def partitions(self) -> list[Partition]:
        return list(self.merging.taken)

    def poll(self) -> bool:
        """Takes what has arrived; whether anything has. Waits for nothing. A topic that is gone is a KafkaError."""
        merging = self.merging
        self._fetcher.assign(merging.has_room)
        self._fetcher.positions.update(merging.has_room)
        self._mend()
        chunks = self._fetcher.poll(0)
        for chunk in chunks:
            topic, index = chunk.partition
            records = [
                Record(topic, one.key, one.value, one.timestamp, tuple(one.headers), index, one.offset)
                for _, one in chunk
            ]
            merging.add(chunk.partition, records, chunk.next_offset)
        gone = self._fetcher.missing & {topic for topic, _ in merging.positions}
        if gone and not chunks:
            raise KafkaError(UNKNOWN_TOPIC_OR_PARTITION, f"there is no topic {', '.join(sorted(gone))}")
        if chunks:
            merging.learn(self._broker.ends(merging.positions))
        return bool(chunks)

    def _mend(self) -> None:
        """Positions that retention has taken go on where the log begins."""
        lost = self._fetcher.lost & set(self.merging.positions)
        if lost:
            for partition, offset in self._broker.begins(lost).items():
                self.merging.add(partition, (), offset)
                self._fetcher.positions[partition] = offset
            self._fetcher.lost.clear()

    def close(self) -> None:
        self._fetcher.close()
