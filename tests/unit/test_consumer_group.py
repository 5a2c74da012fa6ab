"""Consumer groups: joining, heartbeats, epochs, reconciliation, leaving. Time is moved."""

from __future__ import annotations

from typing import Any

import pytest

from pykafkad import errors, messages
from pykafkad.pure.groups import records
from pykafkad.slices import finish
from tests.consumer_kit import REBALANCE_MS, Consumer, ConsumerRoom, settle_all
from tests.group_kit import GROUP


@pytest.fixture
def room() -> ConsumerRoom:
    return ConsumerRoom("t", "u")


# -- joining


def test_the_first_member_gets_everything_at_once(room: ConsumerRoom) -> None:
    answer = room.enter_consumer("a").answer
    assert (answer.member_id, answer.member_epoch, answer.heartbeat_interval_ms) == ("a", 2, 5_000)
    assert room.named(answer) == {"t": [0, 1, 2]}
    group = room.group()
    assert (group.epoch, group.target_epoch, group.state_name) == (2, 2, "Stable")


def test_a_member_of_version_0_is_given_its_id(room: ConsumerRoom) -> None:
    assert room.enter_consumer("", version=0).answer.member_id == "id1"


def test_what_is_left_out_stays_as_it_was(room: ConsumerRoom) -> None:
    room.enter_consumer("a", rack_id="r1", server_assignor="range")
    answer = room.beat("a", 2).answer
    assert (answer.error_code, answer.member_epoch, answer.assignment) == (0, 2, None)
    member = room.group().members["a"]
    assert (member.rack_id, member.assignor, member.topic_names) == ("r1", "range", {"t"})


def test_a_heartbeat_that_changes_nothing_writes_nothing(room: ConsumerRoom) -> None:
    room.enter_consumer("a")
    written = len(room.log)
    room.beat("a", 2)
    assert len(room.log) == written


def test_a_heartbeat_that_tells_everything_is_told_everything(room: ConsumerRoom) -> None:
    room.enter_consumer("a")
    answer = room.beat("a", 2, topics=["t"], rebalance_timeout_ms=60_000, owned={"t": [0, 1, 2]}).answer
    assert room.named(answer) == {"t": [0, 1, 2]}


def test_a_subscription_to_nothing_moves_no_epoch(room: ConsumerRoom) -> None:
    answer = room.enter_consumer("a", topics=[]).answer
    assert (answer.member_epoch, room.named(answer)) == (1, {})
    assert room.group().epoch == 1


def test_topics_that_do_not_exist_are_waited_for(room: ConsumerRoom) -> None:
    consumer = Consumer(room, "a", topics=["later"])
    settle_all(consumer)
    assert consumer.owned == {}
    room.topics.create("later", 2)
    settle_all(consumer)
    assert consumer.owned == {"later": [0, 1]}


@pytest.mark.parametrize("assignor", ["uniform", "range"])
def test_members_share_without_having_anything_twice(room: ConsumerRoom, assignor: str) -> None:
    first = Consumer(room, "a", server_assignor=assignor)
    first.beat()
    second = Consumer(room, "b", server_assignor=assignor)
    assert second.beat().member_epoch == 3
    assert second.owned == {}  # the first member has not revoked it yet
    assert room.group().state_name == "Reconciling"
    settle_all(first, second)
    assert sorted(first.owned["t"] + second.owned["t"]) == [0, 1, 2]
    assert len(second.owned["t"]) == 1
    assert room.group().state_name == "Stable"


def test_giving_up_takes_an_acknowledgement(room: ConsumerRoom) -> None:
    first, second = Consumer(room, "a"), Consumer(room, "b")
    first.beat()
    second.beat()
    kept = dict(first.owned)
    answer = first.beat()
    assert answer.member_epoch == 2  # in the old epoch while it has partitions to revoke
    assert len(first.owned["t"]) == 2
    # The client has not revoked anything: it still reports all partitions.
    assert room.beat("a", 2, owned=kept).answer.member_epoch == 2
    assert second.beat().error_code == 0 and second.owned == {}
    assert first.beat().member_epoch == 3
    second.beat()
    assert len(second.owned["t"]) == 1


