"""Consumer groups as tests look at them: who is in, what is assigned, how far they are, and waiting for that.

Owns the snapshot of a group, and the loop that takes one after the other until it is as wanted. A broker does not tell
when a group changes, so it is asked every few milliseconds. Invariant: what times out says what the group was like.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field

from pykafkad import errors
from pykafkad.net.client import Cluster
from pykafkad.testing.data import partitions_of, spans_of
from pykafkad.testing.errors import BrokerError, BrokerTimeout
from pykafkad.tools import admin_groups

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Collection

    from pykafkad.tools.admin import Partition

STABLE = "Stable"
NO_GROUP = "Dead"  # Kafka's word for a group that is not there
ASK_S = 0.01


@dataclass(frozen=True, slots=True)
class Member:
    """A member of a group, with the partitions that it has."""

    id: str
    client_id: str
    host: str
    instance_id: str | None
    assignment: list[tuple[str, int]]


@dataclass(frozen=True, slots=True)
class Group:
    """A group at one moment. The state is one of Kafka's (Empty, PreparingRebalance, Stable, ...), Dead if there is no
    such group."""

    id: str
    state: str
    members: list[Member] = field(default_factory=list)

    @property
    def assigned(self) -> set[tuple[str, int]]:
        """The partitions that some member has."""
        return {key for member in self.members for key in member.assignment}

    def __str__(self) -> str:
        shown = "; ".join(
            f"{each.client_id} has {', '.join(f'{topic}-{index}' for topic, index in each.assignment) or 'nothing'}"
            for each in self.members
        )
        return (
            f"group {self.id} is {self.state} with {len(self.members)} members{': ' if shown else ''}{shown}"
        )


def look_at(cluster: Cluster, group_id: str, timeout_s: float) -> Group:
    try:
        found = admin_groups.describe_group(cluster, group_id, timeout_ms=int(timeout_s * 1000))
    except errors.KafkaError as problem:
        if problem.code == errors.GROUP_ID_NOT_FOUND:
            return Group(group_id, NO_GROUP)
        raise BrokerError(f"group {group_id}: {problem}") from problem
    members = [
        Member(each.id, each.client_id, each.host, each.instance_id, each.assignment)
        for each in found.members
    ]
    return Group(group_id, found.state, members)


def wait_for(
    cluster: Cluster, group_id: str, wanted: Callable[[Group], bool], what: str, timeout_s: float
) -> Group:
    """The group as it is when it is as wanted; BrokerTimeout tells what was wanted and what it is."""
    deadline = time.monotonic() + timeout_s
    while True:
        group = look_at(cluster, group_id, timeout_s)
        if wanted(group):
            return group
        if time.monotonic() >= deadline:
            raise BrokerTimeout(f"{what} was waited for, and after {timeout_s:g} s {group}")
        time.sleep(ASK_S)


def wanted_words(state: str | None, members: int | None, lag: int | None) -> str:
    """What wait_for_group() waits for, for its message."""
    words = [state] if state is not None else []
    words += [f"{members} members"] if members is not None else []
    words += [f"a lag of {lag}"] if lag is not None else []
    return " with ".join(words) or "the group"


def wait_for_assignment(
    cluster: Cluster, group_id: str, topics: Collection[str], members: int | None, timeout_s: float
) -> Group:
    """Until a stable group has all partitions of these topics, or any partition if no topic is named."""

    def is_assigned(group: Group) -> bool:
        if group.state != STABLE or (members is not None and len(group.members) != members):
            return False
        every = {(topic, index) for topic in topics for index in partitions_of(cluster, topic)}
        named = all(any(key[0] == topic for key in every) for topic in topics)
        return named and bool(group.assigned) and every <= group.assigned

    what = f"an assignment of {', '.join(topics) or 'anything'}"
    if members is not None:
        what += f" to {members} members"
    return wait_for(cluster, group_id, is_assigned, what, timeout_s)


def committed(cluster: Cluster, group_id: str, timeout_s: float) -> dict[Partition, int]:
    try:
        rows = admin_groups.committed_offsets(cluster, group_id, timeout_ms=int(timeout_s * 1000))
    except errors.KafkaError as problem:
        if problem.code == errors.GROUP_ID_NOT_FOUND:
            return {}
        raise BrokerError(f"group {group_id}: {problem}") from problem
    return {key: row.offset for key, row in rows.items()}


def lag(cluster: Cluster, group_id: str, topic: str | None, timeout_s: float) -> int:
    """The records that the group has not committed, of all partitions of the topics that it has to do with."""
    offsets = committed(cluster, group_id, timeout_s)
    topics = {name for name, _ in (*offsets, *look_at(cluster, group_id, timeout_s).assigned)}
    if topic is not None:
        topics = {topic}
    if not topics:
        raise BrokerError(f"group {group_id} has no offsets and no partitions: its lag is not known")
    keys = [(name, index) for name in sorted(topics) for index in partitions_of(cluster, name)]
    spans = spans_of(cluster, keys)
    return sum(end - max(first, offsets.get(key, first)) for key, (first, end) in spans.items())
