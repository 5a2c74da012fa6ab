"""Every batch of the golden corpus produced to an empty partition, and fetched back.

The fetched bytes are compared, except for topics where the broker compresses or stamps the batches itself: there the
records must be the same.
"""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from compat_tests.differential.meant import records_alone
from compat_tests.differential.pair import Pair
from compat_tests.differential.requests import fetch, fetch_partition, produce

GOLDEN = Path(__file__).parents[2] / "tests" / "golden" / "batches"
PRODUCE_VERSION = 9
FETCH_VERSION = 12

KINDS: dict[str, dict[str, str]] = {
    "default": {},
    "compact": {"cleanup.policy": "compact"},
    "small": {"max.message.bytes": "1000"},
    "append": {"message.timestamp.type": "LogAppendTime"},
    "gzip": {"compression.type": "gzip"},
    "lz4": {"compression.type": "lz4"},
    "zstd": {"compression.type": "zstd"},
    "snappy": {"compression.type": "snappy"},
    "uncompressed": {"compression.type": "uncompressed"},
    "tsbound": {"message.timestamp.before.max.ms": "1000"},
    "future": {"message.timestamp.after.max.ms": "1000"},
}
REWRITTEN = {"append", "gzip", "lz4", "zstd", "snappy", "uncompressed"}


def corpus(file: str) -> list[Any]:
    with gzip.open(GOLDEN / file, "rt") as lines:
        return [json.loads(line) for line in lines]


VALID, CORRUPT = corpus("valid.jsonl.gz"), corpus("corrupt.jsonl.gz")


class Topics:
    """One topic for each kind of config, with a partition for each batch, created when first needed."""

    def __init__(self, pair: Pair) -> None:
        self.pair = pair
        self.made: dict[str, tuple[str, int]] = {}

    def partition(self, kind: str) -> tuple[str, int]:
        name, used = self.made.get(kind, ("", 0))
        if used % 200 == 0:
            name, used = self.pair.topic(f"golden-{kind}", 200, KINDS[kind]), 0
        self.made[kind] = (name, used + 1)
        return name, used


@pytest.fixture(scope="module")
def topics(pair: Pair) -> Topics:
    return Topics(pair)


def check(topics: Topics, kind: str, row: Any) -> None:
    pair = topics.pair
    topic, partition = topics.partition(kind)
    data = bytes.fromhex(row["hex"])
    pair.same(produce(topic, {partition: data}), PRODUCE_VERSION)
    if "transactional" in row["name"] or "control" in row["name"] or "marker" in row["name"]:
        pair.same(produce(topic, {partition: data}, transactional_id="golden"), PRODUCE_VERSION)
    request = fetch({topic: [fetch_partition(partition, 0, partition_max_bytes=1 << 24)]}, max_bytes=1 << 24)
    if kind not in REWRITTEN:
        pair.same(request, FETCH_VERSION)
        return
    ours, theirs = [
        side.demand(request(side), FETCH_VERSION).responses[0].partitions[0] for side in pair.sides
    ]
    assert ours.high_watermark == theirs.high_watermark
    assert records_alone(ours.records) == records_alone(theirs.records)


@pytest.mark.parametrize("row", VALID, ids=lambda row: row["name"])
def test_valid(topics: Topics, row: Any) -> None:
    check(topics, "default", row)


@pytest.mark.parametrize("row", CORRUPT, ids=lambda row: row["name"])
def test_corrupt(topics: Topics, row: Any) -> None:
    check(topics, row["topicKind"], row)


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind != "default"])
def test_valid_in_topics_with_other_configs(topics: Topics, kind: str) -> None:
    rows = [row for row in VALID if row["name"].startswith("v2-")]
    for row in rows[:: 1 if kind in ("compact", "append", "gzip") else 4]:
        check(topics, kind, row)
