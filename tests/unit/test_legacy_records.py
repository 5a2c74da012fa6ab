"""Messages of formats 0 and 1 as they are read from old logs: fields, sets in a message, what is searched and counted."""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Generator
from typing import Any

import pytest

from pykafkad import errors, legacy_records
from pykafkad.hot.records import RecordsError, Rules

GZIP, ZSTD, APPEND_TIME = 1, 4, 8


def message(
    offset: int,
    value: bytes | None,
    *,
    key: bytes | None = None,
    magic: int = 1,
    attributes: int = 0,
    timestamp: int = 0,
) -> bytes:
    body = bytes([magic, attributes]) + (timestamp.to_bytes(8, "big", signed=True) if magic else b"")
    for each in (key, value):
        body += (len(each) if each is not None else -1).to_bytes(4, "big", signed=True) + (each or b"")
    whole = zlib.crc32(body).to_bytes(4, "big") + body
    return offset.to_bytes(8, "big", signed=True) + len(whole).to_bytes(4, "big") + whole


def message_set(
    *inner: bytes, offset: int, magic: int = 1, attributes: int = GZIP, timestamp: int = 0
) -> bytes:
    packed = gzip.compress(b"".join(inner))
    return message(offset, packed, magic=magic, attributes=attributes, timestamp=timestamp)


def rows(data: bytes) -> list[tuple[int, int, bytes | None, bytes | None]]:
    return [(each.offset, each.timestamp, each.key, each.value) for each in legacy_records.read(data)]


def result(work: Generator[Any, None, Any]) -> tuple[int, Any]:
    """In how many pieces it came, and what."""
    pauses = 0
    while True:
        try:
            next(work)
        except StopIteration as end:
            return pauses, end.value
        pauses += 1


def refusal(data: bytes) -> tuple[int, str]:
    with pytest.raises(RecordsError) as refused:
        rows(data)
    return refused.value.args[0], str(refused.value.detail)


def test_the_fields_of_both_formats() -> None:
    assert rows(message(7, b"v", key=b"k", timestamp=1234)) == [(7, 1234, b"k", b"v")]
    assert rows(message(7, b"v", key=b"k", magic=0)) == [(7, -1, b"k", b"v")]
    assert rows(message(0, None)) == [(0, 0, None, None)]
    assert rows(message(0, b"", key=b"")) == [(0, 0, b"", b"")]


def test_inner_offsets_of_format_1_are_relative_to_the_last() -> None:
    inner = [message(place, b"%d" % place, timestamp=100 + place) for place in range(3)]
    data = message_set(*inner, offset=12)
    assert rows(data) == [(10, 100, None, b"0"), (11, 101, None, b"1"), (12, 102, None, b"2")]
    assert legacy_records.first_offset(data) == 10 and legacy_records.count(data) == 3
    assert [row[0] for row in rows(message_set(*inner, offset=0))] == [0, 1, 2], (
        "absolute, as some wrote them"
    )


def test_inner_offsets_of_format_0_are_absolute() -> None:
    inner = [message(place, b"v", magic=0) for place in (5, 6)]
    assert [row[0] for row in rows(message_set(*inner, offset=6, magic=0))] == [5, 6]


def test_log_append_time_of_a_set_counts_for_all_in_it() -> None:
    inner = [message(place, b"v", timestamp=1) for place in range(2)]
    data = message_set(*inner, offset=1, attributes=GZIP | APPEND_TIME, timestamp=999)
    assert [row[1] for row in rows(data)] == [999, 999]
    assert legacy_records.outer(data).is_append_time
    assert not legacy_records.outer(message(0, b"v", magic=0, attributes=APPEND_TIME)).is_append_time


def test_a_torn_last_message_of_a_set_is_dropped() -> None:
    inner = [message(0, b"whole"), message(1, b"torn")]
    assert [row[3] for row in rows(message_set(inner[0], inner[1][:-1], offset=1))] == [b"whole"]
    assert [row[3] for row in rows(message_set(inner[0], inner[1][:11], offset=1))] == [b"whole"]


def test_what_is_wrong_with_a_set_is_told() -> None:
    good = message(0, b"v")
    damaged = good[:-1] + b"w"
    short = good[:8] + (13).to_bytes(4, "big") + good[12:]
    invalid, corrupt = errors.INVALID_RECORD, errors.CORRUPT_MESSAGE
    assert refusal(message_set(damaged, offset=1)) == (corrupt, "inner message is corrupt")
    assert refusal(message_set(short, offset=1))[0] == corrupt
    assert refusal(message_set(offset=1)) == (invalid, "compressed messages with nothing inside")
    assert refusal(message(1, None, attributes=GZIP)) == (invalid, "compressed messages with null value")
    assert refusal(message(1, b"v", attributes=ZSTD)) == (invalid, "zstd in a message of format 0 or 1")
    assert refusal(message(1, b"v", attributes=5)) == (
        errors.UNKNOWN_SERVER_ERROR,
        "unknown compression codec",
    )
    nested = message(1, b"v", attributes=GZIP)
    assert refusal(message_set(nested, offset=1)) == (invalid, "inner messages must not be compressed")
    last = message(9, b"v")
    assert refusal(message_set(good, last, offset=8))[0] == invalid
    assert [row[0] for row in rows(message_set(good, last, offset=9))] == [0, 9]


def test_a_length_beyond_the_message_is_refused() -> None:
    good = message(0, b"value")
    longer = good[:26] + (1).to_bytes(4, "big", signed=True) + good[30:]
    assert refusal(longer)[0] == errors.UNKNOWN_SERVER_ERROR
    cut = good[:-6]
    assert refusal(cut) == (errors.UNKNOWN_SERVER_ERROR, "a message is shorter than its fields")


