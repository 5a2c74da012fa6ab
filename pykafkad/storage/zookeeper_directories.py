"""Log directories of a broker in a cluster on ZooKeeper, as Kafka 3.9 has them: meta.properties version 0.

It names the broker and the cluster and no directory: the metadata does not say which partition lies where, so whatever
is found in a directory is loaded. Where a crash has left the original of a partition that had moved, the copy that goes
further is it. Invariant: a directory's id lasts until the broker stops.
"""

from __future__ import annotations

import os

from pykafkad import uuids
from pykafkad.storage import files
from pykafkad.storage.checkpoints import checkpoints
from pykafkad.storage.directories import LogDirectory
from pykafkad.storage.manager import LogManager

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from pykafkad.storage.files import TopicPartition
    from pykafkad.storage.log.log import Log
    from pykafkad.storage.log.settings import TopicConfig
    from pykafkad.storage.moves.moves import Moved

NOT_THERE = -2, 0


class ZooKeeperDirectory(LogDirectory):
    version = "0"

    def _take_identity(self, fields: Mapping[str, str]) -> None:
        self.cluster_id = fields["cluster.id"]
        self.node_id = int(fields["broker.id"])
        self.directory_id = uuids.random_uuid()

    def _own_lines(self, node_id: int) -> str:
        return f"broker.id={node_id}\n"

    def partitions(self) -> dict[TopicPartition, bytes]:
        """Those that lie in it, with the ids of their topics; ZERO: their files do not say."""
        found = {}
        for name in os.listdir(self.path):
            path = f"{self.path}/{name}"
            key = files.parse_partition_directory(name)
            if key is not None and key[0] != files.METADATA_TOPIC and os.path.isdir(path):
                found[key] = checkpoints.read_topic_id(path) or uuids.ZERO
        return found


class ZooKeeperLogs(LogManager):
    directory_class = ZooKeeperDirectory

    def __init__(self, *arguments: Any, **wiring: Any) -> None:
        super().__init__(*arguments, **wiring)
        self._preferred: dict[TopicPartition, str] = {}  # of the cluster's partitions, so no more than those

    def found(self) -> dict[TopicPartition, bytes]:
        """All partitions that lie in directories that are online."""
        found: dict[TopicPartition, bytes] = {}
        for directory in self.online:
            assert isinstance(directory, ZooKeeperDirectory)
            lying = self.guard(directory, directory.partitions) or {}
            found.update((key, each) for key, each in lying.items() if each != uuids.ZERO or key not in found)
        return found

    # -- which copy counts (storage/moves/moves.py, Placement)

    def directory_of(self, topic: str, index: int) -> bytes:
        """After a crash there may be two: what the partition was moved to has all that the original has."""
        name = files.partition_directory(topic, index)
        return max(self.online, key=lambda each: end_of(f"{each.path}/{name}")).directory_id

    def moved(self, partition: Log, directory: LogDirectory, done: Moved) -> None:
        """Nobody has to be told."""
        done(None)

    # -- where new ones go

    def make(
        self, topic: str, index: int, topic_id: bytes, config: TopicConfig, directory_id: bytes = uuids.ZERO
    ) -> Log:
        path = self._preferred.pop((topic, index), None)
        preferred = next((each for each in self.online if each.path == path), None)
        if directory_id == uuids.ZERO and preferred is not None:
            directory_id = preferred.directory_id
        return super().make(topic, index, topic_id, config, directory_id)

    def prefer(self, topic: str, index: int, path: str) -> None:
        """A partition of the cluster that is not here goes there if it comes."""
        self._preferred[topic, index] = path


def end_of(path: str) -> tuple[int, int]:
    """How far a log's files go: the last segment's base offset, and its bytes. OSError: they cannot be read."""
    try:
        names = os.listdir(path)
    except FileNotFoundError:
        return NOT_THERE
    last = max(
        (offset for name in names if (offset := files.offset_of(name, files.LOG)) is not None), default=-1
    )
    return last, os.path.getsize(f"{path}/{files.offset_name(last, files.LOG)}") if last >= 0 else 0
