"""Validation beyond the golden verdicts: in place or not, what it changes, its errors, and its costs."""

from __future__ import annotations

import gc
import random
import tracemalloc
from typing import Any

import pytest

from pykafkad import compression, errors
from pykafkad.hot import records
from pykafkad.hot.records import RecordsError, Rules

NOW_MS = 1700000100000
COMPRESSED = records.CODECS[1:]
every_codec = pytest.mark.parametrize("codec", records.CODECS)

Entry = tuple[bytes | None, bytes | None, list[tuple[str, bytes | None]], int]


def entries(count: int, seed: int = 0) -> list[Entry]:
    """Records of many shapes and sizes, some larger than a piece of decompressed bytes."""
    chance = random.Random(seed)
    found: list[Entry] = []
    for index in range(count):
        key = chance.choice([None, b"", b"key-%d" % index])
        value = chance.choice([None, b"", chance.randbytes(chance.choice([3, 100, 3000, 70_000]))])
        headers: list[tuple[str, bytes | None]] = [
            (f"h{place}", chance.choice([None, b"", b"x" * 200])) for place in range(chance.choice([0, 0, 2]))
        ]
        found.append((key, value, headers, NOW_MS + chance.randrange(-1000, 1000)))
    return found


def unpacked(data: Any) -> list[Entry]:
    return [(r.key, r.value, r.headers, r.timestamp) for r in records.read(data)]


def refusal(data: Any, rules: Rules | None = None, now_ms: int = NOW_MS) -> RecordsError:
    with pytest.raises(RecordsError) as raised:
        records.validate(data, rules or Rules(), now_ms, "orders-3")
    return raised.value


LARGE = Rules(max_message_bytes=1 << 30)


# -- in place


@every_codec
def test_a_batch_is_validated_where_it_lies(codec: str) -> None:
    sent = entries(40)
    received = bytearray(b"before" + records.build(sent, codec=codec) + b"after")
    view = memoryview(received)[6:-5]
    batches = records.validate(view, LARGE, NOW_MS)
    assert batches.data is view
    assert not batches.converted
    assert batches.assign(500, 9) == 539
    assert received[:6] == b"before"
    assert received[-5:] == b"after"
    (batch,) = records.scan(received[6:-5])
    assert (batch.base_offset, batch.last_offset, batch.leader_epoch, batch.count) == (500, 539, 9, 40)
    assert unpacked(received[6:-5]) == sent


def test_bytes_that_cannot_be_written_are_copied() -> None:
    data = records.build(entries(2))
    before = bytes(data)
    batches = records.validate(data, Rules(), NOW_MS)
    batches.assign(7, 7)
    assert data == before
    assert records.scan(batches.data)[0].base_offset == 7


def test_a_torn_batch_behind_is_left_out() -> None:
    data = bytearray(records.build(entries(1)))
    size = len(data)
    data += data[:30]
    batches = records.validate(data, Rules(), NOW_MS)
    assert batches.size == size == len(memoryview(batches.data))


def test_the_first_record_with_the_greatest_timestamp_is_known() -> None:
    sent: list[Entry] = [(None, b"", [], NOW_MS + delta) for delta in (1, 5, 3, 5)]
    for codec in records.CODECS:
        batches = records.validate(bytearray(records.build(sent, codec=codec)), Rules(), NOW_MS)
        assert (batches.max_timestamp, batches.offset_of_max_timestamp_delta) == (NOW_MS + 5, 1)


def test_a_wrong_maximum_timestamp_is_put_right_together_with_the_crc() -> None:
    data = bytearray(records.build([(None, b"v", [], NOW_MS)]))
    data[35:43] = (NOW_MS + 77).to_bytes(8, "big")
    data[17:21] = records.crc32c(data[21:]).to_bytes(4, "big")
    records.validate(data, Rules(), NOW_MS)
    assert records.scan(data)[0].max_timestamp == NOW_MS


