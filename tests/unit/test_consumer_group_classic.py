"""Groups of both protocols: members of the classic one in a consumer group, upgrades and downgrades. Time is moved."""

from __future__ import annotations

from typing import Any

import pytest

from pykafkad import errors
from pykafkad.slices import finish
from tests.consumer_kit import Consumer, ConsumerRoom, assigned, assignment, settle_all, subscription


@pytest.fixture
def room() -> ConsumerRoom:
    return ConsumerRoom("t", "u", partitions=4)


class ClassicMember:
    """A consumer of the classic protocol: it joins when it is told to, and syncs."""

    def __init__(self, room: ConsumerRoom, member_id: str, *topics: str, **how: Any) -> None:
        self.room, self.member_id, self.topics, self.how = room, member_id, topics or ("t",), how
        self.generation = 0
        self.owned: dict[str, list[int]] = {}

    def join(self) -> Any:
        data = subscription(*self.topics, owned=self.owned)
        asked = self.room.join(self.member_id, protocols=(("range", data), ("sticky", data)), **self.how)
        if not asked.waits and not asked.code:
            self.member_id, self.generation = asked.answer.member_id, asked.answer.generation_id
        return asked

    def sync(self) -> int:
        asked = self.room.sync(self.member_id, self.generation, instance=self.how.get("instance"))
        if not asked.code:
            self.owned = assigned(asked.answer.assignment)
        return asked.code

    def beat(self) -> int:
        code = self.room.heartbeat(self.member_id, self.generation, instance=self.how.get("instance"))
        if code == errors.REBALANCE_IN_PROGRESS:
            assert self.join().code == 0
            self.sync()
        return code


def settle_mixed(*members: Any, rounds: int = 12) -> None:
    for _ in range(rounds):
        before = [dict(each.owned) for each in members]
        for each in members:
            each.beat()
        members[0].room.advance(1)
        group = members[0].room.group()
        if before == [dict(each.owned) for each in members] and group.state_name == "Stable":
            return
    raise AssertionError("the group does not settle")


# -- classic members in a consumer group


def test_both_kinds_share_a_group(room: ConsumerRoom) -> None:
    consumer, classic = Consumer(room, "a"), ClassicMember(room, "c")
    settle_all(consumer)
    assert classic.join().answer.protocol_name == "range"
    assert classic.sync() == 0 and classic.owned == {}
    settle_mixed(consumer, classic)
    assert sorted(consumer.owned["t"] + classic.owned["t"]) == [0, 1, 2, 3]
    assert len(classic.owned["t"]) == 2
    kinds = {each.member_id: each.member_type for each in room.describe().members}
    assert kinds == {"a": 1, "c": 0}


def test_a_classic_member_is_given_an_id_first(room: ConsumerRoom) -> None:
    room.enter_consumer("a")
    asked = room.join(protocols=(("range", subscription("t")),))
    assert (asked.code, asked.answer.member_id) == (errors.MEMBER_ID_REQUIRED, "id1")
    assert set(room.group().members) == {"a"}


def test_protocols_must_be_those_of_the_other_classic_members(room: ConsumerRoom) -> None:
    room.enter_consumer("a")
    data = subscription("t")
    assert room.join("c", protocols=(("range", data), ("mine", data))).code == 0
    assert room.join("d", protocols=(("sticky", data),)).code == errors.INCONSISTENT_GROUP_PROTOCOL
    assert room.join("d", protocols=()).code == errors.INCONSISTENT_GROUP_PROTOCOL
    assert (
        room.join("d", protocol_type="connect", protocols=(("range", data),)).code
        == errors.INCONSISTENT_GROUP_PROTOCOL
    )
    assert room.join("d", protocols=(("mine", data),)).code == 0


def test_a_malformed_subscription_is_refused_and_the_group_goes_on(room: ConsumerRoom) -> None:
    room.enter_consumer("a")
    for data in (b"", b"\0", b"\xff\xff", b"\0\1\0\0\0\5"):
        assert room.join("c", protocols=(("range", data),)).code == errors.UNKNOWN_SERVER_ERROR
    assert room.beat("a", 2).code == 0


def test_a_classic_member_that_does_not_join_in_time_is_taken_out(room: ConsumerRoom) -> None:
    classic = ClassicMember(room, "c", rebalance_ms=8_000)
    room.enter_consumer("a")
    classic.join()
    classic.sync()
    room.enter_consumer("b")
    for _ in range(8):
        assert room.heartbeat("c", classic.generation) == errors.REBALANCE_IN_PROGRESS
        room.advance(1_000)
    assert room.heartbeat("c", classic.generation) == errors.UNKNOWN_MEMBER_ID


