"""Waiting requests are asked when a partition advances, once a pass, and answered when their time is up."""

from typing import Any

from pykafkad.waiting import Waiting


class FakePartition:
    def __init__(self) -> None:
        self.waiters: dict[Any, Any] = {}


def fake_partition() -> Any:
    return FakePartition()


class FakeTimer:
    def __init__(self, delay_ms: Any, callback: Any, args: Any) -> None:
        self.delay_ms, self.callback, self.args, self.cancelled = delay_ms, callback, args, False

    def cancel(self) -> None:
        self.cancelled = True

    def fire(self) -> None:
        self.callback(*self.args)


class Timers(list[Any]):
    def __call__(self, delay_ms: Any, callback: Any, *args: Any) -> FakeTimer:
        self.append(FakeTimer(delay_ms, callback, args))
        return self[-1]


class Attempt:
    """An attempt that returns what it is told to, and notes its calls."""

    def __init__(self, *answers: bool) -> None:
        self.answers = list(answers)
        self.asked: list[bool] = []

    def __call__(self, expired: bool, moved: Any) -> bool:
        self.asked.append(expired)
        self.moved = list(moved)
        return True if expired else self.answers.pop(0)


def never_fails(error: Exception) -> None:
    raise AssertionError(error)


def test_a_waiter_is_asked_once_however_many_of_its_partitions_moved() -> None:
    timers, first, second = Timers(), fake_partition(), fake_partition()
    waiting, attempt = Waiting(timers), Attempt(True)
    waiting.wait([first, second], 500, attempt, never_fails)
    waiting.advanced(first), waiting.advanced(second), waiting.advanced(first)
    assert attempt.asked == []
    waiting.ask_woken()
    assert attempt.asked == [False]
    assert timers[0].cancelled and first.waiters == second.waiters == {} and waiting.count == 0


def test_what_a_follower_gets_is_sent_before_the_next_one_is_asked() -> None:
    """It is as busy with that as we are with the next: who waits for both waits for less."""
    events: list[str] = []
    partition = fake_partition()
    waiting = Waiting(Timers(), lambda: events.append("send"))

    def attempt(name: str) -> Any:
        def asked(expired: bool, moved: Any) -> bool:
            events.append(name)
            return True

        return asked

    for name in ("follower 1", "consumer", "follower 2", "follower 3"):
        waiter = waiting.wait([partition], 500, attempt(name), never_fails)
        waiter.is_follower = name.startswith("follower")
    waiting.advanced(partition)
    waiting.ask_woken()
    # The last one's is sent at the end of the pass, which this is.
    assert events == ["follower 1", "send", "consumer", "follower 2", "send", "follower 3"]


def test_a_waiter_that_is_not_satisfied_waits_on_and_is_asked_again() -> None:
    timers, partition = Timers(), fake_partition()
    waiting, attempt = Waiting(timers), Attempt(False, True)
    waiting.wait([partition], 500, attempt, never_fails)
    for _ in range(2):
        waiting.advanced(partition)
        waiting.ask_woken()
    waiting.advanced(partition)
    waiting.ask_woken()
    assert attempt.asked == [False, False]


def test_time_runs_out() -> None:
    timers, partition = Timers(), fake_partition()
    waiting, attempt = Waiting(timers), Attempt()
    waiting.wait([partition], 123, attempt, never_fails)
    assert timers[0].delay_ms == 123
    timers[0].fire()
    timers[0].fire()
    assert attempt.asked == [True] and partition.waiters == {} and waiting.count == 0


def test_a_cancelled_waiter_is_not_asked_even_if_it_was_woken() -> None:
    timers, partition = Timers(), fake_partition()
    waiting, attempt = Waiting(timers), Attempt(True)
    waiter = waiting.wait([partition], 500, attempt, never_fails)
    waiting.advanced(partition)
    waiting.cancel(waiter)
    waiting.ask_woken()
    assert attempt.asked == [] and partition.waiters == {}


def test_all_are_answered_when_the_broker_stops() -> None:
    timers, partition = Timers(), fake_partition()
    waiting, attempts = Waiting(timers), [Attempt(), Attempt()]
    for attempt in attempts:
        waiting.wait([partition], 500, attempt, never_fails)
    waiting.expire_all()
    assert [attempt.asked for attempt in attempts] == [[True], [True]] and waiting.count == 0


class Failing(Attempt):
    def __call__(self, expired: bool, moved: Any) -> bool:
        super().__call__(expired, moved)
        raise RuntimeError("a mistake")


def test_one_that_fails_is_told_and_waits_no_more_and_the_others_are_asked() -> None:
    timers, partition = Timers(), fake_partition()
    failures: list[Exception] = []
    waiting, failing, fine = Waiting(timers), Failing(True), Attempt(True)
    waiting.wait([partition], 500, failing, failures.append)
    waiting.wait([partition], 500, fine, never_fails)
    waiting.advanced(partition)
    waiting.ask_woken()
    assert fine.asked == [False]
    assert [str(error) for error in failures] == ["a mistake"]
    assert partition.waiters == {} and waiting.count == 0 and all(timer.cancelled for timer in timers)


def test_one_that_fails_when_its_time_is_up_is_told_too() -> None:
    timers, partition = Timers(), fake_partition()
    failures: list[Exception] = []
    waiting, attempts = Waiting(timers), [Failing(), Attempt()]
    waiting.wait([partition], 500, attempts[0], failures.append)
    waiting.wait([partition], 500, attempts[1], never_fails)
    waiting.expire_all()
    assert [attempt.asked for attempt in attempts] == [[True], [True]]
    assert len(failures) == 1 and partition.waiters == {} and waiting.count == 0


def test_a_partition_that_is_named_twice() -> None:
    timers, partition = Timers(), fake_partition()
    waiting, attempt = Waiting(timers), Attempt(True)
    waiting.wait([partition, partition], 500, attempt, never_fails)
    waiting.advanced(partition)
    waiting.ask_woken()
    assert attempt.asked == [False] and partition.waiters == {}


def test_what_woke_many_is_asked_in_several_passes_of_which_the_next_begins_at_once() -> None:
    timers, attempts = Timers(), [Attempt(True) for _ in range(4)]
    waiting = Waiting(timers)
    for attempt in attempts:
        partitions = [fake_partition() for _ in range(600)]
        waiting.wait(partitions, 500, attempt, never_fails)
        waiting.advanced(partitions[0])
    before = len(timers)
    waiting.ask_woken()
    asked = [len(attempt.asked) for attempt in attempts]
    assert sorted(asked, reverse=True) == asked and 0 < sum(asked) < 4, "in their order"
    assert [timer.delay_ms for timer in timers[before:]] == [0]
    timers[-1].callback()
    while waiting.woken:
        waiting.ask_woken()
    assert [attempt.asked for attempt in attempts] == [[False]] * 4 and waiting.count == 0
