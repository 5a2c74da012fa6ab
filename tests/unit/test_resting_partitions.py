"""Partitions that rest in a follower's fetch session: they are not read until there may be news, and none is missed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from pykafkad import errors
from tests.unit.cluster_kit import ClusterDesk, known, state, stopped, topic_known
from tests.unit.data_kit import batch, fetch, produce, values_of

VERSION, FOLLOWER, WAIT_MS = 12, 1, 500
LAG_MS = 10_000


class Leader(ClusterDesk):
    """Of partitions of one topic; broker 1 follows, and so far it has everything."""

    def __init__(self, path: Path, count: int) -> None:
        super().__init__(path, replica_lag_time_max_ms=str(LAG_MS))
        self.live(0, 1, 2)
        self.lead_and_follow(*(state(index, isr=[0, 1]) for index in range(count)))
        partitions = [known(index, isr=[0, 1]) for index in range(count)]
        self.live(0, 1, 2, topic_states=[topic_known(*partitions)])
        self.epoch = self.session_id = 0
        self.ends = dict.fromkeys(range(count), 0)
        self.fetch(*self.ends, wait_ms=0)
        self.fetch(wait_ms=0)

    def fetch(self, *named: int, wait_ms: int = WAIT_MS, **fields: Any) -> Any:
        """The partitions of the answer; None: it waits, and is `waits`."""
        rows = [{"partition": each, "fetch_offset": self.ends[each], "log_start_offset": 0} for each in named]
        request = fetch(
            "orders",
            *rows,
            replica_id=FOLLOWER,
            session_id=self.session_id,
            session_epoch=self.epoch,
            max_wait_ms=wait_ms,
            **fields,
        )
        self.waits = self.send(request, VERSION)
        return self.look()

    def look(self) -> Any:
        self.end_pass()
        for _ in range(20):
            self.advance(0)
            self.end_pass()
        answer = self.answer_of(self.waits, "FetchRequest", VERSION)
        if answer is None:
            return None
        assert answer.error_code == errors.NONE
        self.session_id, self.epoch = answer.session_id, self.epoch + 1
        return {row.partition_index: row for topic in answer.responses for row in topic.partitions}

    def append(self, index: int, value: bytes = b"x") -> None:
        request = produce("orders", index, batch(value))
        request.acks = 1
        assert self.ask(request, 9) is not None

    @property
    def read(self) -> set[int]:
        session = self.fetch_sessions.get(self.session_id)
        assert session is not None and len(session.followed()) == len(self.ends)
        return {each.index for each in session.partitions.values()}

    def isr(self, index: int) -> frozenset[int]:
        replica = self.replicas.table["orders", index]
        replica.check_isr()
        assert replica.leadership is not None
        return replica.leadership.asked_for or replica.leadership.isr


@pytest.fixture(params=[3, 200])
def leader(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Leader:
    found = Leader(tmp_path, request.param)
    found.replicas.alter_isr = lambda replica, isr: None
    return found


def test_what_a_follower_has_and_knows_is_not_read(leader: Leader) -> None:
    assert leader.read == set()
    leader.append(2)
    assert leader.read == {2}
    assert values_of(leader.fetch()[2]) == [b"x"]
    leader.ends[2] = 1
    assert leader.fetch(2) is None
    leader.advance(WAIT_MS)
    assert leader.look()[2].high_watermark == 1  # it is news, if none for which a wait would end
    assert leader.read == set()


def test_a_session_that_rests_waits_until_there_is_something(leader: Leader) -> None:
    assert leader.fetch() is None
    leader.append(1)
    found = leader.look()
    assert set(found) == {1} and values_of(found[1]) == [b"x"]


def test_a_session_that_rests_is_answered_in_time(leader: Leader) -> None:
    assert leader.fetch() is None
    leader.advance(WAIT_MS)
    assert leader.look() == {}


def test_several_are_stirred_in_one_pass(leader: Leader) -> None:
    assert leader.fetch() is None
    for index in leader.ends:
        request = produce("orders", index, batch(b"x"))
        request.acks = 1
        leader.send(request, 9)
    assert set(leader.look()) == set(leader.ends)


def test_another_start_of_the_log_is_news(leader: Leader) -> None:
    leader.append(0)
    leader.fetch()
    leader.ends[0] = 1
    leader.fetch(0, wait_ms=0)
    leader.fetch(wait_ms=0)  # which tells of the high watermark
    assert leader.fetch() is None and leader.read == set()
    leader.replicas.table["orders", 0].delete_records(1)
    assert leader.look()[0].log_start_offset == 1


def test_who_leads_is_news(leader: Leader) -> None:
    assert leader.fetch() is None
    leader.lead_and_follow(state(1, leader=2, epoch=1, is_new=False))
    assert leader.look()[1].error_code in (errors.NOT_LEADER_OR_FOLLOWER, errors.FENCED_LEADER_EPOCH)


def test_a_deletion_is_news(leader: Leader) -> None:
    assert leader.fetch() is None
    leader.stop(stopped(1, epoch=-2, delete=True))
    assert leader.look()[1].error_code == errors.NOT_LEADER_OR_FOLLOWER


def test_whoever_leaves_the_isr_is_looked_at(leader: Leader) -> None:
    leader.replicas.table["orders", 1].isr_confirmed(0, [0], 1)
    assert leader.read == {1}
    leader.fetch(wait_ms=0)
    assert leader.isr(1) == {0, 1} and leader.read == {1}  # its fetch asked for it to come back
    leader.replicas.table["orders", 1].isr_confirmed(0, [0, 1], 2)
    leader.fetch(wait_ms=0)
    assert leader.read == set()


@pytest.mark.parametrize("fetches", [True, False])
def test_whoever_fetches_is_in_sync_where_it_rests_too(leader: Leader, fetches: bool) -> None:
    for _ in range(5):
        leader.advance(LAG_MS // 4)
        if fetches:
            leader.fetch(wait_ms=0)
    assert leader.read == set()
    assert leader.isr(1) == {0, 1}  # it has everything
    leader.append(1)
    assert leader.isr(1) == ({0, 1} if fetches else {0})
    leader.advance(LAG_MS + 1)
    assert leader.isr(1) == {0}


def test_what_is_forgotten_is_not_stirred(leader: Leader) -> None:
    Forgotten = type(fetch("orders")).ForgottenTopic
    leader.fetch(wait_ms=0, forgotten_topics_data=[Forgotten(topic="orders", partitions=[1])])
    del leader.ends[1]
    leader.append(1)
    assert leader.read == set()


def test_a_new_session_takes_over(leader: Leader) -> None:
    old = leader.fetch_sessions.get(leader.session_id)
    assert old is not None
    leader.session_id = leader.epoch = 0
    leader.fetch(*leader.ends, wait_ms=0)
    leader.fetch(wait_ms=0)
    assert leader.read == set() and not old.resting
    leader.append(2)
    assert leader.read == {2}
