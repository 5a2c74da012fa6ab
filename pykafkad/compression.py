"""The codecs of record batches: decompression in bounded pieces, and compression.

Owns the framings that Kafka uses (gzip members, xerial's snappy, LZ4 frames, zstd frames), which are read as strictly
or as loosely as Kafka reads them. Codecs have the numbers that are in a batch's attributes: 0 none, 1 gzip, 2 snappy, 3
lz4, 4 zstd. KIP-57 (LZ4 header checksum), KIP-110 (zstd), KIP-390 (levels).

Invariants:
- A piece is at most one block of a framing. The pieces of one batch together are at most `allowed_bytes` of its size,
  so a decompression bomb is refused while it is being decompressed.
- Where a framing continues without any output there is an empty piece, so that the caller can do other work between any
  two pieces.
- Pieces before a fault are returned as far as Kafka's streams return them, since Kafka then judges those records.
- What a codec keeps between two pieces is in `Kept` before it takes that memory, at an empty piece: whoever unfolds many
  batches in turns may wait there until there is room (unfolding.py).
- A lack of memory is not the fault of the bytes: MemoryError is not caught.
- The library of a codec is imported when it is first used.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any, Protocol

    class Compressor(Protocol):
        def compress(self, data: bytes) -> bytes: ...

        def flush(self) -> bytes: ...


NONE, GZIP, SNAPPY, LZ4, ZSTD = range(5)

# Any batch may expand to the first; beyond it the ratio itself must be plausible. Kafka has no bound.
ALWAYS_ALLOWED_BYTES = 64 * 1024 * 1024
BELIEVABLE_RATIO = 256
LIGHT_BYTES = 256 * 1024  # a codec that keeps no more than this need not say so


class DecompressionError(Exception):
    """The bytes are not what the codec requires."""


class ExpansionError(Exception):
    """The batch expands to more than is allowed."""


class Kept:
    """How many bytes a codec keeps between two pieces, the piece included; 0 if they are few."""

    __slots__ = ("bytes",)

    def __init__(self) -> None:
        self.bytes = 0

    def say(self, size: int) -> bool:
        """Whether this is news of much memory, after which an empty piece is to come."""
        if size <= max(self.bytes, LIGHT_BYTES):
            return False
        self.bytes = size
        return True


def allowed_bytes(compressed_size: int) -> int:
    return max(ALWAYS_ALLOWED_BYTES, BELIEVABLE_RATIO * compressed_size)


def pieces(
    codec: int, payload: memoryview, magic: int = 2, kept: Kept | None = None, most: int | None = None
) -> Iterator[bytes]:
    """The decompressed bytes of `payload`, in order, at most `most`. `magic`: format 0 had a bug in LZ4's header
    checksum."""
    if codec == NONE:
        return iter((bytes(payload),))
    kept = kept or Kept()
    allowed = allowed_bytes(len(payload)) if most is None else most
    if codec == GZIP:
        found = gunzip(payload)
    elif codec == SNAPPY:
        found = filled(unsnappy(payload, kept, allowed), SNAPPY_FILL_BYTES)
    elif codec == LZ4:
        found = unlz4(payload, magic > 0, kept)
    else:
        found = filled(unzstd(payload, kept, allowed), ZSTD_FILL_BYTES)
    return bounded(found, allowed)


def bounded(found: Iterator[bytes], allowed: int) -> Iterator[bytes]:
    left = allowed
    for piece in found:
        left -= len(piece)
        if left < 0:
            raise ExpansionError(f"a batch expands to more than {allowed} bytes")
        yield piece


def filled(found: Iterator[bytes | None], fill_bytes: int) -> Iterator[bytes]:
    """Pieces as a reader returns them that fills a buffer first: if a fault comes before the buffer is full, its bytes
    are lost. An empty piece is where the stream returns less than asked for; None is only a pause, as any is that does
    not fill the buffer."""
    waiting = b""
    for piece in found:
        if piece is None:
            yield b""
            continue
        waiting += piece
        whole = len(waiting) - (len(waiting) % fill_bytes if piece else 0)
        if whole:
            yield waiting[:whole]
            waiting = waiting[whole:]
        else:
            yield b""
    if waiting:
        yield waiting


def compressor(codec: int, level: int | None = None) -> Compressor:
    if codec == GZIP:
        import zlib

        return zlib.compressobj(-1 if level is None else level, zlib.DEFLATED, 31)
    if codec == SNAPPY:
        return SnappyCompressor()
    if codec == LZ4:
        return Lz4Compressor(level)
    return ZstdCompressor(ZSTD_DEFAULT_LEVEL if level is None else level)


# -- gzip, as java.util.zip.GZIPInputStream reads it

GZIP_INPUT_BYTES, GZIP_OUTPUT_BYTES = 8 * 1024, 16 * 1024  # in one call of the library
GZIP_TRAILER_BYTES = 8
# How much must follow a member's deflated data so that another member is looked for: two trailers and a header.
GZIP_NEXT_MEMBER_BYTES = 26


def gunzip(payload: memoryview) -> Iterator[bytes]:
    import zlib

    position = gzip_header(payload, 0)
    if position < 0:
        raise DecompressionError("not in gzip format" if len(payload) else "unexpected end of gzip stream")
    while position >= 0:
        inflater = zlib.decompressobj(-15)
        crc = size = 0
        while not inflater.eof:
            source: Any = inflater.unconsumed_tail
            if not source:
                source = payload[position : position + GZIP_INPUT_BYTES]
                position += len(source)
                if not source:
                    raise DecompressionError("unexpected end of gzip stream")
            try:
                piece = inflater.decompress(source, GZIP_OUTPUT_BYTES)
            except zlib.error as error:
                raise DecompressionError(f"gzip: {error}") from None
            crc = zlib.crc32(piece, crc)
            size += len(piece)
            yield piece
        position = after_gzip_member(payload, position - len(inflater.unused_data), crc, size)


def after_gzip_member(payload: memoryview, position: int, crc: int, size: int) -> int:
    """Check the trailer at `position`. Returns where the next member begins, or -1 (other bytes are ignored)."""
    trailer = payload[position : position + GZIP_TRAILER_BYTES]
    if len(trailer) < GZIP_TRAILER_BYTES:
        raise DecompressionError("unexpected end of gzip stream")
    if (
        int.from_bytes(trailer[:4], "little") != crc
        or int.from_bytes(trailer[4:], "little") != size & 0xFFFFFFFF
    ):
        raise DecompressionError("corrupt gzip trailer")
    if len(payload) - position <= GZIP_NEXT_MEMBER_BYTES:
        return -1
    return gzip_header(payload, position + GZIP_TRAILER_BYTES)


def gzip_header(payload: memoryview, start: int) -> int:
    """Where the deflated data of the member at `start` begins; -1 if there is no member."""
    header = payload[start : start + 10]
    if len(header) < 10 or bytes(header[:3]) != b"\x1f\x8b\x08":
        return -1
    flags = header[3]
    position = start + 10
    if flags & 4:
        position += 2 + int.from_bytes(payload[position : position + 2], "little")
    for flag in (8, 16):  # name, comment
        if flags & flag:
            position = after_zero(payload, position)
    if flags & 2:
        import zlib

        crc = int.from_bytes(payload[position : position + 2], "little")
        if zlib.crc32(payload[start:position]) & 0xFFFF != crc:
            return -1
        position += 2
    return position if position <= len(payload) else -1


def after_zero(payload: memoryview, position: int) -> int:
    while position < len(payload):
        part = bytes(payload[position : position + GZIP_INPUT_BYTES])
        place = part.find(0)
        if place >= 0:
            return position + place + 1
        position += len(part)
    return position + 1


# -- snappy: xerial's framing (the Java library's), or one bare block

XERIAL_MAGIC = b"\x82SNAPPY\x00"
XERIAL_HEADER = XERIAL_MAGIC + b"\x00\x00\x00\x01\x00\x00\x00\x01"
XERIAL_BLOCK_BYTES = 32 * 1024
SNAPPY_FILL_BYTES = 2048
SNAPPY_STEP_BYTES = 64 * 1024  # of a large block
# A copy of 64 bytes takes three bytes: no block of snappy expands further.
SNAPPY_GREATEST_RATIO = 22


def unsnappy(payload: memoryview, kept: Kept, allowed: int) -> Iterator[bytes | None]:
    if bytes(payload[:8]) != XERIAL_MAGIC or len(payload) < 16:
        if not len(payload):
            raise DecompressionError("cannot decompress an empty snappy stream")
        yield from snappy_block(payload, kept, allowed)
        return
    position = given = 0
    while len(payload) - position >= 4:
        if bytes(payload[position : position + 4]) == XERIAL_MAGIC[:4]:  # a stream may be followed by another
            good = xerial_header(payload, position)
            position += 16
            yield None
            if not good:  # the Java library treats it as the end, but continues if it is called again
                if given % SNAPPY_FILL_BYTES == 0:
                    return
                yield b""
                given = 0
            continue
        size = int.from_bytes(payload[position : position + 4], "big", signed=True)
        position += 4
        if size < 0 or size > len(payload) - position:
            raise DecompressionError("failed to read a snappy chunk")
        for block in snappy_block(payload[position : position + size], kept, allowed):
            yield block or None
            given += len(block or b"")
        position += size


def xerial_header(payload: memoryview, position: int) -> bool:
    """Whether there is a valid header. Bytes that begin like one and have another magic are not a fault."""
    header = bytes(payload[position : position + 16])
    if len(header) < 16:
        raise DecompressionError("insufficient header size in a concatenated snappy stream")
    if not header.startswith(XERIAL_MAGIC):
        return False
    if int.from_bytes(header[8:12], "big", signed=True) < 1:
        raise DecompressionError("incompatible version of the snappy framing")
    return True


def snappy_block(block: memoryview, kept: Kept, allowed: int) -> Iterator[bytes | None]:
    claimed, start = snappy_claim(block)
    if claimed < 0 or claimed > SNAPPY_GREATEST_RATIO * (len(block) + 3):
        raise DecompressionError("invalid snappy block")
    if claimed > allowed:
        raise ExpansionError(f"a block expands to more than {allowed} bytes")
    if kept.say(claimed):
        yield None
    if claimed > LIGHT_BYTES:
        yield from large_snappy_block(block, start, claimed)
        return
    import snappy  # type: ignore[import-untyped]

    try:
        found: bytes = snappy.uncompress(block)
    except MemoryError:
        raise
    except Exception as error:  # the library has several exceptions, without a common base
        raise DecompressionError(f"snappy: {error}") from None
    yield found


def large_snappy_block(block: memoryview, start: int, claimed: int) -> Iterator[bytes | None]:
    """The library takes all of it at once. Nothing is given before the end is known to be valid."""
    from pykafkad.hot.records import SnappyBlock

    unfolded = SnappyBlock(block, start, claimed)
    try:
        while unfolded.go_on(SNAPPY_STEP_BYTES):
            yield None
    except ValueError as error:
        raise DecompressionError(f"snappy: {error}") from None
    for at in range(0, claimed, SNAPPY_STEP_BYTES):
        yield unfolded.piece(at, SNAPPY_STEP_BYTES)


def snappy_claim(block: memoryview) -> tuple[int, int]:
    """The decompressed size in a block's header, and where that ends; -1 if it cannot be read."""
    claimed = 0
    for place, byte in enumerate(block[:5]):
        claimed |= (byte & 0x7F) << (7 * place)
        if byte < 0x80:
            return claimed, place + 1
    return -1, 0


