"""Fetching from the partitions' leaders: one request per leader is in flight while the last answer is processed.

Owns the fetch positions and the connections for fetching. An answer becomes chunks: the batches of a partition from its
position on, without control batches and, if only committed records are read, without those of aborted transactions
(KIP-98). The next request is sent before a chunk is decoded.
"""

from __future__ import annotations

import time

from pykafkad import errors
from pykafkad.hot import records
from pykafkad.messages import FetchRequest
from pykafkad.net.client import RETRIABLE, Cluster
from pykafkad.net.connection import readable

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from typing import Any

    from pykafkad.hot.records import Batch, Record
    from pykafkad.net.connection import Connection
    from pykafkad.tools.admin import Partition

FETCH_BY_ID = 13  # since this version requests have topic ids instead of names
READ_UNCOMMITTED, READ_COMMITTED = 0, 1
ABORT_MARKER = 0
RETRY_PAUSE_S = 0.1


class Chunk:
    """Batches of one partition. `next_offset` is where reading continues after them."""

    __slots__ = ("batches", "next_offset", "partition", "start")

    def __init__(self, partition: Partition, start: int, next_offset: int) -> None:
        self.partition = partition
        self.start = start
        self.next_offset = next_offset
        self.batches: list[tuple[Batch, memoryview]] = []

    def __iter__(self) -> Iterator[tuple[Batch, Record]]:
        for batch, data in self.batches:
            for record in records.batch_records(bytes(data)):
                if record.offset >= self.start:  # a batch may begin before the position
                    yield batch, record


class FetchSettings:
    __slots__ = ("check_crcs", "isolation", "max_bytes", "max_wait_ms", "min_bytes", "partition_bytes")

    def __init__(self) -> None:
        self.max_wait_ms = 500
        self.min_bytes = 1
        self.max_bytes = 52_428_800
        self.partition_bytes = 1_048_576
        self.isolation = READ_UNCOMMITTED
        self.check_crcs = True


