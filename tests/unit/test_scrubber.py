"""The scrubber finds damage that a clean start does not see, at the configured rate, and changes nothing."""

from __future__ import annotations

import os
from collections.abc import Callable
from io import StringIO
from pathlib import Path
from typing import Any

import pytest

from pykafkad import logs
from pykafkad.clock import ManualClock
from pykafkad.hot import records
from pykafkad.storage.log.log import Log
from pykafkad.storage.recovery.scrubber import Scrubber
from tests.storage_kit import NOW_MS, TOPIC_ID, batch, broker_config, log_manager, topic_config

RATE = "pykafkad.scrub.max.bytes.per.second"
FAST = 1 << 30


@pytest.fixture
def lines(monkeypatch: pytest.MonkeyPatch) -> StringIO:
    stream = StringIO()
    monkeypatch.setattr(logs, "_stream", stream)
    return stream


class Kit:
    """A manager with one partition of ten batches in segments of four, and a manual clock."""

    def __init__(self, path: Path, submit: Any = None) -> None:
        self.clock = ManualClock(NOW_MS)
        self.manager = log_manager(broker_config(path), self.clock, submit)
        self.manager.open_all({}, lambda topic: topic_config())
        self.partition = self.add("orders", 10)

    def add(self, topic: str, count: int) -> Log:
        config = topic_config(segment_bytes=400)
        partition = self.manager.create(topic, 0, TOPIC_ID, config, 0)
        for number in range(count):
            partition.append(batch(b"v%02d" % number * 10), NOW_MS)
        self.manager.commit()
        return partition

    @property
    def scrubber(self) -> Scrubber:
        return self.manager.scrubber

    def turn(self, rate: int = FAST, *, seconds: int = 1) -> None:
        self.manager.config[RATE] = rate
        self.clock.advance(1_000 * seconds)
        self.manager.scrub()

    def damage(self, slot: int, number: int, at: int, data: bytes) -> tuple[str, int]:
        """Overwrite a byte of a batch in a segment; returns the file and the batch's position."""
        path = self.partition.segments[slot].path
        position = records.scan(Path(path).read_bytes(), check_crc=False)[number].position
        with open(path, "r+b") as file:
            file.seek(position + at)
            file.write(data)
        return path, position


@pytest.fixture
def kit(tmp_path: Path) -> Kit:
    return Kit(tmp_path)


def errors(lines: StringIO) -> list[str]:
    return [line for line in lines.getvalue().splitlines() if "ERROR" in line]


def test_it_is_off_by_default(kit: Kit, lines: StringIO) -> None:
    kit.damage(0, 1, 70, b"\xff")
    kit.turn(0)
    assert kit.scrubber.scrubbed_bytes == 0 and not errors(lines)


def test_sound_logs_are_read_to_their_ends_over_and_over(kit: Kit, lines: StringIO) -> None:
    kit.turn()
    assert kit.scrubber.scrubbed_bytes == kit.partition.size
    kit.turn()
    assert (kit.scrubber.scrubbed_bytes, kit.scrubber.passes) == (2 * kit.partition.size, 2)
    assert kit.scrubber.damaged == 0 and not errors(lines)


@pytest.mark.parametrize("slot", [0, -1], ids=["closed segment", "active segment"])
def test_a_damaged_batch_is_one_error_line_that_says_where(kit: Kit, lines: StringIO, slot: int) -> None:
    path, position = kit.damage(slot, 1, 70, b"\xff")
    offset = kit.partition.segments[slot].base_offset + 1
    for _ in range(3):
        kit.turn()
    (line,) = errors(lines)
    assert f"{path}: a checksum that does not match at byte {position}, offsets {offset} to {offset}" in line
    assert kit.scrubber.damaged == 1
    assert kit.scrubber.passes == 3


def test_what_lies_behind_a_damaged_batch_is_looked_at_too(kit: Kit, lines: StringIO) -> None:
    kit.damage(0, 0, 70, b"\xff")
    kit.damage(0, 2, 70, b"\xff")
    kit.damage(1, 1, 70, b"\xff")
    kit.turn()
    assert kit.scrubber.damaged == len(errors(lines)) == 3


