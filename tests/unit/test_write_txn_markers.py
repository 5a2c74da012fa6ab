"""WriteTxnMarkers: what a transaction coordinator asks, and what it is told."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from pykafkad import errors
from pykafkad.messages import WriteTxnMarkersRequest
from tests.unit.coordinator_kit import OFFSETS, GroupDesk
from tests.unit.data_kit import batch, read_parts

GOLDEN = Path(__file__).parents[1] / "golden" / "exchanges.jsonl.gz"
NONE = errors.NONE


@pytest.fixture
def desk(tmp_path: Path) -> Any:
    desk = GroupDesk(tmp_path, partitions=2)
    desk.create("t", 2)
    desk.create("s2", 2)
    yield desk
    desk.storage.close()


def marker(topics: dict[str, list[int]], producer_id: int = 7, epoch: int = 1, **fields: Any) -> Any:
    kind = WriteTxnMarkersRequest
    asked = [
        kind.WritableTxnMarkerTopic(name=name, partition_indexes=indexes) for name, indexes in topics.items()
    ]
    given = {"transaction_result": True, "coordinator_epoch": 0, "transaction_version": 2, **fields}
    return kind.WritableTxnMarker(producer_id=producer_id, producer_epoch=epoch, topics=asked, **given)


def ask(desk: GroupDesk, *markers: Any, version: int = 2) -> list[tuple[int, dict[tuple[str, int], int]]]:
    """Each producer of the answer, with the codes of its partitions."""
    request = WriteTxnMarkersRequest(markers=list(markers))
    given = desk.send(request, version)
    desk.end_pass()
    desk.settle()
    answer = desk.answer_of(given, "WriteTxnMarkersRequest", version)
    assert answer is not None
    return [
        (
            each.producer_id,
            {
                (topic.name, row.partition_index): row.error_code
                for topic in each.topics
                for row in topic.partitions
            },
        )
        for each in answer.markers
    ]


def begin(desk: GroupDesk, producer_id: int = 7, epoch: int = 0) -> None:
    data = batch(b"x", producer_id=producer_id, producer_epoch=epoch, base_sequence=0, transactional=True)
    desk.storage.partitions["t", 0].append(data, desk.clock.now_ms(), verified=True)
    desk.end_pass()


def exchanges() -> list[Any]:
    """What a Kafka broker asked and answered itself while a producer of transactions worked."""
    with gzip.open(GOLDEN, "rt") as lines:
        return [row for row in map(json.loads, lines) if row["api"] == "WriteTxnMarkers"]


def test_it_answers_kafkas_own_requests_byte_for_byte(desk: GroupDesk) -> None:
    rows = exchanges()
    assert len(rows) == 3
    for row in rows:
        frame = bytearray.fromhex(row["request"])
        given = desk.dispatcher.on_frame(desk.connection, frame, 0, len(frame))
        desk.end_pass()
        desk.settle()
        assert read_parts(given.parts.encode())[4:].hex() == row["response"]
    partitions = [("s2", 0), ("s2", 1), (OFFSETS, 1)]
    assert [desk.replicas.table[key].log_end_offset for key in partitions] == [3, 1, 1]


def test_a_marker_for_some_partitions(desk: GroupDesk) -> None:
    begin(desk)
    codes = {("t", 0): NONE, ("t", 1): NONE, ("s2", 1): NONE}
    assert ask(desk, marker({"t": [0, 1], "s2": [1]})) == [(7, codes)]
    assert desk.replicas.table["t", 0].last_stable_offset == 2


def test_several_producers(desk: GroupDesk) -> None:
    assert ask(desk, marker({"t": [0]}), marker({"t": [0]}, producer_id=8)) == [
        (7, {("t", 0): NONE}),
        (8, {("t", 0): NONE}),
    ]


def test_two_markers_of_one_producer_share_an_entry(desk: GroupDesk) -> None:
    codes = {("t", 0): NONE, ("t", 1): NONE}
    assert ask(desk, marker({"t": [0]}), marker({"t": [0, 1]}, epoch=2)) == [(7, codes)]
    assert desk.replicas.table["t", 0].log_end_offset == 2


@pytest.mark.parametrize("markers", [[], [{}], [{"t": []}]])
def test_a_marker_without_partitions_is_not_answered(desk: GroupDesk, markers: list[Any]) -> None:
    assert ask(desk, *[marker(topics) for topics in markers]) == []


def test_what_is_refused(desk: GroupDesk) -> None:
    begin(desk, epoch=5)
    codes = {
        ("t", 0): errors.INVALID_PRODUCER_EPOCH,
        ("t", 1): NONE,
        ("t", 2): errors.UNKNOWN_TOPIC_OR_PARTITION,
        ("nobody", 0): errors.UNKNOWN_TOPIC_OR_PARTITION,
    }
    assert ask(desk, marker({"t": [0, 1, 2], "nobody": [0]}, epoch=5)) == [(7, codes)]


@pytest.mark.parametrize(("version", "code"), [(1, NONE), (2, errors.INVALID_PRODUCER_EPOCH)])
def test_the_epoch_of_the_transaction_is_enough_where_the_version_says_nothing(
    desk: GroupDesk, version: int, code: int
) -> None:
    begin(desk, epoch=5)
    assert ask(desk, marker({"t": [0]}, epoch=5), version=version) == [(7, {("t", 0): code})]


def test_many_markers_are_written_in_windows(desk: GroupDesk) -> None:
    markers = [marker({"t": [0]}, producer_id=each) for each in range(200)]
    request = WriteTxnMarkersRequest(markers=markers)
    given = desk.send(request, 2)
    for _ in range(100):
        desk.end_pass()
        desk.settle()
    answer = desk.answer_of(given, "WriteTxnMarkersRequest", 2)
    assert [each.producer_id for each in answer.markers] == list(range(200))
    assert desk.replicas.table["t", 0].log_end_offset == 200
