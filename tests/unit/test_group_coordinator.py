"""The group coordinator around the group machines: shards, batches of a pass, failures, loading, timers, stopping."""

from __future__ import annotations

import gc
from pathlib import Path
from typing import Any

import pytest

from pykafkad import errors, messages, slices
from pykafkad.config import TopicConfig
from pykafkad.coordinator.groups import random_id
from pykafkad.coordinator.runtime.runtime import partition_for
from pykafkad.errors import KafkaError
from pykafkad.hot import records
from pykafkad.pure.effects import Effects
from pykafkad.pure.groups.offsets import Offsets
from pykafkad.pure.hosts import java_text
from pykafkad.storage.log.log import Log
from tests.unit.coordinator_kit import OFFSETS, GroupDesk, commit_request
from tests.unit.data_kit import Connection


@pytest.fixture
def desk(tmp_path: Path) -> GroupDesk:
    return GroupDesk(tmp_path)


def batches_of(desk: GroupDesk, index: int = 0) -> list[int]:
    """How many records each batch of a partition has."""
    partition = desk.storage.partitions[OFFSETS, index]
    found = partition.read(0, 1 << 30, limit_offset=partition.high_watermark, at_least_one=True)
    return [batch.count for batch in records.scan(found.read())] if found else []


# -- where groups are


@pytest.mark.parametrize(
    ("group_id", "partition"),
    [  # by Java's String.hashCode
        ("", 0),
        ("g", 3),
        ("group-18", 33),
        ("connect-cluster", 13),
        ("console-consumer-12345", 6),
        ("my-app", 0),  # its hash code is below zero
        ("polygenelubricants", 0),  # its hash code is the least there is
        ("\U0001d11e", 44),
    ],
)
def test_a_group_has_the_partition_it_has_in_kafka(group_id: str, partition: int) -> None:
    assert partition_for(group_id, 50) == partition


def test_ids_are_random_uuids_as_java_writes_them() -> None:
    text = random_id()
    assert [len(part) for part in text.split("-")] == [8, 4, 4, 4, 12]
    assert text[14] == "4" and text[19] in "89ab"
    assert random_id() != text


@pytest.mark.parametrize(
    ("address", "text"),
    [
        ("127.0.0.1", "127.0.0.1"),
        ("::1", "0:0:0:0:0:0:0:1"),
        ("::", "0:0:0:0:0:0:0:0"),
        ("2001:db8::a:0:1", "2001:db8:0:0:0:a:0:1"),
        ("fe80::1%eth0", "fe80:0:0:0:0:0:0:1%eth0"),
        ("::ffff:10.0.0.7", "10.0.0.7"),
    ],
)
def test_hosts_are_shown_as_java_shows_them(address: str, text: str) -> None:
    assert java_text(address) == text


def test_without_its_topic_there_is_no_coordinator(tmp_path: Path) -> None:
    desk = GroupDesk(tmp_path)
    del desk.image.topics[OFFSETS]
    assert desk.commit("g", (0, 5)) == [errors.NOT_COORDINATOR]


def test_a_partition_that_is_offline_has_no_coordinator(desk: GroupDesk) -> None:
    del desk.replicas.table[OFFSETS, 0]
    assert desk.commit("g", (0, 5)) == [errors.NOT_COORDINATOR]


# -- a pass


def test_what_a_pass_wants_written_is_one_batch(desk: GroupDesk) -> None:
    given = [desk.send(commit_request("g", (0, offset), (1, offset)), 8) for offset in range(5)]
    desk.end_pass()
    answers = [desk.answer_of(each, "OffsetCommitRequest", 8) for each in given]
    assert [row.error_code for answer in answers for row in answer.topics[0].partitions] == [0] * 10
    assert batches_of(desk) == [10]
    assert desk.committed("g") == {("orders", 0): 4, ("orders", 1): 4}


def test_a_batch_is_never_larger_than_the_topic_allows(desk: GroupDesk) -> None:
    metadata = "m" * 4096
    for offset in range(300):
        desk.send(commit_request("g", (0, offset, metadata)), 8)
    desk.end_pass()
    counts = batches_of(desk)
    assert sum(counts) == 300
    assert len(counts) == 2
    assert desk.committed("g") == {("orders", 0): 299}


