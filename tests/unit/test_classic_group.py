"""Classic groups: joining, syncing, heartbeats, leaving. Time is moved."""

from __future__ import annotations

from typing import Any

import pytest

from pykafkad import errors
from pykafkad.errors import KafkaError
from pykafkad.messages import ConsumerProtocolSubscription
from pykafkad.pure.groups.classic_member import most_voted
from pykafkad.pure.groups.classic_rebalance import NEW_MEMBER_JOIN_TIMEOUT_MS
from pykafkad.slices import finish
from tests.group_kit import GROUP, Room, settle, stable


@pytest.fixture
def room() -> Room:
    return Room()


# -- a first member


def test_since_version_4_a_member_comes_back_with_the_id_it_is_given(room: Room) -> None:
    asked = room.join(client_id="app")
    assert asked.code == errors.MEMBER_ID_REQUIRED
    assert asked.answer.member_id == "app-id1"
    assert room.group().state_name == "Empty"
    assert room.join("app-id1").waits
    assert room.group().state_name == "PreparingRebalance"


@pytest.mark.parametrize("version", [0, 1, 2, 3])
def test_before_version_4_a_member_is_in_at_once(room: Room, version: int) -> None:
    asked = room.join(version=version)
    assert asked.waits
    room.advance(3_000)
    assert asked.answer.member_id == asked.answer.leader == "client-id1"
    assert asked.answer.generation_id == 1


def test_a_static_member_is_in_at_once_and_its_id_has_its_name(room: Room) -> None:
    asked = room.join(instance="desk")
    room.advance(3_000)
    assert asked.answer.member_id == "desk-id1"
    assert asked.answer.members[0].group_instance_id == "desk"


def test_an_id_that_nobody_gave_out_is_refused(room: Room) -> None:
    assert room.join("me").code == errors.UNKNOWN_MEMBER_ID
    assert not room.groups.by_id
    stable(room)
    asked = room.join("me")
    assert (asked.code, asked.answer.member_id) == (errors.UNKNOWN_MEMBER_ID, "me")


def test_an_id_that_is_not_used_expires_with_its_session(room: Room) -> None:
    asked = room.join(session_ms=10_000)
    room.advance(9_999)
    assert room.group().roster.pending
    room.advance(1)
    assert not room.group().roster.pending
    assert room.join(asked.answer.member_id).code == errors.UNKNOWN_MEMBER_ID


def test_a_static_name_may_not_come_with_an_id_given_to_a_dynamic_member(room: Room) -> None:
    asked = room.join()
    assert room.join(asked.answer.member_id, instance="desk").code == errors.UNKNOWN_SERVER_ERROR


@pytest.mark.parametrize(
    ("protocol_type", "protocols"), [("", (("range", b""),)), ("consumer", ()), ("", ())]
)
def test_a_group_wants_a_protocol(room: Room, protocol_type: str, protocols: Any) -> None:
    asked = room.join(protocol_type=protocol_type, protocols=protocols)
    assert asked.code == errors.INCONSISTENT_GROUP_PROTOCOL
    assert room.group().is_empty


def test_version_0_has_its_session_as_rebalance_timeout(room: Room) -> None:
    room.join(version=0, session_ms=7_000, rebalance_ms=-1)
    assert room.group().roster.rebalance_timeout_ms == 7_000


# -- the initial rebalance


def test_the_first_rebalance_waits_for_more_members(room: Room) -> None:
    first_id, first = room.enter()
    room.advance(2_999)
    assert first.waits
    second_id, second = room.enter()
    room.advance(1)
    assert first.waits  # a member came, so as long again
    room.advance(3_000)
    assert (first.answer.leader, second.answer.leader) == (first_id, first_id)
    assert [each.member_id for each in first.answer.members] == [first_id, second_id]
    assert second.answer.members == []


