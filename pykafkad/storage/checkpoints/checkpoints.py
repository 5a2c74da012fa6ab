"""Kafka's checkpoint files, and partition.metadata.

    0                          version
    2                          how many lines follow
    orders 0 1234              topic partition offset; in leader-epoch-checkpoint: epoch start-offset

An empty file has no entries. Anything else that does not read so is a CheckpointError, and the caller goes on
without the file: a checkpoint only saves work, the log knows better.
"""

from __future__ import annotations

from pykafkad import uuids
from pykafkad.storage.files import (
    LEADER_EPOCHS,
    OFFSET_MAX,
    PARTITION_METADATA,
    TopicPartition,
    is_of_disk,
    read_file,
    replace_file,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

VERSION = 0
RECOVERY_POINTS = "recovery-point-offset-checkpoint"
LOG_STARTS = "log-start-offset-checkpoint"
HIGH_WATERMARKS = "replication-offset-checkpoint"
CLEANED = "cleaner-offset-checkpoint"


class CheckpointError(Exception):
    """A checkpoint that cannot be read; says which and why."""


def parse_lines(path: str, width: int) -> list[list[str]]:
    """The fields of each line; [] when the file is empty or not there."""
    try:
        text = read_file(path).decode()
    except FileNotFoundError:
        return []
    except OSError as error:
        if is_of_disk(error):
            raise
        raise CheckpointError(f"{path} cannot be read: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise CheckpointError(f"{path} is not text") from error
    lines = text.splitlines()
    if not lines:
        return []
    try:
        version, count = int(lines[0]), int(lines[1])
    except (ValueError, IndexError) as error:
        raise CheckpointError(f"{path} does not begin with a version and a count") from error
    rows = [line.split() for line in lines[2:]]
    if version != VERSION:
        raise CheckpointError(f"{path} has version {version}, known is {VERSION}")
    if len(rows) != count:
        raise CheckpointError(f"{path} announces {count} entries and has {len(rows)}")
    if any(len(row) != width for row in rows):
        raise CheckpointError(f"{path} has a line that has not {width} fields")
    return rows


def format_lines(rows: Iterable[str]) -> bytes:
    lines = list(rows)
    return "".join(f"{line}\n" for line in (str(VERSION), str(len(lines)), *lines)).encode()


def offset_of(text: str) -> int:
    offset = int(text)
    if not -(1 << 63) <= offset <= OFFSET_MAX:
        raise ValueError(f"{text} is no offset")
    return offset


def epoch_of(text: str) -> int:
    epoch = int(text)
    if not -(1 << 31) <= epoch < 1 << 31:
        raise ValueError(f"{text} is no leader epoch")
    return epoch


def read_offsets(path: str) -> dict[TopicPartition, int]:
    try:
        return {(topic, int(index)): offset_of(offset) for topic, index, offset in parse_lines(path, 3)}
    except ValueError as error:
        raise CheckpointError(f"{path} has a line that is not topic, partition, offset") from error


def write_offsets(path: str, offsets: dict[TopicPartition, int]) -> None:
    rows = (f"{topic} {index} {offset}" for (topic, index), offset in offsets.items())
    replace_file(path, format_lines(rows))


def read_epochs(directory: str) -> list[tuple[int, int]]:
    path = f"{directory}/{LEADER_EPOCHS}"
    try:
        return [(epoch_of(epoch), offset_of(offset)) for epoch, offset in parse_lines(path, 2)]
    except ValueError as error:
        raise CheckpointError(f"{path} has a line that is not epoch, offset") from error


def epochs_text(entries: Iterable[tuple[int, int]]) -> bytes:
    return format_lines(f"{epoch} {offset}" for epoch, offset in entries)


def write_epochs(directory: str, entries: Iterable[tuple[int, int]]) -> None:
    """Not synced."""
    replace_file(f"{directory}/{LEADER_EPOCHS}", epochs_text(entries), sync=False)


def read_topic_id(directory: str) -> bytes | None:
    """The id in partition.metadata; None when the file is missing, empty or damaged."""
    try:
        text = read_file(f"{directory}/{PARTITION_METADATA}").decode("ascii", "replace")
    except OSError as error:
        if is_of_disk(error):
            raise
        return None
    fields = dict(line.split(": ", 1) for line in text.splitlines() if ": " in line)
    try:
        topic_id = uuids.from_text(fields["topic_id"].strip())
    except (KeyError, ValueError):
        return None
    return None if topic_id == uuids.ZERO else topic_id


def topic_id_text(topic_id: bytes) -> bytes:
    return f"version: 0\ntopic_id: {uuids.to_text(topic_id)}".encode()


def write_topic_id(directory: str, topic_id: bytes) -> None:
    """Not synced: the cluster's metadata has the id as well."""
    replace_file(f"{directory}/{PARTITION_METADATA}", topic_id_text(topic_id), sync=False)
