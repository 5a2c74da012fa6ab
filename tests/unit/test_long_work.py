"""Long work for groups: in slices, one after the other, and never in the way of the next."""

from __future__ import annotations

from collections import deque
from types import SimpleNamespace
from typing import Any
from unittest.mock import Mock

import pytest

from pykafkad import slices
from pykafkad.clock import ManualClock
from pykafkad.coordinator.runtime.kind import MachineKind
from pykafkad.coordinator.runtime.long_work import LongWork
from pykafkad.pure.effects import Effects, Work
from pykafkad.slices import Slices

KIND = MachineKind("o", "group", Mock(), load_buffer_bytes=1)
SLICE_MS = 2


@pytest.fixture(autouse=True)
def long_slices(monkeypatch: pytest.MonkeyPatch) -> None:
    """In which more than one piece of a whole millisecond finds place."""
    monkeypatch.setattr(slices, "SLICE_US", 1000 * SLICE_MS)


class Desk:
    """Work whose pieces take a millisecond each."""

    def __init__(self) -> None:
        self.clock = ManualClock()
        self.soon: deque[Any] = deque()
        self.long_work = LongWork(KIND, Slices(self.soon.append, self.clock).run, self.clock)
        self.pieces: list[str] = []
        self.results: list[Any] = []
        self.shard: Any = SimpleNamespace(is_active=True, do=self.do, partition=SimpleNamespace(name="o-0"))

    def do(self, effects: Any) -> None:
        assert isinstance(effects, Effects)

    def add(self, name: str, pieces: int, error: Exception | None = None, fails: bool = False) -> None:
        def steps() -> Any:
            for _ in range(pieces):
                self.clock.advance(1)
                self.pieces.append(name)
                yield
            if error is not None:
                raise error
            return name

        def then(result: Any, now_ms: int) -> Effects:
            if fails:
                raise RuntimeError("then")
            self.results.append(result)
            return Effects()

        self.long_work.add(self.shard, Work(steps(), then))

    def turn(self) -> int:
        before = len(self.pieces)
        for _ in range(len(self.soon)):
            self.soon.popleft()()
        return len(self.pieces) - before

    def finish(self) -> None:
        while self.soon:
            assert self.turn() <= SLICE_MS


def test_one_after_the_other_and_never_longer_than_a_slice() -> None:
    desk = Desk()
    desk.add("a", 5)
    desk.add("b", 3)
    assert desk.pieces == ["a", "a"]
    desk.finish()
    assert "".join(desk.pieces) == "aaaaabbb" and desk.results == ["a", "b"]
    desk.add("c", 1)
    assert desk.results == ["a", "b", "c"]


def test_work_of_a_shard_that_is_gone_is_dropped() -> None:
    desk = Desk()
    desk.add("a", 9)
    desk.add("b", 1)
    desk.shard.is_active = False
    desk.finish()
    assert desk.pieces.count("a") < 9 and desk.results == []
    desk.shard.is_active = True
    desk.add("c", 1)
    assert desk.results == ["c"]


@pytest.mark.parametrize("how", [{"error": ValueError("steps")}, {"fails": True}], ids=["steps", "then"])
def test_work_that_fails_is_logged_and_the_next_is_done(how: Any, capsys: pytest.CaptureFixture[str]) -> None:
    desk = Desk()
    desk.add("a", 3, **how)
    desk.add("b", 3)
    desk.finish()
    assert desk.results == ["b"]
    assert "o-0: work for a group failed" in "".join(capsys.readouterr())