@every_codec
def test_log_append_time(codec: str) -> None:
    data = bytearray(records.build(entries(3), codec=codec))
    batches = records.validate(data, Rules(max_message_bytes=1 << 30, log_append_time=True), NOW_MS + 5)
    assert batches.log_append_time == batches.max_timestamp == NOW_MS + 5
    (batch,) = records.scan(data)
    assert batch.is_log_append_time
    assert {record.timestamp for record in records.read(data)} == {NOW_MS + 5}


def test_producer_fields_are_at_hand() -> None:
    data = records.build(
        entries(3), producer_id=9, producer_epoch=2, base_sequence=2**31 - 2, transactional=True
    )
    batches = records.validate(data, LARGE, NOW_MS)
    assert (batches.producer_id, batches.producer_epoch, batches.base_sequence) == (9, 2, 2**31 - 2)
    assert (batches.last_sequence, batches.is_transactional, batches.is_control) == (0, True, False)
    assert batches.first.last_sequence == 0


# -- recompression


@every_codec
@pytest.mark.parametrize("target", records.CODECS)
def test_compression_type_of_the_topic(codec: str, target: str) -> None:
    sent = entries(60, seed=5)
    data = records.build(sent, codec=codec, producer_id=4, producer_epoch=1, base_sequence=3)
    name = "uncompressed" if target == "none" else target
    batches = records.validate(data, Rules(max_message_bytes=1 << 30, compression=name), NOW_MS)
    assert batches.converted == (codec != target)
    batches.assign(10, 3)
    (batch,) = records.scan(batches.data)
    assert batch.codec == target
    assert (batch.base_offset, batch.last_offset, batch.leader_epoch) == (10, 69, 3)
    assert (batch.producer_id, batch.producer_epoch, batch.base_sequence) == (4, 1, 3)
    assert unpacked(batches.data) == sent


def test_a_level_reaches_the_compressor() -> None:
    sent: list[Entry] = [(None, random.Random(1).randbytes(50) * 400, [], NOW_MS)] * 20
    for codec, low, high in (("gzip", 1, 9), ("zstd", 1, 19), ("lz4", 9, 12)):
        sizes = [
            records.validate(
                records.build(sent), Rules(compression=codec, compression_level=level), NOW_MS
            ).size
            for level in (low, high)
        ]
        assert sizes[0] > sizes[1], codec


def test_a_batch_that_grows_beyond_the_maximum_is_too_large() -> None:
    data = records.build([(None, bytes(100_000), [], NOW_MS)], codec="gzip")
    assert len(data) < 1000
    error = refusal(data, Rules(max_message_bytes=50_000, compression="uncompressed"))
    assert error.code == errors.MESSAGE_TOO_LARGE


def test_control_batches_of_our_own_are_not_compressed() -> None:
    marker = records.build(
        [(b"\0\0\0\1", b"\0\0\0\0\0\7", [], NOW_MS)], control=True, transactional=True, producer_id=1
    )
    batches = records.validate(marker, Rules(client=False, compression="zstd"), NOW_MS)
    assert batches.is_control
    assert not batches.converted
    assert [record.control_type for record in records.read(batches.data)] == [1]


# -- refusals


def test_keyless_records_of_a_compacted_topic_are_named() -> None:
    sent: list[Entry] = [(b"k", b"", [], NOW_MS), (None, b"", [], NOW_MS), (None, None, [], NOW_MS)]
    for codec in records.CODECS:
        error = refusal(records.build(sent, codec=codec), Rules(compacted=True))
        text = "Compacted topic cannot accept message without key in topic partition orders-3"
        assert error.code == errors.INVALID_RECORD
        assert list(error.record_errors) == [(1, text), (2, text)]
        assert error.message == (
            "One or more records have been rejected due to 2 record errors in total, and only showing the first "
            f"three errors at most: [RecordError(batchIndex=1, message='{text}'), "
            f"RecordError(batchIndex=2, message='{text}')]"
        )


