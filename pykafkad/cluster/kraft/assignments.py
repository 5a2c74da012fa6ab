"""Which log directory has which partition, as the metadata says, and telling the controller where it does not
(AssignReplicasToDirs, KIP-858).

It is the placement that moves between directories ask (storage/moves). One request is under way; what comes meanwhile is
in the next one. Invariant: a partition is told of until the controller has answered for it.
"""

from __future__ import annotations

from pykafkad import errors
from pykafkad.errors import KafkaError
from pykafkad.logs import logger
from pykafkad.messages import AssignReplicasToDirsRequest
from pykafkad.net.peers import Purpose
from pykafkad.uuids import ZERO

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from pykafkad.cluster.image import Image
    from pykafkad.cluster.kraft.controllers import Controllers
    from pykafkad.storage.directories import LogDirectory
    from pykafkad.storage.log.log import Log
    from pykafkad.storage.manager import LogManager

    Key = tuple[bytes, int]  # topic id, partition
    Told = Callable[[KafkaError | None], None]

ASSIGN, NEWEST = 73, 0
AGAIN_MS = 500
SPECIAL = 100  # ids below are no directory's: not assigned yet, lost, of before directories were told

log = logger("controllers")


class Assignments:
    def __init__(
        self,
        node_id: int,
        image: Image,
        storage: LogManager,
        controllers: Controllers,
        broker_epoch: Callable[[], int],
        call_later: Callable[..., Any],
    ) -> None:
        self._node_id, self._image, self._storage, self._controllers = node_id, image, storage, controllers
        self._broker_epoch, self._call_later = broker_epoch, call_later
        self._purpose = Purpose(
            f"broker-{node_id}-directory-assignments", asks_versions=True, under_way_max=2
        )
        self._waiting: dict[Key, tuple[bytes, list[Told]]] = {}
        self._is_asking = False
        self.is_open = False  # the broker is registered

    # -- what the metadata says

    def directory_of(self, name: str, index: int) -> bytes:
        """ZERO: it is in none yet, or the metadata does not say."""
        topic = self._image.topics.get(name)
        if topic is None or index >= len(topic.partitions):
            return ZERO
        partition = topic.partitions[index]
        slot = partition.replicas.index(self._node_id) if self._node_id in partition.replicas else -1
        if not 0 <= slot < len(partition.directories) or is_special(partition.directories[slot]):
            return ZERO
        return partition.directories[slot]

    def correct(self) -> None:
        """What is loaded, and is told of as lying elsewhere."""
        for partition in self._storage:
            self.note(partition)

    # -- what is told

    def note(self, partition: Log) -> None:
        """It lies where it lies."""
        directory_id = partition.log_directory.directory_id
        if self.directory_of(partition.topic, partition.index) != directory_id and partition.topic_id:
            self._put((partition.topic_id, partition.index), directory_id)

    def moved(self, partition: Log, directory: LogDirectory, done: Told) -> None:
        """It is about to go on in another directory."""
        if not partition.topic_id or partition.topic_id not in self._image.topics_by_id:
            done(KafkaError(errors.UNKNOWN_TOPIC_OR_PARTITION))
            return
        self._put((partition.topic_id, partition.index), directory.directory_id, done)

    def begin(self) -> None:
        self.is_open = True
        self._ask()

    def _put(self, key: Key, directory_id: bytes, done: Told | None = None) -> None:
        _, told = self._waiting.get(key, (ZERO, []))
        self._waiting[key] = directory_id, [*told, *([done] if done is not None else [])]
        self._ask()

    def _ask(self) -> None:
        if self._is_asking or not self.is_open or not self._waiting:
            return
        self._is_asking = True
        asked, self._waiting = self._waiting, {}
        self._controllers.ask(
            self._purpose,
            ASSIGN,
            NEWEST,
            lambda version: self._request(asked),
            lambda answer: self._answered(asked, answer),
        )

    def _request(self, asked: dict[Key, tuple[bytes, list[Told]]]) -> AssignReplicasToDirsRequest:
        kind = AssignReplicasToDirsRequest
        directories: dict[bytes, dict[bytes, Any]] = {}
        for (topic_id, index), (directory_id, _) in asked.items():
            topics = directories.setdefault(directory_id, {})
            topic = topics.setdefault(topic_id, kind.TopicData(topic_id=topic_id))
            topic.partitions.append(kind.PartitionData(partition_index=index))
        return kind(
            broker_id=self._node_id,
            broker_epoch=self._broker_epoch(),
            directories=[
                kind.DirectoryData(id=each, topics=list(topics.values()))
                for each, topics in directories.items()
            ],
        )

    def _answered(self, asked: dict[Key, tuple[bytes, list[Told]]], answer: Any) -> None:
        self._is_asking = False
        if isinstance(answer, OSError) or answer.error_code:
            why = str(answer) if isinstance(answer, OSError) else errors.NAMES.get(answer.error_code)
            log.warn(
                f"the controller was not told where {len(asked)} partitions lie: {why}; it is told again"
            )
            self._waiting = {**asked, **self._waiting}
            self._call_later(AGAIN_MS, self._ask)
            return
        codes = {
            (topic.topic_id, row.partition_index): row.error_code
            for directory in answer.directories
            for topic in directory.topics
            for row in topic.partitions
        }
        for key, (_, told) in asked.items():
            code = codes.get(key, errors.UNKNOWN_SERVER_ERROR)
            for done in told:
                done(KafkaError(code) if code else None)
        self._ask()


def is_special(directory_id: bytes) -> bool:
    return int.from_bytes(directory_id) < SPECIAL
