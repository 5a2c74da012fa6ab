"""Requests with many elements, cut into pieces that are each handled without a pause.

Most requests have few elements and are handled at once. A handler of a larger one is a generator (pykafkad/slices.py),
which yields after each piece.
"""

from __future__ import annotations

from bisect import bisect
from collections.abc import Iterator, Sequence
from typing import TypeVar

from pykafkad.slices import chunks

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Protocol

    from pykafkad.hot.wire import Struct
    from pykafkad.slices import Work

    class Named(Protocol):
        @property
        def name(self) -> str: ...

    NamedTopic = TypeVar("NamedTopic", bound=Named)

FEW = 500  # elements
PIECE = 32
BUCKETS = 256  # to sort in

Element = TypeVar("Element")


def are_few(topics: Sequence[Struct], partitions: str) -> bool:
    """Whether there are few topics with few partitions; `partitions` is the name of the field that has them."""
    return len(topics) <= FEW and sum([len(getattr(topic, partitions)) for topic in topics]) <= FEW


def named_once(topics: Sequence[NamedTopic]) -> Work[tuple[Sequence[NamedTopic], list[str]]]:
    """The topics whose names occur once, and the names that occur more often, each in the order of the request."""
    if len(topics) == 1:
        return topics, []
    times: dict[str, int] = {}
    for some in chunks(topics):
        for topic in some:
            times[topic.name] = times.get(topic.name, 0) + 1
        yield
    once: list[NamedTopic] = []
    for some in chunks(topics):
        once += [topic for topic in some if times[topic.name] == 1]
        yield
    return once, [name for name, count in times.items() if count > 1]


def in_order(texts: Sequence[str]) -> Work[list[str]]:
    """Each text once, sorted: spread over buckets by some of them, each of which is sorted by itself."""
    distinct: set[str] = set()
    for some in chunks(texts):
        distinct.update(some)
        yield
    every = list(distinct)
    bounds = sorted(every[:: max(1, len(every) // BUCKETS)])
    yield
    buckets: list[list[str]] = [[] for _ in range(len(bounds) + 1)]
    for some in chunks(every):
        for text in some:
            buckets[bisect(bounds, text)].append(text)
        yield
    ordered: list[str] = []
    for bucket in buckets:
        ordered += sorted(bucket)
        yield
    return ordered


def pieces(elements: Sequence[Element], size: int = PIECE) -> Iterator[Sequence[Element]]:
    """All elements in order, in pieces. An empty list gives one empty piece."""
    return chunks(elements, size) if elements else iter((elements,))
