"""ListTransactions and DescribeTransactions: what they show of each state, what they select and what they refuse."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from pykafkad import errors, slices
from pykafkad.handlers import describe_transactions, list_transactions
from pykafkad.messages import (
    AddPartitionsToTxnRequest,
    DescribeTransactionsRequest,
    EndTxnRequest,
    InitProducerIdRequest,
    ListTransactionsRequest,
)
from pykafkad.pure.regex.automaton import finish, for_any_text
from pykafkad.pure.regex.parsing import InvalidPattern
from tests.unit.coordinator_kit import GroupDesk
from tests.unit.data_kit import NOW_MS

STATE = "__transaction_state"


class TransactionDesk(GroupDesk):
    """With a few partitions of `__transaction_state`."""

    def __init__(self, directory: Path, partitions: int = 3) -> None:
        super().__init__(directory)
        self.create(STATE, partitions, cleanup_policy="compact")
        self.create("t", 3)
        self.create("u", 1)

    def begin(self, name: str, *partitions: tuple[str, int]) -> tuple[int, int]:
        request = InitProducerIdRequest(
            transactional_id=name, transaction_timeout_ms=60_000, producer_id=-1, producer_epoch=-1
        )
        answer = self.ask(request, 4)
        assert answer.error_code == 0
        producer = answer.producer_id, answer.producer_epoch
        if partitions:
            self.add_partitions(name, producer, *partitions)
        return producer

    def add_partitions(self, name: str, producer: tuple[int, int], *partitions: tuple[str, int]) -> None:
        topics = [
            AddPartitionsToTxnRequest.AddPartitionsToTxnTopic(name=topic, partitions=[index])
            for topic, index in partitions
        ]
        request = AddPartitionsToTxnRequest(
            v3_and_below_transactional_id=name,
            v3_and_below_producer_id=producer[0],
            v3_and_below_producer_epoch=producer[1],
            v3_and_below_topics=topics,
        )
        for topic in self.ask(request, 3).results_by_topic_v3_and_below:
            assert [row.partition_error_code for row in topic.results_by_partition] == [0]

    def end(self, name: str, producer: tuple[int, int], committed: bool) -> None:
        request = EndTxnRequest(
            transactional_id=name,
            producer_id=producer[0],
            producer_epoch=producer[1],
            committed=committed,
        )
        self.send(request, 4)
        self.end_pass()

    def ask_list(self, version: int = 2, **filters: Any) -> Any:
        return self.ask(ListTransactionsRequest(**filters), version)

    def listed(self, version: int = 2, **filters: Any) -> dict[str, str]:
        answer = self.ask_list(version, **filters)
        assert answer.error_code == 0
        return {row.transactional_id: row.transaction_state for row in answer.transaction_states}

    def describe(self, *names: str) -> list[Any]:
        rows = self.ask(DescribeTransactionsRequest(transactional_ids=list(names)), 0).transaction_states
        assert [row.transactional_id for row in rows] == list(names)
        return list(rows)


@pytest.fixture
def desk(tmp_path: Path) -> TransactionDesk:
    return TransactionDesk(tmp_path)


# -- DescribeTransactions


def test_an_id_without_and_with_a_transaction(desk: TransactionDesk) -> None:
    desk.begin("empty")
    producer = desk.begin("open", ("t", 2), ("u", 0), ("t", 0))
    empty, opened = desk.describe("empty", "open")
    assert (empty.error_code, empty.transaction_state, empty.transaction_start_time_ms) == (0, "Empty", -1)
    assert (empty.transaction_timeout_ms, empty.topics) == (60_000, [])
    assert (opened.producer_id, opened.producer_epoch) == producer
    assert (opened.transaction_state, opened.transaction_start_time_ms) == ("Ongoing", NOW_MS)
    assert [(row.topic, row.partitions) for row in opened.topics] == [("t", [0, 2]), ("u", [0])]


def test_a_prepared_transaction_shows_the_partitions_without_a_marker(desk: TransactionDesk) -> None:
    producer = desk.begin("a", ("t", 0), ("t", 1))
    asked: list[Any] = []
    desk.markers.write = lambda marker, partitions, done: asked.append(done)  # type: ignore[method-assign]
    desk.end("a", producer, committed=True)
    (row,) = desk.describe("a")
    assert row.transaction_state == "PrepareCommit"
    assert [(each.topic, each.partitions) for each in row.topics] == [("t", [0, 1])]
    desk.settle()
    (done,) = asked
    done({("t", 0): errors.NONE, ("t", 1): errors.NOT_LEADER_OR_FOLLOWER})
    desk.end_pass()
    (row,) = desk.describe("a")
    assert [(each.topic, each.partitions) for each in row.topics] == [("t", [1])]


def test_an_ended_transaction_has_no_partitions(desk: TransactionDesk) -> None:
    desk.end("a", desk.begin("a", ("t", 0)), committed=False)
    desk.settle()
    (row,) = desk.describe("a")
    assert (row.transaction_state, row.topics, row.transaction_start_time_ms) == ("CompleteAbort", [], NOW_MS)


def test_ids_that_are_not_there(desk: TransactionDesk) -> None:
    desk.begin("a")
    rows = desk.describe("a", "", "b", "a")
    assert [row.error_code for row in rows] == [
        0,
        errors.INVALID_REQUEST,
        errors.TRANSACTIONAL_ID_NOT_FOUND,
        0,
    ]
    assert rows[2].producer_id == 0


def test_without_the_topic_nobody_coordinates(tmp_path: Path) -> None:
    desk = GroupDesk(tmp_path)
    (row,) = desk.ask(DescribeTransactionsRequest(transactional_ids=["a"]), 0).transaction_states
    assert row.error_code == errors.NOT_COORDINATOR
    answer = desk.ask(ListTransactionsRequest(), 2)
    assert (answer.error_code, answer.transaction_states) == (0, [])


# -- ListTransactions


@pytest.fixture
def full(desk: TransactionDesk) -> TransactionDesk:
    desk.begin("empty")
    for name, committed in (("done", True), ("undone", False)):
        desk.end(name, desk.begin(name, ("t", 0)), committed)
        desk.settle()
    desk.begin("open-1", ("t", 1))
    desk.advance(5_000)
    desk.begin("open-2", ("t", 2))
    return desk


ALL = {
    "empty": "Empty",
    "done": "CompleteCommit",
    "undone": "CompleteAbort",
    "open-1": "Ongoing",
    "open-2": "Ongoing",
}


@pytest.mark.parametrize("version", [0, 1, 2])
def test_all_are_listed_without_filters(full: TransactionDesk, version: int) -> None:
    assert full.listed(version) == ALL


def test_nothing_is_listed_while_something_loads(
    full: TransactionDesk, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A list that is not whole would say that transactions are gone."""
    with monkeypatch.context() as slow:
        slow.setattr(slices, "SLICE_US", 0)
        after = full.restarted()
        after.advance(0)
        answer = after.ask_in_turns(ListTransactionsRequest(), 2)
    assert (answer.error_code, answer.transaction_states) == (errors.COORDINATOR_LOAD_IN_PROGRESS, [])
    after.settle()
    assert len(after.ask(ListTransactionsRequest(), 2).transaction_states) == len(ALL)


