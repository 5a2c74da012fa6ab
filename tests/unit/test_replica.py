"""One partition's replica: as leader and as follower, and who is told of what happens to it."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from pykafkad import errors
from pykafkad.clock import ManualClock
from pykafkad.cluster.replica import Replica, Tail
from pykafkad.cluster.replicas import Replicas
from pykafkad.errors import KafkaError
from pykafkad.storage.manager import LogManager
from tests.storage_kit import NOW_MS, TOPIC_ID, append, batch, broker_config, read_all, topic_config, values

CONFIG = topic_config(min_insync_replicas=2)
LAG_MS = 10_000


class Node:
    """A broker's logs and their replicas; whatever these tell is written down."""

    def __init__(self, path: Path) -> None:
        self.clock = ManualClock(NOW_MS)
        self.told: list[int] = []  # the high watermark, when those who wait were told
        self.asked: list[list[int]] = []  # ISRs
        config = broker_config(path, **{"replica.lag.time.max.ms": LAG_MS})
        self.replicas = Replicas(config, self.clock, self.advanced, self.alter_isr)
        self.logs = LogManager(config, self.clock, replicas=self.replicas)
        self.logs.open_all({}, lambda topic: CONFIG)
        self.logs.create("orders", 0, TOPIC_ID, CONFIG, 0)
        self.replica = self.replicas.table["orders", 0]
        self.replica.waiters = {"somebody": None}

    def advanced(self, replica: Any) -> None:
        self.told.append(replica.high_watermark)

    def alter_isr(self, replica: Replica, isr: frozenset[int]) -> None:
        self.asked.append(sorted(isr))

    def append(self, count: int = 1) -> None:
        append(self.replica.log, *(batch(b"v") for _ in range(count)))


@pytest.fixture
def node(tmp_path: Path) -> Iterator[Node]:
    node = Node(tmp_path)
    yield node
    node.logs.close()


def code(call: Any, *arguments: Any) -> int:
    with pytest.raises(KafkaError) as refused:
        call(*arguments)
    return refused.value.code


def test_alone_it_has_its_high_watermark_with_the_write(node: Node) -> None:
    node.append(2)
    assert node.replica.high_watermark == 2 and node.told == [2]
    assert node.replica.check_appended(2)


def test_a_leader_waits_for_those_in_sync(node: Node) -> None:
    replica = node.replica
    replica.become_leader(1, (1, 2, 3), (1, 2))
    node.told.clear()
    node.append(3)
    assert (replica.high_watermark, node.told) == (0, []) and not replica.check_appended(3)
    replica.follower_fetched(2, 2, 0)
    assert (replica.high_watermark, node.told) == (2, [2]) and not replica.check_appended(3)
    replica.follower_fetched(2, 3, 0)
    assert replica.check_appended(3) and replica.last_stable_offset == 3


def test_followers_that_wait_are_told_of_records_alone(node: Node) -> None:
    """What one of them has, and what that makes of the high watermark, is no news for another."""
    replica = node.replica
    replica.become_leader(1, (1, 2, 3), (1, 2, 3))
    for follower in (2, 3):
        replica.follower_fetched(follower, 0, 0)  # where their logs start is known then
    replica.tail = Tail(replica.name)
    told: list[Any] = []
    node.replicas.advanced = told.append
    node.append()
    assert told == [replica.tail]
    for follower in (2, 3):
        replica.follower_fetched(follower, 1, 0)
    assert replica.high_watermark == 1 and told == [replica.tail, replica]
    replica.become_follower(2, 2)
    assert told[2:] == [replica, replica.tail]


def test_a_follower_that_caught_up_is_asked_into_the_isr(node: Node) -> None:
    replica = node.replica
    replica.become_leader(1, (1, 2, 3), (1, 2))
    node.append(2)
    replica.follower_fetched(3, 0, 0)
    assert node.asked == [[1, 2, 3]], "nothing is acknowledged yet, and the epoch began at 0"
    replica.follower_fetched(2, 2, 0)
    assert replica.high_watermark == 0, "3 counts already"
    replica.isr_confirmed(1, (1, 2, 3), 1)
    replica.follower_fetched(3, 2, 0)
    assert replica.high_watermark == 2 and node.asked == [[1, 2, 3]]


def test_who_lags_is_out_and_then_too_few_are_left(node: Node) -> None:
    replica = node.replica
    replica.become_leader(1, (1, 2), (1, 2))
    node.append()
    node.clock.advance(LAG_MS)
    replica.check_isr()
    assert node.asked == []
    node.clock.advance(1)
    replica.check_isr()
    assert node.asked == [[1]] and not replica.may_refuse
    replica.isr_confirmed(1, (1,), 1)
    assert replica.may_refuse and code(replica.check_append, -1) == errors.NOT_ENOUGH_REPLICAS
    replica.check_append(1)
    assert replica.high_watermark == 0, "it stays while fewer are in sync than min.insync.replicas"
    replica.log.update_settings(node.logs.settings("orders", topic_config(min_insync_replicas=1)))
    assert replica.high_watermark == 1 and not replica.may_refuse


