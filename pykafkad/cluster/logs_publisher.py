"""The storage follows the metadata: logs of partitions are created, deleted, led and configured as the image says.

Metadata comes first: a directory that no record names would be taken for one left behind by another topic, and set
aside. All of it goes on in slices, a partition at a time, and a partition's mishap is not the next one's: it is logged,
and the partition is offline. Owns the resolved configurations of topics (`config_of`).
"""

from __future__ import annotations

import gc
from itertools import islice

from pykafkad.cluster.dynamic_config import OF_TOPICS
from pykafkad.cluster.image import TOPIC_RESOURCE
from pykafkad.config import TopicConfig
from pykafkad.logs import logger
from pykafkad.slices import GO_ON, Wait
from pykafkad.storage.directories import NewPartition
from pykafkad.storage.files import TopicPartition
from pykafkad.uuids import ZERO

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
    from typing import Any, Protocol

    from pykafkad.cluster.delta import Delta
    from pykafkad.cluster.image import Image, PartitionInfo, Topic
    from pykafkad.cluster.metadata_records import Record
    from pykafkad.config import BrokerConfig
    from pykafkad.messages import PartitionRecord
    from pykafkad.pure.replication import Members
    from pykafkad.slices import Work
    from pykafkad.storage.directories import LogDirectory
    from pykafkad.storage.moves.moves import Placement
    from pykafkad.storage.preparing import Preparation

    Opened = tuple[Topic, int]  # and the index of a partition

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
        def preparation(self, wanted: Iterable[NewPartition]) -> Preparation: ...
        def prepare(self, wanted: Iterable[NewPartition], done: Callable[[], None]) -> Preparation: ...
        def configure(self, topic: str, count: int, config: TopicConfig) -> None: ...
        def reconfigure(self) -> None: ...


TOPIC, PARTITION = 2, 3  # records of the metadata log
FEW = 8  # new partitions, prepared by the thread that writes their records; others wait for one more thread
PREPARED_AT_ONCE = 64

log = logger("controller")


def new_partition(
    key: TopicPartition, topic_id: bytes, stated: PartitionRecord | PartitionInfo
) -> NewPartition:
    return NewPartition(key, topic_id, stated.leader_epoch, stated.directories[0])


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
        self._ahead: set[TopicPartition] = set()  # what was prepared with its records

    def publish(self, delta: Delta) -> Work:
        for topic in delta.deleted.values():
            yield from self._delete(topic)
        yield from self._configure(delta)
        todo = self._to_open(delta, self._recover() if delta.is_whole else set())
        if delta.is_whole:
            yield from self._open(todo)
        else:
            yield from self._open_prepared(todo)

    def _to_open(self, delta: Delta, lost: set[TopicPartition]) -> Iterator[Opened]:
        """The partitions whose leaders the delta says."""
        for topic_id in (*delta.created, *{**delta.grown, **delta.elected}):
            topic = self._image.topics_by_id.get(topic_id)
            if topic is not None:
                for index in delta.leaders_of(topic):
                    if not lost or (topic.name, index) not in lost:
                        yield topic, index

    # -- new partitions' files, which threads make: a disk may take milliseconds for each

    def preparation(self, records: Sequence[Record]) -> Preparation | None:
        """What the thread that writes these records can make for the first of the new partitions, so that nobody waits
        for a second one; None where there is nothing."""
        names: dict[bytes, str] = {}
        wanted: list[NewPartition] = []
        for record, _ in records[: 2 * FEW]:
            if record.api_key == TOPIC:
                names[record.topic_id] = record.name
            elif record.api_key == PARTITION and self._is_ours(record) and len(wanted) < FEW:
                known = self._image.topics_by_id.get(record.topic_id)
                name = names.get(record.topic_id) if known is None else known.name
                if name is not None:
                    wanted.append(new_partition((name, record.partition_id), record.topic_id, record))
        if not wanted:
            return None
        self._ahead.update(new.key for new in wanted)
        return self._storage.preparation(wanted)

    def _open_prepared(self, todo: Iterator[Opened]) -> Work:
        """Open these when their files are there, as those are that came with their records. While some are opened, a
        thread makes the files of the next."""
        coming = self._prepare(todo)
        while coming is not None:
            some, preparation, prepared = coming
            coming = self._prepare(todo)
            yield from prepared.result()
            yield from self._open(some)
            if preparation is not None:
                preparation.take_back()
            if len(some) == PREPARED_AT_ONCE:
                gc.freeze()  # as those of a start: the cycle collector need not walk them again and again

    def _prepare(self, todo: Iterator[Opened]) -> tuple[list[Opened], Preparation | None, Wait] | None:
        """The next of these, what is prepared for them, and what to wait for until it is."""
        some = list(islice(todo, PREPARED_AT_ONCE))
        if not some:
            return None
        wanted = [new for topic, index in some if (new := self._new(topic, index)) is not None]
        prepared = Wait()
        if wanted:
            return some, self._storage.prepare(wanted, prepared.come), prepared
        prepared.come()
        return some, None, prepared

    def _new(self, topic: Topic, index: int) -> NewPartition | None:
        """What has to be made for this partition; None: it is made, or there will be none here."""
        name = topic.name
        key = name, index
        if key in self._ahead:
            self._ahead.remove(key)
            return None
        is_there = self._image.topics_by_id.get(topic.id) is topic
        partition = topic.partitions[index]
        if is_there and self._is_ours(partition) and self._storage.get(name, index) is None:
            return new_partition(key, topic.id, partition)
        return None

    def _is_ours(self, partition: PartitionRecord | PartitionInfo) -> bool:
        return partition.leader == self._node_id and bool(partition.directories)

    # -- partitions

    def _open(self, some: Iterable[Opened]) -> Work:
        """Lead these partitions in the epochs of the metadata, or follow who does; one that is led and has no log gets
        one."""
        for topic, index in some:
            if self._image.topics_by_id.get(topic.id) is topic:  # else it was deleted meanwhile
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
            self._storage.create(
                topic.name, index, topic.id, config, partition.leader_epoch, directory_id, partition
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
