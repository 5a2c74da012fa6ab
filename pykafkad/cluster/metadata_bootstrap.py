"""bootstrap.checkpoint: the records that a new cluster's metadata begins with, beside meta.properties.

    control batch   SnapshotHeader
    batch           FeatureLevel records, and what else `kafka-storage format` was told (SCRAM credentials)
    control batch   SnapshotFooter

`kafka-storage format` leaves it in every log directory, and so do we where we format one; the one in the metadata
log's directory is read when that log is empty. Afterwards it says nothing any more. It is a snapshot in form, with
offsets from 0 and epoch 0.
"""

from __future__ import annotations

import os

from pykafkad.cluster import features, metadata_files, metadata_records
from pykafkad.cluster.metadata_reading import checked_snapshot, read_file
from pykafkad.cluster.metadata_records import MetadataError
from pykafkad.hot import records
from pykafkad.messages import FeatureLevelRecord, SnapshotFooterRecord, SnapshotHeaderRecord

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any

    from pykafkad.cluster.metadata_records import Record

NAME = "bootstrap.checkpoint"


def formatted() -> list[Record]:
    """What formatting with 4.3.1 gives."""
    return [
        (FeatureLevelRecord(name=name, feature_level=level), 0) for name, level in features.FORMATTED.items()
    ]


def read(log_directory: str) -> list[Record] | None:
    """The records of the file there; None without one."""
    path = os.path.join(log_directory, NAME)
    if not os.path.exists(path):
        return None
    data = read_file(path)
    found: list[Record] = []
    for batch in checked_snapshot(path, data):
        if batch.is_control:
            continue
        for record in records.batch_records(data[batch.position : batch.position + batch.size]):
            decoded = metadata_records.decode(record.value or b"")
            if decoded is None:
                raise MetadataError(
                    f"{path}: record type {metadata_records.type_of(record.value or b'')} is not known"
                )
            found.append((decoded, metadata_records.version_of(record.value or b"")))
    return found


def write(log_directories: Iterable[str], bootstrap: list[Record], now_ms: int) -> None:
    """Where there is none yet. Not synced: nobody needs it once there is a metadata log."""
    header = bytes(SnapshotHeaderRecord(last_contained_log_timestamp=0).encode(0))
    values = metadata_records.encode_all(bootstrap)
    footer = bytes(SnapshotFooterRecord().encode(0))
    data = b"".join(
        (
            control(metadata_records.SNAPSHOT_HEADER, header, 0, now_ms),
            records.build([(None, value, [], now_ms) for value in values], base_offset=1, leader_epoch=0),
            control(metadata_records.SNAPSHOT_FOOTER, footer, 1 + len(values), now_ms),
        )
    )
    for directory in log_directories:
        if not os.path.exists(os.path.join(directory, NAME)):
            metadata_files.write_bytes(directory, NAME, data)


def control(kind: int, value: bytes, offset: int, now_ms: int) -> bytes:
    rows: list[Any] = [(metadata_records.control_key(kind), value, [], now_ms)]
    data: bytes = records.build(rows, base_offset=offset, leader_epoch=0, control=True)
    return data