def test_too_few_are_left_when_the_high_watermark_is_there(node: Node) -> None:
    replica = node.replica
    replica.become_leader(1, (1, 2), (1, 2))
    node.append()
    replica.follower_fetched(2, 1, 0)
    replica.isr_confirmed(1, (1,), 1)
    assert code(replica.check_appended, 1) == errors.NOT_ENOUGH_REPLICAS_AFTER_APPEND


def test_what_the_controller_does_not_want_is_asked_for_again(node: Node) -> None:
    replica = node.replica
    replica.become_leader(1, (1, 2, 3), (1, 2))
    for _ in range(2):
        replica.follower_fetched(3, 0, 0)
        replica.isr_refused(1)
    assert node.asked == [[1, 2, 3]] * 2


def test_an_answer_to_an_earlier_leadership_says_nothing(node: Node) -> None:
    node.replica.become_leader(1, (1, 2), (1, 2))
    node.replica.become_leader(3, (1, 2), (1, 2))
    node.replica.isr_confirmed(1, (1,), 9)
    assert node.replica.leadership is not None and node.replica.leadership.isr == {1, 2}


def test_a_follower_follows_the_high_watermark_of_its_leader(node: Node, tmp_path: Path) -> None:
    (tmp_path / "other").mkdir()
    leader = Node(tmp_path / "other")
    leader.append(3)
    replica = node.replica
    replica.become_follower(1, 2)
    found = leader.replica.read(0, 1 << 20, limit_offset=leader.replica.written_offset, at_least_one=True)
    assert found is not None
    replica.append_fetched(found.read(), 2, 0, NOW_MS)
    assert replica.high_watermark == 0, "it is not written yet"
    node.logs.commit()
    assert (replica.high_watermark, replica.next_fetch) == (2, (3, 0))
    replica.append_fetched(b"", 3, 1, NOW_MS)
    assert (replica.high_watermark, replica.log_start_offset) == (3, 1)
    replica.append_fetched(b"", 99, 1, NOW_MS)
    assert replica.high_watermark == 3 and values(read_all(replica.log)) == [b"v", b"v"]
    leader.logs.close()


def test_those_who_wait_hear_of_another_leader(node: Node) -> None:
    node.replica.become_follower(1, 2)
    assert node.told == [0] and node.replica.may_refuse
    assert code(node.replica.check_append, 1) == errors.NOT_LEADER_OR_FOLLOWER
    assert code(node.replica.check_appended, 0) == errors.NOT_LEADER_OR_FOLLOWER


def test_a_new_leader_keeps_its_high_watermark_until_the_others_have_said_what_they_have(node: Node) -> None:
    replica = node.replica
    replica.become_leader(1, (1, 2), (1, 2))
    node.append(2)
    replica.follower_fetched(2, 1, 0)
    replica.become_leader(2, (1, 2), (1, 2))
    assert replica.high_watermark == 1
    replica.follower_fetched(2, 2, 0)
    assert replica.high_watermark == 2


def test_before_anything_is_said_nobody_leads(node: Node) -> None:
    replica = Replica(node.replica.log, node.replicas)
    assert (replica.leader_epoch, replica.leader_id, replica.leadership) == (-1, -1, None)
    assert replica.may_refuse and code(replica.check_append, 1) == errors.NOT_LEADER_OR_FOLLOWER


def test_leading_in_the_same_epoch_changes_nothing_and_in_another_begins_anew(node: Node) -> None:
    replica = node.replica
    before = replica.leadership
    replica.lead(0)
    assert replica.leadership is before
    replica.lead(1)
    assert replica.leadership is not before and replica.leader_epoch == 1
    replica.become_follower(1, 2)
    replica.lead(1)
    assert replica.leadership is not None and replica.leader_id == 1


def members(isr: tuple[int, ...], partition_epoch: int) -> Any:
    return SimpleNamespace(replicas=(1, 2, 3), isr=isr, partition_epoch=partition_epoch)


def test_the_members_that_the_metadata_names_count_and_later_ones_of_the_same_epoch_too(node: Node) -> None:
    replica = node.replica
    replica.lead(1, members((1, 2), 4))
    assert replica.leadership is not None and replica.leadership.isr == {1, 2}
    replica.lead(1, members((1, 2, 3), 4))
    assert replica.leadership.isr == {1, 2}, "what is no newer changes nothing"
    replica.lead(1, members((1,), 5))
    assert replica.leadership.isr == {1} and replica.leadership.partition_epoch == 5


def test_the_first_change_of_an_isr_follows_partition_epoch_0(node: Node) -> None:
    node.replica.become_leader(1, (1, 2), (1, 2))
    node.replica.isr_confirmed(1, (1,), 0)
    assert node.replica.leadership is not None and node.replica.leadership.isr == {1}


