"""What a broker answers that is, or is not, the controller of a cluster on ZooKeeper."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, cast

import pytest

from pykafkad import errors, messages
from pykafkad.pure.controller import events
from pykafkad.pure.controller.facts import Assignment, Leadership
from tests.unit.cluster_kit import TOPIC_ID, ClusterDesk, known, topic_known

ELSEWHERE = errors.NOT_CONTROLLER
Request = messages.AlterPartitionRequest


class FakeControlling:
    """Answers at once with what a test wants, and keeps what it was asked."""

    def __init__(self) -> None:
        self.answer: Any = ELSEWHERE
        self.asked: list[Any] = []

    def ask(self, make: Callable[..., Any], done: Callable[[Any], object], *facts: Any) -> None:
        self.asked.append(make(events.Ticket(done), *facts))
        done(self.answer)


@pytest.fixture
def desk(tmp_path: Path) -> ClusterDesk:
    desk = ClusterDesk(tmp_path)
    cast(Any, desk.parts).controlling = FakeControlling()
    return desk


def controlling(desk: ClusterDesk) -> FakeControlling:
    return cast(FakeControlling, cast(Any, desk.parts).controlling)


def alter(version: int) -> Any:
    topic = Request.TopicData(topic_id=TOPIC_ID) if version >= 2 else Request.TopicData(topic_name="orders")
    partition = Request.PartitionData(partition_index=3, leader_epoch=5, partition_epoch=7)
    if version >= 1:
        partition.leader_recovery_state = 1
    if version >= 3:
        partition.new_isr_with_epochs = [Request.BrokerState(broker_id=each) for each in (1, 2)]
    else:
        partition.new_isr = [1, 2]
    topic.partitions = [partition]
    return Request(broker_id=1, broker_epoch=50, topics=[topic])


@pytest.mark.parametrize("version", range(4))
def test_alter_partition_asks_and_answers_in_each_version(desk: ClusterDesk, version: int) -> None:
    topic = TOPIC_ID if version >= 2 else "orders"
    found = Leadership(1, 5, (1, 2), 0, 8)
    controlling(desk).answer = {(topic, 3): found, (topic, 4): errors.FENCED_LEADER_EPOCH}
    answer = desk.ask(alter(version), version)
    event = controlling(desk).asked[0]
    assert (event.broker_id, event.broker_epoch) == (1, 50)
    assert event.changes == {(topic, 3): Leadership(1, 5, (1, 2), 1 if version else 0, 7)}
    ineligible = errors.INELIGIBLE_REPLICA if version >= 2 else errors.OPERATION_NOT_ATTEMPTED
    assert event.ineligible == ineligible
    assert answer.error_code == errors.NONE
    (topic_data,) = answer.topics
    assert (topic_data.topic_id if version >= 2 else topic_data.topic_name) == topic
    good, bad = topic_data.partitions
    assert (good.partition_index, good.error_code, good.leader_id, good.leader_epoch) == (3, 0, 1, 5)
    assert (good.isr, good.partition_epoch) == ([1, 2], 8)
    assert (bad.partition_index, bad.error_code) == (4, errors.FENCED_LEADER_EPOCH)


def test_alter_partition_is_refused_as_a_whole(desk: ClusterDesk) -> None:
    answer = desk.ask(alter(3), 3)
    assert (answer.error_code, answer.topics) == (ELSEWHERE, [])


def test_producer_ids(desk: ClusterDesk) -> None:
    request = messages.AllocateProducerIdsRequest(broker_id=2, broker_epoch=60)
    assert desk.ask(request, 0).error_code == ELSEWHERE
    controlling(desk).answer = (4_000, 1_000)
    answer = desk.ask(request, 0)
    assert (answer.error_code, answer.producer_id_start, answer.producer_id_len) == (0, 4_000, 1_000)
    event = controlling(desk).asked[0]
    assert (event.broker_id, event.broker_epoch) == (2, 60)


@pytest.mark.parametrize("version", [0, 1, 2, 3])
def test_controlled_shutdown(desk: ClusterDesk, version: int) -> None:
    request = messages.ControlledShutdownRequest(broker_id=2, broker_epoch=60 if version >= 2 else -1)
    assert desk.ask(request, version).error_code == errors.STALE_CONTROLLER_EPOCH
    controlling(desk).answer = [("orders", 3), ("other", 0)]
    answer = desk.ask(request, version)
    left = [(each.topic_name, each.partition_index) for each in answer.remaining_partitions]
    assert (answer.error_code, left) == (0, [("orders", 3), ("other", 0)])
    assert controlling(desk).asked[0].broker_epoch == (60 if version >= 2 else -1)


def reassign(*replicas: list[int] | None) -> Any:
    request = messages.AlterPartitionReassignmentsRequest
    partitions = [
        request.ReassignablePartition(partition_index=index, replicas=each)
        for index, each in enumerate(replicas)
    ]
    return request(topics=[request.ReassignableTopic(name="orders", partitions=partitions)], timeout_ms=1_000)


def test_reassignments_are_asked_for_and_cancelled(desk: ClusterDesk) -> None:
    wrong = (errors.INVALID_REPLICA_ASSIGNMENT, "no")
    controlling(desk).answer = {("orders", 0): (0, None), ("orders", 1): wrong}
    answer = desk.ask(reassign([1, 2], None), 0)
    assert controlling(desk).asked[0].targets == {("orders", 0): [1, 2], ("orders", 1): None}
    (topic,) = answer.responses
    found = [(each.partition_index, each.error_code, each.error_message) for each in topic.partitions]
    assert (topic.name, found) == ("orders", [(0, 0, None), (1, *wrong)])


def test_a_refusal_too_long_for_the_wire_fails_all(desk: ClusterDesk) -> None:
    controlling(desk).answer = {("orders", 0): (errors.INVALID_REPLICA_ASSIGNMENT, "x" * 40_000)}
    answer = desk.ask(reassign([1]), 0)
    assert (answer.error_code, answer.responses) == (errors.UNKNOWN_SERVER_ERROR, [])


def test_only_the_controller_reassigns(desk: ClusterDesk) -> None:
    assert desk.ask(reassign([1]), 0).error_code == ELSEWHERE
    assert desk.ask(messages.ListPartitionReassignmentsRequest(topics=None), 0).error_code == ELSEWHERE


def test_reassignments_under_way_are_listed(desk: ClusterDesk) -> None:
    controlling(desk).answer = {("orders", 1): Assignment((1, 2, 0), (2,), (0,))}
    request = messages.ListPartitionReassignmentsRequest
    asked = request.ListPartitionReassignmentsTopics(name="orders", partition_indexes=[1, 2])
    answer = desk.ask(request(topics=[asked]), 0)
    assert controlling(desk).asked[0].partitions == [("orders", 1), ("orders", 2)]
    (topic,) = answer.topics
    (partition,) = topic.partitions
    assert (topic.name, partition.partition_index, partition.replicas) == ("orders", 1, [1, 2, 0])
    assert (partition.adding_replicas, partition.removing_replicas) == ([2], [0])
    desk.ask(request(topics=None), 0)
    assert controlling(desk).asked[1].partitions is None


def elect(kind: int = 0, indexes: list[int] | None = None) -> Any:
    request = messages.ElectLeadersRequest
    topics = None if indexes is None else [request.TopicPartitions(topic="orders", partitions=indexes)]
    return request(election_type=kind, topic_partitions=topics, timeout_ms=1_000)


def results(answer: Any) -> dict[int, int]:
    return {
        each.partition_id: each.error_code
        for topic in answer.replica_election_results
        for each in topic.partition_result
    }


def test_an_election_is_answered_when_the_metadata_show_it(desk: ClusterDesk) -> None:
    desk.live(0, 1, topic_states=[topic_known(known(0, leader=1), known(1, leader=0))])
    controlling(desk).answer = {("orders", 0): 1, ("orders", 1): (errors.ELECTION_NOT_NEEDED, "no")}
    answer = desk.ask(elect(indexes=[0, 1]), 2)
    assert results(answer) == {0: errors.NONE, 1: errors.ELECTION_NOT_NEEDED}
    event = controlling(desk).asked[0]
    assert (event.partitions, event.is_unclean) == ([("orders", 0), ("orders", 1)], False)


def test_only_the_controller_elects(desk: ClusterDesk) -> None:
    answer = desk.ask(elect(1, [0]), 2)
    assert (answer.error_code, results(answer)) == (errors.NONE, {0: ELSEWHERE})
    assert controlling(desk).asked[0].is_unclean


def waited_for(desk: ClusterDesk, what: Callable[[], object] = lambda: None) -> Any:
    """The answer to an election whose leader the metadata do not show at first; `what` happens meanwhile."""
    desk.live(0, 1, topic_states=[topic_known(known(0, leader=0))])
    controlling(desk).answer = {("orders", 0): 1}
    given = desk.send(elect(indexes=[0]), 2)
    desk.end_pass()
    assert desk.answer_of(given, "ElectLeadersRequest", 2) is None
    what()
    for _ in range(300):
        desk.advance(5)
        desk.end_pass()
    return desk.answer_of(given, "ElectLeadersRequest", 2)


def test_an_election_waits_for_the_metadata(desk: ClusterDesk) -> None:
    def shown() -> None:
        desk.live(0, 1, topic_states=[topic_known(known(0, leader=1, epoch=1))])

    assert results(waited_for(desk, shown)) == {0: errors.NONE}


def test_an_election_that_the_metadata_do_not_show_in_time(desk: ClusterDesk) -> None:
    assert results(waited_for(desk)) == {0: errors.REQUEST_TIMED_OUT}
