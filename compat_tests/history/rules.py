"""The rules about single values: each is written once, at one offset, and seen if, and only if, it was committed.

Each rule takes a story and gives its anomalies. None of them knows how many brokers there were.
"""

from __future__ import annotations

from collections.abc import Iterator

from compat_tests.history.anomalies import (
    DUPLICATE,
    G1A,
    INCONSISTENT_OFFSETS,
    LOST_WRITE,
    NONMONOTONIC_SEND,
    PRECOMMITTED_READ,
    UNEXPECTED_READ,
    UNSEEN,
    Anomaly,
)
from compat_tests.history.events import COMMITTED
from compat_tests.history.story import Send, Story


def lost_writes(story: Story) -> Iterator[Anomaly]:
    """Nobody of a level read it, though others of that level have read what stands after it."""
    for level, send in _missing(story):
        if _was_passed(story, level, send):
            what = f"{send.value} was committed at {_place(send)}, and passed by every {level} consumer"
            yield Anomaly(LOST_WRITE, what, (send.value,), _names(send))


def unseen(story: Story) -> Iterator[Anomaly]:
    """Nobody of a level read it, and perhaps nobody has got that far: the history must end with a reading of all."""
    for level, send in _missing(story):
        if not _was_passed(story, level, send):
            what = f"{send.value} was committed at {_place(send)}, and no {level} consumer ever saw it"
            yield Anomaly(UNSEEN, what, (send.value,), _names(send))


def duplicates(story: Story) -> Iterator[Anomaly]:
    """Producers that are not idempotent may send again what was written."""
    for send in story.sends.values():
        if send.exactly_once and len(send.offsets) > 1:
            offsets = ", ".join(map(str, sorted(send.offsets)))
            what = f"{send.value} is in {send.key} at the offsets {offsets}"
            yield Anomaly(DUPLICATE, what, (send.value,), _names(send))


def inconsistent_offsets(story: Story) -> Iterator[Anomaly]:
    """Records of an aborted transaction keep their offsets, too."""
    for (key, offset), values in story.values_at.items():
        if len(values) > 1:
            what = f"offset {offset} of {key} was {' and '.join(sorted(values))}"
            yield Anomaly(INCONSISTENT_OFFSETS, what, tuple(sorted(values)))


def unexpected_reads(story: Story) -> Iterator[Anomaly]:
    for read in story.reads:
        send = story.sends.get(read.value)
        if send is None:
            why = "which nobody sent"
        elif send.key != read.key:
            why = f"which was sent to {send.key}"
        elif read.number < send.invoked:
            why = "before it was sent"
        else:
            continue
        what = f"{read.poll.process} read {read.value} at offset {read.offset} of {read.key}, {why}"
        yield Anomaly(UNEXPECTED_READ, what, (read.value,))


def aborted_reads(story: Story) -> Iterator[Anomaly]:
    """G1a; and what was refused outside of transactions may be read by nobody."""
    for read in story.reads:
        send = story.sends.get(read.value)
        if send is None or send.outcome != "fail":
            continue
        if read.poll.isolation == COMMITTED or send.transaction is None:
            ended = "refused" if send.transaction is None else "not committed"
            what = f"{read.poll.process} read {read.value}, which was {ended}, at offset {read.offset} of {read.key}"
            yield Anomaly(G1A, what, (read.value,), _names(send))


def precommitted_reads(story: Story) -> Iterator[Anomaly]:
    for read in story.reads:
        send = story.sends.get(read.value)
        if read.poll.isolation != COMMITTED or send is None or send.transaction is None:
            continue
        commit = send.transaction.commit
        if commit is not None and read.number < commit:
            own = " in its own transaction" if read.poll.txn == send.transaction.name else ""
            what = f"{read.poll.process} read {read.value}{own}, before anyone asked to commit it"
            yield Anomaly(PRECOMMITTED_READ, what, (read.value,), _names(send))


def nonmonotonic_sends(story: Story) -> Iterator[Anomaly]:
    """What is sent after an acknowledgement stands behind what was acknowledged, whoever sends. And one idempotent
    producer's values stand in the order in which it sent them, acknowledged or not."""
    last: dict[tuple[str, str], Send] = {}
    for send in story.sends.values():
        if send.offsets and min(send.offsets) <= send.floor:
            what = f"{send.value} got {_place(send)}, though offset {send.floor} was acknowledged before it was sent"
            yield Anomaly(NONMONOTONIC_SEND, what, (send.value,), _names(send))
        if not send.exactly_once or send.place is None:
            continue
        before = last.get((send.process, send.key))
        if before is not None and before.place is not None and send.place <= before.place:
            what = f"{send.process} sent {send.value}, {_place(send)}, after {before.value}, {_place(before)}"
            yield Anomaly(NONMONOTONIC_SEND, what, (before.value, send.value), _names(send))
        last[send.process, send.key] = send


def _missing(story: Story) -> Iterator[tuple[str, Send]]:
    for send in story.committed():
        for level, seen in story.seen.items():
            if send.value not in seen:
                yield level, send


def _was_passed(story: Story, level: str, send: Send) -> bool:
    return send.place is not None and story.highest_read.get((level, send.key), -1) > send.place


def _place(send: Send) -> str:
    return f"offset {'unknown' if send.place is None else send.place} of {send.key}"


def _names(send: Send) -> tuple[str, ...]:
    return () if send.transaction is None else (send.transaction.name,)