def test_a_time_out_of_bounds_is_named() -> None:
    sent: list[Entry] = [(None, b"", [], NOW_MS), (None, b"", [], NOW_MS - 1001)]
    error = refusal(records.build(sent), Rules(timestamp_before_max_ms=1000, timestamp_after_max_ms=10))
    assert error.code == errors.INVALID_TIMESTAMP
    assert error.message == "One or more records have been rejected due to invalid timestamp"
    assert list(error.record_errors) == [
        (
            1,
            f"Timestamp {NOW_MS - 1001} of message with offset 1 is out of range. The timestamp should be within "
            f"[{NOW_MS - 1000}, {NOW_MS + 10}]",
        )
    ]


@pytest.mark.parametrize(("codec", "kind"), [("none", "DefaultRecord"), ("gzip", "PartialDefaultRecord")])
def test_a_client_must_not_say_log_append_time(codec: str, kind: str) -> None:
    data = records.build([(b"ab", b"c", [], 1)], codec=codec, timestamp_type=1, log_append_time=NOW_MS)
    error = refusal(data, Rules(log_append_time=True))
    assert error.code == errors.INVALID_TIMESTAMP
    assert list(error.record_errors) == [
        (
            0,
            f"Invalid timestamp type in message {kind}(offset=0, timestamp={NOW_MS}, key=2 bytes, value=1 bytes). "
            "Producer should not set timestamp type to LogAppendTime.",
        )
    ]


def test_an_answer_names_a_bounded_number_of_records() -> None:
    data = records.build([(None, None, [], NOW_MS)] * 30_000)
    assert len(refusal(data, Rules(compacted=True)).record_errors) == 20_000


def test_framing_of_the_first_batch_fails_the_whole_request() -> None:
    good = records.build(entries(1))
    with pytest.raises(RecordsError) as first:
        records.check_framing(good[:8] + b"\0\0\0\5" + good[12:], False)
    assert first.value.message == "Record size 5 is less than the minimum record overhead (14)"
    with pytest.raises(RecordsError) as magic:
        records.check_framing(good[:16] + b"\7" + good[17:], False)
    assert magic.value.message == "Invalid magic found in record: 7"
    with pytest.raises(RecordsError) as second:
        records.check_produce(good + bytes(20), 9)
    records.check_framing(good + bytes(20), False)
    records.check_framing(b"", False)
    assert (second.value.code, second.value.message) == (errors.CORRUPT_MESSAGE, None)


def test_a_transactional_batch_needs_a_transactional_id() -> None:
    data = records.build(entries(1), producer_id=1, producer_epoch=0, base_sequence=0, transactional=True)
    records.check_framing(data, True)
    with pytest.raises(RecordsError) as raised:
        records.check_framing(data, False)
    assert raised.value.code == errors.TRANSACTIONAL_ID_AUTHORIZATION_FAILED


def test_zstd_needs_version_7_of_produce() -> None:
    data = records.build(entries(1), codec="zstd")
    records.check_produce(data, 7)
    with pytest.raises(RecordsError) as raised:
        records.check_produce(data, 6)
    assert raised.value.code == errors.UNSUPPORTED_COMPRESSION_TYPE


def test_null_records_are_refused() -> None:
    with pytest.raises(RecordsError) as raised:
        records.check_produce(None, 9)
    assert raised.value.code == errors.INVALID_RECORD


def verdict(data: bytearray) -> int:
    try:
        records.validate(data, LARGE, NOW_MS)
    except RecordsError as error:
        return error.code
    return errors.NONE


