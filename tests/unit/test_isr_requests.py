"""AlterPartition: what leaders want is asked of the controller, one request at a time."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import pytest

from pykafkad import errors
from pykafkad.messages import AlterPartitionResponse
from pykafkad.pure.replication import Leadership
from pykafkad.quiet import always
from pykafkad.replication.isr import IsrChanges
from tests.unit.peers_kit import FakePeers

TopicData, PartitionData = AlterPartitionResponse.TopicData, AlterPartitionResponse.PartitionData
ID = b"i" * 16


class Replica:
    """What is asked of a leader's replica."""

    def __init__(self, index: int, epoch: int = 5) -> None:
        self.topic, self.index, self.name = "t", index, f"t-{index}"
        self.log = SimpleNamespace(topic_id=ID)
        self.leadership: Leadership | None = Leadership(0, epoch, 0, [0, 1, 2], [0, 1, 2], partition_epoch=7)
        self.told: list[Any] = []

    def wants(self, *isr: int) -> frozenset[int]:
        assert self.leadership is not None
        self.leadership.ask_for(isr, 0)
        return frozenset(isr)

    def isr_confirmed(self, epoch: int, isr: list[int], partition_epoch: int) -> None:
        self.told.append((epoch, isr, partition_epoch))

    def isr_refused(self, epoch: int) -> None:
        self.told.append(epoch)


class Office:
    """The asker, on a loop that the test runs."""

    def __init__(self) -> None:
        self.peers = FakePeers()
        self.soon: list[Any] = []
        self.later: list[tuple[int, Any]] = []
        self.controller = 9
        quiet = SimpleNamespace(allows=always)
        self.isr = IsrChanges(
            3, cast(Any, self), cast(Any, self.peers), cast(Any, quiet), lambda: self.controller, lambda: 44
        )

    def call_soon(self, callback: Any) -> None:
        self.soon.append(callback)

    def call_later(self, delay_ms: int, callback: Any) -> Any:
        entry = delay_ms, callback
        self.later.append(entry)
        return SimpleNamespace(cancel=lambda: self.later.remove(entry))

    def run(self) -> None:
        while self.soon:
            self.soon.pop(0)()

    def wait(self) -> None:
        ((delay_ms, callback),) = self.later
        assert delay_ms == 50
        self.later.clear()
        callback()
        self.run()

    def wanted(self, replica: Replica, *isr: int) -> None:
        self.isr.alter(cast(Any, replica), replica.wants(*isr))
        self.run()

    def asked(self) -> list[tuple[int, int, list[int], int]]:
        """Of the oldest request: partition, leader epoch, ISR, partition epoch."""
        self.sent = self.peers.take()
        assert self.sent.request.broker_id == 3 and self.sent.request.broker_epoch == 44
        (topic,) = self.sent.request.topics
        assert topic.topic_id == ID and topic.topic_name == "t"
        for each in topic.partitions:
            assert each.leader_recovery_state == 0
            assert {member.broker_epoch for member in each.new_isr_with_epochs} == {-1}
        return [
            (
                each.partition_index,
                each.leader_epoch,
                [member.broker_id for member in each.new_isr_with_epochs],
                each.partition_epoch,
            )
            for each in topic.partitions
        ]

    def answers(self, *rows: Any, error: int = 0) -> None:
        topics = [TopicData(topic_id=ID, partitions=list(rows))]
        self.sent.done(AlterPartitionResponse(error_code=error, topics=topics))
        self.run()


def refused(code: int, index: int = 0) -> Any:
    return PartitionData(partition_index=index, error_code=code)


@pytest.fixture
def office() -> Office:
    return Office()


def test_the_first_is_asked_for_at_once_and_the_rest_together(office: Office) -> None:
    one, two, three = (Replica(index) for index in range(3))
    office.wanted(one, 0, 1)
    office.wanted(two, 0, 2)
    office.wanted(three, 0)
    assert office.asked() == [(0, 5, [0, 1], 7)] and not office.peers.sent
    assert office.sent.broker_id == 9 and office.sent.version == 3
    assert office.sent.purpose.asks_versions and office.sent.purpose.client_id == "3"
    office.answers(PartitionData(partition_index=0, leader_epoch=5, isr=[0, 1], partition_epoch=8))
    assert one.told == [(5, [0, 1], 8)]
    assert office.asked() == [(1, 5, [0, 2], 7), (2, 5, [0], 7)]


