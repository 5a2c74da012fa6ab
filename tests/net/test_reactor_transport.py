"""A connection whose bytes travel in another way than plainly is served like any other, by both loops."""

from __future__ import annotations

import gc
import socket
import time
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from tests.reactor_kit import LOOP_NAMES, LOOPS, FileRange, Loop, Peer, body_of, echo, frame
from tests.seam_kit import GREETING_RECORDS, KINDS, PeerSocket, join, transport

CONTENT = bytes(range(256)) * 8192  # 2 MiB


@pytest.fixture(params=LOOPS, ids=LOOP_NAMES)
def module(request: pytest.FixtureRequest) -> Iterator[ModuleType]:
    yield request.param
    gc.collect()


@pytest.fixture(params=KINDS)
def kind(request: pytest.FixtureRequest) -> str:
    found: str = request.param
    return found


def sleeps(loop: Loop, wait_ms: int = 60) -> bool:
    """Whether the loop finds nothing to do for as long as that."""
    for _ in range(20):
        began = time.monotonic()
        loop.reactor.run_pass(wait_ms)
        if time.monotonic() - began >= 0.9 * wait_ms / 1000:
            return True
    return False


def machine_of(peer: Peer) -> Any:
    assert isinstance(peer.sock, PeerSocket)
    return peer.sock.machine


