"""The history checker on histories made by hand: for each anomaly some that have it, and some that nearly do."""

from __future__ import annotations

import random
import sys
from collections.abc import Callable
from dataclasses import replace
from types import FrameType
from typing import Any

import pytest

from compat_tests.history import anomalies
from compat_tests.history.anomalies import (
    DUPLICATE,
    G0,
    G1A,
    G1C,
    G1C_WRITES,
    INCONSISTENT_OFFSETS,
    INTERNAL_NONMONOTONIC_POLL,
    INTERNAL_POLL_SKIP,
    LOST_WRITE,
    NONMONOTONIC_POLL,
    NONMONOTONIC_SEND,
    POLL_SKIP,
    PRECOMMITTED_READ,
    UNEXPECTED_READ,
    UNSEEN,
)
from compat_tests.history.checker import check, faults, minimal
from compat_tests.history.events import (
    COMMITTED,
    IDEMPOTENT,
    PLAIN,
    TRANSACTIONAL,
    UNCOMMITTED,
    Event,
    merged,
    parse,
)

KINDS = {value for name, value in vars(anomalies).items() if name.isupper() and isinstance(value, str)}


class History:
    """Writes a history: each method adds the events of an operation."""

    def __init__(self) -> None:
        self.events: list[Event] = []

    def add(self, *given: Any, **more: Any) -> History:
        self.events.append(Event(*given, **more))
        return self

    def begin(self, value: str, key: str = "x", by: str = "p", txn: str = "", producer: str = "") -> History:
        kind = producer or (TRANSACTIONAL if txn else IDEMPOTENT)
        return self.add(by, "invoke", "send", key=key, value=value, txn=txn, producer=kind)

    def end(self, value: str, offset: int | None = None, type: Any = "ok", by: str = "p") -> History:
        return self.add(by, type, "send", value=value, offset=offset)

    def send(self, value: str, offset: int | None = None, key: str = "x", **more: Any) -> History:
        by = more.get("by", "p")
        return self.begin(value, key, **more).end(value, offset, by=by)

    def ask(self, txn: str) -> History:
        return self.add("p", "invoke", "commit", txn=txn)

    def commit(self, txn: str, type: Any = "ok") -> History:
        return self.ask(txn).add("p", type, "commit", txn=txn)

    def abort(self, txn: str) -> History:
        return self.add("p", "invoke", "abort", txn=txn).add("p", "ok", "abort", txn=txn)

    def poll(
        self, *read: tuple[int, str], key: str = "x", by: str = "c", isolation: str = COMMITTED, txn: str = ""
    ) -> History:
        return self.add(by, "ok", "poll", records={key: list(read)}, isolation=isolation, txn=txn)

    def move(self, op: Any, by: str = "c", **positions: int | None) -> History:
        return self.add(by, "ok", op, positions=positions)

    def read_all(self) -> History:
        """Each level reads what was written, as a broker without faults shows it."""
        found: dict[str, dict[int, str]] = {}
        for event in self.events:
            if event.op == "send" and event.type == "ok" and event.offset is not None:
                sent = next(one for one in self.events if one.value == event.value)
                found.setdefault(sent.key, {})[event.offset] = event.value
        for key, log in found.items():
            for level in (COMMITTED, UNCOMMITTED):
                self.poll(*sorted(log.items()), key=key, by=f"end {level}", isolation=level)
        return self


def h() -> History:
    return History()


def pair() -> History:
    """Two values of one transaction, acknowledged, and nothing more."""
    return h().send("a", 0, txn="T").send("b", 1, txn="T")


