"""The memory of incomplete frames: bounded for all connections together, and every frame gets its turn."""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator
from types import ModuleType
from typing import Any

import pytest

from tests.reactor_kit import LOOP_NAMES, LOOPS, Loop, Peer, body_of, echo, frame

MIB = 1024 * 1024
FRAME_MAX = 2 * MIB
MOST = 4 * MIB
CHUNK = 64 * 1024

Maker = Callable[..., Loop]


@pytest.fixture(params=LOOPS, ids=LOOP_NAMES)
def make(request: pytest.FixtureRequest) -> Iterator[Maker]:
    loops: list[Loop] = []

    def made(on_frame: Any = echo, most: int = MOST) -> Loop:
        module: ModuleType = request.param
        loop = Loop(module, on_frame, max_frame_bytes=FRAME_MAX, max_unfinished_bytes=most)
        loops.append(loop)
        return loop

    yield made
    for loop in loops:
        loop.close()
        assert loop.reactor.unfinished_bytes == 0 and not loop.reactor.unfinished
    gc.collect()


def size_of(connection: Any, buffer: Any, start: int, end: int) -> bytes:
    return frame(str(end - start).encode())


def sends_part(loop: Loop, part: int, announced: int = FRAME_MAX) -> Peer:
    peer, _ = loop.peer()
    peer.send_bytes(frame(bytes(announced))[:part])
    return peer


def settle(loop: Loop) -> None:
    """Run passes until nothing more arrives."""
    received, quiet = -1, 0
    while quiet < 10:
        quiet = quiet + 1 if received == loop.reactor.received_bytes else 0
        received = loop.reactor.received_bytes
        for peer in loop.peers:
            peer.push()
        loop.turn()


def test_many_unfinished_frames_take_no_more_than_the_memory_for_them(make: Maker) -> None:
    loop = make()
    for _ in range(20):
        sends_part(loop, MIB)
    settle(loop)
    assert loop.reactor.crowded
    assert loop.reactor.unfinished_bytes <= MOST + FRAME_MAX
    assert loop.reactor.received_bytes < 8 * MIB, "what is not read stays with who sends it"


def test_something_is_left_for_those_who_come_later(make: Maker) -> None:
    loop = make(size_of, most=16 * MIB)
    for _ in range(40):
        sends_part(loop, FRAME_MAX)
    settle(loop)
    assert loop.reactor.crowded and loop.reactor.unfinished_bytes <= 16 * MIB + FRAME_MAX
    for size in (100, 60_000, 100_000, 150_000):
        peer, _ = loop.peer()
        peer.send(bytes(size))
        assert peer.bodies(1) == [str(size).encode()]


def test_all_frames_become_whole_in_their_turn(make: Maker) -> None:
    loop = make(size_of)
    peers = [sends_part(loop, MIB) for _ in range(20)]
    settle(loop)
    assert loop.reactor.crowded and not loop.reactor.frames
    for peer in peers:
        peer.send_bytes(bytes(FRAME_MAX + 4 - MIB))
    for peer in peers:
        assert peer.bodies(1) == [str(FRAME_MAX).encode()]
    assert not loop.reactor.crowded and loop.reactor.unfinished_bytes == 0


def test_the_one_that_waits_longest_goes_on_whatever_the_others_hold(make: Maker) -> None:
    """If no other connection makes progress, and with less memory than one frame needs."""
    loop = make(size_of, most=FRAME_MAX)
    for _ in range(20):
        sends_part(loop, MIB)
    settle(loop)
    taken = loop.reactor.received_bytes
    for peer in loop.peers:
        peer.send_bytes(bytes(FRAME_MAX + 4 - MIB))
    loop.until(lambda: all(peer.frames_here() for peer in loop.peers))
    assert taken < 20 * MIB / 4


