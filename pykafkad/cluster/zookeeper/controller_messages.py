"""A controller's intents as requests of the wire, in the versions that an inter.broker.protocol.version stands for.

A broker is never asked what it serves: the versions are the sender's, so that a cluster is upgraded by raising that
config last.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from pykafkad.messages import LeaderAndIsrRequest, StopReplicaRequest, UpdateMetadataRequest
from pykafkad.pure.controller.intents import LeaderAndIsr, StopReplica, UpdateMetadata
from pykafkad.slices import GO_ON, each
from pykafkad.uuids import ZERO
from pykafkad.zookeeper.znodes import SECURITY_PROTOCOLS, Features

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pykafkad.messages import LeaderAndIsrResponse, StopReplicaResponse
    from pykafkad.pure.controller.facts import Broker, Partition
    from pykafkad.pure.controller.intents import PartitionNews, ReplicaOrder, ReplicaStop, Send
    from pykafkad.slices import Work

    Built = LeaderAndIsrRequest | UpdateMetadataRequest | StopReplicaRequest

Protocol = tuple[int, int, int]  # major, minor, the number behind "IV"
LAST = 99  # a version without "IV" is the last of its name
# The first protocol version with each version of a request; the oldest that 3.9 knows has those of `OLDEST`.
LEADER_AND_ISR = {
    (3, 4, 0): 7,
    (3, 2, 0): 6,
    (2, 8, 1): 5,
    (2, 4, 1): 4,
    (2, 4, 0): 3,
    (2, 2, 0): 2,
    (1, 0, 0): 1,
}
UPDATE_METADATA = {(3, 4, 0): 8, (2, 8, 1): 7, (2, 4, 1): 6, (2, 2, 0): 5, (1, 0, 0): 4}
STOP_REPLICA = {(3, 4, 0): 4, (2, 6, 0): 3, (2, 4, 1): 2, (2, 2, 0): 1}
OLDEST: Protocol = (1, 0, 0)
FEATURES_SINCE: Protocol = (2, 7, 0)
RECOVERY_SINCE: Protocol = (3, 2, 0)

ORDERS_BY_TOPIC_SINCE, RECOVERY_ON_WIRE_SINCE = 2, 6  # of LeaderAndIsr
NEWS_BY_TOPIC_SINCE = 5  # of UpdateMetadata
STOPS_BY_TOPIC_SINCE, DELETION_BY_PARTITION_SINCE = 1, 3  # of StopReplica
NONE, DISABLED = 0, 0

Order = LeaderAndIsrRequest.LeaderAndIsrPartitionState
OrdersOfTopic = LeaderAndIsrRequest.LeaderAndIsrTopicState
Leader = LeaderAndIsrRequest.LeaderAndIsrLiveLeader
News = UpdateMetadataRequest.UpdateMetadataPartitionState
NewsOfTopic = UpdateMetadataRequest.UpdateMetadataTopicState
LiveBroker = UpdateMetadataRequest.UpdateMetadataBroker
LiveEndpoint = UpdateMetadataRequest.UpdateMetadataEndpoint
Stop = StopReplicaRequest.StopReplicaPartitionState
StopsOfTopic = StopReplicaRequest.StopReplicaTopicState
OldStop = StopReplicaRequest.StopReplicaPartitionV0
OldStopsOfTopic = StopReplicaRequest.StopReplicaTopicV1


def protocol_of(text: str) -> Protocol:
    """Of an inter.broker.protocol.version like 3.9-IV0, 2.8-IV1 or 2.6."""
    found = re.fullmatch(r"(\d+)\.(\d+)(?:\.\d+)*(?:-IV(\d+))?", text)
    if found is None:
        raise ValueError(f"Version `{text}` is not a valid version")
    major, minor, last = found.groups()
    return int(major), int(minor), LAST if last is None else int(last)


class Forms(NamedTuple):
    """What an inter-broker protocol version and the brokers' listeners make of intents and znodes."""

    leader_and_isr: int = 7
    update_metadata: int = 8
    stop_replica: int = 4
    features: Features = Features()  # what /feature is where there is none
    recovers: bool = True  # whether a leader that was elected uncleanly is told to recover
    inter_broker_listener: str = "PLAINTEXT"
    control_listener: str = "PLAINTEXT"

    @property
    def listeners(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys((self.inter_broker_listener, self.control_listener)))


