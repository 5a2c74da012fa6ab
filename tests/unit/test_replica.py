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
    node.replica.become_follower(1, 2)
    append(replica.log, batch(b"v"))
    replica.written(1)
    assert replica.high_watermark == 0


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
    node.logs.small_files.make()
    node.logs.commit()
    left: list[Any] = [weakref.ref(node.replica.log), weakref.ref(node.replica)]
    gc.disable()
    try:
        node.logs.delete("orders", 0)
        del node.replica
        assert [each() for each in left] == [None, None]
    finally:
        gc.enable()


def test_a_log_directory_that_fails_is_everybodys_answer(node: Node) -> None:
    replica, directory = node.replica, node.replica.log_directory
    node.append()
    assert replica.is_online and replica.is_writable
    assert replica.has_committed(1) and not replica.has_committed(2)
    directory.failure = "input/output error"
    assert not replica.is_online and not replica.is_writable
    for ask in (replica.has_committed, replica.check_appended):
        assert code(ask, 1) == errors.KAFKA_STORAGE_ERROR
    directory.failure = None
    replica.become_follower(1, 2)
    assert replica.is_online and not replica.is_writable and not replica.has_followers
    assert code(replica.append_built, b"", NOW_MS) == errors.NOT_LEADER_OR_FOLLOWER


def test_acks_1_is_answered_when_it_is_written_here(node: Node) -> None:
    replica = node.replica
    replica.become_leader(1, (1, 2), (1, 2))
    assert replica.has_followers
    replica.log.append(batch(b"v"), NOW_MS)
    assert not replica.check_appended(1, acks=1)
    replica.log.commit()
    assert replica.check_appended(1, acks=1) and not replica.check_appended(1)
    replica.isr_confirmed(1, (1,), 1)
    replica.check_append(1)
    assert replica.check_appended(1, acks=1) and not replica.check_appended(1), "it is not committed"


@pytest.mark.parametrize(("message", "segment", "most"), [(1_000, 2_000, 1_000), (2_000, 1_000, 1_000)])
def test_a_batch_is_no_larger_than_a_message_or_a_segment_may_be(
    node: Node, message: int, segment: int, most: int
) -> None:
    config = topic_config(max_message_bytes=message, segment_bytes=segment)
    node.replica.log.update_settings(node.logs.settings("orders", config))
    assert node.replica.batch_bytes_max == most


def test_the_lowest_start_of_those_that_live_is_told(node: Node) -> None:
    replica = node.replica
    node.append(5)
    replica.become_leader(1, (1, 2, 3), (1, 2))
    assert replica.low_watermark({1, 2}) == -1, "2 has not said yet"
    replica.follower_fetched(2, 5, 2)
    replica.follower_fetched(3, 0, 0)
    replica.delete_records(3)
    assert replica.low_watermark({1, 2}) == 2 and replica.low_watermark({1, 2, 3}) == 0
    assert replica.low_watermark({1}) == replica.log_start_offset == 3


def test_who_waits_for_deletions_hears_of_each_start_and_followers_of_the_leaders(node: Node) -> None:
    replica = node.replica
    node.append(3)
    replica.become_leader(1, (1, 2), (1, 2))
    replica.follower_fetched(2, 3, 0)
    told: list[Any] = []
    node.replicas.advanced = told.append
    replica.follower_fetched(2, 3, 0)
    assert told == []
    replica.follower_fetched(2, 3, 1)
    assert told == [replica]
    replica.delete_records(1)
    assert told == [replica], "no follower waits"
    replica.tail = Tail(replica.name)
    replica.delete_records(2)
    assert told == [replica, replica.tail]


def test_a_follower_joins_where_the_controller_would_have_it_and_it_is_one(node: Node) -> None:
    replica = node.replica
    replica.become_leader(1, (1, 2, 3), (1, 2))
    asked: list[tuple[int, int]] = []

    def may(broker_id: int, broker_epoch: int) -> bool:
        asked.append((broker_id, broker_epoch))
        return len(asked) > 1

    node.replicas.may_be_in_sync = may
    replica.follower_fetched(3, 0, 0, 7)
    assert (asked, node.asked) == ([(3, 7)], [])
    assert replica.leadership is not None and replica.leadership.followers[3].broker_epoch == 7
    replica.follower_fetched(3, 0, 0, 8)
    assert (asked, node.asked) == ([(3, 7), (3, 8)], [[1, 2, 3]])
    with pytest.raises(KeyError):
        replica.follower_fetched(9, 0, 0)


class Resting:
    """A fetch session, as far as a replica asks it."""

    def __init__(self, rests: bool = True) -> None:
        self.is_resting, self.last_used_ms = rests, 0
        self.waiters: dict[Any, None] = {}
        self.stirred: list[Any] = []

    def rest(self, followed: Any) -> bool:
        return self.is_resting

    def rests(self, followed: Any) -> bool:
        return self.is_resting

    def stir(self, followed: Any) -> None:
        self.stirred.append(followed)


def told(**changes: int) -> Any:
    """What a follower was told that has the two records there are."""
    known = {"fetch_offset": 2, "high_watermark": 2, "log_start_offset": 0, "current_leader_epoch": 1}
    return SimpleNamespace(**{**known, **changes})


def all_told(node: Node, session: Resting, followed: Any, follower: int = 2) -> bool:
    """Whether the partition rests in that session."""
    node.replica.let_rest(follower, session, followed)  # type: ignore[arg-type]
    return node.replica.tail is not None and follower in node.replica.tail.resting


