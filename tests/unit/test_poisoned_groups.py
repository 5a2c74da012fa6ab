"""Records of a coordinator's topic that are as large as nobody has them, and that any client may have written: while they
are loaded the loop goes on."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from pykafkad import messages, slices
from pykafkad.cluster.replica import Replica
from pykafkad.hot import records, wire
from pykafkad.pure.effects import LARGE_VALUE, UnknownRecord
from pykafkad.pure.groups import classic_records, consumer_protocol
from pykafkad.pure.groups.records import encode
from pykafkad.pure.transactions import records as transaction_records
from tests.unit.coordinator_kit import OFFSETS, GroupDesk

NOW_MS = 1_700_000_000_000
MANY = 20_000
ELEMENTS_MAX = 262_144  # of a record

Row = tuple[bytes, bytes | None]
CurrentAssignment = messages.ConsumerGroupCurrentMemberAssignmentValue
TargetAssignment = messages.ConsumerGroupTargetAssignmentMemberValue


@pytest.fixture
def desk(tmp_path: Path) -> GroupDesk:
    return GroupDesk(tmp_path)


def replica(desk: GroupDesk) -> Replica:
    found = desk.replicas.get((OFFSETS, 0))
    assert found is not None
    return found


def group_of(desk: GroupDesk) -> Any:
    (shard,) = desk.group_coordinator.shards
    return shard.machine.by_id["g"]


def write(desk: GroupDesk, *rows: Row, codec: str = "gzip") -> None:
    data = records.build([(key, value, (), NOW_MS) for key, value in rows], codec=codec)
    replica(desk).append_built(data, NOW_MS)
    desk.end_pass()


def loaded(desk: GroupDesk, patch: pytest.MonkeyPatch) -> tuple[GroupDesk, int]:
    """The broker after a restart, and how many turns of one step each its groups took to be served."""
    again = desk.restarted()
    with patch.context() as still:
        still.setattr(slices, "SLICE_US", 0)
        turns = 0
        while not (
            again.group_coordinator.shards and all(s.is_active for s in again.group_coordinator.shards)
        ):
            again.advance(0)
            again.end_pass()
            turns += 1
    return again, turns


def classic_group(count: int, topics: tuple[str, ...] = ("orders",), group_id: str = "g") -> Row:
    kind = messages.GroupMetadataValue
    subscription = b"\0\0" + messages.ConsumerProtocolSubscription(topics=list(topics)).encode(0)
    members = [
        kind.MemberMetadata(
            member_id=f"member-{number}",
            client_id="c",
            client_host="/127.0.0.1",
            rebalance_timeout=3000,
            session_timeout=3000,
            subscription=subscription,
            assignment=b"x",
        )
        for number in range(count)
    ]
    value = kind(
        protocol_type="consumer",
        generation=1,
        protocol="range",
        leader="member-0",
        current_state_timestamp=NOW_MS,
        members=members,
    )
    return encode(messages.GroupMetadataKey(group=group_id), value)


def assigned(topics: int, partitions: int, epoch: int = 1) -> Row:
    rows = [
        CurrentAssignment.TopicPartitions(topic_id=number.to_bytes(16), partitions=list(range(partitions)))
        for number in range(topics)
    ]
    value = CurrentAssignment(member_epoch=epoch, previous_member_epoch=0, state=0, assigned_partitions=rows)
    return encode(messages.ConsumerGroupCurrentMemberAssignmentKey(group_id="g", member_id="m"), value)


def target(topics: int) -> Row:
    rows = [
        TargetAssignment.TopicPartition(topic_id=number.to_bytes(16), partitions=[0])
        for number in range(topics)
    ]
    key = messages.ConsumerGroupTargetAssignmentMemberKey(group_id="g", member_id="m")
    return encode(key, TargetAssignment(topic_partitions=rows))


def subscribed(topics: int) -> Row:
    value = messages.ConsumerGroupMemberMetadataValue(
        client_id="c",
        client_host="/h",
        rebalance_timeout_ms=1,
        subscribed_topic_names=[f"t{n}" for n in range(topics)],
    )
    return encode(messages.ConsumerGroupMemberMetadataKey(group_id="g", member_id="m"), value)


def members(count: int) -> list[Row]:
    value = messages.ConsumerGroupMemberMetadataValue(
        client_id="c", client_host="/h", rebalance_timeout_ms=1, subscribed_topic_names=["orders"]
    )
    kind = messages.ConsumerGroupMemberMetadataKey
    return [encode(kind(group_id="g", member_id=f"m{number}"), value) for number in range(count)]


# -- the loop goes on


def test_a_group_of_very_many_members_is_loaded_one_at_a_time(
    desk: GroupDesk, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(desk, classic_group(MANY))
    again, turns = loaded(desk, monkeypatch)
    assert turns >= 2 * MANY + MANY // 16, (
        "they are added, their subscriptions read, and their sessions begin"
    )
    group = group_of(again)
    assert len(group.roster.members) == MANY and group.subscribed_topics == {"orders"}
    assert len(again.timers) >= MANY, "each has a session"


@pytest.mark.parametrize(
    ("row", "least"),
    [
        (lambda: assigned(MANY, 1), 2 * MANY),
        (lambda: assigned(1, 10 * MANY), 10 * MANY // 1_000),
        (lambda: target(MANY), MANY),
        (lambda: subscribed(MANY), MANY // 1_000),
    ],
    ids=["topics", "partitions", "target", "subscription"],
)
def test_a_member_of_very_much_is_loaded_in_steps(
    desk: GroupDesk, row: Callable[[], Row], least: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(desk, row())
    again, turns = loaded(desk, monkeypatch)
    assert turns >= least
    assert set(again.listed()) == {"g"}


def test_what_a_member_had_goes_in_steps_too(desk: GroupDesk, monkeypatch: pytest.MonkeyPatch) -> None:
    write(desk, assigned(MANY, 1))
    write(desk, assigned(0, 0, epoch=2))
    again, turns = loaded(desk, monkeypatch)
    assert turns >= 3 * MANY
    group = group_of(again)
    assert not group.owners and group.members["m"].epoch == 2


def test_the_sessions_of_a_consumer_group_begin_one_at_a_time(
    desk: GroupDesk, monkeypatch: pytest.MonkeyPatch
) -> None:
    count = 2_000
    write(desk, *members(count))
    again, turns = loaded(desk, monkeypatch)
    assert turns >= 2 * count and len(again.timers) >= count


def test_large_values_are_decoded_by_a_thread(desk: GroupDesk, monkeypatch: pytest.MonkeyPatch) -> None:
    few, large = classic_group(1, group_id="few"), classic_group(MANY)
    assert len(few[1] or b"") < LARGE_VALUE < len(large[1] or b"")
    write(desk, few, large)
    again = desk.restarted()
    loop = again.coordinator_loop
    submit, decoded = loop.submit, []

    def watched(work: Any, done: Any) -> None:
        if getattr(work, "func", None) is not None:
            decoded.append(work.args[1])
        submit(work, done)

    monkeypatch.setattr(loop, "submit", watched)
    again.settle()
    assert decoded == [large[1]] and set(again.listed()) == {"few", "g"}


# -- what is too large is left alone


def test_a_record_of_too_many_elements_is_left_alone(
    desk: GroupDesk, capfd: pytest.CaptureFixture[str]
) -> None:
    write(desk, assigned(1, ELEMENTS_MAX), classic_group(1, group_id="other"))
    again = desk.restarted()
    again.settle()
    assert set(again.listed()) == {"other"}
    assert f"left alone: a message of more than {ELEMENTS_MAX} elements" in capfd.readouterr().err


def test_a_record_that_is_too_long_is_never_in_memory_as_a_whole(
    desk: GroupDesk, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("pykafkad.coordinator.runtime.loading.LONGEST", 1 << 20)
    write(desk, (b"\0\2\0\1x", bytes(2 << 20)), classic_group(1))
    again = desk.restarted()
    again.settle()
    assert set(again.listed()) == {"g"}
    assert "the record at offset 0 is left alone" in capfd.readouterr().err


@pytest.mark.parametrize("codec", ["none", "gzip", "zstd"])
@pytest.mark.parametrize("size", [100, 60_000, 300_000, 3 << 20])
def test_of_a_long_record_the_offset_alone_is_read(size: int, codec: str) -> None:
    headers = [("h", b"v")]
    rows = [
        (b"k", b"a", headers, NOW_MS),
        (b"long", bytes(size), headers, NOW_MS),
        (b"k", b"b" * 40_000, headers, NOW_MS),
        (b"long", bytes(size), headers, NOW_MS),
    ]
    data = records.build(rows, codec=codec)
    found = [each for each in records.read_in_slices(data, 50_000, with_headers=False) if each is not None]
    assert [each.offset for each in found] == [0, 1, 2, 3]
    values = [b"a", bytes(size), b"b" * 40_000, bytes(size)]
    assert [each.value for each in found] == [each if len(each) < 50_000 else None for each in values]
    assert all(each.headers == [] for each in found)


def test_a_long_record_that_is_cut_is_no_record() -> None:
    whole = records.build([(b"k", bytes(300_000), (), NOW_MS)])
    cut = bytearray(whole[:-100])
    cut[8:12] = (len(cut) - 12).to_bytes(4)
    with pytest.raises(records.RecordsError):
        list(records.read_in_slices(bytes(cut), 50_000))


def test_a_transaction_of_more_partitions_than_anybody_has_is_left_alone() -> None:
    kind = messages.TransactionLogValue
    key = b"\0\0" + messages.TransactionLogKey(transactional_id="t").encode(0)

    def value(count: int) -> bytes:
        row = kind.PartitionsSchema(topic="orders", partition_ids=list(range(count)))
        return b"\0\0" + kind(transaction_status=1, transaction_partitions=[row]).encode(0)

    most = transaction_records.PARTITIONS_MAX
    _, transaction = transaction_records.decode(key, value(most))
    assert transaction is not None and len(transaction.partitions) == most
    with pytest.raises(UnknownRecord, match=f"a transaction of {most + 1} partitions"):
        transaction_records.decode(key, value(most + 1))


# -- what members are subscribed to


def topics_known(desk: GroupDesk) -> Any:
    again = desk.restarted()
    again.settle()
    return group_of(again).subscribed_topics


def test_metadata_of_too_many_topics_is_not_read_and_all_topics_are_kept(
    desk: GroupDesk, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(classic_records, "SUBSCRIBED_TOPICS_MAX", 3)
    write(desk, classic_group(1, ("a", "b", "c", "d")))
    assert topics_known(desk) is None
    assert "The topics that group g is subscribed to are not looked for" in capfd.readouterr().err


def test_metadata_that_all_members_have_counts_once(desk: GroupDesk, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(classic_records, "SUBSCRIBED_TOPICS_MAX", 3)
    write(desk, classic_group(2, ("a", "b", "c")))
    assert topics_known(desk) == {"a", "b", "c"}


def test_metadata_of_too_many_bytes_is_not_read(desk: GroupDesk, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(classic_records, "SUBSCRIPTION_BYTES_MAX", 9)
    write(desk, classic_group(1, ("a",)))
    assert topics_known(desk) is None


def test_subscriptions_and_assignments_of_too_many_topics_are_a_clients_mistake(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(consumer_protocol, "ELEMENTS_MAX", 3)
    kind = messages.ConsumerProtocolAssignment
    for count in (3, 4):
        subscription = b"\0\0" + messages.ConsumerProtocolSubscription(topics=["a"] * count).encode(0)
        rows = [kind.TopicPartition(topic="a", partitions=list(range(count - 1)))]
        assignment = b"\0\0" + kind(assigned_partitions=rows).encode(0)
        for read, data in (
            (consumer_protocol.read_subscription, subscription),
            (consumer_protocol.read_assignment, assignment),
        ):
            if count == 3:
                read(data)
            else:
                with pytest.raises(wire.WireError, match="more than 3 elements"):
                    read(data)


def test_a_message_in_bytes_is_not_read_further_than_wanted() -> None:
    data = messages.ConsumerProtocolSubscription(topics=["a", "b"]).encode(0)
    read, end = messages.ConsumerProtocolSubscription.decode_prefix(data, 0, most=2)
    assert read.topics == ["a", "b"] and end == len(data)
    for most in (0, 1):
        with pytest.raises(wire.LargeMessage):
            messages.ConsumerProtocolSubscription.decode_prefix(data, 0, most=most)
