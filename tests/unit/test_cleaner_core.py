"""The cleaner's two passes: which records stay, what becomes of batches, what is refused."""

from __future__ import annotations

import os
import threading
from pathlib import Path
from typing import Any

import pytest

from pykafkad.hot import cleaner, records
from tests import cleaner_logs as kit
from tests.cleaner_logs import DAY_MS, NOW_MS, Draft, Row, marker

AT = NOW_MS - DAY_MS  # when the records were written


def row(delta: int, key: bytes | None, value: bytes | None = b"v", timestamp: int = AT) -> Row:
    return Row(delta, timestamp, key, value)


def compact(directory: Path, drafts: list[Draft | bytes], end: int, **more: Any) -> kit.Cleaned:
    """Clean one closed segment that starts at offset 0 and ends before `end`."""
    data = b"".join(each if isinstance(each, bytes) else each.bytes() for each in drafts)
    kit.write_log(directory, {0: data, end: b""})
    work = kit.Work(directory, [0, end], first_dirty=0, first_uncleanable=end)
    return kit.clean(cleaner, work._replace(**more))


def left(cleaned: kit.Cleaned) -> bytes:
    return Path(cleaned.rewriters[0].paths[0]).read_bytes()


def offsets(data: bytes) -> list[int]:
    return [record.offset for record in records.read(data)]


# -- records


def test_of_every_key_the_newest_record_stays(tmp_path: Path) -> None:
    keys = [
        b"k1",
        b"k2",
        b"k1",
        b"k3",
        b"k2",
        b"k1",
        b"k4",
        b"k4",
        b"k5",
        b"k2",
        b"k6",
        b"k3",
        b"k1",
        b"k5",
        b"k7",
        b"k6",
    ]
    batches = [
        Draft(13 + start, [row(at, key) for at, key in enumerate(keys[start : start + 4])])
        for start in (0, 4, 8, 12)
    ]
    cleaned = compact(tmp_path, list(batches), 29)
    newest = {key: 13 + place for place, key in enumerate(keys)}
    assert offsets(left(cleaned)) == sorted(newest.values()) == [20, 22, 24, 25, 26, 27, 28]
    assert cleaned.end_offset == 29
    assert cleaned.keys == 7


def test_a_batch_that_loses_records_keeps_its_offsets_and_sequence(tmp_path: Path) -> None:
    producer = {"producer_id": 7, "epoch": 3, "sequence": 40, "leader_epoch": 5}
    first = Draft(
        0,
        [row(0, b"a", timestamp=AT), row(1, b"b", timestamp=AT + 9), row(2, b"a", timestamp=AT + 5)],
        **producer,
    )
    cleaned = compact(tmp_path, [first, Draft(3, [row(0, b"c"), row(1, b"b")])], 5)
    batch, _ = records.scan(left(cleaned))
    assert (batch.base_offset, batch.last_offset, batch.count) == (0, 2, 1)
    assert (batch.producer_id, batch.producer_epoch, batch.base_sequence, batch.last_sequence) == (
        7,
        3,
        40,
        42,
    )
    assert (batch.leader_epoch, batch.base_timestamp, batch.max_timestamp) == (5, AT + 5, AT + 5)


def test_a_batch_that_loses_nothing_is_copied(tmp_path: Path) -> None:
    odd = Draft(0, [row(0, b"a"), row(3, b"b")], 0x4080, last_delta=7, max_timestamp=AT + 99)
    cleaned = compact(tmp_path, [odd], 8)
    assert left(cleaned) == odd.bytes()


def test_records_without_a_key_go_and_are_counted(tmp_path: Path) -> None:
    cleaned = compact(tmp_path, [Draft(0, [row(0, None), row(1, b"a"), row(2, None)])], 3)
    assert offsets(left(cleaned)) == [1]
    assert cleaned.round.invalid_messages == 2


def test_an_empty_key_is_a_key(tmp_path: Path) -> None:
    cleaned = compact(tmp_path, [Draft(0, [row(0, b""), row(1, b"")])], 2)
    assert offsets(left(cleaned)) == [1]


