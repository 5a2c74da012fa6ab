"""A start on a metadata directory made by hand: what counts, what is passed over, and what is refused in which words."""

from __future__ import annotations

import os
import random
from pathlib import Path
from struct import pack_into
from typing import Any

import pytest

from pykafkad import messages as m
from pykafkad.cluster import metadata_records
from pykafkad.cluster.image import Image
from pykafkad.cluster.metadata_files import DIRECTORY, segment_name, snapshot_name
from pykafkad.cluster.metadata_index import ENTRY, SegmentIndex
from pykafkad.cluster.metadata_reading import Contents, read_directory
from pykafkad.cluster.metadata_records import MetadataError, encode
from pykafkad.cluster.metadata_upkeep import write_snapshot
from pykafkad.cluster.metadata_verifying import first_damage
from pykafkad.hot import records

TIME_MS, SNAPSHOT_MS = 1_700_000_000_000, 1_600_000_000_000
UNKNOWN_TYPE = b"\x01\x63\x00what only others know"
FOOTER = metadata_records.SNAPSHOT_FOOTER, bytes(m.SnapshotFooterRecord().encode(0))
LOST = "the metadata behind it would be lost, so this is not repaired here"


class Made:
    """A metadata directory, what is put there, and what a start finds."""

    def __init__(self, directory: Path) -> None:
        self.path = directory / DIRECTORY
        self.path.mkdir()
        self.image = Image()

    def segment(self, base_offset: int, *parts: bytes) -> Path:
        path = self.path / segment_name(base_offset)
        path.write_bytes(b"".join(parts))
        return path

    def snapshot(
        self,
        end: int,
        *values: bytes,
        epoch: int = 1,
        written_ms: int = SNAPSHOT_MS,
        quorum: Any = (),
        ends: Any = (FOOTER,),
    ) -> Path:
        header = m.SnapshotHeaderRecord(last_contained_log_timestamp=written_ms).encode(0)
        begins = [(metadata_records.SNAPSHOT_HEADER, bytes(header)), *quorum]
        parts = [control(0, *begins, epoch=epoch), batch(1, *values, epoch=epoch) if values else b""]
        parts += [control(1 + len(values), *ends, epoch=epoch)] if ends else []
        write_snapshot(str(self.path), (end, epoch), [part for part in parts if part])
        return self.path / snapshot_name((end, epoch))

    def read(self) -> Contents:
        self.image = Image()
        return read_directory(str(self.path), self.image)

    def refused(self) -> str:
        with pytest.raises(MetadataError) as caught:
            self.read()
        return str(caught.value).replace(f"{self.path}/", "")

    @property
    def topics(self) -> list[str]:
        return list(self.image.topics)


@pytest.fixture
def made(tmp_path: Path) -> Made:
    return Made(tmp_path)


def batch(offset: int, *values: bytes | None, epoch: int = 1, time_ms: int = TIME_MS, **how: Any) -> bytes:
    rows: list[Any] = [(None, value, [], time_ms) for value in values]
    return records.build(rows, base_offset=offset, leader_epoch=epoch, **how)


def control(offset: int, *rows: tuple[int, bytes], epoch: int = 1) -> bytes:
    keyed: list[Any] = [(metadata_records.control_key(kind), value, [], TIME_MS) for kind, value in rows]
    return records.build(keyed, base_offset=offset, leader_epoch=epoch, control=True)


def topic(number: int) -> bytes:
    return encode(m.TopicRecord(name=f"t{number}", topic_id=bytes(14) + pack(number)), 0)


def pack(number: int) -> bytes:
    return (number + 1000).to_bytes(2, "big")


def topics(offset: int, count: int = 1, **how: Any) -> bytes:
    """A batch of the topics that are named after their records' offsets."""
    return batch(offset, *map(topic, range(offset, offset + count)), **how)


def with_header(data: bytes, form: str, position: int, value: int) -> bytes:
    """The batch with another field, and the checksum that is right then."""
    changed = bytearray(data)
    pack_into(form, changed, position, value)
    pack_into(">I", changed, 17, records.crc32c(changed[21:]))
    return bytes(changed)


# -- what a log says


