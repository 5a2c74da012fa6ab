"""`pykafkad transactions`: how its command line is read, what is asked, waited out and shown, with a small fake broker.
compat_tests/tools compares the same with Kafka's tool."""

from __future__ import annotations

import json
from typing import Any

import pytest

from pykafkad import errors, messages, tools
from pykafkad.net.connection import Connection
from pykafkad.tools import admin_transactions, transactions_hanging
from pykafkad.tools.commands import Command, CommandLine
from pykafkad.tools.java import long_hash
from pykafkad.tools.options import INTEGER, OptionError, Usage, flag, value
from tests.unit.tools_kit import NODE, FakeBroker, install

START_MS = 1_700_000_000_000
NOW_S = START_MS / 1000 + 3600
Producer = messages.DescribeProducersResponse.ProducerState


class TransactionBroker(FakeBroker):
    """Transactional ids with what they have open, and producers of partitions."""

    def __init__(self) -> None:
        super().__init__()
        self.states: dict[str, tuple[int, str, list[tuple[str, int]]]] = {}
        self.producers: dict[tuple[str, int], list[Any]] = {}

    def ListTransactions(self, request: Any) -> Any:
        rows = [
            messages.ListTransactionsResponse.TransactionState(
                transactional_id=id, producer_id=producer_id, transaction_state=state
            )
            for id, (producer_id, state, _) in self.states.items()
            if not request.producer_id_filters or producer_id in request.producer_id_filters
        ]
        code = self.fault("ListTransactions")
        return messages.ListTransactionsResponse(error_code=code, transaction_states=rows)

    def DescribeTransactions(self, request: Any) -> Any:
        (id,) = request.transactional_ids
        row = messages.DescribeTransactionsResponse.TransactionState(transactional_id=id)
        row.error_code = self.fault("DescribeTransactions")
        if id not in self.states:
            row.error_code = row.error_code or errors.TRANSACTIONAL_ID_NOT_FOUND
        else:
            row.producer_id, row.transaction_state, partitions = self.states[id]
            row.transaction_start_time_ms = START_MS if partitions else -1
            row.topics = [
                messages.DescribeTransactionsResponse.TopicData(topic=topic, partitions=[index])
                for topic, index in partitions
            ]
        return messages.DescribeTransactionsResponse(transaction_states=[row])

    def DescribeProducers(self, request: Any) -> Any:
        topics = []
        for topic in request.topics:
            rows = [
                messages.DescribeProducersResponse.PartitionResponse(
                    partition_index=index,
                    error_code=self.fault("DescribeProducers"),
                    active_producers=self.producers.get((topic.name, index), []),
                )
                for index in topic.partition_indexes
            ]
            topics.append(messages.DescribeProducersResponse.TopicResponse(name=topic.name, partitions=rows))
        return messages.DescribeProducersResponse(topics=topics)

    def WriteTxnMarkers(self, request: Any) -> Any:
        (marker,) = request.markers
        (topic,) = marker.topics
        row = messages.WriteTxnMarkersResponse.WritableTxnMarkerPartitionResult(
            partition_index=topic.partition_indexes[0], error_code=self.fault("WriteTxnMarkers")
        )
        answered = messages.WriteTxnMarkersResponse.WritableTxnMarkerTopicResult(
            name=topic.name, partitions=[row]
        )
        result = messages.WriteTxnMarkersResponse.WritableTxnMarkerResult(
            producer_id=marker.producer_id, topics=[answered]
        )
        return messages.WriteTxnMarkersResponse(markers=[result])


@pytest.fixture
def broker(monkeypatch: pytest.MonkeyPatch) -> TransactionBroker:
    broker = TransactionBroker()
    install(monkeypatch, broker)
    monkeypatch.setattr("time.time", lambda: NOW_S)
    broker.create("t", 2)
    return broker


