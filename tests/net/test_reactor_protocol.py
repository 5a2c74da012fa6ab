"""A second protocol on the same loop: lines ended by a newline, beside Kafka's frames, with the same order and bounds."""

from __future__ import annotations

import gc
import socket
from collections.abc import Callable, Iterator
from types import ModuleType
from typing import Any

import pytest

from tests.reactor_kit import LOOP_NAMES, LOOPS, Encodable, Loop, Peer, body_of
from tests.seam_kit import join, lines_framing

MAX_LINE = 200_000


@pytest.fixture(params=LOOPS, ids=LOOP_NAMES)
def module(request: pytest.FixtureRequest) -> Iterator[ModuleType]:
    yield request.param
    gc.collect()


def upper(connection: Any, buffer: Any, start: int, end: int) -> bytes:
    return body_of(buffer, start, end).upper()


def of_lines(loop: Loop, module: ModuleType, on_frame: Callable[..., Any] = upper, **options: Any) -> Any:
    options.setdefault("max_frame_bytes", MAX_LINE)
    return module.Protocol(on_frame, framing=lines_framing(loop.reactor), name="line", **options)


def lines_of(loop: Loop, peer: Peer, count: int) -> list[bytes]:
    loop.until(lambda: peer.received.count(b"\n") >= count or peer.at_end)
    return bytes(peer.received).splitlines()


def test_two_listeners_speak_two_protocols(module: ModuleType) -> None:
    loop = Loop(module)
    frames, lines = (socket.create_server(("127.0.0.1", 0)) for _ in range(2))
    accepted: list[Any] = []

    def welcome(connection: Any) -> bool:
        accepted.append(connection)
        return True

    loop.reactor.listen(frames, welcome)
    protocol = of_lines(loop, module)
    loop.reactor.listen(lines, welcome, protocol=protocol)
    one = loop.join(socket.create_connection(frames.getsockname()))
    two = loop.join(socket.create_connection(lines.getsockname()))
    one.send(b"hello\n", b"again")
    two.send_bytes(b"hello\nand a")
    assert one.bodies(2) == [b"hello\n", b"again"]
    assert lines_of(loop, two, 1) == [b"HELLO"]
    two.send_bytes(b"gain\n")
    assert lines_of(loop, two, 2) == [b"HELLO", b"AND AGAIN"]
    assert {connection.protocol for connection in accepted} == {protocol, loop.reactor.protocol}
    loop.close()


def test_lines_in_any_pieces(module: ModuleType) -> None:
    loop = Loop(module)
    peer, _ = join(loop, "plain", protocol=of_lines(loop, module))
    for byte in b"one\n\ntwo\nthree":
        peer.send_bytes(bytes([byte]))
        loop.turn()
    assert lines_of(loop, peer, 3) == [b"ONE", b"", b"TWO"]
    peer.send_bytes(b"".join(b"\n%d" % i * (i % 90) for i in range(20_000)))
    assert len(lines_of(loop, peer, 100_000)) > 100_000
    loop.close()


def test_what_is_no_frame_of_it_ends_the_connection(module: ModuleType) -> None:
    """Refused by the framing, longer than may be, or longer than a frame may be whose length is not known."""
    loop = Loop(module)
    for data in (b"fine\n!bad\n", b"fine\n" + b"x" * 11, b"fine\n" + b"x" * 11 + b"\n"):
        peer, _ = join(loop, "plain", protocol=of_lines(loop, module, max_frame_bytes=10))
        peer.send_bytes(data)
        peer.ends()
        assert peer.received == b"FINE\n"
    peer, _ = join(loop, "plain", protocol=of_lines(loop, module))
    for _ in range(40):
        peer.send_bytes(b"x" * 1_000)
        loop.turn()
    peer.ends()
    assert loop.reasons[:3] == [
        "no line begins like this",
        "Invalid receive (size = 11 larger than 10)",
        "Invalid receive (size = 11 larger than 10)",
    ]
    reason = loop.reasons[3]
    assert reason is not None and reason.startswith("Invalid receive (size = 3") and not loop.errors
    loop.close()


def test_a_long_line_that_comes_at_once_is_served(module: ModuleType) -> None:
    loop = Loop(module)
    peer, _ = join(loop, "plain", protocol=of_lines(loop, module))
    line = b"y" * 30_000 + b"\n"
    peer.send_bytes(line * 20)
    assert lines_of(loop, peer, 20) == [b"Y" * 30_000] * 20
    loop.close()


