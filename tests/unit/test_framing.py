"""Frames arrive as they were sent, however they were cut. Memory depends on the bytes received, not on the announced
size.
"""

from __future__ import annotations

import random
from types import ModuleType
from typing import Any

import pytest

from pykafkad.net import plain_frames
from pykafkad.net.loop import reactor_module
from tests.reactor_kit import frame

MODULES = [plain_frames, reactor_module()]
CHUNK = 65536


@pytest.fixture(params=MODULES, ids=lambda module: module.__name__)
def module(request: pytest.FixtureRequest) -> ModuleType:
    chosen: ModuleType = request.param
    return chosen


def fed(framer: Any, data: bytes, cuts: list[int]) -> list[bytes]:
    bodies: list[bytes] = []
    for start, end in zip([0, *cuts], [*cuts, len(data)], strict=True):
        bodies += framer.feed(data[start:end])
    return bodies


def test_frames_in_one_piece(module: ModuleType) -> None:
    bodies = [b"a", b"", b"bc" * 300, b"\0" * 5]
    assert module.Framer().feed(b"".join(map(frame, bodies))) == bodies


def test_a_frame_is_whole_with_its_last_byte_only(module: ModuleType) -> None:
    framer = module.Framer()
    data = frame(b"hello")
    assert [framer.feed(data[i : i + 1]) for i in range(len(data))] == [[]] * 8 + [[b"hello"]]
    assert framer.kept_bytes == 0


@pytest.mark.parametrize("cut", range(20))
def test_two_frames_cut_anywhere(module: ModuleType, cut: int) -> None:
    data = frame(b"first") + frame(b"second!")
    assert fed(module.Framer(), data, [cut]) == [b"first", b"second!"]


@pytest.mark.parametrize("seed", range(30))
def test_any_frames_in_any_pieces(module: ModuleType, seed: int) -> None:
    chance = random.Random(seed)
    sizes = [
        chance.choice([0, 1, 40, 200, 5000, CHUNK - 5, CHUNK - 4, CHUNK - 3, CHUNK, 300_000])
        for _ in range(12)
    ]
    bodies = [chance.randbytes(size) for size in sizes]
    data = b"".join(map(frame, bodies))
    cuts = sorted(chance.randrange(len(data)) for _ in range(chance.choice([0, 1, 5, 60])))
    framer = module.Framer()
    assert fed(framer, data, cuts) == bodies
    assert framer.kept_bytes == 0


def test_memory_grows_with_what_came_not_with_what_was_announced(module: ModuleType) -> None:
    framer = module.Framer()
    framer.feed((100_000_000).to_bytes(4, "big"))
    assert framer.kept_bytes <= CHUNK
    came = 4
    while came < 3_000_000:
        framer.feed(bytes(50_000))
        came += 50_000
        assert came <= framer.kept_bytes <= 2 * came + CHUNK


def test_a_large_frame_takes_no_more_than_it_is(module: ModuleType) -> None:
    framer = module.Framer()
    data = frame(bytes(300_000))
    framer.feed(data[:-1])
    assert framer.kept_bytes <= len(data)


def test_the_largest_frame_allowed_passes_and_one_byte_more_does_not(module: ModuleType) -> None:
    assert module.Framer(1000).feed(frame(bytes(1000))) == [bytes(1000)]
    with pytest.raises(module.FrameError, match=r"size = 1001 larger than 1000"):
        module.Framer(1000).feed((1001).to_bytes(4, "big"))


@pytest.mark.parametrize(
    ("head", "text"),
    [
        (b"\xff\xff\xff\xff", r"size = -1\)"),
        (b"\x80\0\0\0", r"size = -2147483648\)"),
        (b"\x7f\xff\xff\xff", "size = 2147483647 larger than 104857600"),
        (b"GET / HTTP/1.1\r\n", "an HTTP request on a port that speaks the Kafka protocol"),
        (b"POST /x", "an HTTP request"),
        (b"PRI * HTTP/2.0", "an HTTP request"),
        (b"\x16\x03\x01\x02\0\x01\0", "a TLS handshake on a port"),
    ],
)
def test_what_cannot_be_a_frame_is_named(module: ModuleType, head: bytes, text: str) -> None:
    with pytest.raises(module.FrameError, match=text):
        module.Framer().feed(head)


def test_what_cannot_be_a_frame_is_found_behind_good_ones_and_in_pieces(module: ModuleType) -> None:
    framer = module.Framer()
    assert fed(framer, frame(b"good") + b"GET", [3, 8]) == [b"good"]
    with pytest.raises(module.FrameError, match="HTTP"):
        framer.feed(b" ")


def test_a_line_is_a_frame_with_its_end() -> None:
    data = bytearray(b"ab\ncde\n\nrest")
    assert plain_frames.text_line(data, 0, 100) == (0, 3, False)
    assert plain_frames.text_line(data, 3, 100) == (3, 7, False)
    assert plain_frames.text_line(data, 7, 100) == (7, 8, False)
    assert plain_frames.text_line(data, 8, 100) == -1, "it has no end yet"
    assert plain_frames.text_line(bytearray(), 0, 0) == -1


@pytest.mark.parametrize("data", [b"\nabc\n", b"\nabc"])
def test_a_line_may_be_so_long_without_its_end(data: bytes) -> None:
    found = plain_frames.text_line(bytearray(data), 1, 3)
    assert found == ((1, 5, False) if data.endswith(b"\n") else -1)
    with pytest.raises(plain_frames.FrameError, match=r"size = 3 larger than 2\)"):
        plain_frames.text_line(bytearray(data), 1, 2)


def test_a_buffer_that_was_given_out_is_never_written_again() -> None:
    frames = plain_frames.Frames(plain_frames.kafka_request)
    second = frame(b"second")
    frames.add(frame(b"first") + second[:5])
    found = frames.whole()
    assert found is not None
    taken = frames.take(found)
    before = bytes(taken)
    assert frames.have == 5 and frames.wanted == len(second)
    frames.add(second[5:])
    assert bytes(taken) == before and taken[found.start : found.end] == b"first"
    found = frames.whole()
    assert found is not None and frames.take(found)[found.start : found.end] == b"second"
    assert frames.have == 0 and frames.whole() is None
