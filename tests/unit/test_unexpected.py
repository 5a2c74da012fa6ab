"""Unexpected exceptions at any point of a metadata change: requests that wait are answered, one line is logged, and
later changes continue.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from pykafkad import errors, messages
from pykafkad.clock import ManualClock
from pykafkad.cluster import metadata_records
from pykafkad.cluster.commits import Commits
from pykafkad.cluster.metadata_log import MetadataLog
from pykafkad.cluster.publishing import GROUPS, TELEMETRY, Publishers
from pykafkad.handlers import create_topics, delete_topics
from pykafkad.messages import FeatureLevelRecord, NoOpRecord
from tests.unit.metadata_fakes import Later, call, creatable, create, open_broker

UNKNOWN = errors.UNKNOWN_SERVER_ERROR


def breaks(*_: Any, **__: Any) -> Any:
    raise RuntimeError("a bug of ours")


def codes(planned: list[Any]) -> list[int]:
    return [topic.error.code if topic.error else errors.NONE for topic in planned]


def said(capfd: pytest.CaptureFixture[str]) -> list[str]:
    """The log lines that begin with a time: others are parts of tracebacks."""
    return [line for line in capfd.readouterr().err.splitlines() if "ERROR" in line]


@pytest.fixture
def broker(tmp_path: Path) -> Any:
    return open_broker(tmp_path)


# -- the batches of the log


def test_records_that_cannot_be_encoded_fail_their_request_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    later = Later()
    broker = open_broker(tmp_path, later)
    encode = metadata_records.encode_all
    bad = [(NoOpRecord(), 0)]
    monkeypatch.setattr(
        metadata_records, "encode_all", lambda records: breaks() if records[0] is bad[0] else encode(records)
    )
    told: list[Any] = []
    for records in ([(NoOpRecord(), 0)], bad, [(NoOpRecord(), 0)]):
        broker.controller.commit(records, told.append)
    later.all()
    assert sorted(error.code if error else 0 for error in told) == [UNKNOWN, 0, 0]
    assert len(said(capfd)) == 1


@pytest.mark.parametrize("broken", ["framed", "submit"])
def test_a_batch_that_cannot_be_made(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str], broken: str
) -> None:
    later = Later()
    broker = open_broker(tmp_path, later)
    with monkeypatch.context() as patch:
        if broken == "framed":
            patch.setattr(MetadataLog, "framed", breaks)
        else:
            patch.setattr(broker.controller._commits, "_submit", breaks)
        planned = create(broker, creatable("orders"))
        topic_id = broker.controller.names.id_of("orders")
        gone: list[Any] = []
        broker.controller.delete_topics([topic_id], gone.append)  # for a topic that is never created
        later.all()
    assert codes(planned) == [UNKNOWN]
    assert gone[0][topic_id].code == UNKNOWN
    assert len(said(capfd)) == 1
    planned = create(broker, creatable("orders"))
    later.all()
    assert codes(planned) == [0]


def test_what_was_planned_on_a_write_that_failed_fails_with_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Otherwise the log would have the removal of a topic that it never created, and no start would accept it."""
    later = Later()
    broker = open_broker(tmp_path, later)
    planned = create(broker, creatable("orders"))
    later.step()  # it is being written
    gone: list[Any] = []
    topic_id = broker.controller.names.id_of("orders")
    broker.controller.delete_topics([topic_id], gone.append)
    with monkeypatch.context() as patch:
        patch.setattr(os, "pwrite", lambda *_: (_ for _ in ()).throw(OSError("no space left on device")))
        later.step()
    later.all()
    assert codes(planned) == [errors.KAFKA_STORAGE_ERROR]
    assert gone[0][topic_id].code == errors.KAFKA_STORAGE_ERROR
    create(broker, creatable("bills"))
    later.all()
    broker.log.close()
    assert list(open_broker(tmp_path).image.topics) == ["bills"]


def test_a_record_that_cannot_be_applied_does_not_stop_the_log(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """It is on the disk with the other records of its batch, so the log end is known all the same."""
    broker = open_broker(tmp_path)
    end = broker.log.end_offset
    told: list[Any] = []
    unknown = (FeatureLevelRecord(name="no.such.feature", feature_level=1), 0)
    broker.controller.commit([unknown, (NoOpRecord(), 0)], told.append)
    assert told[0].code == UNKNOWN and len(said(capfd)) == 1
    assert broker.log.end_offset == end + 2
    assert codes(create(broker, creatable("orders"))) == [0]
    broker.log.close()
    offsets = [batch.base_offset for batch in batches(tmp_path)]
    assert offsets == sorted(set(offsets)) and end in offsets and end + 2 in offsets


def batches(directory: Path) -> list[Any]:
    from pykafkad.hot import records

    path = directory / "__cluster_metadata-0" / "00000000000000000000.log"
    return records.scan(path.read_bytes())


def test_whoever_is_told_that_the_log_grew_or_failed_may_break(tmp_path: Path) -> None:
    log = MetadataLog(str(tmp_path), ManualClock())
    log.open()
    log.begin_epoch(1)
    commits = Commits(log, Publishers())
    commits.on_appended = commits.on_failed = breaks
    told: list[Any] = []
    for _ in range(2):
        commits.add([(NoOpRecord(), 0)], told.append)
    assert len(told) == 2 and commits.idle and log.end_offset == 2
    log.write = breaks  # type: ignore[method-assign]
    commits.add([(NoOpRecord(), 0)], told.append)
    assert told[2].code == errors.KAFKA_STORAGE_ERROR and commits.idle


# -- plans and callbacks


@pytest.mark.parametrize("validate_only", [True, False])
def test_a_plan_that_breaks_is_an_answer(
    broker: Any, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str], validate_only: bool
) -> None:
    fields = {"timeout_ms": 1000, "validate_only": validate_only}
    with monkeypatch.context() as patch:
        patch.setattr(broker.controller._planner, "_check_name", breaks)
        answer = call(broker, create_topics, 7, topics=[creatable("a"), creatable("b")], **fields)
    assert [topic.error_code for topic in answer.topics] == [UNKNOWN] * 2
    assert len(said(capfd)) == 1
    assert codes(create(broker, creatable("a"))) == [0]