def test_a_log_is_read_up_to_its_end(made: Made) -> None:
    first, second = topics(0, 2), topics(2, epoch=3, time_ms=TIME_MS + 5)
    made.segment(0, first)
    made.segment(2, second)
    found = made.read()
    assert made.topics == ["t0", "t1", "t2"]
    assert (found.end_offset, found.last_epoch, found.last_timestamp) == (3, 3, TIME_MS + 5)
    assert (made.image.offset, found.replayed_bytes) == (2, len(first) + len(second))
    assert found.segments == [[0, len(first)], [2, len(second)]]
    assert found.active is not None and found.active.base_offset == 2
    assert (found.snapshot, found.passed_over, found.damaged, found.empty) == (None, [], [], [])
    assert (found.open_transaction, found.unknown) == (False, [])


def test_nothing_stays_open(made: Made) -> None:
    made.snapshot(2, topic(0))
    made.segment(0, topics(0, 3))
    index = SegmentIndex(0)
    index.entries += ENTRY.pack(1, 9)
    index.save(str(made.path))
    before = os.listdir("/proc/self/fd")
    made.read()
    made.segment(0, topics(5))
    made.refused()
    assert os.listdir("/proc/self/fd") == before


def test_an_empty_directory_holds_nothing(made: Made) -> None:
    found = made.read()
    assert (found.end_offset, found.last_epoch, found.last_timestamp) == (0, -1, -1)
    assert (made.image.offset, found.segments, found.active, found.replayed_bytes) == (-1, [], None, 0)
    assert (found.kraft_version, found.voters, found.open_transaction) == (0, b"", False)


def test_a_log_is_read_a_window_at_a_time_and_a_batch_may_be_larger_than_one(made: Made) -> None:
    large = UNKNOWN_TYPE + bytes(9 << 20)
    small = UNKNOWN_TYPE + bytes(1 << 20)
    parts = [batch(0, large), *(batch(offset, small) for offset in range(1, 10))]
    parts += [topics(10), batch(11, large), topics(12)]
    made.segment(0, *parts, topics(13)[:-1])
    found = made.read()
    assert (found.end_offset, made.topics) == (13, ["t10", "t12"])
    assert found.segments == [[0, sum(map(len, parts))]]
    assert found.replayed_bytes == sum(map(len, parts))


def test_each_part_of_a_log_is_read_about_once_however_little_a_read_gives(
    made: Made, monkeypatch: pytest.MonkeyPatch
) -> None:
    given, pread = [], os.pread

    def short(fd: int, size: int, at: int) -> bytes:
        given.append(pread(fd, min(size, 300_000), at))
        return given[-1]

    parts = [batch(offset, UNKNOWN_TYPE + bytes(99_000)) for offset in range(200)]
    made.segment(0, *parts)
    monkeypatch.setattr(os, "pread", short)
    assert made.read().end_offset == 200
    assert sum(map(len, given)) < 1.1 * sum(map(len, parts))


@pytest.mark.parametrize("damage", ["bit", "attributes"])
def test_damage_is_found_without_what_lies_behind_it(
    made: Made, monkeypatch: pytest.MonkeyPatch, damage: str
) -> None:
    given, pread = [], os.pread

    def noted(fd: int, size: int, at: int) -> bytes:
        given.append(pread(fd, size, at))
        return given[-1]

    good, *more = (batch(offset, UNKNOWN_TYPE + bytes(99_000)) for offset in range(40))
    bad = with_header(more[0], ">h", 21, 1) if damage == "attributes" else more[0][:-1] + b"\1"
    path = made.segment(0, good, bad, *more[1:])
    monkeypatch.setattr(os, "pread", noted)
    assert first_damage(str(made.path), [(0, 3_000_000)]) == (str(path), len(good))
    assert sum(map(len, given)) < 1_000_000
    assert first_damage(str(made.path), [(0, len(good))]) is None


def test_the_first_records_of_which_nothing_is_known_are_told(made: Made) -> None:
    tagged = topic(1)[:-1] + b"\x01\x63\x02xy"
    made.segment(0, topics(0), batch(1, tagged, UNKNOWN_TYPE), batch(3, *[UNKNOWN_TYPE] * 6))
    found = made.read()
    assert found.unknown == [
        "a field of a TopicRecord at offset 1",
        *(f"record type 99 at offset {offset}" for offset in (2, 3, 4, 5)),
    ]
    assert (found.end_offset, made.topics) == (9, ["t0", "t1"])


