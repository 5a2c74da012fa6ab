"""`pykafkad check`, one log directory: which broker it belongs to, its checkpoints, its metadata log, its partitions.

Nothing is opened for writing and no lock is taken; the operating system is asked whether a broker holds it.
"""

from __future__ import annotations

import os
from struct import Struct

from pykafkad import uuids
from pykafkad.cluster.metadata_records import MetadataError
from pykafkad.hot.segment import Inspection
from pykafkad.properties import parse
from pykafkad.storage import files
from pykafkad.storage.checkpoints import checkpoints
from pykafkad.storage.directories import CLEAN_SHUTDOWN, LOCK, META_PROPERTIES
from pykafkad.storage.files import TopicPartition
from pykafkad.tools.check_report import Hints, Problem

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from pykafkad.cluster.image import Image

METADATA_DIRECTORY = "__cluster_metadata-0"
BOOTSTRAP, SNAPSHOT, QUORUM_STATE = "bootstrap.checkpoint", ".checkpoint", "quorum-state"
CHECKPOINTS = (
    checkpoints.RECOVERY_POINTS,
    checkpoints.LOG_STARTS,
    checkpoints.HIGH_WATERMARKS,
    checkpoints.CLEANED,
)
FLOCK = Struct("hhqqi4x")  # struct flock of 64-bit Linux: type, whence, start, length, process


class Directory:
    """What was found in one log directory, and what its partitions have to be compared with."""

    def __init__(self, path: str) -> None:
        self.path = path
        self.problems: list[Problem] = []
        self.notes: list[str] = []
        self.start: list[str] = []  # what a start would do
        self.clean = False
        self.is_kraft = False
        self.identity: dict[str, str] = {}
        self.offsets: dict[str, dict[TopicPartition, int]] = {}
        self.partitions: dict[TopicPartition, str] = {}  # the directory of each partition
        self.metadata: str | None = None  # the directory of the metadata log

    @property
    def is_kafkas(self) -> bool:
        """Whether anything in it says that a broker has kept its data there."""
        signs = self.identity, self.partitions, self.metadata, self.clean, self.problems, self.start
        return any(signs) or any(self.offsets.values())

    def fields(self) -> dict[str, Any]:
        return {
            "directory": self.path,
            "clean": self.clean,
            "problems": [problem.fields() for problem in self.problems],
            "notes": self.notes,
            "start": self.start,
        }

    def problem(self, file: str, text: str, position: int | None = None) -> None:
        self.problems.append(Problem(file, text, position))

    def hints(self, key: TopicPartition) -> Hints:
        hints = Hints(self.clean)
        hints.recovery_point = self.offsets[checkpoints.RECOVERY_POINTS].get(key, 0)
        hints.log_start_offset = self.offsets[checkpoints.LOG_STARTS].get(key)
        hints.high_watermark = self.offsets[checkpoints.HIGH_WATERMARKS].get(key)
        hints.compacted = key in self.offsets[checkpoints.CLEANED]
        return hints


def inspect(path: str) -> Directory:
    """Check everything but the bytes of the partitions and of the metadata log. OSError if the directory cannot be
    read."""
    directory = Directory(os.path.abspath(path))
    names = os.listdir(path)
    directory.clean = CLEAN_SHUTDOWN in names
    holder = holder_of(f"{path}/{LOCK}") if LOCK in names else None
    if holder is not None:
        directory.notes.append(
            f"a broker is running here (process {holder}): what it writes now may look damaged"
        )
    elif not directory.clean and META_PROPERTIES in names:
        directory.notes.append("the last stop was not a clean one")
    _identity(directory, names)
    for name in CHECKPOINTS:
        directory.offsets[name] = _checkpoint(directory, name)
    for name in sorted(names):
        _entry(directory, name)
    return directory


def holder_of(path: str) -> int | None:
    """The process that holds the lock on this file."""
    import fcntl

    with open(path, "rb", buffering=0) as file:
        asked = FLOCK.pack(fcntl.F_WRLCK, os.SEEK_SET, 0, 0, 0)
        kind, _, _, _, process = FLOCK.unpack(fcntl.fcntl(file, fcntl.F_GETLK, asked))
    return None if kind == fcntl.F_UNLCK else process