def forms_of(protocol: Protocol, inter_broker_listener: str, control_listener: str | None = None) -> Forms:
    return Forms(
        newest(LEADER_AND_ISR, protocol),
        newest(UPDATE_METADATA, protocol),
        newest(STOP_REPLICA, protocol),
        Features() if protocol >= FEATURES_SINCE else Features(status=DISABLED, version=1),
        protocol >= RECOVERY_SINCE,
        inter_broker_listener,
        control_listener or inter_broker_listener,
    )


def newest(versions: Mapping[Protocol, int], protocol: Protocol) -> int:
    return next((version for since, version in versions.items() if protocol >= since), 0)


# -- requests


def parts_of(send: Send, forms: Forms) -> list[Send]:
    """Old versions of StopReplica say for all partitions together whether they are deleted."""
    request = send.request
    if not isinstance(request, StopReplica) or forms.stop_replica >= DELETION_BY_PARTITION_SINCE:
        return [send]
    parts = [tuple(one for one in request.partitions if one.delete is delete) for delete in (True, False)]
    return [send._replace(request=StopReplica(part)) for part in parts if part]


def build(node_id: int, send: Send, forms: Forms) -> Work[tuple[Built, int]]:
    """With its version."""
    request = send.request
    message: Built
    if isinstance(request, LeaderAndIsr):
        message, version = (yield from leader_and_isr(request, forms)), forms.leader_and_isr
    elif isinstance(request, UpdateMetadata):
        message, version = (yield from update_metadata(request, forms)), forms.update_metadata
    else:
        message, version = (yield from stop_replica(request, forms)), forms.stop_replica
    message.controller_id = node_id
    message.controller_epoch = send.controller_epoch
    message.broker_epoch = send.broker_epoch
    return message, version


def leader_and_isr(request: LeaderAndIsr, forms: Forms) -> Work[LeaderAndIsrRequest]:
    version = forms.leader_and_isr
    topics: dict[str, OrdersOfTopic] = {}
    alone: list[Order] = []
    for is_turn, order in each(request.partitions):
        if is_turn:
            yield GO_ON
        if version < ORDERS_BY_TOPIC_SINCE:
            alone.append(order_of(order, version))
            continue
        name = order.partition[0]
        if name not in topics:
            topics[name] = OrdersOfTopic(topic_name=name, topic_id=order.topic_id, partition_states=[])
        topics[name].partition_states.append(order_of(order, version))
    leaders = [leader_of(broker, forms.inter_broker_listener) for broker in request.leaders]
    return LeaderAndIsrRequest(
        ungrouped_partition_states=alone, topic_states=list(topics.values()), live_leaders=leaders
    )


def order_of(order: ReplicaOrder, version: int) -> Order:
    (name, index), _, leadership, assignment, is_new = order
    return Order(
        topic_name=name,
        partition_index=index,
        controller_epoch=leadership.controller_epoch,
        leader=leadership.leader,
        leader_epoch=leadership.leader_epoch,
        isr=list(leadership.isr),
        partition_epoch=leadership.partition_epoch,
        replicas=list(assignment.replicas),
        adding_replicas=list(assignment.adding),
        removing_replicas=list(assignment.removing),
        is_new=is_new,
        leader_recovery_state=leadership.recovery if version >= RECOVERY_ON_WIRE_SINCE else 0,
    )


def leader_of(broker: Broker, listener: str) -> Leader:
    endpoint = broker.endpoint(listener)
    assert endpoint is not None  # the store lets no other broker in
    return Leader(broker_id=broker.id, host_name=endpoint.host, port=endpoint.port)


