"""The storage follows the metadata: logs of partitions are created, deleted, led and configured as the image says.

Metadata comes first: a directory that no record names would be taken for one left behind by another topic, and set
aside. All of it goes on in slices, a partition at a time, and a partition's mishap is not the next one's: it is logged,
and the partition is offline. Owns the resolved configurations of topics (`config_of`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

from pykafkad.cluster.dynamic_config import OF_TOPICS
from pykafkad.cluster.image import TOPIC_RESOURCE
from pykafkad.config import TopicConfig
from pykafkad.logs import logger
from pykafkad.pure.replication import Members
from pykafkad.slices import GO_ON, Wait, chunks
from pykafkad.storage.files import TopicPartition
from pykafkad.uuids import ZERO

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from pykafkad.cluster.delta import Delta
    from pykafkad.cluster.image import Image, Topic
    from pykafkad.config import BrokerConfig
    from pykafkad.slices import Work
    from pykafkad.storage.directories import LogDirectory
    from pykafkad.storage.moves.moves import Placement


MANY = 8  # new partitions of a topic; fewer are made at once, since who asks for one waits for it
PREPARED_AT_ONCE = 64

log = logger("controller")


class Storage(Protocol):
    """What is needed of the LogManager."""

    @property
    def moves(self) -> Any: ...
    @property
    def online(self) -> list[LogDirectory]: ...

    def open_all(
        self,
        known: Mapping[TopicPartition, bytes],
        config_of: Callable[[str], TopicConfig],
        placement: Placement | None = None,
    ) -> list[TopicPartition]: ...
    def place(self, count: int) -> list[bytes]: ...
    def create(
        self,
        topic: str,
        index: int,
        topic_id: bytes,
        config: TopicConfig,
        leader_epoch: int,
        directory_id: bytes,
        members: Members | None,
    ) -> Any: ...
    def follow(self, topic: str, index: int, leader_epoch: int, leader_id: int) -> None: ...
    def get(self, topic: str, index: int) -> Any: ...
    def placed(self) -> Iterable[tuple[TopicPartition, bytes]]: ...
    def delete(self, topic: str, index: int) -> Any: ...
    def prepare(self, wanted: Iterable[tuple[TopicPartition, bytes]], done: Callable[[], None]) -> None: ...
    def take_back(self, wanted: Iterable[tuple[TopicPartition, bytes]]) -> None: ...
    def configure(self, topic: str, count: int, config: TopicConfig) -> None: ...
    def reconfigure(self) -> None: ...


class LogsPublisher:
    """`recover`: open what a start finds on the disk; the partitions that may lie in a directory that is offline, which
    are not made anew."""

    def __init__(
        self,
        config: BrokerConfig,
        image: Image,
        storage: Storage,
        node_id: int,
        recover: Callable[[], set[TopicPartition]],
    ) -> None:
        self._config = config
        self._image = image
        self._storage = storage
        self._node_id = node_id
        self._recover = recover
        self._configs: dict[bytes, TopicConfig] = {}  # by topic id; ZERO: of topics without any of their own

    def publish(self, delta: Delta) -> Work:
        for topic in delta.deleted.values():
            yield from self._delete(topic)
        yield from self._configure(delta)
        lost = self._recover() if delta.is_whole else ()
        for topic_id in (*delta.created, *{**delta.grown, **delta.elected}):
            found = self._image.topics_by_id.get(topic_id)
            if found is not None:
                keys = ((found.name, index) for index in delta.leaders_of(found))
                indexes = [key[1] for key in keys if key not in lost]
                if delta.is_whole or len(indexes) < MANY:
                    yield from self._open(found, indexes)
                else:
                    yield from self._open_many(found, indexes)

    # -- partitions

    def _open_many(self, topic: Topic, indexes: Sequence[int]) -> Work:
        """The same after a thread has made the files, some at a time: a disk may take a millisecond for each."""
        for some in chunks(indexes, PREPARED_AT_ONCE):
            wanted = self._to_prepare(topic, some)
            prepared = Wait()
            self._storage.prepare(wanted, prepared.come)
            yield from prepared.result()
            yield from self._open(topic, some)
            self._storage.take_back(wanted)
            if self._image.topics_by_id.get(topic.id) is not topic:
                return

    def _to_prepare(self, topic: Topic, indexes: Sequence[int]) -> list[tuple[TopicPartition, bytes]]:
        """Those that will be led here and have no log, with the ids of their directories."""
        wanted = []
        for index in indexes:
            partition = topic.partitions[index]
            is_new = partition.leader == self._node_id and self._storage.get(topic.name, index) is None
            if is_new and partition.directories:
                wanted.append(((topic.name, index), partition.directories[0]))
        return wanted

    def _open(self, topic: Topic, indexes: Iterable[int]) -> Work:
        """Lead these partitions in the epochs of the metadata, or follow who does; one that is led and has no log gets
        one."""
        for index in indexes:
            if self._image.topics_by_id.get(topic.id) is not topic:
                return  # it was deleted meanwhile
            partition = topic.partitions[index]
            if partition.leader == self._node_id:
                self._lead(topic, index)
            else:
                self._storage.follow(topic.name, index, partition.leader_epoch, partition.leader)
            yield GO_ON

    def lead(self, name: str, index: int) -> None:
        """One that somebody waits for, before those that are on their way."""
        topic = self._image.topics.get(name)
        if topic is not None and topic.partitions[index].leader == self._node_id:
            self._lead(topic, index)

    def _lead(self, topic: Topic, index: int) -> None:
        partition = topic.partitions[index]
        directory_id = partition.directories[0] if partition.directories else ZERO
        try:
            config = self.config_of(topic.name)
            members = Members(partition.replicas, partition.isr, partition.partition_epoch)
            self._storage.create(
                topic.name, index, topic.id, config, partition.leader_epoch, directory_id, members
            )
        except OSError as error:
            # It exists, and is offline: as in Kafka when a log directory fails.
            log.error(f"{topic.name}-{index} is offline: {error}")
        except Exception as error:
            log.exception(f"{topic.name}-{index} is offline", error)

    def _delete(self, topic: Topic) -> Work:
        self._configs.pop(topic.id, None)
        for index in range(len(topic.partitions)):
            try:
                if self._storage.get(topic.name, index) is not None:
                    self._storage.delete(topic.name, index)
            except Exception as error:
                log.exception(f"{topic.name}-{index} could not be deleted", error)
            yield GO_ON

    # -- configurations

    def config_of(self, name: str) -> TopicConfig:
        """The resolved configuration of an existing topic; the same object as long as nothing changes it.

        Topics without configs of their own share one.
        """
        topic = self._image.topics[name]
        key = topic.id if topic.configs else ZERO
        config = self._configs.get(key)
        if config is None:
            config = self._configs[key] = TopicConfig(self._config, topic.configs)
        return config

    def _configure(self, delta: Delta) -> Work:
        """The partitions of topics that there were already follow their configs, and the broker's."""
        changed = [name for kind, name in delta.configs if kind == TOPIC_RESOURCE]
        if delta.broker_keys:
            self._storage.reconfigure()
        if delta.broker_keys & OF_TOPICS:
            self._configs.clear()
            changed = list(self._image.topics)
        for name in changed:
            topic = self._image.topics.get(name)
            if topic is not None:
                try:
                    self._configs.pop(topic.id, None)
                    self._storage.configure(name, len(topic.partitions), self.config_of(name))
                except Exception as error:
                    log.exception(f"{name} could not follow its configs", error)
            yield GO_ON
