"""Records checked in steps: the same verdicts as at once, with bounded work in each step and bounded memory."""

from __future__ import annotations

import gzip
import random
import time
import tracemalloc
import zlib
from collections.abc import Callable
from typing import Any

import pytest

from pykafkad import compression, errors
from pykafkad.hot import records
from pykafkad.hot.records import RecordsError, Rules, Validation
from pykafkad.slices import finish

NOW_MS = 1700000100000
MIB = 1 << 20
LARGE = 1 << 30
HEADER_BYTES = 61
COMPRESSED = records.CODECS[1:]
every_codec = pytest.mark.parametrize("codec", records.CODECS)


def steps_of(data: bytes, rules: Rules) -> tuple[Any, int]:
    """The Batches, and after how many steps they were there."""
    work = records.begin_validation(data, rules, NOW_MS, "t-0")
    steps = 1
    if not isinstance(work, Validation):
        return work, steps
    while not work.advance():
        steps += 1
    return work.finish(NOW_MS), steps + 1


def with_payload(data: bytes, codec: str, payload: bytes) -> bytes:
    """The batch with other (decompressed) bytes in place of its records."""
    number = records.CODECS.index(codec)
    if number:
        compressor = compression.compressor(number)
        payload = compressor.compress(payload) + compressor.flush()
    made = bytearray(data[:HEADER_BYTES] + payload)
    made[8:12] = (len(made) - 12).to_bytes(4)
    made[22] = made[22] & ~7 | number
    made[17:21] = records.crc32c(made[21:]).to_bytes(4)
    return bytes(made)


def zeros(size: int, codec: str) -> bytes:
    return records.build([(None, bytes(size), [], NOW_MS)], codec=codec)


def cost(work: Callable[[], Any]) -> float:
    """CPU time, the least of three runs."""
    found = []
    for _ in range(3):
        begun = time.thread_time()
        work()
        found.append(time.thread_time() - begun)
    return min(found)


def peak_of(work: Callable[[], Any]) -> int:
    """The peak of Python's memory in the meantime."""
    tracemalloc.start()
    try:
        work()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def resident_peak_of(work: Callable[[], Any]) -> int:
    """By how many bytes the process grew in the meantime."""
    with open("/proc/self/clear_refs", "w") as file:
        file.write("5")
    before = high_water()
    work()
    return high_water() - before


def high_water() -> int:
    with open("/proc/self/status") as file:
        return next(int(line.split()[1]) * 1024 for line in file if line.startswith("VmHWM"))


def refusal(data: bytes, rules: Rules) -> RecordsError:
    with pytest.raises(RecordsError) as raised:
        records.validate(data, rules, NOW_MS, "t-0")
    return raised.value


# -- one large record


@pytest.mark.parametrize(
    "look",
    [
        lambda data: records.validate(data, Rules(max_message_bytes=LARGE), NOW_MS),
        lambda data: records.validate(data, Rules(max_message_bytes=LARGE, compression="zstd"), NOW_MS),
        lambda data: records.validate(
            data, Rules(max_message_bytes=LARGE, compression="uncompressed"), NOW_MS
        ),
        lambda data: finish(records.search(data, NOW_MS, 0)),
        lambda data: finish(records.search(data, NOW_MS + 1, 0)),
        lambda data: list(records.read(data)),
    ],
)
def test_one_large_record_costs_what_its_bytes_cost(look: Callable[[bytes], Any]) -> None:
    small, large = zeros(4 * MIB, "gzip"), zeros(16 * MIB, "gzip")
    assert cost(lambda: look(large)) < 12 * cost(lambda: look(small)), "16 times were by the square"