def test_the_first_rebalance_never_waits_longer_than_the_rebalance_timeout(room: Room) -> None:
    asked = [room.enter(rebalance_ms=8_000)[1]]
    for _ in range(7):
        room.advance(1_000)
        asked.append(room.enter(rebalance_ms=8_000)[1])
    assert asked[0].waits
    room.advance(1_000)
    assert {each.answer.generation_id for each in asked} == {1}


def test_without_delay_the_first_member_does_not_wait(room: Room) -> None:
    room.settings.initial_rebalance_delay_ms = 0
    _, asked = room.enter()
    room.advance(0)
    assert asked.answer.generation_id == 1


def test_all_may_leave_during_the_initial_rebalance(room: Room) -> None:
    member_id, asked = room.enter()
    room.leave((member_id, None))
    assert (asked.code, asked.answer.member_id) == (errors.UNKNOWN_MEMBER_ID, "")
    assert room.group().state_name == "PreparingRebalance"
    room.advance(3_000)
    assert room.group().state_name == "Empty"
    assert room.group().generation_id == 1


# -- generations


def test_the_leader_assigns_and_all_are_told(room: Room) -> None:
    (leader, first), (other, second) = room.enter(), room.enter()
    room.advance(6_000)
    assert first.answer.protocol_name == "range"
    waiting = room.sync(other, 1)
    assert waiting.waits
    asked = room.sync(leader, 1, {leader: b"some", other: b"more", "stranger": b"x"})
    assert asked.answer.assignment == b"some"
    assert waiting.answer.assignment == b"more"
    assert (waiting.answer.protocol_type, waiting.answer.protocol_name) == ("consumer", "range")
    assert room.group().state_name == "Stable"
    assert second.answer.leader == leader


def test_who_syncs_late_gets_its_assignment_from_the_stable_group(room: Room) -> None:
    (leader, _), (other, _) = room.enter(), room.enter()
    room.advance(6_000)
    room.sync(leader, 1, {other: b"all"})
    assert room.sync(other, 1).answer.assignment == b"all"
    assert room.sync(leader, 1, {leader: b"late"}).answer.assignment == b""


def test_a_new_member_makes_the_others_come_back(room: Room) -> None:
    leader, other = stable(room)
    new_id, new = room.enter()
    assert new.waits
    assert room.heartbeat(leader, 1) == errors.REBALANCE_IN_PROGRESS
    assert room.sync(other, 1).code == errors.REBALANCE_IN_PROGRESS
    asked = [room.join(leader), room.join(other)]
    assert [each.answer.generation_id for each in (*asked, new)] == [2, 2, 2]
    assert asked[0].answer.leader == leader
    settle(room, [leader, other, new_id], 2)


def test_who_does_not_come_back_is_out_after_the_rebalance_timeout(room: Room) -> None:
    leader, other = stable(room, session_ms=100_000, rebalance_ms=20_000)
    _, new = room.enter(session_ms=100_000, rebalance_ms=20_000)
    room.join(other, session_ms=100_000, rebalance_ms=20_000)
    room.advance(19_999)
    assert new.waits
    room.advance(1)
    assert new.answer.leader == other  # the leader is gone
    assert room.heartbeat(leader, 2) == errors.UNKNOWN_MEMBER_ID
    assert room.heartbeat(other, 2) == 0


def test_the_longest_rebalance_timeout_counts(room: Room) -> None:
    leader, other = stable(room, session_ms=1_000_000, rebalance_ms=20_000)
    asked = room.join(other, session_ms=1_000_000, rebalance_ms=90_000, protocols=(("range", b"new"),))
    room.advance(89_999)
    assert asked.waits
    room.advance(1)
    assert asked.answer.leader == other
    assert list(room.group().roster.members) == [other]
    assert leader not in room.group().roster.members


