"""ElectLeaders (key 43), versions 0 to 2: elects the preferred replica, or from version 1 any replica that is left
(KIP-183, KIP-460).

On a single node the only replica of a partition is its leader already, so no election is ever needed. In a cluster
the controller elects (cluster_elections.py).
"""

from __future__ import annotations

from pykafkad import errors
from pykafkad.cluster.image import NO_LEADER
from pykafkad.handlers.permits import Permits
from pykafkad.messages import ElectLeadersResponse
from pykafkad.pure.authorization import ALTER, CLUSTER, Need
from pykafkad.slices import chunks

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pykafkad.cluster.image import Image, Topic
    from pykafkad.context import Context
    from pykafkad.handlers.broker import Broker
    from pykafkad.messages import ElectLeadersRequest
    from pykafkad.slices import Work

    TopicPartitions = ElectLeadersRequest.TopicPartitions


TopicResult = ElectLeadersResponse.ReplicaElectionResult
PartitionResult = ElectLeadersResponse.PartitionResult

PREFERRED, UNCLEAN = 0, 1
AT_ONCE = 32
Answer = tuple[int, str | None]


needs = (Need(ALTER, CLUSTER, by_handler=True),)


def handle(broker: Broker, request: ElectLeadersRequest, context: Context) -> Work[ElectLeadersResponse]:
    kind, asked = request.election_type, request.topic_partitions
    if broker.authorizer is not None and not Permits(broker.authorizer, context).allow(ALTER, CLUSTER):
        code = errors.CLUSTER_AUTHORIZATION_FAILED
        said = None if broker.config.on_zookeeper else errors.MESSAGES[code]
        return (yield from refuse(asked, code, said, context.version))
    if asked == []:
        return ElectLeadersResponse()
    if request.timeout_ms <= 0:
        return (yield from refuse(asked, errors.REQUEST_TIMED_OUT, None, context.version))
    if kind not in (PREFERRED, UNCLEAN):
        text = f"Unknown election type {kind}"
        return (yield from refuse(asked, errors.INVALID_REQUEST, text, context.version))
    if broker.cluster is not None:
        from pykafkad.handlers.cluster_elections import elected_in_cluster

        return (yield from elected_in_cluster(broker, request, is_unclean=kind == UNCLEAN))
    image = broker.image
    results = []
    if asked is None:
        for topic in list(image.topics.values()):
            needed = yield from elections(image, kind, topic.name, leaderless(topic))
            results.append(TopicResult(topic=topic.name, partition_result=needed))
    else:
        for named in asked:
            partitions = yield from elections(image, kind, named.topic, named.partitions)
            if partitions and not errors.fits(partitions[0].error_message):
                return (yield from refuse(asked, errors.UNKNOWN_SERVER_ERROR, None, context.version))
            results.append(TopicResult(topic=named.topic, partition_result=partitions))
    return ElectLeadersResponse(replica_election_results=results)


def leaderless(topic: Topic) -> list[int]:
    """If all partitions are asked for, Kafka leaves out those that need no election."""
    return [index for index, partition in enumerate(topic.partitions) if partition.leader == NO_LEADER]


def elections(image: Image, kind: int, name: str, indexes: list[int]) -> Work[list[PartitionResult]]:
    results: list[PartitionResult] = []
    for some in chunks(indexes, AT_ONCE):
        results += [result(index, elect(image, kind, name, index)) for index in some]
        yield
    return results


def refuse(
    asked: list[TopicPartitions] | None, code: int, text: str | None, version: int
) -> Work[ElectLeadersResponse]:
    results = []
    for topic in asked or ():
        partitions: list[PartitionResult] = []
        for some in chunks(topic.partitions):
            partitions += [result(index, (code, text)) for index in some]
            yield
        results.append(TopicResult(topic=topic.topic, partition_result=partitions))
        yield
    # Version 0 has no field for an error of the whole request.
    return ElectLeadersResponse(error_code=code if version else errors.NONE, replica_election_results=results)


def result(index: int, answer: Answer) -> PartitionResult:
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
