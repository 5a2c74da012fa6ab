"""The controller: what shares one fsync, in which order, and what requests see of each other."""

from __future__ import annotations

import errno
import os
from itertools import pairwise
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from pykafkad import errors
from pykafkad.cluster import topic_names
from pykafkad.cluster.producer_ids import ASK_AHEAD, BLOCK_SIZE
from pykafkad.errors import KafkaError
from pykafkad.handlers import find_coordinator
from pykafkad.hot import records
from pykafkad.slices import Slices
from tests.unit.metadata_fakes import DIRECTORY_ID, FakeStorage, Hasty, Later, creatable, create, open_broker


def batches(directory: Path) -> list[Any]:
    path = directory / "__cluster_metadata-0" / "00000000000000000000.log"
    return records.scan(path.read_bytes())


def codes(planned: list[Any]) -> list[int]:
    return [topic.error.code if topic.error else errors.NONE for topic in planned]


def test_creations_of_one_pass_share_a_batch_and_an_fsync(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    later = Later()
    broker = open_broker(tmp_path, later)
    synced = []
    fdatasync = os.fdatasync
    monkeypatch.setattr(os, "fdatasync", lambda fd: synced.append(fd) or fdatasync(fd))
    before = len(batches(tmp_path))
    answers = [create(broker, creatable(f"t{number}")) for number in range(5)]
    assert answers == [[]] * 5  # no answer is sent before it is durable
    assert not broker.image.topics
    later.all()
    assert [codes(planned) for planned in answers] == [[0]] * 5
    assert len(synced) == 1
    assert len(batches(tmp_path)) == before + 1


def test_what_comes_during_a_write_gathers_for_the_next(tmp_path: Path) -> None:
    later = Later()
    broker = open_broker(tmp_path, later)
    before = len(batches(tmp_path))
    first = create(broker, creatable("first"))
    later.step()  # the end of the pass: a worker gets the write
    second, third = create(broker, creatable("second")), create(broker, creatable("third"))
    later.step()  # the worker is done
    assert (codes(first), second, third) == ([0], [], [])
    later.all()
    assert (codes(second), codes(third)) == ([0], [0])
    assert len(batches(tmp_path)) == before + 2


def test_a_batch_holds_whole_requests_and_has_a_bound(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    later = Later()
    broker = open_broker(tmp_path, later)
    monkeypatch.setattr("pykafkad.cluster.commits.MAX_RECORDS_IN_BATCH", 7)
    before = len(batches(tmp_path))
    answers = [create(broker, creatable(f"t{number}", 3)) for number in range(4)]  # four records each
    later.all()
    assert [codes(planned) for planned in answers] == [[0]] * 4
    assert [batch.count for batch in batches(tmp_path)[before:]] == [4, 4, 4, 4]


def test_metadata_is_durable_before_a_directory_is_made(tmp_path: Path) -> None:
    later = Later()
    broker = open_broker(tmp_path, later)
    create(broker, creatable("orders", 2))
    later.step()
    assert broker.storage.events == []
    later.all()
    assert broker.storage.events == ["create orders-0", "create orders-1"]
    assert broker.storage.partitions["orders", 0] == (broker.image.topics["orders"].id, 0, DIRECTORY_ID)


def test_many_directories_are_made_a_few_a_turn(tmp_path: Path) -> None:
    later = Later()
    broker = open_broker(tmp_path, later, Slices(later.soon, Hasty()))
    planned = create(broker, creatable("wide", 25))
    made = [0]
    while later.waiting:
        later.step()
        made.append(len(broker.storage.events))
    assert max(after - before for before, after in pairwise(made)) <= 2
    assert made[-1] == 25 and codes(planned) == [0]


def test_a_topic_under_way_exists_for_the_next_request(tmp_path: Path) -> None:
    later = Later()
    broker = open_broker(tmp_path, later)
    first = create(broker, creatable("a.b"))
    assert codes(create(broker, creatable("a.b"))) == [errors.TOPIC_ALREADY_EXISTS]
    again = create(broker, creatable("a_b"))
    assert codes(again) == [errors.INVALID_TOPIC_EXCEPTION]
    assert again[0].error.message == "Topic 'a_b' collides with existing topic: a.b"
    later.all()
    assert codes(first) == [0]


def test_a_topic_can_be_deleted_and_created_anew_before_the_disk_knows(tmp_path: Path) -> None:
    later = Later()
    broker = open_broker(tmp_path, later)
    create(broker, creatable("orders", 2))
    later.all()
    old = broker.controller.names.id_of("orders")
    deleted: list[Any] = []
    broker.controller.delete_topics([old], deleted.append)
    assert not broker.controller.names.exists("orders") and broker.controller.names.name_of(old) is None
    planned = create(broker, creatable("orders"))
    new = broker.controller.names.id_of("orders")
    assert new not in (None, old)
    later.all()
    assert (deleted, codes(planned)) == ([{}], [0])
    assert broker.image.topics["orders"].id == new
    assert broker.storage.events[2:] == ["delete orders-0", "delete orders-1", "create orders-0"]
    assert broker.controller.names.id_of("orders") == new and broker.controller.names.name_of(new) == "orders"


def test_delete_create_delete_leaves_nothing(tmp_path: Path) -> None:
    later = Later()
    broker = open_broker(tmp_path, later)
    create(broker, creatable("orders"))
    later.all()
    done: list[Any] = []
    broker.controller.delete_topics([broker.controller.names.id_of("orders")], done.append)
    create(broker, creatable("orders"))
    broker.controller.delete_topics([broker.controller.names.id_of("orders")], done.append)
    later.step()  # all three are being written
    assert not broker.controller.names.exists("orders")
    later.all()
    assert done == [{}, {}]
    assert not broker.image.topics and not broker.storage.partitions


def test_a_topic_deleted_while_its_directories_are_made_gets_no_more_of_them(tmp_path: Path) -> None:
    later = Later()
    broker = open_broker(tmp_path, later, Slices(later.soon, Hasty()))
    create(broker, creatable("wide", 25))
    while len(broker.storage.events) < 5:
        later.step()
    assert len(broker.storage.events) < 25
    deleted: list[Any] = []
    broker.controller.delete_topics([broker.controller.names.id_of("wide")], deleted.append)
    later.all()
    assert deleted == [{}] and not broker.storage.partitions


def test_a_log_that_cannot_be_made_leaves_the_topic_offline(tmp_path: Path) -> None:
    broker = open_broker(tmp_path)
    broker.storage.broken.add("orders")
    assert codes(create(broker, creatable("orders"))) == [0]
    assert "orders" in broker.image.topics and not broker.storage.partitions


def test_a_failed_write_fails_all_that_shared_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    later = Later()
    broker = open_broker(tmp_path, later)
    one, two = create(broker, creatable("one")), create(broker, creatable("two"))

    def full(fd: int, data: bytes, offset: int) -> int:
        raise OSError(errno.ENOSPC, "no space left on device")

    monkeypatch.setattr(os, "pwrite", full)
    later.all()
    assert codes(one) == codes(two) == [errors.KAFKA_STORAGE_ERROR]
    assert not broker.controller.names.exists("one")
    monkeypatch.undo()
    three = create(broker, creatable("one"))
    later.all()
    assert codes(three) == [0]


def test_one_answer_that_goes_wrong_does_not_keep_the_others(tmp_path: Path) -> None:
    later = Later()
    broker = open_broker(tmp_path, later)

    def breaks(planned: Any) -> None:
        raise RuntimeError("a bug of ours")

    broker.controller.create_topics([creatable("one")], False, breaks)
    two = create(broker, creatable("two"))
    later.all()
    assert codes(two) == [0]


def test_validate_only_changes_nothing(tmp_path: Path) -> None:
    broker = open_broker(tmp_path)
    before = len(batches(tmp_path))
    planned: list[Any] = []
    broker.controller.create_topics([creatable("orders", 3)], True, planned.extend)
    assert codes(planned) == [0] and len(planned[0].replicas) == 3
    assert not broker.image.topics and len(batches(tmp_path)) == before


def test_a_topics_records_come_in_kafkas_order(tmp_path: Path) -> None:
    broker = open_broker(tmp_path)
    (planned,) = create(broker, creatable("orders", 2, min_insync_replicas="1", retention_ms="5"))
    assert [type(record).__name__ for record, _ in planned.records] == [
        "TopicRecord",
        "ConfigRecord",
        "ConfigRecord",
        "ClearElrRecord",
        "PartitionRecord",
        "PartitionRecord",
    ]
    assert [version for _, version in planned.records] == [0, 0, 0, 0, 2, 2]


# -- internal changes


def test_a_missing_topic_is_created_once_however_many_ask(tmp_path: Path) -> None:
    later = Later()
    broker = open_broker(tmp_path, later, num_partitions="3")
    told: list[Any] = []
    broker.controller.auto_create("orders", told.append)
    broker.controller.auto_create("orders", told.append)
    broker.controller.auto_create_all(["orders"])
    later.all()
    assert codes(told) == [0, 0]
    assert len(broker.image.topics["orders"].partitions) == 3
    assert len(broker.storage.events) == 3


def test_the_offsets_topic_is_what_kafka_makes_it(tmp_path: Path) -> None:
    broker = open_broker(tmp_path)
    broker.controller.auto_create_all([topic_names.CONSUMER_OFFSETS])
    topic = broker.image.topics[topic_names.CONSUMER_OFFSETS]
    assert topic.is_internal and len(topic.partitions) == 50
    assert topic.configs == {
        "compression.type": "producer",
        "cleanup.policy": "compact",
        "segment.bytes": "104857600",
    }


def test_internal_topics_follow_their_broker_keys(tmp_path: Path) -> None:
    broker = open_broker(
        tmp_path,
        offsets_topic_num_partitions="7",
        offsets_topic_segment_bytes="2000000",
        transaction_state_log_num_partitions="2",
        share_coordinator_state_topic_num_partitions="4",
    )
    names = (topic_names.CONSUMER_OFFSETS, topic_names.TRANSACTION_STATE, topic_names.SHARE_GROUP_STATE)
    for name in names:
        broker.controller.auto_create_all([name])
    assert [len(broker.image.topics[name].partitions) for name in names] == [7, 2, 4]
    assert broker.image.topics[names[0]].configs["segment.bytes"] == "2000000"
    assert broker.image.topics[names[1]].configs["min.insync.replicas"] == "1"
    assert broker.image.topics[names[2]].configs["retention.ms"] == "-1"


def test_a_replication_factor_that_was_asked_for_is_not_lowered(tmp_path: Path) -> None:
    broker = open_broker(tmp_path, offsets_topic_replication_factor="3")
    told: list[Any] = []
    broker.controller.auto_create(topic_names.CONSUMER_OFFSETS, told.append)
    assert codes(told) == [errors.INVALID_REPLICATION_FACTOR]


# -- configs and logs


def test_partitions_get_the_resolved_config_and_share_the_object(tmp_path: Path) -> None:
    broker = open_broker(tmp_path, log_retention_hours="5")
    create(broker, creatable("plain"), creatable("other"), creatable("own", retention_ms="7"))
    configs = broker.storage.configs
    assert configs["plain"]["retention.ms"] == 5 * 3_600_000
    assert configs["plain"] is configs["other"] is broker.controller.topic_config("plain")
    assert configs["own"]["retention.ms"] == 7
    assert configs["own"] is broker.controller.topic_config("own")


def test_dynamic_broker_configs_count_for_topics(golden: Path, tmp_path: Path) -> None:
    from tests.unit.test_metadata_log import copied

    copied(golden / "metadata" / "snapshots", tmp_path)
    broker = open_broker(tmp_path)
    assert broker.controller.topic_config("orders")["retention.ms"] == 777777
    assert broker.controller.topic_config("payments")["retention.ms"] == 99999999
    assert broker.controller.topic_config("dotted.name")["retention.ms"] == 99999999


def test_logs_are_led_in_the_epochs_of_the_metadata(tmp_path: Path) -> None:
    broker = open_broker(tmp_path)
    create(broker, creatable("orders", 2))
    broker.controller.stop()
    again = open_broker(tmp_path)
    again.controller.load_logs()
    assert {key: epoch for key, (_, epoch, _) in again.storage.partitions.items()} == {
        ("orders", 0): 2,
        ("orders", 1): 2,
    }


# -- producer ids


def taken(broker: Any, count: int) -> list[Any]:
    ids: list[Any] = []
    for _ in range(count):
        broker.controller.take_producer_id(ids.append)
    return ids


def test_producer_ids_are_never_given_twice_not_even_after_a_crash(tmp_path: Path) -> None:
    broker = open_broker(tmp_path)
    first = taken(broker, 3)
    broker.log.close()  # no shutdown records: as after kill -9
    second = taken(open_broker(tmp_path), 3)
    assert first == [0, 1, 2]
    assert second == [BLOCK_SIZE, BLOCK_SIZE + 1, BLOCK_SIZE + 2]


def test_an_id_waits_until_its_block_is_durable(tmp_path: Path) -> None:
    later = Later()
    broker = open_broker(tmp_path, later)
    ids = taken(broker, 2)
    later.step()
    assert ids == []
    later.all()
    assert ids == [0, 1]
    assert broker.image.next_producer_id == BLOCK_SIZE


def test_the_next_block_is_asked_for_before_the_last_id_is_gone(tmp_path: Path) -> None:
    later = Later()
    broker = open_broker(tmp_path, later)
    taken(broker, 1)
    later.all()
    taken(broker, BLOCK_SIZE - ASK_AHEAD - 1)
    assert not later.waiting
    taken(broker, 1)
    assert later.waiting
    later.all()
    ids = taken(broker, BLOCK_SIZE)
    assert ids == list(range(BLOCK_SIZE - ASK_AHEAD + 1, 2 * BLOCK_SIZE - ASK_AHEAD + 1))


def test_producer_ids_that_cannot_be_made_durable_are_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    later = Later()
    broker = open_broker(tmp_path, later)
    ids = taken(broker, 2)

    def full(fd: int, data: bytes, offset: int) -> int:
        raise OSError(errno.ENOSPC, "no space left on device")

    monkeypatch.setattr(os, "pwrite", full)
    later.all()
    assert [isinstance(each, KafkaError) for each in ids] == [True, True]
    monkeypatch.undo()
    ids = taken(broker, 1)
    later.all()
    assert ids == [0]


@pytest.mark.parametrize("factor", ["0", "-1", "-5"])
def test_a_default_replication_factor_of_none_is_refused_with_each_topic(tmp_path: Path, factor: str) -> None:
    """Kafka starts with such a config, too."""
    broker = open_broker(tmp_path, default_replication_factor=factor)
    (planned,) = create(broker, creatable("a", replicas=-1))
    assert planned.error.code == errors.INVALID_REPLICATION_FACTOR


def test_a_coordinator_is_found_although_its_topic_was_deleted_meanwhile() -> None:
    broker: Any = SimpleNamespace(image=SimpleNamespace(topics={}))
    assert find_coordinator.partitions_without_leader(broker, "__consumer_offsets") == frozenset()


def test_a_log_that_is_in_none_of_the_directories_is_named_and_made_anew(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    broker = open_broker(tmp_path)
    create(broker, creatable("t", 2))
    broker.controller.stop()
    storage = FakeStorage()
    storage.absent = [("t", 1)]
    resumed: list[str] = []
    storage.moves.resume = lambda: resumed.append("moves")
    open_broker(tmp_path, storage=storage).controller.stop()
    assert resumed == ["moves"]
    assert set(storage.partitions) == {("t", 0), ("t", 1)}, (
        "its directory is there, so it cannot be elsewhere"
    )
    lines = [line for line in capfd.readouterr().err.splitlines() if "log directories" in line]
    assert len(lines) == 1 and lines[0].endswith("the log of t-1 is in none of the log directories")


def test_a_log_that_was_abandoned_is_not_written_at_the_stop(tmp_path: Path) -> None:
    broker = open_broker(tmp_path)
    before = len(batches(tmp_path))
    broker.controller.abandon_log()
    broker.controller.stop()
    assert len(batches(tmp_path)) == before
    open_broker(tmp_path).controller.stop()
    assert len(batches(tmp_path)) > before + 1, "another start, and its stop"
