"""The batches of a log file, read one at a time so that a segment of any size fits, and the lines that show them."""

from __future__ import annotations

import os

from pykafkad.hot import records
from pykafkad.net.client import ClientError
from pykafkad.tools import dump_decoders

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from pykafkad.hot.records import Batch, Record

INTEGER_MAX = 2**31 - 1
OVERHEAD, HEADER_UP_TO_MAGIC, LEAST_SIZE = 12, 17, 14
CRC_START = 21  # of a batch of format 2
LEGACY_CRC_START = 16


class LogFile:
    """A log file whose whole batches are read one after another."""

    def __init__(self, path: str, max_bytes: int = INTEGER_MAX, position: int = 0) -> None:
        self._path = path
        self._file = open(path, "rb", buffering=256 * 1024)  # noqa: SIM115 - closed by __exit__
        self._position = position
        self.size = min(os.fstat(self._file.fileno()).st_size, position + max_bytes)

    def __enter__(self) -> LogFile:
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()

    def batches(self) -> Iterator[bytes]:
        """The bytes of each batch, until one is torn; ClientError if a size cannot be right."""
        position = self._position
        self._file.seek(position)
        while position < self.size - HEADER_UP_TO_MAGIC:
            head = self._file.read(OVERHEAD)
            size = int.from_bytes(head[8:12], "big", signed=True)
            if size < LEAST_SIZE:
                raise ClientError(
                    f"Found record size {size} smaller than minimum record overhead ({LEAST_SIZE}) in file "
                    f"{self._path}."
                )
            if position > self.size - OVERHEAD - size:
                return
            data = head + self._file.read(size)
            yield data
            position += len(data)


def header_of(data: bytes) -> Batch:
    (batch,) = records.scan(data, check_crc=False)
    return batch


def batch_line(batch: Batch, data: bytes, position: int) -> str:
    if batch.magic >= 2:
        horizon = batch.delete_horizon_ms
        shown = (
            f"baseOffset: {batch.base_offset} lastOffset: {batch.last_offset} count: {batch.count} "
            f"baseSequence: {batch.base_sequence} lastSequence: {batch.last_sequence} "
            f"producerId: {batch.producer_id} producerEpoch: {batch.producer_epoch} "
            f"partitionLeaderEpoch: {batch.leader_epoch} "
            f"isTransactional: {str(batch.is_transactional).lower()} "
            f"isControl: {str(batch.is_control).lower()} "
            f"deleteHorizonMs: {optional_long(horizon)}"
        )
    else:
        shown = f"offset: {batch.last_offset}"
    crc, is_valid = checksum(batch, data)
    return (
        f"{shown} position: {position} {time_name(batch)}: {batch.max_timestamp} size: {batch.size} "
        f"magic: {batch.magic} compresscodec: {batch.codec} crc: {crc} isvalid: {str(is_valid).lower()}"
    )


def checksum(batch: Batch, data: bytes) -> tuple[int, bool]:
    """The checksum in the batch, and whether it is right."""
    if batch.magic >= 2:
        return batch.crc, len(data) > CRC_START and records.crc32c(memoryview(data)[CRC_START:]) == batch.crc
    import zlib

    written = int.from_bytes(data[OVERHEAD:LEGACY_CRC_START], "big")
    return written, zlib.crc32(data[LEGACY_CRC_START:]) == written


def time_name(batch: Batch) -> str:
    if batch.magic == 0:
        return "NoTimestampType"
    return "LogAppendTime" if batch.is_log_append_time else "CreateTime"


def record_text(batch: Batch, record: Record, data: bytes) -> str:
    key_size = -1 if record.key is None else len(record.key)
    value_size = -1 if record.value is None else len(record.value)
    shown = (
        f"| offset: {record.offset} {time_name(batch)}: {record.timestamp} keySize: {key_size} "
        f"valueSize: {value_size}"
    )
    if batch.magic >= 2:
        keys = ",".join(key for key, _ in record.headers)
        shown += f" sequence: {sequence_of(batch, record.offset)} headerKeys: [{keys}]"
    elif batch.codec == "none":  # then the batch is the record itself
        crc, is_valid = checksum(batch, data)
        shown += f" isValid: {str(is_valid).lower()} crc: {crc}"
    if batch.is_control:
        shown += dump_decoders.control_text(record)
    return shown


def sequence_of(batch: Batch, offset: int) -> int:
    """The record's sequence number, which continues with 0 after the largest int."""
    if batch.base_sequence < 0:
        return -1
    return (batch.base_sequence + offset - batch.base_offset) % 2**31


def optional_long(value: int | None) -> str:
    return "OptionalLong.empty" if value is None else f"OptionalLong[{value}]"
