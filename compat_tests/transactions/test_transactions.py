"""The scenarios of transactions, which are the same for every client.

`last` is a record outside of transactions that stands behind what a reader may or may not see: read_committed comes to
it only when everything before it is decided.
"""

from __future__ import annotations

import re
from contextlib import suppress
from typing import Any

import pytest

from .flavours import FLAVOURS, each_in_each_protocol
from .program import Refused
from .stage import Stage

# However the client says INVALID_PRODUCER_EPOCH (47) or PRODUCER_FENCED (90).
FENCED = r"(?i)fence|producer.?epoch|old epoch|epoch.*(old|stale|newer)|code = 90"
SHORT_MS = 3000
ENDS = ("commit", "abort")
ISOLATIONS = ("read_committed", "read_uncommitted")


def decided(values: list[str], end: str) -> list[str]:
    """What read_committed sees of them."""
    return values if end == "commit" else []


def fenced(refusal: str) -> bool:
    return re.search(FENCED, refusal) is not None


def test_commits(stage: Stage) -> None:
    topic = stage.topic(2)
    first, second = f"{topic}:0", f"{topic}:1"
    stage.producer("p")
    for number in range(3):
        stage.transaction("p", {first: [f"a{number}", f"b{number}"], second: [f"c{number}"]}, "commit")
    for place in (first, second):
        stage.produce(place, "last")
    for isolation in ISOLATIONS:
        assert stage.seen(isolation, first, "last") == ["a0", "b0", "a1", "b1", "a2", "b2", "last"]
        assert stage.seen(isolation, second, "last") == ["c0", "c1", "c2", "last"]


def test_aborts(stage: Stage) -> None:
    place = stage.place()
    stage.producer("p")
    for number, end in enumerate(("abort", "commit", "abort", "abort", "commit")):
        stage.transaction("p", {place: [f"{end}{number}", f"{end}{number}+"]}, end)
    stage.produce(place, "last")
    assert stage.seen("read_committed", place, "last") == [
        "commit1",
        "commit1+",
        "commit4",
        "commit4+",
        "last",
    ]
    assert len(stage.seen("read_uncommitted", place, "last")) == 11


@pytest.mark.parametrize("end", ENDS)
def test_read_committed_waits_for_an_open_transaction(stage: Stage, end: str) -> None:
    place = stage.place()
    stage.produce(place, "first")
    stage.producer("p")
    stage.ask("begin", "p")
    stage.ask("send", "p", place, "open", "too")
    stage.produce(place, "last")
    stage.ask("reader", "r", "read_committed", place)
    assert stage.ask("take", "r", "first") == ["first"]
    assert stage.seen("read_uncommitted", place, "last") == ["first", "open", "too", "last"]
    assert stage.ask("peek", "r") == []
    stage.ask(end, "p")
    assert stage.ask("take", "r", "last") == [*decided(["open", "too"], end), "last"]
    stage.ask("close", "r")


@pytest.mark.parametrize(("program", "protocol"), each_in_each_protocol(FLAVOURS), indirect=["program"])
def test_consumes_transforms_and_produces(stage: Stage, protocol: str) -> None:
    source, target, group, transactional_id = (
        stage.topic(),
        stage.place(),
        stage.name("group"),
        stage.name("id"),
    )
    stage.produce(f"{source}:0", "a", "b", "c")
    for end, committed in (("abort", None), ("commit", 3)):
        stage.producer("p", group, source, protocol, id=transactional_id)
        assert stage.ask("consume", "p", 3) == ["a", "b", "c"]  # again, since the first time was aborted
        stage.ask("begin", "p")
        stage.ask("transform", "p", target)
        stage.ask(end, "p")
        assert stage.committed(group, source) == committed
        stage.ask("close", "p")
    stage.produce(f"{source}:0", "d")
    stage.producer("p", group, source, protocol, id=transactional_id)
    assert stage.ask("consume", "p", 1) == ["d"]
    stage.ask("close", "p")
    stage.produce(target, "last")
    assert stage.seen("read_committed", target, "last") == ["a'", "b'", "c'", "last"]


