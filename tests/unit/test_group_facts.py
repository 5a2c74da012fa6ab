"""What the control socket tells of groups, offsets and fetches, in each state that a group can be in."""

from __future__ import annotations

import io
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from pykafkad import logs, messages
from pykafkad.control import facts, group_facts, status
from pykafkad.control.lines import CommandError
from tests.consumer_kit import Consumer, ConsumerRoom, assignment, settle_all, subscription
from tests.group_kit import Room, stable
from tests.unit.coordinator_kit import GroupDesk
from tests.unit.data_kit import Desk, batch, fetch, produce

PROTOCOLS = (("range", subscription("t", "u")),)


def members(room: Room) -> dict[str, dict[str, Any]]:
    image = SimpleNamespace(topics_by_id=getattr(getattr(room, "topics", None), "topics_by_id", {}))
    broker: Any = SimpleNamespace(image=image)
    group = room.group()
    rows = [group_facts.member_facts(broker, group, each) for each in group_facts.members_of(group).values()]
    return {row["id"]: row for row in rows}


# -- the classic protocol


def test_a_stable_group_has_nobody_late_and_all_assignments() -> None:
    room = Room()
    ids = stable(room, 2, protocols=PROTOCOLS, client_id="app")
    room.group().roster.members[ids[0]].assignment = assignment(t=[1, 0], u=[])
    room.group().roster.members[ids[1]].assignment = b"nothing that can be read"
    told = members(room)
    assert [told[each]["behind"] for each in ids] == [None, None]
    assert told[ids[0]]["assigned"] == {"t": [0, 1]} and told[ids[0]]["topics"] == ["t", "u"]
    assert told[ids[1]]["assigned"] is None
    assert (told[ids[0]]["client_id"], told[ids[0]]["host"]) == ("app", "127.0.0.1")
    assert list(group_facts.waiting_members(room.group())) == []
    row = group_facts.group_facts(room.group())
    assert (row["state"], row["generation"], row["members"]) == ("Stable", 1, 2)


def test_who_has_not_joined_again_is_late_and_who_has_waits_for_them() -> None:
    room = Room()
    ids = stable(room, 2, protocols=PROTOCOLS)
    newcomer, asked = room.enter(protocols=PROTOCOLS)
    assert asked.waits
    room.join(ids[0], protocols=PROTOCOLS)
    told = members(room)
    assert {each: told[each]["behind"] for each in told} == {ids[0]: None, ids[1]: "rejoin", newcomer: None}
    waiting = list(group_facts.waiting_members(room.group()))
    assert {row["member"] for row in waiting} == {ids[0], newcomer}
    assert {(row["what"], row["for"]) for row in waiting} == {("JoinGroup", ids[1])}


def test_who_has_not_assigned_or_synced_is_late() -> None:
    room = Room()
    entered = [room.enter(protocols=PROTOCOLS) for _ in range(3)]
    room.advance(room.settings.initial_rebalance_delay_ms * 2)
    leader = entered[0][1].answer.leader
    first, second = [each for each, _ in entered if each != leader]
    room.sync(first, 1)
    told = members(room)
    assert (told[leader]["behind"], told[first]["behind"], told[second]["behind"]) == ("assign", None, "sync")
    (row,) = group_facts.waiting_members(room.group())
    assert (row["what"], row["member"], row["for"]) == ("SyncGroup", first, leader)


def test_a_new_group_waits_for_more_and_nobody_is_late() -> None:
    room = Room()
    _, asked = room.enter(protocols=PROTOCOLS)
    assert asked.waits and group_facts.group_facts(room.group())["is_initial"]
    assert [each["behind"] for each in members(room).values()] == [None]
    (row,) = group_facts.waiting_members(room.group())
    assert row["for"] == "group.initial.rebalance.delay.ms"


def test_groups_of_other_kinds_have_no_topics() -> None:
    room = Room()
    only, _ = room.enter(protocol_type="connect", protocols=(("range", b"anything"),))
    told = members(room)[only]
    assert told["topics"] is None and told["assigned"] is None


# -- the consumer protocol


def test_whoever_has_to_give_up_partitions_is_late_and_who_waits_for_them_is_not() -> None:
    room = ConsumerRoom("t", partitions=2)
    slow, quick = Consumer(room, "slow"), Consumer(room, "quick")
    settle_all(slow)
    assert members(room)["slow"]["assigned"] == {"t": [0, 1]} and members(room)["slow"]["topics"] == ["t"]
    quick.beat()
    assert members(room)["slow"]["behind"] == "reconcile"  # it has not been told yet
    answer = room.beat("slow", slow.epoch).answer  # and says nothing of having revoked
    told = members(room)
    assert (told["slow"]["behind"], told["quick"]["behind"]) == ("revoke", None)
    slow.owned = room.named(answer) or {}
    settle_all(slow, quick)
    assert [each["behind"] for each in members(room).values()] == [None, None]
    assert list(group_facts.waiting_members(room.group())) == []


# -- rows


def known(rows: Any, kind: str) -> list[dict[str, Any]]:
    return [row[kind] for row in rows if row is not None and kind in row]


@pytest.fixture
def desk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.setattr(facts, "broker_facts", lambda broker: {})
    desk: Any = GroupDesk(tmp_path)
    for topic in desk.image.topics.values():
        monkeypatch.setattr(type(topic), "is_internal", False, raising=False)
        for placed in topic.partitions:
            monkeypatch.setattr(type(placed), "leader", 1, raising=False)
    desk.reactor = SimpleNamespace(connections=[desk.connection])
    return desk