def test_states_are_selected_by_their_exact_names(full: TransactionDesk) -> None:
    assert set(full.listed(state_filters=["Ongoing", "Empty"])) == {"open-1", "open-2", "empty"}
    answer = full.ask_list(state_filters=["Ongoing", "odd", "ongoing", "odd", "Dead", ""])
    assert answer.unknown_state_filters == ["odd", "ongoing", ""]
    assert len(answer.transaction_states) == 2
    assert full.listed(state_filters=["odd"]) == {}


def test_producers_are_selected_by_their_ids(full: TransactionDesk) -> None:
    ids = {row.transactional_id: row.producer_id for row in full.ask_list().transaction_states}
    assert set(full.listed(producer_id_filters=[ids["done"], 77])) == {"done"}
    assert full.listed(producer_id_filters=[-1]) == {}


def test_transactions_are_selected_by_how_long_they_have_run(full: TransactionDesk) -> None:
    """What has not begun has run since 1970, and what has ended runs on: as in Kafka."""
    assert set(full.listed(duration_filter=4_999)) == {"empty", "done", "undone", "open-1"}
    assert set(full.listed(duration_filter=5_000)) == {"empty"}
    assert full.listed(duration_filter=2**62) == {}
    assert set(full.listed(duration_filter=0)) == set(ALL) - {"open-2"}, "it has begun this moment"
    assert full.listed(duration_filter=-1) == full.listed(duration_filter=-3) == ALL