def test_requests_of_a_connection_are_done_one_after_the_other(module: ModuleType) -> None:
    """A line that begins like a Produce is none; what follows one that waits, waits; answers keep their order."""
    handled: list[bytes] = []
    tickets: list[Any] = []

    def on_line(connection: Any, buffer: Any, start: int, end: int) -> Any:
        handled.append(body_of(buffer, start, end))
        if handled[-1].startswith(b"slow"):
            tickets.append(connection.defer())
            return tickets[-1]
        return Encodable(lambda line=handled[-1]: line)  # type: ignore[misc]

    loop = Loop(module)
    peer, connection = join(loop, "plain", protocol=of_lines(loop, module, on_line))
    kafka, _ = join(loop, "plain")
    peer.send_bytes(b"\0\0one\nslow\n\0\0two\nthree\n")
    kafka.send(b"beside")
    assert kafka.bodies(1) == [b"beside"]
    assert handled == [b"\0\0one\n", b"slow\n"]
    tickets[0].answer(b"slow, too\n")
    assert lines_of(loop, peer, 4) == [b"\0\0one", b"slow, too", b"\0\0two", b"three"]
    assert connection.queued_answers == 0
    loop.close()


def test_answers_that_are_not_taken_stop_the_reading(module: ModuleType) -> None:
    loop = Loop(module, max_frame_bytes=1 << 20)
    peer, connection = join(loop, "plain", protocol=of_lines(loop, module, lambda *_: b"a" * 99_999 + b"\n"))
    peer.send_bytes(b"x\n" * 500)
    for _ in range(50):
        loop.turn()
    assert connection.throttled and not connection.receiving
    # by one answer more than the one that fills it up where a busy machine left a pass no time for all of them
    assert connection.queued_bytes <= module.ANSWER_BYTES_MAX + 2 * 100_000
    assert len(lines_of(loop, peer, 500)) == 500
    loop.close()


def test_unfinished_lines_count_as_unfinished_frames(module: ModuleType) -> None:
    loop = Loop(module)
    peer, connection = join(loop, "plain", protocol=of_lines(loop, module))
    peer.send_bytes(b"done\nnot done")
    assert lines_of(loop, peer, 1) == [b"DONE"]
    assert list(loop.reactor.unfinished) == [connection] and connection.frame_bytes == len(b"not done")
    peer.send_bytes(b" yet\n")
    assert lines_of(loop, peer, 2)[1] == b"NOT DONE YET" and not loop.reactor.unfinished
    loop.close()


def test_a_protocol_may_be_told_of_its_ends(module: ModuleType) -> None:
    told: list[Any] = []
    loop = Loop(module)
    protocol = of_lines(loop, module, on_close=lambda connection, reason: told.append((connection, reason)))
    peer, connection = join(loop, "plain", protocol=protocol)
    join(loop, "plain")[1].close("ours")
    peer.send_bytes(b"!\n")
    peer.ends()
    assert told == [(connection, "no line begins like this")] and loop.reasons == ["ours"]
    loop.close()


def test_a_line_that_holds_the_loop_is_named(module: ModuleType) -> None:
    holds: list[tuple[str, Any]] = []

    def slow(connection: Any, buffer: Any, start: int, end: int) -> None:
        sum(i * i for i in range(1_500_000))

    loop = Loop(module, on_hold=lambda where, us, detail: holds.append((where, detail)))
    peer, connection = join(loop, "plain", protocol=of_lines(loop, module, slow))
    peer.send_bytes(b"work\n")
    loop.until(lambda: bool(holds))
    assert holds == [("line", (slow, (connection,)))]
    loop.close()


def test_lines_travel_through_a_transport(module: ModuleType) -> None:
    loop = Loop(module)
    for kind in ("veil", "records"):
        peer, _ = join(loop, kind, protocol=of_lines(loop, module))
        peer.send_bytes(b"hello\n" * 10_000)
        assert lines_of(loop, peer, 10_000) == [b"HELLO"] * 10_000
    loop.close()


def test_what_is_no_framing_and_no_transport_is_refused() -> None:
    from pykafkad.net.loop import reactor_module

    module = reactor_module()
    if module.__name__ == "pykafkad.net.plain_loop":
        pytest.skip("the plain loop takes whatever can be called")
    with pytest.raises(ValueError, match="invalid PyCapsule"):
        module.Protocol(upper, framing=b"frames")
    ours, theirs = socket.socketpair()
    reactor = module.Reactor(upper)
    with pytest.raises(ValueError, match="invalid PyCapsule"):
        reactor.adopt(theirs, transport="TLS")
    assert not reactor.connections
    reactor.close()
    ours.close()
