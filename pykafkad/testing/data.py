"""Producing to a topic and reading it, as tests do: small amounts, all of it, and with a deadline.

Stands on the client of the tools: its metadata and its fetcher. A topic is made when something is produced to it, and
waited for when it is read. Invariant: what times out says what was there.
"""

from __future__ import annotations

import heapq
import time
from dataclasses import replace
from itertools import count

from pykafkad import errors
from pykafkad.hot import records
from pykafkad.messages import ProduceRequest
from pykafkad.net.client import Cluster
from pykafkad.testing.errors import BrokerError, BrokerTimeout
from pykafkad.testing.record import Record, encoded, header_list
from pykafkad.tools import admin
from pykafkad.tools.batching import partition_of_key
from pykafkad.tools.fetching import Fetcher, FetchSettings
from pykafkad.tools.producer import PRODUCE_BY_NAME

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from typing import Any

    from pykafkad.hot.records import Record as Raw
    from pykafkad.tools.admin import Partition

Span = tuple[int, int]  # the first offset of a partition, and the one after its last

ALL_REPLICAS = -1
# Said by a broker that does not lead the partition, or has not heard yet that it does; nothing was written.
NOT_THERE = (errors.NOT_LEADER_OR_FOLLOWER, errors.UNKNOWN_TOPIC_OR_PARTITION)
WAIT_MS = (
    100  # for which a fetch waits at the broker: records come at once, and a deadline is not missed by more
)
LOOK_S = 0.02


def partitions_of(cluster: Cluster, topic: str) -> list[int]:
    """The partitions of the topic; nothing if it does not exist."""
    (row,) = cluster.metadata([topic]).topics
    if row.error_code in (errors.UNKNOWN_TOPIC_OR_PARTITION, errors.LEADER_NOT_AVAILABLE):
        return []
    refuse(row.error_code, topic)
    return sorted(each.partition_index for each in row.partitions)


def refuse(code: int, what: str, message: str | None = None) -> None:
    if code:
        said = errors.NAMES.get(code, str(code))
        raise BrokerError(f"{what}: {said}: {message or errors.MESSAGES.get(code, '')}".rstrip(": "))


# -- producing


def produce(
    cluster: Cluster, topic: str, wanted: Sequence[Record[Any]], codec: str, partitions: Sequence[int]
) -> list[Record[bytes]]:
    """Write the records, a batch a partition; returns them as they were written. Those with a key go to the partition
    that Kafka's producers choose, those without one to all partitions in turn."""
    if codec not in records.CODECS:
        raise ValueError(f"codec={codec!r}: one of {', '.join(records.CODECS)} is allowed")
    now_ms = time.time_ns() // 1_000_000
    written: list[Record[bytes]] = []
    keyless = 0
    for record in wanted:
        key = encoded(record.key)
        index = record.partition
        if index is None and key is not None:
            index = partitions[partition_of_key(key, len(partitions))]
        elif index is None:
            index = partitions[keyless % len(partitions)]
            keyless += 1
        at_ms = now_ms if record.timestamp_ms is None else record.timestamp_ms
        headers = header_list(record.headers)
        written.append(Record(encoded(record.value), key, headers, index, at_ms, topic=topic))
    offsets = send(cluster, topic, written, codec) if written else {}
    return [replace(each, offset=next(offsets[each.partition])) for each in written]


def send(
    cluster: Cluster, topic: str, rows: Sequence[Record[bytes]], codec: str
) -> dict[int | None, Iterator[int]]:
    """The offsets that the records of each partition have."""
    parts: dict[int, list[Record[bytes]]] = {}
    for row in rows:
        assert row.partition is not None
        parts.setdefault(row.partition, []).append(row)
    data = {
        index: ProduceRequest.PartitionProduceData(
            index=index,
            records=records.build(
                [(each.key, each.value, each.headers, each.timestamp_ms or 0) for each in some], codec=codec
            ),
        )
        for index, some in parts.items()
    }
    return Sending(cluster, topic, data).offsets()


