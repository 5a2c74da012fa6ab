"""The tools' consumer: groups, positions, visible records, and how records are shown."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import Any

import pytest

from pykafkad import errors, messages, tools
from pykafkad.hot import records
from pykafkad.net.client import ClientError, Cluster
from pykafkad.net.reaching import Unreachable
from pykafkad.tools import formatters
from pykafkad.tools.consumer import Consumer, check_reset
from pykafkad.tools.membership import ClassicMembership, MemberSettings, assign_ranges
from pykafkad.tools.membership_consumer import ConsumerMembership
from tests.unit.tools_kit import FakeBroker, install

BOOTSTRAP = "127.0.0.1:9092"


@pytest.fixture
def broker(monkeypatch: pytest.MonkeyPatch) -> FakeBroker:
    broker = FakeBroker()
    install(monkeypatch, broker)
    broker.create("t")
    broker.append("t", 0, (b"k1", b"a"), (b"k2", b"b"))
    broker.append("t", 0, (None, b"c"))
    return broker


@pytest.fixture
def made() -> Iterator[Any]:
    consumers: list[Consumer] = []

    def make(**configs: str) -> Consumer:
        named = {"group.id": "g", "auto.offset.reset": "earliest"}
        named |= {key.replace("_", "."): text for key, text in configs.items()}
        consumers.append(Consumer(BOOTSTRAP, named))
        return consumers[-1]

    yield make
    for consumer in consumers:
        consumer.close()


def read(consumer: Consumer) -> list[bytes | None]:
    """The records that are there; an earlier answer may still be on its way."""
    values = []
    for _ in range(3):
        for chunk in consumer.poll(0):
            values += [record.value for _, record in chunk]
            consumer.consumed[chunk.partition] = chunk.next_offset
    return values


# -- positions


def test_a_member_reads_and_commits(broker: FakeBroker, made: Any) -> None:
    consumer = made()
    consumer.subscribe(["t"])
    assert read(consumer) == [b"a", b"b", b"c"]
    consumer.close()
    assert broker.committed["g"] == {("t", 0): 3}
    assert broker.groups["g"] == ("Empty", "consumer")
    again = made()
    again.subscribe(["t"])
    assert read(again) == []
    broker.append("t", 0, (None, b"d"))
    assert read(again) == [b"d"]


def test_a_batch_is_read_from_its_middle(broker: FakeBroker, made: Any) -> None:
    consumer = made()
    consumer.assign({("t", 0): 1})
    assert read(consumer) == [b"b", b"c"]


def test_starts_and_ends(broker: FakeBroker, made: Any) -> None:
    first, last = made(), made()
    first.assign({("t", 0): -2})
    last.assign({("t", 0): -1})
    assert read(first) == [b"a", b"b", b"c"]
    assert read(last) == []
    broker.append("t", 0, (None, b"d"))
    assert read(last) == [b"d"]


def test_a_position_that_is_not_in_the_log_is_reset(broker: FakeBroker, made: Any) -> None:
    consumer = made()
    consumer.assign({("t", 0): 99})
    assert read(consumer) == [b"a", b"b", b"c"]
    strict = made(auto_offset_reset="none")
    strict.assign({("t", 0): 99})
    with pytest.raises(ClientError, match="no reset policy"):
        read(strict)


def test_leaders_that_move_are_found_again(broker: FakeBroker, made: Any) -> None:
    broker.fail("Fetch", errors.NOT_LEADER_OR_FOLLOWER)
    consumer = made()
    consumer.assign({("t", 0): 0})
    assert read(consumer) == [b"a", b"b", b"c"]


def test_a_group_that_is_loading_is_waited_for(broker: FakeBroker, made: Any) -> None:
    broker.fail("FindCoordinator", errors.COORDINATOR_NOT_AVAILABLE)
    broker.fail("JoinGroup", errors.COORDINATOR_LOAD_IN_PROGRESS, 0, errors.NOT_COORDINATOR)
    broker.fail("SyncGroup", errors.REBALANCE_IN_PROGRESS)
    consumer = made()
    consumer.subscribe(["t"])
    assert read(consumer) == [b"a", b"b", b"c"]


def test_a_group_that_refuses_is_told(broker: FakeBroker, made: Any) -> None:
    broker.fail("JoinGroup", errors.INCONSISTENT_GROUP_PROTOCOL)
    consumer = made()
    consumer.subscribe(["t"])
    with pytest.raises(errors.KafkaError, match="INCONSISTENT_GROUP_PROTOCOL"):
        consumer.poll(0)


# -- what is visible


def test_control_batches_are_never_shown(broker: FakeBroker, made: Any) -> None:
    append_transaction(broker, b"kept", 7, commits=True)
    consumer = made()
    consumer.assign({("t", 0): 3})
    assert read(consumer) == [b"kept"]
    assert consumer.consumed == {("t", 0): 5}, "the marker is passed"


def test_aborted_transactions_are_hidden_when_only_what_is_committed_is_read(
    broker: FakeBroker, made: Any
) -> None:
    append_transaction(broker, b"gone", 7, commits=False)
    append_transaction(broker, b"kept", 7, commits=True)
    broker.aborted = [messages.FetchResponse.AbortedTransaction(producer_id=7, first_offset=3)]
    committed, everything = made(isolation_level="read_committed"), made()
    for consumer in (committed, everything):
        consumer.assign({("t", 0): 3})
    assert read(committed) == [b"kept"]
    assert read(everything) == [b"gone", b"kept"]


def append_transaction(broker: FakeBroker, value: bytes, producer_id: int, *, commits: bool) -> None:
    broker.append(
        "t", 0, (None, value), producer_id=producer_id, producer_epoch=0, base_sequence=0, transactional=True
    )
    key = struct.pack(">hh", 0, 1 if commits else 0)
    broker.append(
        "t",
        0,
        (key, struct.pack(">hi", 0, 0)),
        producer_id=producer_id,
        producer_epoch=0,
        transactional=True,
        control=True,
    )


# -- the assignor and the configs


def test_ranges() -> None:
    both = {"m2": (None, ["t", "u"]), "m1": (None, ["t"]), "m0": ("static", ["t"])}
    assert assign_ranges(both, {"t": 4, "u": 1}) == {
        "m0": [("t", 0), ("t", 1)],
        "m1": [("t", 2)],
        "m2": [("t", 3), ("u", 0)],
    }, "static members first, by their instance, then the others by their id"
    assert assign_ranges({"m": (None, ["gone"])}, {}) == {"m": []}


@pytest.mark.parametrize("text", ["earliest", "latest", "none", "by_duration:PT1H"])
def test_reset_policies(text: str) -> None:
    check_reset(text)


@pytest.mark.parametrize("text", ["first", "", "by_duration:", "by_duration:-PT1H", "PT1H"])
def test_no_reset_policies(text: str) -> None:
    with pytest.raises(ClientError, match=r"auto\.offset\.reset"):
        check_reset(text)


def test_assignors_that_are_not_there_are_refused(made: Any) -> None:
    with pytest.raises(ClientError, match="RangeAssignor only"):
        made(partition_assignment_strategy="org.example.Mine").subscribe(["t"])


# -- formatters


def shown(properties: dict[str, str], **fields: Any) -> str:
    row = (fields.get("key"), fields.get("value"), fields.get("headers", []), 5)
    data = records.build([row], base_offset=9)
    (batch,), (record,) = records.scan(data), records.read(data)
    write = formatters.choose(formatters.DEFAULT, properties)
    return write("t", 3, batch, record).decode()


def test_parts_of_a_record() -> None:
    parts = ("timestamp", "partition", "offset", "delivery", "epoch", "headers", "key", "value")
    everything = {f"print.{part}": "true" for part in parts}
    assert shown(everything, key=b"k", value=None, headers=[("h", b"x"), ("i", None)]) == (
        "CreateTime:5\tPartition:3\tOffset:9\tDelivery:NOT_PRESENT\tEpoch:NOT_PRESENT\th:x,i:null\tk\tnull\n"
    )
    assert (
        shown({"print.headers": "true", "key.separator": "|", "line.separator": "$"}, value=b"v")
        == "NO_HEADERS|v$"
    )
    assert shown({"print.value": "false"}, value=b"v") == ""
    assert shown({"null.literal": "?"}) == "?\n"


@pytest.mark.parametrize(
    ("name", "data", "text"),
    [
        ("Integer", struct.pack(">i", -5), "-5"),
        ("Long", struct.pack(">q", 2**40), "1099511627776"),
        ("Short", struct.pack(">h", 7), "7"),
        ("Double", struct.pack(">d", 1e10), "1.0E10"),
        ("Float", struct.pack(">f", 0.1), "0.1"),
        ("Boolean", b"\1", "true"),
        ("Bytes", b"a\\\0\xff", "a\\x5C\\x00\\xFF"),
        ("String", "é".encode(), "é"),
    ],
)
def test_deserializers(name: str, data: bytes, text: str) -> None:
    properties = {"value.deserializer": f"org.apache.kafka.common.serialization.{name}Deserializer"}
    assert shown(properties, value=data) == f"{text}\n"


def test_deserializers_say_what_does_not_fit() -> None:
    package = "org.apache.kafka.common.serialization."
    with pytest.raises(ClientError, match="Size of data received by IntegerDeserializer is not 4"):
        shown({"value.deserializer": package + "IntegerDeserializer"}, value=b"abc")
    with pytest.raises(ClientError, match=r"Unable to instantiate a deserializer from org\.example\.Mine"):
        shown({"value.deserializer": "org.example.Mine"})
    latin = {"value.deserializer": package + "StringDeserializer"}
    latin["value.deserializer.value.deserializer.encoding"] = "latin-1"
    assert shown(latin, value=b"\xe9") == "é\n"


# -- the tool


def run(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    capsys.readouterr()
    code = tools.main("consume", ["--bootstrap-server", BOOTSTRAP, *arguments])
    found = capsys.readouterr()
    return code, found.out, found.err


def test_consume(broker: FakeBroker, capsys: pytest.CaptureFixture[str]) -> None:
    how = ["--topic", "t", "--from-beginning", "--max-messages", "2", "--group", "g"]
    assert run(capsys, *how) == (0, "a\nb\n", "Processed a total of 2 messages\n")
    assert broker.committed["g"] == {("t", 0): 2}, "what was not shown is not committed"
    assert run(capsys, "--topic", "t", "--group", "g", "--max-messages", "1")[1] == "c\n"


def test_consume_commits_nothing_without_a_group(
    broker: FakeBroker, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(capsys, "--topic", "t", "--from-beginning", "--timeout-ms", "0")[1] == "a\nb\nc\n"
    assert not any(broker.committed.values())


def test_records_that_cannot_be_shown(broker: FakeBroker, capsys: pytest.CaptureFixture[str]) -> None:
    how = ["--topic", "t", "--partition", "0", "--offset", "earliest", "--max-messages", "3"]
    how += ["--value-deserializer", "org.apache.kafka.common.serialization.LongDeserializer"]
    code, out, err = run(capsys, *how)
    assert (code, out) == (1, "") and "is not 8" in err
    code, out, err = run(capsys, *how, "--skip-message-on-error")
    assert code == 0 and err.count("skipping this message") == 3


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ([], "Exactly one of the following arguments is required: [topic], [include]"),
        (["--include", "x", "--partition", "0"], "The topic is required when partition is specified."),
        (["--topic", "t", "--offset", "1"], "The partition is required when offset is specified."),
        (
            ["--topic", "t", "--partition", "0", "--offset", "-1"],
            "The provided offset value '-1' is incorrect.",
        ),
        (["--topic", "t", "--partition", "0", "--group", "g"], "Options group and partition cannot be"),
        (
            ["--topic", "t", "--group", "a", "--command-property", "group.id=b"],
            "The group ids provided in different",
        ),
    ],
)
def test_command_lines_that_are_refused(
    broker: FakeBroker, capsys: pytest.CaptureFixture[str], arguments: list[str], said: str
) -> None:
    code, _, err = run(capsys, *arguments)
    assert code == 1 and err.startswith(said)


def test_what_goes_wrong_while_it_reads_is_a_failure(
    broker: FakeBroker, capsys: pytest.CaptureFixture[str]
) -> None:
    """Kafka's tool ends with 0."""
    broker.fail("Fetch", errors.TOPIC_AUTHORIZATION_FAILED)
    code, out, err = run(capsys, "--topic", "t", "--partition", "0", "--offset", "earliest")
    assert (code, out) == (1, "") and err.startswith("ERROR ")


