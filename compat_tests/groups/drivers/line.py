"""One member of a group as a program: lines in, lines out, so that every client in every language is driven alike, and
a crash is the end of a process.

Arguments are NAME=VALUE: bootstrap, group, client_id, topics (separated by commas), protocol (classic or consumer),
assignor, instance (may be empty), session_ms, heartbeat_ms. The member prints `ready` when it could join, and joins on
command. Nothing is committed without a command; without a committed offset it begins with the earliest record.

Commands (a partition is TOPIC:NUMBER): join | commit (what was read) | commit PARTITION OFFSET | committed PARTITION |
seek PARTITION OFFSET | pause PARTITION | resume PARTITION | leave. Each is answered by `ok`, with the result, or `error
TEXT`; `leave` ends the program. Without a command it prints `owns [PARTITION ...]` whenever the client reports a
rebalance: all partitions that it owns from then on; `record PARTITION OFFSET VALUE` for each record that it reads;
`fatal TEXT` when the client gives up, or complains.
"""

from __future__ import annotations

import os
import queue
import sys
import threading
import time
from collections.abc import Iterable
from typing import Protocol

POLL_SECONDS = 0.05

Partition = tuple[str, int]


class Client(Protocol):
    def join(self) -> None: ...
    def poll(self) -> None: ...
    def commit(self, offsets: dict[Partition, int] | None) -> None: ...
    def committed(self, partition: Partition) -> int | None: ...
    def seek(self, partition: Partition, offset: int) -> None: ...
    def pause(self, partition: Partition) -> None: ...
    def resume(self, partition: Partition) -> None: ...
    def leave(self) -> None: ...


def say(*words: object) -> None:
    print(*words, flush=True)


def record(topic: str, partition: int, offset: int, value: bytes) -> None:
    say("record", f"{topic}:{partition}", offset, value.decode())


class Owned:
    """The partitions that the client owns according to its rebalance callbacks."""

    def __init__(self) -> None:
        self._partitions: set[Partition] = set()

    def add(self, partitions: Iterable[Partition]) -> None:
        self._partitions.update(partitions)
        self._tell()

    def remove(self, partitions: Iterable[Partition]) -> None:
        self._partitions.difference_update(partitions)
        self._tell()

    def _tell(self) -> None:
        say("owns", *(f"{topic}:{number}" for topic, number in sorted(self._partitions)))


def arguments() -> dict[str, str]:
    return dict(word.split("=", 1) for word in sys.argv[1:])


def partition(word: str) -> Partition:
    topic, _, number = word.rpartition(":")
    return topic, int(number)


def _read(commands: queue.Queue[list[str]]) -> None:
    for line in sys.stdin:
        commands.put(line.split())
    os._exit(0)  # the test has ended


def _act(client: Client, words: list[str]) -> str | None:
    match words:
        case ["join"]:
            client.join()
        case ["commit"]:
            client.commit(None)
        case ["commit", where, offset]:
            client.commit({partition(where): int(offset)})
        case ["committed", where]:
            offset_or_none = client.committed(partition(where))
            return "-" if offset_or_none is None else str(offset_or_none)
        case ["seek", where, offset]:
            client.seek(partition(where), int(offset))
        case ["pause", where]:
            client.pause(partition(where))
        case ["resume", where]:
            client.resume(partition(where))
        case _:
            raise ValueError(" ".join(words))
    return None


def _answer(client: Client, words: list[str]) -> None:
    try:
        found = _act(client, words)
    except Exception as error:
        say("error", repr(error).replace("\n", " "))
    else:
        say("ok", *([] if found is None else [found]))


def serve(client: Client) -> None:
    commands: queue.Queue[list[str]] = queue.Queue()
    threading.Thread(target=_read, args=(commands,), daemon=True).start()
    say("ready")
    joined = False
    while True:
        try:
            words = commands.get(block=not joined)
        except queue.Empty:
            try:
                client.poll()
            except Exception as error:  # an application would continue, too
                say("fatal", repr(error).replace("\n", " "))
                time.sleep(POLL_SECONDS)
            continue
        if words == ["leave"]:
            client.leave()
            say("ok")
            return
        _answer(client, words)
        joined = joined or words == ["join"]