def test_who_joined_but_never_syncs_is_out_after_the_rebalance_timeout(room: Room) -> None:
    (leader, _), (other, _) = room.enter(session_ms=100_000), room.enter(session_ms=100_000)
    room.advance(6_000)
    room.sync(leader, 1, {leader: b"all"})
    room.advance(59_999)
    room.heartbeat(other, 1)
    assert room.group().state_name == "Stable"
    room.advance(1)
    assert room.group().state_name == "PreparingRebalance"
    assert room.heartbeat(other, 1) == errors.UNKNOWN_MEMBER_ID
    assert room.join(leader, session_ms=100_000).answer.generation_id == 2


def test_whoever_waits_for_a_leader_that_never_syncs_joins_anew(room: Room) -> None:
    (leader, _), (other, _) = room.enter(session_ms=100_000), room.enter(session_ms=100_000)
    room.advance(6_000)
    waiting = room.sync(other, 1)
    room.advance(60_000)
    assert waiting.code == errors.REBALANCE_IN_PROGRESS
    asked = room.join(other, session_ms=100_000)
    assert asked.answer.leader == other
    assert room.heartbeat(leader, 1) == errors.UNKNOWN_MEMBER_ID


def test_a_member_that_joins_again_unchanged_misses_nothing(room: Room) -> None:
    _leader, other = stable(room)
    asked = room.join(other)
    assert (asked.answer.generation_id, asked.answer.members) == (1, [])
    assert room.group().state_name == "Stable"


def test_a_join_during_the_sync_phase_repeats_the_answer(room: Room) -> None:
    (leader, first), (other, second) = room.enter(), room.enter()
    room.advance(6_000)
    assert room.join(leader).answer == first.answer
    assert room.join(other).answer == second.answer
    assert room.group().state_name == "CompletingRebalance"


@pytest.mark.parametrize("synced", [False, True])
def test_new_metadata_means_a_rebalance(room: Room, synced: bool) -> None:
    (leader, _), (other, _) = room.enter(), room.enter()
    room.advance(6_000)
    waiting = room.sync(other, 1)
    if synced:
        room.sync(leader, 1)
    assert room.join(other, protocols=(("range", b"new"),)).waits
    assert waiting.code == (0 if synced else errors.REBALANCE_IN_PROGRESS)
    assert room.group().state_name == "PreparingRebalance"


def test_a_leader_that_joins_again_means_a_rebalance(room: Room) -> None:
    leader, other = stable(room)
    asked = room.join(leader, reason="a topic has grown")
    assert asked.waits
    assert any("client reason: a topic has grown" in line for line in room.lines)
    room.join(other)
    assert asked.answer.generation_id == 2


def test_asking_again_answers_what_was_asked_before(room: Room) -> None:
    leader, other = stable(room)
    before = room.join(leader)
    again = room.join(leader)
    assert (before.code, before.answer.member_id) == (errors.REBALANCE_IN_PROGRESS, leader)
    room.join(other)
    assert again.answer.generation_id == 2
    syncing = room.sync(other, 2)
    room.sync(other, 2)
    assert syncing.code == errors.REBALANCE_IN_PROGRESS


# -- protocols


def test_the_protocol_with_the_most_votes_wins(room: Room) -> None:
    both, other_way = (("a", b"1"), ("b", b"2")), (("b", b"3"), ("a", b"4"))
    asked = [room.enter(protocols=each)[1] for each in (both, other_way, other_way)]
    room.advance(6_000)
    assert {each.answer.protocol_name for each in asked} == {"b"}
    assert [each.metadata for each in asked[0].answer.members] == [b"2", b"3", b"3"]


def test_only_what_all_know_can_win(room: Room) -> None:
    room.enter(protocols=(("a", b""), ("b", b"")))
    room.enter(protocols=(("a", b""), ("b", b"")))
    _, asked = room.enter(protocols=(("b", b""), ("c", b"")))
    room.advance(6_000)
    assert asked.answer.protocol_name == "b"


