"""The replicas take the roles that the controller gives them: LeaderAndIsr and StopReplica, a partition at a time.

Logs are made where there are none, replicas lead or follow, the coordinators hear which partitions they won and lost.
The rules of who is obeyed are pure/control_requests.py. Invariants: whoever leads is not fetched for; a replica whose
leader nobody knows of keeps its role, as in Kafka; a partition's mishap is not the next one's.
"""

from __future__ import annotations

from pykafkad import errors
from pykafkad.cluster.image import NO_LEADER
from pykafkad.cluster.topic_names import CONSUMER_OFFSETS, TRANSACTION_STATE, may_be_a_directory
from pykafkad.logs import logger
from pykafkad.pure.control_requests import states_of, stops_of, why_not_stopped, why_not_taken
from pykafkad.slices import GO_ON
from pykafkad.uuids import ZERO

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Sequence
    from typing import Any

    from pykafkad.cluster.replica import Replica
    from pykafkad.cluster.replicas import Replicas
    from pykafkad.cluster.zookeeper.metadata import ClusterImage
    from pykafkad.cluster.zookeeper.parts import Replication
    from pykafkad.config import TopicConfig
    from pykafkad.coordinator.runtime.runtime import CoordinatorRuntime
    from pykafkad.messages import LeaderAndIsrRequest, StopReplicaRequest
    from pykafkad.slices import Work
    from pykafkad.storage.files import TopicPartition
    from pykafkad.storage.manager import LogManager

    Codes = dict[TopicPartition, int]  # an error code for each partition that was asked for
    State = LeaderAndIsrRequest.LeaderAndIsrPartitionState
    Accepted = list[tuple[str, bytes, State]]

log = logger("controller")


