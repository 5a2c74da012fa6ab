"""The replicas take the roles that the metadata gives them: which partitions are here, who leads them, who is in sync.

It is the publisher of logs (cluster/logs_publisher.py) where partitions have replicas on several brokers. Invariants:
whoever leads is not fetched for; a replica that is no longer assigned here is deleted; a partition that may lie in a log
directory which is offline is not made anew elsewhere; one that lies elsewhere than the metadata says is told of.
"""

from __future__ import annotations

from pykafkad.cluster.image import NO_LEADER
from pykafkad.cluster.logs_publisher import LogsPublisher
from pykafkad.cluster.topic_names import CONSUMER_OFFSETS, TRANSACTION_STATE
from pykafkad.logs import logger
from pykafkad.slices import GO_ON
from pykafkad.storage.directories import NewPartition
from pykafkad.uuids import ZERO

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any

    from pykafkad.cluster.image import Image, PartitionInfo, Topic
    from pykafkad.cluster.kraft.assignments import Assignments
    from pykafkad.cluster.logs_publisher import Opened
    from pykafkad.cluster.replica import Replica
    from pykafkad.cluster.replicas import Replicas
    from pykafkad.config import BrokerConfig
    from pykafkad.coordinator.runtime.runtime import CoordinatorRuntime
    from pykafkad.replication.replication import Replication
    from pykafkad.slices import Work
    from pykafkad.storage.files import TopicPartition
    from pykafkad.storage.manager import LogManager

log = logger("controllers")


class Roles(LogsPublisher):
    def __init__(
        self,
        config: BrokerConfig,
        image: Image,
        storage: LogManager,
        replicas: Replicas,
        replication: Replication,
        coordinators: tuple[CoordinatorRuntime[Any], CoordinatorRuntime[Any]],
        assignments: Assignments,
    ) -> None:
        """`coordinators`: of groups and of transactions."""
        super().__init__(config, image, storage, config.node_id, self._open_found)
        self._logs = storage
        self._replicas, self._replication, self._assignments = replicas, replication, assignments
        self._coordinators = dict(zip((CONSUMER_OFFSETS, TRANSACTION_STATE), coordinators, strict=True))

    def _open_found(self) -> set[TopicPartition]:
        """Load what the directories have of the partitions that are assigned here; which of the others may lie in a
        directory that is offline."""
        known = {
            (topic.name, index): topic.id
            for topic in self._image.topics.values()
            for index, partition in enumerate(topic.partitions)
            if self._node_id in partition.replicas
        }
        missing = self._logs.open_all(known, self.config_of, self._assignments)
        self._assignments.correct()
        if all(each.is_online for each in self._logs.directories):
            return set()
        online = [each.directory_id for each in self._logs.online]
        lost = {key for key in missing if self._assignments.directory_of(*key) not in (ZERO, *online)}
        for name, index in lost:
            log.warn(f"{name}-{index} may lie in a log directory that is offline: it is not made anew")
        return lost

    # -- partitions

    def _open(self, some: Iterable[Opened]) -> Work:
        for topic, index in some:
            if self._image.topics_by_id.get(topic.id) is topic:  # else it was deleted meanwhile
                self._take_role(topic, index)
            yield GO_ON

    def _new(self, topic: Topic, index: int) -> NewPartition | None:
        directory_id = self._assignments.directory_of(topic.name, index)
        is_there = self._image.topics_by_id.get(topic.id) is topic
        if not is_there or directory_id == ZERO or self._storage.get(topic.name, index) is not None:
            return None
        partition = topic.partitions[index]
        epoch = partition.leader_epoch if partition.leader == self._node_id else None
        return NewPartition((topic.name, index), topic.id, epoch, directory_id)

    def _lead(self, topic: Topic, index: int) -> None:
        self._take_role(topic, index)

    def _take_role(self, topic: Topic, index: int) -> None:
        try:
            self._take(topic, index)
        except OSError as error:
            log.error(f"{topic.name}-{index} is offline: {error}")
        except Exception as error:
            log.exception(f"{topic.name}-{index} could not take its role", error)

    def _take(self, topic: Topic, index: int) -> None:
        partition = topic.partitions[index]
        replica = self._replicas.get((topic.name, index))
        if self._node_id not in partition.replicas:
            if replica is not None:
                self._drop(replica)
            return
        if replica is None:
            replica = self._make(topic, index)
        if partition.leader == self._node_id:
            self._become_leader(replica, partition)
        elif (replica.leader_epoch, replica.leader_id) != (partition.leader_epoch, partition.leader):
            self._become_follower(replica, partition)

    def _make(self, topic: Topic, index: int) -> Replica:
        named = self._assignments.directory_of(topic.name, index)
        online = [each.directory_id for each in self._logs.online]
        is_new = named == ZERO and topic.partitions[index].leader_epoch == 0
        if named not in online and not is_new and len(online) < len(self._logs.directories):
            raise OSError("it may lie in a log directory that is offline")
        made = self._logs.make(
            topic.name, index, topic.id, self.config_of(topic.name), named if named in online else ZERO
        )
        self._assignments.note(made)
        return self._replicas.table[topic.name, index]

    def _become_leader(self, replica: Replica, partition: PartitionInfo) -> None:
        self._replication.stop(replica)
        is_new = replica.leadership is None or replica.leader_epoch != partition.leader_epoch
        if not is_new:
            replica.assigned(partition.replicas)
        replica.lead(partition.leader_epoch, partition)
        coordinator = self._coordinators.get(replica.topic)
        if is_new and coordinator is not None:
            coordinator.elected(replica.index, partition.leader_epoch)

    def _become_follower(self, replica: Replica, partition: PartitionInfo) -> None:
        replica.become_follower(partition.leader_epoch, partition.leader)
        coordinator = self._coordinators.get(replica.topic)
        if coordinator is not None:
            coordinator.resigned(replica.index, partition.leader_epoch)
        if partition.leader == NO_LEADER:
            self._replication.stop(replica)
        else:
            self._replication.follow(replica, partition.leader, partition.leader_epoch)

    def _drop(self, replica: Replica) -> None:
        self._replication.stop(replica)
        coordinator = self._coordinators.get(replica.topic)
        if coordinator is not None:
            coordinator.removed(replica.index)
        self._storage.delete(replica.topic, replica.index)

    def _delete(self, topic: Topic) -> Work:
        self._configs.pop(topic.id, None)
        for index in range(len(topic.partitions)):
            replica = self._replicas.get((topic.name, index))
            try:
                if replica is not None and replica.log.topic_id == topic.id:
                    self._drop(replica)
            except Exception as error:
                log.exception(f"{topic.name}-{index} could not be deleted", error)
            yield GO_ON
