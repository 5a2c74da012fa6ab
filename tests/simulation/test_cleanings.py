"""Random histories of a compacted log against a model, and every cleaning against a slow reference cleaner.

Producers with and without sequences and transactions, tombstones, all codecs; rolls, cleanings, retention, passing
time, restarts and crashes. After each cleaning the files are compared byte for byte with what tests/reference/cleaner
makes of the same segments, and what a consumer reads with what was appended. SEED=n replays one run, RUNS=n makes more
of them; a failure prints its seed.
"""

from __future__ import annotations

import os
import random
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from pykafkad.hot import records
from pykafkad.pure.cleaning import Source
from pykafkad.storage import files
from pykafkad.storage.cleaning import cleaning
from pykafkad.storage.log.log import Log
from tests.cleaner_kit import DAY_MS, Home, write
from tests.reference import cleaner as twin
from tests.storage_kit import marker

RUNS = int(os.environ.get("RUNS", "12"))
SEEDS = [20_261_118 + run for run in range(RUNS)]
if "SEED" in os.environ:
    SEEDS = [int(os.environ["SEED"])]
STEPS = 150
CODECS = ["none"] * 6 + ["gzip", "snappy", "lz4", "zstd"]
RETENTION_MS = 40_000  # of tombstones

Row = tuple[bytes | None, bytes | None]


class Model:
    """What was appended, and whether it is committed."""

    def __init__(self) -> None:
        self.rows: dict[int, Row] = {}
        self.aborted: set[int] = set()
        self.open: dict[int, list[int]] = {}  # producer -> offsets of its transaction
        self.sequences: dict[int, int] = {}
        self.era = 0

    def newest(self, below: int) -> dict[bytes, int]:
        """The last committed offset of each key below an offset."""
        counted = {
            key: offset
            for offset, (key, _) in sorted(self.rows.items())
            if offset < below and key is not None and offset not in self.aborted
        }
        return counted


