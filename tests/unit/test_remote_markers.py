"""End markers for partitions that other brokers lead: who is asked for which, together with what, and what is told."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from pykafkad import errors
from pykafkad.cluster.markers import Marker
from pykafkad.cluster.zookeeper import remote_markers
from pykafkad.messages import WriteTxnMarkersResponse
from tests.unit.cluster_kit import ClusterDesk, known, state, topic_known
from tests.unit.peers_kit import FakePeers, Sent

COMMIT = Marker(producer_id=7, producer_epoch=1, coordinator_epoch=3, committed=True, transaction_version=0)
Partition = tuple[str, int]
Codes = dict[Partition, int]
MINE, YOURS, THEIRS, NOBODYS = (("orders", index) for index in range(4))


class Desk(ClusterDesk):
    """Broker 0. The partitions of `orders` are led by brokers 0, 1, 2 and by none."""

    def __init__(self, directory: Path) -> None:
        super().__init__(directory)
        self.peers = FakePeers()
        self.parts.peers = self.peers  # type: ignore[attr-defined]
        states = [known(index, leader) for index, leader in enumerate([0, 1, 2, -1])]
        self.live(0, 1, 2, topic_states=[topic_known(*states)])
        self.lead_and_follow(state(0, 0, isr=[0]))

    def write(self, *partitions: Partition, marker: Marker = COMMIT) -> list[Codes]:
        """What is told, if it is told by and by."""
        told: list[Codes] = []
        self.ending_markers.write(marker, partitions, told.append)
        self.run()
        return told

    def run(self) -> None:
        self.end_pass()
        for _ in range(10):
            self.advance(0)
            self.end_pass()

    def answer(self, sent: Sent, code: int | None) -> None:
        """The same code for all that was asked."""
        kind = WriteTxnMarkersResponse
        rows = [
            kind.WritableTxnMarkerResult(
                producer_id=marker.producer_id,
                topics=[
                    kind.WritableTxnMarkerTopicResult(
                        name=topic.name,
                        partitions=[
                            kind.WritableTxnMarkerPartitionResult(partition_index=index, error_code=code)
                            for index in topic.partition_indexes
                        ],
                    )
                    for topic in marker.topics
                ],
            )
            for marker in sent.request.markers
            if code is not None
        ]
        sent.done(kind(markers=rows))
        self.run()


@pytest.fixture
def desk(tmp_path: Path) -> Any:
    desk = Desk(tmp_path)
    yield desk
    desk.storage.close()


def asked(sent: Sent) -> list[tuple[int, list[Partition]]]:
    """Producers, and the partitions that they are to end in."""
    return [
        (
            marker.producer_id,
            [(topic.name, index) for topic in marker.topics for index in topic.partition_indexes],
        )
        for marker in sent.request.markers
    ]


def test_each_leader_is_asked_for_its_partitions(desk: Desk) -> None:
    told = desk.write(MINE, YOURS, THEIRS)
    first, second = desk.peers.take(), desk.peers.take()
    assert [(each.broker_id, each.version, asked(each)) for each in (first, second)] == [
        (1, 1, [(7, [YOURS])]),
        (2, 1, [(7, [THEIRS])]),
    ]
    assert first.purpose.client_id == "broker-0-txn-marker-sender" and not first.purpose.asks_versions
    (marker,) = first.request.markers
    assert (marker.producer_epoch, marker.coordinator_epoch, marker.transaction_result) == (1, 3, True)
    desk.answer(first, errors.NONE)
    assert told == [], "one is not answered yet"
    desk.answer(second, errors.NONE)
    assert told == [dict.fromkeys((MINE, YOURS, THEIRS), errors.NONE)]
    assert desk.replicas.table["orders", 0].log_end_offset == 1


def test_the_request_is_one_that_its_version_can_hold(desk: Desk) -> None:
    desk.write(YOURS, marker=COMMIT._replace(transaction_version=2))
    assert desk.peers.take().request.encode(1)


def test_a_partition_without_a_leader_is_asked_for_again(desk: Desk) -> None:
    assert desk.write(NOBODYS) == [{NOBODYS: errors.NOT_LEADER_OR_FOLLOWER}]
    assert not desk.peers.sent


def test_a_partition_that_does_not_exist_needs_no_marker(desk: Desk) -> None:
    gone: list[Partition] = [("orders", 4), ("nowhere", 0)]
    assert desk.write(*gone) == [dict.fromkeys(gone, errors.UNKNOWN_TOPIC_OR_PARTITION)]


def test_a_leader_that_has_not_heard_of_its_partition_is_asked_again(desk: Desk) -> None:
    """Else the transaction would hang there."""
    told = desk.write(YOURS)
    desk.answer(desk.peers.take(), errors.UNKNOWN_TOPIC_OR_PARTITION)
    assert told == [{YOURS: errors.NOT_LEADER_OR_FOLLOWER}]


@pytest.mark.parametrize("code", [errors.NOT_LEADER_OR_FOLLOWER, errors.TRANSACTION_COORDINATOR_FENCED])
def test_what_the_leader_says_is_told(desk: Desk, code: int) -> None:
    told = desk.write(YOURS)
    desk.answer(desk.peers.take(), code)
    assert told == [{YOURS: code}]


def test_what_is_not_answered_is_asked_for_again(desk: Desk) -> None:
    told = desk.write(YOURS)
    desk.peers.take().done(ConnectionError("gone"))
    desk.run()
    assert told == [{YOURS: errors.REQUEST_TIMED_OUT}]
    told = desk.write(YOURS)
    desk.answer(desk.peers.take(), None)
    assert told == [{YOURS: errors.REQUEST_TIMED_OUT}]


def test_nothing_to_end_is_told_as_well(desk: Desk) -> None:
    assert desk.write() == [{}]


def test_what_comes_while_a_broker_is_asked_goes_together(desk: Desk) -> None:
    tolds = [desk.write(YOURS, marker=COMMIT._replace(producer_id=id)) for id in (1, 2, 3)]
    first = desk.peers.take()
    assert asked(first) == [(1, [YOURS])] and not desk.peers.sent
    desk.answer(first, errors.NONE)
    second = desk.peers.take()
    assert asked(second) == [(2, [YOURS]), (3, [YOURS])]
    assert [len(told) for told in tolds] == [1, 0, 0]
    desk.answer(second, errors.NONE)
    assert tolds == [[{YOURS: errors.NONE}]] * 3 and not desk.peers.sent


def test_a_broker_that_does_not_answer_keeps_no_other_waiting(desk: Desk) -> None:
    desk.write(YOURS)
    assert desk.peers.take().broker_id == 1
    told = desk.write(THEIRS)
    desk.answer(desk.peers.take(), errors.NONE)
    assert told == [{THEIRS: errors.NONE}]


def test_two_markers_of_a_producer_are_never_in_one_request(desk: Desk) -> None:
    for _ in range(3):
        desk.write(YOURS)
    for left in (2, 1, 0):
        sent = desk.peers.take()
        assert asked(sent) == [(7, [YOURS])]
        desk.answer(sent, errors.NONE)
        assert len(desk.peers.sent) == min(left, 1)


def test_many_partitions_are_asked_for_in_several_requests(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(remote_markers, "PARTITIONS_IN_A_REQUEST", 2)
    desk.live(
        0,
        1,
        topic_states=[
            topic_known(*[known(index, 1) for index in range(5)], topic="wide", topic_id=b"w" * 16)
        ],
    )
    wide: list[Partition] = [("wide", index) for index in range(5)]
    told = desk.write(*wide)
    found: list[Partition] = []
    while desk.peers.sent:
        sent = desk.peers.take()
        ((_, some),) = asked(sent)
        assert len(some) <= 2
        found += some
        desk.answer(sent, errors.NONE)
    assert found == wide and told == [dict.fromkeys(wide, errors.NONE)]


def test_a_single_node_writes_its_own_markers(tmp_path: Path) -> None:
    from tests.unit.data_kit import Desk as SingleDesk

    desk = SingleDesk(tmp_path)
    assert desk.ending_markers is desk.markers and desk.takes_part is desk.transaction_coordinator
    desk.storage.close()