def test_what_somebody_knew_who_has_left_counts_no_more(room: Room) -> None:
    leader, _ = room.enter(protocols=(("a", b""),))
    other, _ = room.enter(protocols=(("a", b""), ("b", b"")))
    room.advance(6_000)
    assert room.join(protocols=(("b", b""),)).code == errors.INCONSISTENT_GROUP_PROTOCOL
    room.leave((leader, None))
    _, asked = room.enter(protocols=(("b", b""),))
    rejoined = room.join(other, protocols=(("a", b""), ("b", b"")))
    assert asked.answer.protocol_name == rejoined.answer.protocol_name == "b"


def test_nobody_syncs_with_an_empty_group(room: Room) -> None:
    leader, other = stable(room)
    room.leave((leader, None), (other, None))
    for instance_id in (None, "desk"):
        assert room.sync(leader, 2, instance=instance_id).code == errors.UNKNOWN_MEMBER_ID


def test_who_has_no_protocol_in_common_is_refused(room: Room) -> None:
    stable(room)
    assert room.join(protocols=(("other", b""),)).code == errors.INCONSISTENT_GROUP_PROTOCOL
    assert room.join(protocol_type="connect").code == errors.INCONSISTENT_GROUP_PROTOCOL
    assert room.group().state_name == "Stable"


def test_a_protocol_named_twice_counts_once(room: Room) -> None:
    _, asked = room.enter(protocols=(("a", b"1"), ("a", b"2")))
    room.advance(3_000)
    assert asked.answer.protocol_name == "a"
    assert asked.answer.members[0].metadata == b"1"


def test_an_equal_vote_goes_as_in_kafkas_hash_map() -> None:
    # String.hashCode: range 108280125, roundrobin -1373578370, sticky -892259863, cooperative-sticky 938321246
    assert most_voted(["roundrobin", "range"]) == "range"
    assert most_voted(["range", "roundrobin"]) == "range"
    assert most_voted(["b", "a"]) == "a"
    assert most_voted(["b", "a", "b"]) == "b"


# -- heartbeats and sessions


def test_a_member_that_is_silent_for_its_session_is_out(room: Room) -> None:
    leader, other = stable(room)
    room.advance(9_000)
    room.heartbeat(leader, 1)
    room.advance(1_000)
    assert room.group().state_name == "PreparingRebalance"
    assert room.heartbeat(other, 1) == errors.UNKNOWN_MEMBER_ID
    assert room.heartbeat(leader, 1) == errors.REBALANCE_IN_PROGRESS
    assert room.join(leader).answer.generation_id == 2


def test_heartbeats_during_a_rebalance_keep_a_member(room: Room) -> None:
    leader, other = stable(room)
    room.enter()
    for _ in range(5):
        room.advance(9_000)
        assert room.heartbeat(leader, 1) == errors.REBALANCE_IN_PROGRESS
    assert leader in room.group().roster.members
    assert other not in room.group().roster.members


def test_who_waits_for_an_answer_cannot_send_heartbeats_and_need_not(room: Room) -> None:
    leader, other = stable(room)
    room.enter()
    asked = room.join(leader)
    for _ in range(3):
        room.advance(9_000)
        room.heartbeat(other, 1)
    assert asked.waits
    room.join(other)
    assert asked.answer.generation_id == 2
    room.advance(9_999)
    assert leader in room.group().roster.members  # a whole session since the answer


