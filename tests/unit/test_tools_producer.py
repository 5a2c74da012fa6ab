"""The tools' producer: batches, partitions, retries in order, and the lines that become records."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from pykafkad import errors
from pykafkad.hot import records
from pykafkad.net.client import ClientError
from pykafkad.tools import batching
from pykafkad.tools.line_reader import LineReader, Lines
from pykafkad.tools.producer import Producer
from pykafkad.tools.producer_settings import ProducerSettings
from tests.unit.columns_kit import Row, columns
from tests.unit.tools_kit import HANG_UP, FakeBroker, install


@pytest.fixture
def broker(monkeypatch: pytest.MonkeyPatch) -> FakeBroker:
    broker = FakeBroker()
    install(monkeypatch, broker)
    return broker


def producer(**configs: str) -> Producer:
    return Producer("127.0.0.1:9092", {key.replace("_", "."): text for key, text in configs.items()})


def send(made: Producer, *values: str, topic: str = "t", key: bytes | None = None) -> list[Any]:
    """The errors of the records, None for those that arrived."""
    faults: list[Any] = []
    for value in values:
        made.send(topic, key, value.encode(), timestamp_ms=1, done=faults.append)
    made.flush()
    return faults


# -- partitions and batches


@pytest.mark.parametrize(
    ("key", "hashed"),
    # Kafka's own UtilsTest
    [
        (b"21", -973932308),
        (b"foobar", -790332482),
        (b"a-little-bit-long-string", -985981536),
        (b"a-little-bit-longer-string", -1486304829),
        (b"lkjh234lh9fiuh90y23oiuhsafujhadof229phr9h19h89h8", -58897971),
        (b"abc", 479470107),
    ],
)
def test_murmur2(key: bytes, hashed: int) -> None:
    assert records.murmur2(key) == hashed & 0xFFFFFFFF


def test_records_without_a_key_stay_for_a_batch() -> None:
    sticky = batching.Sticky(100)
    chosen = [sticky.choose(range(50), 10) for _ in range(30)]
    assert [len(set(chosen[at : at + 10])) for at in (0, 10, 20)] == [1, 1, 1]
    assert sticky.choose([7], 10) == 7, "a partition without a leader is left"


def test_the_size_of_a_record_is_never_more_than_counted() -> None:
    rows = [(b"k" * 300, b"v" * 70_000, [("é" * 40, b"h" * 200), ("n", None)], 2**40), (None, None, [], 1)]
    counted = batching.BATCH_OVERHEAD + sum(
        batching.size_of(key, value, headers) for key, value, headers, _ in rows
    )
    assert len(records.build(rows)) <= counted


def test_batches_are_sent_when_full_and_carry_sequences(broker: FakeBroker) -> None:
    broker.create("t")
    made = producer(batch_size="200", linger_ms="1000")
    assert send(made, *(f"value {number:03}" for number in range(30))) == [None] * 30
    batches = records.scan(broker.topics["t"][0])
    assert len(batches) > 3 and batches[0].producer_id == 1
    assert [batch.base_sequence for batch in batches] == [batch.base_offset for batch in batches]


def test_without_idempotence_there_are_no_producer_ids(broker: FakeBroker) -> None:
    broker.create("t")
    send(producer(acks="1"), "x")
    assert records.scan(broker.topics["t"][0])[0].producer_id == -1


# -- columns


def send_columns(made: Producer, rows: Sequence[Row]) -> list[tuple[bytes | None, Exception | None]]:
    """Of each batch its first record's value, and its error."""
    heard: list[tuple[bytes | None, Exception | None]] = []
    made.send_columns("t", columns(rows), lambda row, error: heard.append((row[1], error)))
    made.flush()
    return heard


