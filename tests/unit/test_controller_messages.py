"""Intents of the controller as requests, in every version that an inter.broker.protocol.version stands for."""

from __future__ import annotations

from typing import Any

import pytest

from pykafkad import messages
from pykafkad.cluster.zookeeper import controller_messages as forms
from pykafkad.pure.controller.facts import RECOVERING, Assignment, Broker, Endpoint, Leadership
from pykafkad.pure.controller.intents import (
    LeaderAndIsr,
    PartitionNews,
    ReplicaOrder,
    ReplicaStop,
    Send,
    StopReplica,
    UpdateMetadata,
)
from pykafkad.slices import finish

VERSIONS = {  # LeaderAndIsr, UpdateMetadata, StopReplica, as Kafka 3.9 takes them
    "3.9-IV0": (7, 8, 4),
    "3.9": (7, 8, 4),
    "3.4-IV0": (7, 8, 4),
    "3.3": (6, 7, 3),
    "3.2-IV0": (6, 7, 3),
    "3.1": (5, 7, 3),
    "2.8-IV1": (5, 7, 3),
    "2.8-IV0": (4, 6, 3),
    "2.6": (4, 6, 3),
    "2.5": (4, 6, 2),
    "2.4-IV1": (4, 6, 2),
    "2.4-IV0": (3, 5, 1),
    "2.3": (2, 5, 1),
    "2.2-IV0": (2, 5, 1),
    "2.1": (1, 4, 0),
    "1.0": (1, 4, 0),
}
TOPIC_ID = bytes(range(16))
BROKER = Broker(
    2, 77, (Endpoint("CLIENT", "outside", 1, "SASL_SSL"), Endpoint("INTERNAL", "inside", 2, "PLAINTEXT")), "r"
)
LED = Leadership(2, 5, (2, 3), RECOVERING, 9, 4)
ORDER = ReplicaOrder(("t", 1), TOPIC_ID, LED, Assignment((2, 3, 4), (4,), (3,)), True)
BROKER_EPOCH_SINCE = {
    messages.LeaderAndIsrRequest: 2,
    messages.UpdateMetadataRequest: 5,
    messages.StopReplicaRequest: 1,
}
NEWS = PartitionNews(("t", 1), TOPIC_ID, LED, (2, 3, 4), (4,))


def sent(request: Any, protocol: str = "3.9-IV0") -> list[Any]:
    """What the wire brings the other side."""
    form = forms.forms_of(forms.protocol_of(protocol), "INTERNAL", None)
    result = []
    for part in forms.parts_of(Send(2, 77, 6, request), form):
        message, version = finish(forms.build(1, part, form))
        received = type(message).decode(message.encode(version), version)
        assert (received.controller_id, received.controller_epoch) == (1, 6)
        assert received.broker_epoch == (77 if version >= BROKER_EPOCH_SINCE[type(message)] else -1)
        result.append(received)
    return result


@pytest.mark.parametrize("protocol", VERSIONS)
def test_versions_are_those_of_the_protocol(protocol: str) -> None:
    form = forms.forms_of(forms.protocol_of(protocol), "INTERNAL", None)
    assert (form.leader_and_isr, form.update_metadata, form.stop_replica) == VERSIONS[protocol]
    assert (form.features.status, form.features.version) == ((1, 2) if protocol >= "2.8" else (0, 1))
    assert form.recovers is (protocol >= "3.2")


@pytest.mark.parametrize("text", ["", "3", "three", "3.9-IV", "3.9-4"])
def test_what_is_no_protocol_version_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="is not a valid version"):
        forms.protocol_of(text)


@pytest.mark.parametrize("protocol", VERSIONS)
def test_leader_and_isr(protocol: str) -> None:
    (request,) = sent(LeaderAndIsr((ORDER,), (BROKER,)), protocol)
    version = VERSIONS[protocol][0]
    if version < 2:
        (state,) = request.ungrouped_partition_states
        assert state.topic_name == "t"
    else:
        (topic,) = request.topic_states
        (state,) = topic.partition_states
        assert (topic.topic_name, topic.topic_id) == ("t", TOPIC_ID if version >= 5 else bytes(16))
    assert (state.partition_index, state.controller_epoch, state.partition_epoch) == (1, 4, 9)
    assert (state.leader, state.leader_epoch, state.isr, state.replicas) == (2, 5, [2, 3], [2, 3, 4])
    assert (state.adding_replicas, state.removing_replicas) == (([4], [3]) if version >= 3 else ([], []))
    assert (state.is_new, state.leader_recovery_state) == (True, 1 if version >= 6 else 0)
    (leader,) = request.live_leaders
    assert (leader.broker_id, leader.host_name, leader.port) == (2, "inside", 2)