def test_the_newest_voters_of_the_log_count(made: Made) -> None:
    made.segment(
        0,
        control(0, *metadata_records.quorum(0, b"older")),
        control(2, *metadata_records.quorum(1, b"newest"), (metadata_records.LEADER_CHANGE, b"")),
    )
    found = made.read()
    assert (found.voters, found.kraft_version, made.image.kraft_version) == (b"newest", 1, 1)
    assert found.end_offset == 5


BEGIN, END = encode(m.BeginTransactionRecord(name="t"), 0), encode(m.EndTransactionRecord(), 0)
ABORT = encode(m.AbortTransactionRecord(reason=None), 0)


def test_records_of_a_transaction_count_when_it_ends_and_never_if_it_is_aborted(made: Made) -> None:
    made.segment(0, batch(0, BEGIN, topic(1)), batch(2, topic(2), ABORT, topic(3)))
    made.segment(5, batch(5, BEGIN, topic(6)))
    assert made.read().open_transaction
    assert (made.topics, made.image.offset) == (["t3"], 4)
    made.segment(7, batch(7, topic(7), END), batch(9, topic(9)))
    assert not made.read().open_transaction
    assert (made.topics, made.image.offset) == (["t3", "t6", "t7", "t9"], 9)


@pytest.mark.parametrize(
    ("values", "why"),
    [
        ((BEGIN, BEGIN), "a transaction of records begins within another"),
        ((END,), "a transaction of records ends that did not begin"),
        ((ABORT,), "a transaction of records ends that did not begin"),
        ((BEGIN, END, END), "a transaction of records ends that did not begin"),
        ((topic(1), None), "record without a value"),
        ((topic(0),), "topic t0 exists already"),
    ],
)
def test_records_that_cannot_be_are_refused(made: Made, values: tuple[bytes | None, ...], why: str) -> None:
    made.segment(0, topics(0), batch(1, *values))
    assert made.refused() == f"{segment_name(0)}: {why} (batch at offset 1)"


# -- in which order


@pytest.mark.parametrize(
    ("parts", "why"),
    [
        ((topics(0, 3), topics(4)), "offset 4 follows 2, records are missing"),
        ((topics(0, epoch=3), topics(1, epoch=2)), "quorum epoch 2 follows 3 at offset 1"),
        ((topics(1),), "offset 1 follows -1, records are missing"),
    ],
)
def test_records_and_epochs_without_order_are_refused(made: Made, parts: tuple[bytes, ...], why: str) -> None:
    made.segment(0, *parts)
    assert made.refused() == f"{segment_name(0)}: {why}"


def test_a_segment_begins_at_the_offset_in_its_name(made: Made) -> None:
    made.segment(0, topics(0, 2))
    made.segment(2, topics(1, 2))
    assert made.refused() == f"{segment_name(2)}: offset 1 is not of this segment"
    made.segment(2, topics(3))
    assert made.refused() == f"{segment_name(2)}: offset 3 follows 1, records are missing"


def test_empty_segments_behind_the_last_batch_are_named(made: Made) -> None:
    data = topics(0, 2)
    made.segment(0, data)
    made.segment(2)
    made.segment(7)
    found = made.read()
    assert (found.segments, found.empty, found.end_offset) == ([[0, len(data)]], [2, 7], 2)
    assert found.active is not None and found.active.base_offset == 0


def test_an_empty_segment_before_the_last_batch_is_a_gap_or_nothing(made: Made) -> None:
    made.segment(0)
    made.segment(1, topics(1))
    assert made.refused() == f"{segment_name(1)}: offset 1 follows -1, records are missing"
    made.segment(1, b"")
    found = made.read()
    assert (found.segments, found.empty) == ([[0, 0]], [1])
    (made.path / segment_name(0)).unlink()
    assert made.refused() == f"{segment_name(1)}: offset 1 follows -1, records are missing"


# -- damage


def broken(why: str) -> bytes:
    """A batch at offset 1 that has this damage."""
    data = bytearray(topics(1))
    kind, _, number = why.partition(" ")
    if kind == "length":
        pack_into(">i", data, 8, int(number))
    elif kind == "magic":
        data[16] = int(number)
    elif kind == "bit":
        data[int(number)] ^= 1
    elif kind == "delta":
        return with_header(bytes(data), ">i", 23, int(number))
    elif kind == "attributes":
        return with_header(bytes(data), ">h", 21, int(number))
    return bytes(data)


SIZE, AFTER = len(broken("")), len(topics(2))