def run(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    capsys.readouterr()
    code = tools.main("transactions", ["--bootstrap-server", "127.0.0.1:9092", *arguments])
    found = capsys.readouterr()
    return code, found.out, found.err


def producer(id: int, start: int, *, epoch: int = 0, coordinator: int = 0, ago_ms: int = 3_600_000) -> Any:
    return Producer(
        producer_id=id,
        producer_epoch=epoch,
        coordinator_epoch=coordinator,
        last_sequence=3,
        last_timestamp=int(NOW_S * 1000) - ago_ms,
        current_txn_start_offset=start,
    )


# -- the command line

COMMANDS = {"show": Command("", "topic"), "showy": Command(""), "drop": Command("")}
TABLE = (
    value("server", "s", ""),
    value("topic", "t", "", available_with=("show", "drop")),
    value("number", "n", "", kind=INTEGER, default="7", available_with=("drop",)),
    flag("number-of", "", available_with=("drop",)),
)


def read(words: str) -> CommandLine:
    return CommandLine(COMMANDS, TABLE, words.split())


def test_options_stand_before_and_behind_the_command() -> None:
    for words in ("--server s show --topic t", "show --topic=t --server s", "show --to t --serv=s"):
        line = read(words)
        assert (line.command, line.text("server"), line.text("topic")) == ("show", "s", "t")


def test_a_unique_beginning_is_enough_and_the_last_value_counts() -> None:
    line = read("d --number 1 --number -2")
    assert (line.command, line.integer("number"), line.has("topic")) == ("drop", -2, False)
    assert read("drop").integer("number") == 7
    assert read("drop --number-of").has("number-of")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("", "too few arguments"),
        ("show", "argument --topic is required"),
        ("sh --topic t", "ambiguous command: sh could match show, showy"),
        ("nothing", "invalid choice: 'nothing' (choose from 'show', 'showy', 'drop')"),
        ("show --topic", "argument --topic: expected one argument"),
        ("show --topic -x", "argument --topic: expected one argument"),
        ("show --topic t more words", "unrecognized arguments: 'more words'"),
        ("showy --topic t", "unrecognized arguments: '--topic'"),
        ("--topic t showy", "unrecognized arguments: '--topic'"),
        ("drop --numbers", "unrecognized arguments: '--numbers'; did you mean --number?"),
        ("drop --num 1", "ambiguous option: --num could match --number, --number-of"),
        ("drop -x", "unrecognized arguments: '-x'"),
        (
            "drop --number 1x",
            "argument --number: could not convert '1x' to Integer (For input string: \"1x\")",
        ),
    ],
)
def test_what_is_wrong_with_a_command_line(words: str, said: str) -> None:
    with pytest.raises((OptionError, Usage)) as problem:
        read(words)
    assert str(problem.value) == said


def test_help_needs_nothing_else(capsys: pytest.CaptureFixture[str]) -> None:
    for words in (["--help"], ["describe", "-h"]):
        code, out, err = run(capsys, *words)
        assert (code, err) == (0, "") and "forceTerminateTransaction" in out and "--transactional-id" in out
    assert run(capsys, "-v") == (0, "4.3.1\n", "")


# -- transactional ids


def test_list_and_describe(broker: TransactionBroker, capsys: pytest.CaptureFixture[str]) -> None:
    broker.states = {"a": (5, "Ongoing", [("t", 1), ("t", 0)]), "b": (6, "Odd", [])}
    code, out, _ = run(capsys, "list")
    assert (code, out.splitlines()[1:]) == (
        0,
        [
            "a              \t1          \t5         \tOngoing         \t",
            "b              \t1          \t6         \tUnknown         \t",
        ],
    )
    code, out, _ = run(capsys, "describe", "--transactional-id", "a")
    row = [cell.strip() for cell in out.splitlines()[1].split("\t")]
    assert (code, row[-4:-1]) == (0, [str(START_MS), "3600000", "t-1,t-0"])
    row = run(capsys, "describe", "--transactional-id", "b")[1].splitlines()[1].split("\t")
    assert [cell.strip() for cell in row[-4:]] == ["None", "None", "", ""]


