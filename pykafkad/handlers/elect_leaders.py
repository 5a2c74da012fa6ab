"""ElectLeaders (key 43), versions 0 to 2: the preferred replica, or from version 1 any that is left, is to
lead (KIP-183, KIP-460).

On a single node every partition that exists is led by the only replica it has, so no election is needed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pykafkad import errors
from pykafkad.cluster.image import NO_LEADER
from pykafkad.messages import ElectLeadersResponse

if TYPE_CHECKING:
    from pykafkad.cluster.image import Image, Topic
    from pykafkad.dispatcher import Context
    from pykafkad.server import Broker


TopicResult = ElectLeadersResponse.ReplicaElectionResult
PartitionResult = ElectLeadersResponse.PartitionResult

PREFERRED, UNCLEAN = 0, 1
Answer = tuple[int, str | None]


def handle(broker: Broker, request: Any, context: Context) -> Any:
    kind, asked = request.election_type, request.topic_partitions
    if asked == []:
        return ElectLeadersResponse()
    if request.timeout_ms <= 0:
        return refuse(asked, errors.REQUEST_TIMED_OUT, None, context.version)
    if kind not in (PREFERRED, UNCLEAN):
        return refuse(asked, errors.INVALID_REQUEST, f"Unknown election type {kind}", context.version)
    if asked is None:
        return ElectLeadersResponse(
            replica_election_results=[
                TopicResult(topic=name, partition_result=needed(broker.image, kind, topic))
                for name, topic in broker.image.topics.items()
            ]
        )
    return ElectLeadersResponse(
        replica_election_results=[
            TopicResult(
                topic=topic.topic,
                partition_result=[
                    result(index, elect(broker.image, kind, topic.topic, index)) for index in topic.partitions
                ],
            )
            for topic in asked
        ]
    )


def needed(image: Image, kind: int, topic: Topic) -> list[Any]:
    """Of a whole cluster Kafka leaves out the partitions that need no election."""
    return [
        result(index, elect(image, kind, topic.name, index))
        for index, partition in enumerate(topic.partitions)
        if partition.leader == NO_LEADER
    ]


def refuse(asked: list[Any] | None, code: int, text: str | None, version: int) -> Any:
    results = [
        TopicResult(
            topic=topic.topic,
            partition_result=[result(index, (code, text)) for index in topic.partitions],
        )
        for topic in asked or ()
    ]
    # Version 0 has no place for an error of the whole request.
    return ElectLeadersResponse(error_code=code if version else errors.NONE, replica_election_results=results)


def result(index: int, answer: Answer) -> Any:
    return PartitionResult(partition_id=index, error_code=answer[0], error_message=answer[1])


def elect(image: Image, kind: int, name: str, index: int) -> Answer:
    topic = image.topics.get(name)
    if topic is None:
        return errors.UNKNOWN_TOPIC_OR_PARTITION, f"No such topic as {name}"
    if not 0 <= index < len(topic.partitions):
        return errors.UNKNOWN_TOPIC_OR_PARTITION, f"No such partition as {name}-{index}"
    if topic.partitions[index].leader != NO_LEADER:
        return errors.ELECTION_NOT_NEEDED, "Leader election not needed for topic partition."
    code = errors.ELIGIBLE_LEADERS_NOT_AVAILABLE if kind == UNCLEAN else errors.PREFERRED_LEADER_NOT_AVAILABLE
    return code, errors.MESSAGES.get(code)