class Fetcher:
    """`out_of_range(partition, position)` returns the new position, or None if it comes later."""

    def __init__(self, cluster: Cluster, settings: FetchSettings) -> None:
        self._cluster = cluster
        self._settings = settings
        self.positions: dict[Partition, int] = {}
        self.lost: set[Partition] = set()  # positions that are no longer in the log
        self.missing: set[str] = set()
        """Topics that were not there when their leaders were looked up last."""
        self._leaders: dict[Partition, int] = {}
        self._topic_ids: dict[str, bytes] = {}
        self._topic_names: dict[bytes, str] = {}
        self._connections: dict[int, Connection] = {}
        self._asked: dict[int, dict[Partition, int]] = {}  # of each leader: positions in flight
        self._pause_until = 0.0

    def assign(self, positions: dict[Partition, int]) -> None:
        """Read these partitions from now on; those that stay keep their positions."""
        self.positions = {key: self.positions.get(key, offset) for key, offset in positions.items()}
        self.lost &= set(positions)

    def poll(self, timeout_s: float) -> list[Chunk]:
        """The chunks that arrived within this time. Transient errors are waited out, others are raised."""
        deadline = time.monotonic() + timeout_s
        while True:
            self._send()
            left = max(0.0, deadline - time.monotonic())
            if not self._asked:
                time.sleep(min(left, RETRY_PAUSE_S))
                return []
            sockets = {self._connections[leader].fileno(): leader for leader in self._asked}
            ready = readable(list(sockets), left)
            if not ready:
                return []
            chunks = [chunk for descriptor in ready for chunk in self._receive(sockets[descriptor])]
            if chunks or time.monotonic() >= deadline:
                self._send()
                return chunks

    # -- requests

    def _send(self) -> None:
        if time.monotonic() < self._pause_until:
            return
        wanted = [key for key in self.positions if key not in self.lost]
        unknown = [key for key in wanted if key not in self._leaders]
        if unknown and not self._find_leaders({topic for topic, _ in unknown}):
            return
        by_leader: dict[int, dict[Partition, int]] = {}
        for key in wanted:
            leader = self._leaders.get(key, -1)
            if leader >= 0 and leader not in self._asked:
                by_leader.setdefault(leader, {})[key] = self.positions[key]
        for leader, positions in by_leader.items():
            try:
                self._send_to(leader, positions)
            except (OSError, errors.KafkaError):
                self._drop(leader)

    def _find_leaders(self, topics: Iterable[str]) -> bool:
        try:
            rows = self._cluster.metadata(sorted(topics)).topics
        except (OSError, errors.KafkaError):
            self._rest()
            return False
        for row in rows:
            if row.error_code == errors.UNKNOWN_TOPIC_OR_PARTITION:
                self.missing.add(row.name)
                continue
            self.missing.discard(row.name)
            self._topic_ids[row.name] = row.topic_id
            self._topic_names[row.topic_id] = row.name
            for partition in row.partitions:
                if partition.leader_id >= 0:
                    self._leaders[row.name, partition.partition_index] = partition.leader_id
        return True

    def _rest(self) -> None:
        self._pause_until = time.monotonic() + RETRY_PAUSE_S

    def _send_to(self, leader: int, positions: dict[Partition, int]) -> None:
        connection = self._connections.get(leader)
        if connection is None:
            if leader not in self._cluster.brokers:
                self._cluster.metadata([])
            connection = self._connections[leader] = self._cluster.fresh(self._cluster.brokers[leader])
        request = self._request(positions)
        if connection.version_for(request) >= FETCH_BY_ID:
            for topic in request.topics:
                topic.topic_id, topic.topic = self._topic_ids[topic.topic], ""
        connection.send(request, self._deadline())
        self._asked[leader] = positions

    def _deadline(self) -> float:
        return time.monotonic() + (self._cluster.request_timeout_ms + self._settings.max_wait_ms) / 1000

    def _request(self, positions: dict[Partition, int]) -> Any:
        topics: dict[str, list[Any]] = {}
        for (topic, index), offset in positions.items():
            topics.setdefault(topic, []).append(
                FetchRequest.FetchPartition(
                    partition=index,
                    fetch_offset=offset,
                    partition_max_bytes=self._settings.partition_bytes,
                )
            )
        return FetchRequest(
            replica_id=-1,
            max_wait_ms=self._settings.max_wait_ms,
            min_bytes=self._settings.min_bytes,
            max_bytes=self._settings.max_bytes,
            isolation_level=self._settings.isolation,
            topics=[
                FetchRequest.FetchTopic(topic=name, partitions=partitions)
                for name, partitions in topics.items()
            ],
        )

    # -- answers

    def _receive(self, leader: int) -> list[Chunk]:
        asked = self._asked.pop(leader)
        try:
            response = self._connections[leader].receive(self._deadline())
        except (OSError, ValueError):
            self._drop(leader)
            return []
        if response.error_code:
            self._rest()
            return []
        found = []
        for topic in response.responses:
            name = topic.topic or self._topic_names[topic.topic_id]
            for row in topic.partitions:
                key = name, row.partition_index
                if asked.get(key) is None or self.positions.get(key) != asked[key]:
                    continue  # the partition was revoked, or its position reset, in the meantime
                chunk = self._take(key, asked[key], row)
                if chunk is not None:
                    found.append(chunk)
        return found

    def _take(self, key: Partition, position: int, row: Any) -> Chunk | None:
        code = row.error_code
        if code == errors.OFFSET_OUT_OF_RANGE:
            self.lost.add(key)
            return None
        if code in RETRIABLE:
            self._leaders.pop(key, None)
            self._rest()
            return None
        if code:
            raise errors.KafkaError(code, f"{errors.MESSAGES.get(code, '')} ({key[0]}-{key[1]})".strip())
        if not row.records:
            return None
        data = memoryview(row.records)
        batches = [
            batch
            for batch in records.scan(data, check_crc=self._settings.check_crcs)
            if batch.last_offset >= position
        ]
        if not batches:
            return None
        chunk = Chunk(key, position, batches[-1].last_offset + 1)
        self.positions[key] = chunk.next_offset
        chunk.batches = [
            (batch, data[batch.position : batch.position + batch.size])
            for batch in self._visible(batches, data, row.aborted_transactions or [])
        ]
        return chunk

    def _visible(self, batches: list[Batch], data: memoryview, aborted: list[Any]) -> Iterator[Batch]:
        """The batches without control batches, and without aborted transactions if only committed records are read."""
        later = sorted(aborted, key=lambda row: int(row.first_offset), reverse=True)
        open_aborts: set[int] = set()
        for batch in batches:
            while later and later[-1].first_offset <= batch.last_offset:
                open_aborts.add(later.pop().producer_id)
            if batch.is_control:
                marker = next(
                    records.batch_records(bytes(data[batch.position : batch.position + batch.size]))
                )
                if marker.control_type == ABORT_MARKER:
                    open_aborts.discard(batch.producer_id)
            elif not (
                self._settings.isolation == READ_COMMITTED
                and batch.is_transactional
                and batch.producer_id in open_aborts
            ):
                yield batch

    def _drop(self, leader: int) -> None:
        """The connection failed: the leaders of its partitions are looked up again."""
        connection = self._connections.pop(leader, None)
        if connection is not None:
            connection.close()
        self._asked.pop(leader, None)
        self._leaders = {key: known for key, known in self._leaders.items() if known != leader}
        self._rest()

    def close(self) -> None:
        for connection in self._connections.values():
            connection.close()
        self._connections.clear()
        self._asked.clear()
