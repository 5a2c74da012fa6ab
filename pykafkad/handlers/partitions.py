"""What the handlers of the data path share: finding a partition, and checking the leader epoch that a client expects."""

from __future__ import annotations

from pykafkad.errors import (
    FENCED_LEADER_EPOCH,
    KAFKA_STORAGE_ERROR,
    NOT_LEADER_OR_FOLLOWER,
    UNKNOWN_LEADER_EPOCH,
    UNKNOWN_TOPIC_OR_PARTITION,
    KafkaError,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from typing import Any, Protocol, TypeVar

    from pykafkad.cluster.replica import Replica
    from pykafkad.handlers.broker import Broker

    Item = TypeVar("Item", covariant=True)

    class OfPartitions(Protocol[Item]):
        """A topic of a request."""

        @property
        def partitions(self) -> Sequence[Item]: ...


def find(broker: Broker, topic: str, index: int, current_leader_epoch: int = -1) -> Replica:
    """The partition, which this node leads, or KafkaError. A leader epoch of -1 means that the client expects none."""
    partition = broker.replicas.get((topic, index))
    if partition is None:
        raise KafkaError(missing(broker, topic, index))
    if current_leader_epoch not in (-1, partition.leader_epoch):
        raise other_epoch(partition, current_leader_epoch)
    if partition.leadership is None:
        raise KafkaError(NOT_LEADER_OR_FOLLOWER)
    return partition


def other_epoch(partition: Replica, epoch: int) -> KafkaError:
    return KafkaError(FENCED_LEADER_EPOCH if epoch < partition.leader_epoch else UNKNOWN_LEADER_EPOCH)


def items_of(topics: Iterable[OfPartitions[Item]]) -> Iterator[tuple[Any, Item | None]]:
    """Pairs of a topic and the entry of one of its partitions, for work in slices; (topic, None) for a topic without
    any."""
    for topic in topics:
        if not topic.partitions:
            yield topic, None
        for item in topic.partitions:
            yield topic, item


def missing(broker: Broker, topic: str, index: int) -> int:
    """The error code of a partition that is not here: its log directory is offline, it does not exist, or in a cluster
    others have it, or are said to have it before we are."""
    known = broker.image.topics.get(topic)
    if known is None or not 0 <= index < len(known.partitions):
        return UNKNOWN_TOPIC_OR_PARTITION
    if broker.cluster is not None and len(broker.storage.online) == len(broker.storage.directories):
        return NOT_LEADER_OR_FOLLOWER
    return KAFKA_STORAGE_ERROR
