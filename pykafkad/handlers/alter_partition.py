"""AlterPartition (key 56), versions 0 to 3: the leader of partitions asks the controller for other ISRs (KIP-497).

Only in a cluster on ZooKeeper, where the epochs of the brokers in the ISR (version 3) are not looked at, as in Kafka 3.9.
The checks are in pure/controller/isr.py.
"""

from __future__ import annotations

from pykafkad import errors
from pykafkad.messages import AlterPartitionResponse
from pykafkad.pure.authorization import CLUSTER, CLUSTER_ACTION, Need
from pykafkad.pure.controller.events import AlterPartition
from pykafkad.pure.controller.facts import Leadership
from pykafkad.slices import Wait, each

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pykafkad.context import Context
    from pykafkad.handlers.broker import Broker
    from pykafkad.messages import AlterPartitionRequest
    from pykafkad.slices import Work

TOPIC_IDS_SINCE = INELIGIBLE_SINCE = 2
ISR_WITH_EPOCHS_SINCE = 3

TopicData = AlterPartitionResponse.TopicData
PartitionData = AlterPartitionResponse.PartitionData

needs = (Need(CLUSTER_ACTION, CLUSTER),)


def handle(broker: Broker, request: AlterPartitionRequest, context: Context) -> Work[AlterPartitionResponse]:
    assert broker.cluster is not None
    version = context.version
    changes = yield from changes_of(request, version)
    wait = Wait()
    broker.cluster.controlling.ask(
        AlterPartition, wait.come, request.broker_id, request.broker_epoch, changes, ineligible(version)
    )
    outcomes = yield from wait.result()
    if isinstance(outcomes, int):
        return AlterPartitionResponse(error_code=outcomes)
    topics: dict[bytes | str, TopicData] = {}
    for is_turn, ((topic, index), outcome) in each(list(outcomes.items())):
        if is_turn:
            yield
        if topic not in topics:
            topics[topic] = topic_data(topic)
        topics[topic].partitions.append(partition_data(index, outcome))
    return AlterPartitionResponse(topics=list(topics.values()))


def changes_of(
    request: AlterPartitionRequest, version: int
) -> Work[dict[tuple[bytes | str, int], Leadership]]:
    changes: dict[tuple[bytes | str, int], Leadership] = {}
    for topic in request.topics:
        name = topic.topic_id if version >= TOPIC_IDS_SINCE else topic.topic_name
        for is_turn, partition in each(topic.partitions):
            if is_turn:
                yield
            if version >= ISR_WITH_EPOCHS_SINCE:
                isr = tuple(member.broker_id for member in partition.new_isr_with_epochs)
            else:
                isr = tuple(partition.new_isr)
            changes[name, partition.partition_index] = Leadership(
                request.broker_id,
                partition.leader_epoch,
                isr,
                partition.leader_recovery_state,
                partition.partition_epoch,
            )
    return changes


def ineligible(version: int) -> int:
    return errors.INELIGIBLE_REPLICA if version >= INELIGIBLE_SINCE else errors.OPERATION_NOT_ATTEMPTED


def topic_data(topic: bytes | str) -> TopicData:
    if isinstance(topic, bytes):
        return TopicData(topic_id=topic, partitions=[])
    return TopicData(topic_name=topic, partitions=[])


def partition_data(index: int, outcome: int | Leadership) -> PartitionData:
    if isinstance(outcome, int):
        return PartitionData(partition_index=index, error_code=outcome)
    return PartitionData(
        partition_index=index,
        leader_id=outcome.leader,
        leader_epoch=outcome.leader_epoch,
        isr=list(outcome.isr),
        leader_recovery_state=outcome.recovery,
        partition_epoch=outcome.partition_epoch,
    )
