"""The image of a cluster on ZooKeeper: what the controller's UpdateMetadata requests say, and the configs that are read
from ZooKeeper.

A request names all brokers that live, and partitions as they are: epochs are absolute, where the records of a metadata
log count them up. Only clients and the broker's own requests go by it; what this broker leads and follows is said by
LeaderAndIsr. Invariant: partitions are numbered without gaps, so one that nobody has told of yet stands for an offline
one until somebody does.
"""

from __future__ import annotations

from pykafkad.cluster.image import NO_LEADER, Image, PartitionInfo, Topic
from pykafkad.cluster.topic_names import may_be_a_directory
from pykafkad.logs import logger
from pykafkad.messages import (
    PartitionRecord,
    RegisterBrokerRecord,
    RemoveTopicRecord,
    TopicRecord,
)
from pykafkad.pure.control_requests import DURING_DELETE, states_of
from pykafkad.slices import CHUNK, GO_ON
from pykafkad.uuids import ZERO

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pykafkad.messages import UpdateMetadataRequest
    from pykafkad.slices import Work

    LiveBroker = UpdateMetadataRequest.UpdateMetadataBroker
    State = UpdateMetadataRequest.UpdateMetadataPartitionState

EndPoint = RegisterBrokerRecord.BrokerEndpoint
PROTOCOLS = ("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL")
MOST_UNTOLD = 1000  # partitions that a request may leave out before others, besides as many as it tells of

log = logger("metadata")


class ToldPartition(PartitionInfo):
    """As the controller told of it."""

    __slots__ = ("offline_replicas",)

    def __init__(self, state: State) -> None:
        super().__init__(as_record(state))
        self.offline_replicas: list[int] = state.offline_replicas


class ClusterImage(Image):
    def __init__(self) -> None:
        super().__init__()
        self.supported_features = {}
        self.offset = 0
        self._live: dict[int, LiveBroker] = {}  # brokers as they were told last
        self._untold = 0

    def update(self, request: UpdateMetadataRequest) -> Work:
        yield from self._update_brokers(request.live_brokers)
        refused: list[str] = []
        self._untold = MOST_UNTOLD
        for name, topic_id, state in states_of(request):
            self._untold += 1
            if state.leader == DURING_DELETE:
                self._delete(name)
            elif not (yield from self._put(name, topic_id, state)):
                refused.append(f"{name}-{state.partition_index}")
            yield GO_ON
        if refused:
            log.error(
                f"UpdateMetadata names {len(refused)} partitions that cannot be, or without a topic id, as {refused[0]!r}"
            )

    # -- brokers

    def _update_brokers(self, live: list[LiveBroker]) -> Work[None]:
        told = {broker.id: broker for broker in live}
        for broker_id in [each for each in self.brokers if each not in told]:
            del self.brokers[broker_id]
            self._brokers_changed(broker_id)
            yield GO_ON
        for broker_id, broker in told.items():
            if self._live.get(broker_id) != broker:
                self.apply(registered(broker))
            yield GO_ON
        self._live = told

    def _brokers_changed(self, broker_id: int) -> None:
        self._delta.brokers.add(broker_id)
        self._replicas_changed()

    # -- topics

    def offline_replicas(self, partition: PartitionInfo) -> list[int]:
        """As the controller says: those of a broker that is shutting down, too, though it lives."""
        return partition.offline_replicas if isinstance(partition, ToldPartition) else []

    def _delete(self, name: str) -> None:
        topic = self.topics.get(name)
        if topic is not None:
            self.apply(RemoveTopicRecord(topic_id=topic.id))

    def _put(self, name: str, topic_id: bytes, state: State) -> Work[bool]:
        """Whether it could be that partition."""
        index = state.partition_index
        known = self.topics.get(name)
        missing = index - (0 if known is None else len(known.partitions))
        if not may_be_a_directory(name, index) or missing > self._untold:
            return False
        topic = self._topic_told_of(name, topic_id)
        if topic is None:
            return False
        while index >= len(topic.partitions):
            self._untold -= 1
            self._partition(
                PartitionRecord(topic_id=topic.id, partition_id=len(topic.partitions), leader=NO_LEADER)
            )
            if not len(topic.partitions) % CHUNK:
                yield GO_ON
        told = ToldPartition(state)
        if told.leader_epoch != topic.partitions[index].leader_epoch:
            self._delta.leader_elected(topic, index)
        topic.partitions[index] = told
        topic.cache.clear()
        return True

    def _topic_told_of(self, name: str, topic_id: bytes) -> Topic | None:
        """None: it is not known, and has no id."""
        topic = self.topics.get(name)
        if topic is not None and topic_id in (topic.id, ZERO):
            return topic
        if topic_id == ZERO:
            return None
        if topic is not None:  # it was deleted and made anew while we did not hear of it
            configs = topic.configs
            self._delete(name)
            self.configs[2, name] = configs
        self.apply(TopicRecord(name=name, topic_id=topic_id))
        return self.topics[name]


def registered(broker: LiveBroker) -> RegisterBrokerRecord:
    points = [
        EndPoint(
            name=point.listener or PROTOCOLS[point.security_protocol],
            host=point.host,
            port=point.port,
            security_protocol=point.security_protocol,
        )
        for point in broker.endpoints
    ]
    return RegisterBrokerRecord(broker_id=broker.id, end_points=points, rack=broker.rack, fenced=False)


def as_record(state: State) -> PartitionRecord:
    return PartitionRecord(
        replicas=state.replicas,
        isr=state.isr,
        leader=state.leader,
        leader_epoch=state.leader_epoch,
        partition_epoch=state.zk_version,
    )