def test_records_past_the_map_stay_whatever_they_are(tmp_path: Path) -> None:
    drafts: list[Draft | bytes] = [
        Draft(at, [row(0, b"k%d" % at), row(1, None), row(2, b"k%d" % at)]) for at in (0, 3, 6)
    ]
    cleaned = compact(tmp_path, drafts, 9, memory_bytes=24 * 2, load_factor=1.0)
    assert cleaned.end_offset == 4  # the map was full when the record after it came
    assert offsets(left(cleaned)) == [2, 3, 4, 5, 6, 7, 8]


def test_headers_and_old_times_are_kept(tmp_path: Path) -> None:
    kept = Row(1, AT - 70_000_000_000, b"b", b"w" * 300, [("", None), ("h", b"")])
    cleaned = compact(tmp_path, [Draft(0, [row(0, b"a"), kept, row(2, b"a")])], 3)
    found = next(iter(records.read(left(cleaned))))
    assert (found.timestamp, found.headers, found.value) == (
        kept.timestamp,
        [("", None), ("h", b"")],
        b"w" * 300,
    )


# -- tombstones


def test_a_tombstone_gets_a_horizon_and_goes_when_it_has_passed(tmp_path: Path) -> None:
    drafts: list[Draft | bytes] = [
        Draft(0, [row(0, b"a"), row(1, b"a", None, AT + 4)]),
        Draft(2, [row(0, b"z")]),
    ]
    once = left(compact(tmp_path / "1", drafts, 3))
    batch, _ = records.scan(once)
    assert batch.delete_horizon_ms == batch.base_timestamp == NOW_MS + DAY_MS
    assert [record.timestamp for record in records.read(once)] == [AT + 4, AT]

    before = left(compact(tmp_path / "2", [once], 3, now_ms=NOW_MS + DAY_MS - 1))
    assert before == once
    after = left(compact(tmp_path / "3", [once], 3, now_ms=NOW_MS + DAY_MS))
    assert offsets(after) == [2]


def test_a_horizon_stays_when_other_records_of_the_batch_go(tmp_path: Path) -> None:
    marked = Draft(0, [row(0, b"a"), row(1, b"b", None)], kit.HORIZON, base_timestamp=NOW_MS + 5)
    cleaned = compact(tmp_path, [marked, Draft(2, [row(0, b"a")])], 3)
    batch, _ = records.scan(left(cleaned))
    assert (batch.count, batch.delete_horizon_ms, batch.max_timestamp) == (1, NOW_MS + 5, AT)


# -- transactions

TXN = {"producer_id": 7, "epoch": 0}


def data(base: int, key: bytes, **more: Any) -> Draft:
    return Draft(base, [row(0, key)], kit.TRANSACTIONAL, **{**TXN, "sequence": base, **more})


def test_what_was_aborted_goes_and_shadows_nothing(tmp_path: Path) -> None:
    drafts = [
        Draft(0, [row(0, b"a")]),
        data(1, b"a"),
        marker(2, 7, 0, kit.ABORT, AT),
        Draft(3, [row(0, b"z")]),
    ]
    aborted = [(7, 1, 2, 3)]
    cleaned = compact(tmp_path, [*drafts], 4, aborted=aborted)
    assert offsets(left(cleaned)) == [0, 2, 3]
    assert cleaned.rewriters[0].aborted_transactions == aborted
    side = Path(cleaned.rewriters[0].paths[3]).read_bytes()
    assert side == bytes(2) + b"".join(value.to_bytes(8, "big") for value in aborted[0])


def test_a_marker_without_its_records_gets_a_horizon_and_goes(tmp_path: Path) -> None:
    for kind in (kit.ABORT, kit.COMMIT):
        drafts: list[Draft | bytes] = [marker(0, 7, 0, kind, AT), Draft(1, [row(0, b"z")])]
        once = left(compact(tmp_path / f"{kind}-1", drafts, 2))
        batch, _ = records.scan(once)
        assert (batch.is_control, batch.is_transactional) == (True, True)
        assert batch.delete_horizon_ms == NOW_MS + DAY_MS
        assert next(records.read(once)).timestamp == AT
        assert left(compact(tmp_path / f"{kind}-2", [once], 2)) == once
        assert offsets(left(compact(tmp_path / f"{kind}-3", [once], 2, now_ms=NOW_MS + DAY_MS))) == [1]