@pytest.mark.parametrize("code", [errors.INELIGIBLE_REPLICA, errors.OPERATION_NOT_ATTEMPTED])
def test_who_is_going_down_is_not_waited_for(office: Office, code: int) -> None:
    one = Replica(0)
    office.wanted(one, 0, 1)
    office.asked()
    office.answers(refused(code))
    assert one.told == [5] and not office.peers.sent and not office.later


@pytest.mark.parametrize(
    "code",
    [
        errors.FENCED_LEADER_EPOCH,
        errors.INVALID_UPDATE_VERSION,
        errors.UNKNOWN_TOPIC_ID,
        errors.UNKNOWN_TOPIC_OR_PARTITION,
        errors.INVALID_REQUEST,
    ],
)
def test_where_the_controller_knows_better_the_leader_waits_for_its_word(office: Office, code: int) -> None:
    one = Replica(0)
    office.wanted(one, 0, 1)
    office.asked()
    office.answers(refused(code))
    assert one.told == [] and not office.peers.sent and not office.later
    assert one.leadership is not None and one.leadership.asked_for == frozenset({0, 1})


def test_any_other_error_of_a_partition_is_asked_again(office: Office) -> None:
    one = Replica(0)
    office.wanted(one, 0, 1)
    office.asked()
    office.answers(refused(errors.UNKNOWN_SERVER_ERROR))
    assert office.asked() == [(0, 5, [0, 1], 7)]
    office.answers()  # it says nothing of the partition
    assert office.asked() == [(0, 5, [0, 1], 7)]


@pytest.mark.parametrize("code", [errors.STALE_BROKER_EPOCH, errors.NOT_CONTROLLER])
def test_a_request_that_is_refused_as_a_whole_is_sent_again_after_a_moment(office: Office, code: int) -> None:
    one, two = Replica(0), Replica(1)
    office.wanted(one, 0, 1)
    office.asked()
    office.wanted(two, 0)
    office.answers(error=code)
    assert not office.peers.sent
    office.controller = 8
    office.wait()
    assert office.asked() == [(0, 5, [0, 1], 7), (1, 5, [0], 7)] and office.sent.broker_id == 8


def test_a_lost_connection_is_as_good_as_a_refusal(office: Office) -> None:
    office.wanted(Replica(0), 0, 1)
    office.asked()
    office.sent.done(ConnectionError("gone"))
    office.run()
    office.wait()
    assert office.asked() == [(0, 5, [0, 1], 7)]


def test_a_new_controller_is_asked_without_a_pause(office: Office) -> None:
    office.controller = -1
    office.wanted(Replica(0), 0, 1)
    assert not office.peers.sent and len(office.later) == 1
    office.controller = 8
    office.isr.controller_changed()
    office.run()
    assert office.asked() == [(0, 5, [0, 1], 7)] and not office.later


def test_what_is_no_longer_wanted_is_not_asked_for(office: Office) -> None:
    one, two, three = (Replica(index) for index in range(3))
    office.wanted(one, 0, 1)
    office.asked()
    office.wanted(two, 0, 1)
    office.wanted(three, 0, 1)
    two.leadership = None
    assert three.leadership is not None
    three.leadership.confirmed([0, 1, 2], 9, 0)
    one.leadership = Leadership(0, 6, 0, [0, 1], [0, 1])
    office.answers(PartitionData(partition_index=0, leader_epoch=5, isr=[0, 1], partition_epoch=8))
    assert one.told == [], "of an epoch that is over"
    assert not office.peers.sent


def test_an_older_controller_is_told_of_the_isr_alone(office: Office) -> None:
    one = Replica(0)
    one.wants(0, 1)
    office.isr._asked = {cast(Any, one): one.leadership}  # type: ignore[dict-item]
    (topic,) = office.isr._request(2).topics
    assert topic.partitions[0].new_isr == [0, 1] and topic.partitions[0].new_isr_with_epochs == []


def test_nothing_is_asked_after_the_end(office: Office) -> None:
    office.isr.close()
    office.wanted(Replica(0), 0, 1)
    assert not office.peers.sent
