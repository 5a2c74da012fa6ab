"""The torture's judge: which logs it must reject, and which it must accept."""

from __future__ import annotations

import pytest

from tests.torture.ledger import Entry, Fault, Log, Read, Sent


def entry(number: int, key: bytes | None = None, *, value: bool = True) -> Entry:
    return Entry(key, number, value)


def log_of(*numbers: int, **options: object) -> Log:
    """A log with these records acknowledged, at offsets from 0 on."""
    log = Log("t", state="there", **options)  # type: ignore[arg-type]
    for number in numbers:
        sent = Sent([entry(number)])
        log.unsure.append(sent)
        log.acknowledged(sent, log.end)
    return log


def read(*entries: Entry, start: int = 0, end: int | None = None, size: int = 0) -> Read:
    found = dict(enumerate(entries, start))
    return Read(start, start + len(entries) if end is None else end, found, size)


def test_what_was_acknowledged_and_is_there_is_right() -> None:
    log = log_of(1, 2, 3)
    log.settle(read(entry(1), entry(2), entry(3)), "a kill")
    assert log.end == 3


def test_what_was_not_answered_may_be_there_or_not() -> None:
    for found in ([entry(1)], [entry(1), entry(2)]):
        log = log_of(1)
        log.unsure.append(Sent([entry(2)]))
        log.settle(read(*found), "a kill")
        assert log.end == len(found) and not log.unsure


@pytest.mark.parametrize(
    ("found", "said"),
    [
        ([1], "ends at 1"),
        ([1, 3], "acknowledged was"),
        ([1, 2, 2], "comes after"),
        ([1, 2, 9], "never sent"),
    ],
    ids=["lost", "changed", "twice", "invented"],
)
def test_what_a_broker_must_not_do(found: list[int], said: str) -> None:
    log = log_of(1, 2)
    log.unsure.append(Sent([entry(2)]))  # so that only its order tells that it is there twice
    with pytest.raises(Fault, match=said):
        log.settle(read(*map(entry, found)), "a kill")


def test_a_hole_is_seen() -> None:
    log = log_of(1, 2, 3)
    with pytest.raises(Fault, match="nothing at offset 1"):
        log.settle(Read(0, 3, {0: entry(1), 2: entry(3)}, 0), "a kill")


def test_an_offset_given_twice_is_seen() -> None:
    log = log_of(1)
    sent = Sent([entry(2)])
    log.unsure.append(sent)
    with pytest.raises(Fault, match="was given to"):
        log.acknowledged(sent, 0)


def test_a_power_cut_may_take_the_end_only() -> None:
    log = log_of(1, 2, 3)
    log.settle(read(entry(1)), "a power cut")
    assert log.end == 1
    with pytest.raises(Fault, match="acknowledged was"):
        log_of(1, 2, 3).settle(read(entry(1), entry(3)), "a power cut")


def test_deleted_records_stay_deleted_after_a_stop_only() -> None:
    for after in ("a stop", "a kill"):
        log = log_of(1, 2, 3)
        log.floor = 2
        if after == "a kill":
            log.settle(read(entry(1), entry(2), entry(3)), after)
        else:
            with pytest.raises(Fault, match="was deleted"):
                log.settle(read(entry(1), entry(2), entry(3)), after)


def test_nothing_else_deletes() -> None:
    with pytest.raises(Fault, match="nobody deleted"):
        log_of(1, 2, 3).settle(read(entry(2), entry(3), start=1), "a kill")
    log = log_of(1, 2, 3, retention_bytes=100)
    log.settle(read(entry(2), entry(3), start=1, size=100), "a kill")
    with pytest.raises(Fault, match="retention is 100"):
        log_of(1, 2, 3, retention_bytes=100).settle(read(entry(2), entry(3), start=1, size=99), "a kill")


def compacted(*entries: Entry) -> Log:
    return Log("t", compacted=True, state="there", entries=dict(enumerate(entries)), end=len(entries))


OLD, NEW, OTHER, GONE = entry(1, b"a"), entry(2, b"a"), entry(3, b"b"), entry(4, b"b", value=False)


@pytest.mark.parametrize(
    "offsets", [{1, 3}, {0, 1, 3}, {1}, {0, 1, 2, 3}], ids=["cleaned", "half", "tombstone gone", "not at all"]
)
def test_compaction_may_take_what_is_superseded(offsets: set[int]) -> None:
    everything = dict(enumerate((OLD, NEW, OTHER, GONE)))
    found = {offset: everything[offset] for offset in sorted(offsets)}
    compacted(OLD, NEW, OTHER, GONE).settle(Read(0, 4, found, 0), "a kill")


@pytest.mark.parametrize(
    ("offsets", "said"),
    [({0, 3}, "as if"), ({3}, "the newest of"), ({1, 2}, "as if")],
    ids=["an old one", "none", "risen"],
)
def test_compaction_must_keep_the_newest(offsets: set[int], said: str) -> None:
    everything = dict(enumerate((OLD, NEW, OTHER, GONE)))
    found = {offset: everything[offset] for offset in sorted(offsets)}
    with pytest.raises(Fault, match=said):
        compacted(OLD, NEW, OTHER, GONE).settle(Read(0, 4, found, 0), "a kill")