def test_a_classic_member_that_does_not_sync_in_time_is_taken_out(room: ConsumerRoom) -> None:
    room.enter_consumer("a")
    ClassicMember(room, "c", rebalance_ms=5_000).join()
    room.advance(5_000)
    assert set(room.group().members) == {"a"}


def test_a_classic_member_that_becomes_a_consumer_one_need_not_join_and_sync_any_more(
    room: ConsumerRoom,
) -> None:
    room.enter_consumer("a")
    ClassicMember(room, "c", rebalance_ms=5_000).join()
    room.enter_consumer("c")
    room.advance(6_000)
    assert set(room.group().members) == {"a", "c"}


def test_a_silent_classic_member_is_taken_for_gone_after_its_own_session(room: ConsumerRoom) -> None:
    room.enter_consumer("a")
    classic = ClassicMember(room, "c", session_ms=10_000)
    classic.join()
    classic.sync()
    room.advance(9_999)
    assert "c" in room.group().members
    room.advance(1)
    assert "c" not in room.group().members


def test_sync_of_a_generation_that_is_over_says_join_again(room: ConsumerRoom) -> None:
    room.enter_consumer("a")
    classic = ClassicMember(room, "c")
    classic.join()
    room.enter_consumer("b")
    assert classic.sync() == errors.REBALANCE_IN_PROGRESS
    assert room.sync("c", classic.generation + 1).code == errors.ILLEGAL_GENERATION
    assert room.sync("a", 2).code == errors.UNKNOWN_MEMBER_ID
    assert room.heartbeat("a", 2) == errors.UNKNOWN_MEMBER_ID
    assert room.sync("c", classic.generation, protocol="sticky").code == errors.INCONSISTENT_GROUP_PROTOCOL


def test_classic_members_leave_a_consumer_group(room: ConsumerRoom) -> None:
    consumer = Consumer(room, "a")
    consumer.beat()
    classic = ClassicMember(room, "", instance="i")
    classic.join()
    other = ClassicMember(room, "d")
    other.join()
    answer = room.leave(("", "i"), ("d", None), ("nobody", None))
    assert [each.error_code for each in answer.members] == [0, 0, errors.UNKNOWN_MEMBER_ID]
    settle_all(consumer)
    assert consumer.owned == {"t": [0, 1, 2, 3]}


def test_without_migration_no_classic_member_gets_in(room: ConsumerRoom) -> None:
    room.settings.consumer_migration_policy = "DISABLED"
    room.enter_consumer("a")
    assert ClassicMember(room, "c").join().code == errors.INCONSISTENT_GROUP_PROTOCOL


def test_a_mixed_group_is_the_same_after_a_restart(room: ConsumerRoom) -> None:
    consumer, classic = Consumer(room, "a"), ClassicMember(room, "c")
    consumer.beat()
    classic.join()
    classic.sync()
    before = room.describe().encode(1)
    room.reload()
    assert room.describe().encode(1) == before
    settle_mixed(consumer, classic)


# -- upgrades


def classic_group(room: ConsumerRoom, given: dict[str, Any], **how: Any) -> str:
    """A stable classic group of one member with these partitions."""
    data = subscription("t", "u")
    member_id, asked = room.enter(protocols=(("range", data),), **how)
    room.advance(3_000)
    room.sync(member_id, asked.answer.generation_id, {member_id: assignment(**given)})
    return member_id


def test_a_classic_group_is_upgraded_and_keeps_what_its_members_have(room: ConsumerRoom) -> None:
    old_id = classic_group(room, {"t": [0, 1, 2, 3], "u": [0, 1, 2, 3]})
    new = Consumer(room, "n", topics=["t", "u"])
    assert new.beat().member_epoch == 2
    assert room.group().TYPE == "consumer"
    assert room.has(old_id) == {"t": [0, 1, 2, 3], "u": [0, 1, 2, 3]}
    classic = ClassicMember(room, old_id, "t", "u")
    classic.generation, classic.owned = 1, {"t": [0, 1, 2, 3], "u": [0, 1, 2, 3]}
    assert classic.beat() == errors.REBALANCE_IN_PROGRESS
    settle_mixed(new, classic)
    assert sum(map(len, new.owned.values())) == 4
    room.reload()
    settle_mixed(new, classic)