@pytest.mark.parametrize(
    ("damage", "why"),
    [
        ("length 48", "batch length 48"),
        ("length 49", "wrong checksum"),
        ("length -1", "batch length -1"),
        (f"length {SIZE + AFTER - 12}", "wrong checksum"),
        (
            f"length {SIZE + AFTER - 11}",
            f"batch of {SIZE + AFTER - 11} bytes where {SIZE + AFTER - 12} are left",
        ),
        ("magic 1", "magic 1"),
        ("magic 3", "magic 3"),
        ("bit 20", "wrong checksum"),
        ("bit 21", "wrong checksum"),
        (f"bit {SIZE - 1}", "wrong checksum"),
        ("delta -1", "attributes 0, last offset delta -1"),
        ("attributes 1", "attributes 1, last offset delta 0"),
        ("attributes 4", "attributes 4, last offset delta 0"),
    ],
)
def test_a_bad_batch_is_refused_unless_it_is_the_last(made: Made, damage: str, why: str) -> None:
    first = topics(0)
    made.segment(0, first, broken(damage), topics(2))
    assert made.refused() == f"{segment_name(0)}: {why} at byte {len(first)} (offset 1); {LOST}"
    made.segment(0, first, broken(damage))
    found = made.read()
    assert (found.end_offset, found.segments, made.topics) == (1, [[0, len(first)]], ["t0"])


def test_a_batch_that_is_cut_off_anywhere_ends_the_log(made: Made) -> None:
    whole, last = topics(0, 2), topics(2)
    for size in range(len(last)):
        made.segment(0, whole, last[:size])
        found = made.read()
        assert (found.end_offset, found.segments, made.topics) == (2, [[0, len(whole)]], ["t0", "t1"]), size
    made.segment(0, last[:7])
    found = made.read()
    assert (found.end_offset, found.segments) == (0, [[0, 0]])
    assert found.active is not None


def test_a_bad_end_is_only_cut_in_the_last_segment_that_has_bytes(made: Made) -> None:
    first = topics(0)
    made.segment(0, first, b"x" * 60)
    made.segment(1)
    assert made.read().segments == [[0, len(first)]]
    made.segment(1, topics(1))
    why = f"60 bytes, too few for a batch at byte {len(first)} (offset 1); {LOST}"
    assert made.refused() == f"{segment_name(0)}: {why}"


@pytest.mark.parametrize("added", [1, 17, 61, 300])
def test_bytes_between_batches_that_lack_nothing_are_passed_over(made: Made, added: int) -> None:
    """Whatever they are: the batch behind them is the one that is expected."""
    dice = random.Random(added)
    first, last = topics(0), topics(1, 2)
    made.segment(0, first, dice.randbytes(added), last)
    found = made.read()
    assert (made.topics, found.end_offset) == (["t0", "t1", "t2"], 3)
    assert found.passed_over == [(0, len(first) + added)]
    assert found.segments == [[0, len(first) + added + len(last)]]


def test_what_is_left_of_an_older_log_behind_the_end_is_cut(made: Made) -> None:
    """Good batches, but of offsets that the log has already."""
    first = topics(0, 4)
    made.segment(0, first, b"x" * 9, topics(3), topics(2))
    found = made.read()
    assert (found.end_offset, found.segments) == (4, [[0, len(first)]])


# -- snapshots


def test_a_snapshot_stands_for_all_that_is_below_it(made: Made) -> None:
    made.snapshot(3, topic(0), topic(1), topic(2), epoch=2)
    half = topics(1, 4, epoch=2)
    made.segment(0, topics(0))
    made.segment(1, half)
    found = made.read()
    assert made.topics == ["t0", "t1", "t2", "t3", "t4"]
    assert (found.snapshot, found.snapshots) == ((3, 2), [(3, 2)])
    assert (found.end_offset, found.last_epoch, made.image.offset) == (5, 2, 4)
    assert (found.last_timestamp, found.replayed_bytes) == (TIME_MS, len(half))
    assert found.passed_over == [(0, len(topics(0)))]


def test_a_snapshot_without_a_log_says_when_its_last_record_was_written(made: Made) -> None:
    made.snapshot(3, topic(0), epoch=2)
    found = made.read()
    assert (found.end_offset, found.last_epoch, found.last_timestamp) == (3, 2, SNAPSHOT_MS)
    assert (made.image.offset, made.topics, found.segments) == (2, ["t0"], [])
    made.snapshot(4, topic(0), written_ms=-1)
    assert made.read().last_timestamp == -1