class Roles:
    def __init__(
        self,
        image: ClusterImage,
        replicas: Replicas,
        storage: LogManager,
        replication: Replication,
        coordinators: tuple[CoordinatorRuntime[Any], CoordinatorRuntime[Any]],
        config_of: Callable[[str], TopicConfig],
        load_topics: Callable[[Sequence[str]], Work[Collection[str]]],
    ) -> None:
        """`coordinators`: of groups and of transactions. `load_topics` reads topics' configs before their logs are
        made."""
        self._image = image
        self._replicas = replicas
        self._storage = storage
        self._replication = replication
        self._coordinators = dict(zip((CONSUMER_OFFSETS, TRANSACTION_STATE), coordinators, strict=True))
        self._config_of = config_of
        self._load_topics = load_topics
        self._partition_epochs: dict[TopicPartition, int] = {}  # as the controller told them last

    # -- LeaderAndIsr

    def take(self, request: LeaderAndIsrRequest) -> Work[Codes]:
        """The error of each partition."""
        codes: Codes = {}
        accepted: Accepted = []
        for name, topic_id, state in states_of(request):
            codes[name, state.partition_index] = code = self._why_not(name, topic_id, state)
            if code == errors.NONE:
                accepted.append((name, topic_id, state))
            yield GO_ON
        unread = yield from self._configs_read(accepted)
        for name, topic_id, state in accepted:
            key = name, state.partition_index
            is_unread = name in unread and key not in self._replicas.table
            codes[key] = errors.UNKNOWN_SERVER_ERROR if is_unread else self._try(name, topic_id, state)
            yield GO_ON
        return codes

    def _why_not(self, name: str, topic_id: bytes, state: State) -> int:
        if not may_be_a_directory(name, state.partition_index):
            return errors.INVALID_TOPIC_EXCEPTION
        replica = self._replicas.get((name, state.partition_index))
        own_epoch = replica.leader_epoch if replica is not None else -1
        own_id = (replica.log.topic_id if replica is not None else None) or ZERO
        return why_not_taken(self._replicas.node_id, state, topic_id, own_epoch, own_id)

    def _configs_read(self, accepted: Accepted) -> Work[Collection[str]]:
        """The configs of topics that are new here count before their first record does. The topics whose configs could
        not be read."""
        table = self._replicas.table
        names = dict.fromkeys(
            name for name, _, state in accepted if (name, state.partition_index) not in table
        )
        if not names:
            return ()
        try:
            unread: Collection[str] = yield from self._load_topics(list(names))
        except Exception as error:
            log.exception(f"the configs of {', '.join(names)} could not be read", error)
            return names
        return unread

    def _try(self, name: str, topic_id: bytes, state: State) -> int:
        try:
            return self._take(name, topic_id, state)
        except OSError as error:
            log.error(f"{name}-{state.partition_index} is offline: {error}")
            return errors.KAFKA_STORAGE_ERROR
        except Exception as error:
            log.exception(f"{name}-{state.partition_index} could not take its role", error)
            return errors.UNKNOWN_SERVER_ERROR

    def _take(self, name: str, topic_id: bytes, state: State) -> int:
        key = name, state.partition_index
        replica = self._replicas.get(key)
        if replica is None:
            if not state.is_new and any(not each.is_online for each in self._storage.directories):
                return errors.KAFKA_STORAGE_ERROR  # it may lie where nobody can look
            replica = self._make(name, topic_id, state.partition_index)
        if state.partition_epoch < self._partition_epoch(key, replica):
            log.info(f"{replica.name}: partition epoch {state.partition_epoch} is older than what is known")
            return errors.NONE
        if state.leader == self._replicas.node_id:
            self._lead(replica, state)
        elif state.leader in self._image.brokers:
            self._follow(replica, state)
        else:
            write = log.info if state.leader == NO_LEADER else log.error
            write(f"{replica.name} goes on as it is: its leader is broker {state.leader}, which is not alive")
            return errors.NONE
        self._partition_epochs[key] = state.partition_epoch
        return errors.NONE

    def _make(self, name: str, topic_id: bytes, index: int) -> Replica:
        self._storage.make(name, index, topic_id, self._config_of(name))
        return self._replicas.table[name, index]

    def _partition_epoch(self, key: TopicPartition, replica: Replica) -> int:
        told = self._partition_epochs.get(key, -1)
        return max(told, replica.leadership.partition_epoch) if replica.leadership is not None else told

    def _lead(self, replica: Replica, state: State) -> None:
        self._replication.stop(replica)
        replica.become_leader(state.leader_epoch, state.replicas, state.isr, state.partition_epoch)
        coordinator = self._coordinators.get(replica.topic)
        if coordinator is not None:
            coordinator.elected(replica.index, state.leader_epoch)

    def _follow(self, replica: Replica, state: State) -> None:
        replica.become_follower(state.leader_epoch, state.leader)
        coordinator = self._coordinators.get(replica.topic)
        if coordinator is not None:
            coordinator.resigned(replica.index, state.leader_epoch)
        self._replication.follow(replica, state.leader, state.leader_epoch)

    # -- StopReplica

    def stop(self, request: StopReplicaRequest) -> Work[Codes]:
        """The error of each partition."""
        codes: Codes = {}
        for name, index, leader_epoch, is_deleted in stops_of(request):
            try:
                codes[name, index] = self._stop(name, index, leader_epoch, is_deleted=is_deleted)
            except Exception as error:
                log.exception(f"{name}-{index} could not be stopped", error)
                codes[name, index] = errors.KAFKA_STORAGE_ERROR
            yield GO_ON
        return codes

    def _stop(self, name: str, index: int, leader_epoch: int, *, is_deleted: bool) -> int:
        replica = self._replicas.get((name, index))
        if replica is None:
            return errors.NONE
        code = why_not_stopped(leader_epoch, replica.leader_epoch)
        if code == errors.NONE:
            self._replication.stop(replica)
            if is_deleted:
                self._delete(replica)
        return code

    def _delete(self, replica: Replica) -> None:
        coordinator = self._coordinators.get(replica.topic)
        if coordinator is not None:
            coordinator.removed(replica.index)
        self._partition_epochs.pop((replica.topic, replica.index), None)
        self._storage.delete(replica.topic, replica.index)


def refused(request: LeaderAndIsrRequest, code: int) -> Codes:
    """Of a LeaderAndIsr that is refused as a whole."""
    return {(name, state.partition_index): code for name, _, state in states_of(request)}
