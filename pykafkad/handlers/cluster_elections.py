"""ElectLeaders in a cluster: the controller's broker elects, and answers when its own metadata show who leads, as clients
ask it for that next. The others answer NOT_CONTROLLER for each partition."""

from __future__ import annotations

from pykafkad import errors
from pykafkad.messages import ElectLeadersResponse
from pykafkad.pure.controller.events import ElectLeaders
from pykafkad.slices import Wait, each

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pykafkad.cluster.image import Image
    from pykafkad.handlers.broker import Broker
    from pykafkad.messages import ElectLeadersRequest
    from pykafkad.pure.controller.facts import Partition
    from pykafkad.slices import Work

LOOK_AGAIN_MS = 5

TopicResult = ElectLeadersResponse.ReplicaElectionResult
PartitionResult = ElectLeadersResponse.PartitionResult


def elected_in_cluster(
    broker: Broker, request: ElectLeadersRequest, *, is_unclean: bool
) -> Work[ElectLeadersResponse]:
    assert broker.cluster is not None
    asked: list[Partition] | None = None
    if request.topic_partitions is not None:
        asked = []
        for topic in request.topic_partitions:
            asked += [(topic.topic, index) for index in topic.partitions]
            yield
    wait = Wait()
    broker.cluster.controlling.ask(ElectLeaders, wait.come, asked, is_unclean)
    outcomes = yield from wait.result()
    if isinstance(outcomes, int):
        outcomes = {partition: (outcomes, errors.MESSAGES.get(outcomes)) for partition in asked or ()}
    waiting = {partition: leader for partition, leader in outcomes.items() if isinstance(leader, int)}
    yield from shown(broker, waiting, request.timeout_ms)
    topics: dict[str, TopicResult] = {}
    for is_turn, (partition, outcome) in each(list(outcomes.items())):
        if is_turn:
            yield
        name, index = partition
        if isinstance(outcome, int):
            outcome = (errors.REQUEST_TIMED_OUT if partition in waiting else errors.NONE), None
        code, text = outcome
        if not errors.fits(text):
            return ElectLeadersResponse(error_code=errors.UNKNOWN_SERVER_ERROR)
        result = topics.setdefault(name, TopicResult(topic=name, partition_result=[]))
        result.partition_result.append(
            PartitionResult(partition_id=index, error_code=code, error_message=text)
        )
    return ElectLeadersResponse(replica_election_results=list(topics.values()))


def shown(broker: Broker, waiting: dict[Partition, int], timeout_ms: int) -> Work[None]:
    """Takes out what the metadata show; what is left at the end has not come in time."""
    deadline_ms = broker.clock.monotonic_ms() + timeout_ms
    while True:
        for is_turn, (partition, leader) in each(list(waiting.items())):
            if is_turn:
                yield
            if leader_of(broker.image, partition) == leader:
                del waiting[partition]
        if not waiting or broker.clock.monotonic_ms() >= deadline_ms:
            return
        wait = Wait()
        broker.coordinator_loop.call_later(LOOK_AGAIN_MS, wait.come)
        yield from wait.result()


def leader_of(image: Image, partition: Partition) -> int:
    name, index = partition
    topic = image.topics.get(name)
    return topic.partitions[index].leader if topic is not None and index < len(topic.partitions) else -1
