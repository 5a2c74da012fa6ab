"""DescribeQuorum (key 55), versions 0 to 2: who keeps the metadata log, and how far (KIP-595; times in 1,
KIP-836; nodes and directories in 2, KIP-853).

The quorum is this node alone, and what it has written is committed. Kafka answers for exactly one partition,
__cluster_metadata-0; a request that names anything besides gets an error for all it names. There is no listener
for controllers: the node is shown with those that it has.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pykafkad import errors
from pykafkad.cluster.topic_names import CLUSTER_METADATA
from pykafkad.messages import DescribeQuorumResponse

if TYPE_CHECKING:
    from pykafkad.dispatcher import Context
    from pykafkad.server import Broker


NODES_SINCE = 2

TopicData = DescribeQuorumResponse.TopicData
PartitionData = DescribeQuorumResponse.PartitionData
ReplicaState = DescribeQuorumResponse.ReplicaState
Node = DescribeQuorumResponse.Node
Listener = DescribeQuorumResponse.Listener


def handle(broker: Broker, request: Any, context: Context) -> Any:
    asked = [
        (topic.topic_name, [item.partition_index for item in topic.partitions]) for topic in request.topics
    ]
    if asked != [(CLUSTER_METADATA, [0])]:
        return DescribeQuorumResponse(topics=[refused(name, indexes) for name, indexes in asked])
    epoch, end_offset = broker.controller.quorum
    now_ms = broker.clock.now_ms()
    voter = ReplicaState(
        replica_id=broker.node_id,
        replica_directory_id=broker.controller.voter_directory_id,
        log_end_offset=end_offset,
        last_fetch_timestamp=now_ms,
        last_caught_up_timestamp=now_ms,
    )
    partition = PartitionData(
        leader_id=broker.node_id, leader_epoch=epoch, high_watermark=end_offset, current_voters=[voter]
    )
    topic = TopicData(topic_name=CLUSTER_METADATA, partitions=[partition])
    nodes = [this_node(broker)] if context.version >= NODES_SINCE else []
    return DescribeQuorumResponse(topics=[topic], nodes=nodes)


def refused(name: str, indexes: list[int]) -> Any:
    code = errors.UNKNOWN_TOPIC_OR_PARTITION
    text = errors.MESSAGES[code]
    partitions = [
        PartitionData(partition_index=index, error_code=code, error_message=text) for index in indexes
    ]
    return TopicData(topic_name=name, partitions=partitions)


def this_node(broker: Broker) -> Any:
    endpoints = broker.image.brokers[broker.node_id].endpoints
    return Node(
        node_id=broker.node_id,
        listeners=[
            Listener(name=point.name, host=point.host, port=point.port) for point in endpoints.values()
        ],
    )