def test_a_full_group_takes_nobody_in(room: ConsumerRoom) -> None:
    room.settings.consumer_max_size = 1
    room.enter_consumer("a")
    answer = room.enter_consumer("b").answer
    assert answer.error_code == errors.GROUP_MAX_SIZE_REACHED
    assert answer.error_message == "The consumer group has reached its maximum capacity of 1 members."
    assert room.enter_consumer("a").code == 0


# -- epochs


def test_an_unknown_group_or_member_is_refused(room: ConsumerRoom) -> None:
    answer = room.beat("a", 1).answer
    assert (answer.error_code, answer.error_message) == (
        errors.GROUP_ID_NOT_FOUND,
        "Consumer group group not found.",
    )
    assert room.beat("a", -1).answer.error_message == "Group group not found."
    room.enter_consumer("a")
    answer = room.beat("b", 1).answer
    assert (answer.error_code, answer.error_message) == (
        errors.UNKNOWN_MEMBER_ID,
        "Member b is not a member of group group.",
    )


@pytest.mark.parametrize(("epoch", "word"), [(3, "greater"), (1, "smaller")])
def test_a_wrong_epoch_is_fenced(room: ConsumerRoom, epoch: int, word: str) -> None:
    room.enter_consumer("a")
    answer = room.beat("a", epoch).answer
    assert answer.error_code == errors.FENCED_MEMBER_EPOCH
    assert answer.error_message == (
        f"The consumer group member has a {word} member epoch ({epoch}) than the one known by the group coordinator"
        " (2). The member must abandon all its partitions and rejoin."
    )


def test_the_epoch_before_is_right_when_the_answer_may_be_lost(room: ConsumerRoom) -> None:
    room.enter_consumer("a")
    assert room.beat("a", 2, topics=["t", "u"], owned={"t": [0, 1, 2]}).answer.member_epoch == 3
    assert room.beat("a", 2).code == errors.FENCED_MEMBER_EPOCH  # it does not report its partitions
    assert room.beat("a", 2, owned={"t": [0, 1, 2]}).answer.member_epoch == 3
    room.topics.create("v")
    assert room.beat("a", 2, owned={"v": [0]}).code == errors.FENCED_MEMBER_EPOCH  # impossible ones


def test_epoch_0_joins_again_and_keeps_what_was_given(room: ConsumerRoom) -> None:
    room.enter_consumer("a")
    answer = room.enter_consumer("a").answer
    assert (answer.member_epoch, room.named(answer)) == (2, {"t": [0, 1, 2]})


# -- changes


def test_another_subscription_is_followed(room: ConsumerRoom) -> None:
    first, second = Consumer(room, "a", topics=["t", "u"]), Consumer(room, "b", topics=["t", "u"])
    settle_all(first, second)
    assert sum(map(len, first.owned.values())) == 3
    first.beat(topics=["u"])
    settle_all(first, second)
    assert "t" not in first.owned and second.owned["t"] == [0, 1, 2]


def test_a_topic_nobody_wants_any_more_is_taken_away_before_there_is_a_new_target() -> None:
    room = ConsumerRoom("t", "u", consumer_assignment_interval_ms=1_000)
    room.advance(1)
    room.enter_consumer("a", topics=["t", "u"])
    answer = room.beat("a", 2, topics=["u"], owned={"t": [0, 1, 2], "u": [0, 1, 2]}).answer
    assert (answer.member_epoch, room.named(answer)) == (2, {"u": [0, 1, 2]})
    assert room.group().epoch == 3 and room.group().target_epoch == 2


