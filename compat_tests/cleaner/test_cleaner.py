"""Random compacted logs are cleaned by Kafka's own cleaner and by ours: the same files, byte for byte.

Compression differs between versions of libraries, so compressed batches are compared by their records. CASES=5000 runs
more than `make test` does; SEED=n replays one case.
"""

from __future__ import annotations

import os
import random
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from compat_tests import reference
from compat_tests.cleaner.oracle import MEMORY, Oracle
from pykafkad.hot import cleaner, records
from tests import cleaner_logs as kit

CASES = int(os.environ.get("CASES", "300"))
SEED = os.environ.get("SEED")
CHUNK = 50  # cases a test
COUNTS = (
    "bytes_read",
    "messages_read",
    "bytes_written",
    "messages_written",
    "invalid_messages",
)


KAFKA_GIVES_UP = "Empty batches are only supported for magic v2"


class Case(NamedTuple):
    seed: int
    log: kit.Log
    question: dict[str, Any]


@pytest.fixture(scope="module")
def oracle() -> Iterator[Oracle]:
    if lack := reference.missing():
        pytest.skip(lack)
    with Oracle() as running:
        yield running


@pytest.fixture
def room() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(dir=MEMORY if MEMORY.is_dir() else None) as directory:
        yield Path(directory)


def uncleanable_of(log: kit.Log, chance: random.Random) -> int:
    """The base offset of the first segment that may not be cleaned: the one with an open transaction, or an earlier
    one."""
    bases = list(log.segments)
    stable = max(base for base in bases if base <= log.first_unstable)
    end = chance.choice([stable, stable, chance.choice(bases)])
    return end if end > bases[0] else bases[-1]


def make_case(seed: int) -> Case:
    """The case of a seed: the log, and how it is cleaned."""
    chance = random.Random(seed)
    codecs = chance.choice([(0,), (0,), (0, 0, 1, 2, 3, 4)])
    magics = chance.choice([(2,), (2,), (2,), (0, 1, 2)])
    keys = chance.choice([3, 12, 60])
    log = kit.Maker(seed, codecs=codecs, magics=magics, batches=chance.choice([5, 30, 80]), keys=keys).make()
    bases = list(log.segments)
    memory = chance.choice([24 * 5, 24 * 20, 24 * 5000, 24 * 5000])
    end = uncleanable_of(log, chance)
    question = {
        "now": kit.NOW_MS,
        "logStart": bases[0],
        "firstDirty": chance.choice([bases[0], max(base for base in bases if base < end), end - 1]),
        "uncleanable": end,
        "memory": memory,
        "buffer": chance.choice([300, 4096, 65_536]),
        "loadFactor": chance.choice([0.9, 0.5]),
        "configs": {
            "cleanup.policy": "compact",
            "internal.segment.bytes": str(chance.choice([1, 4096, 32_768, 1 << 30])),
            "index.interval.bytes": str(chance.choice([0, 500, 4096])),
            "delete.retention.ms": str(chance.choice([0, 1, kit.DAY_MS])),
            "max.message.bytes": str(chance.choice([1000, 1_048_588])),
        },
    }
    return Case(seed, log, question)


def lay_out(case: Case, directory: Path) -> None:
    kit.write_log(directory, case.log.segments)
    chance = random.Random(case.seed)
    for base in case.log.segments:
        modified = kit.NOW_MS - chance.randrange(0, 4) * kit.DAY_MS - chance.randrange(1000)
        os.utime(kit.log_path(directory, base), ns=(modified * 1_000_000, modified * 1_000_000))