def test_a_marker_of_which_records_remain_is_left_alone(tmp_path: Path) -> None:
    drafts = [data(0, b"a"), marker(1, 7, 0, kit.COMMIT, AT), Draft(2, [row(0, b"z")])]
    cleaned = compact(tmp_path, [*drafts], 3)
    assert left(cleaned) == b"".join(draft.bytes() for draft in drafts)
    assert len(cleaned.rewriters[0].paths) == 3  # no .txnindex


def test_other_control_records_stay(tmp_path: Path) -> None:
    change = marker(0, -1, -1, kit.LEADER_CHANGE, AT)
    cleaned = compact(tmp_path, [change, Draft(1, [row(0, b"z")])], 2)
    assert offsets(left(cleaned)) == [0, 1]


# -- batches without records


def test_the_last_batch_of_a_producer_stays_empty(tmp_path: Path) -> None:
    last = Draft(0, [row(0, b"a"), row(1, b"a")], kit.APPEND_TIME, max_timestamp=AT, base_timestamp=AT - 1)
    last = last._replace(producer_id=7, epoch=2, sequence=10, leader_epoch=4)
    cleaned = compact(tmp_path, [last, Draft(2, [row(0, b"a")])], 3, producers={7: (1, 2)})
    batch, _ = records.scan(left(cleaned))
    assert (batch.base_offset, batch.last_offset, batch.count, batch.size) == (0, 1, 0, 61)
    assert (batch.producer_id, batch.producer_epoch, batch.last_sequence, batch.leader_epoch) == (7, 2, 11, 4)
    assert (batch.base_timestamp, batch.max_timestamp, batch.is_log_append_time) == (-1, AT, True)
    assert cleaned.round.batches_emptied == 1


def test_the_marker_that_alone_knows_a_producers_epoch_stays(tmp_path: Path) -> None:
    passed = marker(0, 7, 2, kit.COMMIT, AT)
    passed = passed._replace(attributes=passed.attributes | kit.HORIZON, base_timestamp=NOW_MS)
    for epoch, stays in ((2, True), (3, False)):
        drafts: list[Draft | bytes] = [passed, Draft(1, [row(0, b"z")])]
        cleaned = compact(tmp_path / str(epoch), drafts, 2, producers={7: (None, epoch)})
        assert [batch.count for batch in records.scan(left(cleaned))] == ([0, 1] if stays else [1])


def test_the_end_of_the_round_stays(tmp_path: Path) -> None:
    cleaned = compact(tmp_path, [Draft(0, [row(0, b"a")]), Draft(1, [row(0, None)], last_delta=3)], 5)
    first, last = records.scan(left(cleaned))
    assert (first.count, last.count, last.base_offset, last.last_offset) == (1, 0, 1, 4)


def test_an_empty_batch_goes_when_nothing_needs_it(tmp_path: Path) -> None:
    hollow = Draft(0, (), last_delta=3, base_timestamp=-1, max_timestamp=AT)
    cleaned = compact(tmp_path, [hollow, Draft(4, [row(0, b"a")])], 5)
    assert [batch.base_offset for batch in records.scan(left(cleaned))] == [4]


# -- codecs and formats


@pytest.mark.parametrize("codec", range(5))
def test_what_is_left_of_a_compressed_batch_is_compressed_alike(tmp_path: Path, codec: int) -> None:
    rows = [row(number, b"key-%d" % (number % 300), b"w" * 200) for number in range(400)]
    cleaned = compact(tmp_path, [Draft(0, rows, codec)], 400)
    (batch,) = records.scan(left(cleaned))
    assert batch.codec == records.CODECS[codec]
    assert offsets(left(cleaned)) == list(range(100, 400))