def test_a_snapshot_of_nothing_has_the_voters_alone(made: Made) -> None:
    made.snapshot(0, epoch=3, quorum=metadata_records.quorum(1, b"voters"))
    found = made.read()
    assert (found.voters, found.kraft_version, found.snapshot) == (b"voters", 1, None)
    assert (found.end_offset, found.last_epoch, made.image.offset) == (0, -1, -1)
    made.segment(0, topics(0, epoch=2))
    assert (made.read().end_offset, made.topics) == (1, ["t0"])
    made.snapshot(1, topic(0), epoch=2)
    found = made.read()
    assert (found.snapshot, found.last_epoch, found.voters) == ((1, 2), 2, b"")


@pytest.mark.parametrize(
    ("end", "goes_on"), [(2, False), (3, True), (4, True)], ids=["before", "at", "behind"]
)
def test_a_log_goes_on_in_a_segment_that_reaches_its_snapshot(made: Made, end: int, goes_on: bool) -> None:
    made.snapshot(3, topic(0), topic(1), topic(2))
    made.segment(0, topics(0, end))
    found = made.read()
    assert (found.active is not None) == goes_on
    assert found.end_offset == max(end, 3)
    replayed = (TIME_MS, len(topics(0, end))) if end > 3 else (SNAPSHOT_MS, 0)
    assert (found.last_timestamp, found.replayed_bytes) == replayed
    (made.path / segment_name(0)).unlink()
    made.segment(3)
    found = made.read()
    assert found.active is not None and found.active.base_offset == 3


def test_segments_that_the_snapshot_covers_are_not_read(made: Made) -> None:
    made.snapshot(4, topic(0))
    made.segment(0, b"nothing of this")
    made.segment(2, b"nor of this")
    made.segment(4, topics(4))
    found = made.read()
    assert (made.topics, found.passed_over) == (["t0", "t4"], [(0, 15), (2, 11)])
    assert found.segments == [[0, 15], [2, 11], [4, len(topics(4))]]


def test_damage_of_what_a_snapshot_covers_is_passed_over(made: Made) -> None:
    made.snapshot(2, topic(0), topic(1))
    log = (topics(0), bytes(120), topics(2))
    made.segment(0, *log)
    found = made.read()
    assert made.topics == ["t0", "t1", "t2"]
    assert found.passed_over == [(0, sum(map(len, log[:2])))]
    made.segment(0, *log[:2], topics(3))
    why = f"batch length 0 at byte {len(log[0])} (offset 1); {LOST}"
    assert made.refused() == f"{segment_name(0)}: {why}"


def test_an_older_snapshot_serves_where_a_newer_one_is_damaged(made: Made) -> None:
    made.snapshot(1, topic(0))
    damaged = made.snapshot(2, topic(0), topic(1), ends=())
    made.segment(0, topics(0, 3))
    found = made.read()
    assert (found.snapshot, made.topics) == ((1, 1), ["t0", "t1", "t2"])
    assert found.damaged == [(str(damaged), f"{damaged}: the snapshot has no footer")]
    assert found.snapshots == [(1, 1), (2, 1)]


@pytest.mark.parametrize(
    "damage", ["footer", "last", "key", "torn", "more", "bit", "empty", "magic", "begin"]
)
def test_a_damaged_snapshot_is_named_where_its_records_are_missing(made: Made, damage: str) -> None:
    rows: dict[str, Any] = {
        "footer": (),
        "last": (FOOTER, (metadata_records.LEADER_CHANGE, b"")),
        "key": ((metadata_records.SNAPSHOT_HEADER, FOOTER[1]),),
    }
    path = made.snapshot(5, topic(0), ends=rows.get(damage, (FOOTER,)))
    data = bytearray(path.read_bytes())
    header, *_, last = records.scan(data)
    path.chmod(0o644)
    if damage == "torn":
        del data[-1:]
        why = f"batch of {last.size - 12} bytes where {last.size - 13} are left at byte {last.position}"
    elif damage == "more":
        data += b"more"
        why = f"4 bytes, too few for a batch at byte {len(data) - 4}"
    elif damage == "bit":
        data[header.size + 70] ^= 1
        why = f"wrong checksum at byte {header.size}"
    elif damage == "magic":
        data[header.size + 16] = 1
        why = f"magic 1 at byte {header.size}"
    elif damage in ("begin", "empty"):
        del data[: header.size if damage == "begin" else len(data)]
        why = "the snapshot has no header"
    else:
        why = "the snapshot has no footer"
    path.write_bytes(data)
    made.segment(5, topics(5))
    assert made.refused() == (
        f"{segment_name(5)}: offset 5 follows -1, records are missing; {path.name}: {why}"
    )


