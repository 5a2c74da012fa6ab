"""Records of formats 0 and 1 on their way in and out: what becomes of them, and that it is done in steps."""

from __future__ import annotations

from collections.abc import Generator, Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from pykafkad import compression, errors, legacy_records
from pykafkad.down_conversion import Messages, Wrapped, converted
from pykafkad.errors import KafkaError
from pykafkad.hot import records
from pykafkad.hot.records import Rules
from pykafkad.legacy_records import INSIDE_MAX, Conversion
from pykafkad.slices import finish
from tests.unit.cluster_kit import ClusterDesk, known, state, topic_known
from tests.unit.data_kit import NOW_MS, Desk, fetch, produce

CODECS = ("none", "gzip", "snappy", "lz4")
RULES = Rules()


def batch(codec: str, count: int = 3, value: bytes = b"v", first: int = 0) -> bytes:
    rows = [
        (None if n % 3 == 1 else b"k%d" % n, None if n % 3 == 2 else value, [("h", b"x")], 1000 + n)
        for n in range(count)
    ]
    return records.build(rows, codec=codec, base_offset=first)


def row(record: Any) -> tuple[Any, ...]:
    return record.offset, record.timestamp, record.key, record.value


def of_set(magic: int, codec: str, count: int, value: bytes = b"v") -> bytes:
    """A message for each, or one with all of them in it."""
    number = compression.NONE if codec == "none" else records.CODECS.index(codec)
    out = Wrapped(magic, number, None) if number else Messages(magic, None)
    for each in records.read(batch("none", count, value)):
        finish(out.add(each))
    return finish(out.end())


@pytest.mark.parametrize("magic", [0, 1])
@pytest.mark.parametrize("version", [3, 9])
def test_since_version_3_producers_send_no_old_formats(tmp_path: Path, magic: int, version: int) -> None:
    desk = Desk(tmp_path)
    desk.create("t")
    answer = desk.ask(produce("t", 0, of_set(magic, "none", 2)), version)
    assert answer.responses[0].partition_responses[0].error_code == errors.INVALID_RECORD
    assert desk.storage.partitions["t", 0].log_end_offset == 0


def test_headers_which_old_formats_do_not_have_are_not_made(monkeypatch: pytest.MonkeyPatch) -> None:
    """A few kilobytes may have a million of them."""
    read, made = records.read_in_slices, []

    def watched(*arguments: Any, **named: Any) -> Iterator[Any]:
        for record in read(*arguments, **named):
            if record is not None:
                made.append(record.headers)
            yield record

    monkeypatch.setattr(records, "read_in_slices", watched)
    finish(converted(batch("gzip"), 1, 0))
    assert made == [[], [], []]


def steps(work: Generator[Any, None, Any]) -> tuple[int, Any]:
    count = 0
    while True:
        try:
            next(work)
        except StopIteration as end:
            return count, end.value
        count += 1


def advances(conversion: Conversion) -> int:
    count = 1
    while not conversion.advance():
        count += 1
    return count


# -- out


@pytest.mark.parametrize("magic", [0, 1])
@pytest.mark.parametrize("codec", CODECS)
def test_what_a_batch_becomes_reads_as_the_batch(magic: int, codec: str) -> None:
    source = batch(codec, 5, first=40) + batch(codec, 2, first=50)
    expected = [row(each) for each in records.read(source)]
    if magic == 0:
        expected = [(offset, -1, key, value) for offset, _, key, value in expected]
    found = [row(each) for each in records.read(finish(converted(source + batch("none", 50)[:-1], magic, 0)))]
    assert found == expected


@pytest.mark.parametrize(("codec", "kept"), [("none", 2), ("gzip", 5)])
def test_what_was_not_asked_for_is_left_out_where_it_stands_alone(codec: str, kept: int) -> None:
    found = list(records.read(finish(converted(batch(codec, 5), 1, 3))))
    assert len(found) == kept


@pytest.mark.parametrize(("codec", "announced"), [("none", b"\xff"), ("zstd", None)])
def test_an_answer_is_as_long_as_it_was_said_to_be(codec: str, announced: bytes | None) -> None:
    """What is missing is announced in a message that does not end there."""
    control = records.build([(bytes(4), b"", [], 0)], transactional=True, control=True, producer_id=1)
    if announced is None:
        with pytest.raises(KafkaError) as caught:
            finish(converted(control + batch(codec), 1, 0))
        assert caught.value.code == errors.UNSUPPORTED_COMPRESSION_TYPE
    else:
        found = finish(converted(batch(codec) + control, 1, 0))
        assert len(found) == len(batch(codec)) + len(control)
        last = finish(converted(batch(codec), 1, 0))
        assert found[len(last) :][:8] in (announced * 8, b"")
        assert finish(converted(control, 1, 0))[:8] == announced * 8
    assert finish(converted(batch("none")[:-1], 1, 0)) == b""