def test_columns_go_where_their_rows_would_go_in_their_order(broker: FakeBroker) -> None:
    broker.create("t", 3)
    rows = [(f"k{n % 10}".encode(), f"value {n:03}".encode(), 1_700_000_000_000 + n) for n in range(100)]
    made = producer(batch_size="300", linger_ms="1000")
    made.send("t", b"k1", b"first", timestamp_ms=1)
    heard = send_columns(made, rows)
    assert len(heard) > 10 and {error for _, error in heard} == {None}
    expected: list[list[bytes | None]] = [[], [], []]
    for key, value, _ in [(b"k1", b"first", 1), *rows]:
        expected[batching.partition_of_key(key or b"", 3)].append(value)
    assert [broker.values("t", index) for index in range(3)] == expected
    sequences = [batch.base_sequence for batch in records.scan(broker.topics["t"][0])]
    assert sequences == [batch.base_offset for batch in records.scan(broker.topics["t"][0])]


def test_columns_without_keys_stay_together(broker: FakeBroker) -> None:
    broker.create("t", 3)
    send_columns(producer(), [(None, b"x", 1)] * 5)
    assert sorted(len(broker.values("t", index)) for index in range(3)) == [0, 0, 5]


def test_columns_that_are_too_large_for_the_topic_are_halved(broker: FakeBroker) -> None:
    broker.create("t")
    broker.fail("Produce", errors.MESSAGE_TOO_LARGE, errors.MESSAGE_TOO_LARGE)
    heard = send_columns(producer(), [(b"k", str(n).encode(), 1) for n in range(4)])
    assert broker.values("t") == [b"0", b"1", b"2", b"3"] and {error for _, error in heard} == {None}


def test_a_row_that_no_request_can_have_fails_alone(broker: FakeBroker) -> None:
    broker.create("t")
    heard = send_columns(producer(max_request_size="100"), [(b"k", b"a", 1), (b"k", b"b" * 200, 1)])
    assert [str(error) for _, error in heard if error] == [
        "MESSAGE_TOO_LARGE: The message is 222 bytes when serialized which is larger than 100, which is the value "
        "of the max.request.size configuration."
    ]
    assert broker.values("t") == [b"a"]


# -- faults


@pytest.mark.parametrize("code", [errors.NOT_LEADER_OR_FOLLOWER, errors.KAFKA_STORAGE_ERROR, HANG_UP])
def test_what_failed_is_sent_again_once(broker: FakeBroker, code: int) -> None:
    broker.create("t")
    broker.fail("Produce", 0, code, 0, code)
    made = producer(batch_size="100")
    values = [f"v{number}" for number in range(20)]
    assert send(made, *values) == [None] * 20
    assert broker.values("t") == [value.encode() for value in values], "in order, and once"


def test_an_answer_that_is_lost_makes_no_duplicates(broker: FakeBroker) -> None:
    broker.create("t")
    made = producer()
    taken = broker._take
    lost = iter([True])

    def take(topic: str, index: int, data: bytes) -> int:
        code = taken(topic, index, data)
        if next(lost, False):
            raise ConnectionError("after it was written")
        return code

    broker._take = take  # type: ignore[method-assign]
    assert send(made, "a", "b") == [None, None]
    assert broker.values("t") == [b"a", b"b"]


def test_retries_end(broker: FakeBroker) -> None:
    broker.create("t")
    broker.fail("Produce", *[errors.NOT_LEADER_OR_FOLLOWER] * 4)
    (fault,) = send(producer(retries="3"), "x")
    assert fault.code == errors.NOT_LEADER_OR_FOLLOWER


def test_a_batch_that_is_too_large_is_halved(broker: FakeBroker) -> None:
    broker.create("t")
    broker.fail("Produce", errors.MESSAGE_TOO_LARGE, errors.MESSAGE_TOO_LARGE)
    values = [f"v{number}" for number in range(9)]
    assert send(producer(), *values) == [None] * 9
    assert broker.values("t") == [value.encode() for value in values]
    assert [batch.count for batch in records.scan(broker.topics["t"][0])] == [2, 2, 5]


