"""Compaction on both brokers of what transactions wrote: aborted records, markers, and what is still open.

Producer ids and markers are the test's own, so that both logs are the same but for the time in the markers. Invariant
of the test: no partition is verified, since no coordinator knows these producers.
"""

from __future__ import annotations

import random
import time
from collections.abc import Iterator
from typing import Any

import pytest

from compat_tests.differential.config_requests import BROKER, DELETE, SET, alter_one
from compat_tests.differential.pair import Pair
from compat_tests.differential.requests import OLD_MS, list_offsets, produce
from compat_tests.differential.test_compaction import (
    ALWAYS,
    NEVER,
    QUIET_SECONDS,
    clean_up_to,
    compacted,
    fill,
    headers_and_records,
)
from compat_tests.differential.test_retention import HOUR_MS, change, wait_for
from pykafkad.hot import records
from pykafkad.messages import WriteTxnMarkersRequest

VERIFICATION = "transaction.partition.verification.enable"
CONTROL = 0x20  # of a batch's attributes
FIRST_PRODUCER = 6000
SEEDS = 4


@pytest.fixture
def pair(tidy_pair: Pair) -> Iterator[Pair]:
    tidy_pair.same(alter_one(BROKER, "", (VERIFICATION, SET, "false")), 1)
    yield tidy_pair
    tidy_pair.same(alter_one(BROKER, "", (VERIFICATION, DELETE, None)), 1)


class Writers:
    """Producers whose transactions overlap in one partition."""

    def __init__(self, pair: Pair, name: str, seed: int) -> None:
        self.pair, self.name = pair, name
        self.chance = random.Random(seed)
        self.sequences: dict[int, int] = {}
        self.open: set[int] = set()
        self.steps = 0

    def write(self, producer: int) -> None:
        rows: list[Any] = [
            (
                b"k%d" % self.chance.randrange(7),
                None if self.chance.random() < 0.2 else self.chance.randbytes(self.chance.randrange(60)),
                [],
                OLD_MS + self.steps,
            )
            for _ in range(self.chance.choice([1, 1, 2]))
        ]
        self.steps += 1
        sequence = self.sequences.get(producer, 0)
        who = FIRST_PRODUCER + producer
        data = records.build(
            rows, transactional=True, producer_id=who, producer_epoch=0, base_sequence=sequence
        )
        self.pair.same(produce(self.name, {0: bytes(data)}, transactional_id=f"writer {producer}"), 9)
        self.sequences[producer] = sequence + len(rows)
        self.open.add(producer)

    def end(self, producer: int, committed: bool) -> None:
        kind = WriteTxnMarkersRequest
        marker = kind.WritableTxnMarker(
            producer_id=FIRST_PRODUCER + producer,
            producer_epoch=0,
            transaction_result=committed,
            topics=[kind.WritableTxnMarkerTopic(name=self.name, partition_indexes=[0])],
            coordinator_epoch=0,
        )
        self.pair.same(kind(markers=[marker]), 1)
        self.open.discard(producer)

    def at_random(self, count: int, producers: range) -> None:
        for _ in range(count):
            producer = self.chance.choice(producers)
            if producer in self.open and self.chance.random() < 0.4:
                self.end(producer, self.chance.random() < 0.5)
            else:
                self.write(producer)

    def end_all(self) -> None:
        for producer in sorted(self.open):
            self.end(producer, self.chance.random() < 0.5)


def clean_what_may_be(pair: Pair, name: str) -> None:
    """As far as the first open transaction, or the active segment: where Kafka comes to, we do."""
    before = clean_up_to(pair.theirs, name) or 0
    change(pair, name, min_cleanable_dirty_ratio=ALWAYS)
    wait_for(pair.theirs, lambda: (clean_up_to(pair.theirs, name) or 0) > before, f"{name} to be cleaned")
    time.sleep(QUIET_SECONDS)
    end = clean_up_to(pair.theirs, name)
    wait_for(pair.ours, lambda: clean_up_to(pair.ours, name) == end, f"{name} to be clean up to {end}")
    change(pair, name, min_cleanable_dirty_ratio=NEVER)


def without_times(found: list[Any]) -> list[Any]:
    """The time of a marker is its broker's."""
    masked = []
    for file, header, rows in found:
        if header[2] & CONTROL:
            header = (*header[:4], *header[5:])
            rows = [(row[0], *row[2:]) for row in rows]
        masked.append((file, header, rows))
    return masked


def same_logs(pair: Pair, name: str) -> None:
    ours, theirs = (without_times(headers_and_records(side, name)) for side in pair.sides)
    assert ours == theirs
    for isolation in (0, 1):
        pair.same(list_offsets(name, *[(0, -each) for each in range(1, 3)], isolation_level=isolation), 7)


@pytest.mark.parametrize("retention_ms", [0, HOUR_MS])
@pytest.mark.parametrize("seed", range(SEEDS))
def test_transactions_that_overlap(pair: Pair, seed: int, retention_ms: int) -> None:
    """Cleaned three times, since a marker goes only when everything of its transaction has gone before."""
    name = compacted(pair, delete_retention_ms=str(retention_ms))
    writers = Writers(pair, name, seed)
    for _ in range(3):
        writers.at_random(50, range(4))
        writers.end_all()
        fill(pair, name, count=12, keys=7, seed=seed)
        clean_what_may_be(pair, name)
        same_logs(pair, name)


@pytest.mark.parametrize("seed", range(SEEDS))
def test_an_open_transaction_holds_the_cleaning_back(pair: Pair, seed: int) -> None:
    name = compacted(pair, delete_retention_ms="0")
    writers = Writers(pair, name, seed)
    writers.at_random(40, range(3))
    writers.end_all()
    fill(pair, name, count=10, keys=7, seed=seed)
    writers.write(9)  # stays open
    writers.at_random(40, range(3))
    writers.end_all()
    fill(pair, name, count=10, keys=7, seed=seed)
    clean_what_may_be(pair, name)
    same_logs(pair, name)
    writers.end(9, committed=seed % 2 == 0)
    fill(pair, name, count=10, keys=7, seed=seed)
    clean_what_may_be(pair, name)
    same_logs(pair, name)