class SnappyCompressor:
    """xerial's framing: a header, then blocks preceded by their sizes."""

    def __init__(self) -> None:
        import snappy

        self._encode = snappy.compress
        self._waiting = bytearray()
        self._head = XERIAL_HEADER

    def compress(self, data: bytes) -> bytes:
        self._waiting += data
        out = bytearray()
        start = 0
        while len(self._waiting) - start >= XERIAL_BLOCK_BYTES:
            out += self._block(self._waiting[start : start + XERIAL_BLOCK_BYTES])
            start += XERIAL_BLOCK_BYTES
        del self._waiting[:start]
        return bytes(out)

    def flush(self) -> bytes:
        return self._block(self._waiting) if self._waiting or self._head else b""

    def _block(self, data: bytearray) -> bytes:
        head, self._head = self._head, b""
        encoded: bytes = self._encode(bytes(data)) if data else b""
        return head + (len(encoded).to_bytes(4, "big") + encoded if data else b"")


# -- lz4: one frame of independent blocks; what comes after its end is ignored, and so is its content checksum

LZ4_MAGIC = 0x184D2204
LZ4_STORED = 0x80000000  # bit in a block's size: the block is not compressed
LZ4_BLOCK_CHECKSUM, LZ4_CONTENT_SIZE, LZ4_CONTENT_CHECKSUM = 0x10, 0x08, 0x04
LZ4_GREATEST_RATIO = 255  # a byte of a length stands for no more
LZ4_DEFAULT_LEVEL = 9  # Kafka's default level, for which the library's fast compressor is used