def update_metadata(request: UpdateMetadata, forms: Forms) -> Work[UpdateMetadataRequest]:
    version = forms.update_metadata
    topics: dict[str, NewsOfTopic] = {}
    alone: list[News] = []
    for is_turn, news in each(request.partitions):
        if is_turn:
            yield GO_ON
        if version < NEWS_BY_TOPIC_SINCE:
            alone.append(news_of(news))
            continue
        name = news.partition[0]
        if name not in topics:
            topics[name] = NewsOfTopic(topic_name=name, topic_id=news.topic_id, partition_states=[])
        topics[name].partition_states.append(news_of(news))
    brokers = [live_broker(broker) for broker in request.brokers]
    return UpdateMetadataRequest(
        ungrouped_partition_states=alone, topic_states=list(topics.values()), live_brokers=brokers
    )


def news_of(news: PartitionNews) -> News:
    (name, index), _, leadership, replicas, offline = news
    return News(
        topic_name=name,
        partition_index=index,
        controller_epoch=leadership.controller_epoch,
        leader=leadership.leader,
        leader_epoch=leadership.leader_epoch,
        isr=list(leadership.isr),
        zk_version=leadership.partition_epoch,
        replicas=list(replicas),
        offline_replicas=list(offline),
    )


def live_broker(broker: Broker) -> LiveBroker:
    endpoints = [
        LiveEndpoint(
            host=endpoint.host,
            port=endpoint.port,
            listener=endpoint.listener,
            security_protocol=SECURITY_PROTOCOLS.index(endpoint.security_protocol),
        )
        for endpoint in broker.endpoints
    ]
    return LiveBroker(id=broker.id, endpoints=endpoints, rack=broker.rack)


def stop_replica(request: StopReplica, forms: Forms) -> Work[StopReplicaRequest]:
    stops: Sequence[ReplicaStop] = request.partitions
    yield GO_ON
    if forms.stop_replica >= DELETION_BY_PARTITION_SINCE:
        topics: dict[str, list[Stop]] = {}
        for (name, index), leader_epoch, delete in stops:
            topics.setdefault(name, []).append(
                Stop(partition_index=index, leader_epoch=leader_epoch, delete_partition=delete)
            )
        states = [StopsOfTopic(topic_name=name, partition_states=some) for name, some in topics.items()]
        return StopReplicaRequest(topic_states=states)
    delete = stops[0].delete
    if forms.stop_replica < STOPS_BY_TOPIC_SINCE:
        old = [OldStop(topic_name=stop.partition[0], partition_index=stop.partition[1]) for stop in stops]
        return StopReplicaRequest(delete_partitions=delete, ungrouped_partitions=old)
    indexes: dict[str, list[int]] = {}
    for stop in stops:
        indexes.setdefault(stop.partition[0], []).append(stop.partition[1])
    by_topic = [OldStopsOfTopic(name=name, partition_indexes=some) for name, some in indexes.items()]
    return StopReplicaRequest(delete_partitions=delete, topics=by_topic)


# -- answers


def ordered(request: LeaderAndIsr, answer: LeaderAndIsrResponse) -> dict[Partition, int]:
    """The error code of each partition in the answer to LeaderAndIsr, of those that were asked for."""
    wanted = {order.partition for order in request.partitions}
    names = {order.topic_id: order.partition[0] for order in request.partitions if order.topic_id != ZERO}
    codes = {(one.topic_name, one.partition_index): one.error_code for one in answer.partition_errors}
    for topic in answer.topics:
        if topic.topic_id in names:
            name = names[topic.topic_id]
            codes.update(((name, one.partition_index), one.error_code) for one in topic.partition_errors)
    return {partition: code for partition, code in codes.items() if partition in wanted}


def deleted(request: StopReplica, answer: StopReplicaResponse) -> dict[Partition, int]:
    """The error codes of those partitions that were to be deleted."""
    wanted = {stop.partition for stop in request.partitions if stop.delete}
    if answer.error_code != NONE:
        return dict.fromkeys(wanted, answer.error_code)
    codes = {(one.topic_name, one.partition_index): one.error_code for one in answer.partition_errors}
    return {partition: code for partition, code in codes.items() if partition in wanted}