def test_what_is_taken_away_is_nobody_elses_before_it_is_given_up() -> None:
    room = ConsumerRoom("t", "u", consumer_assignment_interval_ms=1_000)
    room.advance(1)
    room.enter_consumer("a", topics=["t", "u"])
    room.beat("a", 2, topics=["u"], owned={"t": [0, 1, 2], "u": [0, 1, 2]})
    room.advance(1_000)
    answer = room.enter_consumer("b", topics=["t"]).answer
    room.advance(1_000)
    answer = room.beat("b", answer.member_epoch, owned={}).answer
    assert room.named(answer) in (None, {})
    assert room.group().members["a"].revoking
    answer = room.beat("a", 2, owned={"u": [0, 1, 2]}).answer
    answer = room.beat("b", room.group().members["b"].epoch, owned={}).answer
    assert room.named(answer) == {"t": [0, 1, 2]}


def test_targets_are_an_interval_apart() -> None:
    room = ConsumerRoom("t", consumer_assignment_interval_ms=1_000)
    room.advance(1)
    first, second = Consumer(room, "a"), Consumer(room, "b")
    first.beat()
    assert second.beat().member_epoch == 2
    assert room.group().state_name == "Assigning"
    room.advance(999)
    assert first.beat().member_epoch == 2 and room.group().target_epoch == 2
    room.advance(1)
    first.beat()
    assert room.group().target_epoch == 3
    settle_all(first, second)
    assert len(second.owned["t"]) == 1


def test_partitions_that_come_are_given_out(room: ConsumerRoom) -> None:
    first, second = Consumer(room, "a"), Consumer(room, "b")
    settle_all(first, second)
    room.topics.grow("t", 6)
    settle_all(first, second)
    assert sorted(first.owned["t"] + second.owned["t"]) == [0, 1, 2, 3, 4, 5]
    assert len(first.owned["t"]) == 3


def test_a_topic_that_is_made_anew_is_another_one(room: ConsumerRoom) -> None:
    consumer = Consumer(room, "a")
    settle_all(consumer)
    room.topics.delete("t")
    epoch = room.group().epoch
    consumer.owned = {}
    consumer.beat()
    assert room.group().epoch == epoch + 1
    room.topics.create("t", 1)
    settle_all(consumer)
    assert consumer.owned == {"t": [0]}


def test_a_change_of_other_topics_moves_nothing(room: ConsumerRoom) -> None:
    settle_all(Consumer(room, "a"))
    room.topics.create("v")
    written = len(room.log)
    assert room.beat("a", 2).code == 0
    assert len(room.log) == written


def test_when_the_log_refuses_the_change_of_topics_it_is_seen_again(room: ConsumerRoom) -> None:
    room.enter_consumer("a")
    room.topics.grow("t", 4)
    room.refuse_with = errors.MESSAGE_TOO_LARGE
    assert room.beat("a", 2).code == errors.MESSAGE_TOO_LARGE
    room.refuse_with = None
    assert room.named(room.beat("a", 2).answer) == {"t": [0, 1, 2, 3]}


def test_the_assignor_most_members_ask_for_is_used(room: ConsumerRoom) -> None:
    room.settings.consumer_assignors = ("range", "uniform")
    room.enter_consumer("a")
    assert room.describe().assignor_name == "range"
    room.enter_consumer("b", server_assignor="uniform")
    assert room.describe().assignor_name == "uniform"


# -- leaving, and being fenced


def test_who_leaves_makes_room(room: ConsumerRoom) -> None:
    first, second = Consumer(room, "a"), Consumer(room, "b")
    settle_all(first, second)
    answer = first.leave()
    assert (answer.error_code, answer.member_id, answer.member_epoch) == (0, "a", -1)
    settle_all(second)
    assert second.owned == {"t": [0, 1, 2]}
    second.leave()
    group = room.group()
    assert group.state_name == "Empty" and not group.owners and not group.shares
    assert not room.timers