def test_a_topic_that_is_not_there_is_told_once(
    broker: FakeBroker, capsys: pytest.CaptureFixture[str]
) -> None:
    configs = {"group.id": "g", "metadata.max.age.ms": "0", "allow.auto.create.topics": "false"}
    made = Consumer(BOOTSTRAP, configs)
    made.subscribe(["none"])
    told = []
    for _ in range(4):
        made.poll(0)
        told.append(capsys.readouterr().err)
    assert told == ["", "WARN topic none does not exist yet: waiting for it\n", "", ""]
    made.close()


@pytest.mark.parametrize("kind", [ClassicMembership, ConsumerMembership])
def test_a_heartbeat_that_reaches_nobody_is_no_traceback(
    kind: type[ClassicMembership] | type[ConsumerMembership], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The one of the newer protocol is what joins: the consumer tells it. The classic one's other requests find out."""
    configs = {"group.id": "g", "heartbeat.interval.ms": "1"}
    member = kind(Cluster(BOOTSTRAP), Cluster(BOOTSTRAP), MemberSettings(configs))
    turns = []

    def beat() -> None:
        turns.append(1)
        if len(turns) == 3 and isinstance(member, ClassicMembership):
            member._stop.set()
        raise Unreachable("No broker answers")

    monkeypatch.setattr(member, "_beat", beat)
    if isinstance(member, ClassicMembership):
        member._must_join = False
    member._beat_for_ever()
    assert len(turns) == (3 if kind is ClassicMembership else 1)
    assert isinstance(member._fatal, Unreachable) == (kind is ConsumerMembership)


def test_an_expression_that_is_none(broker: FakeBroker, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(capsys, "--include", "[")[2].startswith("--include [: unterminated character set")
