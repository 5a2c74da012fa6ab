"""Answers leave in the order of the requests, whenever they are given and whatever they consist of."""

from __future__ import annotations

import gc
import os
import random
import threading
import weakref
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from tests.reactor_kit import LOOP_NAMES, LOOPS, Encodable, FileRange, Loop, body_of, echo, frame


@pytest.fixture(params=LOOPS, ids=LOOP_NAMES)
def module(request: pytest.FixtureRequest) -> Iterator[ModuleType]:
    yield request.param
    gc.collect()


def test_pipelined_requests_are_answered_in_order(module: ModuleType) -> None:
    loop = Loop(module)
    peer, _ = loop.peer()
    bodies = [b"%d" % i * (i % 50) for i in range(1000)]
    peer.send(*bodies)
    assert peer.bodies(1000) == bodies
    loop.close()


@pytest.mark.parametrize("size", [1, 4000, 65_531, 65_532, 65_533, 70_000, 1_000_000, 5_000_000])
def test_frames_of_any_size_go_through(module: ModuleType, size: int) -> None:
    loop = Loop(module)
    peer, _ = loop.peer()
    bodies = [b"before", bytes(range(256)) * (size // 256) + b"x" * (size % 256), b"after"]
    peer.send(*bodies)
    assert peer.bodies(3) == bodies
    loop.close()


def deferring(tickets: list[Any], handled: list[bytes]) -> Any:
    """A handler that answers requests that begin with "slow" later."""

    def on_frame(connection: Any, buffer: Any, start: int, end: int) -> Any:
        body = body_of(buffer, start, end)
        handled.append(body)
        if body.startswith(b"slow"):
            tickets.append(connection.defer())
            return tickets[-1]
        return frame(body)

    return on_frame


def test_a_request_behind_one_that_waits_is_not_begun(module: ModuleType) -> None:
    tickets: list[Any] = []
    handled: list[bytes] = []
    loop = Loop(module, deferring(tickets, handled))
    peer, connection = loop.peer()
    other, _ = loop.peer()
    peer.send(b"fast 1", b"slow 1", b"fast 2", b"slow 2", b"fast 3")
    loop.turn(3)
    assert handled == [b"fast 1", b"slow 1"]
    other.send(b"other")
    assert other.bodies(1) == [b"other"]
    tickets[0].answer(frame(b"slow 1"))
    loop.turn(3)
    assert handled[2:] == [b"other", b"fast 2", b"slow 2"]
    tickets[1].answer(frame(b"slow 2"))
    assert peer.bodies(5) == [b"fast 1", b"slow 1", b"fast 2", b"slow 2", b"fast 3"]
    assert connection.queued_answers == connection.queued_bytes == 0
    loop.close()


def test_answers_may_be_sent_before_the_end_of_the_pass_is_over(module: ModuleType) -> None:
    tickets: list[Any] = []
    came: list[list[bytes]] = []

    def on_pass_end() -> None:
        for ticket in tickets:
            ticket.answer(frame(b"done"))
            loop.reactor.send_answers()
            for other in peers:
                other.pull()
            came.append([bytes(other.received) for other in peers])
        tickets.clear()

    loop = Loop(module, deferring(tickets, []), on_pass_end=on_pass_end)
    peers = [loop.peer()[0] for _ in range(2)]
    for peer in peers:
        peer.send(b"slow")
    loop.turn(3)
    answer = frame(b"done")
    assert came == [[answer, b""], [answer, answer]]
    loop.close()


def test_while_a_request_waits_little_is_received(module: ModuleType) -> None:
    """However much the client sends behind it, in whatever pieces; and the loop may sleep all the same."""
    tickets: list[Any] = []
    handled: list[bytes] = []
    loop = Loop(module, deferring(tickets, handled))
    peer, _ = loop.peer()
    large = bytes(300_000)
    peer.send(b"slow", large[:10], large, large)
    for _ in range(50):
        peer.push()
        loop.turn()
    assert handled == [b"slow"] and loop.reactor.received_bytes <= 2 * 65_536
    passes = loop.reactor.passes
    loop.reactor.call_later(0, lambda: None)
    loop.reactor.run_pass(0)
    assert loop.reactor.passes == passes + 1
    tickets[0].answer(frame(b"slow"))
    assert peer.bodies(4) == [b"slow", large[:10], large, large]
    loop.close()


PRODUCE = bytes(2)


def test_what_follows_a_produce_finds_what_it_appended(module: ModuleType) -> None:
    """Several of them share the end of a pass; any other request waits for it."""
    log: list[bytes] = []
    appended: list[bytes] = []

    def on_frame(connection: Any, buffer: Any, start: int, end: int) -> Any:
        body = body_of(buffer, start, end)
        if body.startswith(PRODUCE):
            appended.append(body[2:])
            return frame(body[2:])
        return frame(b",".join(log))

    def on_pass_end() -> None:
        log.extend(appended)
        appended.clear()

    loop = Loop(module, on_frame, on_pass_end=on_pass_end)
    peer, _ = loop.peer()
    passes = loop.reactor.passes
    peer.send(PRODUCE + b"a", PRODUCE + b"b", b"read", b"read", PRODUCE + b"c", b"read")
    assert peer.bodies(6) == [b"a", b"b", b"a,b", b"a,b", b"c", b"a,b,c"]
    assert loop.reactor.passes - passes <= 4
    loop.close()


def test_behind_an_answer_that_is_held_only_produce_is_begun(module: ModuleType) -> None:
    held: list[Any] = []
    handled: list[bytes] = []

    def on_frame(connection: Any, buffer: Any, start: int, end: int) -> Any:
        handled.append(body_of(buffer, start, end))
        if not handled[-1].startswith(PRODUCE):
            return frame(handled[-1])
        held.append(connection.defer())
        return Encodable(lambda ticket=held[-1]: ticket)  # type: ignore[misc]

    loop = Loop(module, on_frame)
    peer, _ = loop.peer()
    peer.send(PRODUCE + b"1", PRODUCE + b"2")
    loop.turn(3)
    peer.send(PRODUCE + b"3", b"other", PRODUCE + b"4")
    loop.turn(3)
    assert [body[2:] for body in handled] == [b"1", b"2", b"3"]
    for number, ticket in enumerate(held, 1):
        ticket.answer(frame(b"%d" % number))
    loop.turn(3)
    assert handled[3:] == [b"other", PRODUCE + b"4"]
    held[3].answer(frame(b"4"))
    assert peer.bodies(5) == [b"1", b"2", b"3", b"other", b"4"]
    loop.close()


def test_the_frames_of_a_pass_end_where_their_answers_weigh_too_much(module: ModuleType) -> None:
    """An answer that is still an object counts with the size that it will have; otherwise 128 of them could be had for
    a few bytes each."""
    size = module.ANSWER_BYTES_MAX // 4
    loop = Loop(module, lambda *_: Encodable(lambda: frame(bytes(size)), size))
    peer, connection = loop.peer()
    peer.send(*[b"x"] * 100)
    loop.turn(50)
    assert connection.queued_bytes <= module.ANSWER_BYTES_MAX + 2 * size
    assert loop.reactor.frames < 20
    assert peer.bodies(100) == [bytes(size)] * 100
    loop.close()


def test_when_all_answers_together_take_too_much_the_largest_goes(module: ModuleType) -> None:
    size = module.ALL_ANSWERS_BYTES_MAX // 4
    sizes = {b"a": size, b"b": size * 2 + (8 << 20), b"c": size, b"d": 10}

    def on_frame(connection: Any, buffer: Any, start: int, end: int) -> Any:
        return frame(bytes(sizes[body_of(buffer, start, end)]))

    loop = Loop(module, on_frame)
    peers = {name: loop.peer()[0] for name in sizes}
    for name, peer in peers.items():
        peer.send(name)
        loop.turn(2)
    assert len(loop.closed) == 1 and "answers are not taken" in str(loop.reasons[0])
    peers[b"b"].ends()
    assert peers[b"d"].bodies(1) == [bytes(10)] and peers[b"c"].bodies(1) == [bytes(size)]
    loop.close()


def test_only_the_first_answer_of_a_ticket_counts(module: ModuleType) -> None:
    tickets: list[Any] = []

    def on_frame(connection: Any, buffer: Any, start: int, end: int) -> Any:
        tickets.append(connection.defer())
        tickets[-1].answer(frame(b"at once"))
        return tickets[-1]

    loop = Loop(module, on_frame)
    peer, connection = loop.peer()
    peer.send(b"1", b"2")
    tickets_answered = peer.bodies(2)
    tickets[0].answer(frame(b"again"))
    loop.turn(2)
    peer.pull()
    assert tickets_answered == [b"at once"] * 2 and not peer.received and connection.queued_bytes == 0
    loop.close()


@pytest.mark.parametrize("large", [False, True], ids=["at once", "by a second ticket"])
def test_an_answer_that_knows_its_ticket_is_freed_when_it_has_left(module: ModuleType, large: bool) -> None:
    """Without the cycle collector, which runs rarely: such answers may be large."""
    alive: list[weakref.ref[Any]] = []

    class Answer(Encodable):
        def __init__(self, connection: Any) -> None:
            super().__init__(lambda: frame(b"answer"))
            self.ticket = connection.defer()
            alive.append(weakref.ref(self))

    def on_frame(connection: Any, buffer: Any, start: int, end: int) -> Any:
        answer = Answer(connection)
        if large:
            second = connection.defer()
            answer.encode = lambda: second
            loop.reactor.call_later(0, second.answer, frame(b"answer"))
        answer.ticket.answer(answer)
        return answer.ticket

    loop = Loop(module, on_frame)
    gc.disable()
    try:
        peer, _ = loop.peer()
        peer.send(b"1", b"2")
        assert peer.bodies(2) == [b"answer"] * 2
        loop.turn(2)
        assert [each() for each in alive] == [None, None]
    finally:
        gc.enable()
    loop.close()


def test_none_is_no_answer_in_any_form(module: ModuleType) -> None:
    forms: list[Any] = [None, [], Encodable(lambda: None), b"", "ticket", frame(b"seen")]

    def on_frame(connection: Any, buffer: Any, start: int, end: int) -> Any:
        form = forms[int(body_of(buffer, start, end))]
        if form == "ticket":
            form = connection.defer()
            form.answer(None)
        return form

    loop = Loop(module, on_frame)
    peer, connection = loop.peer()
    peer.send(*(b"%d" % i for i in range(6)))
    assert peer.bodies(1) == [b"seen"]
    assert not peer.received and connection.queued_answers == 0
    loop.close()


def test_encoding_comes_after_the_end_of_the_pass(module: ModuleType) -> None:
    written: list[str] = []

    def on_frame(connection: Any, buffer: Any, start: int, end: int) -> Any:
        return Encodable(lambda: frame("".join(written).encode()))

    loop = Loop(module, on_frame, on_pass_end=lambda: written.append("committed"))
    peer, _ = loop.peer()
    peer.send(b"request")
    loop.turn()
    peer.pull()
    assert peer.bodies(1) == [b"committed"]
    loop.close()


def test_an_object_behind_one_that_is_held_is_encoded_in_its_own_pass(module: ModuleType) -> None:
    held: list[Any] = []
    encoded: list[int] = []

    def encode() -> bytes:
        encoded.append(loop.reactor.passes)
        return frame(b"object")

    def on_frame(connection: Any, buffer: Any, start: int, end: int) -> Any:
        if held:
            return Encodable(encode)
        held.append(connection.defer())
        return Encodable(lambda: held[0])

    loop = Loop(module, on_frame)
    peer, connection = loop.peer()
    peer.send(PRODUCE, PRODUCE)
    loop.turn(5)
    assert len(encoded) == 1 and connection.queued_bytes == len(frame(b"object"))
    held[0].answer(Encodable(lambda: frame(b"later")))
    assert peer.bodies(2) == [b"later", b"object"]
    assert len(encoded) == 1
    loop.close()


@pytest.mark.parametrize("deferred", [False, True])
def test_an_answer_that_gives_a_ticket_for_its_bytes_waits_in_its_place(
    module: ModuleType, deferred: bool
) -> None:
    held = []

    def on_frame(connection: Any, buffer: Any, start: int, end: int) -> Any:
        body = body_of(buffer, start, end)[2:]
        if not body.startswith(b"held"):
            return frame(body)
        held.append(connection.defer())
        answer = Encodable(lambda ticket=held[-1]: ticket)  # type: ignore[misc]
        if not deferred:
            return answer
        ticket = connection.defer()
        ticket.answer(answer)
        return ticket

    loop = Loop(module, on_frame)
    peer, connection = loop.peer()
    peer.send(*(PRODUCE + body for body in (b"fast 1", b"held 1", b"fast 2", b"held 2", b"fast 3")))
    assert peer.bodies(1) == [b"fast 1"]
    loop.turn(3)
    assert connection.queued_answers == 4
    held[1].answer(Encodable(lambda: frame(b"held 2")))
    loop.turn(3)
    peer.pull()
    assert not peer.received
    held[0].answer(frame(b"held 1"))
    assert peer.bodies(4) == [b"held 1", b"fast 2", b"held 2", b"fast 3"]
    assert connection.queued_answers == connection.queued_bytes == 0
    loop.close()


def test_answers_given_at_the_end_of_a_pass_leave_in_it(module: ModuleType) -> None:
    tickets: list[Any] = []

    def on_frame(connection: Any, buffer: Any, start: int, end: int) -> Any:
        tickets.append(connection.defer())
        return tickets[-1]

    loop = Loop(module, on_frame, on_pass_end=lambda: [ticket.answer(frame(b"done")) for ticket in tickets])
    peers = [loop.peer()[0] for _ in range(3)]
    for peer in peers:
        peer.send(b"1")
    while len(tickets) < len(peers):  # one pass, where the machine is not busy with other things
        loop.turn()
    for peer in peers:
        peer.pull()
        assert peer.received == frame(b"done")
    loop.close()


def test_a_ticket_is_answered_from_a_thread_by_way_of_post(module: ModuleType) -> None:
    threads: list[threading.Thread] = []

    def on_frame(connection: Any, buffer: Any, start: int, end: int) -> Any:
        ticket, body = connection.defer(), body_of(buffer, start, end)
        threads.append(threading.Thread(target=lambda: loop.reactor.post(ticket.answer, frame(body))))
        threads[-1].start()
        return ticket

    loop = Loop(module, on_frame)
    peer, _ = loop.peer()
    bodies = [b"%d" % i for i in range(100)]
    peer.send(*bodies)
    assert peer.bodies(100) == bodies
    for thread in threads:
        thread.join()
    loop.close()


@pytest.mark.parametrize("seed", range(10))
def test_mixed_answers_keep_their_order_and_bytes(module: ModuleType, tmp_path: Path, seed: int) -> None:
    chance = random.Random(seed)
    content = chance.randbytes(3_000_000)
    path = tmp_path / "segment"
    path.write_bytes(content)
    expected: list[bytes] = []
    tickets: list[tuple[Any, Any]] = []

    def answer() -> Any:
        offset = chance.randrange(2_000_000)
        size = chance.choice([0, 1, 100, 16_384, 16_385, 70_000, 900_000])
        head = chance.randbytes(chance.choice([0, 5, 300, 600, 100_000]))
        tail = chance.randbytes(chance.choice([0, 5]))
        whole = head + content[offset : offset + size] + tail
        expected.append(whole)
        return [len(whole).to_bytes(4, "big") + head, FileRange(path, offset, size), tail]

    def on_frame(connection: Any, buffer: Any, start: int, end: int) -> Any:
        kind = chance.randrange(4)
        parts = answer()
        if kind == 0:
            return Encodable(lambda: parts)
        if kind == 1:
            ticket = connection.defer()
            tickets.append((ticket, parts))
            return ticket
        return parts

    def answer_some() -> None:
        chance.shuffle(tickets)
        for _ in range(min(len(tickets), chance.randrange(4))):
            ticket, parts = tickets.pop()
            ticket.answer(parts)

    loop = Loop(module, on_frame, on_pass_end=answer_some)
    peer, connection = loop.peer()
    peer.send(*[b"x"] * 60)
    assert peer.bodies(60) == expected
    assert connection.queued_bytes == 0
    loop.close()


def test_file_ranges_alone_and_between_bytes(module: ModuleType, tmp_path: Path) -> None:
    path = tmp_path / "segment"
    path.write_bytes(bytes(range(256)) * 1000)

    def on_frame(connection: Any, buffer: Any, start: int, end: int) -> Any:
        size = int(body_of(buffer, start, end))
        return [(size + 3).to_bytes(4, "big"), FileRange(path, 1, size), b"end"]

    loop = Loop(module, on_frame)
    peer, _ = loop.peer()
    sizes = [0, 1, 255, 16_384, 16_385, 200_000]
    peer.send(*(b"%d" % size for size in sizes))
    content = path.read_bytes()
    assert peer.bodies(6) == [content[1 : 1 + size] + b"end" for size in sizes]
    loop.close()


def test_a_range_keeps_its_file_while_it_is_sent_and_no_longer(module: ModuleType, tmp_path: Path) -> None:
    path = tmp_path / "segment"
    path.write_bytes(bytes(3_000_000))
    ranges: list[Any] = []

    def on_frame(connection: Any, buffer: Any, start: int, end: int) -> Any:
        part = FileRange(path, 0, 3_000_000)
        ranges.append(weakref.ref(part))
        return [(3_000_000).to_bytes(4, "big"), part]

    loop = Loop(module, on_frame)
    peer, _ = loop.peer()
    peer.send(b"x")
    loop.turn(3)
    assert ranges[0]() is not None
    peer.bodies(1)
    loop.turn(2)
    assert ranges[0]() is None
    loop.close()


@pytest.mark.parametrize("size", [100, 100_000])
def test_a_file_that_got_shorter_closes_its_connection_alone(
    module: ModuleType, tmp_path: Path, size: int
) -> None:
    path = tmp_path / "segment"
    path.write_bytes(bytes(size))

    def on_frame(connection: Any, buffer: Any, start: int, end: int) -> Any:
        if body_of(buffer, start, end) == b"echo":
            return echo(connection, buffer, start, end)
        return [frame(b"before"), FileRange(path, 0, size + 10)]

    loop = Loop(module, on_frame)
    peer, _ = loop.peer()
    other, _ = loop.peer()
    peer.send(b"x")
    peer.ends()
    assert loop.reasons == ["a file got shorter while it was being sent"]
    other.send(b"echo")
    assert other.bodies(1) == [b"echo"]
    loop.close()


def test_a_cold_file_is_read_by_a_thread_before_it_is_sent(module: ModuleType, tmp_path: Path) -> None:
    if not hasattr(os, "posix_fadvise"):
        pytest.skip("no way here to drop pages from memory")
    path = tmp_path / "segment"
    content = os.urandom(5_000_000)
    with path.open("wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())

    cold: list[bool] = []

    def on_frame(connection: Any, buffer: Any, start: int, end: int) -> Any:
        offset, size = map(int, body_of(buffer, start, end).split())
        part = FileRange(path, offset, size)
        os.posix_fadvise(part.fd, 0, 0, os.POSIX_FADV_DONTNEED)
        cold.append(is_known_cold(part.fd, offset))
        return [size.to_bytes(4, "big"), part]

    loop = Loop(module, on_frame)
    peer, connection = loop.peer()
    asked = [(0, 3_000_000), (4_000_000, 100), (3_500_000, 20_000), (0, 5_000_000)]
    for offset, size in asked:
        peer.send(b"%d %d" % (offset, size))
        assert peer.bodies(1) == [content[offset : offset + size]]
    peer.send(*(b"%d %d" % part for part in asked))
    assert peer.bodies(4) == [content[offset : offset + size] for offset, size in asked]
    assert connection.queued_answers == 0
    if any(cold) and module.__name__.endswith("hot.reactor"):
        assert loop.reactor.cold_reads > 0
    loop.close()


def is_known_cold(fd: int, offset: int) -> bool:
    try:
        os.preadv(fd, [bytearray(1)], offset, os.RWF_NOWAIT)
    except BlockingIOError:
        return True
    except OSError:
        return False  # this file system does not support it
    return False


def test_requests_may_be_changed_in_place_until_the_end_of_the_pass(module: ModuleType) -> None:
    views: list[memoryview] = []
    seen: list[bytes] = []

    def on_frame(connection: Any, buffer: Any, start: int, end: int) -> Any:
        view = memoryview(buffer)[start:end]
        view[0:1] = b"X"
        views.append(view)
        return None

    def on_pass_end() -> None:
        seen.extend(bytes(view) for view in views)
        views.clear()

    loop = Loop(module, on_frame, on_pass_end=on_pass_end)
    peer, _ = loop.peer()
    peer.send(b"abc", b"def", bytes(100_000))
    loop.until(lambda: len(seen) == 3)
    assert seen == [b"Xbc", b"Xef", b"X" + bytes(99_999)]
    loop.close()


@pytest.mark.parametrize("keep", ["view", "buffer"])
def test_bytes_that_somebody_kept_never_change(module: ModuleType, keep: str) -> None:
    kept: list[Any] = []

    def on_frame(connection: Any, buffer: Any, start: int, end: int) -> Any:
        kept.append(memoryview(buffer)[start:end] if keep == "view" else (buffer, start, end))
        return echo(connection, buffer, start, end)

    loop = Loop(module, on_frame)
    peer, _ = loop.peer()
    bodies = [b"%04d" % i for i in range(50)]
    for body in bodies:
        peer.send(body)
        peer.bodies(1)
    assert [bytes(k) if keep == "view" else body_of(*k) for k in kept] == bodies
    loop.close()


@pytest.mark.parametrize("in_one_piece", [True, False])
def test_a_muted_connection_begins_no_request_until_its_time_is_over(
    module: ModuleType, in_one_piece: bool
) -> None:
    """Its answer leaves at once, and what it asked before it was muted is done."""
    begun: list[bytes] = []

    def on_frame(connection: Any, buffer: Any, start: int, end: int) -> bytes:
        body = body_of(buffer, start, end)
        begun.append(body)
        if body == b"too much":
            connection.mute(300)
            connection.mute(200)
        return frame(body)

    loop = Loop(module, on_frame)
    peer, _ = loop.peer()
    other, _ = loop.peer()
    if in_one_piece:
        peer.send(b"before", b"too much", b"after")
    else:
        peer.send(b"before", b"too much")
    assert peer.bodies(2) == [b"before", b"too much"]
    if not in_one_piece:
        peer.send(b"after")
    other.send(b"hello")
    assert other.bodies(1) == [b"hello"]
    for _ in range(2):
        loop.clock.advance(149)
        loop.turn(3)
        assert b"after" not in begun
    loop.clock.advance(2)
    assert peer.bodies(1) == [b"after"]
    loop.close()


def test_a_connection_that_closes_while_it_is_muted_is_forgotten(module: ModuleType) -> None:
    loop = Loop(module)
    _, connection = loop.peer()
    connection.mute(1000)
    connection.close("enough")
    loop.turn(2)
    assert not loop.reactor.connections
    loop.clock.advance(1001)
    loop.turn(2)
    connection.mute(10)  # nothing to mute
    assert not loop.errors
    loop.close()