def test_a_silent_member_is_taken_for_gone(room: ConsumerRoom) -> None:
    first, second = Consumer(room, "a"), Consumer(room, "b")
    settle_all(first, second)
    room.advance(30_000)
    assert second.beat().error_code == 0
    room.advance(20_000)
    settle_all(second)
    assert second.owned == {"t": [0, 1, 2]}
    assert room.beat("a", first.epoch).code == errors.UNKNOWN_MEMBER_ID


def test_the_session_timeout_may_be_the_groups_own(room: ConsumerRoom) -> None:
    room.settings.group_config = lambda group_id: {"consumer.session.timeout.ms": 50_000}
    room.enter_consumer("a")
    room.advance(49_999)
    assert room.group().members
    room.advance(1)
    assert not room.group().members


def test_the_groups_own_heartbeat_interval_is_told_within_the_brokers_limits(room: ConsumerRoom) -> None:
    room.settings.group_config = lambda group_id: {"consumer.heartbeat.interval.ms": 60_000}
    assert room.enter_consumer("a").answer.heartbeat_interval_ms == 15_000


def test_who_does_not_give_up_in_time_is_taken_out(room: ConsumerRoom) -> None:
    room.enter_consumer("a", rebalance_timeout_ms=10_000)
    second = Consumer(room, "b")
    second.beat()
    room.beat("a", 2, owned={"t": [0, 1, 2]})
    for _ in range(9):
        room.advance(1_000)
        assert room.beat("a", 2, owned={"t": [0, 1, 2]}).code == 0
    room.advance(1_000)
    assert room.beat("a", 2, owned={"t": [0, 1, 2]}).code == errors.UNKNOWN_MEMBER_ID
    settle_all(second)
    assert second.owned == {"t": [0, 1, 2]}


def test_who_gives_up_in_time_stays(room: ConsumerRoom) -> None:
    first, second = Consumer(room, "a", rebalance_timeout_ms=10_000), Consumer(room, "b")
    first.beat()
    second.beat()
    settle_all(first, second)
    room.advance(20_000)
    assert set(room.group().members) == {"a", "b"}


# -- static members


def test_a_static_member_that_leaves_for_a_while_finds_its_partitions_again(room: ConsumerRoom) -> None:
    first, second = Consumer(room, "a", instance_id="i"), Consumer(room, "b")
    settle_all(first, second)
    had, epoch = dict(first.owned), room.group().epoch
    assert first.leave(for_a_while=True).member_epoch == -2
    again = Consumer(room, "c", instance_id="i")
    again.beat()
    assert again.owned == had
    assert room.group().epoch == epoch and set(room.group().members) == {"b", "c"}


def test_a_static_name_in_use_is_not_given_away(room: ConsumerRoom) -> None:
    room.enter_consumer("a", instance_id="i")
    answer = room.enter_consumer("b", instance_id="i").answer
    assert (answer.error_code, answer.error_message) == (
        errors.UNRELEASED_INSTANCE_ID,
        "Static member b with instance id i cannot join the group because the instance id is owned by a member.",
    )


def test_whoever_lost_its_static_name_is_fenced(room: ConsumerRoom) -> None:
    room.enter_consumer("a", instance_id="i")
    room.beat("a", -2, instance_id="i")
    room.enter_consumer("b", instance_id="i")
    answer = room.beat("a", 2, instance_id="i").answer
    assert (answer.error_code, answer.error_message) == (
        errors.FENCED_INSTANCE_ID,
        "Static member a with instance id i was fenced by member b.",
    )
    assert room.beat("a", 2, instance_id="j").answer.error_message == "Instance id j is unknown."


def test_a_static_member_that_does_not_come_back_expires(room: ConsumerRoom) -> None:
    first, second = Consumer(room, "a", instance_id="i"), Consumer(room, "b")
    settle_all(first, second)
    first.leave(for_a_while=True)
    for _ in range(2):
        room.advance(22_500)
        second.beat()
    settle_all(second)
    assert second.owned == {"t": [0, 1, 2]}