@pytest.mark.parametrize("magic", [0, 1])
def test_old_formats_become_batches_of_format_2(tmp_path: Path, magic: int) -> None:
    wrapped = kit.message_set(magic, [row(0, b"a"), row(1, b"b"), row(2, b"a")], 1, 0)
    single = kit.message(0, magic, 0, AT, b"c", b"x")
    cleaned = compact(tmp_path, [single, wrapped, Draft(4, [row(0, b"z")])], 5)
    first, second, _ = records.scan(left(cleaned))
    assert (first.magic, first.base_offset, first.last_offset, first.codec) == (2, 0, 0, "none")
    assert (second.magic, second.base_offset, second.last_offset, second.codec) == (2, 2, 3, "gzip")
    time = AT if magic else -1
    assert {record.timestamp for record in records.read(left(cleaned)) if record.offset < 4} == {time}
    assert [batch.max_timestamp for batch in (first, second)] == [time, time]
    assert (first.producer_id, first.leader_epoch) == (-1, -1)


@pytest.mark.parametrize("keep", [False, True])
def test_old_tombstones_stay_while_their_file_is_young(tmp_path: Path, keep: bool) -> None:
    old = kit.message(0, 1, 0, AT, b"a", None)
    cleaned = compact(tmp_path, [old, Draft(1, [row(0, b"z")])], 2, legacy_horizon_ms=0 if keep else 1 << 60)
    found = records.scan(left(cleaned))
    assert [batch.delete_horizon_ms for batch in found] == ([NOW_MS + DAY_MS, None] if keep else [None])


def test_log_append_time_is_every_records_time(tmp_path: Path) -> None:
    draft = Draft(0, [row(0, b"a"), row(1, b"b"), row(2, b"a")], kit.APPEND_TIME, max_timestamp=AT + 50)
    (batch,) = records.scan(left(compact(tmp_path, [draft], 3)))
    assert (batch.is_log_append_time, batch.base_timestamp, batch.max_timestamp) == (True, AT + 50, AT + 50)


# -- the new segment


def test_indexes_are_those_of_a_segment_written_so(tmp_path: Path) -> None:
    drafts: list[Draft | bytes] = [
        Draft(at, [row(0, b"k%02d" % at, b"w" * 100, AT + at)]) for at in range(20)
    ]
    rewriter = compact(tmp_path, drafts, 20, index_interval_bytes=300).rewriters[0]
    _, index, times = (Path(path).read_bytes() for path in rewriter.paths)
    size = len(drafts[0].bytes()) if isinstance(drafts[0], Draft) else 0
    assert index[:16] == b"".join(number.to_bytes(4, "big") for number in (2, 2 * size, 4, 4 * size))
    assert times[:12] == (AT + 2).to_bytes(8, "big") + (2).to_bytes(4, "big")
    assert times[-12:] == (AT + 19).to_bytes(8, "big") + (19).to_bytes(4, "big")
    assert (rewriter.max_timestamp, rewriter.max_timestamp_offset, rewriter.first_timestamp) == (
        AT + 19,
        19,
        AT,
    )
    assert (rewriter.end_offset, rewriter.batches, rewriter.size) == (20, 20, 20 * size)