def work_of(case: Case, directory: Path, said: dict[str, Any], remaining: list[int]) -> kit.Work:
    """The same cleaning by ours; the groups of segments are taken from the files that Kafka left."""
    bases = [row[0] for row in said["segments"]]
    cleaned = [base for base in bases if base < said["endOffset"]]
    starts = [base for base in remaining if base < said["endOffset"]]
    groups = [
        [base for base in cleaned if start <= base < end]
        for start, end in zip(starts, [*starts[1:], said["endOffset"]], strict=True)
    ]
    configs = case.question["configs"]
    retention_ms = int(configs["delete.retention.ms"])
    before = [row[2] for row in said["segments"] if row[0] < case.question["firstDirty"]]
    return kit.Work(
        directory=directory,
        bases=bases,
        first_dirty=case.question["firstDirty"],
        first_uncleanable=said["firstUncleanable"],
        groups=groups,
        producers={int(producer): tuple(row) for producer, row in said["producers"].items()},
        aborted=[tuple(row) for row in said["aborted"]],
        delete_retention_ms=retention_ms,
        legacy_horizon_ms=before[-1] - retention_ms if before else 0,
        memory_bytes=case.question["memory"],
        load_factor=case.question["loadFactor"],
        buffer_bytes=case.question["buffer"],
        index_interval_bytes=int(configs["index.interval.bytes"]),
    )


def content(data: bytes) -> list[Any]:
    """The records of a log, whoever compressed them."""
    found: list[Any] = []
    for batch in records.scan(data):
        whole = data[batch.position : batch.position + batch.size]
        if not batch.attributes & 7:
            found.append(whole)
        else:
            found.append((whole[:8], whole[12:17], whole[21:61], list(records.read(whole))))
    return found


def read(path: Path) -> bytes:
    return path.read_bytes() if path.exists() else b""


def compare_files(case: Case, theirs: Path, ours: Path, base: int) -> None:
    def pair(kind: str) -> tuple[bytes, bytes]:
        name = f"{base:020d}{kind}"
        return read(theirs / name), read(ours / f"{name}.cleaned")

    expected, got = pair(".log")
    if expected != got:
        assert case.log.has_codec, f"seed {case.seed}: segment {base} differs"
        assert content(got) == content(expected), f"seed {case.seed}: segment {base} differs"
    else:
        for kind in (".index", ".timeindex"):
            expected, got = pair(kind)
            assert got == expected, f"seed {case.seed}: {kind} of segment {base} differs"
    expected, got = pair(".txnindex")
    assert got == expected, f"seed {case.seed}: .txnindex of segment {base} differs"


def check_old_end(case: Case, said: dict[str, Any], ours: Path) -> None:
    """If the last batch of a round has format 0 or 1 and loses every record, we leave an empty batch of format 2
    there."""
    said = {**said, "endOffset": said["firstUncleanable"]}
    work = work_of(case, ours, said, [row[0] for row in said["segments"]])
    done = kit.clean(cleaner, work)
    *_, last = records.scan(read(Path(done.rewriters[-1].paths[0])))
    assert (last.magic, last.count, last.last_offset + 1) == (2, 0, work.first_uncleanable), (
        f"seed {case.seed}"
    )


def check(case: Case, oracle: Oracle, room: Path) -> None:
    theirs, ours = room / "theirs" / "topic-0", room / "ours" / "topic-0"
    for directory in (theirs, ours):
        lay_out(case, directory)
    said = oracle.clean({**case.question, "directory": str(theirs)})
    if KAFKA_GIVES_UP in said.get("error", ""):
        check_old_end(case, said, ours)
        return
    assert "error" not in said, f"seed {case.seed}: {said['error']}"
    remaining = sorted(int(path.stem) for path in theirs.glob("*.log"))
    work = work_of(case, ours, said, remaining)
    done = kit.clean(cleaner, work)
    assert done.end_offset == said["endOffset"], f"seed {case.seed}"
    assert done.keys == said["stats"]["keys"], f"seed {case.seed}"
    for group in work.groups:
        compare_files(case, theirs, ours, group[0])
    counts = [name for name in COUNTS if name != "bytes_written" or not case.log.has_codec]
    if case.question["firstDirty"] in case.log.segments:  # else Kafka looks up the position in the segment
        counts.append("index_messages_read")
    for name in counts:
        assert getattr(done.round, name) == said["stats"][name], f"seed {case.seed}: {name}"


SEEDS = [int(SEED)] if SEED else range(CASES)


@pytest.mark.parametrize("start", range(0, len(SEEDS), CHUNK))
def test_random_logs_are_cleaned_as_kafka_cleans_them(oracle: Oracle, room: Path, start: int) -> None:
    for seed in SEEDS[start : start + CHUNK]:
        check(make_case(seed), oracle, room / str(seed))
        shutil.rmtree(room / str(seed))