@pytest.mark.parametrize(
    ("pattern", "names"),
    [
        (None, set(ALL)),
        ("", set(ALL)),
        ("open-.", {"open-1", "open-2"}),
        ("open", set()),
        ("(?i)DO.*|empt[y-z]", {"done", "empty"}),
        (r"(?P<n>\w+)-[[:digit:]]", {"open-1", "open-2"}),
    ],
)
def test_ids_are_selected_by_a_pattern(full: TransactionDesk, pattern: str | None, names: set[str]) -> None:
    assert set(full.listed(transactional_id_pattern=pattern)) == names


@pytest.mark.parametrize("pattern", ["[", "*", "a(?=b)", r"(a)\1", "a{1001}", r"\C", r"\pL"])
def test_a_pattern_that_is_none_is_refused(full: TransactionDesk, pattern: str) -> None:
    answer = full.ask_list(transactional_id_pattern=pattern, state_filters=["odd"])
    assert answer.error_code == errors.INVALID_REGULAR_EXPRESSION
    assert (answer.transaction_states, answer.unknown_state_filters) == ([], [])


def test_a_pattern_that_takes_too_long_is_refused(
    full: TransactionDesk, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(list_transactions, "STEPS_MAX", 20)
    pattern = "(a?){1000}.*(b?){500}"
    assert full.ask_list(transactional_id_pattern=pattern).error_code == errors.INVALID_REGULAR_EXPRESSION


def test_filters_go_together(full: TransactionDesk) -> None:
    assert set(full.listed(state_filters=["Ongoing"], duration_filter=4_999, transactional_id_pattern=".*"))
    found = full.listed(state_filters=["Ongoing"], duration_filter=4_999, transactional_id_pattern=".*-.")
    assert set(found) == {"open-1"}


# -- many


def test_many_ids_are_listed_and_described_in_pieces(desk: TransactionDesk) -> None:
    for number in range(300):
        desk.begin(f"id-{number}")

    class Context:
        version = 2
        refuse: Any = None

    def steps(work: Any) -> int:
        count = 0
        for _ in work:
            count += 1
        return count

    context: Any = Context()
    request = ListTransactionsRequest(transactional_id_pattern="id-1.*", state_filters=["Empty"] * 2_000)
    assert steps(list_transactions.handle(desk, request, context)) > 300 // slices.ELEMENTS_AT_ONCE
    asked = DescribeTransactionsRequest(transactional_ids=[f"id-{number}" for number in range(300)])
    assert steps(describe_transactions.handle(desk, asked, context)) >= 300


# -- patterns for any text


@pytest.mark.parametrize(
    ("pattern", "text", "matches"),
    [
        ("é+", "éé", True),
        ("é+", "ee", False),
        ("[^é]", "à", True),
        ("[^é]", "é", False),
        (".", "\n", False),
        ("(?s).", "\n", True),
        (".", "\r", True),
        ("[α-ω]+", "αω", True),
        (r"\w", "é", False),
        (r"\x{41}\Q.*\E", "A.*", True),
    ],
)
def test_patterns_for_any_text(pattern: str, text: str, matches: bool) -> None:
    assert finish(finish(for_any_text(pattern)).matches(text)) == matches


@pytest.mark.parametrize("pattern", [r"\x{e9}", "(?i)é", "(a{1000}){11}", "".join(map(chr, range(500, 800)))])
def test_patterns_for_any_text_that_are_not_supported(pattern: str) -> None:
    with pytest.raises(InvalidPattern, match="not supported"):
        finish(for_any_text(pattern))