@pytest.mark.parametrize(
    ("changes", "rests"),
    [
        ({}, True),
        ({"current_leader_epoch": -1}, True),
        ({"current_leader_epoch": 0}, False),
        ({"fetch_offset": 1}, False),
        ({"high_watermark": 1}, False),
        ({"log_start_offset": 1}, False),
        ({"log_start_offset": -1}, False),
    ],
)
def test_a_partition_rests_where_its_follower_has_all_and_knows_all(
    node: Node, changes: dict[str, int], rests: bool
) -> None:
    replica = node.replica
    replica.become_leader(1, (1, 2, 3), (1, 2))
    node.append(2)
    assert not all_told(node, Resting(), told()), "its last fetch did not say so"
    replica.follower_fetched(2, 2, 0)
    replica.isr_refused(1)
    assert all_told(node, Resting(), told(**changes)) == rests
    assert not all_told(node, Resting(), told(), follower=3), "it is not in sync"
    assert not all_told(node, Resting(rests=False), told(**changes)) or rests


@pytest.mark.parametrize(
    "news",
    [
        lambda node: node.append(),
        lambda node: node.replica.delete_records(1),
        lambda node: node.replica.become_follower(2, 2),
        lambda node: node.replica.become_leader(2, (1, 2), (1, 2)),
        lambda node: node.replica.assigned((1, 2, 3)),
        lambda node: node.replica.isr_confirmed(1, (1, 2), 5),
        lambda node: node.replica.isr_refused(1),
        lambda node: node.replica.follower_fetched(2, 2, 0),
        lambda node: node.logs.delete("orders", 0),
    ],
)
def test_whatever_may_be_news_stirs_a_partition_that_rests(node: Node, news: Any) -> None:
    replica = node.replica
    replica.become_leader(1, (1, 2), (1, 2))
    node.append(2)
    replica.follower_fetched(2, 2, 0)
    session, followed = Resting(), told()
    session.waiters = {"somebody": None}
    advanced: list[Any] = []
    assert all_told(node, session, followed)
    node.replicas.advanced = advanced.append
    news(node)
    assert session.stirred == [followed] and replica.tail is not None and not replica.tail.resting
    assert session in advanced or news.__code__.co_names[-1] == "follower_fetched"


def test_who_rests_is_in_sync_as_long_as_his_session_is_used(node: Node) -> None:
    replica = node.replica
    replica.become_leader(1, (1, 2), (1, 2))
    node.append(2)
    replica.follower_fetched(2, 2, 0)
    session = Resting()
    assert all_told(node, session, told())
    node.replicas.advanced = lambda each: None
    node.clock.advance(LAG_MS + 1)
    session.last_used_ms = node.replicas.now_ms()
    node.append()
    replica.check_isr()
    assert session.stirred and node.asked == []
    node.clock.advance(LAG_MS + 1)
    replica.check_isr()
    assert node.asked == [[1]]


def test_while_a_log_is_cut_nothing_is_fetched(node: Node) -> None:
    replica = node.replica
    node.append(3)
    replica.become_follower(1, 2)
    log, begun = replica.log, []
    fake: Any = SimpleNamespace(
        log_end_offset=1,
        truncate=lambda offset, wanted, done: begun.append((offset, done)),
        start_anew=lambda offset, wanted, done: begun.append((offset, done)),
    )
    for begin in (replica.cut_at, replica.start_anew):
        ended: list[Any] = []
        replica.log = fake
        begin(7, ended.append)
        assert not replica.is_ready and ended == []
        (at, done) = begun.pop()
        done(None)
        assert at == 7 and replica.is_ready and ended == [None] and replica.is_settled
        replica.log = log


def test_what_was_fetched_is_settled_when_it_is_written(node: Node) -> None:
    replica = node.replica
    replica.become_follower(1, 2)
    data = records_of(b"a", b"b")
    replica.append_fetched(data, 0, 0, NOW_MS)
    assert not replica.is_settled and replica.next_fetch == (2, 1)
    node.logs.commit()
    assert replica.is_settled


def records_of(*keys: bytes) -> bytes:
    from pykafkad.hot import records

    return records.build([(None, key, [], NOW_MS) for key in keys], base_offset=0, leader_epoch=1)


def test_another_assignment_of_the_same_epoch_counts_at_once(node: Node) -> None:
    replica = node.replica
    replica.become_leader(1, (1, 2), (1, 2))
    node.append()
    replica.follower_fetched(2, 1, 0)
    assert replica.high_watermark == 1
    replica.assigned((1, 2, 3))
    leadership = replica.leadership
    assert leadership is not None and leadership.followers.keys() == {2, 3}
    assert leadership.followers[2].end_offset == 1
    replica.assigned((1,))
    assert not replica.has_followers
    replica.become_follower(2, 2)
    replica.assigned((1, 2))
    assert replica.leadership is None


def test_whoever_made_promises_hears_that_it_resigned(node: Node) -> None:
    resigned: list[Any] = []
    node.replicas.resigned = resigned.append
    node.replica.become_leader(1, (1, 2), (1, 2))
    assert resigned == []
    node.replica.become_follower(2, 2)
    assert resigned == [node.replica] and (node.replica.leader_epoch, node.replica.leader_id) == (2, 2)
