"""A member of a group: a process of its own that runs one client's program (drivers/line.py has the lines).

Owns the process, and what it has printed so far: the partitions it owns and has owned, its records, why it gave up.
"""

from __future__ import annotations

import queue
import subprocess
import tempfile
import threading
import time
from collections.abc import Callable
from typing import NamedTuple

WAIT_SECONDS = 40.0  # for any event
STOP_SECONDS = 15.0
STDERR_SHOWN = 3000


class Partition(NamedTuple):
    topic: str
    number: int

    def __str__(self) -> str:
        return f"{self.topic}:{self.number}"


class Read(NamedTuple):
    partition: Partition
    offset: int
    value: str


def partition(word: str) -> Partition:
    topic, _, number = word.rpartition(":")
    return Partition(topic, int(number))


class Refused(Exception):
    """The client refused a command."""


class Member:
    """`ready` when it is returned: its client is running, but has not joined."""

    def __init__(self, name: str, command: list[str], given: dict[str, str]) -> None:
        self.name = name
        self.instance = given["instance"]
        self.owned: frozenset[Partition] = frozenset()
        self.rebalances: list[frozenset[Partition]] = []  # the partitions it owned, after each callback
        self.read: list[Read] = []
        self.gave_up: list[str] = []
        self._answers: queue.Queue[list[str]] = queue.Queue()
        self._changed = threading.Condition()
        self._stderr = tempfile.TemporaryFile("w+")  # noqa: SIM115
        self._process = subprocess.Popen(
            [*command, *(f"{key}={value}" for key, value in given.items())],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._stderr,
            text=True,
        )
        self._reader = threading.Thread(target=self._listen, daemon=True)
        self._reader.start()

    def __repr__(self) -> str:
        held = " ".join(map(str, sorted(self.owned))) or "nothing"
        said = f", said {self.gave_up[-1]!r}" if self.gave_up else ""
        return f"<{self.name}: holds {held}, read {len(self.read)}{said}>"

    def await_ready(self) -> None:
        assert self._answer() == ["ready"], self._trouble("did not start")

    def ask(self, *words: object) -> str:
        """Send one command; returns the result, or raises Refused."""
        assert self._process.stdin is not None
        try:
            self._process.stdin.write(" ".join(map(str, words)) + "\n")
            self._process.stdin.flush()
        except BrokenPipeError:
            raise AssertionError(self._trouble(f"was gone when told {words}")) from None
        answer = self._answer()
        if answer[0] != "ok":
            raise Refused(f"{self.name} {words}: {' '.join(answer)}")
        return " ".join(answer[1:])

    def join(self) -> None:
        self.ask("join")

    def leave(self) -> None:
        """Leave like an application that ends normally."""
        self.ask("leave")
        self._process.wait(STOP_SECONDS)

    def crash(self) -> None:
        self._process.kill()
        self._process.wait()
        self._reader.join()

    def committed(self, where: Partition) -> int | None:
        found = self.ask("committed", where)
        return None if found == "-" else int(found)

    def values(self, values: set[str]) -> list[Read]:
        with self._changed:
            return [one for one in self.read if one.value in values]

    def close(self) -> None:
        if self._process.poll() is None:
            self.crash()
        self._reader.join()
        for stream in (self._process.stdin, self._process.stdout, self._stderr):
            if stream is not None:
                try:
                    stream.close()
                except BrokenPipeError:  # of a command during which it died
                    pass

    def wait(self, predicate: Callable[[], bool], seconds: float = WAIT_SECONDS) -> bool:
        deadline = time.monotonic() + seconds
        with self._changed:
            while not predicate():
                if (left := deadline - time.monotonic()) <= 0:
                    return False
                self._changed.wait(min(left, 0.1))  # the predicate may be about other members too
        return True

    def _answer(self) -> list[str]:
        try:
            return self._answers.get(timeout=WAIT_SECONDS)
        except queue.Empty:
            raise AssertionError(self._trouble(f"did not answer in {WAIT_SECONDS} s")) from None

    def _trouble(self, what: str) -> str:
        self._stderr.seek(0)
        return f"{self!r} {what}; {self.gave_up}\n{self._stderr.read()[-STDERR_SHOWN:]}"

    def _listen(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            self._hear(line.split())
        self._answers.put(["error", "it ended"])

    def _hear(self, words: list[str]) -> None:
        with self._changed:
            match words:
                case ["owns", *held]:
                    self.owned = frozenset(map(partition, held))
                    self.rebalances.append(self.owned)
                case ["record", where, offset, value]:
                    self.read.append(Read(partition(where), int(offset), value))
                case ["fatal", *text]:
                    self.gave_up.append(" ".join(text))
                case _:
                    self._answers.put(words)
            self._changed.notify_all()