@pytest.mark.parametrize("target", ["gzip", "snappy", "lz4", "zstd", "uncompressed"])
@pytest.mark.parametrize("count", [1, 40])
def test_what_is_encoded_again_is_never_held_as_a_whole(target: str, count: int) -> None:
    source = "zstd" if target == "gzip" else "gzip"
    data = records.build([(b"k", bytes(40 * MIB // count), [], NOW_MS)] * count, codec=source)
    rules = Rules(max_message_bytes=MIB, compression=target)

    def attempt() -> None:
        found = outcome(records.validate, data, rules, NOW_MS)
        assert found == errors.MESSAGE_TOO_LARGE or found.converted

    assert peak_of(attempt) < 6 * MIB
    assert resident_peak_of(attempt) < 12 * MIB


def test_output_beyond_the_greatest_batch_is_not_kept_but_what_else_is_wrong_is_told() -> None:
    entries: list[Any] = [(b"k", bytes(MIB), [], NOW_MS)] * 20
    rules = Rules(max_message_bytes=MIB, compression="uncompressed", compacted=True)
    data = records.build(entries, codec="gzip")
    assert peak_of(lambda: refusal(data, rules)) < 6 * MIB
    assert refusal(data, rules).code == errors.MESSAGE_TOO_LARGE
    data = records.build([*entries, (None, b"", [], NOW_MS)], codec="gzip")
    assert [index for index, _ in refusal(data, rules).record_errors] == [20]


@every_codec
@pytest.mark.parametrize("target", ["gzip", "zstd", "uncompressed"])
def test_long_records_are_encoded_again_as_short_ones_are(codec: str, target: str) -> None:
    entries: list[Any] = [
        (None, b"first", [], NOW_MS),
        (b"k" * (2 * MIB), None, [("h", b"v" * 70_000), ("", None)], NOW_MS - 5),
        (None, b"v" * (3 * MIB + 17), [], NOW_MS + 7),
        (b"", b"", [("x" * 300, b"")] * 9000, NOW_MS),
        (b"last", b"one", [], NOW_MS),
    ]
    data = records.build(entries, codec=codec)
    rules = Rules(max_message_bytes=LARGE, compression=target)
    batches = records.validate(data, rules, NOW_MS)
    assert [(r.key, r.value, r.headers, r.timestamp) for r in records.read(batches.data)] == entries
    assert batches.max_timestamp == NOW_MS + 7 and batches.offset_of_max_timestamp_delta == 2
    plain = records.build(entries, codec="none")
    if target == "uncompressed" and batches.converted:
        assert bytes(batches.data)[HEADER_BYTES:] == plain[HEADER_BYTES:]


def test_a_long_record_that_is_wrong_is_refused_as_a_short_one_is() -> None:
    rules = Rules(max_message_bytes=LARGE, compression="uncompressed")
    for size in (5_000, 2 * MIB):
        data = records.build([(b"key", bytes(size), [("h", b"v")], NOW_MS)])
        payload = bytearray(data[HEADER_BYTES:])
        after_size = 2 if size == 5_000 else 4
        for place, wrong in (
            (after_size + 3, 0x80),  # the key's size goes on
            (after_size + 3, 0x7E),  # and is larger than the key
            (len(payload) - 5, 0x03),  # a negative count of headers
            (len(payload) - 4, 0x01),  # a null as a header's key
            (len(payload) - 2, 0x7E),  # a header's value beyond the record
            (len(payload) - 2, 0x00),  # a byte too many
        ):
            broken = bytearray(payload)
            broken[place] = wrong
            error = refusal(with_payload(data, "gzip", bytes(broken)), rules)
            assert error.code == errors.INVALID_RECORD, (size, place)
        for cut in (10, size // 2, len(payload) - 1):
            error = refusal(with_payload(data, "gzip", bytes(payload[:cut])), rules)
            assert error.code == errors.INVALID_RECORD
        error = refusal(with_payload(data, "gzip", bytes(payload) + b"\0"), rules)
        assert error.code == errors.INVALID_RECORD


# -- steps


@every_codec
@pytest.mark.parametrize("target", ["producer", "uncompressed", "gzip", "snappy", "lz4", "zstd"])
def test_in_steps_comes_out_what_comes_out_at_once(codec: str, target: str) -> None:
    chance = random.Random(5)
    entries: list[Any] = [
        (
            chance.choice([None, b"key"]),
            chance.randbytes(chance.choice([0, 10, 900, 40_000])),
            [],
            NOW_MS + index,
        )
        for index in range(400)
    ]
    rules = Rules(max_message_bytes=LARGE, compression=target)
    data = records.build(entries, codec=codec)
    batches, steps = steps_of(data, rules)
    whole = records.validate(data, rules, NOW_MS, "t-0")
    assert bytes(batches.data) == bytes(whole.data)
    assert batches.max_timestamp == whole.max_timestamp == NOW_MS + 399
    assert steps > 30, "of 64 KiB each"


@every_codec
def test_a_small_batch_takes_one_step(codec: str) -> None:
    assert steps_of(records.build([(b"k", b"v" * 1000, [], NOW_MS)], codec=codec), Rules())[1] == 1


def test_the_time_of_an_append_is_that_of_its_end() -> None:
    data = records.build([(b"k", bytes(1000), [], NOW_MS)] * 1000, codec="gzip")
    for compression_type in ("producer", "zstd"):
        rules = Rules(max_message_bytes=LARGE, log_append_time=True, compression=compression_type)
        work = records.begin_validation(data, rules, NOW_MS, "t-0")
        assert isinstance(work, Validation)
        while not work.advance():
            pass
        batches = work.finish(NOW_MS + 60)
        assert batches.max_timestamp == batches.log_append_time == NOW_MS + 60
        assert {record.timestamp for record in records.read(batches.data)} == {NOW_MS + 60}


def test_a_step_is_the_same_work_however_much_there_is() -> None:
    data = records.build([(None, b"", [], NOW_MS)] * 2_000_000, codec="zstd")
    rules = Rules(max_message_bytes=LARGE)
    work = records.begin_validation(data, rules, NOW_MS, "t-0")
    assert isinstance(work, Validation)
    spent = [0.0]
    begun = time.thread_time()
    while not work.advance():
        spent.append(time.thread_time() - begun)
        begun = time.thread_time()
    assert len(spent) > 150 and sorted(spent)[-3] < 0.005


@pytest.mark.parametrize("codec", COMPRESSED)
def test_a_search_finds_what_reading_all_finds(codec: str) -> None:
    chance = random.Random(11)
    for _ in range(60):
        entries: list[Any] = [
            (None, bytes(chance.choice([0, 50, 30_000])), [], NOW_MS + chance.randrange(20))
            for _ in range(12)
        ]
        plain = records.build(entries)
        payload = bytearray(plain[HEADER_BYTES:])
        if chance.random() < 0.6:  # an error somewhere
            for _ in range(chance.randrange(1, 4)):
                place = chance.choice([chance.randrange(len(payload)), chance.randrange(12)])
                payload[place] = chance.choice([0, 1, 2, 0x7F, 0x80, 0xFF, chance.randrange(256)])
            if chance.random() < 0.3:
                del payload[chance.randrange(len(payload)) :]
        data = with_payload(plain, codec, bytes(payload))
        asked = NOW_MS + chance.randrange(22), chance.randrange(13), chance.random() < 0.3
        assert outcome(searched, data, *asked) == outcome(by_reading, data, *asked)


def searched(data: bytes, wanted: int, start: int, exactly: bool) -> tuple[int, int] | None:
    return finish(records.search(data, wanted, start, exactly))


def by_reading(data: bytes, wanted: int, start: int, exactly: bool) -> tuple[int, int] | None:
    for record in records.read(data):
        if record.offset >= start and (record.timestamp == wanted if exactly else record.timestamp >= wanted):
            return record.offset, record.timestamp
    return None


def outcome(work: Callable[..., Any], *arguments: Any) -> Any:
    try:
        return work(*arguments)
    except RecordsError as error:
        return error.code


# -- refusals


def test_the_texts_of_many_faults_are_made_when_they_are_asked_for() -> None:
    data = records.build([(None, b"", [], NOW_MS)] * 20_000, codec="zstd")
    rules = Rules(compacted=True)
    error = refusal(data, rules)
    assert len(error.record_errors) == 20_000
    assert error.record_errors[19_999][0] == 19_999 and len(error.record_errors[5:9]) == 4
    assert "20000 record errors in total" in str(error.message)
    assert cost(lambda: refusal(data, rules)) < cost(lambda: list(error.record_errors))


@pytest.mark.parametrize("codec", COMPRESSED)
def test_a_lack_of_memory_is_no_verdict_on_the_records(codec: str, monkeypatch: Any) -> None:
    import lz4.block  # type: ignore[import-untyped]
    import snappy  # type: ignore[import-untyped]
    import zstandard

    def no_memory(*arguments: Any, **keywords: Any) -> Any:
        raise MemoryError

    def no_memory_in_zstd(*arguments: Any, **keywords: Any) -> Any:
        raise zstandard.ZstdError("zstd decompress error: Allocation error : not enough memory")

    class Inflater:
        eof = False
        unconsumed_tail = b""
        decompress = no_memory

    class Zstd:
        def memory_size(self) -> int:
            return 0

        def decompressobj(self) -> Any:
            return self

        decompress = no_memory_in_zstd

    data = records.build([(None, b"x" * 100, [], NOW_MS)], codec=codec)
    monkeypatch.setattr(snappy, "uncompress", no_memory)
    monkeypatch.setattr(lz4.block, "decompress", no_memory)
    monkeypatch.setattr(zlib, "decompressobj", lambda *arguments: Inflater())
    monkeypatch.setattr(compression, "idle_zstd", [Zstd()])
    with pytest.raises(MemoryError):
        records.validate(data, Rules(), NOW_MS)
    with pytest.raises(MemoryError):
        list(records.read(data))


# -- codecs

# A frame with the largest window that is taken.
ZSTD_HEAD = compression.ZSTD_MAGIC.to_bytes(4, "little") + bytes([0, 17 << 3])
ZSTD_END = b"\1\0\0"  # a last block with nothing in it


@pytest.mark.parametrize(
    ("codec", "unit"),
    [
        (compression.GZIP, gzip.compress(b"", mtime=0)),
        (compression.ZSTD, b"\x50\x2a\x4d\x18\0\0\0\0"),
        (compression.SNAPPY, compression.XERIAL_HEADER),
        (compression.SNAPPY, b"\0\0\0\1\0"),
        (compression.ZSTD, b"\0\0\0"),  # blocks of one frame
    ],
)
def test_a_framing_that_gives_nothing_out_says_so(codec: int, unit: bytes) -> None:
    head = {compression.SNAPPY: compression.XERIAL_HEADER, compression.ZSTD: ZSTD_HEAD}.get(codec, b"")
    head = b"" if len(unit) > 5 else head
    payload = head + unit * 1000 + ZSTD_END * (head is ZSTD_HEAD)
    pieces = list(compression.pieces(codec, memoryview(payload)))
    assert len(pieces) > 900 and not b"".join(pieces)


@pytest.mark.parametrize(
    ("codec", "head", "unit"),
    [
        (compression.ZSTD, ZSTD_HEAD, (1 << 3).to_bytes(3, "little") + b"x"),
        (compression.SNAPPY, compression.XERIAL_HEADER, b"\0\0\0\3\1\0x"),
    ],
)
def test_a_framing_that_gives_out_a_byte_at_a_time_lets_others_work(
    codec: int, head: bytes, unit: bytes
) -> None:
    pieces = list(
        compression.pieces(codec, memoryview(head + unit * 10_000 + ZSTD_END * (head is ZSTD_HEAD)))
    )
    assert len(pieces) > 9_000 and len(b"".join(pieces)) == 10_000


def bomb(codec: str, size: int) -> memoryview:
    """What a codec keeps whole until the next piece, or has in its window."""
    if codec == "zstd":
        import zstandard

        params = zstandard.ZstdCompressionParameters(window_log=27, compression_level=1)
        return memoryview(zstandard.ZstdCompressor(compression_params=params).compress(bytes(size)))
    if codec == "snappy":
        import snappy

        return memoryview(snappy.compress(bytes(size)))
    import lz4.frame  # type: ignore[import-untyped]

    large = lz4.frame.BLOCKSIZE_MAX4MB
    return memoryview(lz4.frame.compress(bytes(size), block_size=large, block_linked=False))


@pytest.mark.parametrize("codec", ["snappy", "lz4", "zstd"])
def test_a_codec_says_what_it_keeps_before_it_does(codec: str) -> None:
    """At an empty piece, where whoever unfolds may wait."""
    kept = compression.Kept()
    largest = 0
    for piece in compression.pieces(records.CODECS.index(codec), bomb(codec, 16 * MIB), kept=kept):
        largest += len(piece)
        if kept.bytes:
            break
    assert not piece and largest <= 2 * compression.LIGHT_BYTES
    assert kept.bytes >= 4 * MIB


@pytest.mark.parametrize("codec", COMPRESSED)
def test_a_batch_that_unfolds_to_little_keeps_little(codec: str) -> None:
    work = records.begin_validation(zeros(64 * 1024, codec), Rules(), NOW_MS, "t-0")
    while isinstance(work, Validation) and not work.advance():
        assert work.kept == 0


@pytest.mark.parametrize("codec", COMPRESSED)
def test_a_long_record_is_read_in_slices(codec: str) -> None:
    data = zeros(8 * MIB, codec)
    found = list(records.read_in_slices(data))
    assert found.count(None) >= 8 * MIB // (128 * 1024)
    assert [record for record in found if record is not None] == list(records.read(data))


def test_a_snappy_block_beyond_what_is_wanted_is_not_unfolded() -> None:
    with pytest.raises(compression.ExpansionError):
        list(compression.pieces(compression.SNAPPY, bomb("snappy", 2 * MIB), most=MIB))


def test_the_end_of_a_gzip_name_is_found_in_one_pass() -> None:
    def member(size: int) -> memoryview:
        plain = gzip.compress(b"x", mtime=0)
        return memoryview(plain[:3] + b"\x08" + plain[4:10] + b"n" * size + b"\0" + plain[10:])

    assert b"".join(compression.gunzip(member(100_000))) == b"x"
    assert cost(lambda: list(compression.gunzip(member(4 * MIB)))) < 0.05


def test_what_a_large_window_has_taken_is_given_back() -> None:
    compression.idle_zstd.clear()
    data = zeros(40 * MIB, "zstd")
    compressor = compression.ZstdCompressor(19)
    payload = compressor.compress(bytes(10 * MIB)) + compressor.flush()
    assert sum(map(len, compression.pieces(compression.ZSTD, memoryview(payload)))) == 10 * MIB
    assert all(each.memory_size() <= compression.IDLE_BYTES for each in compression.idle_zstd)
    records.validate(data, Rules(), NOW_MS)
    assert len(compression.idle_zstd) <= compression.IDLE_MOST
    levels = range(-30, 0)
    for level in levels:
        made = compression.ZstdCompressor(level)
        made.compress(b"x")
        made.flush()
    assert len(compression.idle_zstd_compressors) <= compression.IDLE_LEVELS


def lz4_frame(block: bytes, checksum: int) -> memoryview:
    """One stored block with its checksum."""
    head = bytes([0x60 | compression.LZ4_BLOCK_CHECKSUM, 0x40])
    check = records.xxhash32(head) >> 8 & 0xFF
    return memoryview(
        compression.LZ4_MAGIC.to_bytes(4, "little")
        + head
        + bytes([check])
        + (len(block) | compression.LZ4_STORED).to_bytes(4, "little")
        + block
        + checksum.to_bytes(4, "little")
        + bytes(4)
    )


def test_the_checksum_of_an_lz4_block_counts() -> None:
    block = b"what is in the block"
    right = records.xxhash32(block)
    assert b"".join(compression.pieces(compression.LZ4, lz4_frame(block, right))) == block
    with pytest.raises(compression.DecompressionError, match="block checksum mismatch"):
        list(compression.pieces(compression.LZ4, lz4_frame(block, right ^ 1)))


# -- exact bounds


@pytest.mark.parametrize("codec", ["none", "gzip"])
def test_timestamps_exactly_at_the_bounds_are_accepted(codec: str) -> None:
    rules = Rules(timestamp_before_max_ms=1000, timestamp_after_max_ms=500)
    for target in (
        rules,
        Rules(timestamp_before_max_ms=1000, timestamp_after_max_ms=500, compression="zstd"),
    ):
        for delta, accepted in ((-1000, True), (500, True), (-1001, False), (501, False)):
            data = records.build([(None, b"", [], NOW_MS + delta)], codec=codec)
            if accepted:
                assert records.validate(data, target, NOW_MS).max_timestamp == NOW_MS + delta
            else:
                assert refusal(data, target).code == errors.INVALID_TIMESTAMP


@every_codec
def test_a_batch_that_just_fits_is_taken(codec: str) -> None:
    data = records.build([(None, b"x" * 1000, [], NOW_MS)], codec=codec)
    assert records.validate(data, Rules(max_message_bytes=len(data)), NOW_MS).size == len(data)
    assert refusal(data, Rules(max_message_bytes=len(data) - 1)).code == errors.MESSAGE_TOO_LARGE


def test_a_batch_that_just_fits_when_it_is_encoded_again_is_taken() -> None:
    entries: list[Any] = [(None, b"x" * 1000, [], NOW_MS)]
    data, size = records.build(entries, codec="gzip"), len(records.build(entries))
    fits = Rules(max_message_bytes=size, compression="uncompressed")
    assert records.validate(data, fits, NOW_MS).size == size
    error = refusal(data, Rules(max_message_bytes=size - 1, compression="uncompressed"))
    assert error.code == errors.MESSAGE_TOO_LARGE