def test_of_a_segment_ten_damages_are_told_and_of_the_next_one_again(kit: Kit, lines: StringIO) -> None:
    kit.turn()
    config = topic_config(segment_bytes=1200)
    kit.partition = partition = kit.manager.create("many", 0, TOPIC_ID, config, 0)
    for _ in range(40):
        partition.append(batch(b"v"), NOW_MS)
    kit.manager.commit()
    counts = [len(records.scan(Path(each.path).read_bytes())) for each in partition.segments]
    assert len(counts) > 2 and min(counts[:2]) > 11
    for slot in range(2):
        for number in range(11):
            kit.damage(slot, number, 65, b"\xff")
    kit.turn()
    assert [line.count(partition.segments[0].path) for line in errors(lines)] == [1] * 10 + [0] * 10


def test_a_size_that_cannot_be_ends_the_reading_of_its_segment(kit: Kit, lines: StringIO) -> None:
    kit.damage(0, 2, 70, b"\xff")
    kit.damage(0, 1, 8, b"\x7f\xff\xff\xff")
    kit.damage(1, 0, 70, b"\xff")
    kit.turn()
    assert [line.count("ends inside a batch") for line in errors(lines)] == [1, 0]


def test_one_wrong_offset_is_not_told_for_all_that_follow(kit: Kit, lines: StringIO) -> None:
    partition = kit.add("many", 0)
    for _ in range(40):
        partition.append(batch(b""), NOW_MS)
    kit.manager.commit()
    kit.partition = partition
    kit.damage(0, 0, 6, b"\x00\x30")
    kit.turn()
    assert 0 < len(errors(lines)) <= 10


def test_a_file_that_cannot_be_read_is_told_and_nothing_goes_offline(
    kit: Kit, lines: StringIO, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = kit.partition.segments[0].path
    os.rename(path, path + ".away")
    os.mkdir(path)
    kit.turn()
    kit.turn()
    (line,) = errors(lines)
    assert f"{path}: cannot be read: Is a directory at byte 0" in line
    assert kit.manager.online and kit.manager.get("orders", 0) is kit.partition


def test_a_segment_that_is_gone_is_nothing_to_tell(kit: Kit, lines: StringIO) -> None:
    os.unlink(kit.partition.segments[0].path)
    kit.turn()
    assert kit.scrubber.damaged == 0 and not errors(lines)


def test_no_more_is_read_than_the_rate_allows(kit: Kit) -> None:
    whole = kit.partition.size
    one = records.scan(Path(kit.partition.segments[0].path).read_bytes())[0].size
    kit.turn(10)  # less than a batch: one is read, and then it waits as long as that takes at this rate
    assert kit.scrubber.scrubbed_bytes == one
    turns = 1
    while kit.scrubber.scrubbed_bytes < whole:
        kit.turn(10)
        turns += 1
    assert turns * 10 >= whole - one


def test_time_that_was_not_used_is_not_made_up_for(kit: Kit) -> None:
    kit.turn(100, seconds=3600)
    one = records.scan(Path(kit.partition.segments[0].path).read_bytes())[0].size
    assert kit.scrubber.scrubbed_bytes <= 100 + one


def test_the_rate_may_change_while_it_runs(kit: Kit) -> None:
    kit.turn(10)
    kit.turn(0)
    before = kit.scrubber.scrubbed_bytes
    kit.turn(0)
    assert kit.scrubber.scrubbed_bytes == before
    kit.turn(FAST)
    assert kit.scrubber.scrubbed_bytes == before + kit.partition.size


def test_what_changed_under_the_readers_hands_is_no_damage(tmp_path: Path, lines: StringIO) -> None:
    waiting: list[tuple[Callable[[], Any], Callable[[Any], None]]] = []
    kit = Kit(tmp_path)
    kit.manager.submit = lambda work, done: waiting.append((work, done))
    kit.damage(0, 1, 70, b"\xff")
    kit.turn()
    kit.turn()
    assert len(waiting) == 1, "one slice at a time"
    work, done = waiting[0]
    result = work()
    del kit.partition.segments[0], kit.partition.bases[0]  # as retention does
    done(result)
    assert kit.scrubber.damaged == 0 and not errors(lines)


def test_partitions_that_were_deleted_are_passed_over(kit: Kit, lines: StringIO) -> None:
    for number in range(100):
        kit.add(f"t{number}", 1)
    kit.turn()
    kit.manager.delete("t90", 0)
    for _ in range(3):
        kit.turn()
    assert kit.scrubber.passes >= 2 and not errors(lines)