@every_codec
def test_every_cut_of_a_batch_is_refused(codec: str) -> None:
    """With length and CRC corrected, so that the records themselves are checked."""
    data = records.build([*entries(3, seed=3), (b"k", b"v" * 10, [("h", b"x")], NOW_MS)], codec=codec)
    whole = unpacked(data)
    for end in range(61, len(data), max(1, len(data) // 400)):
        cut = bytearray(data[:end])
        cut[8:12] = (end - 12).to_bytes(4, "big")
        cut[17:21] = records.crc32c(cut[21:]).to_bytes(4, "big")
        code = verdict(bytearray(cut))
        if code == errors.NONE:  # snappy's last block may be empty, so cutting it off loses nothing
            assert codec == "snappy"
            assert unpacked(cut) == whole
        else:
            assert code in (errors.INVALID_RECORD, errors.UNKNOWN_SERVER_ERROR)


# -- pieces and bounds


def test_records_may_be_cut_anywhere_between_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    """The result does not depend on where the pieces of decompressed bytes end."""
    sent = [*entries(6, seed=8), (b"", b"", [("", b""), ("h", None)], 5)]
    data = records.build([(k, v and v[:300], h, t) for k, v, h, t in sent])
    labelled = bytearray(data)
    labelled[22] = 1  # gzip, whose decompression is replaced below
    plain = data[61:]
    for size in (1, 2, 3, 7, 64, 65, 1000):
        pieces = [plain[start : start + size] for start in range(0, len(plain), size)]
        monkeypatch.setattr(compression, "pieces", lambda *_, found=pieces: iter(found))
        batches = records.validate_records(bytearray(labelled), Rules(timestamp_after_max_ms=2**62), NOW_MS)
        assert batches.max_timestamp == records.scan(data)[0].max_timestamp
        monkeypatch.setattr(compression, "pieces", lambda *_, found=pieces[:-1]: iter(found))
        with pytest.raises(RecordsError) as cut:
            records.validate_records(bytearray(labelled), Rules(), NOW_MS)
        assert cut.value.code == errors.INVALID_RECORD
        monkeypatch.setattr(compression, "pieces", lambda *_, found=pieces: iter([*found, b"x"]))
        with pytest.raises(RecordsError) as longer:
            records.validate_records(bytearray(labelled), Rules(), NOW_MS)
        assert longer.value.code == errors.INVALID_RECORD


def bomb(codec: str, size: int) -> bytes:
    """A small batch with one record of zeros."""
    number = records.CODECS.index(codec)
    plain = records.build([(None, bytes(1 << 20), [], NOW_MS)])
    compressor = compression.compressor(number)
    payload = bytearray(compressor.compress(plain[61:]))
    for _ in range(size >> 20):
        payload += compressor.compress(bytes(1 << 20))
    payload += compressor.flush()
    data = bytearray(plain[:61] + payload)
    data[8:12] = (len(data) - 12).to_bytes(4, "big")
    data[22] = number
    data[61 - 4 : 61] = (2).to_bytes(4, "big")
    data[23:27] = (1).to_bytes(4, "big")
    return bytes(data)


@pytest.mark.parametrize("codec", ["gzip", "zstd"])
def test_a_bomb_is_refused_with_little_memory(codec: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compression, "ALWAYS_ALLOWED_BYTES", 8 << 20)
    monkeypatch.setattr(compression, "BELIEVABLE_RATIO", 2)
    data = bytearray(bomb(codec, 64 << 20))
    # The record's length is that of all the data, so only the bound can stop it.
    tracemalloc.start()
    try:
        pieces = records.Pieces(data[22] & 7, memoryview(data)[61:])
        with pytest.raises(RecordsError) as raised:
            for _ in pieces:
                pass
        assert tracemalloc.get_traced_memory()[1] < 2 << 20
    finally:
        tracemalloc.stop()
    assert raised.value.code == errors.INVALID_RECORD
    assert str(8 << 20) in str(raised.value)


@pytest.mark.parametrize("codec", COMPRESSED)
def test_what_follows_the_last_record_stops_the_reading(codec: str) -> None:
    data = bytearray(bomb(codec, 4 << 20))
    data[23:27] = bytes(4)
    data[57:61] = (1).to_bytes(4, "big")
    with pytest.raises(RecordsError, match="bytes remain"):
        records.validate_records(data, LARGE, NOW_MS)


def test_a_snappy_block_that_claims_too_much_is_refused_unread() -> None:
    claim = b"\xff\xff\xff\xff\x0f"
    with pytest.raises(compression.DecompressionError, match="invalid snappy block"):
        list(compression.pieces(compression.SNAPPY, memoryview(claim)))


@pytest.mark.parametrize("codec", COMPRESSED)
def test_no_bytes_compress_and_come_back(codec: str) -> None:
    number = records.CODECS.index(codec)
    compressor = compression.compressor(number)
    assert b"".join(compression.pieces(number, memoryview(compressor.flush()))) == b""


@pytest.mark.parametrize("codec", COMPRESSED)
@pytest.mark.parametrize("size", [1, 32767, 32768, 32769, 65536, 400_000])
def test_sizes_around_blocks_come_back(codec: str, size: int) -> None:
    number = records.CODECS.index(codec)
    data = random.Random(size).randbytes(size // 2) + bytes(size - size // 2)
    compressor = compression.compressor(number)
    packed = b"".join(
        [compressor.compress(data[: size // 3]), compressor.compress(data[size // 3 :]), compressor.flush()]
    )
    assert b"".join(compression.pieces(number, memoryview(packed))) == data


# -- reading and building


def test_scan_stops_at_a_torn_batch_and_names_a_bad_one() -> None:
    one, two = records.build(entries(1)), records.build(entries(2), base_offset=1)
    data = one + two
    assert [batch.position for batch in records.scan(data)] == [0, len(one)]
    assert len(records.scan(data[:-1])) == 1
    bad = bytearray(data)
    bad[-1] ^= 1
    with pytest.raises(RecordsError) as raised:
        records.scan(bad)
    assert (raised.value.code, raised.value.position) == (errors.CORRUPT_MESSAGE, len(one))
    assert len(records.scan(bad, check_crc=False)) == 2


def test_reading_gives_out_what_comes_before_a_fault() -> None:
    one, two = records.build(entries(3)), bytearray(records.build(entries(2), base_offset=3))
    two[-1] ^= 1
    reading = records.read(one + two)
    assert [next(reading).offset for _ in range(3)] == [0, 1, 2]
    with pytest.raises(RecordsError):
        next(reading)


def test_a_built_batch_has_what_was_asked_for() -> None:
    data = records.build(
        entries(4),
        base_offset=90,
        leader_epoch=5,
        producer_id=6,
        producer_epoch=7,
        base_sequence=8,
        transactional=True,
    )
    (batch,) = records.scan(data)
    assert (batch.base_offset, batch.last_offset, batch.leader_epoch) == (90, 93, 5)
    assert (batch.producer_id, batch.producer_epoch, batch.base_sequence, batch.last_sequence) == (
        6,
        7,
        8,
        11,
    )
    assert batch.is_transactional and not batch.is_control
    assert batch.max_timestamp == max(entry[3] for entry in entries(4))


def test_an_empty_batch_cannot_be_built() -> None:
    with pytest.raises(ValueError, match="needs a record"):
        records.build([])


def test_a_control_record_with_a_short_key_is_refused() -> None:
    data = records.build([(b"\0\0", b"", [], 0)], control=True)
    with pytest.raises(RecordsError, match="too short"):
        list(records.read(data))


def test_the_garbage_collector_releases_the_bytes() -> None:
    """Validated records in a reference cycle release their buffer."""
    data = bytearray(records.build(entries(1)))
    cycle: list[Any] = [records.validate(data, LARGE, NOW_MS)]
    cycle.append(cycle)
    with pytest.raises(BufferError):
        data.append(0)
    del cycle
    gc.collect()
    data.append(0)


@pytest.mark.parametrize("compression_type", ["producer", "gzip", "uncompressed"])
@pytest.mark.parametrize("codec", ["none", "zstd"])
def test_a_negative_count_is_refused_from_anyone(codec: str, compression_type: str) -> None:
    data = bytearray(records.build(entries(1), codec=codec))
    data[57:61] = b"\xff" * 4
    data[17:21] = records.crc32c(data[21:]).to_bytes(4, "big")
    error = refusal(data, Rules(client=False, compression=compression_type, max_message_bytes=1 << 20))
    assert error.code == errors.INVALID_RECORD