BAD: list[tuple[str, History]] = [
    (LOST_WRITE, h().send("a", 0).send("b", 1).poll((1, "b"))),
    (LOST_WRITE, pair().commit("T").send("c", 3).poll((1, "b"), (3, "c"))),
    # The end of the transaction is unknown, but half of it was seen.
    (LOST_WRITE, pair().commit("T", "unknown").send("c", 3).poll((0, "a"), (3, "c"))),
    # One level sees it, the other does not.
    (LOST_WRITE, h().send("a", 0).send("b", 1).poll((0, "a"), (1, "b"), isolation=UNCOMMITTED).poll((1, "b"))),
    # It was never acknowledged, but read once.
    (LOST_WRITE, h().begin("a").send("b", 1).poll((0, "a"), isolation=UNCOMMITTED).poll((1, "b"))),
    (UNSEEN, h().send("a", 0).send("b", 1).poll((0, "a"))),
    (UNSEEN, h().send("a").poll((0, "b"), key="y")),
    (UNSEEN, pair().commit("T").poll((0, "a"), (1, "b"), isolation=UNCOMMITTED).poll(key="y")),
    (UNSEEN, pair().commit("T", "unknown").poll((0, "a"))),
    (DUPLICATE, h().send("a", 0).poll((0, "a"), (1, "a"))),
    (DUPLICATE, h().begin("a").poll((0, "a")).poll((7, "a"), by="d")),
    (DUPLICATE, h().send("a", 0, txn="T").commit("T").poll((0, "a")).poll((1, "a"), by="d", isolation=UNCOMMITTED)),
    (INCONSISTENT_OFFSETS, h().send("a", 0).send("b", 0, by="q").poll((0, "a"))),
    (INCONSISTENT_OFFSETS, h().begin("a").begin("b").poll((3, "a")).poll((3, "b"), by="d")),
    # An aborted record keeps its place, too.
    (INCONSISTENT_OFFSETS, h().send("a", 0, txn="T").abort("T").send("b", 0, by="q").poll((0, "b"))),
    (UNEXPECTED_READ, h().poll((0, "a"))),
    (UNEXPECTED_READ, h().poll((0, "a")).send("a", 0)),
    (UNEXPECTED_READ, h().send("a", 0).poll((0, "a"), key="y")),
    (G1A, pair().abort("T").poll((0, "a"))),
    (G1A, pair().poll((1, "b"))),
    (G1A, pair().commit("T", "fail").poll((1, "b"))),
    (G1A, h().begin("a").end("a", type="fail").poll((0, "a"), isolation=UNCOMMITTED)),
    (PRECOMMITTED_READ, pair().poll((0, "a"), (1, "b")).commit("T")),
    (PRECOMMITTED_READ, pair().poll((0, "a"), by="p", txn="T").commit("T").poll((1, "b"))),
    (PRECOMMITTED_READ, pair().poll((0, "a")).commit("T", "unknown")),
    (INTERNAL_POLL_SKIP, h().send("a", 0).send("b", 1).send("c", 2).poll((0, "a"), (2, "c"))),
    (INTERNAL_POLL_SKIP, pair().commit("T").send("c", 3).poll((0, "a"), (3, "c")).poll((1, "b"), by="d")),
    # Two polls of one transaction.
    (INTERNAL_POLL_SKIP, pair().commit("T").send("c", 3).poll((0, "a"), txn="U").poll((3, "c"), txn="U")),
    (INTERNAL_POLL_SKIP, pair().abort("T").send("c", 3).poll((0, "a"), (3, "c"), isolation=UNCOMMITTED)),
    (POLL_SKIP, h().send("a", 0).send("b", 1).send("c", 2).poll((0, "a")).poll((2, "c"))),
    (POLL_SKIP, h().send("a", 0).send("b", 1).move("seek", x=0).poll((1, "b"))),
    (POLL_SKIP, h().send("a", 0).send("b", 1).move("assign", x=0).poll((1, "b"))),
    (POLL_SKIP, h().send("a", 0).send("b", 1).send("c", 2).poll((0, "a")).move("seek", y=0).poll((2, "c"))),
    (INTERNAL_NONMONOTONIC_POLL, h().send("a", 0).send("b", 1).poll((1, "b"), (0, "a"))),
    (INTERNAL_NONMONOTONIC_POLL, h().send("a", 0).poll((0, "a"), (0, "a"))),
    (INTERNAL_NONMONOTONIC_POLL, h().send("a", 0).send("b", 1).poll((1, "b"), txn="U").poll((0, "a"), txn="U")),
    (NONMONOTONIC_POLL, h().send("a", 0).send("b", 1).poll((1, "b")).poll((0, "a"))),
    (NONMONOTONIC_POLL, h().send("a", 0).poll((0, "a")).poll((0, "a"))),
    (NONMONOTONIC_POLL, h().send("a", 0).send("b", 1).move("seek", x=1).poll((0, "a"), (1, "b"))),
    (NONMONOTONIC_SEND, h().begin("a").begin("b").end("b", 0).end("a", 1)),
    (NONMONOTONIC_SEND, h().send("a", 5).send("b", 3, by="q")),
    (NONMONOTONIC_SEND, h().send("a", 5).begin("b", by="q", producer=PLAIN).poll((3, "b"))),
    (NONMONOTONIC_SEND, h().begin("a").begin("b").poll((0, "b"), (1, "a"))),
    (G0, h().send("a", 0, txn="T").send("b", 1, txn="U", by="q").send("c", 0, "y", txn="U", by="q")
        .send("d", 1, "y", txn="T").commit("T").commit("U").read_all()),
    (G0, h().send("a", 0, txn="T").send("b", 1, txn="U", by="q").send("c", 2, txn="T").commit("T").commit("U")
        .read_all()),
    (G0, h().send("a", 0, txn="T").send("b", 1, txn="U", by="q").send("c", 2, txn="V", by="r")
        .send("d", 0, "y", txn="V", by="r").send("e", 1, "y", txn="T").commit("T", "unknown").commit("U").commit("V")
        .read_all()),
    (G1C, h().send("a", 0, txn="T").send("b", 0, "y", txn="U", by="q").commit("T").commit("U")
        .poll((0, "b"), key="y", by="p", txn="T").poll((0, "a"), by="q", txn="U")),
    (G1C, h().send("a", 0, txn="T").send("b", 0, "y", txn="U", by="q").send("c", 0, "z", txn="V", by="r")
        .ask("T").ask("U").ask("V").poll((0, "a"), by="q", txn="U").poll((0, "b"), key="y", by="r", txn="V")
        .poll((0, "c"), key="z", by="p", txn="T")),
    (G1C_WRITES, h().send("b", 0, "y", txn="U", by="q").send("c", 1, "y", txn="T").send("a", 0, txn="T").commit("T")
        .poll((0, "a"), by="q", txn="U").commit("U").read_all()),
    (G1C_WRITES, h().send("b", 0, "y", txn="U", by="q").send("d", 1, "y", txn="V", by="r").commit("V")
        .send("c", 2, "y", txn="T").send("a", 0, txn="T").commit("T").poll((0, "a"), by="q", txn="U").commit("U")
        .read_all()),
]  # fmt: skip

