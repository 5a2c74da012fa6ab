"""One transactional client as a program: lines in, lines out, so that every client in every language is driven alike.

The argument is bootstrap=HOST:PORT. The program prints `ready`; then each command is answered by `ok`, with the
values it found, or by `error TEXT`. A place is TOPIC:PARTITION, a value is a word. What commands name stays until it is
closed; the end of the input ends the program.

    producer NAME TRANSACTIONAL_ID TIMEOUT_MS [GROUP TOPIC PROTOCOL]   initialised; with a group, which follows the
                                  protocol classic or consumer, also its consumer, of that topic
    begin NAME | commit NAME | abort NAME
    send NAME PLACE VALUE ...     in the transaction; acknowledged when it is answered
    consume NAME COUNT            the next values that the group's consumer reads, read_committed
    transform NAME PLACE          sends VALUE' for each consumed value, and their offsets, in the transaction
    reader NAME ISOLATION PLACE   read_committed or read_uncommitted, from the beginning
    take NAME VALUE               the values up to this one
    peek NAME                     the values that come in PEEK_SECONDS
    close NAME
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from typing import NamedTuple, Protocol

TAKE_SECONDS = 30.0
POLL_SECONDS = 0.1
PEEK_SECONDS = 0.4

Place = tuple[str, int]


class Group(NamedTuple):
    name: str
    topic: str
    protocol: str


class Producer(Protocol):
    def begin(self) -> None: ...
    def send(self, place: Place, values: list[str]) -> None: ...
    def commit(self) -> None: ...
    def abort(self) -> None: ...
    def consume(self) -> list[str]:
        """What has come meanwhile, after POLL_SECONDS at the latest."""

    def send_offsets(self) -> None:
        """Those of everything consumed."""

    def close(self) -> None: ...


class Reader(Protocol):
    def poll(self) -> list[str]: ...
    def close(self) -> None: ...


class Makers(Protocol):
    """What a client's module has."""

    def producer(
        self, bootstrap: str, transactional_id: str, timeout_ms: int, group: Group | None
    ) -> Producer: ...
    def reader(self, bootstrap: str, isolation: str, place: Place) -> Reader: ...


def place(word: str) -> Place:
    topic, _, partition = word.rpartition(":")
    return topic, int(partition)


def gather(poll: Callable[[], list[str]], ended: Callable[[list[str]], bool]) -> list[str]:
    got: list[str] = []
    deadline = time.monotonic() + TAKE_SECONDS
    while not ended(got):
        if time.monotonic() > deadline:
            raise TimeoutError(f"only {got} in {TAKE_SECONDS} s")
        got += poll()
    return got


class Session:
    def __init__(self, bootstrap: str, makers: Makers) -> None:
        self._bootstrap = bootstrap
        self._makers = makers
        self._producers: dict[str, Producer] = {}
        self._consumed: dict[str, list[str]] = {}
        self._readers: dict[str, Reader] = {}
        self._ahead: dict[str, list[str]] = {}  # what a reader has read and nobody has taken

    def act(self, words: list[str]) -> list[str]:
        match words:
            case ["producer", name, transactional_id, timeout_ms, *of_group]:
                group = Group(*of_group) if of_group else None
                self._producers[name] = self._makers.producer(
                    self._bootstrap, transactional_id, int(timeout_ms), group
                )
            case ["begin" | "commit" | "abort" as what, name]:
                getattr(self._producers[name], what)()
            case ["send", name, where, *values]:
                self._producers[name].send(place(where), values)
            case ["consume", name, count]:
                wanted = int(count)
                found = gather(self._producers[name].consume, lambda got: len(got) >= wanted)
                self._consumed[name] = found
                return found
            case ["transform", name, where]:
                self._producers[name].send(place(where), [f"{value}'" for value in self._consumed[name]])
                self._producers[name].send_offsets()
            case ["reader", name, isolation, where]:
                self._readers[name] = self._makers.reader(self._bootstrap, isolation, place(where))
                self._ahead[name] = []
            case ["take", name, last]:
                return self._take(name, last)
            case ["peek", name]:
                return self._peek(name)
            case ["close", name] if name in self._producers:
                self._producers.pop(name).close()
            case ["close", name]:
                self._readers.pop(name).close()
            case _:
                raise ValueError(" ".join(words))
        return []

    def _take(self, name: str, last: str) -> list[str]:
        ahead = self._ahead[name]
        if last not in ahead:
            ahead += gather(self._readers[name].poll, lambda got: last in got)
        end = ahead.index(last) + 1
        self._ahead[name] = ahead[end:]
        return ahead[:end]

    def _peek(self, name: str) -> list[str]:
        found, self._ahead[name] = self._ahead[name], []
        until = time.monotonic() + PEEK_SECONDS
        while time.monotonic() < until:
            found += self._readers[name].poll()
        return found


def serve(makers: Makers) -> None:
    given = dict(word.split("=", 1) for word in sys.argv[1:])
    session = Session(given["bootstrap"], makers)
    print("ready", flush=True)
    for line in sys.stdin:
        try:
            print("ok", *session.act(line.split()), flush=True)
        except Exception as error:
            print("error", repr(error).replace("\n", " "), flush=True)
