"""What the handlers of the data path share: finding a partition, and checking the leader epoch a client believes in."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pykafkad.errors import (
    FENCED_LEADER_EPOCH,
    KAFKA_STORAGE_ERROR,
    UNKNOWN_LEADER_EPOCH,
    UNKNOWN_TOPIC_OR_PARTITION,
    KafkaError,
)

if TYPE_CHECKING:
    from pykafkad.server import Broker
    from pykafkad.storage.partition import Partition

NO_TOPIC_ID = bytes(16)


def find(broker: Broker, topic: str, index: int, current_leader_epoch: int = -1) -> Partition:
    """The partition, or KafkaError. A leader epoch of -1 means that the client does not say."""
    partition = broker.storage.get(topic, index)
    if partition is None:
        raise KafkaError(missing(broker, topic, index))
    if current_leader_epoch not in (-1, partition.leader_epoch):
        older = current_leader_epoch < partition.leader_epoch
        raise KafkaError(FENCED_LEADER_EPOCH if older else UNKNOWN_LEADER_EPOCH)
    return partition


def missing(broker: Broker, topic: str, index: int) -> int:
    """Why there is no such partition: it exists, but its log directory is offline, or nobody knows it."""
    known = broker.image.topics.get(topic)
    if known is not None and 0 <= index < len(known.partitions):
        return KAFKA_STORAGE_ERROR
    return UNKNOWN_TOPIC_OR_PARTITION