def test_who_waits_in_the_classic_group_is_told_to_join_again(room: ConsumerRoom) -> None:
    old_id = classic_group(room, {"t": [0]})
    _, waiting = room.enter(protocols=(("range", subscription("t")),))
    assert waiting.waits
    assert room.enter_consumer("n").code == 0
    assert waiting.code == errors.REBALANCE_IN_PROGRESS
    assert old_id in room.group().members


def test_members_that_wait_for_their_first_generation_can_be_upgraded(room: ConsumerRoom) -> None:
    member_id, waiting = room.enter(protocols=(("range", subscription("t")),))
    assert room.enter_consumer("n").code == 0
    assert waiting.code == errors.REBALANCE_IN_PROGRESS
    assert set(room.group().members) == {member_id, "n"}
    room.advance(9_999)  # the classic group's timers are no more
    assert set(room.group().members) == {member_id, "n"}


def test_an_upgrade_by_a_member_with_an_expression_that_matches_nothing_ends_a_rebalance_too(
    room: ConsumerRoom,
) -> None:
    """Kafka keeps the assignment of the interrupted rebalance, with partitions that no member has."""
    old_id = classic_group(room, {"t": [0]})
    new = Consumer(room, "n", regex="nothing")
    new.beat()
    classic = ClassicMember(room, old_id, "t", "u")
    classic.generation, classic.owned = 1, {"t": [0]}
    settle_mixed(new, classic)
    assert classic.owned == {"t": [0, 1, 2, 3], "u": [0, 1, 2, 3]}


def test_an_upgrade_that_the_log_refuses_has_not_happened(room: ConsumerRoom) -> None:
    member_id = classic_group(room, {"t": [0]})
    room.refuse_with = errors.MESSAGE_TOO_LARGE
    assert room.enter_consumer("n").code == errors.MESSAGE_TOO_LARGE
    room.refuse_with = None
    assert room.group().TYPE == "classic"
    assert room.heartbeat(member_id, 1) == 0


@pytest.mark.parametrize(
    ("given", "reason"),
    [
        (b"\0\1\0", "the embedded consumer protocol is malformed."),
        (
            assignment(t=[0], user_data=b"mine"),
            "an unsupported custom assignor is in use. Please refer to the documentation or switch to a default assignor"
            " before re-attempting the upgrade.",
        ),
    ],
)
def test_what_cannot_be_understood_is_not_upgraded(room: ConsumerRoom, given: bytes, reason: str) -> None:
    member_id, _asked = room.enter(protocols=(("range", subscription("t")),))
    room.advance(3_000)
    room.sync(member_id, 1, {member_id: given})
    answer = room.enter_consumer("n").answer
    assert answer.error_code == errors.GROUP_ID_NOT_FOUND
    assert answer.error_message == f"Cannot upgrade classic group group to consumer group because {reason}"
    assert room.heartbeat(member_id, 1) == 0


@pytest.mark.parametrize(
    ("setting", "value", "reason"),
    [
        ("consumer_migration_policy", "downgrade", "online upgrade is disabled."),
        ("consumer_max_size", 0, "the group size exceeds the consumer group maximum size."),
    ],
)
def test_upgrades_may_not_be_allowed(room: ConsumerRoom, setting: str, value: Any, reason: str) -> None:
    classic_group(room, {})
    setattr(room.settings, setting, value)
    answer = room.enter_consumer("n").answer
    assert answer.error_message == f"Cannot upgrade classic group group to consumer group because {reason}"


def test_a_group_that_is_no_consumer_group_is_not_upgraded(room: ConsumerRoom) -> None:
    room.enter(protocol_type="connect")
    room.advance(3_000)
    assert "does not use the consumer embedded protocol" in room.enter_consumer("n").answer.error_message


def test_hostile_assignments_do_not_break_the_group(room: ConsumerRoom) -> None:
    """The same partition for two members, and partitions that do not exist."""
    data = (("range", subscription("t")),)
    entered = [room.enter(protocols=data) for _ in range(2)]
    room.advance(6_000)
    ids = [member_id for member_id, _ in entered]
    generation = entered[0][1].answer.generation_id
    leader = entered[0][1].answer.leader
    bad = assignment(t=[0, 1, 99, -1], nowhere=[0])
    for member_id in sorted(ids, key=lambda each: each == leader):
        room.sync(member_id, generation, dict.fromkeys(ids, bad) if member_id == leader else {})
    new = Consumer(room, "n")
    new.beat()
    assert [room.has(member_id) for member_id in ids] == [{"t": [0, 1]}, {}]
    members = [new]
    for member_id in ids:
        classic = ClassicMember(room, member_id)
        classic.generation = generation
        classic.owned = {"t": [0, 1]}
        members.append(classic)  # type: ignore[arg-type]
    settle_mixed(*members)
    assert sorted(p for each in members for p in each.owned.get("t", [])) == [0, 1, 2, 3]


