"""Large requests of the data path: in slices, with the same answers as at once, while others are served in between."""

from __future__ import annotations

import gc
import re
import time
from collections.abc import Callable
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from pykafkad import errors, messages
from pykafkad.clock import ManualClock
from pykafkad.handlers import describe_producers, fetching
from pykafkad.hot import records
from pykafkad.slices import SLICE_US, Slices
from pykafkad.unfolding import LANE_BYTES
from pykafkad.waiting import PARTITIONS_IN_A_PASS, PARTITIONS_OF_ANY, Waiting
from tests.unit.data_kit import NOW_MS, Connection, Desk, Ticket, batch, fetch, produce, values_of

P, F = 9, 12
MIB = 1 << 20


class Ticking(ManualClock):
    """Each look takes a third of a slice, so a slice has about three steps of work."""

    def __init__(self, now_ms: int) -> None:
        super().__init__(now_ms)
        self.looks_us = count(0, SLICE_US // 3)

    def monotonic_us(self) -> int:
        return next(self.looks_us)


class SlicedDesk(Desk):
    def __init__(self, directory: Path, **overrides: str) -> None:
        super().__init__(directory, **overrides)
        self.slices = Slices(self.call_soon, Ticking(NOW_MS))

    def turn(self) -> None:
        """A pass of the loop in which nothing is received."""
        self.advance(0)
        self.end_pass()

    def settle(self, given: Any) -> int:
        """Run passes until there is an answer; returns how many."""
        for passes in range(1, 100_000):
            if not isinstance(given, Ticket) or given.parts is not None:
                return passes
            self.turn()
        raise AssertionError("never answered")


@pytest.fixture
def desk(tmp_path: Path) -> SlicedDesk:
    return SlicedDesk(tmp_path)


def zeros(codec: str = "gzip", size: int = 8 * MIB, **fields: Any) -> bytes:
    return batch(bytes(size), codec=codec, **fields)


def produced(answer: Any) -> Any:
    return answer.responses[0].partition_responses[0]


def many_produced(topic: str, indexes: Any, data: bytes | None, acks: int = -1) -> Any:
    request = produce(topic, 0, data, acks)
    Item = messages.ProduceRequest.PartitionProduceData
    request.topic_data[0].partition_data = [Item(index=index, records=data) for index in indexes]
    return request


# -- produce


def test_many_batches_that_keep_much_while_they_are_unfolded_wait_for_each_other(desk: SlicedDesk) -> None:
    """Of two kilobytes zstd has a window of 60 MB, on each of many connections."""
    import zstandard

    params = zstandard.ZstdCompressionParameters(window_log=27, compression_level=1)
    inner = records.build([(None, bytes(40 * MIB), [], NOW_MS)])
    payload = zstandard.ZstdCompressor(compression_params=params).compress(inner[61:])
    data = bytearray(inner[:61] + payload)
    data[8:12] = (len(data) - 12).to_bytes(4)
    data[22] = records.CODECS.index("zstd")
    data[17:21] = records.crc32c(data[21:]).to_bytes(4)
    desk.create("t")
    given = [desk.send(produce("t", 0, bytes(data)), P) for _ in range(12)]
    small = desk.send(produce("t", 0, zeros("zstd", MIB)), P)
    peak = passes = 0
    while any(isinstance(each, Ticket) and each.parts is None for each in given):
        desk.turn()
        passes += 1
        peak = max(peak, desk.unfolding.kept)
        if small is not None and small.parts is not None:
            assert produced(desk.answer_of(small, "ProduceRequest", P)).base_offset < 3
            small = None
    assert 0 < peak <= LANE_BYTES and desk.unfolding.kept == 0 and small is None
    codes = [produced(desk.answer_of(each, "ProduceRequest", P)).error_code for each in given]
    assert codes == [0] * 12


def test_others_append_while_a_large_batch_is_unfolded(desk: SlicedDesk) -> None:
    desk.create("t")
    large = desk.send(produce("t", 0, zeros()), P)
    desk.end_pass()
    assert large.parts is None
    assert produced(desk.ask(produce("t", 0, batch(b"small")), P)).base_offset == 0
    assert desk.settle(large) > 10
    assert produced(desk.answer_of(large, "ProduceRequest", P)).base_offset == 1
    assert desk.storage.partitions["t", 0].high_watermark == 2


def test_a_batch_whose_partition_is_deleted_meanwhile_is_refused(desk: SlicedDesk) -> None:
    desk.create("t")
    given = desk.send(produce("t", 0, zeros()), P)
    desk.end_pass()
    del desk.image.topics["t"]
    desk.storage.delete("t", 0)
    desk.settle(given)
    answer = produced(desk.answer_of(given, "ProduceRequest", P))
    assert answer.error_code == errors.UNKNOWN_TOPIC_OR_PARTITION


def test_what_came_whole_is_appended_though_its_client_has_gone(desk: SlicedDesk) -> None:
    desk.create("t")
    desk.send(produce("t", 0, zeros(), acks=0), P)
    desk.connection.closed = "gone"
    while desk.slices.count:
        desk.turn()
    assert desk.storage.partitions["t", 0].high_watermark == 1


def test_a_large_batch_with_something_wrong_is_refused(desk: SlicedDesk) -> None:
    desk.create("t")
    data = batch(bytes(8 * MIB), codec="gzip", timestamp=NOW_MS + 4_000_000)
    given = desk.send(produce("t", 0, data), P)
    desk.settle(given)
    answer = produced(desk.answer_of(given, "ProduceRequest", P))
    assert (answer.error_code, answer.base_offset) == (errors.INVALID_TIMESTAMP, -1)
    assert len(answer.record_errors) == 1
    desk.send(produce("t", 0, data, acks=0), P)
    while desk.slices.count:
        desk.turn()
    assert "INVALID_TIMESTAMP" in str(desk.connection.closed)


def test_of_many_refused_records_no_more_are_told_than_an_answer_may_tell(desk: SlicedDesk) -> None:
    desk.create("t", 3, cleanup_policy="compact")
    data = batch(*[b""] * 12_000, codec="zstd")
    given = desk.send(many_produced("t", range(3), data), P)
    assert desk.settle(given) > 50
    answers = desk.answer_of(given, "ProduceRequest", P).responses[0].partition_responses
    assert [len(answer.record_errors) for answer in answers] == [12_000, 8_000, 0]
    assert {answer.error_code for answer in answers} == {errors.INVALID_RECORD}
    assert [answer.record_errors[-1].batch_index for answer in answers[:2]] == [11_999, 7_999]


def test_a_lack_of_memory_ends_the_connection_and_nothing_else(desk: SlicedDesk, monkeypatch: Any) -> None:
    import snappy  # type: ignore[import-untyped]

    desk.create("t")

    def no_memory(block: Any) -> bytes:
        raise MemoryError

    with monkeypatch.context() as patch:
        patch.setattr(snappy, "uncompress", no_memory)
        assert desk.ask(produce("t", 0, batch(b"a", codec="snappy")), P) is None
    assert desk.connection.closed is not None and desk.storage.partitions["t", 0].log_end_offset == 0
    desk.connection = Connection()
    assert produced(desk.ask(produce("t", 0, batch(b"a", codec="snappy")), P)).base_offset == 0


def test_what_was_written_passes_ago_is_not_promised_when_its_directory_fails(desk: SlicedDesk) -> None:
    desk.create("t", 300)
    desk.storage.on_all_failed = lambda: None
    given = desk.send(many_produced("t", range(300), batch(b"a")), P)
    desk.turn()
    assert given.parts is None and desk.storage.partitions["t", 0].high_watermark == 1
    desk.storage.directories[0].fail("pulled out")
    desk.storage.drop_offline()
    desk.settle(given)
    answers = desk.answer_of(given, "ProduceRequest", P).responses[0].partition_responses
    assert {(answer.error_code, answer.base_offset) for answer in answers} == {
        (errors.KAFKA_STORAGE_ERROR, -1)
    }
    assert desk.connection.closed is None


def test_with_acks_0_what_was_written_passes_ago_ends_the_connection_when_its_directory_fails(
    desk: SlicedDesk,
) -> None:
    desk.create("t", 300)
    desk.storage.on_all_failed = lambda: None
    desk.send(many_produced("t", range(300), batch(b"a"), acks=0), P)
    desk.turn()
    desk.storage.directories[0].fail("pulled out")
    desk.storage.drop_offline()
    while desk.slices.count:
        desk.turn()
    assert "KAFKA_STORAGE_ERROR" in str(desk.connection.closed)


def test_many_partitions_are_answered_when_the_last_is_on_the_disk(tmp_path: Path) -> None:
    desk = SlicedDesk(tmp_path)
    flushes: list[Any] = []
    desk.storage.submit = lambda work, done: flushes.append((work, done))
    desk.create("t", 300, flush_messages="1")
    given = desk.send(many_produced("t", range(300), batch(b"a")), P)
    desk.settle(given)
    exchange = given.parts
    held = exchange.encode()
    assert isinstance(held, Ticket) and held.parts is None, "given, and held"
    while flushes:
        work, done = flushes.pop(0)
        done(work())
        desk.turn()
    assert held.parts is exchange
    answers = desk.answer_of(held, "ProduceRequest", P).responses[0].partition_responses
    assert [answer.base_offset for answer in answers] == [0] * 300


# -- all handlers


def elements(kind: str, size: int, equal: bool) -> tuple[Any, int]:
    """A request with that many elements, and its version. Topic t has 100 partitions."""
    indexes = [0 if equal else index for index in range(size)]
    if kind == "produce":
        return many_produced("t", indexes, None), P
    if kind == "produce topics":
        request = produce("t", 0, None)
        Data = messages.ProduceRequest.TopicProduceData
        request.topic_data = [Data(name=f"t{index}", partition_data=[]) for index in indexes]
        return request, P
    if kind == "fetch":
        return fetch("t", *({"partition": index} for index in indexes), session_epoch=-1), F
    if kind == "fetch topics":
        request = fetch("t", session_epoch=-1)
        Topic = messages.FetchRequest.FetchTopic
        request.topics = [Topic(topic=f"t{index}", partitions=[]) for index in indexes]
        return request, F
    if kind == "list offsets":
        return list_offsets([("t", indexes)], -1), 7
    if kind == "list offsets by time":
        return list_offsets([("t", indexes)], 5), 7
    if kind == "list offsets topics":
        return list_offsets([(f"t{index}", [0]) for index in indexes], -1), 7
    Request: Any
    if kind == "leader epochs":
        Request = messages.OffsetForLeaderEpochRequest
        items = [Request.OffsetForLeaderPartition(partition=index, leader_epoch=0) for index in indexes]
        return Request(replica_id=-1, topics=[Request.OffsetForLeaderTopic(topic="t", partitions=items)]), 4
    if kind == "delete records":
        Request = messages.DeleteRecordsRequest
        items = [Request.DeleteRecordsPartition(partition_index=index, offset=-1) for index in indexes]
        return Request(timeout_ms=1, topics=[Request.DeleteRecordsTopic(name="t", partitions=items)]), 2
    if kind == "describe producers":
        Request = messages.DescribeProducersRequest
        return Request(topics=[Request.TopicRequest(name="t", partition_indexes=indexes)]), 0
    if kind == "describe log dirs":
        Request = messages.DescribeLogDirsRequest
        return Request(topics=[Request.DescribableLogDirTopic(topic="t", partitions=indexes)]), 4
    Request = messages.AlterReplicaLogDirsRequest
    topics = [Request.AlterReplicaLogDirTopic(name="t", partitions=indexes)]
    return Request(dirs=[Request.AlterReplicaLogDir(path="/nowhere", topics=topics)]), 2


KINDS = (
    *("produce", "produce topics", "fetch", "fetch topics", "list offsets", "list offsets by time"),
    *("list offsets topics", "leader epochs", "delete records", "describe producers", "describe log dirs"),
    "alter log dirs",
)


def list_offsets(asked: list[tuple[str, list[int]]], timestamp: int) -> Any:
    Request = messages.ListOffsetsRequest
    return Request(
        replica_id=-1,
        topics=[
            Request.ListOffsetsTopic(
                name=name,
                partitions=[
                    Request.ListOffsetsPartition(partition_index=index, timestamp=timestamp)
                    for index in indexes
                ],
            )
            for name, indexes in asked
        ],
    )


def prepared(desk: Desk) -> Desk:
    desk.create("t", 100)
    for index in range(100):
        desk.ask(produce("t", index, batch(b"a", b"b", producer_id=7, producer_epoch=0, base_sequence=0)), P)
    return desk


@pytest.mark.parametrize("equal", [True, False])
@pytest.mark.parametrize("kind", KINDS)
def test_in_slices_comes_the_answer_that_comes_at_once(tmp_path: Path, kind: str, equal: bool) -> None:
    request, version = elements(kind, 3000, equal)
    at_once = prepared(Desk(tmp_path / "at-once"))
    whole = at_once.ask(request, version)
    desk = SlicedDesk(tmp_path / "sliced")
    prepared(desk)
    given = desk.send(request, version)
    assert isinstance(given, Ticket) and given.parts is None
    assert desk.settle(given) > 5, "slices"
    answer = desk.answer_of(given, type(request).__name__, version)
    shown = repr(answer).replace("sliced", "at-once")
    assert without_room(shown) == without_room(repr(whole))


def without_room(shown: str) -> str:
    """Without the free space of the disk, which may have changed in the meantime."""
    return re.sub(r"(total|usable)_bytes=\d+", "", shown)


@pytest.mark.parametrize("equal", [True, False])
@pytest.mark.parametrize("kind", KINDS)
def test_four_times_the_elements_cost_no_more_than_their_share(
    tmp_path: Path, kind: str, equal: bool
) -> None:
    desk = prepared(Desk(tmp_path))

    def cost(size: int) -> float:
        request, version = elements(kind, size, equal)
        found = []
        for _ in range(3):
            begun = time.thread_time()
            desk.ask(request, version)
            found.append(time.thread_time() - begun)
        return min(found)

    gc.disable()  # it also walks objects that other tests have left
    try:
        assert cost(16_000) < 12 * cost(4_000)
    finally:
        gc.enable()


def test_a_session_with_many_partitions_is_made_changed_read_and_forgotten_in_slices(
    desk: SlicedDesk,
) -> None:
    prepared(desk)
    other = desk.create("u", 100)
    assert other

    def ask(**fields: Any) -> Any:
        request = fetch("t", **fields)
        given = desk.send(request, F)
        assert desk.settle(given) > 5
        return desk.answer_of(given, "FetchRequest", F)

    Topic, Item = messages.FetchRequest.FetchTopic, messages.FetchRequest.FetchPartition
    everything = [
        Topic(
            topic=name, partitions=[Item(partition=index, partition_max_bytes=10_000) for index in range(100)]
        )
        for name in ("t", "u")
    ]
    first = ask(session_epoch=0, topics=everything)
    assert [len(topic.partitions) for topic in first.responses] == [100, 100]
    desk.ask(produce("u", 7, batch(b"news")), P)
    read_up = [
        Topic(
            topic="t",
            partitions=[Item(partition=i, fetch_offset=2, partition_max_bytes=10_000) for i in range(100)],
        )
    ]
    second = ask(session_id=first.session_id, session_epoch=1, topics=read_up)
    assert [
        (topic.topic, [each.partition_index for each in topic.partitions]) for topic in second.responses
    ] == [("u", [7])]
    Forgotten = messages.FetchRequest.ForgottenTopic
    gone = [Forgotten(topic="t", partitions=list(range(100)))]
    third = desk.send(fetch("t", session_id=first.session_id, session_epoch=2, forgotten_topics_data=gone), F)
    desk.settle(third)
    session = desk.fetch_sessions._sessions[first.session_id]
    assert {topic for topic, _ in session.partitions} == {"u"}


# -- waiting


def counted_reads(monkeypatch: Any) -> list[int]:
    """Collects the partitions that are read from now on."""
    read: list[int] = []
    before = fetching.Fetch.read_partition

    def counting(self: Any, partition: Any, followed: Any, left: int) -> Any:
        read.append(partition.index)
        return before(self, partition, followed, left)

    monkeypatch.setattr(fetching.Fetch, "read_partition", counting)
    return read


def waiting_for_many(desk: SlicedDesk, size: int = 100, **fields: Any) -> Any:
    request = fetch("t", *({"partition": index} for index in range(size)), **{"max_wait_ms": 500, **fields})
    given = desk.send(request, F)
    while desk.slices.count:
        desk.turn()
    assert given.parts is None and desk.waiting.count == 1
    return given


def test_a_waiting_fetch_reads_what_advanced_and_not_all_again(desk: SlicedDesk, monkeypatch: Any) -> None:
    desk.create("t", 100)
    size = len(batch(b"a"))
    given = waiting_for_many(desk, min_bytes=3 * size)
    read = counted_reads(monkeypatch)
    desk.ask(produce("t", 5, batch(b"a")), P)
    desk.ask(produce("t", 9, batch(b"a")), P)
    assert given.parts is None and read == [5, 9]
    desk.ask(produce("t", 5, batch(b"b")), P)
    desk.settle(given)
    answer = desk.answer_of(given, "FetchRequest", F)
    found = {each.partition_index: values_of(each) for each in answer.responses[0].partitions if each.records}
    assert found == {5: [b"a", b"b"], 9: [b"a"]} and len(answer.responses[0].partitions) == 100
    assert desk.waiting.count == 0 and not desk.replicas.table["t", 0].waiters


def test_what_advances_while_a_large_fetch_is_read_is_not_missed(desk: SlicedDesk) -> None:
    desk.create("t", 100)
    given = desk.send(fetch("t", *({"partition": index} for index in range(100)), max_wait_ms=500), F)
    desk.end_pass()
    assert desk.slices.count and desk.waiting.count == 0, "partition 0 has been read, others not"
    desk.ask(produce("t", 0, batch(b"a")), P)
    desk.settle(given)
    answer = desk.answer_of(given, "FetchRequest", F)
    assert values_of(answer.responses[0].partitions[0]) == [b"a"]


def test_a_large_waiting_fetch_is_answered_when_its_time_is_up(desk: SlicedDesk) -> None:
    desk.create("t", 100)
    given = waiting_for_many(desk, min_bytes=10_000)
    desk.ask(produce("t", 3, batch(b"a")), P)
    assert given.parts is None
    desk.advance(499)
    assert given.parts is None and desk.waiting.count == 1
    desk.advance(1)
    desk.settle(given)
    found = [values_of(each) for each in desk.answer_of(given, "FetchRequest", F).responses[0].partitions]
    assert found[3] == [b"a"] and len(found) == 100


def test_many_partitions_that_advance_together_are_read_in_slices(desk: SlicedDesk, monkeypatch: Any) -> None:
    desk.create("t", 100)
    given = waiting_for_many(desk, min_bytes=1 << 30, max_bytes=1 << 30)
    read = counted_reads(monkeypatch)
    for index in range(100):
        desk.send(produce("t", index, batch(b"a")), P)
    desk.end_pass()
    assert 0 < len(read) < 50, "a slice of them"
    while desk.slices.count:
        desk.turn()
    assert given.parts is None and desk.waiting.count == 1
    desk.advance(500)
    desk.settle(given)
    partitions = desk.answer_of(given, "FetchRequest", F).responses[0].partitions
    assert [values_of(each) for each in partitions] == [[b"a"]] * 100


def test_a_closed_connection_ends_a_large_fetch_wherever_it_is(desk: SlicedDesk) -> None:
    desk.create("t", 100)
    waiting_for_many(desk)
    desk.forget_waiters(desk.connection)
    assert desk.waiting.count == 0 and not any(desk.replicas.table["t", i].waiters for i in range(100))
    given = desk.send(fetch("t", *({"partition": index} for index in range(100)), max_wait_ms=500), F)
    desk.connection.closed = "gone"
    while desk.slices.count:
        desk.turn()
    assert given.parts is None and desk.waiting.count == 0


@pytest.mark.parametrize("size", [1, 100])
def test_a_waiting_fetch_of_two_topics_is_answered_when_one_goes(desk: SlicedDesk, size: int) -> None:
    desk.create("t", size)
    desk.create("u", size)
    Topic, Item = messages.FetchRequest.FetchTopic, messages.FetchRequest.FetchPartition
    request = fetch("t", max_wait_ms=500)
    request.topics = [
        Topic(topic=name, partitions=[Item(partition=i, partition_max_bytes=100) for i in range(size)])
        for name in ("t", "u")
    ]
    given = desk.send(request, F)
    while desk.slices.count:
        desk.turn()
    desk.end_pass()
    assert given.parts is None and desk.waiting.count == 1
    del desk.image.topics["u"]
    for index in range(size):
        desk.storage.delete("u", index)
    desk.end_pass()
    desk.settle(given)
    answer = desk.answer_of(given, "FetchRequest", F)
    assert [(topic.topic, {each.error_code for each in topic.partitions}) for topic in answer.responses] == [
        ("t", {0}),
        ("u", {errors.UNKNOWN_TOPIC_OR_PARTITION}),
    ]
    assert desk.waiting.count == 0 and not desk.replicas.table["t", 0].waiters


def test_min_bytes_beyond_max_bytes_wait_for_no_more_than_those(desk: SlicedDesk) -> None:
    desk.create("t")
    given = desk.send(fetch("t", {}, max_wait_ms=500, min_bytes=1 << 30, max_bytes=50), F)
    desk.end_pass()
    assert given.parts is None
    desk.ask(produce("t", 0, batch(b"a")), P)
    assert values_of(desk.answer_of(given, "FetchRequest", F).responses[0].partitions[0]) == [b"a"]


def never(error: Exception) -> None:
    raise AssertionError(error)


class Standing:
    """The part of a partition that Waiting uses."""

    def __init__(self) -> None:
        self.waiters: dict[Any, None] = {}


def test_of_many_that_are_woken_a_pass_asks_some() -> None:
    timers: list[Callable[[], None]] = []

    class Timer:
        def cancel(self) -> None:
            pass

    def call_later(delay_ms: int, callback: Callable[..., None], *arguments: Any) -> Timer:
        if delay_ms == 0:
            timers.append(callback)
        return Timer()

    waiting, partition, asked = Waiting(call_later), Standing(), []
    for number in range(3000):
        waiting.wait(
            [partition],  # type: ignore[list-item]
            500,
            lambda expired, moved, number=number: bool(asked.append(number)) or True,  # type: ignore[misc]
            never,
        )
    waiting.advanced(partition)  # type: ignore[arg-type]
    passes = 0
    while waiting.woken:
        before = len(asked)
        waiting.ask_woken()
        passes += 1
        assert len(asked) - before <= PARTITIONS_IN_A_PASS // PARTITIONS_OF_ANY
        assert not waiting.woken or len(timers) == passes, "another pass is asked for"
    assert asked == list(range(3000)) and not partition.waiters and waiting.count == 0


def test_leaving_a_partition_that_many_wait_for_costs_the_same_each_time() -> None:
    class Timer:
        def cancel(self) -> None:
            pass

    def cost(size: int) -> float:
        waiting, partition = Waiting(lambda *_: Timer()), Standing()
        waiters = [waiting.wait([partition], 500, lambda expired, moved: True, never) for _ in range(size)]  # type: ignore[list-item]
        begun = time.thread_time()
        for waiter in reversed(waiters):
            waiting.cancel(waiter)
        return time.thread_time() - begun

    assert min(cost(20_000) for _ in range(3)) < 12 * min(cost(5_000) for _ in range(3))


def test_a_request_that_fails_while_it_waits_ends_its_connection_and_no_other(desk: SlicedDesk) -> None:
    desk.create("t")
    partition = desk.replicas.table["t", 0]
    first, second = Connection(), Connection()
    told: list[str] = []

    def fail(expired: bool, moved: Any) -> bool:
        raise RuntimeError("broken")

    def succeed(expired: bool, moved: Any) -> bool:
        told.append("asked")
        return True

    desk.wait(first, [partition], 500, fail)
    desk.wait(second, [partition], 500, succeed)
    desk.waiting.advanced(partition)
    desk.end_pass()
    assert first.closed is not None and second.closed is None
    assert told == ["asked"] and desk.waiting.count == 0 and not partition.waiters


# -- describing


def test_the_same_producers_are_not_described_without_end(desk: SlicedDesk, monkeypatch: Any) -> None:
    prepared(desk)
    Request = messages.DescribeProducersRequest
    monkeypatch.setattr(describe_producers, "EXTRA_MAX", 3 * describe_producers.BYTES_OF_PRODUCER)

    def ask(indexes: list[int], name: str = "t") -> Any:
        given = desk.send(Request(topics=[Request.TopicRequest(name=name, partition_indexes=indexes)]), 0)
        while desk.slices.count:
            desk.turn()
        if desk.connection.closed:
            return desk.connection.closed
        return [
            len(each.active_producers)
            for each in desk.answer_of(given, "DescribeProducersRequest", 0).topics[0].partitions
        ]

    assert ask(list(range(100))) == [1] * 100
    assert ask([0] * 4) == [1] * 4
    assert "again and again" in ask([0] * 5)
    desk.connection = Connection()
    assert "again and again" in ask([0, 1, 2], name="!" * 200)


# -- by timestamp


def by_time(desk: SlicedDesk, timestamp: int, index: int = 0) -> Any:
    given = desk.send(list_offsets([("t", [index])], timestamp), 7)
    desk.settle(given)
    return desk.answer_of(given, "ListOffsetsRequest", 7).topics[0].partitions[0]


@pytest.mark.parametrize("codec", ["none", "gzip"])
def test_after_records_are_deleted_inside_a_batch_times_are_looked_for_behind_them(
    desk: SlicedDesk, codec: str
) -> None:
    desk.create("t")
    for base in (0, 10):
        entries: list[Any] = [(None, b"x", [], NOW_MS + base + place) for place in range(10)]
        desk.ask(produce("t", 0, records.build(entries, codec=codec)), P)
    Request = messages.DeleteRecordsRequest
    item = Request.DeleteRecordsPartition(partition_index=0, offset=4)
    desk.ask(Request(timeout_ms=1, topics=[Request.DeleteRecordsTopic(name="t", partitions=[item])]), 2)
    found = [
        (answer.offset, answer.timestamp - NOW_MS)
        for answer in (by_time(desk, NOW_MS + t) for t in (0, 3, 4, 5))
    ]
    assert found == [(4, 4), (4, 4), (4, 4), (5, 5)]
    item.offset = 10
    desk.ask(Request(timeout_ms=1, topics=[Request.DeleteRecordsTopic(name="t", partitions=[item])]), 2)
    assert by_time(desk, NOW_MS).offset == 10
    item.offset = 20
    desk.ask(Request(timeout_ms=1, topics=[Request.DeleteRecordsTopic(name="t", partitions=[item])]), 2)
    assert by_time(desk, NOW_MS).offset == -1


def test_a_record_that_reached_the_time_only_before_the_start_leaves_the_search_to_later_batches(
    desk: SlicedDesk,
) -> None:
    desk.create("t")
    desk.ask(produce("t", 0, records.build([(None, b"", [], NOW_MS + 9), (None, b"", [], NOW_MS)])), P)
    desk.ask(produce("t", 0, batch(b"old", timestamp=NOW_MS + 1)), P)
    desk.ask(produce("t", 0, batch(b"new", timestamp=NOW_MS + 8)), P)
    desk.storage.partitions["t", 0].delete_records(1)
    assert by_time(desk, NOW_MS + 8).offset == 3


def test_a_record_at_the_high_watermark_is_not_found_yet(desk: SlicedDesk) -> None:
    desk.create("t")
    for second in range(3):
        desk.ask(produce("t", 0, batch(b"x", timestamp=NOW_MS + second)), P)
    partition = desk.storage.partitions["t", 0]
    partition.high_watermark = partition.last_stable_offset = 2
    assert by_time(desk, NOW_MS + 1).offset == 1
    assert by_time(desk, NOW_MS + 2).offset == -1
    answer = desk.ask(fetch("t", {"fetch_offset": 2}), F).responses[0].partitions[0]
    assert (answer.error_code, len(answer.records)) == (0, 0)
    answer = desk.ask(fetch("t", {"fetch_offset": 1}), F).responses[0].partitions[0]
    assert values_of(answer) == [b"x"], "the one below, and no more"


def test_a_partition_that_goes_while_a_time_is_looked_for_is_unknown(desk: SlicedDesk) -> None:
    desk.create("t", 2)
    desk.settle(desk.send(produce("t", 0, zeros(timestamp=NOW_MS)), P))
    given = desk.send(list_offsets([("t", [0])], NOW_MS + 1), 7)
    assert desk.answer_of(given, "ListOffsetsRequest", 7) is not None, (
        "the batch is too old to be looked into"
    )
    given = desk.send(list_offsets([("t", [0])], NOW_MS), 7)
    desk.end_pass()
    assert given.parts is None
    desk.image.topics["t"].partitions = []
    desk.storage.delete("t", 0)
    desk.settle(given)
    answer = desk.answer_of(given, "ListOffsetsRequest", 7).topics[0].partitions[0]
    assert answer.error_code == errors.UNKNOWN_TOPIC_OR_PARTITION
    assert desk.storage.online, "and its directory has not failed"


def test_a_segment_that_goes_while_a_time_is_looked_for_is_passed_over(desk: SlicedDesk) -> None:
    desk.create("t")
    mixed = records.build([(None, b"", [], NOW_MS + 5), (None, bytes(8 * MIB), [], NOW_MS)], codec="gzip")
    desk.settle(desk.send(produce("t", 0, mixed), P))
    partition = desk.storage.partitions["t", 0]
    partition.roll(NOW_MS)
    desk.ask(produce("t", 0, batch(b"new", timestamp=NOW_MS + 5)), P)
    partition.delete_records(1)  # the batch has the timestamp, but not the rest of the batch
    given = desk.send(list_offsets([("t", [0])], NOW_MS + 5), 7)
    desk.end_pass()
    assert given.parts is None
    partition.retire(1, NOW_MS)
    desk.settle(given)
    answer = desk.answer_of(given, "ListOffsetsRequest", 7).topics[0].partitions[0]
    assert (answer.error_code, answer.offset) == (0, 2)


# -- exact bounds of the wire


def test_a_batch_that_just_fits_is_taken_and_given_out(desk: SlicedDesk) -> None:
    data = batch(b"x" * 1000)
    size = len(data)
    for name, taken in ((size, True), (size - 1, False)):
        desk.create(f"max{name}", max_message_bytes=str(name))
        code = produced(desk.ask(produce(f"max{name}", 0, data), P)).error_code
        assert code == (0 if taken else errors.MESSAGE_TOO_LARGE)
    desk.create("t", 2)
    for index in (0, 0, 1):
        desk.ask(produce("t", index, data), P)
    for left, sizes in (
        (2 * size, [2 * size, 0]),
        (2 * size - 1, [2 * size - 1, 0]),
        (3 * size, [2 * size, size]),
    ):
        answer = desk.ask(fetch("t", {}, {"partition": 1}, max_bytes=left), F)
        found = [len(each.records) for each in answer.responses[0].partitions]
        assert found == sizes
    answer = desk.ask(fetch("t", {"partition_max_bytes": size}), F).responses[0].partitions[0]
    assert len(answer.records) == size
