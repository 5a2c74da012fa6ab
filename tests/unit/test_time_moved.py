"""Seven days in a moment: a broker whose clock is moved deletes, compacts and expires as if they had passed.

The jobs are those of server.Broker on its own schedule; only the clock is the test's. Nothing sleeps, and nothing in
storage, coordinator and cluster uses another clock.
"""

from __future__ import annotations

import ast
import os
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import pykafkad
from pykafkad import messages
from pykafkad.hot import records
from tests.unit.coordinator_kit import GroupDesk
from tests.unit.data_kit import NOW_MS, batch, fetch, produce, values_of

HOUR_MS = 3_600_000
DAY_MS = 24 * HOUR_MS
# log.retention.check.interval.ms, and longer than any other interval but the offsets' 10 minutes
CHECK_MS = 5 * 60_000


class MovedDesk(GroupDesk):
    """A broker with its own jobs, which run when the test moves the clock."""

    def __init__(self, directory: Path, **overrides: Any) -> None:
        super().__init__(directory, **overrides)
        self.controller = SimpleNamespace(jobs=[])
        self.storage.call_later = self.call_later
        self.begin_jobs(self.storage.submit)

    def move(self, delta_ms: int) -> None:
        """Let the clock jump, and then run for a while, so that work in slices is completed."""
        self.advance(delta_ms)
        self.end_pass()
        for _ in range(3):
            self.advance(61_000)
            self.end_pass()
            self.settle()

    def produce(self, topic: str, *values: bytes, **fields: Any) -> None:
        data = batch(*values, timestamp=self.clock.now_ms(), **fields)
        answer = self.ask(produce(topic, 0, data), 9).responses[0].partition_responses[0]
        assert answer.error_code == 0, answer

    def put(self, topic: str, key: bytes, value: bytes | None) -> None:
        data = records.build([(key, value, [], self.clock.now_ms())])
        answer = self.ask(produce(topic, 0, data), 9).responses[0].partition_responses[0]
        assert answer.error_code == 0, answer

    def offset(self, topic: str, timestamp: int) -> int:
        kind = messages.ListOffsetsRequest
        part = kind.ListOffsetsPartition(partition_index=0, timestamp=timestamp)
        asked = kind(topics=[kind.ListOffsetsTopic(name=topic, partitions=[part])])
        found: int = self.ask(asked, 7).topics[0].partitions[0].offset
        return found

    def values(self, topic: str) -> list[bytes]:
        found: list[bytes] = []
        offset, end = self.offset(topic, -2), self.offset(topic, -1)
        while offset < end:
            answer = self.ask(fetch(topic, {"partition": 0, "fetch_offset": offset}), 12)
            part = answer.responses[0].partitions[0]
            assert part.error_code == 0 and part.records, part
            found += values_of(part)
            offset = records.scan(part.records)[-1].last_offset + 1
        return found


@pytest.fixture
def desk(tmp_path: Path) -> MovedDesk:
    return MovedDesk(tmp_path, log_roll_hours="24")


def test_retention(desk: MovedDesk) -> None:
    desk.create("events")
    desk.create("short", retention_ms=str(2 * DAY_MS))
    desk.create("kept", retention_ms="-1")
    for name in ("events", "short", "kept"):
        desk.produce(name, b"old")
    desk.move(6 * DAY_MS)
    assert (desk.values("events"), desk.values("short"), desk.values("kept")) == ([b"old"], [], [b"old"])
    for name in ("events", "short", "kept"):
        desk.produce(name, b"new")
    desk.move(DAY_MS)
    assert (desk.values("events"), desk.values("short")) == ([b"new"], [b"new"])
    assert (desk.offset("events", -2), desk.offset("events", NOW_MS)) == (1, 1)
    desk.move(7 * DAY_MS)
    assert (desk.values("events"), desk.values("short"), desk.values("kept")) == ([], [], [b"old", b"new"])
    assert desk.offset("events", -2) == desk.offset("events", -1) == 2
    assert not list(Path(desk.config.log_dirs[0]).glob("*/*.deleted"))


def test_the_first_look_comes_after_the_initial_delay(desk: MovedDesk) -> None:
    desk.create("short", retention_ms="1")
    desk.produce("short", b"old")
    desk.advance(29_999)
    desk.end_pass()
    assert desk.values("short") == [b"old"]
    desk.advance(1)
    desk.end_pass()
    assert desk.values("short") == []
    desk.produce("short", b"next")
    desk.advance(CHECK_MS - 1)
    desk.end_pass()
    assert desk.values("short") == [b"next"]
    desk.advance(1)
    desk.end_pass()
    assert desk.values("short") == []


def test_offsets_of_a_group_without_members_expire(desk: MovedDesk) -> None:
    assert desk.commit("g", (0, 5)) == [0]
    desk.move(7 * DAY_MS - HOUR_MS)
    assert desk.committed("g") == {("orders", 0): 5}
    assert desk.commit("late", (0, 6)) == [0]
    desk.move(HOUR_MS)
    assert desk.listed() == {"late": "Empty"} and desk.committed("late") == {("orders", 0): 6}
    desk.move(7 * DAY_MS)
    assert desk.listed() == {}


