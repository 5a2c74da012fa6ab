"""Snapshots of the metadata: ours have the same records as Kafka's, and loading one gives the image it was made from."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from pykafkad.cluster import metadata_records
from pykafkad.cluster.metadata_log import MetadataLog
from pykafkad.cluster.snapshots import Snapshot
from pykafkad.hot import records
from tests.unit.test_metadata_log import copied, opened

NOW_MS = 1_700_000_000_000


def batches_of(log: MetadataLog, now_ms: int = NOW_MS) -> list[bytes]:
    snapshot = Snapshot(log, now_ms)
    return list(iter(snapshot.next_batch, None))


def values(data: bytes) -> list[bytes]:
    """The records of a snapshot, without the control records."""
    return [
        bytes(record.value or b"")
        for batch in records.scan(data)
        if not batch.is_control
        for record in records.batch_records(data[batch.position : batch.position + batch.size])
    ]


def said(value: bytes) -> str:
    """A record as text; unordered lists are sorted."""
    record = metadata_records.decode(value)
    for field in ("features", "end_points", "entity"):
        if hasattr(record, field):
            getattr(record, field).sort(key=repr)
    return repr(record)


def log_up_to(golden: Path, target: Path, offset: int) -> MetadataLog:
    """Kafka's log up to that offset, without snapshots."""
    directory = copied(golden / "metadata" / "snapshots", target)
    for checkpoint in directory.glob("*.checkpoint"):
        checkpoint.unlink()
    path = directory / f"{0:020d}.log"
    data = path.read_bytes()
    path.write_bytes(
        b"".join(data[b.position : b.position + b.size] for b in records.scan(data) if b.last_offset < offset)
    )
    log = opened(target)
    assert log.end_offset == offset
    return log


@pytest.mark.parametrize("offset", [54, 94, 134, 176, 277])
def test_our_snapshot_has_the_records_of_kafkas(golden: Path, tmp_path: Path, offset: int) -> None:
    theirs = (golden / "metadata" / "snapshots" / f"{offset:020d}-0000000001.checkpoint").read_bytes()
    log = log_up_to(golden, tmp_path, offset)
    ours = b"".join(batches_of(log))
    assert Counter(map(said, values(ours))) == Counter(map(said, values(theirs)))
    assert Counter(map(len, values(ours))) == Counter(map(len, values(theirs)))
    kinds = [metadata_records.type_of(value) for value in values(theirs)]
    assert list(dict.fromkeys(metadata_records.type_of(value) for value in values(ours))) == list(
        dict.fromkeys(kinds)
    )


def test_header_and_footer_are_kafkas_byte_for_byte(golden: Path, tmp_path: Path) -> None:
    """Everything but what depends on time and size: timestamps, checksums, and the footer's offset."""
    theirs = (golden / "metadata" / "snapshots" / f"{277:020d}-0000000001.checkpoint").read_bytes()
    ours = batches_of(log_up_to(golden, tmp_path, 277))
    first, last = records.scan(theirs)[0], records.scan(theirs)[-1]
    for mine, batch in ((ours[0], first), (ours[-1], last)):
        other = theirs[batch.position : batch.position + batch.size]
        assert mine[8:17] + mine[21:27] + mine[43:] == other[8:17] + other[21:27] + other[43:]
