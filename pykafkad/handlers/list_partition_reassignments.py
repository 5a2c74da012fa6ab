"""ListPartitionReassignments (key 46), version 0: the reassignments that are in progress (KIP-455).

On a single node there are none (see AlterPartitionReassignments), and Kafka leaves out partitions without one, also
those that do not exist. So the answer is always empty there; in a cluster the controller knows.
"""

from __future__ import annotations

from pykafkad.errors import MESSAGES
from pykafkad.messages import ListPartitionReassignmentsResponse
from pykafkad.pure.authorization import CLUSTER, DESCRIBE, Need
from pykafkad.slices import chunks

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pykafkad.context import Context
    from pykafkad.handlers.broker import Broker
    from pykafkad.messages import ListPartitionReassignmentsRequest
    from pykafkad.slices import OrWork, Work


needs = (Need(DESCRIBE, CLUSTER),)


def unauthorized(
    request: ListPartitionReassignmentsRequest, version: int, code: int
) -> Work[ListPartitionReassignmentsResponse]:
    """With each partition that was asked for, of which it says nothing, as in Kafka."""
    kind = ListPartitionReassignmentsResponse
    topics = []
    for topic in request.topics or ():
        rows: list[ListPartitionReassignmentsResponse.OngoingPartitionReassignment] = []
        for some in chunks(topic.partition_indexes):
            rows += [kind.OngoingPartitionReassignment(partition_index=index) for index in some]
            yield
        topics.append(kind.OngoingTopicReassignment(name=topic.name, partitions=rows))
        yield
    return kind(error_code=code, error_message=MESSAGES[code], topics=topics)


def handle(
    broker: Broker, request: ListPartitionReassignmentsRequest, context: Context
) -> OrWork[ListPartitionReassignmentsResponse]:
    if broker.cluster is not None:
        from pykafkad.handlers.cluster_reassignments import listed_in_cluster

        return listed_in_cluster(broker.cluster, request)
    return ListPartitionReassignmentsResponse(error_message=None)
