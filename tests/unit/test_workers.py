"""Blocking work comes back to the loop, in as few threads as it needs."""

import os
import sys
import time
import weakref
from queue import SimpleQueue
from typing import Any

import pytest

from pykafkad import workers as module
from pykafkad.workers import LIMIT, Workers


def loop(workers: Workers, posted: SimpleQueue[Any], count: int) -> None:
    for _ in range(count):
        callback, *args = posted.get(timeout=10)
        callback(*args)


def test_results_and_errors_come_back_on_the_loop() -> None:
    posted: SimpleQueue[Any] = SimpleQueue()
    workers = Workers(lambda *call: posted.put(call))
    results: list[Any] = []
    workers.submit(lambda: 42, results.append)
    workers.submit(lambda: 1 // 0, results.append)
    assert workers.outstanding == 2
    loop(workers, posted, 2)
    assert workers.outstanding == 0
    assert 42 in results and any(isinstance(result, ZeroDivisionError) for result in results)
    workers.stop()


def test_no_more_threads_than_the_limit() -> None:
    posted: SimpleQueue[Any] = SimpleQueue()
    workers = Workers(lambda *call: posted.put(call))
    gate: SimpleQueue[Any] = SimpleQueue()
    done: list[Any] = []
    for _ in range(LIMIT * 3):
        workers.submit(gate.get, done.append)
    assert workers._threads == LIMIT
    for number in range(LIMIT * 3):
        gate.put(number)
    loop(workers, posted, LIMIT * 3)
    assert sorted(done) == list(range(LIMIT * 3))
    workers.stop()


def no_more_threads(*call: Any) -> None:
    raise RuntimeError("can't start new thread")


def test_without_a_thread_the_work_fails_and_later_work_is_done(monkeypatch: pytest.MonkeyPatch) -> None:
    posted: SimpleQueue[Any] = SimpleQueue()
    workers = Workers(lambda *call: posted.put(call))
    results: list[Any] = []
    with monkeypatch.context() as patch:
        patch.setattr(module, "start_new_thread", no_more_threads)
        workers.submit(lambda: 1, results.append)
        loop(workers, posted, 1)
    assert [str(result) for result in results] == ["can't start new thread"]
    assert workers.outstanding == 0
    workers.submit(lambda: 2, results.append)
    loop(workers, posted, 1)
    assert results[1:] == [2] and workers.outstanding == 0
    workers.stop()


def test_the_threads_that_are_there_do_the_work_of_those_that_could_not_be_started(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    posted: SimpleQueue[Any] = SimpleQueue()
    workers = Workers(lambda *call: posted.put(call))
    results: list[Any] = []
    gate: SimpleQueue[Any] = SimpleQueue()
    workers.submit(gate.get, results.append)
    monkeypatch.setattr(module, "start_new_thread", no_more_threads)
    workers.submit(lambda: "second", results.append)
    gate.put("first")
    loop(workers, posted, 2)
    assert results == ["first", "second"] and workers.outstanding == 0
    workers.stop()


def test_an_end_that_fails_and_a_loop_that_is_gone_leave_the_rest_alone() -> None:
    posted: SimpleQueue[Any] = SimpleQueue()
    refusals = [True, False]

    def post(*call: Any) -> None:
        if refusals.pop(0):
            raise OSError("the loop is closed")
        posted.put(call)

    workers = Workers(post, limit=1)
    workers.submit(lambda: "lost", no_more_threads)
    workers.submit(lambda: "done", no_more_threads)
    with pytest.raises(RuntimeError):
        loop(workers, posted, 1)
    assert workers.outstanding == 1, "the one that was lost"
    workers.stop()


def test_a_waiting_thread_keeps_nothing_of_its_last_work() -> None:
    class Thing:
        pass

    posted: SimpleQueue[Any] = SimpleQueue()
    workers = Workers(lambda callback, *arguments: posted.put(None))
    thing = Thing()
    there = weakref.ref(thing)
    workers.submit(lambda thing=thing: thing, lambda result: None)  # type: ignore[misc]
    del thing
    posted.get(timeout=10)
    deadline = time.monotonic() + 10
    while there() is not None and time.monotonic() < deadline:
        time.sleep(0.001)
    assert there() is None
    workers.stop()


@pytest.mark.skipif(sys.platform != "linux", reason="threads have no priority of their own")
def test_threads_that_stand_back_are_the_only_ones() -> None:
    posted: SimpleQueue[Any] = SimpleQueue()
    before = os.getpriority(os.PRIO_PROCESS, 0)
    results: list[int] = []
    for workers in (
        Workers(lambda *call: posted.put(call), limit=1, nice=3),
        Workers(lambda *call: posted.put(call)),
    ):
        workers.submit(lambda: os.getpriority(os.PRIO_PROCESS, 0), results.append)
        loop(workers, posted, 1)
        workers.stop()
    assert results == [min(before + 3, 19), before]
    assert os.getpriority(os.PRIO_PROCESS, 0) == before