GOOD: list[tuple[str, History]] = [
    (LOST_WRITE, h().send("a", 0).send("b", 1).poll((0, "a"), (1, "b"))),
    (LOST_WRITE, pair().abort("T").send("c", 3).poll((3, "c"))),
    (LOST_WRITE, pair().commit("T", "unknown").send("c", 3).poll((3, "c"))),
    (LOST_WRITE, h().begin("a").end("a", type="unknown").send("c", 3).poll((3, "c"))),
    (LOST_WRITE, h().send("a", 0).send("b", 1).poll((1, "b")).poll((0, "a"), by="d")),
    (UNSEEN, h().begin("a").begin("b").end("b", type="unknown").poll()),
    (UNSEEN, pair().poll(key="y")),
    (UNSEEN, pair().commit("T").read_all()),
    (DUPLICATE, h().send("a", 1, producer=PLAIN).poll((0, "a"), (1, "a"))),
    (DUPLICATE, h().send("a", 0).poll((0, "a")).poll((0, "a"), by="d")),
    (INCONSISTENT_OFFSETS, h().send("a", 0).send("b", 0, "y").read_all()),
    (INCONSISTENT_OFFSETS, h().send("a", 0, txn="T").abort("T").send("b", 2).poll((2, "b"))),
    (UNEXPECTED_READ, h().begin("a").poll((0, "a")).end("a", 0)),
    (G1A, pair().abort("T").poll((0, "a"), (1, "b"), isolation=UNCOMMITTED)),
    (G1A, pair().commit("T", "unknown").poll((0, "a"), (1, "b"))),
    # Asked again: what counts is how it ended.
    (G1A, pair().commit("T", "unknown").commit("T").poll((0, "a"), (1, "b"))),
    (PRECOMMITTED_READ, pair().ask("T").poll((0, "a"), (1, "b")).add("p", "ok", "commit", txn="T")),
    (PRECOMMITTED_READ, pair().poll((0, "a"), (1, "b"), isolation=UNCOMMITTED).commit("T").read_all()),
    (INTERNAL_POLL_SKIP, pair().commit("T").send("c", 3).poll((0, "a"), (1, "b"), (3, "c"))),
    (INTERNAL_POLL_SKIP, h().send("a", 0).send("b", 1, txn="T").abort("T").send("c", 3).poll((0, "a"), (3, "c"))),
    (INTERNAL_POLL_SKIP, h().send("a", 0).begin("b").send("c", 2, by="q").poll((0, "a"), (2, "c"))),
    (POLL_SKIP, h().send("a", 0).send("b", 1).send("c", 2).poll((0, "a")).move("seek", x=2).poll((2, "c"))
        .read_all()),
    (POLL_SKIP, h().send("a", 0).send("b", 1).send("c", 2).poll((0, "a")).move("subscribe").poll((2, "c"))
        .read_all()),
    (POLL_SKIP, h().send("a", 0).send("b", 1).send("c", 2).poll((0, "a")).move("assign", x=None).poll((2, "c"))
        .read_all()),
    (INTERNAL_NONMONOTONIC_POLL, h().send("a", 0).send("b", 1).poll((0, "a"), (1, "b"))),
    (NONMONOTONIC_POLL, h().send("a", 0).send("b", 1).poll((0, "a"), (1, "b")).move("seek", x=0).poll((0, "a"))),
    (NONMONOTONIC_POLL, h().send("a", 0).poll((0, "a")).move("assign", x=0).poll((0, "a"))),
    (NONMONOTONIC_POLL, h().send("a", 0).poll((0, "a")).poll((0, "a"), by="d")),
    (NONMONOTONIC_SEND, h().begin("a").begin("b", by="q").end("a", 1).end("b", 0, by="q").read_all()),
    (NONMONOTONIC_SEND, h().begin("a", producer=PLAIN).begin("b", producer=PLAIN).end("b", 0).end("a", 1).read_all()),
    (NONMONOTONIC_SEND, h().send("a", 5).send("b", 3, "y").read_all()),
    (G0, h().send("a", 0, txn="T").send("c", 0, "y", txn="T").commit("T").send("b", 2, txn="U", by="q")
        .send("d", 2, "y", txn="U", by="q").commit("U").read_all()),
    (G0, h().send("a", 0, txn="T").send("b", 1, txn="U", by="q").send("c", 2, txn="T").commit("T").abort("U")
        .poll((0, "a"), (2, "c"))),
    (G1C, h().send("a", 0, txn="T").commit("T").poll((0, "a"), by="q", txn="U").send("b", 0, "y", txn="U", by="q")
        .commit("U").read_all()),
    (G1C, h().send("a", 0, txn="T").send("b", 0, "y", txn="U", by="q").commit("T").commit("U")
        .poll((0, "b"), key="y", by="p", txn="T", isolation=UNCOMMITTED)
        .poll((0, "a"), by="q", txn="U", isolation=UNCOMMITTED)),
    (G1C_WRITES, h().send("a", 0, txn="T").send("c", 0, "y", txn="T").commit("T").poll((0, "a"), by="q", txn="U")
        .send("b", 2, "y", txn="U", by="q").commit("U").read_all()),
]  # fmt: skip