def test_what_is_missing_is_announced_again_after_what_kafka_reads_at_once() -> None:
    source = batch("none", 5, bytes(100_000), first=40)
    found = finish(converted(source, 1, 44))
    assert [record.offset for record in records.read(found)] == [44] and len(found) == len(source)
    heads = [at for at in range(len(found)) if found[at : at + 8] == b"\xff" * 8]
    assert len(heads) > 2 and {after - before for before, after in pairwise(heads)} == {128 * 1024}
    left = [int.from_bytes(found[at + 8 : at + 12], "big") for at in heads]
    assert left == [len(found) - at + 1 for at in heads]


@pytest.mark.parametrize("codec", CODECS)
def test_many_records_go_out_in_steps(codec: str) -> None:
    count, _ = steps(converted(batch(codec, 5000), 1, 0))
    assert count >= 5000 / 8


@pytest.mark.parametrize("codec", ["gzip", "lz4"])
def test_a_record_that_is_large_goes_out_in_steps(codec: str) -> None:
    size = 8 << 20
    count, found = steps(converted(batch(codec, 1, bytes(size)), 1, 0))
    assert count >= size / 65_536 and len(found) < size / 50


# -- in


@pytest.mark.parametrize("magic", [0, 1])
@pytest.mark.parametrize("codec", CODECS)
@pytest.mark.parametrize("target", ["producer", "uncompressed", "gzip", "zstd"])
def test_messages_become_one_batch(magic: int, codec: str, target: str) -> None:
    conversion = Conversion(of_set(magic, codec, 30), Rules(compression=target), NOW_MS, "orders-0")
    advances(conversion)
    batches = conversion.finish(NOW_MS)
    data = bytes(batches.data)
    expected = [row(each) for each in records.read(batch("none", 30))]
    if magic == 0:
        expected = [(offset, -1, key, value) for offset, _, key, value in expected]
    assert [row(each) for each in records.read(data)] == expected
    (header,) = records.scan(data)
    assert header.codec == {"producer": codec, "uncompressed": "none"}.get(target, target)
    assert batches.offset_of_max_timestamp_delta == (29 if magic else 0)


@pytest.mark.parametrize("codec", CODECS)
def test_many_messages_come_in_in_steps(codec: str) -> None:
    conversion = Conversion(of_set(1, codec, 5000), RULES, NOW_MS, "orders-0")
    assert advances(conversion) >= 5000 / 100


