"""DescribeQuorum (key 55), versions 0 to 2: the replicas of the metadata log, and how far they have got (KIP-595; times
in 1, KIP-836; nodes and directories in 2, KIP-853).

The quorum is this node alone, and whatever it has written is committed. Like Kafka we answer for exactly one partition,
__cluster_metadata-0; a request that names any other partition gets an error for all of them. There are no controller
listeners, so the node is shown without any.
"""

from __future__ import annotations

from pykafkad import errors
from pykafkad.cluster.topic_names import CLUSTER_METADATA
from pykafkad.messages import DescribeQuorumResponse
from pykafkad.pure.authorization import CLUSTER, DESCRIBE, Need
from pykafkad.slices import chunks

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pykafkad.context import Context
    from pykafkad.handlers.broker import Broker
    from pykafkad.messages import DescribeQuorumRequest
    from pykafkad.slices import OrWork, Work

    TopicRequest = DescribeQuorumRequest.TopicData


NODES_SINCE = 2

TopicData = DescribeQuorumResponse.TopicData
PartitionData = DescribeQuorumResponse.PartitionData
ReplicaState = DescribeQuorumResponse.ReplicaState
Node = DescribeQuorumResponse.Node


needs = (Need(DESCRIBE, CLUSTER),)


def handle(
    broker: Broker, request: DescribeQuorumRequest, context: Context
) -> OrWork[DescribeQuorumResponse]:
    if is_the_one(request.topics):
        return described(broker, context)
    return refused(request.topics)


def is_the_one(topics: list[TopicRequest]) -> bool:
    if len(topics) != 1 or len(topics[0].partitions) != 1:
        return False
    return topics[0].topic_name == CLUSTER_METADATA and topics[0].partitions[0].partition_index == 0


def described(broker: Broker, context: Context) -> DescribeQuorumResponse:
    quorum = broker.controller.quorum
    now_ms = broker.clock.now_ms()
    voter = ReplicaState(
        replica_id=quorum.leader_id,
        replica_directory_id=quorum.voter_directory_id,
        log_end_offset=quorum.end_offset,
        last_fetch_timestamp=now_ms,
        last_caught_up_timestamp=now_ms,
    )
    partition = PartitionData(
        leader_id=quorum.leader_id,
        leader_epoch=quorum.epoch,
        high_watermark=quorum.end_offset,
        current_voters=[voter],
    )
    topic = TopicData(topic_name=CLUSTER_METADATA, partitions=[partition])
    nodes = [Node(node_id=quorum.leader_id)] if context.version >= NODES_SINCE else []
    return DescribeQuorumResponse(topics=[topic], nodes=nodes)


def refused(topics: list[TopicRequest]) -> Work[DescribeQuorumResponse]:
    code = errors.UNKNOWN_TOPIC_OR_PARTITION
    text = errors.MESSAGES[code]
    answers = []
    for topic in topics:
        partitions: list[PartitionData] = []
        for some in chunks(topic.partitions):
            partitions += [
                PartitionData(partition_index=item.partition_index, error_code=code, error_message=text)
                for item in some
            ]
            yield
        answers.append(TopicData(topic_name=topic.topic_name, partitions=partitions))
        yield
    return DescribeQuorumResponse(topics=answers)
