"""AlterPartitionReassignments and ListPartitionReassignments in a cluster: the controller's broker answers them, the
others NOT_CONTROLLER."""

from __future__ import annotations

from pykafkad import errors
from pykafkad.messages import AlterPartitionReassignmentsResponse, ListPartitionReassignmentsResponse
from pykafkad.pure.controller.events import AlterReassignments, ListReassignments
from pykafkad.slices import Wait, each

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pykafkad.cluster.zookeeper.parts import Cluster
    from pykafkad.messages import AlterPartitionReassignmentsRequest, ListPartitionReassignmentsRequest
    from pykafkad.pure.controller.facts import Assignment, Partition
    from pykafkad.slices import Work

TopicResponse = AlterPartitionReassignmentsResponse.ReassignableTopicResponse
PartitionResponse = AlterPartitionReassignmentsResponse.ReassignablePartitionResponse
OngoingTopic = ListPartitionReassignmentsResponse.OngoingTopicReassignment
OngoingPartition = ListPartitionReassignmentsResponse.OngoingPartitionReassignment


def altered_in_cluster(
    cluster: Cluster, request: AlterPartitionReassignmentsRequest
) -> Work[AlterPartitionReassignmentsResponse]:
    targets: dict[Partition, list[int] | None] = {}
    for topic in request.topics:
        for is_turn, partition in each(topic.partitions):
            if is_turn:
                yield
            targets[topic.name, partition.partition_index] = partition.replicas
    wait = Wait()
    cluster.controlling.ask(AlterReassignments, wait.come, targets)
    outcomes = yield from wait.result()
    if isinstance(outcomes, int):
        return AlterPartitionReassignmentsResponse(error_code=outcomes, error_message=None)
    topics: dict[str, TopicResponse] = {}
    for is_turn, ((name, index), (code, text)) in each(list(outcomes.items())):
        if is_turn:
            yield
        if not errors.fits(text):
            return AlterPartitionReassignmentsResponse(
                error_code=errors.UNKNOWN_SERVER_ERROR, error_message=None
            )
        answered = topics.setdefault(name, TopicResponse(name=name, partitions=[]))
        answered.partitions.append(
            PartitionResponse(partition_index=index, error_code=code, error_message=text)
        )
    return AlterPartitionReassignmentsResponse(error_message=None, responses=list(topics.values()))


def listed_in_cluster(
    cluster: Cluster, request: ListPartitionReassignmentsRequest
) -> Work[ListPartitionReassignmentsResponse]:
    asked: list[Partition] | None = None
    if request.topics is not None:
        asked = []
        for topic in request.topics:
            asked += [(topic.name, index) for index in topic.partition_indexes]
            yield
    wait = Wait()
    cluster.controlling.ask(ListReassignments, wait.come, asked)
    found = yield from wait.result()
    if isinstance(found, int):
        return ListPartitionReassignmentsResponse(error_code=found, error_message=None)
    topics: dict[str, OngoingTopic] = {}
    for is_turn, ((name, index), assignment) in each(list(found.items())):
        if is_turn:
            yield
        ongoing_topic = topics.setdefault(name, OngoingTopic(name=name, partitions=[]))
        ongoing_topic.partitions.append(ongoing(index, assignment))
    return ListPartitionReassignmentsResponse(error_message=None, topics=list(topics.values()))


def ongoing(index: int, assignment: Assignment) -> OngoingPartition:
    return OngoingPartition(
        partition_index=index,
        replicas=list(assignment.replicas),
        adding_replicas=list(assignment.adding),
        removing_replicas=list(assignment.removing),
    )
