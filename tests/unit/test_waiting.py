"""Waiting requests are asked when a partition advances, once a pass, and answered when their time is up."""

from pykafkad.waiting import Waiting


class FakePartition:
    def __init__(self) -> None:
        self.waiters: list = []


class FakeTimer:
    def __init__(self, delay_ms, callback, args) -> None:
        self.delay_ms, self.callback, self.args, self.cancelled = delay_ms, callback, args, False

    def cancel(self) -> None:
        self.cancelled = True

    def fire(self) -> None:
        self.callback(*self.args)


class Timers(list):
    def __call__(self, delay_ms, callback, *args) -> FakeTimer:
        self.append(FakeTimer(delay_ms, callback, args))
        return self[-1]


class Attempt:
    """An attempt that answers with what it is told to, and remembers how it was asked."""

    def __init__(self, *answers: bool) -> None:
        self.answers, self.asked = list(answers), []

    def __call__(self, expired: bool) -> bool:
        self.asked.append(expired)
        return True if expired else self.answers.pop(0)


def test_a_waiter_is_asked_once_however_many_of_its_partitions_moved():
    timers, first, second = Timers(), FakePartition(), FakePartition()
    waiting, attempt = Waiting(timers), Attempt(True)
    waiting.wait([first, second], 500, attempt)
    waiting.advanced(first), waiting.advanced(second), waiting.advanced(first)
    assert attempt.asked == []
    waiting.ask_woken()
    assert attempt.asked == [False]
    assert timers[0].cancelled and first.waiters == second.waiters == [] and waiting.count == 0


def test_a_waiter_that_is_not_satisfied_waits_on_and_is_asked_again():
    timers, partition = Timers(), FakePartition()
    waiting, attempt = Waiting(timers), Attempt(False, True)
    waiting.wait([partition], 500, attempt)
    for _ in range(2):
        waiting.advanced(partition)
        waiting.ask_woken()
    waiting.advanced(partition)
    waiting.ask_woken()
    assert attempt.asked == [False, False]


def test_time_runs_out():
    timers, partition = Timers(), FakePartition()
    waiting, attempt = Waiting(timers), Attempt()
    waiting.wait([partition], 123, attempt)
    assert timers[0].delay_ms == 123
    timers[0].fire()
    timers[0].fire()
    assert attempt.asked == [True] and partition.waiters == [] and waiting.count == 0


def test_a_cancelled_waiter_is_not_asked_even_if_it_was_woken():
    timers, partition = Timers(), FakePartition()
    waiting, attempt = Waiting(timers), Attempt(True)
    waiter = waiting.wait([partition], 500, attempt)
    waiting.advanced(partition)
    waiting.cancel(waiter)
    waiting.ask_woken()
    assert attempt.asked == [] and partition.waiters == []


def test_all_are_answered_when_the_broker_stops():
    timers, partition = Timers(), FakePartition()
    waiting, attempts = Waiting(timers), [Attempt(), Attempt()]
    for attempt in attempts:
        waiting.wait([partition], 500, attempt)
    waiting.expire_all()
    assert [attempt.asked for attempt in attempts] == [[True], [True]] and waiting.count == 0
