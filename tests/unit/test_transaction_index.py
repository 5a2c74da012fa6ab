"""Which aborted transactions a fetch is told of: found by halving, in the segments that have any, or not believed."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest

from pykafkad import errors
from pykafkad.errors import KafkaError
from pykafkad.pure.producer_state import CompletedTransaction
from pykafkad.storage.log import transaction_index
from pykafkad.storage.log.log import Log
from tests.storage_kit import NOW_MS, batch, idempotent, marker, new_partition

PRODUCER = 7


@pytest.fixture
def log(tmp_path: Path) -> Any:
    log = new_partition(tmp_path, segment_bytes=1000, index_interval_bytes=0)
    yield log
    log.close()


def write(log: Log, epoch: int = 0) -> None:
    log.append(idempotent(0, b"x" * 200, epoch=epoch, transactional=True), NOW_MS, verified=True)
    log.commit()


def end(log: Log, committed: bool, epoch: int = 0) -> None:
    log.append_built(marker(PRODUCER, epoch, committed), NOW_MS)
    log.commit()


def plain(log: Log, count: int) -> None:
    for _ in range(count):
        log.append(batch(b"x" * 200), NOW_MS)
        log.commit()


def told(log: Log, offset: int, max_bytes: int = 300) -> list[tuple[int, int]]:
    found = log.read(offset, max_bytes, limit_offset=log.last_stable_offset, at_least_one=True)
    assert found is not None
    return log.aborted_transactions(offset, found)


@pytest.mark.parametrize("seed", range(20))
def test_what_is_found_is_what_a_walk_finds(tmp_path: Path, seed: int) -> None:
    chance = random.Random(seed)
    directory, end, stable = str(tmp_path), 0, 0
    for producer_id in range(chance.randrange(300)):
        first = chance.randrange(end + 1)
        end += chance.randrange(1, 9)
        stable = max(stable, min(end, stable + chance.randrange(20)))
        transaction = CompletedTransaction(producer_id, min(first, end), end, True)
        transaction_index.append(directory, 0, transaction, stable)
    rows = list(transaction_index.read(directory, 0))
    for _ in range(50):
        offset = chance.randrange(end + 2)
        upper = offset + chance.randrange(1, 40)
        expected, complete = [], False
        for producer_id, first, last, stable in rows:
            if last >= offset and first < upper:
                expected.append((producer_id, first))
            if stable >= upper:
                complete = True
                break
        found, is_all = transaction_index.collect(directory, 0, offset, upper)
        assert (found, is_all) == (expected, complete)
        rows_found = transaction_index.collect_from(directory, [0], offset, upper)
        assert [row[:2] for row in rows_found] == expected


def test_a_transaction_that_is_aborted_segments_later(log: Log) -> None:
    write(log)
    plain(log, 20)
    end(log, committed=False)
    assert len(log.segments) > 4
    assert told(log, 0) == [(PRODUCER, 0)]
    plain(log, 20)
    assert told(log, log.log_end_offset - 1) == []


def test_what_was_read_of_a_later_segment_is_told_of_that_one(tmp_path: Path) -> None:
    """The cleaner has emptied the segment that the offset lies in."""
    log = new_partition(tmp_path, segment_bytes=1000, index_interval_bytes=0)
    for epoch in range(2):
        write(log, epoch=epoch)
        plain(log, 1)
        end(log, committed=False, epoch=epoch)
        log.roll(NOW_MS)
    first, second = log.segments[0], log.segments[1]
    assert told(log, second.base_offset) == [(PRODUCER, second.base_offset)]
    assert told(log, 0, 10_000) == [(PRODUCER, 0)], "of what lies behind a segment's end nothing"
    part = log.read(second.base_offset, 300, limit_offset=log.last_stable_offset, at_least_one=True)
    assert part is not None
    assert log.aborted_transactions(first.end_offset - 1, part)[-1] == (PRODUCER, second.base_offset)
    log.retire(2, NOW_MS)
    assert log.aborted_transactions(second.base_offset, part) == [], "they went meanwhile"
    log.close()


def test_segments_without_an_index_are_not_looked_at(log: Log, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[int] = []
    collect = transaction_index.collect

    def noted(directory: str, base: int, *arguments: int) -> Any:
        asked.append(base)
        return collect(directory, base, *arguments)

    monkeypatch.setattr(transaction_index, "collect", noted)
    plain(log, 20)
    assert told(log, 0) == [] and asked == []
    write(log)
    end(log, committed=True)
    assert told(log, 0) == [] and asked == [], "a committed one is not listed"
    write(log, epoch=1)
    end(log, committed=False, epoch=1)
    assert told(log, 0) == [] and asked == [log.active.base_offset]


def test_an_index_that_begins_or_goes_while_the_log_is_read(log: Log) -> None:
    assert log.aborted_bases is None
    plain(log, 1)
    assert told(log, 0) == []
    for epoch in range(3):
        write(log, epoch=epoch)
        first = log.log_end_offset - 1
        plain(log, 5)
        end(log, committed=False, epoch=epoch)
        assert told(log, first) == [(PRODUCER, first)]
    bases: list[int] = list(log.aborted_bases or ())
    assert len(bases) == 3
    log.retire(log.bases.index(bases[0]) + 1, NOW_MS)
    plain(log, 1)
    assert told(log, log.log_end_offset - 1) == []
    assert log.aborted_bases == bases[1:]


def test_an_index_that_has_gone_says_nothing(log: Log) -> None:
    write(log)
    end(log, committed=False)
    assert told(log, 0) == [(PRODUCER, 0)]
    Path(transaction_index.path_of(log.directory, 0)).unlink()
    assert told(log, 0) == [] and transaction_index.collect_from(log.directory, [0], 0, 9) == []


@pytest.mark.parametrize("damage", [b"\0", b"\xff" * transaction_index.ENTRY_SIZE])
def test_a_damaged_index_is_said_to_be_damaged(log: Log, damage: bytes) -> None:
    write(log)
    end(log, committed=False)
    path = Path(transaction_index.path_of(log.directory, 0))
    path.write_bytes(damage)
    with pytest.raises(KafkaError) as refused:
        told(log, 0)
    assert refused.value.code == errors.CORRUPT_MESSAGE
