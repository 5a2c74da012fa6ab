"""AlterPartition (key 56), versions 0 to 3: the leaders of partitions ask the controller for other ISRs (KIP-497).

Only in a cluster on ZooKeeper. Up to version 1 topics have names, then ids; from version 3 on the ISR names the epochs of
its brokers, which nobody checks on ZooKeeper. Who is not the controller says so.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pykafkad import errors
from pykafkad.messages import AlterPartitionResponse
from pykafkad.pure.authorization import CLUSTER, CLUSTER_ACTION, Need
from pykafkad.pure.controller.events import AlterPartition
from pykafkad.pure.controller.facts import Leadership
from pykafkad.slices import begun, chunks

if TYPE_CHECKING:
    from pykafkad.context import Context
    from pykafkad.handlers.broker import Broker
    from pykafkad.messages import AlterPartitionRequest
    from pykafkad.slices import Work

    Key = tuple[str, int]

TOPIC_IDS_SINCE = 2
INELIGIBLE_SINCE = 2
ISR_WITH_EPOCHS_SINCE = 3

TopicData = AlterPartitionResponse.TopicData
PartitionData = AlterPartitionResponse.PartitionData

needs = (Need(CLUSTER_ACTION, CLUSTER),)


def handle(broker: Broker, request: AlterPartitionRequest, context: Context) -> Any:
    return begun(ask(broker, request, context))


def ask(broker: Broker, request: AlterPartitionRequest, context: Context) -> Work:
    assert broker.cluster is not None
    changes: dict[Key, Leadership] = {}
    names = {}
    for topic in request.topics:
        name = named(broker, topic, context.version)
        names[topic.topic_id, topic.topic_name] = name
        if name is None:
            continue
        for some in chunks(topic.partitions):
            for each in some:
                changes[name, each.partition_index] = wanted(request.broker_id, each, context.version)
            yield
    context.defer()
    code = (
        errors.INELIGIBLE_REPLICA if context.version >= INELIGIBLE_SINCE else errors.OPERATION_NOT_ATTEMPTED
    )
    broker.cluster.controlling.ask(
        AlterPartition,
        lambda outcome: broker.dispatcher.give(context, begun(answer(request, names, outcome))),
        request.broker_id,
        request.broker_epoch,
        changes,
        code,
    )
    return context


def named(broker: Broker, topic: Any, version: int) -> str | None:
    """The topic's name; None: nobody knows of it."""
    if version < TOPIC_IDS_SINCE:
        name: str = topic.topic_name
        return name
    known = broker.image.topics_by_id.get(topic.topic_id)
    return known.name if known is not None else None


def wanted(leader: int, asked: Any, version: int) -> Leadership:
    isr = (
        tuple(each.broker_id for each in asked.new_isr_with_epochs)
        if version >= ISR_WITH_EPOCHS_SINCE
        else tuple(asked.new_isr)
    )
    return Leadership(leader, asked.leader_epoch, isr, asked.leader_recovery_state, asked.partition_epoch)


def answer(request: AlterPartitionRequest, names: dict[Any, str | None], outcome: Any) -> Work:
    """`outcome`: an error of the whole, or for each partition an error or what holds now."""
    if isinstance(outcome, int):
        return AlterPartitionResponse(error_code=outcome)
    topics = []
    for topic in request.topics:
        name = names[topic.topic_id, topic.topic_name]
        rows: list[Any] = []
        for some in chunks(topic.partitions):
            for each in some:
                index = each.partition_index
                rows.append(row(index, errors.UNKNOWN_TOPIC_ID if name is None else outcome[name, index]))
            yield
        topics.append(TopicData(topic_name=topic.topic_name, topic_id=topic.topic_id, partitions=rows))
    return AlterPartitionResponse(topics=topics)


def row(index: int, outcome: int | Leadership) -> Any:
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