def unlz4(payload: memoryview, check_header: bool, kept: Kept) -> Iterator[bytes]:
    flags, block_bytes, position = lz4_header(payload, check_header)
    if kept.say(min(block_bytes, LZ4_GREATEST_RATIO * len(payload))):
        yield b""
    while True:
        size = lz4_int(payload, position)
        position += 4
        stored = size & LZ4_STORED
        size &= ~LZ4_STORED
        if size == 0:
            if flags & LZ4_CONTENT_CHECKSUM:
                lz4_int(payload, position)
            return
        if size > block_bytes:
            raise DecompressionError(f"lz4: block size {size} exceeded max: {block_bytes}")
        block = payload[position : position + size]
        if len(block) < size:
            raise DecompressionError("lz4: stream ended prematurely")
        found = bytes(block) if stored else lz4_block(block, block_bytes)
        position += size
        if flags & LZ4_BLOCK_CHECKSUM:
            if lz4_int(payload, position) != hashed(block):
                raise DecompressionError("lz4: block checksum mismatch")
            position += 4
        if not found:  # the Java library treats a read of nothing as the end
            return
        yield found


def lz4_header(payload: memoryview, check_header: bool) -> tuple[int, int, int]:
    """Flags, largest block size, and where the blocks begin."""
    if len(payload) < 7:
        raise DecompressionError("lz4: stream ended prematurely")
    if lz4_int(payload, 0) != LZ4_MAGIC:
        raise DecompressionError("lz4: stream unsupported (invalid magic bytes)")
    flags, sizes = payload[4], payload[5]
    if flags & 0x03 or flags >> 6 != 1 or not flags & 0x20:
        raise DecompressionError("lz4: reserved bits, a version other than 1 or dependent blocks")
    if sizes & 0x8F or sizes >> 4 < 4:
        raise DecompressionError("lz4: invalid block size")
    position = 14 if flags & LZ4_CONTENT_SIZE else 6
    if len(payload) <= position:
        raise DecompressionError("lz4: stream ended prematurely")
    if check_header and hashed(payload[4:position]) >> 8 & 0xFF != payload[position]:
        raise DecompressionError("lz4: stream frame descriptor corrupted")
    return flags, 1 << (8 + 2 * (sizes >> 4)), position + 1