def test_a_record_that_cannot_be_in_a_snapshot_is_a_refusal(made: Made) -> None:
    path = made.snapshot(5, topic(0), topic(0))
    assert made.refused() == f"{path.name}: topic t0 exists already (batch at offset 1)"


# -- by the index


@pytest.mark.parametrize("times", ["growing", "random"])
def test_a_start_by_the_index_finds_what_a_walk_finds(made: Made, times: str) -> None:
    """Wherever the snapshot ends, and the index goes on as if all had been walked."""
    dice = random.Random(times)
    parts, index, position = [], SegmentIndex(0), 0
    for offset in range(0, 300, 3):
        time_ms = TIME_MS + (offset if times == "growing" else dice.randrange(1_000))
        data = batch(offset, *[UNKNOWN_TYPE + bytes(dice.randrange(400))] * 3, time_ms=time_ms)
        index.add(offset + 2, position, len(data), time_ms)
        parts.append(data)
        position += len(data)
    made.segment(0, *parts)
    whole = made.read()
    assert whole.active is not None and whole.active.entries == index.entries
    places = [int.from_bytes(index.entries[at + 4 : at + 8], "big") for at in range(0, len(index.entries), 8)]
    assert len(places) > 8
    for end in (1, *dice.sample(range(2, 299), 8), 300):
        for old in made.path.glob("*.checkpoint"):
            old.unlink()
        made.snapshot(end, topic(0))
        saved = files_of(made, index)
        found = made.read()
        walked = [place for place in places if below(parts, place) < end]
        assert found.passed_over == ([(0, walked[-1])] if walked else []), end
        (made.path / segment_name(0, ".index")).unlink()
        again = made.read()
        assert again.passed_over == []
        for each in (found, again):
            assert each.segments == [[0, position]] and each.end_offset == 300
            assert each.active is not None and files_of(made, each.active) == saved, end
        assert found.replayed_bytes == again.replayed_bytes


def files_of(made: Made, index: SegmentIndex) -> list[bytes]:
    index.save(str(made.path))
    return [(made.path / segment_name(0, suffix)).read_bytes() for suffix in (".index", ".timeindex")]


def below(parts: list[bytes], place: int) -> int:
    """The last offset of the batch that begins at that byte."""
    number, at = 0, 0
    while at < place:
        at += len(parts[number])
        number += 1
    return number * 3 + 2


@pytest.mark.parametrize(
    ("entry", "trusted"),
    [
        ((1, 1), True),  # the second batch ends at offset 3
        ((0, 1), False),
        ((1, 0), False),
        ((1, 2), False),
        ((2, 1), False),
    ],
)
def test_an_index_is_believed_where_the_log_says_so(
    made: Made, entry: tuple[int, int], trusted: bool
) -> None:
    parts = [topics(offset, 2) for offset in (0, 2, 4)]
    places = [0, len(parts[0]), len(parts[0]) + 1]
    made.segment(0, *parts)
    made.snapshot(5, *map(topic, range(5)))
    index = SegmentIndex(0)
    number, place = entry
    index.entries += ENTRY.pack(2 * number + 1, places[place])
    index.save(str(made.path))
    found = made.read()
    assert found.passed_over == ([(0, places[1])] if trusted else [])
    assert made.topics == [f"t{number}" for number in range(6)]


@pytest.mark.parametrize("place", [-1, 0, 1 << 20])
def test_an_index_that_leads_beyond_the_log_is_not_followed(made: Made, place: int) -> None:
    data = topics(0, 2)
    made.segment(0, data)
    made.snapshot(2, topic(0))
    for position in (place, len(data)):
        index = SegmentIndex(0)
        index.entries += ENTRY.pack(1, position)
        index.save(str(made.path))
        found = made.read()
        assert found.passed_over == [] and found.segments == [[0, len(data)]]
        assert found.active is not None and not found.active.entries