def test_a_checksum_is_of_what_follows_it() -> None:
    good = message(0, None, magic=0)
    assert len(good) == 12 + legacy_records.LEAST_SIZE and legacy_records.crc_fits(good)
    assert not legacy_records.crc_fits(good[:-1])
    assert not legacy_records.crc_fits(good[:-1] + b"\0")
    assert not legacy_records.crc_fits(b"\0" * 12 + (0).to_bytes(4, "big"))


TIMES = [10, 30, 20, 30]


@pytest.mark.parametrize(
    ("timestamp", "start", "exactly", "expected"),
    [
        (10, 0, False, (0, 10)),
        (11, 0, False, (1, 30)),
        (30, 0, False, (1, 30)),
        (31, 0, False, None),
        (15, 2, False, (2, 20)),
        (30, 2, False, (3, 30)),
        (20, 0, True, (2, 20)),
        (30, 1, True, (1, 30)),
        (30, 2, True, (3, 30)),
        (11, 0, True, None),
    ],
)
def test_the_first_record_of_a_time_or_later_is_found(
    timestamp: int, start: int, exactly: bool, expected: tuple[int, int] | None
) -> None:
    inner = [message(place, b"v", timestamp=time) for place, time in enumerate(TIMES)]
    data = message_set(*inner, offset=3)
    assert result(legacy_records.search(data, timestamp, start, exactly)) == (1, expected)


def test_a_long_search_comes_in_pieces() -> None:
    data = message_set(*[message(place, b"v") for place in range(130)], offset=129)
    assert result(legacy_records.search(data, 1, 0, False)) == (3, None)


# -- what a topic refuses

NOW_MS, SECOND_MS = 1_700_000_000_000, 1_000
STRICT = {"timestamp_before_max_ms": SECOND_MS, "timestamp_after_max_ms": SECOND_MS}


def faults(data: bytes, **rules: Any) -> tuple[int, list[tuple[int, str]]]:
    """The code, and what is wrong with which record of the set; none: it is taken."""
    try:
        legacy_records.validated(data, Rules(**rules), NOW_MS, "t-0", True)
    except RecordsError as refused:
        return refused.args[0], list(refused.record_errors)
    return errors.NONE, []


@pytest.mark.parametrize("off_ms", [-SECOND_MS - 1, -SECOND_MS, SECOND_MS, SECOND_MS + 1])
def test_a_timestamp_is_near_that_of_the_broker(off_ms: int) -> None:
    given = NOW_MS + off_ms
    data = message_set(message(0, b"v", timestamp=NOW_MS), message(1, b"v", timestamp=given), offset=1)
    code, found = faults(data, **STRICT)
    if abs(off_ms) == SECOND_MS:
        assert (code, found) == (errors.NONE, [])
    else:
        assert code == errors.INVALID_TIMESTAMP and found == [
            (
                1,
                f"Timestamp {given} of message with offset 1 is out of range. The timestamp should be within"
                f" [{NOW_MS - SECOND_MS}, {NOW_MS + SECOND_MS}]",
            )
        ]
    assert faults(data, **STRICT, log_append_time=True) == (errors.NONE, [])


def test_who_gives_no_timestamp_is_not_late() -> None:
    assert faults(message(0, b"v", timestamp=-1), **STRICT) == (errors.NONE, [])
    assert faults(message(0, b"v", magic=0), **STRICT) == (errors.NONE, [])


def test_a_producer_does_not_say_when_it_was_appended() -> None:
    code, found = faults(message(0, b"v", timestamp=-1, attributes=APPEND_TIME))
    assert (code, [text for _, text in found]) == (
        errors.INVALID_TIMESTAMP,
        [
            "Invalid timestamp type in message with offset 0. Producer should not set timestamp type to"
            " LogAppendTime."
        ],
    )


def test_a_compacted_topic_wants_keys_and_a_set_one_format() -> None:
    inner = [message(0, b"v", key=b"k", timestamp=NOW_MS), message(1, b"v", timestamp=NOW_MS)]
    code, found = faults(message_set(*inner, offset=1), compacted=True)
    text = "Compacted topic cannot accept message without key in topic partition t-0"
    assert (code, found) == (errors.INVALID_RECORD, [(1, text)])
    assert faults(message_set(inner[0], offset=0), compacted=True) == (errors.NONE, [])
    mixed = message_set(inner[0], message(1, b"v", magic=0), offset=1)
    code, found = faults(mixed)
    text = "Record's magic does not match outer magic 1 in topic partition t-0"
    assert (code, found) == (errors.INVALID_RECORD, [(1, text)])


def test_sets_are_whole_alone_and_no_larger_than_they_may_be() -> None:
    one = message(0, b"v" * 100, timestamp=NOW_MS)
    packed = message_set(one, offset=0)
    assert faults(one, max_message_bytes=len(one) + 50)[0] == errors.NONE
    assert faults(one, max_message_bytes=len(one) - 1)[0] == errors.MESSAGE_TOO_LARGE
    assert faults(one[:-1] + b"w")[0] == errors.CORRUPT_MESSAGE
    assert faults(packed + packed)[0] == faults(packed + one)[0] == errors.INVALID_RECORD
    assert faults(one + message(1, b"v", magic=0))[0] == errors.INVALID_RECORD
    assert faults(one + message(1, b"v", timestamp=NOW_MS))[0] == errors.NONE
    assert faults(message(0, b"v", attributes=5))[0] == errors.UNKNOWN_SERVER_ERROR
    assert (
        faults(message(0, b"v", timestamp=-2), timestamp_before_max_ms=1 << 62)[0]
        == errors.UNKNOWN_SERVER_ERROR
    )