def test_the_files_have_the_time_of_what_they_replace_and_can_be_thrown_away(tmp_path: Path) -> None:
    rewriter = make_rewriter(tmp_path)
    rewriter.finish(NOW_MS - 5)
    assert [os.stat(path).st_mtime_ns // 1_000_000 for path in rewriter.paths] == [NOW_MS - 5] * 3
    rewriter.discard()
    rewriter.discard()
    assert list(tmp_path.iterdir()) == []


def test_a_segment_of_which_nothing_stays_is_an_empty_file(tmp_path: Path) -> None:
    first, second = (Draft(at, [row(0, b"a")]).bytes() for at in (0, 1))
    kit.write_log(tmp_path, {0: first, 1: second, 2: b""})
    cleaned = kit.clean(cleaner, kit.Work(tmp_path, [0, 1, 2], 0, 2))
    empty = cleaned.rewriters[0]
    assert [Path(path).read_bytes() for path in empty.paths] == [b"", b"", b""]
    assert (empty.batches, empty.end_offset, empty.max_timestamp, empty.first_timestamp) == (0, 0, -1, -1)


def make_rewriter(
    directory: Path, keys: cleaner.KeyMap | None = None, round: cleaner.Round | None = None
) -> Any:
    return cleaner.Rewriter(
        str(directory),
        0,
        keys or cleaner.KeyMap(2400),
        cleaner.AbortedTransactions(),
        round or cleaner.Round(),
        last_records_of_producers={},
        now_ms=NOW_MS,
        delete_retention_ms=DAY_MS,
        end_of_round=1 << 40,
    )


# -- the first pass


def index(path: Path, end_offset: int, keys: cleaner.KeyMap, **more: Any) -> tuple[int, bool]:
    given: dict[str, Any] = {"start": 0, "most": 1000, "round": cleaner.Round(), "position": 0, **more}
    return cleaner.index_keys(
        str(path),
        given["position"],
        path.stat().st_size,
        given["start"],
        end_offset,
        keys,
        given["most"],
        cleaner.AbortedTransactions(),
        given["round"],
    )


@pytest.fixture
def segment(tmp_path: Path) -> Path:
    """Offsets 0 to 8 in three batches, a key of its own each."""
    path = tmp_path / "00000000000000000000.log"
    drafts = [Draft(at, [row(each, b"k%d" % (at + each)) for each in range(3)]) for at in (0, 3, 6)]
    path.write_bytes(b"".join(draft.bytes() for draft in drafts))
    return path


def test_a_full_map_ends_the_pass_within_a_batch(segment: Path) -> None:
    keys = cleaner.KeyMap(2400)
    assert index(segment, 9, keys, most=4) == (4, True)
    assert (keys.size, keys.latest_offset, keys.get(b"k3"), keys.get(b"k4")) == (4, 3, 3, -1)


def test_the_pass_starts_within_a_batch(segment: Path) -> None:
    keys = cleaner.KeyMap(2400)
    assert index(segment, 12, keys, start=4) == (12, False)
    assert [keys.get(b"k%d" % at) for at in (3, 4, 8)] == [-1, 4, 8]


@pytest.mark.parametrize(("end_offset", "reached"), [(3, 3), (4, 3), (8, 6), (9, 9)])
def test_a_batch_that_reaches_the_end_is_not_taken(segment: Path, end_offset: int, reached: int) -> None:
    keys = cleaner.KeyMap(2400)
    assert index(segment, end_offset, keys) == (reached, False)
    assert keys.size == reached


# -- what goes wrong


def damaged(path: Path, position: int, new: bytes) -> None:
    content = bytearray(path.read_bytes())
    content[position : position + len(new)] = new
    path.write_bytes(content)


@pytest.mark.parametrize(
    ("place", "new", "why"),
    [
        (70, b"\xff", "checksum"),
        (8, (1 << 30).to_bytes(4, "big"), "ends inside"),
        (8, (10).to_bytes(4, "big"), "size"),
        (8, b"\xff\xff\xff\xff", "size"),
        (16, b"\x07", "magic"),
        (16, b"\x01", "checksum"),
        (0, b"\x80", "negative|offsets"),
    ],
)
def test_a_damaged_batch_is_named(segment: Path, place: int, new: bytes, why: str) -> None:
    size = segment.stat().st_size // 3
    damaged(segment, size + place, new)
    with pytest.raises(cleaner.CleanerError, match=why) as first:
        index(segment, 9, cleaner.KeyMap(2400))
    rewriter = make_rewriter(segment.parent)
    with pytest.raises(cleaner.CleanerError, match=why) as second:
        rewriter.add(str(segment), segment.stat().st_size, True)
    for caught in (first.value, second.value):
        assert (caught.path, caught.position) == (str(segment), size)
    rewriter.discard()
    assert [path.name for path in segment.parent.iterdir()] == [segment.name]


def test_a_file_that_ends_within_a_batch_is_refused(segment: Path) -> None:
    size = segment.stat().st_size
    for cut in (1, 40, 61, 80):
        os.truncate(segment, size - cut)
        with pytest.raises(cleaner.CleanerError, match="ends inside"):
            index(segment, 9, cleaner.KeyMap(2400))
        with pytest.raises(cleaner.CleanerError, match="ends inside"):
            make_rewriter(segment.parent).add(str(segment), size, True)  # as long as it should be


@pytest.mark.parametrize("codec", [1, 2, 3, 4])
def test_what_cannot_be_decompressed_is_refused(tmp_path: Path, codec: int) -> None:
    path = tmp_path / "x.log"
    whole = Draft(0, [row(0, b"a"), row(1, b"b")], codec)
    content = bytearray(whole.bytes())
    content[61:70] = b"\x00" * 9
    content[17:21] = records.crc32c(bytes(content[21:])).to_bytes(4, "big")
    path.write_bytes(content)
    with pytest.raises(cleaner.CleanerError, match="position 0"):
        index(path, 2, cleaner.KeyMap(2400))


def test_records_that_are_not_what_the_header_says_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "x.log"
    good = Draft(0, [row(0, b"a"), row(1, b"b")]).bytes()
    for count in (1, 3, -1):
        content = bytearray(good)
        content[57:61] = count.to_bytes(4, "big", signed=True)
        content[17:21] = records.crc32c(bytes(content[21:])).to_bytes(4, "big")
        path.write_bytes(content)
        with pytest.raises(cleaner.CleanerError, match="record"):
            make_rewriter(tmp_path).add(str(path), len(content), True)
    for rows in ([row(1, b"a"), row(1, b"b")], [row(0, b"a"), row(5, b"b")]):
        path.write_bytes(Draft(0, rows, last_delta=3).bytes())
        with pytest.raises(cleaner.CleanerError, match="offsets of records"):
            index(path, 9, cleaner.KeyMap(2400))


@pytest.mark.parametrize(
    ("second", "why"), [(1, "not above the one before"), (1 << 31, "too far from the first of the segment")]
)
def test_a_log_that_would_not_be_one_is_refused(tmp_path: Path, second: int, why: str) -> None:
    path = tmp_path / "x.log"
    path.write_bytes(Draft(0, [row(0, b"a"), row(1, b"b")]).bytes() + Draft(second, [row(0, b"c")]).bytes())
    with pytest.raises(cleaner.CleanerError, match=why):
        make_rewriter(tmp_path).add(str(path), path.stat().st_size, True)


def test_a_size_that_lies_takes_no_memory(tmp_path: Path) -> None:
    path, round = tmp_path / "x.log", cleaner.Round(None, 4096)
    content = bytearray(Draft(0, [row(0, b"a")]).bytes())
    content[8:12] = (100_000_000 - 12).to_bytes(4, "big")
    path.write_bytes(content)
    os.truncate(path, 100_000_000)
    with pytest.raises(cleaner.CleanerError, match="checksum"):
        index(path, 1, cleaner.KeyMap(2400), round=round)
    assert round.largest_buffer_bytes == 4096


def test_buffers_grow_to_the_largest_batch_and_no_further(tmp_path: Path) -> None:
    path, round = tmp_path / "x.log", cleaner.Round(None, 4096)
    large = Draft(1, [row(0, b"b", b"w" * 300_000)]).bytes()
    path.write_bytes(Draft(0, [row(0, b"a")]).bytes() + large + Draft(2, [row(0, b"c")]).bytes())
    assert index(path, 3, cleaner.KeyMap(2400), round=round) == (3, False)
    assert round.largest_buffer_bytes == len(large)
    rewriter = make_rewriter(tmp_path, round=round)
    rewriter.add(str(path), path.stat().st_size, True)
    rewriter.finish(NOW_MS)
    assert Path(rewriter.paths[0]).read_bytes() == path.read_bytes()
    assert round.largest_buffer_bytes < 3 * len(large)


def test_trouble_with_a_disk_is_an_os_error(tmp_path: Path, segment: Path) -> None:
    with pytest.raises(FileNotFoundError):
        make_rewriter(tmp_path).add(str(segment.with_name("gone")), 9, True)
    with pytest.raises(FileNotFoundError):
        make_rewriter(tmp_path / "no directory")
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / f"{0:020d}.log.cleaned").symlink_to("/dev/full")
    rewriter = make_rewriter(tmp_path / "full")
    rewriter.add(str(segment), segment.stat().st_size, True)
    with pytest.raises(OSError, match="No space left"):
        rewriter.finish(NOW_MS)