@pytest.mark.parametrize("size", [0, 1, 4000, 65_531, 65_533, 300_000, 5_000_000])
def test_frames_of_any_size_go_through(module: ModuleType, kind: str, size: int) -> None:
    loop = Loop(module)
    peer, connection = join(loop, kind)
    bodies = [b"before", bytes(range(256)) * (size // 256) + b"x" * (size % 256), b"after"]
    peer.send(*bodies)
    assert peer.bodies(3) == bodies
    assert connection.queued_bytes == connection.queued_answers == 0 and sleeps(loop)
    loop.close()


def test_what_comes_in_single_bytes(module: ModuleType, kind: str) -> None:
    loop = Loop(module)
    ours, theirs = socket.socketpair()
    loop.reactor.adopt(theirs, transport=transport(loop.reactor, kind))
    peer = loop.join(PeerSocket(ours, kind, client=True))  # type: ignore[arg-type]
    loop.until(lambda: machine_of(peer).established)
    machine_of(peer).seal(frame(b"hello") + frame(b"again"))
    for byte in bytes(machine_of(peer).out):
        ours.send(bytes([byte]))
        loop.turn()
    machine_of(peer).out.clear()
    assert peer.bodies(2) == [b"hello", b"again"]
    loop.close()


@pytest.mark.parametrize("size", [100, 16_384, 16_385, 100_000, 2_000_000])
def test_file_ranges_go_through(module: ModuleType, kind: str, size: int, tmp_path: Path) -> None:
    path = tmp_path / "segment"
    path.write_bytes(CONTENT)
    loop = Loop(module, lambda *_: [frame(bytes(size + 7))[:4], b"head", FileRange(path, 3, size), b"end"])
    peer, _ = join(loop, kind)
    peer.send(b"1", b"2")
    assert peer.bodies(2) == [b"head" + CONTENT[3 : 3 + size] + b"end"] * 2
    loop.close()


def test_a_range_of_a_file_that_got_shorter_ends_the_connection(
    module: ModuleType, kind: str, tmp_path: Path
) -> None:
    path = tmp_path / "segment"
    path.write_bytes(CONTENT[:500_000])
    loop = Loop(module, lambda *_: [FileRange(path, 0, 1_000_000)])
    peer, _ = join(loop, kind)
    peer.send(b"1")
    peer.ends()
    assert loop.reasons == ["a file got shorter while it was being sent"]
    loop.close()


def test_many_peers_at_once_with_large_answers(module: ModuleType, kind: str, tmp_path: Path) -> None:
    """Each reads as it likes; the answers of all are whole, and nobody's are another's."""
    path = tmp_path / "segment"
    path.write_bytes(CONTENT)

    def on_frame(connection: Any, buffer: Any, start: int, end: int) -> Any:
        offset = int(body_of(buffer, start, end))
        return [(700_000).to_bytes(4, "big"), FileRange(path, offset, 700_000)]

    loop = Loop(module, on_frame)
    peers = [join(loop, each)[0] for each in [kind, "plain"] * 6]
    for number, peer in enumerate(peers):
        peer.send(*(b"%d" % (number * 100 + i) for i in range(3)))
    for number, peer in enumerate(peers):
        for i, body in enumerate(peer.bodies(3)):
            assert body == CONTENT[number * 100 + i :][:700_000]
    loop.close()


def test_a_handshake_waits_for_who_does_not_read(module: ModuleType) -> None:
    """The greeting fills the socket: the loop wants to write before anybody was answered, and sleeps until it can."""
    loop = Loop(module)
    peer, connection = join(loop, "records")
    peer.sock.flush()  # type: ignore[attr-defined]
    loop.turn(20)
    assert sleeps(loop) and not connection.receiving and not connection.closed
    other, _ = join(loop, "plain")
    other.send(b"meanwhile")
    other.push()
    loop.turn(3)
    other.pull()
    assert other.bodies(1) == [b"meanwhile"]
    peer.send(b"hello")
    assert peer.bodies(1) == [b"hello"] and machine_of(peer).greeted == GREETING_RECORDS - 1
    loop.close()


def test_bytes_that_the_transport_holds_are_received_when_their_time_comes(
    module: ModuleType, kind: str
) -> None:
    """A request waits for its answer while more has come than is received at once, and the socket has no more."""
    tickets: list[Any] = []
    handled: list[bytes] = []

    def on_frame(connection: Any, buffer: Any, start: int, end: int) -> Any:
        handled.append(body_of(buffer, start, end))
        if handled[-1].startswith(b"slow"):
            tickets.append(connection.defer())
            return tickets[-1]
        return frame(handled[-1])

    loop = Loop(module, on_frame)
    peer, _ = join(loop, kind)
    peer.send(b"first")
    assert peer.bodies(1) == [b"first"]
    bodies = [b"slow", *(b"%d" % i * 700 for i in range(40)), bytes(100_000)]
    peer.send(*bodies)
    loop.until(lambda: bool(tickets))
    for _ in range(50):
        peer.push()
        loop.turn()
    assert handled == [b"first", b"slow"] and sleeps(loop)
    tickets[0].answer(frame(b"slow"))
    assert peer.bodies(len(bodies)) == bodies
    assert sleeps(loop)
    loop.close()


def test_it_sends_nothing_before_its_question_is_answered(module: ModuleType) -> None:
    """The peer's answer is received though the loop reads no requests, and the loop sleeps until it comes."""
    loop = Loop(module, lambda *_: frame(bytes(400_000)))
    peer, connection = join(loop, "records")
    peer.send(b"1", b"2", b"3", b"4")  # more answers than may wait: the connection is not read from meanwhile
    machine = machine_of(peer)
    loop.until(lambda: machine.established and not peer.unsent and not machine.out)
    loop.turn(20)
    assert connection.throttled or connection.queued_bytes > 0
    assert sleeps(loop)
    assert peer.bodies(4) == [bytes(400_000)] * 4
    assert machine.answered >= 15 and sleeps(loop)
    loop.close()


def test_the_loop_asks_and_is_asked_at_the_same_time(module: ModuleType) -> None:
    loop = Loop(module)
    peer, _ = join(loop, "records")
    bodies = [bytes([i]) * 70_000 for i in range(30)]
    peer.send(*bodies)
    assert peer.bodies(30) == bodies
    assert machine_of(peer).answered >= 20 and machine_of(peer).asked >= 20
    loop.close()


def test_it_ends_in_order(module: ModuleType) -> None:
    """The answers leave, what the transport holds of them, too, then the word that nothing follows, and then it ends."""
    answers = [frame(b"hello"), frame(bytes(150_000))]
    loop = Loop(module, lambda *_: answers.pop(0))
    peer, connection = join(loop, "records")
    peer.send(b"1")
    assert peer.bodies(1) == [b"hello"]
    peer.send(b"2")
    loop.until(lambda: not answers)
    connection.finish("enough")
    for _ in range(200):
        loop.turn(5)
        peer.pull(1000)  # slowly: its socket is full
    loop.until(lambda: peer.at_end)
    assert peer.bodies(1) == [bytes(150_000)]
    assert machine_of(peer).ended and loop.reasons == ["enough"]
    assert not peer.sock.failed  # type: ignore[attr-defined]
    loop.close()


@pytest.mark.parametrize("size", range(50_000, 500_000, 30_000))
def test_what_the_transport_holds_leaves_before_the_connection_ends(module: ModuleType, size: int) -> None:
    """With some of these sizes the socket is full while the last bytes are the transport's alone."""
    loop = Loop(module, lambda *_: frame(bytes(size)))
    peer, connection = join(loop, "veil")
    peer.send(b"x")
    loop.until(lambda: loop.reactor.frames == 1, reading=False)
    connection.finish("enough")
    loop.turn(20)
    assert peer.bodies(1) == [bytes(size)]
    peer.ends()
    assert loop.reasons == ["enough"]
    loop.close()


def test_a_peer_that_ends_in_order_has_its_answers(module: ModuleType, kind: str) -> None:
    loop = Loop(module)
    peer, _ = join(loop, kind)
    peer.send(b"hello")
    loop.until(lambda: not peer.unsent and machine_of(peer).established)
    peer.sock.finish()  # type: ignore[attr-defined]
    if kind == "veil":
        peer.sock.sock.shutdown(socket.SHUT_WR)  # type: ignore[attr-defined]
    assert peer.bodies(1) == [b"hello"]
    peer.ends()
    assert loop.reasons == [None]
    loop.close()


def test_a_transport_that_fails_says_why(module: ModuleType) -> None:
    loop = Loop(module)
    peer, _ = join(loop, "records")
    peer.send(b"hello")
    assert peer.bodies(1) == [b"hello"]
    machine_of(peer).put("?")
    loop.until(lambda: bool(loop.closed))
    cut, _ = join(loop, "records")
    cut.send(b"hello")
    assert cut.bodies(1) == [b"hello"]
    cut.sock.sock.close()  # type: ignore[attr-defined]
    loop.peers.remove(cut)
    loop.until(lambda: len(loop.closed) == 2)
    early, _ = join(loop, "records")
    machine_of(early).out.clear()
    machine_of(early).put("D", b"before the handshake")
    loop.until(lambda: len(loop.closed) == 3)
    assert loop.reasons == ["no record can be like this", "the stream was cut", "no record can be like this"]
    assert not loop.errors
    loop.close()


def test_who_goes_in_the_middle_of_a_handshake(module: ModuleType) -> None:
    loop = Loop(module)
    peer, connection = join(loop, "records")
    peer.sock.flush()  # type: ignore[attr-defined]
    loop.turn(5)
    peer.sock.sock.close()  # type: ignore[attr-defined]
    loop.peers.clear()
    for _ in range(10):
        loop.turn()
    assert connection.closed and not loop.reactor.connections and not loop.errors
    loop.close()


def test_drain_ends_connections_in_order(module: ModuleType) -> None:
    loop = Loop(module)
    peer, _ = join(loop, "records")
    peer.send(b"hello")
    assert peer.bodies(1) == [b"hello"]
    loop.reactor.drain(1000)
    peer.pull()
    assert machine_of(peer).ended and peer.at_end and not loop.reactor.connections
    loop.close()


def test_unfinished_frames_have_the_same_bound(module: ModuleType, kind: str) -> None:
    most = 4 << 20
    loop = Loop(module, max_frame_bytes=2 << 20, max_unfinished_bytes=most)
    for _ in range(20):
        peer, _ = join(loop, kind)
        peer.send_bytes(frame(bytes(2 << 20))[: 1 << 20])
    for _ in range(300):
        for peer in loop.peers:
            peer.push()
            peer.pull()
        loop.turn()
    assert loop.reactor.crowded and loop.reactor.unfinished_bytes <= most + (2 << 20)
    assert sleeps(loop)
    loop.close()


def test_a_listener_has_a_transport(module: ModuleType, kind: str) -> None:
    loop = Loop(module, echo)
    plain, other = (socket.create_server(("127.0.0.1", 0)) for _ in range(2))
    loop.reactor.listen(plain, lambda connection: True)
    loop.reactor.listen(other, lambda connection: True, transport=transport(loop.reactor, kind))
    one = loop.join(socket.create_connection(plain.getsockname()))
    two = loop.join(PeerSocket(socket.create_connection(other.getsockname()), kind, client=True))  # type: ignore[arg-type]
    one.send(b"in plain text")
    two.send(b"in another")
    assert one.bodies(1) == [b"in plain text"] and two.bodies(1) == [b"in another"]
    loop.close()