def test_a_new_member_may_wait_five_minutes_for_its_first_answer(room: Room) -> None:
    leader, _ = stable(room, size=1) * 2
    room.join(leader, rebalance_ms=1_000_000)  # alone: the next generation, with a long timeout
    settle(room, [leader], 2)
    _, new = room.enter(session_ms=6_000)
    for _ in range(NEW_MEMBER_JOIN_TIMEOUT_MS // 5_000 - 1):
        room.advance(5_000)
        assert room.heartbeat(leader, 2) == errors.REBALANCE_IN_PROGRESS
    assert new.waits
    room.advance(5_000)
    assert (new.code, new.answer.member_id) == (errors.UNKNOWN_MEMBER_ID, "")


@pytest.mark.parametrize("generation", [0, 2, -1])
def test_another_generation_is_refused(room: Room, generation: int) -> None:
    leader, _ = stable(room)
    assert room.heartbeat(leader, generation) == errors.ILLEGAL_GENERATION
    assert room.sync(leader, generation).code == errors.ILLEGAL_GENERATION


def test_a_group_that_is_not_there_knows_nobody(room: Room) -> None:
    assert room.heartbeat("me", 1) == errors.UNKNOWN_MEMBER_ID
    assert room.sync("me", 1).code == errors.UNKNOWN_MEMBER_ID
    room.join()
    assert room.sync("me", 0).code == errors.UNKNOWN_MEMBER_ID
    assert room.heartbeat("me", 0) == errors.UNKNOWN_MEMBER_ID


@pytest.mark.parametrize(
    ("said", "code"),
    [
        ({"protocol_type": "connect"}, errors.INCONSISTENT_GROUP_PROTOCOL),
        ({"protocol": "sticky"}, errors.INCONSISTENT_GROUP_PROTOCOL),
        ({"protocol": None, "protocol_type": None, "version": 4}, 0),
    ],
)
def test_a_sync_of_another_protocol_is_refused(room: Room, said: dict[str, Any], code: int) -> None:
    leader, _ = stable(room)
    assert room.sync(leader, 1, **said).code == code


def test_committing_offsets_is_a_sign_of_life(room: Room) -> None:
    leader, other = stable(room)
    for _ in range(3):
        room.advance(9_000)
        room.do(room.group().on_offset_commit(leader, room.now_ms))
    assert list(room.group().roster.members) == [leader]
    assert room.group().on_offset_commit(other, room.now_ms) is None


def test_the_session_begins_with_the_first_answer_and_again_with_the_assignment(room: Room) -> None:
    (leader, _), (other, _) = room.enter(session_ms=6_000), room.enter(session_ms=6_000)
    room.advance(6_000)
    assert {room.timers[(GROUP, "session", each)] for each in (leader, other)} == {room.now_ms + 6_000}
    room.advance(5_000)
    waiting = room.sync(other, 1)
    room.heartbeat(leader, 1)
    room.advance(2_000)  # its session timed out while it waited
    assert waiting.waits
    room.sync(leader, 1)
    assert room.timers[(GROUP, "session", other)] == room.now_ms + 6_000


# -- leaving


def test_who_leaves_makes_the_others_come_back(room: Room) -> None:
    leader, other = stable(room)
    answer = room.leave((leader, None), reason="lunch")
    assert [(each.member_id, each.error_code) for each in answer.members] == [(leader, 0)]
    assert any(f"Member {leader} has left" in line and "client reason: lunch" in line for line in room.lines)
    asked = room.join(other)
    assert asked.answer.leader == other


def test_the_last_one_leaves_an_empty_group(room: Room) -> None:
    leader, other = stable(room)
    room.leave((leader, None), (other, None))
    group = room.group()
    assert (group.state_name, group.generation_id, group.protocol_type) == ("Empty", 2, "consumer")
    assert group.offset_expiry_base_ms(1) == room.now_ms


def test_a_batch_answers_each_for_itself(room: Room) -> None:
    leader, _ = stable(room)
    static = room.join(instance="desk")
    pending = room.join().answer.member_id
    room.join(leader)
    wanted = [
        ("stranger", None),
        ("", None),
        ("", "chair"),
        ("wrong", "desk"),
        (leader, "desk"),
        (leader, "chair"),
        ("", "desk"),
        (pending, None),
        (leader, None),
        (leader, None),
    ]
    answer = room.leave(*wanted)
    assert [(each.member_id, each.group_instance_id) for each in answer.members] == wanted
    unknown, fenced = errors.UNKNOWN_MEMBER_ID, errors.FENCED_INSTANCE_ID
    codes = [each.error_code for each in answer.members]
    assert codes == [unknown, unknown, unknown, fenced, fenced, unknown, 0, 0, 0, unknown]
    assert static.code == unknown
    assert answer.error_code == 0


@pytest.mark.parametrize("version", [0, 1, 2])
def test_before_batches_the_one_error_is_the_answers(room: Room, version: int) -> None:
    leader, _ = stable(room)
    assert room.leave(("stranger", None), version=version).error_code == errors.UNKNOWN_MEMBER_ID
    assert room.leave((leader, None), version=version).error_code == 0


def test_leaving_while_waiting_answers_what_waits(room: Room) -> None:
    (_leader, _), (other, _) = room.enter(), room.enter()
    room.advance(6_000)
    waiting = room.sync(other, 1)
    room.leave((other, None))
    assert waiting.code == errors.UNKNOWN_MEMBER_ID
    assert room.group().state_name == "PreparingRebalance"


def test_the_rebalance_goes_on_when_the_last_one_missing_leaves(room: Room) -> None:
    leader, other = stable(room)
    asked = room.join(leader)
    room.leave((other, None))
    assert asked.answer.generation_id == 2


def test_the_rebalance_goes_on_when_the_last_one_expected_expires(room: Room) -> None:
    leader, other = stable(room, session_ms=30_000)
    room.join(session_ms=6_000)
    asked = [room.join(leader, session_ms=30_000), room.join(other, session_ms=30_000)]
    assert asked[0].waits  # for the pending member
    room.advance(6_000)
    assert [each.answer.generation_id for each in asked] == [2, 2]


# -- group.max.size


def test_a_full_group_takes_nobody_more(room: Room) -> None:
    room.settings.max_size = 2
    _leader, other = stable(room)
    asked = room.join()
    assert (asked.code, asked.answer.member_id) == (errors.GROUP_MAX_SIZE_REACHED, "")
    assert room.join(other).code == 0
    assert room.group().state_name == "Stable"


def test_who_comes_first_gets_in_while_a_full_group_forms(room: Room) -> None:
    room.settings.max_size = 2
    ids = [room.join().answer.member_id for _ in range(3)]
    asked = [room.join(each) for each in ids]
    assert asked[2].code == errors.GROUP_MAX_SIZE_REACHED
    room.advance(6_000)
    assert [each.answer.generation_id for each in asked[:2]] == [1, 1]


def test_a_group_that_is_too_large_after_a_load_lets_its_members_race(room: Room) -> None:
    ids = stable(room, size=3)
    room.settings.max_size = 2
    room.reload()
    assert room.group().state_name == "PreparingRebalance"
    asked = [room.join(each) for each in ids]
    assert asked[2].code == errors.GROUP_MAX_SIZE_REACHED
    assert asked[0].waits  # Like Kafka we do not check whether the removed member was the last one missing
    room.advance(60_000)
    assert [each.code for each in asked[:2]] == [0, 0]
    assert list(room.group().roster.members) == ids[:2]


# -- what other APIs ask


def test_a_stable_group_shows_metadata_and_assignments(room: Room) -> None:
    leader, other = stable(room)
    described = finish(room.group().describe(6))
    assert (described.group_state, described.protocol_type, described.protocol_data) == (
        "Stable",
        "consumer",
        "range",
    )
    shown = {each.member_id: (each.member_metadata, each.member_assignment) for each in described.members}
    assert shown == {leader: (b"r", b"0"), other: (b"r", b"1")}
    assert {each.client_host for each in described.members} == {"/127.0.0.1"}


def test_a_group_that_rebalances_shows_no_metadata(room: Room) -> None:
    leader, _other = stable(room)
    room.join(leader)
    described = finish(room.group().describe(6))
    assert (described.group_state, described.protocol_data) == ("PreparingRebalance", "")
    assert [each.member_metadata for each in described.members] == [b"", b""]


def refused(check: Any, *arguments: Any) -> int:
    try:
        check(*arguments)
    except KafkaError as error:
        return error.code
    return 0


def test_who_may_commit_offsets(room: Room) -> None:
    leader, other = stable(room)
    check = room.group().check_offset_commit
    assert refused(check, leader, None, 1, False, 9) == 0
    assert refused(check, leader, None, 2, False, 9) == errors.ILLEGAL_GENERATION
    assert refused(check, leader, None, -1, False, 9) == errors.ILLEGAL_GENERATION
    assert refused(check, "stranger", None, 1, False, 9) == errors.UNKNOWN_MEMBER_ID
    assert refused(check, leader, "desk", 1, False, 9) == errors.UNKNOWN_MEMBER_ID
    assert refused(check, "", None, -1, False, 9) == errors.UNKNOWN_MEMBER_ID
    assert refused(check, "", None, -1, True, 9) == 0
    room.join(leader)
    assert refused(check, other, None, 1, False, 9) == 0  # of the generation that ends
    room.join(other)
    assert refused(check, other, None, 2, False, 9) == errors.REBALANCE_IN_PROGRESS
    assert refused(check, other, None, 2, True, 9) == 0
    room.leave((leader, None), (other, None))
    assert refused(check, "", None, -1, False, 9) == 0
    assert refused(check, "", None, 3, False, 9) == errors.UNKNOWN_MEMBER_ID


def test_only_an_empty_group_can_be_deleted(room: Room) -> None:
    leader, other = stable(room)
    assert refused(room.group().check_delete) == errors.NON_EMPTY_GROUP
    assert refused(room.group().check_offset_delete) == 0  # the topics that are used are known
    room.leave((leader, None), (other, None))
    assert refused(room.group().check_delete) == 0
    room.join(group="workers", protocol_type="connect", version=3)
    assert refused(room.group("workers").check_offset_delete) == errors.NON_EMPTY_GROUP


def subscription(*topics: str, version: int = 3) -> bytes:
    data = ConsumerProtocolSubscription(topics=list(topics), user_data=b"any")
    return version.to_bytes(2) + bytes(data.encode(version))


def test_the_topics_of_consumers_are_known(room: Room) -> None:
    room.enter(protocols=(("range", subscription("a", "b")),))
    room.enter(protocols=(("range", subscription("c", version=0)),))
    group = room.group()
    assert group.is_subscribed_to("z")  # not known yet
    room.advance(6_000)
    assert group.subscribed_topics == {"a", "b", "c"}
    assert [group.is_subscribed_to(topic) for topic in "abz"] == [True, True, False]
    assert group.offset_expiry_base_ms(5) is None  # not before it is stable


@pytest.mark.parametrize(
    "metadata", [b"", b"\0", b"\0\0\x7f\xff\xff\xff", b"\0\0\xff\xff\xff\xff", b"\0\0\0\0\0\1\0\5a"]
)
def test_metadata_that_is_none_tells_no_topics_and_breaks_nothing(room: Room, metadata: bytes) -> None:
    room.enter(protocols=(("range", metadata),))
    room.advance(3_000)
    assert room.group().subscribed_topics is None
    assert room.group().is_subscribed_to("a")
    assert room.group().state_name == "CompletingRebalance"


def test_other_kinds_of_groups_have_no_topics(room: Room) -> None:
    room.enter(protocol_type="connect")
    room.advance(3_000)
    assert not room.group().is_subscribed_to("a")


def test_unloading_answers_whoever_waits(room: Room) -> None:
    leader, _other = stable(room)
    joining = room.join(leader)
    syncing_room = Room()
    (_first, _), (second, _) = syncing_room.enter(), syncing_room.enter()
    syncing_room.advance(6_000)
    syncing = syncing_room.sync(second, 1)
    for each in (room, syncing_room):
        each.do(each.groups.on_unloaded())
    assert (joining.code, joining.answer.member_id) == (errors.NOT_COORDINATOR, leader)
    assert syncing.code == errors.NOT_COORDINATOR
