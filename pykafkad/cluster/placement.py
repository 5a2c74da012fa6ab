"""Where the metadata says that the partitions lie: which log directory has which, and what to say when one fails.

A partition that moves is noted before it goes on in its new directory (KIP-858). Where the disk says otherwise, at start,
the disk counts. A directory that went offline: nobody leads its partitions (with eligible leader replicas, KIP-966, their
in-sync replica stays eligible), and the broker is registered with the directories that are left; the next start that
can use it leads them again. Invariant: what is assigned to a directory that is offline is not made anew elsewhere.
"""

from __future__ import annotations

from pykafkad.cluster import features
from pykafkad.cluster.handover import in_batches, is_elsewhere, resign
from pykafkad.cluster.image import NO_LEADER
from pykafkad.errors import UNKNOWN_TOPIC_OR_PARTITION, KafkaError
from pykafkad.logs import logger
from pykafkad.messages import BrokerRegistrationChangeRecord, PartitionChangeRecord
from pykafkad.uuids import ZERO

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any

    from pykafkad.cluster.controller import Plan, Told
    from pykafkad.cluster.image import Image, Topic
    from pykafkad.cluster.metadata_log import MetadataLog
    from pykafkad.cluster.metadata_records import Record
    from pykafkad.cluster.names import Names
    from pykafkad.storage.directories import LogDirectory
    from pykafkad.storage.log.log import Log

KNOWS_DIRECTORIES = 2  # version of BrokerRegistrationChangeRecord

log = logger("controller")


class Placement:
    some_offline: bool  # since the start, whose begin says so

    def __init__(
        self,
        image: Image,
        names: Names,
        storage: Any,
        node_id: int,
        commit: Callable[[Sequence[Record], Told], None],
        in_turn: Callable[[Plan, Told], None],
    ) -> None:
        """`commit` and `in_turn` are the controller's."""
        self._image = image
        self._names = names
        self._storage = storage
        self._node_id = node_id
        self._commit = commit
        self._in_turn = in_turn

    def directory_of(self, name: str, index: int) -> bytes:
        """The one that the metadata names."""
        directories = self._image.topics[name].partitions[index].directories
        return directories[0] if directories else ZERO

    def is_lost(self, name: str, index: int) -> bool:
        """Of a partition that is in no directory: whether it may lie in one that is offline."""
        return self.some_offline and self.directory_of(name, index) not in self._online()

    def _online(self) -> list[bytes]:
        return [directory.directory_id for directory in self._storage.online]

    def _assignment(self, topic: Topic, index: int, directory_id: bytes) -> list[tuple[Any, int]]:
        version = features.partition_version(self._image.metadata_version)
        if version < 1:
            return []  # the metadata does not know of directories yet
        change = PartitionChangeRecord(partition_id=index, topic_id=topic.id, directories=[directory_id])
        return [(change, version)]

    # -- moves

    def moved(
        self, partition: Log, directory: LogDirectory, done: Callable[[KafkaError | None], None]
    ) -> None:
        """A partition is about to go on in another log directory."""
        topic = self._image.topics_by_id.get(partition.topic_id)
        if topic is None or self._names.id_of(topic.name) != topic.id:
            done(KafkaError(UNKNOWN_TOPIC_OR_PARTITION))
            return
        self._commit(self._assignment(topic, partition.index, directory.directory_id), done)

    # -- start

    def correct(self, metadata: MetadataLog) -> None:
        """When all is loaded: what is on the disk counts, and nobody leads what a directory had that failed
        meanwhile."""
        changes: list[Record] = []
        for (name, index), directory_id in self._storage.placed():
            if directory_id != self.directory_of(name, index):
                changes += self._correction(self._image.topics[name], index, directory_id)
        changes += self._without_lost()
        for batch in in_batches(changes):
            metadata.append(batch)

    def _correction(self, topic: Topic, index: int, directory_id: bytes) -> list[Record]:
        changes = self._assignment(topic, index, directory_id)
        if changes and topic.partitions[index].leader == NO_LEADER:  # it was thought to be offline
            change, _ = changes[0]
            change.leader, change.isr = self._node_id, [self._node_id]
        return changes

    # -- failures

    def directory_failed(self) -> None:
        """Another log directory is offline."""
        self._in_turn(self._without_lost, told_of_failure)

    def _without_lost(self) -> list[Record]:
        """Where directories that the broker is registered with are offline: what the metadata has to say then."""
        broker, online = self._image.brokers[self._node_id], self._online()
        if not online or not set(broker.directories) - set(online):
            return []
        left = BrokerRegistrationChangeRecord(
            broker_id=self._node_id, broker_epoch=broker.epoch, log_dirs=online
        )
        return [
            *(
                resign(self._image, topic, index, partition)
                for topic in self._image.topics.values()
                if self._names.id_of(topic.name) == topic.id  # or its deletion is on its way to the log
                for index, partition in enumerate(topic.partitions)
                if partition.leader == self._node_id and is_elsewhere(partition, online)
            ),
            (left, KNOWS_DIRECTORIES),
        ]


def told_of_failure(error: KafkaError | None) -> None:
    if error is not None:
        log.error(f"the metadata could not be told of a failed log directory: {error}")
