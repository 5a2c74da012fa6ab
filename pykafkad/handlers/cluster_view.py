"""What the handlers that describe the cluster share: brokers as one listener's clients reach them,
operations allowed.

Without an authorizer everything is allowed, and the bit fields say so: bit N stands for ACL operation N.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pykafkad import errors
from pykafkad.cluster import topic_names
from pykafkad.cluster.image import NO_LEADER
from pykafkad.uuids import ZERO

if TYPE_CHECKING:
    from pykafkad.cluster.image import BrokerInfo, Image, PartitionInfo, Topic
    from pykafkad.dispatcher import Context
    from pykafkad.server import Broker

READ, WRITE, CREATE, DELETE, ALTER, DESCRIBE = 3, 4, 5, 6, 7, 8
CLUSTER_ACTION, DESCRIBE_CONFIGS, ALTER_CONFIGS, IDEMPOTENT_WRITE = 9, 10, 11, 12


def bits(*operations: int) -> int:
    return sum(1 << operation for operation in operations)


TOPIC_OPERATIONS = bits(READ, WRITE, CREATE, DELETE, ALTER, DESCRIBE, DESCRIBE_CONFIGS, ALTER_CONFIGS)
CLUSTER_OPERATIONS = bits(
    CREATE, ALTER, DESCRIBE, CLUSTER_ACTION, DESCRIBE_CONFIGS, ALTER_CONFIGS, IDEMPOTENT_WRITE
)
NOT_ASKED = -(1 << 31)


def reachable_brokers(
    broker: Broker, context: Context, *, fenced: bool = False
) -> list[tuple[BrokerInfo, Any]]:
    """Brokers with their endpoint on the listener that this request came in by."""
    name = context.connection.listener.owner.name
    return [
        (info, info.endpoints[name])
        for _, info in sorted(broker.image.brokers.items())
        if name in info.endpoints and (fenced or not info.fenced)
    ]


def partition_views(image: Image, topic: Topic, make: Any, leaderless: int, *more: str) -> list[Any]:
    """One `make(...)` for each partition: what Metadata and DescribeTopicPartitions say alike, and `more`. The two
    differ in the error of a partition that nobody leads."""
    return [
        make(
            error_code=errors.NONE if partition.leader != NO_LEADER else leaderless,
            partition_index=index,
            leader_id=partition.leader,
            leader_epoch=partition.leader_epoch,
            replica_nodes=partition.replicas,
            isr_nodes=partition.isr,
            offline_replicas=offline_replicas(image, partition),
            **{field: getattr(partition, field) for field in more},
        )
        for index, partition in enumerate(topic.partitions)
    ]


def offline_replicas(image: Image, partition: PartitionInfo) -> list[int]:
    """Those on brokers that are not there, or in log directories that those do not have any more (KIP-858)."""
    directories = partition.directories
    return [
        replica
        for slot, replica in enumerate(partition.replicas)
        if not image.has_online(replica, directories[slot] if slot < len(directories) else ZERO)
    ]


def why_missing(name: str) -> int:
    """The error code for a topic that does not exist: whether it could."""
    if topic_names.why_invalid(name) is not None:
        return errors.INVALID_TOPIC_EXCEPTION
    return errors.UNKNOWN_TOPIC_OR_PARTITION
