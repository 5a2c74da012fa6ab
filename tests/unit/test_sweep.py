"""Which idle and slow connections a sweep closes, and when the next sweep is."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from pykafkad.net.sweep import (
    IDLE_PAUSE_MS,
    LOOKED_AT,
    SLOW_BYTES_PER_S,
    SLOW_CROWDED_MS,
    SLOW_MS,
    SLOW_PAUSE_MS,
    Sweep,
)

IDLE_MS = 600_000


class FakeConnection:
    def __init__(self, received_at_ms: int = 0, frame_bytes: int = 0, began_ms: int = 0) -> None:
        self.received_at_ms = received_at_ms
        self.frame_bytes, self.frame_began_ms = frame_bytes, began_ms
        self.receiving = True
        self.closed: str | None = None

    def close(self, why: str) -> None:
        self.closed = why


class FakeReactor:
    def __init__(self, now_ms: int = 1_000_000) -> None:
        self.now_ms = now_ms
        self.connections: list[FakeConnection] = []
        self.unfinished: list[FakeConnection] = []
        self.crowded = False
        self.later: list[tuple[int, Callable[[], None]]] = []

    def call_later(self, delay_ms: int, call: Callable[[], None]) -> None:
        self.later.append((delay_ms, call))


class Desk:
    """A sweep over fake connections; its work is done at once, and its yields are counted."""

    def __init__(self, idle_ms: int = IDLE_MS) -> None:
        self.reactor = FakeReactor()
        self.yields = 0
        self.error: Exception | None = None
        self.sweep = Sweep(self.reactor, idle_ms, self.run)  # type: ignore[arg-type]

    def run(self, work: Any, done: Callable[[Any], None]) -> None:
        if self.error is not None:
            return done(self.error)
        while True:
            try:
                next(work)
            except StopIteration as end:
                return done(end.value)
            self.yields += 1

    def look(self, name: str) -> int:
        """Sweep; returns after how many ms the next one is due."""
        self.reactor.later.clear()
        getattr(self.sweep, f"_look_for_{name}")()
        ((delay_ms, call),) = self.reactor.later
        assert call == getattr(self.sweep, f"_look_for_{name}")
        return delay_ms

    def connect(self, **given: int) -> FakeConnection:
        connection = FakeConnection(**given)
        self.reactor.connections.append(connection)
        if connection.frame_bytes:
            self.reactor.unfinished.append(connection)
        return connection

    def grown(self, connection: FakeConnection, after_ms: int, size: int) -> FakeConnection:
        """Sweep again after the connection has received more bytes."""
        self.look("slow")
        self.reactor.now_ms += after_ms
        connection.frame_bytes += size
        self.look("slow")
        return connection


def test_both_looks_begin_and_idling_is_no_fault_where_the_config_is_negative() -> None:
    for idle_ms, delays in (
        (IDLE_MS, [IDLE_MS, SLOW_PAUSE_MS]),
        (0, [0, SLOW_PAUSE_MS]),
        (-1, [SLOW_PAUSE_MS]),
    ):
        desk = Desk(idle_ms)
        desk.sweep.begin()
        assert [delay for delay, _ in desk.reactor.later] == delays


def test_who_idles_as_long_as_may_be_is_closed_and_nobody_else() -> None:
    desk = Desk()
    now_ms = desk.reactor.now_ms
    idle, active = (
        desk.connect(received_at_ms=now_ms - IDLE_MS),
        desk.connect(received_at_ms=now_ms - IDLE_MS + 1),
    )
    desk.look("idle")
    assert idle.closed == f"idle for {IDLE_MS} ms (connections.max.idle.ms)"
    assert active.closed is None


@pytest.mark.parametrize(
    ("received_before_ms", "delay_ms"),
    [
        ((), IDLE_MS),
        ((0,), IDLE_MS),
        ((100_000, 300_000, 5), 300_000),
        ((IDLE_MS - 1,), IDLE_MS // 20),
        ((IDLE_MS,), IDLE_MS),
    ],
)
def test_the_next_look_is_when_somebody_may_be_idle_but_not_at_once(
    received_before_ms: tuple[int, ...], delay_ms: int
) -> None:
    desk = Desk()
    for before_ms in received_before_ms:
        desk.connect(received_at_ms=desk.reactor.now_ms - before_ms)
    assert desk.look("idle") == delay_ms


def test_looks_have_a_pause_however_short_connections_may_idle() -> None:
    desk = Desk(idle_ms=0)
    desk.connect()
    assert desk.look("idle") == IDLE_PAUSE_MS


@pytest.mark.parametrize("name", ["idle", "slow"])
def test_others_have_their_turn_between_many_connections(name: str) -> None:
    for count, yields in ((LOOKED_AT - 1, 0), (LOOKED_AT, 1), (3 * LOOKED_AT + 5, 3)):
        desk = Desk()
        for _ in range(count):
            desk.connect(received_at_ms=desk.reactor.now_ms, frame_bytes=1)
        desk.look(name)
        assert desk.yields == yields


@pytest.mark.parametrize(("name", "delay_ms"), [("idle", IDLE_MS // 20), ("slow", SLOW_PAUSE_MS)])
def test_a_look_that_fails_is_told_and_followed_by_another(name: str, delay_ms: int) -> None:
    desk = Desk()
    desk.error = ValueError("x")
    with pytest.raises(ValueError, match="x"):
        desk.look(name)
    assert [delay for delay, _ in desk.reactor.later] == [delay_ms]


ENOUGH = SLOW_BYTES_PER_S * SLOW_MS // 1000


@pytest.mark.parametrize(
    ("after_ms", "size", "is_closed"),
    [
        (SLOW_MS, ENOUGH - 1, True),
        (SLOW_MS, ENOUGH, False),
        (SLOW_MS - 1, 0, False),
        (2 * SLOW_MS, 2 * ENOUGH - 1, True),
        (2 * SLOW_MS, 2 * ENOUGH, False),
    ],
)
def test_a_frame_must_come_at_some_speed(after_ms: int, size: int, is_closed: bool) -> None:
    desk = Desk()
    connection = desk.grown(desk.connect(frame_bytes=7), after_ms, size)
    wanted = f"only {size} bytes of its frame came in {after_ms} ms" if is_closed else None
    assert connection.closed == wanted


def test_where_others_wait_for_its_memory_a_frame_has_less_time() -> None:
    for crowded in (True, False):
        desk = Desk()
        desk.reactor.crowded = crowded
        connection = desk.grown(desk.connect(frame_bytes=7), SLOW_CROWDED_MS, 10)
        assert (connection.closed is not None) == crowded


def test_what_came_is_counted_from_the_first_of_the_looks_that_are_too_close() -> None:
    desk = Desk()
    connection = desk.connect(frame_bytes=7)
    desk.grown(connection, SLOW_MS - 1, 0)
    desk.reactor.now_ms += 1
    desk.look("slow")
    assert connection.closed == f"only 0 bytes of its frame came in {SLOW_MS} ms"


def test_after_enough_has_come_counting_begins_anew() -> None:
    desk = Desk()
    connection = desk.grown(desk.connect(frame_bytes=7), SLOW_MS, 10 * ENOUGH)
    desk.reactor.now_ms += SLOW_MS
    desk.look("slow")
    assert connection.closed == f"only 0 bytes of its frame came in {SLOW_MS} ms"


def change_frame(connection: FakeConnection) -> None:
    connection.frame_began_ms += 1


def stop_receiving(connection: FakeConnection) -> None:
    connection.receiving = False


def become_whole(connection: FakeConnection) -> None:
    connection.frame_bytes = 0


@pytest.mark.parametrize("change", [change_frame, stop_receiving, become_whole])
def test_another_frame_and_who_is_not_read_from_begin_anew(change: Callable[[FakeConnection], None]) -> None:
    desk = Desk()
    connection = desk.connect(frame_bytes=7)
    desk.look("slow")
    change(connection)
    desk.reactor.now_ms += SLOW_MS
    desk.look("slow")
    assert connection.closed is None
    connection.frame_bytes, connection.receiving = 7, True
    desk.reactor.now_ms += SLOW_MS - 1
    desk.look("slow")
    assert connection.closed is None, "it was given the time from the last look on"


def test_nothing_is_kept_of_connections_whose_frames_are_whole() -> None:
    desk = Desk()
    desk.connect(frame_bytes=7)
    desk.look("slow")
    assert len(desk.sweep._marks) == 1
    desk.reactor.unfinished.clear()
    desk.look("slow")
    assert not desk.sweep._marks