def test_what_expands_too_far_is_refused() -> None:
    data = of_set(1, "gzip", 5, bytes(INSIDE_MAX // 4))
    conversion = Conversion(data, RULES, NOW_MS, "orders-0")
    with pytest.raises(records.RecordsError) as caught:
        advances(conversion)
    assert caught.value.code == errors.INVALID_RECORD and len(data) < 200_000


def test_what_is_whole_is_looked_at_first() -> None:
    """A bad checksum at the end refuses all, before anything is converted."""
    data = bytearray(of_set(1, "none", 3))
    data[-1] ^= 1
    with pytest.raises(records.RecordsError) as caught:
        advances(Conversion(bytes(data), RULES, NOW_MS, "orders-0"))
    assert caught.value.code == errors.CORRUPT_MESSAGE
    assert not legacy_records.has_batch(data[:-40]) or legacy_records.is_legacy(data)


# -- who serves it


@pytest.fixture
def cluster(tmp_path: Path) -> ClusterDesk:
    return cluster_with(tmp_path)


def cluster_with(directory: Path, **configs: str) -> ClusterDesk:
    """`configs`: the topic's."""
    desk = ClusterDesk(directory, zookeeper_connect="localhost:1")
    texts = {key.replace("_", "."): text for key, text in configs.items()}
    desk.cluster_image.configs[2, "orders"] = texts
    desk.live(0)
    desk.lead_and_follow(state(replicas=[0], isr=[0]))
    desk.live(0, topic_states=[topic_known(known(replicas=[0], isr=[0]))])
    return desk


@pytest.mark.parametrize("version", [0, 1, 2])
def test_a_broker_of_a_cluster_takes_and_gives_them(cluster: ClusterDesk, version: int) -> None:
    magic = min(version // 2, 1)
    given = cluster.send(produce("orders", 0, of_set(magic, "gzip", 400)), version)
    for _ in range(100):
        cluster.end_pass()
        cluster.advance(0)
    answer = cluster.answer_of(given, "ProduceRequest", version)
    assert answer.responses[0].partition_responses[0].error_code == errors.NONE
    waits = cluster.send(fetch("orders", {"partition": 0, "fetch_offset": 0}), version)
    for _ in range(100):
        cluster.end_pass()
        cluster.advance(0)
    found = cluster.answer_of(waits, "FetchRequest", version).responses[0].partitions[0]
    assert found.high_watermark == 400
    assert [each.offset for each in records.read(found.records)] == list(range(400))


def found_by(cluster: ClusterDesk, version: int, most: int = 1 << 20, **fields: Any) -> Any:
    asked = {"partition": 0, "partition_max_bytes": most}
    waits = cluster.send(fetch("orders", asked, max_bytes=most, **fields), version)
    for _ in range(20):
        cluster.end_pass()
        cluster.advance(0)
    return cluster.answer_of(waits, "FetchRequest", version).responses[0].partitions[0]


@pytest.mark.parametrize(("version", "magic"), [(0, 0), (1, 0), (2, 1), (3, 1), (4, 2)])
def test_what_is_given_is_of_the_format_that_the_version_knows(
    cluster: ClusterDesk, version: int, magic: int
) -> None:
    cluster.ask(produce("orders", 0, batch("none")), 9)
    row = found_by(cluster, version)
    assert row.error_code == errors.NONE and row.records[16] == magic
    assert found_by(cluster, version, replica_id=-2).records == row.records, "tools are no followers"


@pytest.mark.parametrize(("version", "comes"), [(2, False), (3, True)])
def test_a_batch_that_is_larger_than_asked_for_comes_since_version_3(
    cluster: ClusterDesk, version: int, comes: bool
) -> None:
    cluster.ask(produce("orders", 0, batch("none", value=bytes(500))), 9)
    row = found_by(cluster, version, 100)
    assert (row.error_code, bool(row.records)) == (errors.NONE, comes)


@pytest.mark.parametrize(
    ("configs", "code"),
    [
        ({"message_downconversion_enable": "false"}, errors.UNSUPPORTED_VERSION),
        ({"compression_type": "zstd"}, errors.UNSUPPORTED_COMPRESSION_TYPE),
        (
            {"compression_type": "zstd", "message_downconversion_enable": "false"},
            errors.UNSUPPORTED_COMPRESSION_TYPE,
        ),
        ({"compression_type": "gzip"}, errors.NONE),
    ],
)
def test_topics_may_have_nothing_for_old_clients(tmp_path: Path, configs: dict[str, str], code: int) -> None:
    cluster = cluster_with(tmp_path, **configs)
    cluster.ask(produce("orders", 0, batch("none")), 9)
    row = found_by(cluster, 3)
    assert (row.error_code, bool(row.records)) == (code, code == errors.NONE)
    assert row.high_watermark == (3 if code == errors.NONE else -1)
    assert found_by(cluster, 10).error_code == errors.NONE


def test_old_clients_are_told_of_errors_that_they_know(cluster: ClusterDesk) -> None:
    cluster.ask(produce("orders", 0, batch("none")), 9)
    replica = cluster.replicas.table["orders", 0]
    found = type(replica.log).read

    def broken(*arguments: Any, **fields: Any) -> Any:
        raise KafkaError(errors.KAFKA_STORAGE_ERROR)

    type(replica.log).read = broken  # type: ignore[method-assign]
    try:
        assert found_by(cluster, 3).error_code == errors.NOT_LEADER_OR_FOLLOWER
        assert found_by(cluster, 4).error_code == errors.KAFKA_STORAGE_ERROR
    finally:
        type(replica.log).read = found  # type: ignore[method-assign]
    asked = fetch("orders", {"partition": 7}, {"partition": 0})
    waits = cluster.send(asked, 3)
    for _ in range(20):
        cluster.end_pass()
        cluster.advance(0)
    rows = cluster.answer_of(waits, "FetchRequest", 3).responses[0].partitions
    codes = {row.partition_index: row.error_code for row in rows}
    assert codes == {0: errors.NONE, 7: errors.UNKNOWN_TOPIC_OR_PARTITION}


def test_a_file_that_cannot_be_read_is_another_leaders(cluster: ClusterDesk) -> None:
    cluster.ask(produce("orders", 0, batch("none")), 9)
    cluster.submit = lambda work, done: done(OSError("input/output error"))
    assert found_by(cluster, 3).error_code == errors.NOT_LEADER_OR_FOLLOWER


def test_an_old_fetch_waits(cluster: ClusterDesk) -> None:
    waits = cluster.send(fetch("orders", {"partition": 0}, max_wait_ms=500), 3)
    cluster.end_pass()
    cluster.advance(0)
    assert waits is not None and cluster.answer_of(waits, "FetchRequest", 3) is None
    cluster.ask(produce("orders", 0, batch("none")), 9)
    for _ in range(10):
        cluster.end_pass()
        cluster.advance(0)
    answer = cluster.answer_of(waits, "FetchRequest", 3)
    assert len(list(records.read(answer.responses[0].partitions[0].records))) == 3


@pytest.mark.parametrize(
    ("request_", "version"), [(produce("orders", 0, b""), 2), (fetch("orders", {"partition": 0}), 3)]
)
def test_a_single_node_serves_them_as_little_as_kafka_4(tmp_path: Path, request_: Any, version: int) -> None:
    desk = Desk(tmp_path)
    desk.create("orders")
    assert desk.send(request_, version) is None
    assert desk.connection.closed
