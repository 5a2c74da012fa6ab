"""AlterPartitionReassignments (key 45), versions 0 and 1: other replicas for partitions (KIP-455; version 1:
whether their number may change, KIP-860).

On a single node what is not refused is what already is, so nothing is ever under way. The checks are in
cluster/partition_changes; a number of replicas that changes is refused by them before version 1's flag is asked.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pykafkad import errors
from pykafkad.cluster.partition_changes import check_reassignment
from pykafkad.errors import KafkaError
from pykafkad.messages import AlterPartitionReassignmentsResponse

if TYPE_CHECKING:
    from pykafkad.cluster.image import Image
    from pykafkad.dispatcher import Context
    from pykafkad.server import Broker


TopicResponse = AlterPartitionReassignmentsResponse.ReassignableTopicResponse
PartitionResponse = AlterPartitionReassignmentsResponse.ReassignablePartitionResponse


def handle(broker: Broker, request: Any, context: Context) -> Any:
    if not request.topics:
        return AlterPartitionReassignmentsResponse()
    late = errors.REQUEST_TIMED_OUT if request.timeout_ms <= 0 else errors.NONE
    return AlterPartitionReassignmentsResponse(
        allow_replication_factor_change=bool(late) or request.allow_replication_factor_change,
        error_code=late,
        error_message=None,
        responses=[
            TopicResponse(
                name=topic.name,
                partitions=[answer(broker.image, topic.name, item, late) for item in topic.partitions],
            )
            for topic in request.topics
        ],
    )


def answer(image: Image, topic: str, item: Any, code: int) -> Any:
    text = None
    if code == errors.NONE:
        try:
            check_reassignment(image, topic, item.partition_index, item.replicas)
        except KafkaError as error:
            code, text = error.code, error.message
    return PartitionResponse(partition_index=item.partition_index, error_code=code, error_message=text)
