"""The clients of a history, each a process: started, killed, replaced when they give up, asked to end."""

from __future__ import annotations

import random
import subprocess
import sys
import time
from pathlib import Path
from typing import NamedTuple

from compat_tests.history.client import GAVE_UP

END_S = 20.0


class Part(NamedTuple):
    """One client's place: its program, a module, and what it is told besides `process`, `path` and `seed`. Those who take
    it one after the other are told the same: a transactional id, or a group."""

    label: str
    module: str
    given: dict[str, str]


class Place:
    def __init__(self, number: int, part: Part) -> None:
        self.number = number
        self.part = part
        self.lives = 0
        self.process: subprocess.Popen[bytes] | None = None


class Crowd:
    def __init__(self, parts: list[Part], directory: Path, seed: int) -> None:
        self._directory, self._seed = directory, seed
        self._places = [Place(number, part) for number, part in enumerate(parts)]
        self.gave_up = 0
        self.crashed = 0
        for place in self._places:
            self._start(place)

    def crash(self, chance: random.Random) -> None:
        """kill -9 of one, in whose place another comes."""
        place = chance.choice(self._places)
        assert place.process is not None
        place.process.kill()
        self.crashed += 1

    def tend(self) -> None:
        """Replace those that are gone. One that ended in a way that nobody meant is a bug of ours."""
        for place in self._places:
            assert place.process is not None
            code = place.process.poll()
            if code is not None:
                if code not in (GAVE_UP, -9):
                    raise AssertionError(f"{place.part.label} ended with {code}:\n{self.said()}")
                self.gave_up += code == GAVE_UP
                self._close(place.process)
                self._start(place)

    def end(self) -> None:
        """What does not end by itself is killed, as in a crash."""
        running = [place.process for place in self._places if place.process is not None]
        for process in running:
            assert process.stdin is not None
            process.stdin.close()
        deadline = time.monotonic() + END_S
        for process in running:
            try:
                process.wait(max(0.0, deadline - time.monotonic()))
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
        self._places.clear()

    def said(self) -> str:
        return (self._directory / "clients.err").read_text(errors="replace")[-4000:]

    def _start(self, place: Place) -> None:
        place.lives += 1
        process = f"{place.part.label}-{place.number}-{place.lives}"
        own = {
            "process": process,
            "path": str(self._directory / f"{process}.jsonl"),
            "seed": f"{self._seed} {process}",
        }
        words = [f"{name}={value}" for name, value in {**place.part.given, **own}.items()]
        with (self._directory / "clients.err").open("ab") as errors:
            place.process = subprocess.Popen(
                [sys.executable, "-m", place.part.module, *words], stdin=subprocess.PIPE, stderr=errors
            )

    @staticmethod
    def _close(process: subprocess.Popen[bytes]) -> None:
        assert process.stdin is not None
        process.stdin.close()