def lz4_int(payload: memoryview, position: int) -> int:
    found = payload[position : position + 4]
    if len(found) < 4:
        raise DecompressionError("lz4: stream ended prematurely")
    return int.from_bytes(found, "little")


def hashed(data: memoryview) -> int:
    from pykafkad.hot.records import xxhash32

    return xxhash32(data)


def lz4_block(block: memoryview, block_bytes: int) -> bytes:
    from lz4.block import LZ4BlockError, decompress  # type: ignore[import-untyped]

    try:
        found: bytes = decompress(block, uncompressed_size=block_bytes)
    except LZ4BlockError as error:
        raise DecompressionError(f"lz4: {error}") from None
    return found


class Lz4Compressor:
    """Frames as Kafka writes them: 64 KiB blocks, independent, no checksums."""

    def __init__(self, level: int | None) -> None:
        from lz4.frame import BLOCKSIZE_MAX64KB, LZ4FrameCompressor  # type: ignore[import-untyped]

        fast = level is None or level == LZ4_DEFAULT_LEVEL
        self._frame = LZ4FrameCompressor(
            block_size=BLOCKSIZE_MAX64KB, block_linked=False, compression_level=0 if fast else level
        )
        self._head: bytes = self._frame.begin()

    def compress(self, data: bytes) -> bytes:
        head, self._head = self._head, b""
        out: bytes = self._frame.compress(data)
        return head + out

    def flush(self) -> bytes:
        head, self._head = self._head, b""
        out: bytes = self._frame.flush()
        return head + out


# -- zstd: frames, one after another, also skippable ones. The library decompresses all of its input at once, so it is
# given one block at a time, whose bounds must be known for that.

ZSTD_MAGIC = 0xFD2FB528
ZSTD_SKIPPABLE = 0x184D2A50
ZSTD_BLOCK_BYTES = 128 * 1024
ZSTD_INPUT_BYTES = ZSTD_BLOCK_BYTES + 3  # what the Java library reads at once
ZSTD_FILL_BYTES = 16 * 1024
ZSTD_WINDOW_BYTES = 1 << 27  # as in the Java library: larger windows are refused
ZSTD_RLE, ZSTD_COMPRESSED = 1, 2  # kinds of blocks
ZSTD_DEFAULT_LEVEL = 3


