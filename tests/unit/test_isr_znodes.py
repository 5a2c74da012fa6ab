"""Leaders of an older inter-broker protocol write their ISRs into ZooKeeper, and tell the controller of them."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import pytest

from pykafkad.clock import ManualClock
from pykafkad.pure.replication import Leadership
from pykafkad.replication.isr_znodes import IsrZnodes
from pykafkad.zookeeper import znodes
from pykafkad.zookeeper.client import Create, SetData
from pykafkad.zookeeper.znodes import PartitionState
from tests.zookeeper_kit import MemoryZooKeeper

STATE = PartitionState(leader=3, leader_epoch=5, isr=[3, 2, 1], controller_epoch=8, leader_recovery_state=1)


class Replica:
    def __init__(self, name: str = "t", epoch: int = 5) -> None:
        self.topic, self.index, self.name = name, 0, f"{name}-0"
        self.leadership: Leadership | None = Leadership(3, epoch, 0, [1, 2, 3], [1, 2, 3])
        self.told: list[Any] = []

    def isr_confirmed(self, epoch: int, isr: list[int], partition_epoch: int) -> None:
        self.told.append((epoch, list(isr), partition_epoch))
        if self.leadership is not None:
            self.leadership.confirmed(isr, partition_epoch, 0)


class Office:
    def __init__(self) -> None:
        self.server = MemoryZooKeeper()
        self.client = self.server.client()
        self.client.start()
        for name in ("t", "u"):
            for path in znodes.parents(znodes.state(name, 0))[:-1]:
                self.server.do(Create(path))
            self.server.do(Create(znodes.state(name, 0), znodes.write_state(STATE)))
        self.server.do(Create(znodes.ISR_CHANGES))
        self.clock = ManualClock()
        self.later: list[Any] = []
        loop = SimpleNamespace(call_later=lambda ms, call, *given: self.later.append((ms, call, given)))
        self.isr = IsrZnodes(3, cast(Any, loop), lambda: self.client, self.clock.monotonic_ms)

    def wants(self, replica: Replica, *isr: int) -> None:
        assert replica.leadership is not None
        replica.leadership.ask_for(isr, 0)
        self.isr.alter(cast(Any, replica), frozenset(isr))

    def state(self, name: str = "t") -> PartitionState:
        return znodes.read_state(self.server.data(znodes.state(name, 0)))

    def notices(self) -> list[Any]:
        tree = self.server.tree(znodes.ISR_CHANGES)
        return [znodes.read_partitions(data) for data in tree.values() if data]


@pytest.fixture
def office() -> Office:
    return Office()


def test_what_is_wanted_is_written_beside_what_the_controller_keeps(office: Office) -> None:
    replica = Replica()
    office.wants(replica, 1, 3)
    office.server.settle()
    assert office.state() == STATE._replace(isr=[3, 1], leader_recovery_state=0)
    assert replica.told == [(5, [3, 1], 1)]
    office.wants(replica, 1, 2, 3)
    office.server.settle()
    assert list(office.state().isr) == [3, 1, 2] and replica.told[-1] == (5, [3, 1, 2], 2)


def test_the_controller_is_told_of_all_of_them_at_once_when_it_is_quiet(office: Office) -> None:
    for name in ("t", "u"):
        office.wants(Replica(name), 3)
    office.server.settle()
    office.isr.tell()
    office.clock.advance(4_999)
    office.isr.tell()
    office.server.settle()
    assert office.notices() == []
    office.clock.advance(1)
    office.isr.tell()
    office.isr.tell()
    office.server.settle()
    assert office.notices() == [[("t", 0), ("u", 0)]]


def test_what_another_leader_or_the_controller_wrote_is_left(office: Office) -> None:
    replica = Replica()
    newer = STATE._replace(leader=2, leader_epoch=6)
    office.server.do(SetData(znodes.state("t", 0), znodes.write_state(newer)))
    office.wants(replica, 3)
    office.server.settle()
    assert office.state() == newer and replica.told == []
    assert replica.leadership is not None and replica.leadership.asked_for == frozenset({3}), (
        "until it hears of it"
    )


def test_a_write_whose_answer_was_lost_is_known_again(office: Office) -> None:
    replica = Replica()
    office.server.do(SetData(znodes.state("t", 0), znodes.write_state(STATE._replace(isr=[3]))))
    office.wants(replica, 3)
    office.server.settle()
    assert replica.told == [(5, [3], 1)] and not office.later


def test_a_version_that_has_gone_on_is_not_written_over(
    office: Office, monkeypatch: pytest.MonkeyPatch
) -> None:
    replica, write = Replica(), office.isr._write
    newer = STATE._replace(isr=[3, 2], leader_epoch=6)

    def write_late(*arguments: Any) -> None:
        """The controller has written between our reading and our writing."""
        office.server.do(SetData(znodes.state("t", 0), znodes.write_state(newer)))
        write(*arguments)

    monkeypatch.setattr(office.isr, "_write", write_late)
    office.wants(replica, 3)
    office.server.settle()
    assert office.state() == newer and replica.told == []


def test_a_lost_session_is_waited_for(office: Office) -> None:
    replica = Replica()
    office.server.settle()
    office.wants(replica, 3)
    office.client.expire()
    office.server.settle()
    ((delay_ms, call, given),) = office.later
    assert delay_ms == 1_000 and replica.told == []
    call(*given)
    office.server.settle()
    assert replica.told == [(5, [3], 1)]


def test_a_deleted_topic_and_a_lost_leadership_end_it(office: Office) -> None:
    gone, lost = Replica("gone"), Replica("t")
    office.wants(gone, 3)
    office.wants(lost, 3)
    lost.leadership = None
    office.server.settle()
    assert gone.told == lost.told == [] and not office.later
    office.isr.close()
    office.wants(Replica("u"), 3)
    office.server.settle()
    assert office.state("u") == STATE