def test_a_static_member_that_leaves_while_it_should_give_up_partitions(room: ConsumerRoom) -> None:
    """Leaving means that it has revoked them: they are free at once. And it is not fenced for not revoking them in
    time."""
    first = Consumer(room, "a", instance_id="i")
    settle_all(first)
    assert first.owned == {"t": [0, 1, 2]}
    second = Consumer(room, "b")
    second.beat()
    first.beat()
    assert len(first.owned["t"]) == 2 and room.has("a") == {"t": [0, 1, 2]}, "it was told, and has it still"
    kept = dict(first.owned)
    first.leave(for_a_while=True)
    assert room.has("a") == kept
    settle_all(second)
    (freed,) = {0, 1, 2} - set(kept["t"])
    assert second.owned == {"t": [freed]}
    room.groups.settings.consumer_session_timeout_ms = 60_000
    for _ in range(7):
        room.advance(REBALANCE_MS // 6)
        second.beat()
        room.timers.pop((GROUP, "session", "a"), None)  # why it is removed in the end does not matter here
    assert set(room.group().members) == {"a", "b"}
    again = Consumer(room, "c", instance_id="i")
    settle_all(again, second)
    assert again.owned == kept and second.owned == {"t": [freed]}


def test_a_static_member_that_comes_back_with_another_subscription_is_given_another_share(
    room: ConsumerRoom,
) -> None:
    first, second = Consumer(room, "a", instance_id="i"), Consumer(room, "b")
    settle_all(first, second)
    first.leave(for_a_while=True)
    again = Consumer(room, "c", topics=["u"], instance_id="i")
    settle_all(again, second)
    assert again.owned == {"u": [0, 1, 2]} and second.owned == {"t": [0, 1, 2]}


def test_a_static_member_leaves_for_good(room: ConsumerRoom) -> None:
    consumer = Consumer(room, "a", instance_id="i")
    consumer.beat()
    assert consumer.leave().member_epoch == -1
    assert room.group().is_empty and not room.group().instances


# -- restarts


def test_after_a_restart_the_group_is_as_it_was(room: ConsumerRoom) -> None:
    first, second = Consumer(room, "a", topics=["t", "u"], instance_id="i"), Consumer(room, "b")
    first.beat()
    second.beat()
    first.beat()
    before = room.describe()
    owners = room.group().owners
    room.reload()
    assert room.describe().encode(1) == before.encode(1)
    assert room.group().owners == owners
    settle_all(first, second)
    assert room.group().state_name == "Stable"


def test_after_a_restart_silence_is_noticed(room: ConsumerRoom) -> None:
    room.enter_consumer("a")
    room.reload()
    room.advance(45_000)
    assert room.group().is_empty


def test_after_a_restart_who_is_asked_to_give_up_still_has_to(room: ConsumerRoom) -> None:
    room.enter_consumer("a", rebalance_timeout_ms=10_000)
    room.enter_consumer("b")
    room.beat("a", 2, owned={"t": [0, 1, 2]})
    room.reload()
    room.advance(10_000)
    assert set(room.group().members) == {"b"}


def test_the_tombstones_of_a_group_leave_nothing(room: ConsumerRoom) -> None:
    settle_all(Consumer(room, "a"), Consumer(room, "b"))
    for key, value in room.group().tombstones():
        room.groups.replay(key, value)
    assert room.groups.by_id == {}


def test_a_log_that_lost_its_older_records_to_compaction_can_be_read(room: ConsumerRoom) -> None:
    first, second, third = Consumer(room, "a"), Consumer(room, "b"), Consumer(room, "c")
    settle_all(first, second)
    third.beat()
    first.leave()
    settle_all(second, third)
    before = room.describe()
    compacted: dict[Any, Any] = {}
    for key, value in room.log:
        compacted.pop(key, None)
        compacted[key] = value
    room.log = list(compacted.items())
    room.reload()
    assert {each.member_id: each.encode(1) for each in room.describe().members} == {
        each.member_id: each.encode(1) for each in before.members
    }


def test_a_record_of_topics_that_older_versions_wrote_goes_with_the_next_change(room: ConsumerRoom) -> None:
    settle_all(Consumer(room, "a"))
    key = messages.ConsumerGroupPartitionMetadataKey(group_id=GROUP)
    room.log.append(records.encode(key, messages.ConsumerGroupPartitionMetadataValue()))
    room.reload()
    assert not [each for each, value in room.written() if each == key and value is None]
    Consumer(room, "b").beat()
    Consumer(room, "c").beat()
    assert [value for each, value in room.written() if each == key][1:] == [None], "once"


# -- what other APIs ask


def commit(room: ConsumerRoom, member_id: str, epoch: int, version: int = 9) -> Any:
    return room.group().check_offset_commit(member_id, None, epoch, False, version)


def test_commits_are_of_members_in_their_epoch(room: ConsumerRoom) -> None:
    room.enter_consumer("a")
    assert commit(room, "a", 2) is None
    for member_id, epoch, code in [
        ("a", 3, errors.STALE_MEMBER_EPOCH),
        ("b", 2, errors.UNKNOWN_MEMBER_ID),
        ("", -1, errors.UNKNOWN_MEMBER_ID),
    ]:
        with pytest.raises(errors.KafkaError) as refused:
            commit(room, member_id, epoch)
        assert refused.value.code == code
    with pytest.raises(errors.KafkaError) as refused:
        commit(room, "a", 2, version=8)
    assert refused.value.code == errors.UNSUPPORTED_VERSION


def test_a_commit_of_an_earlier_epoch_holds_for_what_was_had_then(room: ConsumerRoom) -> None:
    room.enter_consumer("a")
    room.beat("a", 2, topics=["t", "u"], owned={"t": [0, 1, 2]})
    check = commit(room, "a", 2)
    check("t", room.topics.topics["t"].id, 0)
    check("t", bytes(16), 2)
    with pytest.raises(errors.KafkaError) as refused:
        check("u", room.topics.topics["u"].id, 0)
    assert refused.value.code == errors.STALE_MEMBER_EPOCH
    assert (
        refused.value.message == "Received member epoch 2 is older than assignment epoch 3 for partition u-0."
    )
    with pytest.raises(errors.KafkaError) as refused:
        check("v", bytes(16), 0)
    assert refused.value.message == "Partition v-0 is not assigned or pending revocation for member."


def test_fetches_of_members_are_in_their_epoch(room: ConsumerRoom) -> None:
    room.enter_consumer("a")
    group = room.group()
    group.check_offset_fetch(None, -1)
    group.check_offset_fetch("a", 2)
    for member_id, epoch, code in [
        ("a", 1, errors.STALE_MEMBER_EPOCH),
        ("b", 2, errors.UNKNOWN_MEMBER_ID),
        (None, 2, errors.UNKNOWN_SERVER_ERROR),  # Kafka resolves no host names here
    ]:
        with pytest.raises(errors.KafkaError) as refused:
            group.check_offset_fetch(member_id, epoch)
        assert refused.value.code == code


def test_a_group_with_members_is_not_deleted(room: ConsumerRoom) -> None:
    room.enter_consumer("a")
    with pytest.raises(errors.KafkaError) as refused:
        room.group().check_delete()
    assert refused.value.code == errors.NON_EMPTY_GROUP
    room.beat("a", -1)
    room.group().check_delete()


def test_describe_groups_knows_no_consumer_groups(room: ConsumerRoom) -> None:
    room.enter_consumer("a")
    answer = finish(room.group().describe(6))
    assert (answer.error_code, answer.error_message) == (
        errors.GROUP_ID_NOT_FOUND,
        f"Group {GROUP} is not a classic group.",
    )
    assert finish(room.group().describe(5)).error_code == 0