def kinds(history: History) -> set[str]:
    return {anomaly.kind for anomaly in check(history.events)}


def named(case: tuple[str, History]) -> str:
    return f"{case[0]} {len(case[1].events)}"


@pytest.mark.parametrize("case", BAD, ids=named)
def test_a_history_with_the_anomaly_is_found(case: tuple[str, History]) -> None:
    kind, history = case
    assert kind in kinds(history)


@pytest.mark.parametrize("case", GOOD, ids=named)
def test_a_history_without_it_is_not(case: tuple[str, History]) -> None:
    kind, history = case
    assert kind not in kinds(history), check(history.events)


def test_each_anomaly_has_several_bad_histories_and_a_good_one() -> None:
    bad, good = [kind for kind, _ in BAD], [kind for kind, _ in GOOD]
    assert {kind for kind in KINDS if bad.count(kind) >= 2 and kind in good} == KINDS


def test_an_ordinary_history_has_no_anomaly_at_all() -> None:
    history = h().send("a", 0).send("b", 1, txn="T").send("c", 0, "y", txn="T").commit("T")
    history.send("d", 3, by="q", producer=PLAIN).move("assign", x=0, y=0)
    assert check(history.read_all().events) == []


def test_writes_of_open_transactions_may_take_turns_but_reads_may_not_go_in_circles() -> None:
    found = {kind: kinds(history) for kind, history in BAD}
    assert {kind for kind in KINDS if not faults(check(dict(BAD)[kind].events))} == {G0, G1C_WRITES}
    assert G1C in found[G1C]