@pytest.mark.parametrize("protocol", VERSIONS)
def test_update_metadata(protocol: str) -> None:
    (request,) = sent(UpdateMetadata((NEWS,), (BROKER,)), protocol)
    version = VERSIONS[protocol][1]
    if version < 5:
        (state,) = request.ungrouped_partition_states
        assert state.topic_name == "t"
    else:
        (topic,) = request.topic_states
        (state,) = topic.partition_states
        assert (topic.topic_name, topic.topic_id) == ("t", TOPIC_ID if version >= 7 else bytes(16))
    assert (state.leader, state.leader_epoch, state.zk_version) == (2, 5, 9)
    assert (state.replicas, state.offline_replicas) == ([2, 3, 4], [4])
    (broker,) = request.live_brokers
    assert (broker.id, broker.rack) == (2, "r")
    told = [(each.listener, each.host, each.port, each.security_protocol) for each in broker.endpoints]
    assert told == [("CLIENT", "outside", 1, 3), ("INTERNAL", "inside", 2, 0)]


STOPS = (ReplicaStop(("t", 1), 5, True), ReplicaStop(("t", 2), 5, False), ReplicaStop(("u", 0), -2, True))


def stopped(request: Any, version: int) -> list[tuple[str, int, bool]]:
    if version >= 3:
        return [
            (topic.topic_name, state.partition_index, state.delete_partition)
            for topic in request.topic_states
            for state in topic.partition_states
        ]
    if version >= 1:
        return [
            (topic.name, index, request.delete_partitions)
            for topic in request.topics
            for index in topic.partition_indexes
        ]
    return [
        (each.topic_name, each.partition_index, request.delete_partitions)
        for each in request.ungrouped_partitions
    ]


@pytest.mark.parametrize("protocol", VERSIONS)
def test_stop_replica(protocol: str) -> None:
    requests = sent(StopReplica(STOPS), protocol)
    version = VERSIONS[protocol][2]
    found = sorted(each for request in requests for each in stopped(request, version))
    assert found == [("t", 1, True), ("t", 2, False), ("u", 0, True)]
    # Old versions say for all of a request whether it deletes.
    assert len(requests) == (1 if version >= 3 else 2)


def test_no_second_request_where_all_are_deleted() -> None:
    assert len(sent(StopReplica(STOPS[:1]), "2.4-IV0")) == 1


def test_answers_to_orders_name_topics_by_id_or_by_name() -> None:
    response = messages.LeaderAndIsrResponse
    error = response.LeaderAndIsrPartitionError
    request = LeaderAndIsr((ORDER,), ())
    by_id = response(
        topics=[
            response.LeaderAndIsrTopicError(
                topic_id=TOPIC_ID, partition_errors=[error(partition_index=1, error_code=56)]
            ),
            response.LeaderAndIsrTopicError(
                topic_id=b"of another topic", partition_errors=[error(partition_index=1, error_code=56)]
            ),
        ]
    )
    assert forms.ordered(request, by_id) == {("t", 1): 56}
    by_name = response(partition_errors=[error(topic_name="t", partition_index=1, error_code=11)])
    assert forms.ordered(request, by_name) == {("t", 1): 11}
    strange = response(partition_errors=[error(topic_name="t", partition_index=2**31 - 1, error_code=56)])
    assert forms.ordered(request, strange) == {}  # nobody asked for that one


def test_answers_to_stops_count_where_something_was_to_be_deleted() -> None:
    response = messages.StopReplicaResponse
    errors = [
        response.StopReplicaPartitionError(topic_name="t", partition_index=index, error_code=code)
        for index, code in ((1, 0), (2, 74))
    ]
    request = StopReplica(STOPS)
    assert forms.deleted(request, response(partition_errors=errors)) == {("t", 1): 0}
    assert forms.deleted(request, response(error_code=77)) == {("t", 1): 77, ("u", 0): 77}
