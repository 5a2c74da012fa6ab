"""What `pykafkad explain` knows, and what it says: rows of the command `facts` (control/facts.py) sorted into Facts."""

from __future__ import annotations

from operator import itemgetter
from typing import NamedTuple

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence
    from typing import Any

    Row = dict[str, Any]

CAUSE, LIKELY = "cause", "likely"  # as sure as that

# kind of row -> what tells one from another of its kind
KEYS: dict[str, Callable[[Row], object]] = {
    "topic": itemgetter("name"),
    "partition": itemgetter("topic", "index"),
    "member": itemgetter("id"),
    "committed": itemgetter("topic", "partition"),
    "fetch": itemgetter("address", "topic", "partition"),
}


class Finding(NamedTuple):
    kind: str
    certainty: str
    text: str
    advice: str = ""


class Facts(NamedTuple):
    """`listeners`: advertised addresses and what keeps us from connecting to them (None: nothing)."""

    group: str | None = None  # that was asked for
    topic: str | None = None
    listeners: Sequence[tuple[str, str | None]] = ()
    topics: Sequence[Row] = ()
    partitions: Sequence[Row] = ()
    group_facts: Row | None = None
    members: Sequence[Row] = ()
    committed: Sequence[Row] = ()
    fetches: Sequence[Row] = ()
    is_loading: bool = False  # the groups are not all known yet


def facts_from(group: str | None, topic: str | None, rows: Iterable[Row]) -> Facts:
    """From the rows of the command `facts`, or of several of them: of each thing the last row counts."""
    kept: dict[str, dict[object, Row]] = {kind: {} for kind in KEYS}
    group_facts: Row | None = None
    is_loading = False
    for row in rows:
        for kind, fact in row.items():
            if kind in KEYS:
                kept[kind][KEYS[kind](fact)] = fact
            elif kind == "coordinator":
                is_loading = fact == "loading"
            elif kind == "group":  # of a later answer: its members follow
                group_facts, is_loading = fact, False
                kept["member"].clear()
    return Facts(
        group=group,
        topic=topic,
        topics=list(kept["topic"].values()),
        partitions=list(kept["partition"].values()),
        group_facts=group_facts,
        members=list(kept["member"].values()),
        committed=list(kept["committed"].values()),
        fetches=list(kept["fetch"].values()),
        is_loading=is_loading,
    )


def at(row: Row) -> tuple[str, int]:
    return row["topic"], row["partition"]


def of_member(member: Row, fetch: Row) -> bool:
    """The same client id from the same host: what is known of a fetch does not name its group."""
    return bool((fetch["client_id"], fetch["host"]) == (member["client_id"], member["host"]))


def of_group(facts: Facts, fetch: Row) -> bool:
    return facts.group is None or any(of_member(member, fetch) for member in facts.members)


def by_topic(rows: Sequence[Row]) -> Iterator[tuple[str, list[Row]]]:
    for topic in dict.fromkeys(row["topic"] for row in rows):
        yield topic, [row for row in rows if row["topic"] == topic]
