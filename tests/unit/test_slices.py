from __future__ import annotations

from collections import deque
from typing import Any

import pytest

from pykafkad import slices
from pykafkad.clock import ManualClock
from pykafkad.slices import GO_ON, Slices, Wait, begun, finish

STEP_MS, SLICE_MS = 1, 2


@pytest.fixture(autouse=True)
def long_slices(monkeypatch: pytest.MonkeyPatch) -> None:
    """In which more than one step of a whole millisecond finds place."""
    monkeypatch.setattr(slices, "SLICE_US", 1000 * SLICE_MS)


class Loop:
    """A call_soon, and a clock by which each step of the work takes a millisecond."""

    def __init__(self) -> None:
        self.clock = ManualClock()
        self.soon: deque[Any] = deque()
        self.slices = Slices(self.soon.append, self.clock)
        self.steps: list[str] = []

    def work(self, name: str, steps: int, end: Any = None, mark: Any = None) -> Any:
        for _ in range(steps):
            self.clock.advance(STEP_MS)
            self.steps.append(name)
            yield mark
        if isinstance(end, Exception):
            raise end
        return end

    def turn(self) -> int:
        """Run a pass of the loop; returns how many steps it took."""
        before = len(self.steps)
        for _ in range(len(self.soon)):
            self.soon.popleft()()
        return len(self.steps) - before


def test_work_of_one_slice_is_done_at_once() -> None:
    loop, results = Loop(), list[Any]()
    loop.slices.run(loop.work("a", 1, "result"), results.append)
    assert results == ["result"]
    assert not loop.soon and not loop.slices.count


def test_longer_work_holds_the_loop_for_one_slice_a_pass() -> None:
    loop, results = Loop(), list[Any]()
    loop.slices.run(loop.work("a", 9, "result"), results.append)
    assert len(loop.steps) == SLICE_MS // STEP_MS
    assert [loop.turn() for _ in range(4)] == [2, 2, 2, 1]
    assert results == ["result"] and not loop.soon and not loop.slices.count


def test_work_takes_turns_and_shares_the_slice() -> None:
    loop, results = Loop(), list[Any]()
    for name in "abc":
        loop.slices.run(loop.work(name, 4, name), results.append)
    assert "".join(loop.steps) == "aa"
    while loop.soon:
        assert loop.turn() <= 2
    assert "".join(loop.steps) == "aa" + "aa" + "bb" + "cc" + "bb" + "cc"
    assert results == ["a", "b", "c"]


def test_what_ends_the_work_is_its_result() -> None:
    loop, results, trouble = Loop(), list[Any](), ValueError("no")
    loop.slices.run(loop.work("a", 5, trouble), results.append)
    while loop.soon:
        loop.turn()
    assert results == [trouble]


def test_work_that_nobody_waits_for_is_given_up_unless_it_must_go_on() -> None:
    loop, results = Loop(), list[Any]()
    loop.slices.run(loop.work("a", 9), results.append, lambda: False)
    loop.slices.run(loop.work("b", 9, "b", mark=GO_ON), results.append, lambda: False)
    while loop.soon:
        loop.turn()
    assert loop.steps.count("a") == 1 and loop.steps.count("b") == 9
    assert results == [None, "b"]


def test_a_callback_that_fails_leaves_the_others_alone() -> None:
    loop, results = Loop(), list[Any]()

    def fail(result: Any) -> None:
        raise RuntimeError(result)

    loop.slices.run(loop.work("a", 3, "a"), fail)
    loop.slices.run(loop.work("b", 3, "b"), results.append)
    with pytest.raises(RuntimeError, match="a"):
        loop.turn()
    while loop.soon:
        loop.turn()
    assert results == ["b"] and not loop.slices.count


def test_work_begun_by_the_end_of_other_work_takes_its_turn() -> None:
    loop, results = Loop(), list[Any]()
    loop.slices.run(loop.work("a", 3), lambda result: loop.slices.run(loop.work("b", 3, "b"), results.append))
    while loop.soon:
        loop.turn()
    assert results == ["b"] and "".join(loop.steps) == "aaabbb"


def test_finish_does_it_all() -> None:
    assert finish(Loop().work("a", 100, "result")) == "result"


def waiting(loop: Loop, wait: Wait) -> Any:
    yield from loop.work("before", 1)
    result = yield from wait.result()
    yield from loop.work("after", 1)
    return result


def test_work_that_waits_costs_nothing_until_its_result_comes() -> None:
    loop, results, wait = Loop(), list[Any](), Wait()
    loop.slices.run(waiting(loop, wait), results.append)
    assert loop.steps == ["before"] and loop.slices.count == 1
    assert not loop.soon  # no pass looks at it
    loop.slices.run(loop.work("other", 1, "other"), results.append)
    assert results == ["other"]
    wait.come("late")
    assert results == ["other"] and len(loop.soon) == 1
    loop.turn()
    assert results == ["other", "late"] and not loop.slices.count and not loop.soon


def test_a_result_that_has_come_already_is_not_waited_for() -> None:
    loop, results, wait = Loop(), list[Any](), Wait()
    wait.come("early")
    assert begun(waiting(loop, wait)) == "early"
    loop.slices.run(waiting(loop, wait), results.append)
    loop.turn()
    assert results == ["early"]


def test_work_that_was_begun_may_wait_in_slices() -> None:
    loop, results, wait = Loop(), list[Any](), Wait()
    loop.slices.run(begun(waiting(loop, wait)), results.append)
    wait.come(7)
    loop.turn()
    assert results == [7]


def test_work_that_waits_and_is_not_wanted_any_more_ends_at_its_next_plain_yield() -> None:
    loop, results, wait, wanted = Loop(), list[Any](), Wait(), [True]
    loop.slices.run(waiting(loop, wait), results.append, lambda: wanted[0])
    wanted[0] = False
    wait.come("nobody wants it")
    loop.turn()
    assert results == [None] and loop.steps == ["before", "after"] and not loop.slices.count


def test_what_waits_cannot_be_finished_without_a_loop() -> None:
    with pytest.raises(AssertionError, match="needs a loop"):
        finish(Wait().result())
