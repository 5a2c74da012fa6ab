"""Notifications: sequential znodes below one path, each of which says what has changed elsewhere.

Whoever listens reads those that it has not seen, in order, whenever its watch of the path fires, and then reads what
they name: so a notification that comes twice, or late, does no harm. Those that are older than a quarter of an hour are
deleted by whoever comes across them. Those that cannot be read are passed over, and said once a minute.
"""

from __future__ import annotations

from pykafkad.cluster.zookeeper.asking import expect
from pykafkad.quiet import always
from pykafkad.slices import chunks
from pykafkad.zookeeper.client import NO_NODE, Create, Delete, Exists, GetData
from pykafkad.zookeeper.znodes import MalformedZnode

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import TypeVar

    from pykafkad.cluster.zookeeper.asking import Asking
    from pykafkad.logs import Logger
    from pykafkad.quiet import Allows
    from pykafkad.slices import Work

    Named = TypeVar("Named")

KEPT_MS = 15 * 60 * 1000
DIGITS_MAX = 18  # of a number that ZooKeeper may have given
LOOKED_AT = (
    10  # at once, to see whether they are old: mostly the oldest is not, and somebody waits for what is new
)


class Notifications:
    """`prefix`: what the names of these nodes begin with."""

    def __init__(
        self,
        asking: Asking,
        path: str,
        prefix: str,
        now_ms: Callable[[], int],
        log: Logger,
        allows: Allows = always,
    ) -> None:
        self.path = path
        self._log = log
        self._allows = allows
        self._asking = asking
        self._prefix = prefix
        self._now_ms = now_ms
        self._seen = -1

    def skip(self) -> Work:
        """Watch from now on: what was said before counts as seen."""
        names = yield from self._asking.children(self.path, watch=True)
        self._seen = max(map(self._number, names), default=-1)

    def take(self) -> Work:
        """The data of those that were not seen yet; and watch. None: some were deleted before they were seen."""
        names = yield from self._asking.children(self.path, watch=True)
        new = [name for name in names if self._number(name) > self._seen]
        last = max(map(self._number, new), default=self._seen)
        if last - self._seen > len(new):
            return None
        results = yield from self._asking.ask_all([GetData(f"{self.path}/{name}") for name in new])
        if any(expect(result, NO_NODE).error for result in results):
            return None
        self._seen = last
        yield from self._purge(names)
        return [result.data for result in results]

    def named(self, said: Sequence[bytes], read: Callable[[bytes], Named]) -> Work[list[Named]]:
        """What these data name, each once."""
        found: dict[Named, None] = {}
        for data in said:
            try:
                found[read(data)] = None
            except MalformedZnode as error:
                if self._allows(self._log, "notifications that cannot be read", self.path):
                    self._log.error(str(error))
            yield
        return list(found)

    def op(self, data: bytes) -> Create:
        """Says it, in one transaction with what it is about: so nobody misses a change that was made."""
        return Create(f"{self.path}/{self._prefix}", data, sequential=True)

    def _number(self, name: str) -> int:
        digits = name.removeprefix(self._prefix)
        return int(digits) if digits.isdecimal() and len(digits) <= DIGITS_MAX else -1

    def _purge(self, names: Sequence[str]) -> Work:
        """The oldest come first."""
        for some in chunks(names, LOOKED_AT):
            paths = [f"{self.path}/{name}" for name in some]
            found = yield from self._asking.ask(*map(Exists, paths))
            before_ms = self._now_ms() - KEPT_MS
            old = [path for path, each in zip(paths, found, strict=True) if 0 <= each.ctime_ms < before_ms]
            yield from self._asking.ask(*map(Delete, old))
            if len(old) < len(paths):
                return