def test_filters_are_sent(broker: TransactionBroker, capsys: pytest.CaptureFixture[str]) -> None:
    run(capsys, "list")
    asked = broker.asked[-1]
    assert (asked.duration_filter, asked.transactional_id_pattern) == (-1, None)
    run(capsys, "list", "--duration-filter", "5", "--transactional-id-pattern", "a.*")
    asked = broker.asked[-1]
    assert (asked.duration_filter, asked.transactional_id_pattern) == (5, "a.*")


def test_a_filter_that_an_old_broker_would_ignore_is_an_error(
    broker: TransactionBroker, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    version_for = Connection.version_for

    def old(self: Connection, request: Any, at_most: int = 9) -> int:
        return version_for(
            self, request, 0 if isinstance(request, messages.ListTransactionsRequest) else at_most
        )

    monkeypatch.setattr(Connection, "version_for", old)
    code, _, err = run(capsys, "list", "--duration-filter", "5")
    assert code == 1 and "Duration filter can be set only when using API version 1 or higher" in err
    code, _, err = run(capsys, "list", "--transactional-id-pattern", "x")
    assert code == 1 and "only when using API version 2 or higher" in err


def test_a_coordinator_that_loads_is_waited_for(
    broker: TransactionBroker, capsys: pytest.CaptureFixture[str]
) -> None:
    broker.states = {"a": (5, "Empty", [])}
    broker.fail("ListTransactions", errors.COORDINATOR_LOAD_IN_PROGRESS)
    assert run(capsys, "list")[0] == 0
    broker.fail("DescribeTransactions", errors.NOT_COORDINATOR, errors.COORDINATOR_LOAD_IN_PROGRESS)
    assert run(capsys, "describe", "--transactional-id", "a")[0] == 0
    broker.fail("InitProducerId", errors.CONCURRENT_TRANSACTIONS, errors.COORDINATOR_NOT_AVAILABLE)
    assert run(capsys, "forceTerminateTransaction", "--transactionalId", "a") == (0, "", "")
    asked = broker.asked[-1]
    assert (asked.transactional_id, asked.producer_id, asked.producer_epoch) == ("a", -1, -1)
    assert asked.transaction_timeout_ms == 30_000


def test_errors_are_told_in_kafkas_words(
    broker: TransactionBroker, capsys: pytest.CaptureFixture[str]
) -> None:
    detail = " Enable debug logging for additional detail.\n"
    broker.fail("ListTransactions", errors.INVALID_REGULAR_EXPRESSION)
    assert run(capsys, "list")[2] == (
        "Failed to list transactions: ListTransactions request sent to broker 1 failed with an unexpected "
        "exception." + detail
    )
    broker.fail("ListTransactions", errors.COORDINATOR_NOT_AVAILABLE)
    assert "because the coordinator is shutting down." in run(capsys, "list")[2]
    assert run(capsys, "describe", "--transactional-id", "x") == (
        1,
        "",
        "Failed to describe transaction state of transactional-id `x`: DescribeTransactions request for "
        "transactionalId `x` failed because the ID could not be found." + detail,
    )
    broker.fail("InitProducerId", errors.TRANSACTIONAL_ID_AUTHORIZATION_FAILED)
    assert run(capsys, "forceTerminateTransaction", "--transactionalId", "x")[2] == (
        "Failed to force terminate transactionalId `x`: InitProducerId request for transactionalId `x` failed due "
        "to transactional ID authorization failure." + detail
    )


def test_json(broker: TransactionBroker, capsys: pytest.CaptureFixture[str]) -> None:
    broker.states = {"a": (5, "Ongoing", [("t", 0)])}
    broker.producers["t", 0] = [producer(5, -1, coordinator=-1)]
    listed = json.loads(run(capsys, "list", "--json")[1])["transactions"]
    assert listed == [{"transactional_id": "a", "coordinator": NODE, "producer_id": 5, "state": "Ongoing"}]
    described = json.loads(run(capsys, "describe", "--transactional-id", "a", "--json")[1])
    assert described["transactions"][0]["partitions"] == [{"topic": "t", "partition": 0}]
    shown = json.loads(run(capsys, "describe-producers", "--topic", "t", "--partition", "0", "--json")[1])
    (row,) = shown["producers"]
    assert (row["coordinator_epoch"], row["transaction_start_offset"], row["last_sequence"]) == (
        None,
        None,
        3,
    )
    code, out, _ = run(capsys, "describe", "--transactional-id", "x", "--json")
    assert (code, json.loads(out)["error"]["name"]) == (1, "TRANSACTIONAL_ID_NOT_FOUND")
    assert run(capsys, "abort", "--topic", "t", "--partition", "0", "--json")[0] == 1


# -- producers


def test_describe_producers(broker: TransactionBroker, capsys: pytest.CaptureFixture[str]) -> None:
    broker.producers["t", 0] = [producer(5, 9), producer(6, -1, coordinator=-1)]
    for how in ([], ["--broker-id", "1"]):
        broker.fail("DescribeProducers", errors.UNKNOWN_TOPIC_OR_PARTITION)
        code, out, _ = run(capsys, "describe-producers", "--topic", "t", "--partition", "0", *how)
        rows = [[cell.strip() for cell in line.split("\t")] for line in out.splitlines()]
        stamp = str(START_MS)
        assert code == 0
        assert rows[1:] == [["5", "0", "0", "3", stamp, "9", ""], ["6", "0", "-1", "3", stamp, "None", ""]]
    broker.fail("DescribeProducers", errors.NOT_LEADER_OR_FOLLOWER)
    code, _, err = run(capsys, "describe-producers", "--topic", "t", "--partition", "0", "--broker-id", "1")
    assert code == 1 and "for partition t-0 on broker 1: Failed to describe active producers" in err


def test_abort_by_offset_takes_the_producer_from_the_partition(
    broker: TransactionBroker, capsys: pytest.CaptureFixture[str]
) -> None:
    broker.producers["t", 1] = [producer(5, -1), producer(6, 4, epoch=2, coordinator=-1)]
    where = ["abort", "--topic", "t", "--partition", "1", "--start-offset"]
    assert run(capsys, *where, "-1") == (
        1,
        "",
        "Could not find any open transactions starting at offset -1 on partition t-1\n",
    )
    broker.fail("WriteTxnMarkers", errors.NOT_LEADER_OR_FOLLOWER)
    assert run(capsys, *where, "4") == (0, "", "")
    (marker,) = broker.asked[-1].markers
    assert (marker.producer_id, marker.producer_epoch, marker.coordinator_epoch) == (6, 2, 0)
    assert not marker.transaction_result
    assert [(row.name, row.partition_indexes) for row in marker.topics] == [("t", [1])]


def test_abort_that_is_refused(broker: TransactionBroker, capsys: pytest.CaptureFixture[str]) -> None:
    by_ids = ["--producer-id", "5", "--producer-epoch", "1", "--coordinator-epoch", "3"]
    for code, said in (
        (errors.INVALID_PRODUCER_EPOCH, "failed due an invalid producer epoch"),
        (errors.CLUSTER_AUTHORIZATION_FAILED, "failed due to cluster authorization error"),
        (errors.TRANSACTION_COORDINATOR_FENCED, "provided coordinator epoch 3 has been fenced by the active"),
        (errors.INVALID_REQUEST, "failed due to unexpected error: This most likely occurs because"),
    ):
        broker.fail("WriteTxnMarkers", code)
        done, _, err = run(capsys, "abort", "--topic", "t", "--partition", "0", *by_ids)
        assert done == 1 and said in err
    _, _, err = run(capsys, "abort", "--topic", "t", "--partition", "0")
    assert err.startswith("The transaction to abort must be identified either with --start-offset")
    _, _, err = run(capsys, "abort", "--topic", "t", "--partition", "0", *by_ids[:4])
    assert err == "Missing required argument --coordinator-epoch\n"


# -- hanging transactions


def test_hanging_are_those_that_no_coordinator_will_end(
    broker: TransactionBroker, capsys: pytest.CaptureFixture[str]
) -> None:
    broker.create("u", 1)
    broker.states = {"mine": (5, "Ongoing", [("t", 0)]), "gone": (6, "Empty", [])}
    broker.producers = {
        ("t", 0): [producer(5, 1), producer(6, 2), producer(7, 3), producer(8, -1)],
        ("t", 1): [producer(5, 4), producer(9, 5, ago_ms=60_000)],
        ("u", 0): [producer(7, 6)],
    }

    def found(*how: str) -> list[tuple[str, int, int]]:
        code, out, _ = run(capsys, "find-hanging", *how, "--json")
        assert code == 0
        return [(row["topic"], row["partition"], row["producer_id"]) for row in json.loads(out)["hanging"]]

    assert sorted(found("--broker-id", "1")) == [("t", 0, 6), ("t", 0, 7), ("t", 1, 5), ("u", 0, 7)]
    assert sorted(found("--topic", "t")) == [("t", 0, 6), ("t", 0, 7), ("t", 1, 5)]
    assert found("--topic", "t", "--partition", "1") == [("t", 1, 5)]
    assert found("--topic", "t", "--partition", "1", "--max-transaction-timeout", "0") == [
        ("t", 1, 5),
        ("t", 1, 9),
    ]
    assert found("--topic", "t", "--max-transaction-timeout", "60") == []
    assert found("--broker-id", "2") == []


def test_an_id_that_goes_meanwhile_leaves_its_transaction_hanging(
    broker: TransactionBroker, capsys: pytest.CaptureFixture[str]
) -> None:
    broker.states = {"mine": (5, "Ongoing", [("t", 0)])}
    broker.producers = {("t", 0): [producer(5, 1)]}
    broker.fail("DescribeTransactions", errors.TRANSACTIONAL_ID_NOT_FOUND)
    code, out, _ = run(capsys, "find-hanging", "--topic", "t")
    assert (code, [cell.strip() for cell in out.splitlines()[1].split("\t")][:3]) == (0, ["t", "0", "5"])
    broker.fail("DescribeTransactions", errors.TRANSACTIONAL_ID_AUTHORIZATION_FAILED)
    code, _, err = run(capsys, "find-hanging", "--topic", "t")
    assert code == 1 and err.startswith("Failed to describe 1 transactions: ")


def test_partitions_are_asked_for_in_pieces(
    broker: TransactionBroker, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(transactions_hanging, "AT_A_TIME", 2)
    broker.create("many", 5)
    assert run(capsys, "find-hanging", "--topic", "many")[0] == 0
    asked = [request for request in broker.asked if type(request).__name__ == "DescribeProducersRequest"]
    assert [len(request.topics[0].partition_indexes) for request in asked] == [2, 2, 1]


def test_what_find_hanging_needs(broker: TransactionBroker, capsys: pytest.CaptureFixture[str]) -> None:
    assert "requires either --topic or --broker-id" in run(capsys, "find-hanging")[2]
    _, _, err = run(capsys, "find-hanging", "--broker-id", "1", "--partition", "0")
    assert err == "The --partition argument requires --topic to be provided\n"
    _, _, err = run(capsys, "find-hanging", "--topic", "no-such")
    assert err.startswith("Failed to describe 1 topics: This server does not host this topic-partition.")


def test_a_specs_text() -> None:
    spec = admin_transactions.AbortSpec(("t", 1), 4, 2, 0)
    assert str(spec) == (
        "AbortTransactionSpec(topicPartition=t-1, producerId=4, producerEpoch=2, coordinatorEpoch=0)"
    )


def test_hash_of_a_long() -> None:
    assert [long_hash(key) for key in (0, 5, 1 << 32, (1 << 32) + 1, -1)] == [0, 5, 1, 0, 0]