def _identity(directory: Directory, names: list[str]) -> None:
    if META_PROPERTIES not in names:
        directory.notes.append(
            f"there is no {META_PROPERTIES}: a start would write one, and take the directory as new"
        )
        return
    fields = parse(files.read_file(f"{directory.path}/{META_PROPERTIES}").decode("latin-1"))
    directory.identity = fields
    version = fields.get("version")
    if version not in ("0", "1"):
        directory.problem(META_PROPERTIES, f"version {version} is not known")
        return
    directory.is_kraft = version == "1"
    node = "node.id" if directory.is_kraft else "broker.id"
    for key in ("cluster.id", node):
        if not fields.get(key):
            directory.problem(META_PROPERTIES, f"{key} is missing")
    if not fields.get(node, "0").isdecimal():
        directory.problem(META_PROPERTIES, f"{node} is {fields[node]}, which is no number")
    if "directory.id" in fields:
        try:
            uuids.from_text(fields["directory.id"])
        except ValueError:
            directory.problem(META_PROPERTIES, f"directory.id is {fields['directory.id']}, which is no id")


def _checkpoint(directory: Directory, name: str) -> dict[TopicPartition, int]:
    try:
        return checkpoints.read_offsets(f"{directory.path}/{name}")
    except checkpoints.CheckpointError as error:
        directory.problem(name, str(error).removeprefix(f"{directory.path}/{name} "))
        directory.start.append(f"go on without {name}")
        return {}


def _entry(directory: Directory, name: str) -> None:
    """One name in the directory: a partition, or another file that a broker knows."""
    path = f"{directory.path}/{name}"
    if not os.path.isdir(path):
        return
    if name == METADATA_DIRECTORY:
        directory.metadata = path
    elif files.is_marked(name, "delete"):
        directory.start.append(f"remove {name}: its partition was deleted")
    elif files.is_marked(name, "future"):
        directory.start.append(
            f"copy anew what {name} was to be: a move between log directories was under way"
        )
    elif files.is_marked(name, "stray"):
        directory.notes.append(f"{name} was set aside by an earlier start")
    else:
        key = files.parse_partition_directory(name)
        if key is None:
            directory.notes.append(f"{name} is no partition's directory")
        else:
            directory.partitions[key] = path


# -- the metadata log


def read_metadata(directory: Directory) -> Image | None:
    """Read every byte of the metadata log. Returns its contents, or None if a start would refuse it."""
    from pykafkad.cluster.image import Image
    from pykafkad.cluster.metadata_reading import read_directory

    path = directory.metadata
    assert path is not None
    image = Image()
    try:
        contents = read_directory(path, image)
    except (MetadataError, OSError) as error:
        directory.problem(METADATA_DIRECTORY, str(error).removeprefix(f"{path}/"))
        directory.start.append("stop: the metadata cannot be read")
        return None
    for name, why in contents.damaged:
        directory.problem(_in_metadata(name), why.removeprefix(f"{name}: "))
    told = {os.path.basename(name) for name, _ in contents.damaged}
    for name in sorted(set(os.listdir(path)) - told):
        _metadata_file(directory, f"{path}/{name}", name)
    bootstrap = f"{directory.path}/{BOOTSTRAP}"
    if os.path.exists(bootstrap):
        _walk(directory, bootstrap, BOOTSTRAP, 0)
    return image


def _in_metadata(path: str) -> str:
    return f"{METADATA_DIRECTORY}/{os.path.basename(path)}"


def _metadata_file(directory: Directory, path: str, name: str) -> None:
    shown = _in_metadata(path)
    base = files.offset_of(name, files.LOG)
    if base is not None:
        inspection = _walk(directory, path, shown, base)
        if inspection.fault is not None:
            end = inspection.end_offset
            directory.start.append(f"cut {shown} at byte {inspection.position}, offset {end}")
    elif name.endswith(SNAPSHOT):
        _walk(directory, path, shown, 0)
    elif name == QUORUM_STATE:
        import json

        try:
            json.loads(files.read_file(path))
        except ValueError as error:
            directory.problem(shown, f"is no JSON: {error}")


def _walk(directory: Directory, path: str, name: str, base: int) -> Inspection:
    inspection = Inspection(path, base)
    while not inspection.is_over:
        inspection.turn()
    fault = inspection.fault
    if fault is not None:
        directory.problem(name, str(fault), fault.position)
    return inspection