# -- stopping and slowing down


def test_a_cancelled_round_stops(segment: Path) -> None:
    round = cleaner.Round()
    round.cancel()
    assert round.cancelled
    with pytest.raises(cleaner.Cancelled):
        index(segment, 9, cleaner.KeyMap(2400), round=round)
    with pytest.raises(cleaner.Cancelled):
        make_rewriter(segment.parent, round=round).add(str(segment), segment.stat().st_size, True)


def test_a_throttled_pass_can_be_cancelled_from_another_thread(segment: Path) -> None:
    round = cleaner.Round(cleaner.Throttle(0.001))
    round.throttle.take(1000, 1 << 62)  # paid for in a million seconds, by whatever clock
    ended: list[type[BaseException]] = []

    def run() -> None:
        try:
            index(segment, 9, cleaner.KeyMap(2400), round=round)
        except BaseException as error:
            ended.append(type(error))

    thread = threading.Thread(target=run)
    thread.start()
    round.cancel()
    thread.join(30)
    assert ended == [cleaner.Cancelled]


def test_another_rate_ends_the_wait_for_the_old_one(segment: Path) -> None:
    round = cleaner.Round(cleaner.Throttle(0.001))
    round.throttle.take(1000, 1 << 62)
    reached: list[tuple[int, bool]] = []
    thread = threading.Thread(
        target=lambda: reached.append(index(segment, 9, cleaner.KeyMap(2400), round=round))
    )
    thread.start()
    round.throttle.bytes_per_second = float("inf")
    thread.join(30)
    assert reached == [(9, False)]