def test_behind_a_record_that_is_given_up_the_others_arrive(broker: FakeBroker) -> None:
    broker.create("t")
    broker.fail("Produce", errors.MESSAGE_TOO_LARGE)
    made = producer(batch_size="1")
    faults = send(made, "too large", "b", "c")
    assert sorted(str(fault) for fault in faults) == ["MESSAGE_TOO_LARGE", "None", "None"]
    assert broker.values("t") == [b"b", b"c"]
    assert {batch.producer_id for batch in records.scan(broker.topics["t"][0])} == {2}, "a new one has no gap"


def test_records_that_no_request_can_hold(broker: FakeBroker) -> None:
    broker.create("t")
    (fault,) = send(producer(max_request_size="100"), "x" * 100)
    assert "which is the value of the max.request.size configuration" in str(fault)


def test_a_topic_that_is_not_there(broker: FakeBroker, monkeypatch: pytest.MonkeyPatch) -> None:
    broker.fail("Metadata", *[errors.LEADER_NOT_AVAILABLE] * 3)
    assert send(producer(), "x", topic="new") == [None], "it was created by being asked for"
    broker.fail("Metadata", errors.INVALID_TOPIC_EXCEPTION)
    (fault,) = send(producer(), "x", topic="bad name")
    assert fault.text == "Invalid topics: [bad name]"


@pytest.mark.parametrize(
    ("configs", "said"),
    [
        ({"acks": "2"}, "Invalid value 2 for configuration acks"),
        ({"compression.type": "rar"}, "Invalid value rar for configuration compression.type"),
        ({"enable.idempotence": "true", "acks": "1"}, "Must set acks to all"),
        ({"enable.idempotence": "true", "retries": "0"}, "Must set retries to non-zero"),
        ({"transactional.id": "x", "enable.idempotence": "false"}, "Cannot set a transactional.id"),
        ({"batch.size": "many"}, "Invalid value many for configuration batch.size: Not a number of type INT"),
    ],
)
def test_configs_that_are_refused(configs: dict[str, str], said: str) -> None:
    with pytest.raises(ClientError, match=said):
        ProducerSettings(configs)


def test_security_that_is_not_there_is_refused() -> None:
    with pytest.raises(ClientError, match=r"security\.protocol=SASL_SSL"):
        producer(security_protocol="SASL_SSL")


# -- lines


def lines(*chunks: bytes) -> list[str]:
    reader = Lines()
    return [line for chunk in (*chunks, b"") for line in reader.feed(chunk)]


def test_lines_end_as_javas_do() -> None:
    assert lines(b"a\nb\r\nc\rd") == ["a", "b", "c", "d"]
    assert lines(b"a\r", b"\nb\r", b"c\n\n") == ["a", "b", "c", ""]
    assert lines("é😀".encode()[:3], "é😀".encode()[3:] + b"\xff\n") == ["é😀\N{REPLACEMENT CHARACTER}"]
    assert lines() == []


def test_keys_and_headers() -> None:
    reader = LineReader({"parse.key": "true", "parse.headers": "TRUE", "null.marker": "-"})
    assert reader.read("h1:v1,h2:-\tk\tv\tw") == (b"k", b"v\tw", [("h1", b"v1"), ("h2", None)])
    assert reader.read("-\t-\t-") == (None, None, [])
    with pytest.raises(ClientError, match="No key separator found on line number 3: 'a:b\tx'"):
        reader.read("a:b\tx")
    with pytest.raises(ClientError, match="No header key separator found in pair 'ab' on line number 4"):
        reader.read("ab\tk\tv")
    with pytest.raises(ClientError, match="Header keys should not be equal to the null marker"):
        reader.read("-:v\tk\tv")


def test_errors_in_lines_can_be_passed_over() -> None:
    reader = LineReader({"parse.key": "true", "ignore.error": "true"})
    assert reader.read("no key") == (None, b"no key", [])


@pytest.mark.parametrize(
    "properties",
    [
        {"headers.delimiter": ","},
        {"headers.separator": ":"},
        {"headers.key.separator": "\t"},
        {"null.marker": "\t"},
        {"null.marker": ","},
    ],
)
def test_separators_that_are_the_same(properties: dict[str, str]) -> None:
    with pytest.raises(ClientError, match="may not be equal"):
        LineReader(properties)
