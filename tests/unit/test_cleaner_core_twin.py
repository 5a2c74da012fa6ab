"""Random logs: the cleaner's core writes the same as the slow reference, and cleaning again changes nothing."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest

from pykafkad.hot import cleaner, records
from pykafkad.storage.log import snapshots, transaction_index
from tests import cleaner_logs as kit
from tests.reference import cleaner as twin
from tests.storage_kit import unpack_golden_logs

COUNTS = (
    "bytes_read",
    "messages_read",
    "bytes_written",
    "messages_written",
    "invalid_messages",
    "batches_emptied",
    "index_bytes_read",
)


def work_on(log: kit.Log, directory: Path, seed: int) -> kit.Work:
    kit.write_log(directory, log.segments)
    bases = list(log.segments)
    return kit.Work(
        directory=directory,
        bases=bases,
        first_dirty=bases[seed % (len(bases) - 1)],
        first_uncleanable=bases[-1],
        producers=log.producers,
        aborted=log.aborted,
        memory_bytes=24 * (20 if seed % 5 == 0 else 1000),
        buffer_bytes=300,
        index_interval_bytes=400,
    )


def left(directory: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in directory.glob("*.cleaned")}


@pytest.mark.parametrize("seed", range(60))
def test_the_core_agrees_with_its_twin(tmp_path: Path, seed: int) -> None:
    log = kit.Maker(seed, codecs=(0, 0, 1, 2, 3, 4) if seed % 2 else (0,)).make()
    ours = kit.clean(cleaner, work_on(log, tmp_path / "ours", seed))
    theirs = kit.clean(twin, work_on(log, tmp_path / "theirs", seed))
    assert left(tmp_path / "ours") == left(tmp_path / "theirs")
    assert (ours.end_offset, ours.keys) == (theirs.end_offset, theirs.keys)
    assert [getattr(ours.round, name) for name in COUNTS] == [getattr(theirs.round, name) for name in COUNTS]


@pytest.mark.parametrize("seed", range(100, 110))
def test_cleaning_again_at_once_changes_nothing(tmp_path: Path, seed: int) -> None:
    log = kit.Maker(seed, magics=(0, 1, 2)).make()
    work = work_on(log, tmp_path / "once", 1)._replace(memory_bytes=1 << 20, first_dirty=0)
    once = kit.clean(cleaner, work)
    after = {rewriter.base_offset: Path(rewriter.paths[0]).read_bytes() for rewriter in once.rewriters}
    kept = [entry for rewriter in once.rewriters for entry in rewriter.aborted_transactions]
    kit.write_log(tmp_path / "twice", {**after, work.bases[-1]: b""})
    again = kit.clean(cleaner, work._replace(directory=tmp_path / "twice", aborted=kept))
    for rewriter in again.rewriters:
        settled = settle(after[rewriter.base_offset])
        assert settle(Path(rewriter.paths[0]).read_bytes()) == settled


def settle(data: bytes) -> list[tuple[int, int]]:
    """Offsets and keys. A marker whose transaction was removed by the first cleaning gets its delete horizon by the
    second."""
    return [
        (batch.base_offset, batch.count)
        for batch in records.scan(data)
        if not batch.is_control and batch.producer_id < 0
    ]


@pytest.mark.parametrize(
    "name", ["compact-keep-tombstones-0", "compact-gzip-0", "compact-txn-0", "compact-delete-0"]
)
def test_what_kafka_has_cleaned_is_left_as_it_is(golden: Path, tmp_path: Path, name: str) -> None:
    source = unpack_golden_logs(golden, tmp_path / "golden") / "compacted" / "data"
    checkpoint = (source / "cleaner-offset-checkpoint").read_text()
    topic, partition = name.rsplit("-", 1)
    found = re.search(rf"^{topic} {partition} (\d+)$", checkpoint, re.MULTILINE)
    assert found is not None
    first_dirty = int(found[1])
    directory = tmp_path / name
    shutil.copytree(source / name, directory)
    bases = sorted(int(path.stem) for path in directory.glob("*.log"))
    closed = [base for base in bases[:-1] if base < first_dirty]
    assert closed
    work = kit.Work(
        directory, bases, bases[0], first_dirty, now_ms=1 << 40, groups=[[base] for base in closed]
    )
    snapshot = max(directory.glob("*.snapshot"))
    aborted = [entry for base in bases for entry in transaction_index.read(str(directory), base)]
    work = work._replace(producers=producers_of(snapshot), aborted=aborted)
    cleaned = kit.clean(cleaner, work)
    changed = []
    for rewriter in cleaned.rewriters:
        before = batches(kit.log_path(directory, rewriter.base_offset).read_bytes())
        after = batches(Path(rewriter.paths[0]).read_bytes())
        assert list(after) == list(before)
        changed += [after[offset] for offset in after if after[offset] != before[offset]]
    if name != "compact-txn-0":
        assert changed == []
    for data in changed:  # the records of its transaction were removed by the last cleaning
        (batch,) = records.scan(data)
        assert batch.is_control
        assert batch.delete_horizon_ms == work.now_ms + work.delete_retention_ms


def batches(data: bytes) -> dict[int, bytes]:
    return {
        batch.base_offset: data[batch.position : batch.position + batch.size] for batch in records.scan(data)
    }


def producers_of(snapshot: Path) -> dict[int, tuple[int | None, int]]:
    entries = snapshots.decode(snapshot.read_bytes())
    return {
        entry.producer_id: (entry.last_offset if entry.last_offset >= 0 else None, entry.epoch)
        for entry in entries
    }
