"""The walk over a segment's bytes: large batches through a small window, and producers from a selection of headers."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from pykafkad.hot import records
from pykafkad.hot.segment import Inspection, Verdict
from pykafkad.storage.log.log import Log
from tests.storage_kit import NOW_MS, append, batch, idempotent, lead, marker, new_partition, open_partition

WINDOW = 1 << 20
LOG = f"{0:020d}.log"


def inspected(path: Path, *, turn: int = 1 << 30) -> Inspection:
    inspection = Inspection(str(path), 0)
    while not inspection.is_over:
        inspection.turn(turn)
    return inspection


@pytest.fixture
def large(tmp_path: Path) -> Path:
    """A small batch, one larger than three windows, another small one."""
    partition = new_partition(tmp_path, max_message_bytes=1 << 26)
    value = random.Random(1).randbytes(3 * WINDOW + 12_345)
    append(partition, batch(b"before"), batch(value), batch(b"behind"))
    partition.close(clean=False)
    return Path(partition.active.path)


def test_a_batch_larger_than_the_window_is_walked(large: Path) -> None:
    inspection = inspected(large)
    assert (inspection.fault, inspection.batches, inspection.end_offset) == (None, 3, 3)
    assert inspection.position == large.stat().st_size
    assert open_partition(large.parents[1], clean=False).log_end_offset == 3


@pytest.mark.parametrize("part", [0.0, 0.3, 0.6, 0.999999], ids=["first", "second", "third", "last"])
def test_every_window_of_a_large_batch_is_summed(large: Path, part: float) -> None:
    second = records.scan(large.read_bytes())[1]
    at = second.position + 61 + int((second.size - 62) * part)
    with open(large, "r+b") as file:
        file.seek(at)
        byte = file.read(1)
        file.seek(at)
        file.write(bytes([byte[0] ^ 0x10]))
    inspection = Inspection(str(large), 0)
    inspection.turn()
    fault = inspection.fault
    assert fault is not None and fault.verdict is Verdict.CHECKSUM
    assert (fault.position, fault.offsets) == (second.position, (1, 1))
    assert inspection.skip()
    inspection.turn()
    assert (inspection.fault, inspection.end_offset) == (None, 3)
    assert open_partition(large.parents[1], clean=False).log_end_offset == 1


def test_a_turn_ends_after_its_bytes_and_with_a_whole_batch(tmp_path: Path) -> None:
    partition = new_partition(tmp_path)
    append(partition, *(batch(b"v" * 100) for _ in range(50)))
    path = Path(partition.active.path)
    size = path.stat().st_size // 50
    inspection = Inspection(str(path), 0)
    inspection.turn(1)
    assert inspection.position == size
    inspection.turn(3 * size)
    assert inspection.position == 4 * size
    assert inspected(path, turn=1).batches == 50


def test_only_what_was_written_so_far_is_looked_at(large: Path) -> None:
    end = records.scan(large.read_bytes())[1].position
    inspection = Inspection(str(large), 0, end)
    inspection.turn()
    assert (inspection.fault, inspection.is_over, inspection.end_offset) == (None, True, 1)


def test_a_file_that_became_shorter_is_torn(large: Path) -> None:
    inspection = Inspection(str(large), 0)
    with open(large, "r+b") as file:
        file.truncate(2 * WINDOW)
    inspection.turn()
    assert inspection.fault is not None and inspection.fault.verdict is Verdict.TORN
    assert inspection.end_offset == 1


# -- producers


def remembered(partition: Log) -> list[tuple[object, ...]]:
    """The whole state of each producer, except for its place in the dictionary."""
    return sorted(
        (
            entry.producer_id,
            entry.epoch,
            entry.coordinator_epoch,
            entry.last_timestamp,
            entry.transaction_start,
            *entry.batches,
        )
        for entry in partition.producers
    )


@pytest.mark.parametrize("seed", range(4))
def test_producers_come_out_as_if_every_batch_had_been_looked_at(tmp_path: Path, seed: int) -> None:
    """More batches than one turn walks, of many producers and of few, with new epochs, with and without transactions."""
    chance = random.Random(seed)
    partition = new_partition(tmp_path, index_interval_bytes=300)
    partition.context.verify_transactions = False
    ids = chance.sample(range(1 << 62), chance.choice((1, 3, 40)))
    epochs, sequences = dict.fromkeys(ids, 0), dict.fromkeys(ids, 0)
    open_: set[int] = set()
    for number in range(10_000):
        producer_id = chance.choice(ids)
        way = chance.random()
        if way < 0.01 and producer_id not in open_:
            epochs[producer_id] += 1
            sequences[producer_id] = 0
        if way < 0.1:
            partition.append(batch(b"plain"), NOW_MS)
            continue
        if producer_id in open_ and way < 0.3:
            open_.discard(producer_id)
            partition.append_built(marker(producer_id, epochs[producer_id], chance.random() < 0.5), NOW_MS)
            continue
        begins = producer_id in open_ or (seed % 2 == 1 and way > 0.95)
        data = idempotent(
            sequences[producer_id],
            b"v",
            producer_id=producer_id,
            epoch=epochs[producer_id],
            transactional=begins,
            timestamp=NOW_MS + number,
        )
        partition.append(data, NOW_MS + number)
        sequences[producer_id] += 1
        if begins:
            open_.add(producer_id)
    partition.commit()
    partition.close(clean=False)
    before = {suffix: index_of(partition, suffix) for suffix in ("txnindex", "index")}
    again = open_partition(tmp_path, clean=False, index_interval_bytes=300)
    lead(again, 0)
    assert remembered(again) == remembered(partition)
    assert again.producers.ongoing == partition.producers.ongoing
    assert again.last_stable_offset == partition.last_stable_offset
    assert {suffix: index_of(again, suffix) for suffix in before} == before


def index_of(partition: Log, suffix: str) -> bytes:
    """Without the zeroes at its end."""
    path = Path(partition.directory, f"{0:020d}.{suffix}")
    return path.read_bytes().rstrip(b"\0") if path.exists() else b""