def test_a_zombie_is_fenced(stage: Stage) -> None:
    place = stage.place()
    transactional_id = stage.producer("zombie")
    stage.ask("begin", "zombie")
    stage.ask("send", "zombie", place, "lost")
    stage.producer("heir", id=transactional_id)  # aborts what the zombie began
    stage.transaction("heir", {place: ["kept"]}, "commit")
    assert fenced(stage.refusal(["send", "zombie", place, "late"], ["commit", "zombie"]))
    with suppress(Refused):  # as an application would try next; not every client asks the broker once more
        stage.ask("abort", "zombie")
    stage.transaction("heir", {place: ["more"]}, "commit")
    stage.produce(place, "last")
    assert stage.seen("read_committed", place, "last") == ["kept", "more", "last"]


def test_a_zombie_commits_no_offsets(stage: Stage) -> None:
    source, target, group, transactional_id = (
        stage.topic(),
        stage.place(),
        stage.name("group"),
        stage.name("id"),
    )
    stage.produce(f"{source}:0", "a")
    stage.producer("zombie", group, source, "classic", id=transactional_id)
    assert stage.ask("consume", "zombie", 1) == ["a"]
    stage.producer("heir", id=transactional_id)
    assert fenced(stage.refusal(["begin", "zombie"], ["transform", "zombie", target], ["commit", "zombie"]))
    stage.produce(target, "last")
    assert stage.seen("read_committed", target, "last") == ["last"]
    assert stage.committed(group, source) is None


def test_a_transaction_that_takes_too_long_is_aborted(stage: Stage) -> None:
    place = stage.place()
    transactional_id = stage.producer("slow", timeout_ms=SHORT_MS)
    stage.ask("begin", "slow")
    stage.ask("send", "slow", place, "lost")
    stage.produce(place, "last")
    assert stage.seen("read_committed", place, "last") == ["last"]  # when the broker has aborted it
    refusal = stage.refusal(["commit", "slow"])
    assert fenced(refusal) or re.search("(?i)invalid.?txn.?state", refusal), refusal
    stage.producer("next", id=transactional_id)
    stage.transaction("next", {place: ["kept", "end"]}, "commit")
    assert stage.seen("read_committed", place, "end") == ["last", "kept", "end"]


@pytest.mark.parametrize("end", ENDS)
def test_a_transaction_outlives_the_broker(stage: Stage, end: str, broker: Any) -> None:
    place = stage.place()
    stage.producer("p")
    stage.transaction("p", {place: ["done"]}, "commit")
    stage.ask("begin", "p")
    stage.ask("send", "p", place, "before")
    broker.kill()
    broker.start()
    if not stage.flavour.ends_again:
        stage.await_coordinator()
    stage.ask("send", "p", place, "after")
    stage.ask(end, "p")
    stage.transaction("p", {place: ["more"]}, "commit")
    stage.produce(place, "last")
    assert stage.seen("read_committed", place, "last") == [
        "done",
        *decided(["before", "after"], end),
        "more",
        "last",
    ]


@pytest.mark.parametrize(
    ("program", "protocol"),
    each_in_each_protocol(one for one in FLAVOURS if one.keeps_offsets),
    indirect=["program"],
)
def test_pending_offsets_outlive_the_broker(stage: Stage, protocol: str, broker: Any) -> None:
    source, target, group = stage.topic(), stage.place(), stage.name("group")
    stage.produce(f"{source}:0", "a", "b")
    stage.producer("p", group, source, protocol)
    assert stage.ask("consume", "p", 2) == ["a", "b"]
    stage.ask("begin", "p")
    stage.ask("transform", "p", target)
    broker.kill()
    broker.start()
    if not stage.flavour.ends_again:
        stage.await_coordinator()
    stage.ask("commit", "p")
    assert stage.committed(group, source) == 2
    stage.produce(target, "last")
    assert stage.seen("read_committed", target, "last") == ["a'", "b'", "last"]
    stage.ask("close", "p")