def test_a_plan_of_more_partitions_that_breaks(broker: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    create(broker, creatable("orders"))
    topics = [
        messages.CreatePartitionsRequest.CreatePartitionsTopic(name="orders", count=3, assignments=None)
    ]
    told: list[Any] = []
    with monkeypatch.context() as patch:
        patch.setattr(broker.storage, "place", breaks)
        broker.controller.create_partitions(topics, False, told.extend)
    assert codes(told) == [UNKNOWN]
    broker.controller.create_partitions(topics, False, told.extend)
    assert codes(told) == [UNKNOWN, 0] and len(broker.image.topics["orders"].partitions) == 3


def test_a_deletion_whose_plan_breaks(broker: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    create(broker, creatable("orders"))
    with monkeypatch.context() as patch:
        patch.setattr(broker.controller.names, "note", breaks)
        answer = call(broker, delete_topics, 5, topic_names=["orders"], timeout_ms=1000)
    assert answer.responses[0].error_code == UNKNOWN
    answer = call(broker, delete_topics, 5, topic_names=["orders"], timeout_ms=1000)
    assert answer.responses[0].error_code == 0 and not broker.image.topics


@pytest.mark.parametrize("as_work", [True, False])
def test_a_change_whose_turn_breaks(broker: Any, capfd: pytest.CaptureFixture[str], as_work: bool) -> None:
    def in_slices() -> Any:
        yield
        breaks()

    told: list[Any] = []
    broker.controller.in_turn(in_slices if as_work else breaks, told.append)
    broker.controller.in_turn(lambda: [(NoOpRecord(), 0)], breaks)
    broker.controller.in_turn(lambda: [(NoOpRecord(), 0)], told.append)
    assert told[0].code == UNKNOWN and told[1] is None
    assert len(said(capfd)) == 2


def test_turns_that_are_work_see_each_other(broker: Any) -> None:
    seen: list[int] = []

    def plan() -> Any:
        yield
        seen.append(broker.log.end_offset)
        return [(NoOpRecord(), 0)]

    told: list[Any] = []
    for _ in range(3):
        broker.controller.in_turn(plan, told.append)
    assert told == [None] * 3 and seen == [seen[0], seen[0] + 1, seen[0] + 2]


def test_a_thousand_turns_cost_what_a_thousand_cost(tmp_path: Path) -> None:
    later = Later()
    broker = open_broker(tmp_path, later)
    told: list[Any] = []
    for _ in range(1_000):
        broker.controller.in_turn(list, told.append)
    later.all()
    assert told == [None] * 1_000


# -- storage, and its listeners


def test_a_log_that_breaks_while_it_is_made_or_deleted_does_not_keep_the_others(
    broker: Any, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    make, delete = broker.storage.create, broker.storage.delete
    with monkeypatch.context() as patch:
        patch.setattr(
            broker.storage, "create", lambda name, *rest: breaks() if name == "a" else make(name, *rest)
        )
        assert codes(create(broker, creatable("a"), creatable("b"))) == [0, 0]
    assert list(broker.storage.partitions) == [("b", 0)]
    create(broker, creatable("c"))
    told: list[Any] = []
    broker.controller.publishers.add(GROUPS, breaks)
    broker.controller.publishers.add(TELEMETRY, lambda delta: told.extend(delta.deleted.values()))
    with monkeypatch.context() as patch:
        patch.setattr(
            broker.storage, "delete", lambda name, index: breaks() if name == "b" else delete(name, index)
        )
        answer = call(broker, delete_topics, 5, topic_names=["b", "c"], timeout_ms=1000)
    assert [each.error_code for each in answer.responses] == [0, 0]
    assert [topic.name for topic in told] == ["b", "c"] and list(broker.storage.partitions) == [("b", 0)]
    assert len(said(capfd)) == 3  # the one that was not made, the one that was not deleted, and who was told


def test_an_id_that_cannot_be_handed_over_does_not_keep_the_next_one(broker: Any) -> None:
    told: list[Any] = []
    broker.controller.take_producer_id(breaks)
    broker.controller.take_producer_id(told.append)
    assert told == [1]
