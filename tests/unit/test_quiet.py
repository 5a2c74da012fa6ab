"""Log lines that clients can cause again and again: one a minute, with the number of those left out."""

from __future__ import annotations

import io
from collections.abc import Callable, Iterator

import pytest

from pykafkad import logs
from pykafkad.clock import ManualClock
from pykafkad.quiet import KINDS_MAX, Quiet, kind_of


class Said:
    """A Quiet with a manual clock, and the lines that it let through."""

    def __init__(self) -> None:
        self.clock = ManualClock()
        self.timers: list[tuple[int, Callable[[], object]]] = []
        self.stream = io.StringIO()
        self.quiet = Quiet(self.clock.monotonic_ms, self.call_later)
        self.log = logs.logger("quiet-test")

    def call_later(self, delay_ms: int, callback: Callable[[], object]) -> None:
        self.timers.append((self.clock.monotonic_ms() + delay_ms, callback))

    def advance(self, ms: int) -> None:
        self.clock.advance(ms)
        for timer in [timer for timer in self.timers if timer[0] <= self.clock.monotonic_ms()]:
            self.timers.remove(timer)
            timer[1]()

    def say(self, kind: str, address: str) -> None:
        if self.quiet.allows(self.log, kind, address):
            self.log.info(f"{kind} of {address}")

    @property
    def lines(self) -> list[str]:
        return [line.partition("] ")[2].partition("] ")[2] for line in self.stream.getvalue().splitlines()]


@pytest.fixture
def said() -> Iterator[Said]:
    made = Said()
    logs.set_stream(made.stream)
    yield made
    logs.set_stream(None)
    logs.set_level("info")


def test_noise_is_one_line_and_a_count(said: Said) -> None:
    for _ in range(20_000):
        said.say("noise", "10.0.0.1")
    said.advance(60_000)
    assert said.lines == ["noise of 10.0.0.1", "noise: 19999 more from 10.0.0.1 within a minute"]
    said.say("noise", "10.0.0.1")
    said.advance(60_000)
    assert said.lines[2:] == ["noise of 10.0.0.1"]
    assert not said.timers


def test_other_kinds_and_other_addresses_are_said(said: Said) -> None:
    said.say("noise", "10.0.0.1")
    said.advance(30_000)
    said.say("noise", "10.0.0.2")
    said.say("silence", "10.0.0.1")
    said.say("noise", "10.0.0.1")
    said.advance(30_000)
    assert [at - said.clock.monotonic_ms() for at, _ in said.timers] == [30_000], (
        "when the next minute is over"
    )
    said.say("noise", "10.0.0.2")
    said.advance(30_000)
    assert said.lines == [
        "noise of 10.0.0.1",
        "noise of 10.0.0.2",
        "silence of 10.0.0.1",
        "noise: 1 more from 10.0.0.1 within a minute",
        "noise: 1 more from 10.0.0.2 within a minute",
    ]


def test_ever_new_addresses_neither_fill_the_memory_nor_the_log(said: Said) -> None:
    for number in range(100_000):
        said.say("noise", f"2001:db8::{number:x}")
    assert len(said.quiet._said) <= KINDS_MAX + 1
    assert len(said.lines) <= KINDS_MAX + 1
    said.advance(60_000)
    assert (
        said.lines[-1] == f"more lines: {100_000 - KINDS_MAX - 1} more from other addresses within a minute"
    )
    assert not said.quiet._said


def test_at_debug_level_all_is_said(said: Said) -> None:
    logs.set_level("debug")
    for _ in range(5):
        said.say("noise", "10.0.0.1")
    assert len(said.lines) == 5


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("Invalid receive (size = 7 larger than 5)", "Invalid receive"),
        ("idle for 1 ms (connections.max.idle.ms)", "idle for"),
        ("\u0663 odd", "trouble"),
        ("ValueError: x", "trouble"),
    ],
)
def test_lines_of_one_kind(text: str, kind: str) -> None:
    assert kind_of(text) == kind