def test_who_waits_and_goes_makes_room_for_the_next(make: Maker) -> None:
    loop = make(size_of)
    peers = [sends_part(loop, MIB) for _ in range(10)]
    settle(loop)
    for connection in list(loop.reactor.connections)[5:]:
        connection.close("by hand")
    gone = [peer for peer in peers if (peer.pull(), peer.at_end)[1]]
    for peer in set(peers) - set(gone):
        peer.send_bytes(bytes(FRAME_MAX + 4 - MIB))
    for peer in set(peers) - set(gone):
        peer.bodies(1)
    assert len(gone) == 5 and loop.reactor.unfinished_bytes == 0


def test_small_frames_count_as_well_and_who_was_fed_least_recently_gives_way(make: Maker) -> None:
    loop = make(size_of, most=MIB)
    stalled = [sends_part(loop, 60_000, 60_001) for _ in range(100)]
    loop.until(lambda: bool(loop.closed))
    settle(loop)
    assert loop.reactor.unfinished_bytes <= MIB + FRAME_MAX + CHUNK
    assert set(loop.reasons) == {"the memory for unfinished frames is used up"}
    for peer in stalled:
        peer.pull()
    assert [peer.at_end for peer in stalled[:10]] == [True] * 10 and not stalled[-1].at_end
    stalled[-1].send_bytes(bytes(5))
    assert stalled[-1].bodies(1) == [b"60001"]


def test_a_large_frame_counts_until_it_is_let_go_of(make: Maker) -> None:
    """In the plain loop, whose bytearrays belong to their users, only while it is incomplete."""
    kept: list[Any] = []

    def on_frame(connection: Any, buffer: Any, start: int, end: int) -> bytes:
        kept.append(memoryview(buffer))
        return frame(b"kept")

    loop = make(on_frame)
    is_plain = loop.reactor.__class__.__module__.endswith("plain_loop")
    peer, _ = loop.peer()
    peer.send(bytes(MIB))
    peer.bodies(1)
    assert loop.reactor.unfinished_bytes == (0 if is_plain else MIB + 4)
    kept.clear()
    assert loop.reactor.unfinished_bytes == 0


def test_a_connection_that_is_let_on_is_read_from_once_more_in_vain(make: Maker) -> None:
    """A connection that waits for memory and is told to finish has nothing left to wait for."""
    loop = make()
    for _ in range(10):
        sends_part(loop, MIB)
    settle(loop)
    assert loop.reactor.crowded
    for connection in list(loop.reactor.connections):
        connection.finish("enough")
    loop.turn(3)
    assert not loop.reactor.connections and not loop.reactor.crowded


def test_frames_of_all_sizes_pass_a_narrow_room(make: Maker) -> None:
    loop = make(size_of, most=FRAME_MAX)
    sizes = [1, 65_000, 65_536, 70_000, 131_072, 300_000, FRAME_MAX, 5]
    peers = [loop.peer()[0] for _ in range(8)]
    for peer in peers:
        peer.send(*map(bytes, sizes))
    for peer in peers:
        assert peer.bodies(len(sizes)) == [str(size).encode() for size in sizes]
    assert not loop.closed


def test_when_a_frame_began(make: Maker) -> None:
    loop = make(lambda *a: frame(body_of(*a[1:])))
    peer, connection = loop.peer()
    loop.clock.advance(1000)
    peer.send_bytes(frame(b"whole") + b"\0\0")
    loop.turn()
    assert list(loop.reactor.unfinished) == [connection] and connection.receiving
    assert (connection.frame_bytes, connection.frame_began_ms) == (2, 1000)
    loop.clock.advance(1000)
    peer.send_bytes(b"\0\5abc")
    loop.turn()
    assert (connection.frame_bytes, connection.frame_began_ms) == (7, 1000)
    loop.clock.advance(1000)
    peer.send_bytes(b"de" + frame(b"12345")[:6])
    loop.turn()
    assert (connection.frame_bytes, connection.frame_began_ms) == (6, 3000)
    peer.send_bytes(b"345")
    loop.turn()
    assert connection.frame_bytes == 0 and not loop.reactor.unfinished