def test_producers_are_forgotten(desk: MovedDesk) -> None:
    desk.create("events")
    desk.produce("events", b"x", producer_id=7, producer_epoch=0, base_sequence=0)
    assert list(desk.storage.partitions["events", 0].producers.producers) == [7]
    desk.move(HOUR_MS)
    assert list(desk.storage.partitions["events", 0].producers.producers) == [7]
    desk.move(DAY_MS)
    assert not desk.storage.partitions["events", 0].producers.producers


def test_a_segment_is_closed_when_its_time_is_over(desk: MovedDesk) -> None:
    desk.create("events")
    desk.produce("events", b"old")
    desk.move(DAY_MS - HOUR_MS)
    desk.produce("events", b"same day")
    desk.move(HOUR_MS)
    desk.produce("events", b"next day")
    assert desk.storage.partitions["events", 0].bases == [0, 2]


def test_compaction_lags(desk: MovedDesk) -> None:
    """min.compaction.lag.ms keeps new records as they are, max.compaction.lag.ms compacts even a clean log."""
    desk.create("state", cleanup_policy="compact", min_compaction_lag_ms=str(6 * DAY_MS))
    desk.create(
        "seldom",
        cleanup_policy="compact",
        max_compaction_lag_ms=str(6 * DAY_MS),
        min_cleanable_dirty_ratio="1.0",
    )
    for name in ("state", "seldom"):
        desk.put(name, b"k", b"1")
        desk.put(name, b"k", b"2")
    desk.move(2 * DAY_MS)
    for name in ("state", "seldom"):
        desk.put(name, b"k", b"3")  # closes the segment before
    desk.move(2 * DAY_MS)
    assert desk.values("state") == desk.values("seldom") == [b"1", b"2", b"3"]
    desk.move(3 * DAY_MS)
    assert desk.values("state") == desk.values("seldom") == [b"2", b"3"]


def test_a_tombstone_goes_when_its_retention_is_over(desk: MovedDesk) -> None:
    """delete.retention.ms, a day, counts from the first cleaning that reached it."""
    desk.create("state", cleanup_policy="compact", min_cleanable_dirty_ratio="0.0", segment_ms=str(HOUR_MS))
    desk.put("state", b"gone", b"0")
    desk.put("state", b"k", b"1")
    desk.put("state", b"gone", None)
    for step in range(4):
        desk.move(5 * HOUR_MS)
        desk.put("state", b"other", b"%d" % step)  # closes the segment before, which is then cleaned
        desk.move(5 * HOUR_MS)
        found = [(row.key, row.value) for row in rows_of(desk.storage.partitions["state", 0])]
        assert ((b"gone", None) in found) == (step < 3), (step, found)
        assert (b"gone", b"0") not in found and (b"k", b"1") in found


def rows_of(partition: Any) -> list[records.Record]:
    found: list[records.Record] = []
    for segment in partition.segments:
        for header in segment.headers():
            found += records.read(segment.bytes_at(header.position, header.size))
    return found


def test_files_of_the_machines_time_do_not_matter(desk: MovedDesk) -> None:
    """For records without timestamps the files' times count; here they are set to the test's time."""
    desk.create("events", retention_ms=str(DAY_MS))
    partition = desk.storage.partitions["events", 0]
    partition.append_built(records.build([(None, b"x", [], -1)]), NOW_MS)
    desk.end_pass()
    os.utime(partition.active.path, ns=(0, NOW_MS * 1_000_000))
    desk.move(DAY_MS - HOUR_MS)
    assert desk.values("events") == [b"x"]
    desk.move(HOUR_MS)
    assert desk.values("events") == []


ASKING = {"time", "time_ns", "monotonic", "monotonic_ns", "perf_counter", "gmtime", "localtime"}
ASKS_THE_MACHINE = {
    "storage/directories.py",  # the comment in meta.properties
}


def test_nobody_asks_the_machine_for_the_time() -> None:
    """Only clock.py asks for it, of all modules that store, coordinate and decide."""
    package = Path(pykafkad.__file__).parent
    found = set()
    for room in ("storage", "coordinator", "cluster", "pure", "handlers"):
        for path in (package / room).rglob("*.py"):
            if asks(ast.parse(path.read_text("utf-8"))):
                found.add(str(path.relative_to(package)))
    assert found == ASKS_THE_MACHINE


def asks(tree: ast.Module) -> bool:
    for node in ast.walk(tree):
        if (
            isinstance(node, ast.Attribute)
            and isinstance(node.value, ast.Name)
            and (node.value.id == "datetime" or (node.value.id == "time" and node.attr in ASKING))
        ):
            return True
        if isinstance(node, ast.ImportFrom) and node.module in ("time", "datetime"):
            return True
    return False
