"""Finding the topics that a group's regular expressions stand for, a slice at a time.

All expressions of a group are resolved together: when one is new, when there are new topics, and now and then; not
more often than every MIN_INTERVAL_MS. The result is in the log, so that a new coordinator goes on with it.
Invariant: a slice looks at SLICE_TOPICS topics, however many there are: the loop is not kept.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from pykafkad.pure.groups.regular_expressions import InvalidPattern, RegularExpression

SLICE_TOPICS = 2_000
MIN_INTERVAL_MS = 10_000


class Resolved:
    """What an expression stands for; `version` is that of the topics it was compared with."""

    __slots__ = ("time_ms", "topics", "version")

    def __init__(self, topics: frozenset[str], version: int, time_ms: int) -> None:
        self.topics = topics
        self.version = version
        self.time_ms = time_ms


class Resolution:
    def __init__(
        self, patterns: Iterable[str], topic_names: Iterable[str], version: int, now_ms: int
    ) -> None:
        self.version = version
        self.start_ms = now_ms
        self.found: dict[str, set[str]] = {pattern: set() for pattern in patterns}
        self._expressions = [
            (pattern, each) for pattern in self.found if (each := compiled(pattern)) is not None
        ]
        self._names: Iterator[str] = iter(list(topic_names))

    def go_on(self) -> bool:
        """Look at some more topics; whether that was all."""
        for _ in range(SLICE_TOPICS):
            name = next(self._names, None)
            if name is None:
                return True
            for pattern, expression in self._expressions:
                if expression.matches(name):
                    self.found[pattern].add(name)
        return False

    def results(self) -> dict[str, Resolved]:
        return {
            pattern: Resolved(frozenset(names), self.version, self.start_ms)
            for pattern, names in self.found.items()
        }


def compiled(pattern: str) -> RegularExpression | None:
    """None for what is not valid: it was when a member came with it, perhaps to another version of the broker."""
    try:
        return RegularExpression(pattern)
    except InvalidPattern:
        return None