class History:
    def __init__(self, home: Home, seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
        self.chance = random.Random(seed)
        self.home = home
        self.model = Model()
        self.compared = 0
        compare_with_twin(self, monkeypatch)
        home.create(
            delete_retention_ms=RETENTION_MS,
            min_cleanable_dirty_ratio=self.chance.choice([0.01, 0.3, 0.5]),
            segment_bytes=self.chance.choice([800, 4000]),
            min_compaction_lag_ms=self.chance.choice([0, 0, 20_000]),
        )

    @property
    def partition(self) -> Log:
        return self.home.manager.partitions["orders", 0]

    @property
    def now_ms(self) -> int:
        return self.home.clock.now_ms()

    # -- steps

    def step(self) -> None:
        self.chance.choices(
            [
                self.produce,
                self.transact,
                self.end,
                self.roll,
                self.clean,
                self.wait,
                self.restart,
                self.forget,
            ],
            [10, 8, 4, 3, 5, 3, 1, 0.3],
        )[0]()

    def some_rows(self) -> list[Row]:
        return [
            (
                b"k%d" % self.chance.randrange(12),
                None if self.chance.random() < 0.15 else self.chance.randbytes(self.chance.randrange(40)),
            )
            for _ in range(self.chance.choice([1, 1, 2, 5]))
        ]

    def append(self, rows: list[Row], **options: Any) -> list[int]:
        ages = [self.chance.choice([0, 0, 7, 1000]) for _ in rows]
        data = records.build(
            [
                (*row, [("h", b"1")] * (age == 7), self.now_ms - age)
                for row, age in zip(rows, ages, strict=True)
            ],
            codec=self.chance.choice(CODECS),
            **options,
        )
        base = self.partition.append(bytearray(data), self.now_ms, verified=True).base_offset
        write(self.partition)
        offsets = list(range(base, base + len(rows)))
        self.model.rows.update(zip(offsets, rows, strict=True))
        return offsets

    def produce(self) -> None:
        rows = self.some_rows()
        producer = self.chance.choice([None, None, None, 1, 2])
        options = {} if producer is None else self.identity(self.model.era + producer, len(rows))
        self.append(rows, **options)

    def identity(self, producer: int, count: int) -> dict[str, int]:
        sequence = self.model.sequences.get(producer, 0)
        self.model.sequences[producer] = sequence + count
        return {"producer_id": producer, "producer_epoch": 0, "base_sequence": sequence}

    def transact(self) -> None:
        producer, rows = self.model.era + self.chance.randrange(10, 14), self.some_rows()
        offsets = self.append(rows, transactional=True, **self.identity(producer, len(rows)))
        self.model.open.setdefault(producer, []).extend(offsets)

    def end(self) -> None:
        if not self.model.open:
            return
        producer = self.chance.choice(sorted(self.model.open))
        commit = self.chance.random() < 0.5
        offsets = self.model.open.pop(producer)
        if not commit:
            self.model.aborted.update(offsets)
        self.partition.append_built(bytearray(marker(producer, 0, commit)), self.now_ms)
        write(self.partition)

    def roll(self) -> None:
        if self.partition.active.size:
            self.partition.roll(self.now_ms)

    def clean(self) -> None:
        self.home.clean()
        assert not self.home.manager.compaction.cleaner or not self.home.cleaner.uncleanable
        self.check()

    def wait(self) -> None:
        self.home.timers.advance(self.chance.choice([1_000, 10_000, RETENTION_MS]))
        self.home.finish()

    def forget(self) -> None:
        """Forget producers that were idle for a day without an open transaction."""
        self.home.timers.advance(DAY_MS + 1)
        self.home.finish()
        self.home.manager.expire_producers()
        self.model.era += 100  # a later one is a new producer

    def restart(self) -> None:
        self.home.restart(clean=self.chance.random() < 0.5)
        self.check()

    # -- what must hold

    def check(self) -> None:
        partition, model = self.partition, self.model
        newest = model.newest(partition.last_stable_offset)
        read = {record.offset: record for record in self.consume()}
        for offset, record in read.items():
            assert (record.key, record.value) == model.rows[offset], f"offset {offset}"
            assert offset not in model.aborted, f"offset {offset} was aborted"
        for key, offset in newest.items():
            if model.rows[offset][1] is not None:
                assert offset in read, f"{key!r} at {offset} is lost"
        dirty = partition.first_dirty_offset or 0
        below = [record.key for offset, record in read.items() if offset < dirty]
        assert len(below) == len(set(below)), "a key is twice in the clean part"

    def consume(self) -> Iterator[records.Record]:
        """Read as a read_committed client: range by range, with the aborted transactions in the answers."""
        partition = self.partition
        offset = partition.log_start_offset
        limit = partition.last_stable_offset
        size = self.chance.choice([100, 700, 1 << 20])
        while True:
            part = partition.read(offset, size, limit_offset=limit, at_least_one=True)
            if part is None:
                return
            told = sorted(partition.aborted_transactions(offset, part), key=lambda each: each[1])
            aborted: set[int] = set()
            data = part.read()
            for batch in whole_batches(data):
                while told and told[0][1] <= batch.last_offset:
                    aborted.add(told.pop(0)[0])
                piece = data[batch.position : batch.position + batch.size]
                found = list(records.read(piece)) if batch.count else []
                if batch.is_control:
                    if found and found[0].control_type == 0:
                        aborted.discard(batch.producer_id)
                elif not (batch.is_transactional and batch.producer_id in aborted):
                    yield from (record for record in found if record.offset >= offset)
                end = batch.last_offset + 1
            offset = end


def whole_batches(data: bytes) -> list[records.Batch]:
    """A range may end inside a batch."""
    position = 0
    while position + 12 <= len(data):
        size = int.from_bytes(data[position + 8 : position + 12], "big") + 12
        if position + size > len(data):
            break
        position += size
    return records.scan(data[:position])


def compare_with_twin(history: History, monkeypatch: pytest.MonkeyPatch) -> None:
    """The reference first makes what the cleaner is to make."""
    real_index, real_rewrite = cleaning.Cleaning.index, cleaning.Cleaning.rewrite
    twins: dict[int, tuple[twin.KeyMap, twin.AbortedTransactions]] = {}

    def index(self: cleaning.Cleaning) -> list[list[Source]]:
        groups = real_index(self)
        keys, aborted = twin.KeyMap(1 << 30), twin.AbortedTransactions()
        start, end = self.dirt.first_dirty_offset, self.dirt.first_uncleanable_offset
        aborted.add(self.aborted_between(start, end))
        reached = start
        for source in self.sources:
            if self.end_of(source) > start:
                reached, _ = twin.index_keys(
                    self.path_of(source),
                    0,
                    source.size,
                    start,
                    min(end, self.end_of(source)),
                    keys,
                    1 << 30,
                    aborted,
                    twin.Round(),
                )
        assert (self.end_offset, self.keys.size) == (reached, keys.size)
        assert all(self.keys.get(key) == offset for key, offset in keys._offsets.items())
        twins[id(self)] = keys, twin.AbortedTransactions()
        return groups

    def rewrite(self: cleaning.Cleaning, sources: Sequence[Source], producers: cleaning.LastRecords) -> Any:
        keys, aborted = twins[id(self)]
        slow = twin.Rewriter(
            self.directory,
            sources[0].base_offset,
            keys,
            aborted,
            twin.Round(),
            last_records_of_producers=producers,
            now_ms=self.now_ms,
            delete_retention_ms=self.delete_retention_ms,
            end_of_round=self.dirt.first_uncleanable_offset,
            index_interval_bytes=self.index_interval_bytes,
            suffix=".twin",
        )
        for source in sources:
            aborted.add(self.aborted_between(source.base_offset, self.end_of(source)))
            slow.add(self.path_of(source), source.size, True)
        slow.finish(sources[-1].modified_ms)
        found = real_rewrite(self, sources, producers)
        assert [Path(path).suffixes[0] for path in found.paths] == [
            Path(path).suffixes[0] for path in slow.paths
        ]
        for ours, theirs in zip(found.paths, slow.paths, strict=True):
            assert files.read_file(ours) == files.read_file(theirs), os.path.basename(ours)
        facts = ("size", "batches", "end_offset", "max_timestamp", "max_timestamp_offset", "first_timestamp")
        assert [getattr(found, each) for each in facts] == [getattr(slow, each) for each in facts]
        slow.discard()
        history.compared += 1
        return found

    monkeypatch.setattr(cleaning.Cleaning, "index", index)
    monkeypatch.setattr(cleaning.Cleaning, "rewrite", rewrite)


@pytest.mark.parametrize("seed", SEEDS)
def test_a_compacted_log_keeps_what_counts(
    tmp_path: Path, seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    history = History(Home(tmp_path / "a"), seed, monkeypatch)
    for _ in range(STEPS):
        history.step()
    while history.model.open:
        history.end()
    history.roll()
    history.clean()
    assert history.compared > 0
