"""What the handlers that describe the cluster share: brokers with the endpoint that a client can reach, authorized
operations.

Without an authorizer every operation is allowed, and the bit fields show that: bit N stands for ACL operation N.
"""

from __future__ import annotations

from pykafkad import errors
from pykafkad.cluster import topic_names
from pykafkad.cluster.image import NO_LEADER
from pykafkad.handlers.permits import OPERATIONS, Permits
from pykafkad.pure.authorization import CLUSTER, TOPIC
from pykafkad.slices import chunks

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import TypeVar

    from pykafkad.cluster.image import BrokerInfo, Endpoint, Image, Topic
    from pykafkad.context import Context
    from pykafkad.handlers.broker import Broker
    from pykafkad.slices import Work

    View = TypeVar("View")

VIEWS_AT_ONCE = 32


def bits(resource: int) -> int:
    return sum(1 << operation for operation in OPERATIONS[resource])


TOPIC_OPERATIONS, CLUSTER_OPERATIONS = bits(TOPIC), bits(CLUSTER)
NOT_ASKED = -(1 << 31)


def cluster_operations(broker: Broker, context: Context) -> int:
    if broker.authorizer is None:
        return CLUSTER_OPERATIONS
    return Permits(broker.authorizer, context).cluster_operations()


def reachable_brokers(
    broker: Broker, context: Context, *, fenced: bool = False
) -> list[tuple[BrokerInfo, Endpoint]]:
    """Brokers with their endpoint on the listener that this request came through."""
    name = context.listener_name
    return [
        (info, info.endpoints[name])
        for _, info in sorted(broker.image.brokers.items())
        if name in info.endpoints and (fenced or not info.fenced)
    ]


def partition_views(
    image: Image, topic: Topic, kind: str, make: Callable[..., View], leaderless: int, *more: str
) -> Work[list[View]]:
    """One `make(...)` for each partition, with the fields that Metadata and DescribeTopicPartitions have in common and
    `more`.

    The two differ in the error code of a partition without a leader (`leaderless`). The result is cached in the topic
    under `kind` until one of its partitions changes.
    """
    views: list[View] | None = topic.cache.get(kind)
    if views is not None:
        return views
    mark = f"{kind}, being made"
    ours = topic.cache[mark] = object()
    views = []
    for some in chunks(topic.partitions, VIEWS_AT_ONCE):
        views += [
            make(
                error_code=errors.NONE if partition.leader != NO_LEADER else leaderless,
                partition_index=index,
                leader_id=partition.leader,
                leader_epoch=partition.leader_epoch,
                replica_nodes=partition.replicas,
                isr_nodes=partition.isr,
                offline_replicas=image.offline_replicas(partition),
                **{field: getattr(partition, field) for field in more},
            )
            for index, partition in enumerate(some, len(views))
        ]
        if len(views) < len(topic.partitions):
            yield
    if topic.cache.get(mark) is ours:  # no partition has changed since we began
        topic.cache[kind] = views
    return views


def why_missing(name: str) -> int:
    """The error code for a topic that does not exist, which depends on whether its name is valid."""
    if topic_names.why_invalid(name) is not None:
        return errors.INVALID_TOPIC_EXCEPTION
    return errors.UNKNOWN_TOPIC_OR_PARTITION