def unzstd(payload: memoryview, kept: Kept, allowed: int) -> Iterator[bytes | None]:
    import zstandard

    position = given = 0
    while position < len(payload):
        start = position
        # Creating a decompressor takes longer than most batches. List operations are atomic, so each has one user at a
        # time.
        decompressor: Any = idle(idle_zstd) or zstandard.ZstdDecompressor(max_window_size=ZSTD_WINDOW_BYTES)
        try:
            frame = decompressor.decompressobj()
            for end in zstd_ends(payload, position):
                piece = frame.decompress(payload[position:end])
                position = end
                yield piece or None
                given += len(piece)
                # Of its window a decompressor touches what it has written.
                if given > LIGHT_BYTES and kept.say(min(decompressor.memory_size(), allowed)):
                    yield None
        except zstandard.ZstdError as error:
            keep_idle(idle_zstd, decompressor)
            if OUT_OF_MEMORY in str(error):
                raise MemoryError(str(error)) from None
            raise DecompressionError(f"zstd: {error}") from None
        keep_idle(idle_zstd, decompressor)
        yield b""
        if not frame.eof:
            check_torn_frame(payload, start)
            return


def check_torn_frame(payload: memoryview, start: int) -> None:
    """The Java library does not notice that a frame is torn if it has read its beginning together with the previous
    end."""
    last_read = (len(payload) - 1) // ZSTD_INPUT_BYTES * ZSTD_INPUT_BYTES
    if start <= last_read:
        raise DecompressionError("zstd: truncated source")


idle_zstd: list[Any] = []
idle_zstd_compressors: dict[int, list[Any]] = {}  # by level; making one takes eight times as long as using it
IDLE_LEVELS = 4  # of compressors; those of other levels are created each time
IDLE_BYTES = 8 * 1024 * 1024  # a compressor with more memory than this (large window, high level) is not kept
IDLE_MOST = 4  # of a kind
OUT_OF_MEMORY = "not enough memory"  # the library's message in the exception that it has for everything


def keep_idle(waiting: list[Any], codec: Any) -> None:
    if len(waiting) < IDLE_MOST and codec.memory_size() <= IDLE_BYTES:
        waiting.append(codec)


def idle(waiting: list[Any]) -> Any:
    """One that is not in use, or None; may be called by several threads."""
    try:
        return waiting.pop()
    except IndexError:
        return None


class ZstdCompressor:
    """One frame."""

    def __init__(self, level: int) -> None:
        import zstandard

        self._level = level
        self._compressor: Any = idle(idle_zstd_compressors.get(level, []))
        self._compressor = self._compressor or zstandard.ZstdCompressor(level=level)
        self._frame = self._compressor.compressobj()

    def compress(self, data: bytes) -> bytes:
        out: bytes = self._frame.compress(data)
        return out

    def flush(self) -> bytes:
        out: bytes = self._frame.flush()
        if self._level in idle_zstd_compressors or len(idle_zstd_compressors) < IDLE_LEVELS:
            keep_idle(idle_zstd_compressors.setdefault(self._level, []), self._compressor)
        return out


def zstd_ends(payload: memoryview, start: int) -> Iterator[int]:
    """Where the parts of the frame at `start` end: after each block, and at last after the checksum. If the frame is
    torn or its header wrong, the payload's end, so that the library reports the error."""
    magic = zstd_int(payload, start, 4)
    if magic & 0xFFFFFFF0 == ZSTD_SKIPPABLE:
        yield min(start + 8 + max(0, zstd_int(payload, start + 4, 4)), len(payload))
        return
    position, checksum_bytes = zstd_header(payload, start) if magic == ZSTD_MAGIC else (len(payload), 0)
    while True:
        header = zstd_int(payload, position, 3)
        kind, size = header >> 1 & 3, header >> 3
        if header < 0 or kind > ZSTD_COMPRESSED or size > ZSTD_BLOCK_BYTES:
            yield len(payload)
            return
        position += 3 + (1 if kind == ZSTD_RLE else size)
        last = header & 1
        yield min(position + checksum_bytes * last, len(payload))
        if last:
            return


def zstd_header(payload: memoryview, start: int) -> tuple[int, int]:
    """Where a frame's blocks start, and how many bytes follow them."""
    descriptor = max(0, zstd_int(payload, start + 4, 1))
    single_segment = descriptor >> 5 & 1
    content_size_bytes = (single_segment, 2, 4, 8)[descriptor >> 6]
    dictionary_bytes = (0, 1, 2, 4)[descriptor & 3]
    blocks = start + 5 + (not single_segment) + dictionary_bytes + content_size_bytes
    return blocks, 4 if descriptor & 4 else 0


def zstd_int(payload: memoryview, position: int, size: int) -> int:
    """-1 if the payload ends before it."""
    found = payload[position : position + size]
    return int.from_bytes(found, "little") if len(found) == size else -1