def test_an_operation_that_no_batch_can_hold_is_refused_and_changes_nothing(desk: GroupDesk) -> None:
    desk.create("wide", 300)
    metadata = "m" * 4096
    rows = [(index, 1, metadata) for index in range(300)]
    assert desk.commit("new", *rows, topic="wide") == [errors.UNKNOWN_SERVER_ERROR] * 300
    assert desk.listed() == {}
    assert desk.log() == []
    assert desk.commit("new", *rows[:200], topic="wide") == [0] * 200


def test_a_write_that_fails_is_told_to_everybody_of_its_pass(
    desk: GroupDesk, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert desk.commit("g", (0, 5)) == [0]
    given = [desk.send(commit_request("g", (0, offset)), 8) for offset in (6, 7)]
    listed = desk.send(messages.ListGroupsRequest(), 5)
    desk.storage.partitions[OFFSETS, 0].log_directory.fail("the disk is gone")
    desk.end_pass()
    for each in given:
        answer = desk.answer_of(each, "OffsetCommitRequest", 8)
        assert answer.topics[0].partitions[0].error_code == errors.NOT_COORDINATOR
    assert desk.answer_of(listed, "ListGroupsRequest", 5).error_code == errors.NOT_COORDINATOR
    assert desk.commit("g", (0, 8)) == [errors.NOT_COORDINATOR]


# -- timers


class Watcher:
    """In the place of a group machine: notes which timers expired, and when."""

    def __init__(self, desk: GroupDesk) -> None:
        desk.commit("g", (0, 1))
        self.shard = desk.group_coordinator.shard(0)
        self.shard.machine.on_timer = self.on_timer
        self.desk = desk
        self.fired: list[tuple[str, int]] = []
        self.start_ms = desk.clock.monotonic_ms()

    def on_timer(self, key: tuple[str, ...], now_ms: int) -> Effects:
        self.fired.append((key[1], self.desk.clock.monotonic_ms() - self.start_ms))
        return Effects()

    def set(self, name: str, delay_ms: int | None) -> None:
        effects = Effects()
        effects.timers.append((("g", name), delay_ms))
        self.shard.perform(effects)


@pytest.fixture
def watcher(desk: GroupDesk, monkeypatch: pytest.MonkeyPatch) -> Watcher:
    from pykafkad.coordinator.group_machine import GroupMachine

    class Watched(GroupMachine):  # without slots, so that a method can be replaced
        pass

    monkeypatch.setattr("pykafkad.coordinator.group_machine.GroupMachine", Watched)
    return Watcher(desk)


def test_a_timer_fires_once_when_its_time_has_come(desk: GroupDesk, watcher: Watcher) -> None:
    watcher.set("a", 100)
    desk.advance(99)
    assert watcher.fired == []
    desk.advance(1)
    desk.advance(1000)
    assert watcher.fired == [("a", 100)]


def test_a_timer_that_is_set_again_moves(desk: GroupDesk, watcher: Watcher) -> None:
    watcher.set("a", 100)
    watcher.set("b", 100)
    desk.advance(60)
    watcher.set("a", 100)
    watcher.set("b", 10)
    desk.advance(10)
    assert watcher.fired == [("b", 70)]
    desk.advance(89)
    assert watcher.fired == [("b", 70)]
    desk.advance(1)
    assert watcher.fired == [("b", 70), ("a", 160)]


def test_a_timer_that_is_cancelled_does_not_fire(desk: GroupDesk, watcher: Watcher) -> None:
    watcher.set("a", 100)
    watcher.set("a", None)
    watcher.set("never", None)
    desk.advance(1000)
    assert watcher.fired == []


def test_no_timer_outlives_its_partition(desk: GroupDesk, watcher: Watcher) -> None:
    watcher.set("a", 100)
    desk.group_coordinator.stop()
    desk.advance(1000)
    assert watcher.fired == []


# -- loading


def test_groups_and_offsets_are_there_after_a_restart(desk: GroupDesk) -> None:
    desk.commit("g", (0, 5), (2, 7))
    desk.commit("h", (1, 9))
    desk.commit("g", (0, 6))
    for clean in (True, False):
        desk = desk.restarted(clean)
        desk.settle()
        assert desk.listed() == {"g": "Empty", "h": "Empty"}
        assert desk.committed("g") == {("orders", 0): 6, ("orders", 2): 7}
        assert desk.committed("h") == {("orders", 1): 9}
        assert desk.commit("g", (0, 6)) == [0]


def test_loading_goes_in_turns_and_others_are_served_meanwhile(
    desk: GroupDesk, monkeypatch: pytest.MonkeyPatch
) -> None:
    for offset in range(25):
        desk.commit("g", (0, offset))
    monkeypatch.setattr(slices, "SLICE_US", 0)
    desk = desk.restarted()
    desk.advance(0)
    assert desk.commit("g", (0, 99)) == [errors.COORDINATOR_LOAD_IN_PROGRESS]
    answer = desk.ask_in_turns(messages.ListGroupsRequest(), 5)
    assert (answer.error_code, answer.groups) == (errors.COORDINATOR_LOAD_IN_PROGRESS, [])
    fetched = desk.ask_in_turns(offset_fetch("g"), 8).groups[0]
    assert fetched.error_code == errors.COORDINATOR_LOAD_IN_PROGRESS
    metadata = desk.ask_in_turns(messages.OffsetFetchRequest(groups=[]), 8)
    assert metadata.groups == []
    monkeypatch.undo()
    desk.settle()
    assert desk.committed("g") == {("orders", 0): 24}


def test_a_load_goes_on_where_the_log_starts_by_then(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    desk = GroupDesk(tmp_path, offsets_load_buffer_size="1")
    for offset in range(25):
        desk.commit("g", (0, offset))
    monkeypatch.setattr(slices, "SLICE_US", 0)
    desk = desk.restarted()
    desk.advance(0)
    partition = desk.storage.partitions[OFFSETS, 0]
    partition.advance_log_start(20)  # as retention does
    monkeypatch.undo()
    desk.settle()
    assert desk.committed("g") == {("orders", 0): 24}


def offset_fetch(group_id: str) -> Any:
    kind = messages.OffsetFetchRequest
    return kind(groups=[kind.OffsetFetchRequestGroup(group_id=group_id, topics=None)])


def test_what_is_asked_for_is_loaded_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    desk = GroupDesk(tmp_path, partitions=4)
    names = {partition_for(name, 4): name for name in "abcdefgh"}
    for name in names.values():
        for offset in range(15):
            desk.commit(name, (0, offset))
    monkeypatch.setattr(slices, "SLICE_US", 0)
    desk = desk.restarted()
    desk.advance(0)
    assert desk.commit(names[3], (0, 1)) == [errors.COORDINATOR_LOAD_IN_PROGRESS]
    order: list[int] = []
    while len(order) < 4:
        desk.advance(0)
        desk.end_pass()
        order += [
            index
            for index in range(4)
            if desk.group_coordinator.shard(index).is_active and index not in order
        ]
    assert order.index(3) < order.index(2)
    monkeypatch.undo()
    for name in names.values():
        assert desk.committed(name) == {("orders", 0): 14}


def test_large_logs_are_read_in_pieces(tmp_path: Path) -> None:
    desk = GroupDesk(tmp_path, offsets_load_buffer_size="300")
    for offset in range(40):
        desk.commit("g", (offset % 3, offset, "some metadata"))
    assert desk.commit("g", *((index % 3, index, "m" * 200) for index in range(10))) == [0] * 10
    desk = desk.restarted()
    desk.settle()
    assert desk.committed("g") == {("orders", 0): 9, ("orders", 1): 7, ("orders", 2): 8}


STRANGE = [
    (b"", b""),
    (b"\0", b""),
    (b"\0\x0b\0\1g", b"\0\0"),  # a share group's
    (b"\x7f\xff", b"\0\0"),
    (b"\0\1\0\5g", b"\0\4"),  # cut off
    (b"\0\1\0\1g\0\6orders\0\0\0\0", b"\0\x09"),  # a version of later
    (b"\0\1\0\1g\0\6orders\0\0\0\0", b"\0"),
]


def test_records_that_nobody_knows_are_left_alone(desk: GroupDesk) -> None:
    desk.commit("g", (0, 5))
    partition = desk.storage.partitions[OFFSETS, 0]
    partition.append_built(records.build([(key, value, (), 1) for key, value in STRANGE]), 1)
    desk.end_pass()
    desk.commit("g", (1, 6))
    end = partition.log_end_offset
    desk = desk.restarted()
    desk.settle()
    assert desk.committed("g") == {("orders", 0): 5, ("orders", 1): 6}
    assert desk.storage.partitions[OFFSETS, 0].log_end_offset == end


def test_damage_leaves_the_partition_without_a_coordinator_and_others_go_on(tmp_path: Path) -> None:
    desk = GroupDesk(tmp_path, partitions=2)
    good, bad = (next(name for name in "abcdefgh" if partition_for(name, 2) == index) for index in (0, 1))
    for name in (good, bad):
        desk.commit(name, (0, 5))
    desk = desk.restarted()
    path = next(tmp_path.rglob(f"{OFFSETS}-1/*.log"))
    data = bytearray(path.read_bytes())
    data[70] ^= 0xFF
    path.write_bytes(data)
    desk.settle()
    assert desk.commit(bad, (0, 6)) == [errors.NOT_COORDINATOR]
    assert desk.committed(good) == {("orders", 0): 5}
    assert desk.listed() == {good: "Empty"}


# -- the end


def test_a_broker_that_stops_refuses(desk: GroupDesk) -> None:
    desk.commit("g", (0, 5))
    desk.group_coordinator.stop()
    assert desk.commit("g", (0, 6)) == [errors.COORDINATOR_NOT_AVAILABLE]
    assert desk.ask(messages.ListGroupsRequest(), 5).error_code == errors.COORDINATOR_NOT_AVAILABLE


def test_a_deleted_topic_of_offsets_takes_its_groups_with_it(desk: GroupDesk) -> None:
    desk.commit("g", (0, 5))
    topic = desk.image.topics.pop(OFFSETS)
    desk.storage.delete(OFFSETS, 0)
    desk.group_coordinator.topic_deleted(topic)
    assert desk.commit("g", (0, 6)) == [errors.NOT_COORDINATOR]
    desk.create(OFFSETS, 1)
    assert desk.committed("g") == {}
    assert desk.commit("g", (0, 7)) == [0]


def test_a_commit_while_the_topic_of_offsets_is_being_deleted(desk: GroupDesk) -> None:
    """Its logs go in slices, and the coordinator is told after the last one."""
    desk.commit("g", (0, 5))
    topic = desk.image.topics.pop(OFFSETS)
    desk.storage.delete(OFFSETS, 0)
    assert desk.commit("g", (0, 6)) == [errors.NOT_COORDINATOR]
    assert all(directory.is_online for directory in desk.storage.directories)
    desk.group_coordinator.topic_deleted(topic)
    desk.create(OFFSETS, 1)
    assert desk.commit("g", (0, 7)) == [0]


# -- configs


def test_dynamic_configs_of_the_broker_count_at_once(desk: GroupDesk) -> None:
    desk.commit("g", (0, 5))
    settings = desk.group_coordinator.settings
    assert settings.consumer_assignment_interval_ms == 1000
    changed = desk.config.with_dynamic({"group.consumer.assignment.interval.ms": "77"})
    desk.group_coordinator.configs_changed(desk.config.adopt(changed))
    assert settings.consumer_assignment_interval_ms == 77


def test_configs_of_a_group_are_typed(desk: GroupDesk) -> None:
    texts = {"consumer.session.timeout.ms": "50000", "share.auto.offset.reset": "earliest"}
    desk.image.configs[32, "g"] = texts
    found = desk.group_coordinator.settings.group_config("g")
    assert found == {"consumer.session.timeout.ms": 50_000, "share.auto.offset.reset": "earliest"}
    assert desk.group_coordinator.settings.group_config("other") == {}


# -- our own mistakes


def test_what_cannot_be_replayed_is_not_written_and_the_groups_are_loaded_anew(
    desk: GroupDesk, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert desk.commit("g", (0, 5)) == [0]
    good = desk.send(commit_request("g", (1, 6)), 8)
    replayed: list[Any] = []

    def fail(offsets: Offsets, key: Any, value: Any, *where: int) -> None:
        replayed.append(value)
        raise AssertionError("a mistake")

    with monkeypatch.context() as patch:
        patch.setattr(Offsets, "replay", fail)
        assert desk.ask(commit_request("g", (2, 7)), 8) is None
    assert (desk.connection.closed, len(replayed)) == ("closed", 1)
    assert desk.answer_of(good, "OffsetCommitRequest", 8).topics[0].partitions[0].error_code == 0
    desk.connection = Connection()
    desk.listed()  # no request was for this partition since
    desk.settle()
    assert desk.committed("g") == {("orders", 0): 5, ("orders", 1): 6}
    assert desk.commit("g", (2, 8)) == [0]


def test_a_log_that_takes_nothing_more_ends_its_partition_only(
    desk: GroupDesk, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert desk.commit("g", (0, 5)) == [0]

    def refuse(self: Any, data: bytes, now_ms: int, **marker: int) -> Any:
        raise KafkaError(errors.CORRUPT_MESSAGE)

    monkeypatch.setattr(Log, "append_built", refuse)
    assert desk.commit("g", (0, 6)) == [errors.NOT_COORDINATOR]
    assert desk.commit("g", (0, 7)) == [errors.NOT_COORDINATOR]
    assert desk.listed() == {}
    assert desk.storage.partitions[OFFSETS, 0].log_directory.is_online


def test_a_segment_smaller_than_a_batch_may_be_limits_it(desk: GroupDesk) -> None:
    partition = desk.storage.partitions[OFFSETS, 0]
    partition.settings.segment_bytes = 700
    assert desk.commit("g", *((index, 1, "m" * 100) for index in range(3))) == [0] * 3
    assert desk.commit("g", (0, 1, "m" * 600)) == [errors.UNKNOWN_SERVER_ERROR]
    assert desk.commit("g", (0, 9)) == [0]


@pytest.mark.parametrize("codec", [0, 1, 2, 3, 4])
def test_records_may_be_compressed(tmp_path: Path, codec: int) -> None:
    desk = GroupDesk(tmp_path, offsets_topic_compression_codec=str(codec))
    assert desk.commit("g", (0, 5, "m" * 1000), (1, 6, "m" * 1000)) == [0, 0]
    partition = desk.storage.partitions[OFFSETS, 0]
    assert (partition.size < 1000) is (codec > 0)
    desk = desk.restarted()
    desk.settle()
    assert desk.committed("g") == {("orders", 0): 5, ("orders", 1): 6}


def test_partitions_added_to_the_topic_of_offsets_count_from_the_next_start_on(tmp_path: Path) -> None:
    desk = GroupDesk(tmp_path, partitions=2)
    names = [f"g{index}" for index in range(20)]
    for name in names:
        desk.commit(name, (0, 5))
    topic = desk.image.topics[OFFSETS]
    topic.partitions = [*topic.partitions, None]  # type: ignore[list-item]
    desk.storage.create(OFFSETS, 2, topic.id, TopicConfig(desk.config, {"cleanup.policy": "compact"}), 0)
    assert all(desk.committed(name) == {("orders", 0): 5} for name in names)
    assert set(desk.listed()) == set(names)


def test_offsets_are_deleted_of_partitions_that_there_are(desk: GroupDesk) -> None:
    kind = messages.OffsetDeleteRequest
    desk.commit("g", (0, 5))
    count = len(desk.image.topics["orders"].partitions)
    rows = [kind.OffsetDeleteRequestPartition(partition_index=each) for each in (-1, 0, count - 1, count)]
    topics = [kind.OffsetDeleteRequestTopic(name=name, partitions=rows) for name in ("orders", "nowhere")]
    answer = desk.ask(kind(group_id="g", topics=topics), 0)
    unknown = errors.UNKNOWN_TOPIC_OR_PARTITION
    found = {
        topic.name: [(row.partition_index, row.error_code) for row in topic.partitions]
        for topic in answer.topics
    }
    assert found == {
        "orders": [(-1, unknown), (count, unknown), (0, 0), *([(count - 1, 0)] if count else [])],
        "nowhere": [(each, unknown) for each in (-1, 0, count - 1, count)],
    }
    assert desk.committed("g") == {} and desk.ask(kind(group_id=""), 0).error_code == errors.INVALID_GROUP_ID


def test_offsets_are_fetched_by_topic_ids_of_topics_that_there_are(desk: GroupDesk) -> None:
    desk.commit("g", (0, 5))
    kind = messages.OffsetFetchRequest
    orders, nowhere = desk.image.topics["orders"].id, b"\7" * 16
    rows = [
        kind.OffsetFetchRequestTopics(topic_id=topic_id, partition_indexes=[0])
        for topic_id in (nowhere, orders, nowhere)
    ]
    groups = [kind.OffsetFetchRequestGroup(group_id="g", topics=rows)]
    (group,) = desk.ask(kind(groups=groups), 10).groups
    found = [
        (topic.topic_id, row.committed_offset, row.error_code)
        for topic in group.topics
        for row in topic.partitions
    ]
    unknown = nowhere, -1, errors.UNKNOWN_TOPIC_ID
    assert found == [(orders, 5, errors.NONE), unknown, unknown]


@pytest.mark.parametrize("version", [8, 9, 10])
def test_offsets_of_many_groups_are_those_of_each_of_them(desk: GroupDesk, version: int) -> None:
    """Though they are put together in slices, and what was asked before is answered again."""
    desk.commit("g", (0, 5), (1, 6))
    desk.commit("h", (0, 7))
    kind = messages.OffsetFetchRequest

    def topic(name: str, *indexes: int) -> Any:
        known = desk.image.topics.get(name)
        topic_id = b"\7" * 16 if known is None else known.id
        named = {"topic_id": topic_id} if version >= 10 else {"name": name}
        return kind.OffsetFetchRequestTopics(partition_indexes=list(indexes), **named)

    asked = [
        kind.OffsetFetchRequestGroup(group_id=group, topics=topics, member_id=member, member_epoch=epoch)
        for group, topics, member, epoch in (
            ("g", None, None, -1),
            ("h", None, None, -1),
            ("g", [topic("orders", 0, 99), topic("nowhere", 0)], None, -1),
            ("g", None, "stranger", 5),
            ("g", [topic("orders", 1)], "stranger", 5),
            ("unknown", None, None, -1),
            ("g", [topic("orders", *range(200))], None, -1),
            ("", [topic("orders", 0)], None, -1),
        )
    ]
    single = [desk.ask_in_turns(kind(groups=[each]), version).groups[0] for each in asked]
    many = desk.ask_in_turns(kind(groups=asked * 20), version).groups
    assert list(many) == single * 20
    found = [
        {row.committed_offset for each in group.topics for row in each.partitions} for group in single[:3]
    ]
    assert found == [{5, 6}, {7}, {5, -1}]


def test_a_refused_request_is_freed_without_the_cycle_collector(desk: GroupDesk) -> None:
    """The collector runs rarely, and a refused request may be large."""
    kind = messages.OffsetDeleteRequest
    rows = [kind.OffsetDeleteRequestPartition(partition_index=index) for index in range(3)]
    request = kind(group_id="unknown", topics=[kind.OffsetDeleteRequestTopic(name="orders", partitions=rows)])
    desk.ask(request, 0)
    gc.collect()
    gc.disable()
    try:
        assert desk.ask(request, 0).error_code == errors.GROUP_ID_NOT_FOUND
        gc.set_debug(gc.DEBUG_SAVEALL)
        gc.collect()
        left = {type(each).__name__ for each in gc.garbage}
    finally:
        gc.set_debug(0)
        gc.garbage.clear()
        gc.enable()
    assert not left & {"KafkaError", "frame", "traceback", "OffsetDeleteRequest"}
