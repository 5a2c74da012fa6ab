"""The rules about transactions as a whole: none is before itself.

T1 -> T2 by writing, if a value of T1 stands right before one of T2 in a partition (other writers in between do not
matter, the relation is transitive), and by reading, if T2 read a value of T1 as read_committed. G0 is a cycle of writing,
G1c one with reading in it. There is one anomaly for each strongly connected component: a short cycle in it.
"""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Iterator
from itertools import pairwise

from compat_tests.history.anomalies import G0, G1C, G1C_WRITES, Anomaly
from compat_tests.history.events import COMMITTED
from compat_tests.history.story import Story

Graph = dict[str, set[str]]


def cycles(story: Story) -> Iterator[Anomaly]:
    writes, reads = _writes(story), _reads(story)
    yield from _cycles(G0, writes, writes)
    yield from _cycles(G1C, reads, reads)
    both: Graph = defaultdict(set)
    for graph in (writes, reads):
        for name, followers in graph.items():
            both[name] |= followers
    yield from _cycles(G1C_WRITES, both, reads)


def _writes(story: Story) -> Graph:
    """Between transactions that stand next to each other in a partition."""
    logs: defaultdict[str, list[tuple[int, str]]] = defaultdict(list)
    for send in story.committed():
        if send.transaction is not None and send.place is not None:
            logs[send.key].append((send.place, send.transaction.name))
    graph: Graph = defaultdict(set)
    for log in logs.values():
        log.sort()
        for (_, before), (_, after) in pairwise(log):
            if before != after:
                graph[before].add(after)
    return graph


def _reads(story: Story) -> Graph:
    graph: Graph = defaultdict(set)
    for read in story.reads:
        reader = story.transactions.get(read.poll.txn)
        send = story.sends.get(read.value)
        if reader is None or reader.outcome == "fail" or read.poll.isolation != COMMITTED or send is None:
            continue
        if send.transaction is not None and send.transaction is not reader:
            graph[send.transaction.name].add(reader.name)
    return graph


def _cycles(kind: str, graph: Graph, needed: Graph) -> Iterator[Anomaly]:
    """One for each component that has an edge of `needed` in it."""
    for component in components(graph):
        found = next(
            ((name, after) for name in component for after in needed.get(name, ()) if after in component),
            None,
        )
        if found is not None:
            path = _path(graph, component, found[1], found[0])
            around = " -> ".join([found[0], *path])
            yield Anomaly(kind, f"transactions come before themselves: {around}", (), tuple(path))


def _path(graph: Graph, component: set[str], start: str, end: str) -> list[str]:
    """The shortest one within a component."""
    came: dict[str, str | None] = {start: None}
    waiting = deque([start])
    while end not in came:
        name = waiting.popleft()
        for after in graph.get(name, ()):
            if after in component and after not in came:
                came[after] = name
                waiting.append(after)
    path: list[str] = []
    at: str | None = end
    while at is not None:
        path.append(at)
        at = came[at]
    return path[::-1]


def components(graph: Graph) -> Iterator[set[str]]:
    """The strongly connected components of more than one node: what is reached backwards from whoever ends last when
    all is walked forwards (Kosaraju's algorithm, without recursion)."""
    backwards: Graph = defaultdict(set)
    for name, followers in graph.items():
        for after in followers:
            backwards[after].add(name)
    found: set[str] = set()
    for name in reversed(_ends(graph)):
        component: set[str] = set()
        waiting = [name]
        while waiting:
            if (one := waiting.pop()) not in found:
                found.add(one)
                component.add(one)
                waiting.extend(backwards.get(one, ()))
        if len(component) > 1:
            yield component


def _ends(graph: Graph) -> list[str]:
    """The nodes in the order in which walks from them end."""
    begun: set[str] = set()
    ends: list[str] = []
    for root in graph:
        walk = [(root, iter(graph[root]))] if root not in begun else []
        begun.add(root)
        while walk:
            name, followers = walk[-1]
            after = next((one for one in followers if one not in begun), None)
            if after is None:
                ends.append(name)
                walk.pop()
            else:
                begun.add(after)
                walk.append((after, iter(graph.get(after, ()))))
    return ends
