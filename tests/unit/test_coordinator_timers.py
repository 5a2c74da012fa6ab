"""A coordinator's timers: set, moved, cancelled, and due in the order in which they went off."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from pykafkad.clock import ManualClock
from pykafkad.coordinator.runtime.timers import Timers

A, B = ("group", "a"), ("group", "b")


class Handle:
    def __init__(self, waiting: list[Handle], due_ms: int, action: Callable[[], object]) -> None:
        self.waiting, self.due_ms, self.action = waiting, due_ms, action
        waiting.append(self)

    def cancel(self) -> None:
        self.waiting.remove(self)


class Loop:
    """The part of the coordinators' loop that timers use; the test moves its time."""

    def __init__(self) -> None:
        self.clock = ManualClock()
        self.waiting: list[Handle] = []

    def call_later(self, delay_ms: int, action: Callable[..., object], *arguments: Any) -> Handle:
        return Handle(self.waiting, self.clock.monotonic_ms() + delay_ms, lambda: action(*arguments))

    def advance(self, ms: int) -> None:
        self.clock.advance(ms)
        for each in sorted(self.waiting, key=lambda each: each.due_ms):
            if each.due_ms <= self.clock.monotonic_ms():
                self.waiting.remove(each)
                each.action()


@pytest.fixture
def loop() -> Loop:
    return Loop()


@pytest.fixture
def timers(loop: Loop) -> Timers:
    return Timers(loop, lambda: None)  # type: ignore[arg-type]


def due(timers: Timers) -> list[Any]:
    found = []
    while timers.due:
        found.append(timers.take_due())
    return found


def test_they_are_due_in_their_order(timers: Timers, loop: Loop) -> None:
    timers.set([(A, 20), (B, 10)])
    loop.advance(9)
    assert due(timers) == []
    loop.advance(1)
    assert due(timers) == [B]
    loop.advance(10)
    assert due(timers) == [A] and not loop.waiting


@pytest.mark.parametrize("again_ms", [5, 10, 30])
def test_one_that_was_cancelled_may_be_set_again(timers: Timers, loop: Loop, again_ms: int) -> None:
    timers.set([(A, 10)])
    timers.set([(A, None), (A, again_ms)])
    loop.advance(again_ms - 1)
    assert due(timers) == []
    loop.advance(1)
    assert due(timers) == [A]


@pytest.mark.parametrize("moved_ms", [5, 30])
def test_one_that_is_set_again_goes_off_once_at_its_new_time(
    timers: Timers, loop: Loop, moved_ms: int
) -> None:
    timers.set([(A, 10)])
    timers.set([(A, moved_ms)])
    fired = []
    for _ in range(40):
        loop.advance(1)
        fired += [loop.clock.monotonic_ms() for _ in due(timers)]
    assert fired == [ManualClock().monotonic_ms() + moved_ms]


def test_one_that_is_due_and_was_not_served_is_cancelled_too(timers: Timers, loop: Loop) -> None:
    timers.set([(A, 10), (B, 10)])
    loop.advance(10)
    timers.set([(A, None)])
    assert due(timers) == [B]
    timers.set([(A, 10), (B, 20)])
    loop.advance(10)
    timers.cancel_all()
    loop.advance(100)
    assert due(timers) == [] and not loop.waiting