def test_an_empty_classic_group_makes_way_and_back(room: ConsumerRoom) -> None:
    member_id = classic_group(room, {"t": [0]})
    room.leave((member_id, None))
    assert room.enter_consumer("a").answer.member_epoch == 2
    assert room.group().TYPE == "consumer"
    room.beat("a", -1)
    assert room.enter(protocols=(("range", subscription("t")),))[1].waits
    assert room.group().TYPE == "classic"
    room.reload()
    assert room.group().TYPE == "classic"


# -- downgrades


def mixed(room: ConsumerRoom, **told: Any) -> tuple[Consumer, ClassicMember]:
    consumer, classic = Consumer(room, "a", **told), ClassicMember(room, "c")
    consumer.beat()
    classic.join()
    classic.sync()
    settle_mixed(consumer, classic)
    return consumer, classic


def test_with_the_last_consumer_member_the_group_becomes_classic(room: ConsumerRoom) -> None:
    consumer, _classic = mixed(room)
    assert consumer.leave().error_code == 0
    group = room.group()
    assert (group.TYPE, group.state_name) == ("classic", "PreparingRebalance")
    assert room.heartbeat("c", group.generation_id) == errors.REBALANCE_IN_PROGRESS
    asked = room.join("c", protocols=(("range", subscription("t")),))
    assert asked.answer.leader == "c"
    room.reload()
    assert room.group().TYPE == "classic"


@pytest.mark.parametrize(("most", "kind"), [(1, "classic"), (0, "consumer")])
def test_a_group_becomes_classic_if_a_classic_one_may_be_as_large(
    room: ConsumerRoom, most: int, kind: str
) -> None:
    consumer, _ = mixed(room)
    room.settings.max_size = most
    consumer.leave()
    assert kind == room.group().TYPE


def test_with_a_fenced_consumer_member_the_group_becomes_classic(room: ConsumerRoom) -> None:
    _, classic = mixed(room)
    for _ in range(10):
        room.advance(5_000)
        classic.beat()
    assert room.group().TYPE == "classic"


def test_a_replaced_static_member_makes_the_group_classic_without_a_rebalance(room: ConsumerRoom) -> None:
    consumer, _classic = mixed(room, instance_id="i")
    had = consumer.owned
    asked = room.join("", protocols=(("range", subscription("t", owned=had)),), instance="i")
    assert asked.code == 0
    group = room.group()
    assert (group.TYPE, group.state_name) == ("classic", "Stable")
    new_id = asked.answer.member_id
    assert set(group.roster.members) == {"c", new_id}
    assert assigned(room.sync(new_id, group.generation_id, instance="i").answer.assignment) == had
    assert room.heartbeat("c", group.generation_id) == 0
    before = finish(room.group().describe(6)).encode(6)
    room.reload()
    assert finish(room.group().describe(6)).encode(6) == before


def test_a_replaced_static_member_with_another_subscription_rebalances(room: ConsumerRoom) -> None:
    mixed(room, instance_id="i")
    room.join("", protocols=(("range", subscription("u")),), instance="i")
    assert (room.group().TYPE, room.group().state_name) == ("classic", "PreparingRebalance")


@pytest.mark.parametrize(("setting", "value"), [("consumer_migration_policy", "upgrade"), ("max_size", 0)])
def test_downgrades_may_not_be_allowed(room: ConsumerRoom, setting: str, value: Any) -> None:
    consumer, classic = mixed(room)
    setattr(room.settings, setting, value)
    consumer.leave()
    assert room.group().TYPE == "consumer"
    settle_mixed(classic)
    assert classic.owned == {"t": [0, 1, 2, 3]}


def test_a_downgrade_that_the_log_refuses_has_not_happened(room: ConsumerRoom) -> None:
    consumer, classic = mixed(room)
    room.refuse_with = errors.MESSAGE_TOO_LARGE
    assert consumer.leave().error_code == errors.MESSAGE_TOO_LARGE
    room.refuse_with = None
    assert room.group().TYPE == "consumer"
    assert classic.beat() == 0
    assert set(room.group().members) == {"a", "c"}
