"""A batch of a pipeline in Spark is written once, whatever is repeated, and by whoever was the last to begin."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from pykafkad.errors import KafkaError
from pykafkad.pipelines.hosts.sink import BatchSink, Chunk
from pykafkad.testing import Broker
from pykafkad.tools import admin
from pykafkad.tools.batching import Row
from pykafkad.tools.fetching import READ_COMMITTED, Fetcher, FetchSettings
from pykafkad.tools.producer import Producer

TOPIC = "results"
PARTITIONS = 2
POLL_S = 1.0


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    with Broker() as kafka:
        kafka.create_topics({TOPIC: PARTITIONS})
        yield kafka


@pytest.fixture
def sink(broker: Broker, request: pytest.FixtureRequest) -> BatchSink:
    return BatchSink(request.node.name, TOPIC, broker.bootstrap_servers, exactly_once=True)


def records(name: str, *values: int) -> Iterator[tuple[str, list[Row]]]:
    yield TOPIC, [(f"{name} {value % 3}".encode(), b"%d" % value, (), value) for value in values]


def committed(sink: BatchSink) -> list[int]:
    """The values that a reader of committed records finds of this test."""
    cluster = admin.connect_to(sink.bootstrap, {}, client_id="test", timeout_ms=10_000)
    settings = FetchSettings()
    settings.isolation = READ_COMMITTED
    partitions = [(TOPIC, index) for index in range(PARTITIONS)]
    latest = dict.fromkeys(partitions, admin.LATEST)
    ends: dict[Any, Any] = dict(admin.list_offsets(cluster, latest, isolation=READ_COMMITTED))
    fetcher, found = Fetcher(cluster, settings), list[int]()
    positions = dict.fromkeys(partitions, 0)
    while any(positions[partition] < ends[partition] for partition in partitions):
        fetcher.assign(positions)
        for chunk in fetcher.poll(POLL_S):
            mine = [r for _, r in chunk if (r.key or b"").startswith(f"{sink.name} ".encode())]
            found += [int(r.value or b"") for r in mine]
            positions[chunk.partition] = chunk.next_offset
    cluster.close()
    return sorted(found)


def test_batches_follow_one_another(sink: BatchSink) -> None:
    assert sink.write(0, 0, records(sink.name, 1, 2)) == 2
    assert sink.write(0, 1, records(sink.name, 3)) == 1
    assert committed(sink) == [1, 2, 3]


def test_a_batch_that_is_repeated_is_left_out(sink: BatchSink) -> None:
    sink.write(0, 0, records(sink.name, 1))
    sink.write(0, 1, records(sink.name, 2))
    assert [sink.write(0, batch, records(sink.name, batch + 1)) for batch in (0, 1)] == [0, 0]
    assert committed(sink) == [1, 2]


def test_partitions_are_counted_apart(sink: BatchSink) -> None:
    sink.write(0, 7, records(sink.name, 1))
    assert sink.write(1, 7, records(sink.name, 2)) == 1
    assert committed(sink) == [1, 2]


def test_what_a_process_left_open_when_it_died_is_never_seen(sink: BatchSink) -> None:
    dead = Producer(sink.bootstrap, {"transactional.id": f"{sink.name}-0"})
    dead.init_transactions()
    for topic, rows in records(sink.name, 8, 9):
        for key, value, _, time in rows:
            dead.send(topic, key, value, timestamp_ms=time)
    dead.flush()
    assert sink.write(0, 0, records(sink.name, 1)) == 1
    assert committed(sink) == [1]
    with pytest.raises(KafkaError):
        dead.commit()
    assert committed(sink) == [1]


def test_a_batch_that_fails_halfway_is_written_whole_when_it_is_repeated(sink: BatchSink) -> None:
    def failing() -> Iterator[Chunk]:
        yield from records(sink.name, 1, 2)
        raise RuntimeError("a row that cannot be computed")

    with pytest.raises(RuntimeError):
        sink.write(0, 0, failing())
    assert sink.write(0, 0, records(sink.name, 1, 2, 3)) == 3
    assert committed(sink) == [1, 2, 3]


def test_a_batch_that_fails_keeps_no_reader_waiting(sink: BatchSink, broker: Broker) -> None:
    def failing() -> Iterator[Chunk]:
        yield from records(sink.name, *range(100))
        raise RuntimeError("a row that cannot be computed")

    other = BatchSink(f"{sink.name} other", TOPIC, broker.bootstrap_servers)
    with pytest.raises(RuntimeError):
        sink.write(0, 0, failing())
    other.write(0, 0, records(sink.name, 200))
    assert committed(sink) == [200]


def test_without_transactions_a_repeated_batch_is_there_twice(sink: BatchSink, broker: Broker) -> None:
    plain = BatchSink(sink.name, TOPIC, broker.bootstrap_servers)
    assert [plain.write(0, 0, records(sink.name, 1)) for _ in range(2)] == [1, 1]
    assert committed(sink) == [1, 1]
