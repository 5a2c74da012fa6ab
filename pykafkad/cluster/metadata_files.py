"""What the files of a metadata directory are called, its small text files, and how any of them is made to last.

    %020d.log .index .timeindex           a segment, named after its first offset
    %020d-%010d.checkpoint                a snapshot of everything below that offset, with the last record's epoch
    ….checkpoint.part, ….deleted, ….tmp   unfinished, or no longer wanted: removed at the next start
    quorum-state                          one line of JSON: who led which quorum epoch last
    leader-epoch-checkpoint               "0", the number of lines, then "epoch start-offset" for each quorum epoch

quorum-state has two forms: version 0 names the voters (kraft.version 0), version 1 leaves them to the log
(kraft.version 1, KIP-853). Nothing here knows what is inside the records.
"""

from __future__ import annotations

import os

from pykafkad.cluster.topic_names import CLUSTER_METADATA
from pykafkad.storage import files
from pykafkad.storage.files import LOG

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

DIRECTORY = f"{CLUSTER_METADATA}-0"
QUORUM_STATE = "quorum-state"
EPOCHS = "leader-epoch-checkpoint"
CHECKPOINT, PART = ".checkpoint", ".part"
LEFTOVERS = (".checkpoint.part", ".deleted", ".tmp")
NO_EPOCH = -1
NO_DIRECTORY = "AAAAAAAAAAAAAAAAAAAAAA"
READ_ONLY = 0o444

Snapshot = tuple[int, int]  # offset after its last record, and that record's epoch


def segment_name(base_offset: int, suffix: str = LOG) -> str:
    return files.offset_name(base_offset, suffix)


def segment_of(name: str) -> int | None:
    """The base offset in a segment's name; None for other names."""
    return files.offset_of(name, LOG)


def snapshot_name(snapshot: Snapshot) -> str:
    return f"{snapshot[0]:020d}-{snapshot[1]:010d}{CHECKPOINT}"


def snapshot_of(name: str) -> Snapshot | None:
    stem = name.removesuffix(CHECKPOINT)
    offset, _, epoch = stem.partition("-")
    known = stem != name and len(offset) == 20 and offset.isdecimal() and epoch.isdecimal()
    return (int(offset), int(epoch)) if known else None


class Listing:
    """What lies in a metadata directory, in order of offsets."""

    __slots__ = ("leftovers", "segments", "snapshots")

    def __init__(self, directory: str) -> None:
        names = sorted(os.listdir(directory))
        self.segments = [base for base in map(segment_of, names) if base is not None]
        self.snapshots = [each for each in map(snapshot_of, names) if each is not None]
        self.leftovers = [name for name in names if name.endswith(LEFTOVERS)]


# -- the small files


def epoch_lines(directory: str) -> list[tuple[int, int]]:
    words = read_text(directory, EPOCHS).split()
    pairs = [int(word) for word in words[2:]] if all(map(str.isdigit, words)) else []
    return list(zip(pairs[::2], pairs[1::2], strict=False))


def write_epochs(directory: str, lines: Collection[tuple[int, int]]) -> None:
    text = "".join(f"{epoch} {start}\n" for epoch, start in lines)
    write_text(directory, EPOCHS, f"0\n{len(lines)}\n{text}")


def epoch_in_quorum_state(directory: str) -> int:
    text = read_text(directory, QUORUM_STATE)
    _, found, rest = text.partition('"leaderEpoch":')
    number = rest.lstrip().partition(",")[0].partition("}")[0].strip()
    return int(number) if found and number.isdigit() else NO_EPOCH


def write_quorum_state(
    directory: str, leader_id: int, epoch: int, kraft_version: int, voters: Iterable[int] = ()
) -> None:
    """That node leads that epoch (-1: nobody is known to); it is the only voter where none are named."""
    if kraft_version > 0:
        text = (
            f'{{"leaderId":{leader_id},"leaderEpoch":{epoch},"votedId":-1,'
            f'"votedDirectoryId":"{NO_DIRECTORY}","data_version":1}}'
        )
    else:
        named = ",".join(f'{{"voterId":{each}}}' for each in tuple(voters) or (leader_id,))
        text = (
            f'{{"clusterId":"","leaderId":{leader_id},"leaderEpoch":{epoch},"votedId":-1,"appliedOffset":0,'
            f'"currentVoters":[{named}],"data_version":0}}'
        )
    write_text(directory, QUORUM_STATE, text)


def read_text(directory: str, name: str) -> str:
    try:
        with open(os.path.join(directory, name), encoding="utf-8", errors="replace") as file:
            return file.read()
    except FileNotFoundError:
        return ""


def write_text(directory: str, name: str, text: str) -> None:
    """Whole or not at all after a crash of ours; once it and the directory are synced, after one of the machine's."""
    write_bytes(directory, name, text.encode())


def write_bytes(directory: str, name: str, data: bytes) -> None:
    files.replace_file(os.path.join(directory, name), data, sync=False)


# -- files that last


def write_synced(path: str, parts: Iterable[bytes], mode: int = 0o644) -> None:
    """A new file with these bytes, on the disk; the caller syncs its directory."""
    fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o644)
    try:
        for part in parts:
            view = memoryview(part)
            while view:
                view = view[os.write(fd, view) :]
        os.fchmod(fd, mode)
        os.fsync(fd)
    finally:
        os.close(fd)


def remove(directory: str, names: Iterable[str]) -> None:
    for name in names:
        files.remove(os.path.join(directory, name))


def fsync_file(path: str) -> None:
    fd = os.open(path, os.O_RDONLY)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)


fsync_directory = fsync_file
