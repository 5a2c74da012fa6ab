"""Log directories of a broker in a cluster on ZooKeeper, as Kafka 3.9 has them: meta.properties version 0.

It names the broker and the cluster and no directory: the metadata does not say which partition lies where, so whatever
is found in a directory is loaded. Invariant: a directory's id lasts until the broker stops.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from pykafkad import uuids
from pykafkad.storage import files
from pykafkad.storage.checkpoints import checkpoints
from pykafkad.storage.directories import LogDirectory
from pykafkad.storage.manager import LogManager

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pykafkad.storage.files import TopicPartition


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

    def found(self) -> dict[TopicPartition, bytes]:
        """All partitions that lie in directories that are online."""
        found: dict[TopicPartition, bytes] = {}
        for directory in self.online:
            assert isinstance(directory, ZooKeeperDirectory)
            found.update(self.guard(directory, directory.partitions) or {})
        return found