def test_the_throttle_spreads_bytes_over_time() -> None:
    throttle = cleaner.Throttle(1000)
    second = 1_000_000_000
    assert throttle.take(500, 10 * second) == 0
    assert throttle.take(2000, 10 * second) == second // 2
    assert throttle.take(1, 11 * second) == second * 3 // 2
    assert throttle.take(1, 60 * second) == 0  # what nobody used is gone
    assert throttle.take(1, 60 * second) == second // 1000
    throttle.bytes_per_second = 10
    assert throttle.take(10, 60 * second) == 0
    assert throttle.take(10, 60 * second) == second
    assert cleaner.Throttle().take(1 << 50, 0) == 0


# -- the map


def test_the_map_is_a_dictionary_to_the_last_slot() -> None:
    keys = cleaner.KeyMap(24 * 1000 + 23)
    assert (keys.slots, keys.size, keys.latest_offset, keys.get(b"x")) == (1000, 0, -1, -1)
    for number in range(3000):
        keys.put(b"key-%d" % (number % 1000), number)
    assert (keys.size, keys.utilization, keys.latest_offset) == (1000, 1.0, 2999)
    assert [keys.get(b"key-%d" % number) for number in range(1000)] == list(range(2000, 3000))
    assert keys.get(b"key-1000") == -1
    with pytest.raises(ValueError, match="1000 of 1000"):
        keys.put(b"one more", 1)
    keys.put(b"key-5", 7777)
    assert keys.get(b"key-5") == 7777


@pytest.mark.parametrize("memory_bytes", [2400, 24 << 20])
def test_a_map_is_used_again(memory_bytes: int) -> None:
    keys = cleaner.KeyMap(memory_bytes)
    for empty in (keys.clear, keys.close):
        keys.put(b"a", 0)
        assert keys.get(b"a") == 0
        empty()
        assert (keys.get(b"a"), keys.size, keys.latest_offset) == (-1, 0, -1)


def test_keys_of_every_length_are_told_apart() -> None:
    keys = cleaner.KeyMap(24 * 2000)
    for size in range(600):
        keys.put(b"\0" * size, size)
        keys.put(b"\0" * size + b"\1", 1000 + size)
    assert [keys.get(b"\0" * size) for size in range(600)] == list(range(600))
    assert [keys.get(b"\0" * size + b"\1") for size in range(600)] == list(range(1000, 1600))


def test_a_map_without_room_takes_nothing() -> None:
    keys = cleaner.KeyMap(23)
    assert (keys.slots, keys.utilization, keys.get(b"a")) == (0, 0.0, -1)
    with pytest.raises(ValueError, match="0 of 0"):
        keys.put(b"a", 1)