def test_who_was_about_to_join_and_stopped_asking_holds_nothing_up(node: Node) -> None:
    replica = node.replica
    replica.become_leader(1, (1, 2, 3), (1, 2))
    replica.follower_fetched(3, 0, 0)
    replica.isr_refused(1)
    node.append()
    replica.follower_fetched(2, 1, 0)
    assert replica.high_watermark == 0, "3 had all there was a moment ago"
    node.clock.advance(LAG_MS + 1)
    replica.check_isr()
    assert replica.high_watermark == 1 and node.asked == [[1, 2, 3]]


def test_what_a_leader_had_in_hand_counts_no_more_once_it_follows(node: Node) -> None:
    replica = node.replica
    replica.log.append(batch(b"v"), NOW_MS)
    replica.become_follower(1, 2)
    replica.log.commit()
    assert (replica.log_end_offset, replica.high_watermark) == (1, 0)


def test_what_handlers_ask_a_replica_is_its_logs(node: Node) -> None:
    replica, log = node.replica, node.replica.log
    node.append(2)
    assert replica.end_offset_for_epoch(0) == (0, 2) and replica.epoch_at(1) == 0
    assert replica.delete_records(1) == replica.log_start_offset == 1
    assert replica.log_directory is log.log_directory and replica.producers is log.producers
    assert repr(replica).startswith("Replica(orders-0, epoch 0, ")


def test_a_refused_change_lets_the_high_watermark_go_on_at_once(node: Node) -> None:
    replica = node.replica
    replica.become_leader(1, (1, 2, 3), (1, 2))
    replica.follower_fetched(3, 0, 0)
    node.append(2)
    node.clock.advance(LAG_MS + 1)
    replica.follower_fetched(2, 2, 0)
    assert replica.high_watermark == 0, "3 is about to join"
    replica.isr_refused(1)
    assert replica.high_watermark == 2


def test_a_log_is_only_cut_while_its_replica_follows_in_the_same_epoch(node: Node) -> None:
    replica = node.replica
    replica.become_follower(1, 2)
    still_follows = replica._still_follows()
    assert still_follows()
    replica.become_follower(2, 2)
    assert not still_follows()
    still_follows = replica._still_follows()
    replica.become_leader(2, (1, 2), (1, 2))
    assert not still_follows()


def test_what_was_cut_away_does_not_count_when_it_leads_again(node: Node) -> None:
    replica = node.replica
    replica.become_leader(1, (1, 2), (1, 2))
    node.append(3)
    replica.become_follower(2, 2)
    replica.cut_at(1, lambda error: None)
    replica.log.append(batch(b"w"), NOW_MS)
    replica.become_leader(3, (1,), (1,))
    assert replica.high_watermark == 1, "what comes after is not written yet"
    replica.log.commit()
    assert replica.high_watermark == 2


def test_an_empty_log_does_not_part_from_another(node: Node) -> None:
    assert node.replica.divergence(0, 0) is None
    assert node.replica.divergence(0, 1) == (0, 0)


def test_where_logs_part(node: Node) -> None:
    replica = node.replica
    node.append(2)
    replica.become_leader(4, (1, 2), (1,))
    node.append(2)
    assert replica.divergence(0, 2) is None and replica.divergence(4, 4) is None
    assert replica.divergence(0, 3) == (0, 2)
    assert replica.divergence(3, 2) == (0, 2)
    assert replica.divergence(4, 5) == (4, 4)
    for epoch, offset in ((5, 4), (-1, 0)):
        assert code(replica.divergence, epoch, offset) == errors.OFFSET_OUT_OF_RANGE


@pytest.mark.parametrize(
    ("answer", "left"),
    [((1, 1), 1), ((2, 9), 2), ((-1, -1), 1), ((0, 0), 0)],
    ids=["parted", "another epoch", "knows none", "knows only one before all of ours"],
)
def test_a_follower_is_cut_where_its_leader_says(answer: tuple[int, int], left: int, node: Node) -> None:
    replica = node.replica
    replica.become_leader(1, (1, 2), (1, 2))
    node.append(1)
    replica.follower_fetched(2, 1, 0)
    replica.become_leader(2, (1, 2), (1, 2))
    node.append(1)
    replica.become_leader(3, (1, 2), (1, 2))
    node.append(1)
    replica.become_follower(4, 2)
    told: list[KafkaError | None] = []
    replica.cut(*answer, told.append)
    assert told == [None] and replica.log_end_offset == left


def test_a_deleted_partition_has_no_replica_and_who_waits_is_told(node: Node) -> None:
    node.logs.delete("orders", 0)
    assert node.replicas.table == {} and len(node.told) == 1


def test_a_deleted_partition_is_freed_without_the_collector(node: Node) -> None:
    """What was there at the start the collector never looks at."""
    node.append()
    node.logs.save_new()
    node.logs.commit()
    left: list[Any] = [weakref.ref(node.replica.log), weakref.ref(node.replica)]
    gc.disable()
    try:
        node.logs.delete("orders", 0)
        del node.replica
        assert [each() for each in left] == [None, None]
    finally:
        gc.enable()