def test_a_cycle_is_shown_with_its_transactions() -> None:
    history = dict(BAD)[G0]
    (anomaly,) = [one for one in check(history.events) if one.kind == G0]
    assert set(anomaly.transactions) >= {"T", "U"}
    assert {event.value for event in minimal(history.events, anomaly) if event.op == "send"} >= {"a", "b"}


def test_the_minimal_history_has_what_the_anomaly_is_about_and_nothing_else() -> None:
    history = h().send("z", 0).send("a", 1, txn="T").commit("T").send("b", 3).poll((0, "z"), (3, "b"))
    (anomaly,) = [one for one in check(history.events) if one.kind == LOST_WRITE]
    assert [(event.op, event.type) for event in minimal(history.events, anomaly)] == [
        ("send", "invoke"),
        ("send", "ok"),
        ("commit", "invoke"),
        ("commit", "ok"),
    ]


def test_a_value_that_is_sent_twice_is_refused() -> None:
    with pytest.raises(ValueError, match="a is sent twice"):
        check(h().send("a", 0).send("a", 1).events)


def test_an_event_that_is_none_is_refused() -> None:
    with pytest.raises(ValueError, match="poll invoke"):
        check([Event("c", "invoke", "poll")])


def test_events_survive_as_lines() -> None:
    for _, history in BAD + GOOD:
        assert [parse(event.line()) for event in history.events] == history.events


def test_files_are_merged_by_time_and_half_a_line_is_left_out() -> None:
    early = Event("p", "invoke", "send", 1, key="x", value="a", producer=PLAIN).line() + "\n"
    late = Event("c", "ok", "poll", 3, records={"x": [(0, "a")]}, isolation=COMMITTED).line() + "\n"
    between = Event("p", "ok", "send", 2, value="a", offset=0).line() + "\n"
    assert [event.at_ns for event in merged([[late, late[:20]], [early, between]])] == [1, 2, 3]


def made(transactions: int, seed: int = 1) -> list[Event]:
    """A history as a broker without faults would make it: transactions of several producers that take turns."""
    chance, history = random.Random(seed), h()
    ends: dict[str, int] = dict.fromkeys("xyz", 0)
    history.move("assign", by="c", x=0, y=0, z=0)
    for number in range(transactions):
        txn, by = f"T{number}", f"p{number % 5}"
        read: dict[str, list[tuple[int, str]]] = {}
        for place in range(6):
            key, value = chance.choice("xyz"), f"{number}.{place}"
            history.send(value, ends[key], key, txn=txn, by=by)
            read.setdefault(key, []).append((ends[key], value))
            ends[key] += 1
        if number % 4 == 0:
            history.abort(txn)
        else:
            history.commit(txn)
            history.add("c", "ok", "poll", records=read, isolation=COMMITTED, txn=f"T{number + 5}")
    return history.events


def lines_run(call: Callable[[], object]) -> int:
    """How many lines of Python a call takes."""
    count = 0

    def trace(_frame: FrameType, what: str, _arg: object) -> Any:
        nonlocal count
        count += what == "line"
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        call()
    finally:
        sys.settrace(before)
    return count


def test_eight_times_the_history_takes_about_eight_times_the_steps() -> None:
    small, large = made(250), made(2000)
    assert check(small) == check(large) == []
    assert lines_run(lambda: check(large)) < 9 * lines_run(lambda: check(small))


def test_a_history_full_of_anomalies_takes_no_longer() -> None:
    def spoilt(transactions: int) -> list[Event]:
        """Nothing was committed, yet it is read, backwards."""
        left = [event for event in made(transactions) if event.op != "commit"]
        return [
            replace(event, records={key: read[::-1] for key, read in event.records.items()}) for event in left
        ]

    small, large = spoilt(250), spoilt(2000)
    assert len(check(large)) > len(check(small)) > 100
    assert lines_run(lambda: check(large)) < 9 * lines_run(lambda: check(small))