def test_facts_about_a_group_are_about_the_topics_it_has_offsets_of(desk: Any) -> None:
    desk.create("t", 1)
    desk.replicas.table["t", 0].lead(0)
    desk.ask(produce("t", 0, batch(b"a", b"b")), 9)
    assert desk.commit("g", (0, 1), topic="t") == [0]
    rows = list(facts.rows(desk, None, {"group": "g"}))
    assert known(rows, "group")[0]["id"] == "g"
    assert known(rows, "committed") == [{"topic": "t", "partition": 0, "offset": 1, "lag": 1}]
    (partition,) = known(rows, "partition")
    assert (partition["start"], partition["high_watermark"], partition["leads"]) == (0, 2, True)
    assert known(facts.rows(desk, None, {"group": "nobody"}), "group") == []


def test_facts_about_fetches_come_from_those_that_wait_and_from_sessions(desk: Any) -> None:
    desk.create("t", 1)
    desk.replicas.table["t", 0].lead(0)
    data = batch(b"x" * 500)
    desk.ask(produce("t", 0, data), 9)
    desk.ask(
        fetch("t", {"fetch_offset": 0, "partition_max_bytes": 100}, session_epoch=0, isolation_level=1),
        12,
        "a",
    )
    desk.advance(700)
    (session,) = known(facts.rows(desk, None, {"topic": "t"}), "fetch")
    assert (session["client_id"], session["offset"], session["max_bytes"]) == ("a", 0, 100)
    assert (session["idle_ms"], session["committed_only"], session["connected"]) == (700, True, True)
    assert session["next_bytes"] == len(data)
    desk.send(fetch("t", {"fetch_offset": 1}, max_wait_ms=500, session_epoch=-1), 12, "b")
    (parked,) = known(facts.rows(desk, None, {"topic": "t"}), "fetch")  # of one address
    assert (parked["client_id"], parked["offset"], parked["next_bytes"], parked["idle_ms"]) == ("b", 1, 0, 0)
    (waiting,) = known(status.waiting(desk), "waiting")
    assert (waiting["what"], waiting["client_id"], waiting["partitions"]) == ("Fetch", "b", ["t-0"])


def test_the_host_of_a_fetch_is_written_as_that_of_a_member() -> None:
    assert facts.client_facts("c", "127.0.0.1:5000")["host"] == "127.0.0.1"
    assert facts.client_facts("c", "::1:5000")["host"] == "0:0:0:0:0:0:0:1"
    assert facts.client_facts("c", "::ffff:10.0.0.1:5000")["host"] == "10.0.0.1"


def test_facts_about_what_is_not_there(desk: Any) -> None:
    (missing,) = known(facts.rows(desk, None, {"topic": "order"}), "topic")
    assert missing["exists"] is False and "orders" in missing["others"]
    served = known(facts.rows(desk, None, {"topic": "orders"}), "partition")
    assert [each["leads"] for each in served] == [False] * 3  # known and without logs
    with pytest.raises(CommandError, match="facts about what"):
        list(facts.rows(desk, None, {}))


def test_a_transaction_that_holds_readers_is_told(tmp_path: Path) -> None:
    desk = Desk(tmp_path, transaction_partition_verification_enable="false")
    desk.create("t")
    replica = desk.replicas.table["t", 0]
    replica.lead(0)
    desk.ask(produce("t", 0, batch(b"a")), 9)
    assert facts.open_transaction(replica) is None
    open_batch = batch(b"b", producer_id=9, producer_epoch=0, base_sequence=0, transactional=True)
    request = produce("t", 0, open_batch)
    request.transactional_id = "tx"
    answer = desk.ask(request, 9)
    assert answer.responses[0].partition_responses[0].error_code == 0
    held = facts.open_transaction(replica)
    assert held is not None and (held["producer_id"], held["first_offset"]) == (9, 1)


def test_a_group_row_has_its_lag(desk: Any) -> None:
    desk.create("t", 1)
    desk.replicas.table["t", 0].lead(0)
    desk.ask(produce("t", 0, batch(b"a", b"b", b"c")), 9)
    desk.commit("g", (0, 1), topic="t")
    desk.commit("g", (0, 5))  # of a topic without logs: how far it is behind is not known
    group = group_facts.find(desk, "g")
    (row,) = known(status.group_row(desk, group), "group")
    assert (row["lag"], row["state"]) == (2, "Empty")


def test_states_of_consumer_groups_are_said_when_they_change(tmp_path: Path, said: io.StringIO) -> None:
    """At debug; who joins and leaves, and the epochs, are said at info, as by Kafka."""
    desk = GroupDesk(tmp_path)
    logs.set_level("debug")
    desk.dispatcher.follow_levels()
    heartbeat: Any = messages.ConsumerGroupHeartbeatRequest
    try:
        told = {"rebalance_timeout_ms": 10_000, "subscribed_topic_names": ["orders"], "topic_partitions": []}
        epoch = desk.ask(heartbeat(group_id="g", member_id="m", member_epoch=0, **told), 1).member_epoch
        desk.ask(heartbeat(group_id="g", member_id="m", member_epoch=epoch), 1)
        desk.ask(heartbeat(group_id="g", member_id="m", member_epoch=-1), 1)
    finally:
        desk.dispatcher.unfollow_levels()
        logs.set_level("info")
    states = [
        line.partition("[GroupId g] ")[2] for line in said.getvalue().splitlines() if " at epoch " in line
    ]
    assert states == ["Stable at epoch 2, 1 members", "Empty at epoch 3, 0 members"]


def test_what_waits_for_the_disk_is_told() -> None:
    promises = SimpleNamespace(held_by=lambda: [("t-0", 3)])
    broker: Any = SimpleNamespace(waiting=[], promises=promises, group_coordinator=SimpleNamespace(shards=[]))
    (row,) = known(status.waiting(broker), "waiting")
    assert (row["what"], row["partitions"], row["answers"]) == ("append", ["t-0"], 3)
