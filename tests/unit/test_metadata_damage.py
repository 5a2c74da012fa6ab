"""Any damage to a metadata directory is refused, or has no effect, or the torn last batch is truncated; nothing else.

SEED=n replays one case, RUNS=n runs that many.
"""

from __future__ import annotations

import os
import random
from pathlib import Path
from typing import Any

import pytest

from pykafkad.cluster.image import Image
from pykafkad.cluster.metadata_files import DIRECTORY
from pykafkad.cluster.metadata_records import MetadataError
from pykafkad.hot import records
from tests.unit.test_metadata_log import LOG, copied, opened, summary

RUNS = int(os.environ.get("RUNS", "60"))
SEEDS = [int(os.environ["SEED"])] if "SEED" in os.environ else range(RUNS)


def damaged(data: bytes, dice: random.Random) -> tuple[bytes, int, int]:
    """One of these damages: a flipped bit, overwritten bytes, a missing piece, a missing end, bytes added at the end.

    Also returns the range of damaged bytes.
    """
    at, kind = dice.randrange(len(data)), dice.randrange(5)
    size = min(dice.choice((1, 4, 61, 300)), len(data) - at)
    if kind == 0:
        return data[:at] + bytes([data[at] ^ 1 << dice.randrange(8)]) + data[at + 1 :], at, at + 1
    if kind == 1:
        return data[:at] + dice.randbytes(size) + data[at + size :], at, at + size
    if kind == 2:
        return data[:at] + data[at + size :], at, at + size
    if kind == 3:
        return data[:at], at, len(data)
    added = dice.choice((bytes(4096), dice.randbytes(100), data[at : at + 300]))
    return data + added, len(data), len(data)


@pytest.fixture(scope="module")
def states(golden: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[int, dict[str, Any]]:
    """The state according to Kafka's log after each of its batches, by end offset."""
    target = tmp_path_factory.mktemp("states")
    data = (golden / "metadata" / "snapshots" / LOG).read_bytes()
    (target / DIRECTORY).mkdir()
    found = {0: summary(Image())}
    for batch in records.scan(data):
        (target / DIRECTORY / LOG).write_bytes(data[: batch.position + batch.size])
        log = opened(target)
        found[log.end_offset] = summary(log.image)
        log.close()
    return found


@pytest.mark.parametrize("snapshots", [False, True], ids=["log", "snapshots"])
def test_what_is_read_was_once_true(
    golden: Path, tmp_path: Path, states: dict[int, dict[str, Any]], snapshots: bool
) -> None:
    for seed in SEEDS:
        dice = random.Random(seed)
        directory = copied(golden / "metadata" / "snapshots", tmp_path / str(seed))
        for path in directory.glob("*.checkpoint"):
            if not snapshots:
                path.unlink()
        victim = dice.choice(
            [path for path in directory.glob("0*") if path.suffix in (".log", ".checkpoint")]
        )
        victim.chmod(0o644)
        whole = victim.read_bytes()
        data, start, end = damaged(whole, dice)
        victim.write_bytes(data)
        try:
            log = opened(tmp_path / str(seed))
        except MetadataError:
            continue
        log.close()
        said = f"SEED={seed} {victim.name}"
        assert summary(log.image) == states[log.end_offset], said
        assert log.end_offset in {max(states), *cut_there(whole, victim, start, end)}, said


def cut_there(whole: bytes, victim: Path, start: int, end: int) -> set[int]:
    """Where the log may be truncated for this damage: before it if no good batch follows, or where a snapshot ends."""
    batches = records.scan(whole)
    if victim.suffix != ".log" or end <= batches[-1].position:
        return set()
    before = max(
        (batch.last_offset + 1 for batch in batches if batch.position + batch.size <= start), default=0
    )
    snapshots = {int(path.name[:20]) for path in victim.parent.glob("*.checkpoint")}
    return {max({before, *snapshots})}
