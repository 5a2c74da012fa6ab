"""Checks a history: check(events) gives the anomalies in it, faults(anomalies) those that Kafka does not allow.

Near-linear: a pass over the events, a sort of each partition's offsets, a binary search for each record read, and graphs
with an edge for each value. No I/O, no clock; it judges what clients saw, of one broker or of many. The history must end
with consumers of each isolation level that read everything from the beginning, or what they left out is unseen.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace

from compat_tests.history.anomalies import ALLOWED, Anomaly
from compat_tests.history.cycles import cycles
from compat_tests.history.events import Event
from compat_tests.history.polls import poll_order
from compat_tests.history.rules import (
    aborted_reads,
    duplicates,
    inconsistent_offsets,
    lost_writes,
    nonmonotonic_sends,
    precommitted_reads,
    unexpected_reads,
    unseen,
)
from compat_tests.history.story import Story

RULES: tuple[Callable[[Story], Iterator[Anomaly]], ...] = (
    lost_writes,
    unseen,
    duplicates,
    inconsistent_offsets,
    unexpected_reads,
    aborted_reads,
    precommitted_reads,
    nonmonotonic_sends,
    poll_order,
    cycles,
)


def check(events: Sequence[Event]) -> list[Anomaly]:
    story = Story(events)
    return [anomaly for rule in RULES for anomaly in rule(story)]


def faults(anomalies: Iterable[Anomaly]) -> list[Anomaly]:
    return [anomaly for anomaly in anomalies if anomaly.kind not in ALLOWED]


def minimal(events: Sequence[Event], anomaly: Anomaly) -> list[Event]:
    """The part of the history that an anomaly is about: its values, their transactions, and who read them."""
    values = set(anomaly.values)
    transactions = {event.txn for event in events if event.value in values and event.txn}
    transactions.update(anomaly.transactions)
    if not values:
        values = {event.value for event in events if event.op == "send" and event.txn in transactions}
    return [about for event in events if (about := _about(event, values, transactions)) is not None]


def _about(event: Event, values: set[str], transactions: set[str]) -> Event | None:
    if event.op in ("commit", "abort"):
        return event if event.txn in transactions else None
    if event.op == "poll":
        records = {
            key: kept
            for key, read in event.records.items()
            if (kept := [record for record in read if record[1] in values])
        }
        return replace(event, records=records) if records else None
    return event if event.value in values else None
