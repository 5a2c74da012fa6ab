"""AlterPartitionReassignments (key 45), versions 0 and 1: assigns other replicas to partitions (KIP-455; version 1 adds
whether the replication factor may change, KIP-860).

On a single node the only assignment that is not refused is the present one, so no reassignment is ever in progress. The
checks are in cluster/partition_changes. They refuse a changed replication factor before version 1's flag matters. In a
cluster the controller reassigns (cluster_reassignments.py).
"""

from __future__ import annotations

from pykafkad import errors
from pykafkad.cluster.partition_changes import check_reassignment
from pykafkad.errors import KafkaError
from pykafkad.messages import AlterPartitionReassignmentsResponse
from pykafkad.pure.authorization import ALTER, CLUSTER, Need
from pykafkad.slices import chunks

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pykafkad.cluster.image import Image
    from pykafkad.context import Context
    from pykafkad.handlers.broker import Broker
    from pykafkad.messages import AlterPartitionReassignmentsRequest
    from pykafkad.slices import Work

    TopicRequest = AlterPartitionReassignmentsRequest.ReassignableTopic
    PartitionRequest = AlterPartitionReassignmentsRequest.ReassignablePartition


TopicResponse = AlterPartitionReassignmentsResponse.ReassignableTopicResponse
PartitionResponse = AlterPartitionReassignmentsResponse.ReassignablePartitionResponse


needs = (Need(ALTER, CLUSTER),)


def handle(
    broker: Broker, request: AlterPartitionReassignmentsRequest, context: Context
) -> Work[AlterPartitionReassignmentsResponse]:
    if not request.topics:
        return AlterPartitionReassignmentsResponse()
    if broker.cluster is not None:
        from pykafkad.handlers.cluster_reassignments import altered_in_cluster

        return (yield from altered_in_cluster(broker.cluster, request))
    code = errors.REQUEST_TIMED_OUT if request.timeout_ms <= 0 else errors.NONE
    responses = yield from answers(broker.image, request.topics, code)
    if responses is None:
        code = errors.UNKNOWN_SERVER_ERROR
        responses = yield from answers(broker.image, request.topics, code)
        assert responses is not None  # this error has no message
    return AlterPartitionReassignmentsResponse(
        allow_replication_factor_change=bool(code) or request.allow_replication_factor_change,
        error_code=code,
        error_message=None,
        responses=responses,
    )


def unauthorized(
    request: AlterPartitionReassignmentsRequest, version: int, code: int
) -> Work[AlterPartitionReassignmentsResponse]:
    """Said of the whole and of each partition."""
    text = errors.MESSAGES[code]
    topics = []
    for topic in request.topics:
        rows: list[PartitionResponse] = []
        for some in chunks(topic.partitions):
            rows += [
                PartitionResponse(partition_index=item.partition_index, error_code=code, error_message=text)
                for item in some
            ]
            yield
        topics.append(TopicResponse(name=topic.name, partitions=rows))
        yield
    return AlterPartitionReassignmentsResponse(error_code=code, error_message=text, responses=topics)


def answers(image: Image, topics: list[TopicRequest], code: int) -> Work[list[TopicResponse] | None]:
    """The result for each partition: this code, or else the outcome of its own check. None if a message is too long to
    be sent."""
    responses = []
    for topic in topics:
        partitions = []
        for item in topic.partitions:
            partitions.append((yield from answer(image, topic.name, item, code)))
            if not errors.fits(partitions[-1].error_message):
                return None
        responses.append(TopicResponse(name=topic.name, partitions=partitions))
        yield
    return responses


def answer(image: Image, topic: str, item: PartitionRequest, code: int) -> Work[PartitionResponse]:
    text = None
    if code == errors.NONE:
        try:
            yield from check_reassignment(image, topic, item.partition_index, item.replicas)
        except KafkaError as error:
            code, text = error.code, error.message
    yield
    return PartitionResponse(partition_index=item.partition_index, error_code=code, error_message=text)
