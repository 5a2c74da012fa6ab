"""Answers that depend on appends: which are refused, which are held, and when they leave."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from pykafkad.errors import (
    KAFKA_STORAGE_ERROR,
    NOT_ENOUGH_REPLICAS_AFTER_APPEND,
    NOT_LEADER_OR_FOLLOWER,
    REQUEST_TIMED_OUT,
    KafkaError,
)
from pykafkad.promises import Promises


class Asker:
    """In the place of a request's context: notes what happens to its answer."""

    def __init__(self) -> None:
        self.seen: list[str] = []
        self.code = 0  # with which it was refused

    def hold(self) -> None:
        self.seen.append("held")

    def release(self) -> None:
        self.seen.append("released")


class Source:
    """A replica, as far as promises look at it."""

    def __init__(self, high_watermark: int = 0, end_offset: int = 1) -> None:
        self.high_watermark = high_watermark
        self.log_end_offset = self.written = end_offset
        self.error = 0
        self.log: Any = object()
        self.name = "t-0"
        self.has_followers = False

    def check_appended(self, end_offset: int, acks: int) -> bool:
        if self.error:
            raise KafkaError(self.error)
        return (self.high_watermark if acks == -1 else self.written) >= end_offset


def refuse(part: str, asker: Any, code: int) -> None:
    asker.seen.append(f"{part} refused")
    asker.code = code


class Timers:
    """What is to be called later."""

    def __init__(self) -> None:
        self.due: dict[Any, tuple[int, Any, Any]] = {}

    def call_later(self, delay_ms: int, callback: Any, context: Any) -> Any:
        timer = SimpleNamespace(cancel=lambda: self.due.pop(context))
        self.due[context] = delay_ms, callback, timer
        return timer

    def come(self, context: Any) -> None:
        self.due.pop(context)[1](context)


@pytest.fixture
def timers() -> Timers:
    return Timers()


@pytest.fixture
def promises(timers: Timers) -> Promises:
    return Promises(timers.call_later)


def make(
    promises: Promises,
    source: Any,
    part: str = "x",
    acks: int = -1,
    asker: Any = None,
    timeout_ms: int | None = 1000,
) -> Any:
    asker = asker or Asker()
    promises.made.append((source, acks, timeout_ms, asker, refuse, part))
    return asker


def hold(promises: Promises, asker: Any, *sources: Any) -> None:
    for source in sources:
        make(promises, source, asker=asker)
    promises.hold_made()


def test_what_was_to_be_written_to_a_log_that_failed_is_refused_once(promises: Promises) -> None:
    broken, whole = Source(), Source()
    first, second = make(promises, broken, "a"), make(promises, whole, "b")
    promises.refuse({id(broken.log)})
    promises.refuse({id(broken.log)})
    assert (first.seen, second.seen) == (["a refused"], []) and first.code == KAFKA_STORAGE_ERROR
    assert [promise[0] for promise in promises.made] == [whole]


def test_only_what_is_not_yet_on_the_disk_is_held(promises: Promises) -> None:
    behind, there = make(promises, Source(0, 1)), make(promises, Source(1, 1))
    promises.settle()
    assert (behind.seen, there.seen, promises.held_count) == (["held"], [], 1)
    assert promises.made == []


def test_answers_leave_in_their_order_as_the_high_watermark_comes_by(promises: Promises) -> None:
    source = Source(0, 1)
    first, second = make(promises, source), Asker()
    promises.hold_made()
    source.log_end_offset = 2
    hold(promises, second, source)
    source.high_watermark = 1
    promises.settle()
    assert (first.seen, second.seen) == (["held", "released"], ["held"])
    source.high_watermark = 2
    promises.settle()
    promises.settle()
    assert second.seen == ["held", "released"] and promises.held_count == 0


def test_an_answer_of_three_logs_is_held_once_and_released_with_the_last(promises: Promises) -> None:
    sources = [Source() for _ in range(3)]
    asker = Asker()
    hold(promises, asker, *sources)
    for source in sources:
        assert asker.seen == ["held"]
        source.high_watermark = 1
        promises.settle()
    assert asker.seen == ["held", "released"] and promises.held_count == 0


def test_a_log_that_goes_offline_refuses_and_releases_what_it_holds(promises: Promises) -> None:
    source, other = Source(), Source()
    asker, waiting = Asker(), Asker()
    hold(promises, asker, source)
    hold(promises, waiting, other)
    source.error = KAFKA_STORAGE_ERROR
    promises.settle()
    assert asker.seen == ["held", "x refused", "released"] and waiting.seen == ["held"]
    assert asker.code == KAFKA_STORAGE_ERROR


