"""The rules about the order in which one consumer sees a partition: nothing visible is passed over, nothing comes twice.

A consumer's position is the offset after the last one that it read, until it seeks, is assigned something else or
subscribes. What happens inside one poll, or between polls of one transaction, is internal, the rest external.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from compat_tests.history.anomalies import (
    INTERNAL_NONMONOTONIC_POLL,
    INTERNAL_POLL_SKIP,
    NONMONOTONIC_POLL,
    POLL_SKIP,
    Anomaly,
)
from compat_tests.history.events import Event
from compat_tests.history.story import Story

SKIP = {True: INTERNAL_POLL_SKIP, False: POLL_SKIP}
NONMONOTONIC = {True: INTERNAL_NONMONOTONIC_POLL, False: NONMONOTONIC_POLL}


class Position(NamedTuple):
    """Where a consumer is in a partition, and how it came there."""

    next_offset: int
    value: str = ""  # the last one it read; nothing after a seek
    poll: int = -1
    txn: str = ""


Positions = dict[str, Position]


def poll_order(story: Story) -> Iterator[Anomaly]:
    consumers: dict[str, Positions] = {}
    for number, event in enumerate(story.events):
        if event.type == "ok":
            positions = consumers.setdefault(event.process, {})
            if event.op == "poll":
                yield from _read(story, number, event, positions)
            else:
                _move(event, positions)


def _move(event: Event, positions: Positions) -> None:
    if event.op in ("assign", "subscribe"):
        positions.clear()
    if event.op in ("assign", "seek"):
        for key, offset in event.positions.items():
            positions.pop(key, None)
            if offset is not None:
                positions[key] = Position(offset)


def _read(story: Story, number: int, event: Event, positions: Positions) -> Iterator[Anomaly]:
    for key, records in event.records.items():
        for offset, value in records:
            at = positions.get(key)
            if at is not None:
                yield from _step(story, number, event, key, at, offset, value)
            positions[key] = Position(offset + 1, value, number, event.txn)


def _step(
    story: Story, number: int, event: Event, key: str, at: Position, offset: int, value: str
) -> Iterator[Anomaly]:
    internal = at.poll == number or (event.txn != "" and at.txn == event.txn)
    came = f"after {at.value}" if at.value else f"from offset {at.next_offset} on"
    read = f"{event.process} ({event.isolation}) read {value} at offset {offset} of {key}, {came}"
    shown = tuple(one for one in (at.value, value) if one)
    if offset < at.next_offset:
        yield Anomaly(NONMONOTONIC[internal], f"{read}, though it had been there before", shown)
        return
    passed = story.visible_between(event.isolation, key, at.next_offset, offset)
    if passed is not None:
        values = sorted(story.values_at[key, passed])
        what = f"{read}, and passed over {' and '.join(values)} at offset {passed}"
        yield Anomaly(SKIP[internal], what, (*shown, *values))
