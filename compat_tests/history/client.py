"""A client as a program, so that it can be killed: `python -m compat_tests.history.client NAME=VALUE ...`.

role (ROLES), process, path (of its history), bootstrap, keys (separated by commas), seed, name (a transactional id or a
group). It works until its standard input ends. Exit code 3: it gave up and wants to be replaced; why is on stderr.
"""

from __future__ import annotations

import os
import random
import sys
import threading
import time
from collections.abc import Callable
from typing import NoReturn, Protocol

from compat_tests.history.consuming import Member, Reader
from compat_tests.history.events import COMMITTED, IDEMPOTENT, PLAIN, UNCOMMITTED
from compat_tests.history.producing import GivesUp, Transactions, Transform, Untransactional
from compat_tests.history.raw_producer import RawTransactions
from compat_tests.history.recorder import Recorder

GAVE_UP = 3
PAUSE_S = 0.04  # at most, between steps: the machine has others to serve


class Client(Protocol):
    def step(self) -> None: ...


class Given:
    """The arguments."""

    def __init__(self, words: list[str]) -> None:
        given = dict(word.split("=", 1) for word in words)
        self.role = given["role"]
        self.process = given["process"]
        self.path = given["path"]
        self.bootstrap = given["bootstrap"]
        self.keys = given["keys"].split(",")
        self.name = given["name"]
        self.chance = random.Random(given["seed"])

    @property
    def topics(self) -> list[str]:
        return sorted({key.rpartition(":")[0] for key in self.keys})


def untransactional(kind: str) -> Callable[[Given, Recorder], Client]:
    return lambda given, recorder: Untransactional(kind, given.bootstrap, given.keys, recorder, given.chance)


def reader(isolation: str) -> Callable[[Given, Recorder], Client]:
    return lambda given, recorder: Reader(isolation, given.bootstrap, given.keys, recorder, given.chance)


def transactions(kind: type[Transactions] | type[RawTransactions]) -> Callable[[Given, Recorder], Client]:
    return lambda given, recorder: kind(given.bootstrap, given.keys, recorder, given.chance, given.name)


def member(given: Given, recorder: Recorder) -> Client:
    return Member(COMMITTED, given.bootstrap, given.topics, recorder, given.name)


ROLES: dict[str, Callable[[Given, Recorder], Client]] = {
    "plain": untransactional(PLAIN),
    "idempotent": untransactional(IDEMPOTENT),
    "transactions": transactions(Transactions),
    "transform": transactions(Transform),
    "raw": transactions(RawTransactions),
    "committed": reader(COMMITTED),
    "uncommitted": reader(UNCOMMITTED),
    "member": member,
}


def leave(code: int) -> NoReturn:
    """End without closing the clients: librdkafka may wait for ever for a broker that it was just connecting to."""
    sys.stderr.flush()
    os._exit(code)


def end_of_input() -> threading.Event:
    """Set when standard input has ended."""
    ended = threading.Event()

    def wait() -> None:
        sys.stdin.read()
        ended.set()

    threading.Thread(target=wait, daemon=True).start()
    return ended


def main() -> None:
    given = Given(sys.argv[1:])
    ended = end_of_input()
    with Recorder(given.process, given.path) as recorder:
        try:
            client = ROLES[given.role](given, recorder)
            while not ended.is_set():
                client.step()
                time.sleep(given.chance.uniform(0, PAUSE_S))
        except GivesUp as problem:
            print(f"{given.process} ({given.role}) gives up: {problem}", file=sys.stderr)
            leave(GAVE_UP)
        leave(0)


if __name__ == "__main__":
    main()