def test_the_answers_of_one_log_are_given_up(promises: Promises) -> None:
    source = Source()
    askers = [Asker(), Asker()]
    for asker in askers:
        hold(promises, asker, source)
    promises.fail(Source())
    assert [asker.seen for asker in askers] == [["held"]] * 2
    promises.fail(source)
    promises.fail(source)
    source.high_watermark = 1
    promises.settle()
    assert [asker.seen for asker in askers] == [["held", "x refused", "released"]] * 2


def test_what_a_source_took_in_this_pass_is_taken_back_and_what_it_took_before_is_not(
    promises: Promises,
) -> None:
    source = Source()
    before, other = Asker(), make(promises, Source(1, 1))
    hold(promises, before, source)
    now = make(promises, source)
    promises.take_back(source)
    promises.settle()
    assert (now.seen, before.seen, other.seen) == (["x refused"], ["held"], [])
    assert now.code == NOT_LEADER_OR_FOLLOWER


def test_who_asks_for_one_copy_does_not_wait_for_the_others(promises: Promises) -> None:
    source = Source(0, 2)
    source.written = 1
    one, everybody = make(promises, source, acks=1), make(promises, source, acks=-1)
    promises.settle()
    assert one.seen == everybody.seen == ["held"]
    source.written = 2
    promises.settle()
    assert (one.seen, everybody.seen) == (["held", "released"], ["held"])
    assert make(promises, source, acks=1).seen == []
    source.high_watermark = 2
    promises.settle()
    assert everybody.seen == ["held", "released"] and promises.held_count == 0


def test_one_copy_promises_nothing_of_the_others(promises: Promises) -> None:
    source = Source(0, 1)
    one, everybody = make(promises, source, acks=1), make(promises, source, acks=-1)
    promises.settle()
    assert (one.seen, everybody.seen) == ([], ["held"])


@pytest.mark.parametrize("is_held", [False, True])
def test_an_answer_is_refused_with_what_its_source_says(promises: Promises, is_held: bool) -> None:
    source = Source(0, 1)
    asker = make(promises, source)
    if is_held:
        promises.settle()
    source.error = NOT_ENOUGH_REPLICAS_AFTER_APPEND
    promises.settle()
    assert asker.seen == (["held", "x refused", "released"] if is_held else ["x refused"])
    assert asker.code == NOT_ENOUGH_REPLICAS_AFTER_APPEND and promises.held_count == 0


# -- followers that take longer than a request allows


@pytest.fixture
def replicated() -> Source:
    source = Source(0, 1)
    source.has_followers = True
    return source


def test_an_answer_that_waits_for_followers_is_refused_when_its_time_is_up(
    promises: Promises, timers: Timers, replicated: Source
) -> None:
    late, patient = make(promises, replicated, timeout_ms=500), make(promises, replicated, timeout_ms=9000)
    promises.settle()
    assert [delay_ms for delay_ms, *_ in timers.due.values()] == [500, 9000]
    timers.come(late)
    assert (late.seen, late.code) == (["held", "x refused", "released"], REQUEST_TIMED_OUT)
    assert (patient.seen, promises.held_by()) == (["held"], [("t-0", 1)])
    replicated.high_watermark = 1
    promises.settle()
    assert (patient.seen, patient.code) == (["held", "released"], 0)
    assert late.seen == ["held", "x refused", "released"] and not timers.due and not promises.held_by()


def test_only_the_parts_that_still_wait_are_refused(
    promises: Promises, timers: Timers, replicated: Source
) -> None:
    other, asker = Source(0, 1), Asker()
    other.has_followers = True
    make(promises, replicated, "a", asker=asker)
    make(promises, other, "b", asker=asker)
    promises.settle()
    other.high_watermark = 1
    promises.settle()
    timers.come(asker)
    assert asker.seen == ["held", "a refused", "released"] and promises.held_count == 0
    promises.fail(replicated)
    assert asker.seen == ["held", "a refused", "released"]


@pytest.mark.parametrize("timeout_ms", [0, -1, -(2**31)])
def test_a_request_that_gives_no_time_has_none(
    promises: Promises, timers: Timers, replicated: Source, timeout_ms: int
) -> None:
    asker = make(promises, replicated, timeout_ms=timeout_ms)
    promises.settle()
    assert timers.due[asker][0] == 0


def test_the_disk_of_this_broker_has_all_the_time_it_takes(
    promises: Promises, timers: Timers, replicated: Source
) -> None:
    replicated.written = 0
    make(promises, Source(0, 1))
    make(promises, replicated, acks=1)
    make(promises, replicated, timeout_ms=None)
    promises.settle()
    assert promises.held_count == 3 and not timers.due