class Sending:
    """Batches on their way to the leaders of their partitions. What a broker refuses since it does not lead is sent to
    whoever does; what was sent and not answered is not sent again, since it may be there."""

    def __init__(self, cluster: Cluster, topic: str, data: dict[int, Any]) -> None:
        self._cluster, self._topic, self._left = cluster, topic, data
        self._found: dict[int | None, Iterator[int]] = {}
        self._broken: OSError | None = None

    def offsets(self) -> dict[int | None, Iterator[int]]:
        self._cluster.attempt("produce", self._send)
        if self._broken is not None:
            raise self._broken
        return self._found

    def _send(self) -> None:
        (row,) = self._cluster.metadata([self._topic]).topics
        leaders = {each.partition_index: each.leader_id for each in row.partitions}
        batches: dict[int, list[Any]] = {}
        for index, entry in self._left.items():
            batches.setdefault(leaders.get(index, -1), []).append(entry)
        without = batches.pop(-1, None)
        for leader, entries in batches.items():
            connection = self._cluster.broker(leader)  # OSError: nothing was sent
            try:
                self._take(self._cluster.call(connection, self._request(entries), at_most=PRODUCE_BY_NAME))
            except OSError as problem:
                self._broken = problem
                return
        if without:
            raise errors.KafkaError(
                errors.LEADER_NOT_AVAILABLE, f"{self._topic}-{without[0].index}: no leader"
            )
        if self._left:
            raise errors.KafkaError(errors.NOT_LEADER_OR_FOLLOWER, f"{self._topic}: the leaders are changing")

    def _request(self, entries: list[Any]) -> Any:
        return ProduceRequest(
            acks=ALL_REPLICAS,
            timeout_ms=self._cluster.request_timeout_ms,
            topic_data=[ProduceRequest.TopicProduceData(name=self._topic, partition_data=entries)],
        )

    def _take(self, answer: Any) -> None:
        for row in answer.responses[0].partition_responses:
            if row.error_code in NOT_THERE:
                continue
            refuse(row.error_code, f"{self._topic}-{row.index}", row.error_message)
            self._found[row.index] = count(row.base_offset)
            del self._left[row.index]


# -- reading


class Reader:
    """The records of a topic from its start, as they come in until the deadline."""

    def __init__(self, cluster: Cluster, topic: str, partition: int | None, timeout_s: float) -> None:
        self._cluster, self._topic, self._timeout_s = cluster, topic, timeout_s
        self.deadline = time.monotonic() + timeout_s
        self._partition = partition
        self._found: dict[int, list[Raw]] = {}
        self.count = 0
        settings = FetchSettings()
        settings.max_wait_ms = WAIT_MS
        self._fetcher = Fetcher(cluster, settings)

    def close(self) -> None:
        self._fetcher.close()

    def begin(self, *, wait: bool) -> dict[Partition, Span]:
        """Find the partitions; `wait` for the topic, if it is not there yet. Where they begin and end now."""
        while not (indexes := partitions_of(self._cluster, self._topic)):
            if not wait or time.monotonic() >= self.deadline:
                rows = self._cluster.metadata(None).topics
                there = ", ".join(sorted(row.name for row in rows if not row.is_internal))
                kind = BrokerTimeout if wait else BrokerError
                raise kind(f"there is no topic {self._topic}, but {there or 'none at all'}")
            time.sleep(LOOK_S)
        if self._partition is not None and self._partition not in indexes:
            raise BrokerError(f"{self._topic} has {len(indexes)} partitions, and no {self._partition}")
        chosen = indexes if self._partition is None else [self._partition]
        spans = spans_of(self._cluster, [(self._topic, index) for index in chosen])
        self._fetcher.assign({key: first for key, (first, _) in spans.items()})
        return spans

    def until(self, done: Callable[[], bool], *, step_s: float = 1.0) -> None:
        """Take what arrives until `done`; BrokerTimeout at the deadline."""
        while not done():
            left = self.deadline - time.monotonic()
            if left <= 0:
                raise BrokerTimeout(self._told())
            for chunk in self._fetcher.poll(min(left, step_s)):
                arrived = [record for _, record in chunk]
                self._found.setdefault(chunk.partition[1], []).extend(arrived)
                self.count += len(arrived)

    def reached(self, spans: Mapping[Partition, Span]) -> bool:
        return all(self._fetcher.positions[key] >= end for key, (_, end) in spans.items())

    def _told(self) -> str:
        spans = spans_of(self._cluster, list(self._fetcher.positions))
        shown = ", ".join(
            f"{topic}-{index} from {first} to {end}" for (topic, index), (first, end) in spans.items()
        )
        return f"{self.count} records of {self._topic} after {self._timeout_s:g} s; its offsets: {shown}"

    def merged(self, n: int | None = None) -> list[tuple[int, Raw]]:
        """With their partitions: in the order of their times, as far as the order of each partition allows."""
        parts = [[(index, record) for record in rows] for index, rows in sorted(self._found.items())]
        return list(heapq.merge(*parts, key=lambda row: row[1].timestamp))[:n]


def spans_of(cluster: Cluster, keys: Sequence[Partition]) -> dict[Partition, Span]:
    """Where these partitions begin and end."""
    first = offsets_of(cluster, dict.fromkeys(keys, admin.EARLIEST))
    end = offsets_of(cluster, dict.fromkeys(keys, admin.LATEST))
    return {key: (first[key], end[key]) for key in keys}


def offsets_of(cluster: Cluster, wanted: Mapping[Partition, int]) -> dict[Partition, int]:
    found = {}
    for key, offset in admin.list_offsets(cluster, wanted).items():
        if isinstance(offset, errors.KafkaError):
            refuse(offset.code, f"{key[0]}-{key[1]}", offset.text)
        else:
            found[key] = offset
    return found
