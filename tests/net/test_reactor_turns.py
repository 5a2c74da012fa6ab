"""Connections have their turns: whoever sends much at once does not have the others wait until all of it is done."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import pytest

from tests.reactor_kit import LOOP_NAMES, LOOPS, Loop, body_of, frame

PLAIN = "pykafkad.net.plain_loop"  # it takes connections as they come
LONG_S = 0.001  # what a request takes: longer than a turn
SHORT_S = 0.00006
FORGOTTEN_MS = 4  # half of what a connection used is forgotten by then
KNOWN_BY = 5  # as many long requests show that a connection uses much
KNOWN_AFTER_MS = 100  # a new connection may use much, until it was there for some time
TRIES = 100


def busy(seconds: float = LONG_S) -> None:
    began = time.thread_time()
    while time.thread_time() - began < seconds:
        pass


@pytest.mark.parametrize("module", LOOPS, ids=LOOP_NAMES)
def test_a_connection_with_many_requests_has_one_turn_a_pass(module: Any) -> None:
    done: list[bytes] = []

    def on_frame(connection: Any, buffer: Any, start: int, end: int) -> bytes:
        busy()
        done.append(body_of(buffer, start, end))
        return frame(done[-1])

    loop = Loop(module, on_frame)
    (many, _), (few, _) = loop.peer(), loop.peer()
    many.send(*(b"many %d" % number for number in range(20)))
    few.send(b"few")
    assert few.bodies(1) == [b"few"]
    assert len(done) <= 3, "those who sent one request wait for those who sent many"
    assert many.bodies(20) == [b"many %d" % number for number in range(20)], "a turn loses something"
    loop.close()


@pytest.mark.parametrize("module", LOOPS, ids=LOOP_NAMES)
def test_what_takes_little_is_done_in_one_pass(module: Any) -> None:
    passes: set[int] = set()

    def on_frame(connection: Any, buffer: Any, start: int, end: int) -> bytes:
        passes.add(connection.reactor.passes)
        return frame(body_of(buffer, start, end))

    loop = Loop(module, on_frame)
    peer, _ = loop.peer()
    for _ in range(TRIES):  # the machine may be busy with something else in some of them
        passes.clear()
        peer.send(b"a", b"b", b"c")
        assert len(peer.bodies(3)) == 3
        if len(passes) == 1:
            break
    else:
        pytest.fail("a turn never lasts for three small requests")
    loop.close()


@pytest.mark.parametrize("module", [each for each in LOOPS if each.__name__ != PLAIN])
def test_those_who_use_much_together_delay_who_uses_little_by_one_request(module: Any) -> None:
    done: list[bytes] = []

    def on_frame(connection: Any, buffer: Any, start: int, end: int) -> bytes:
        body = body_of(buffer, start, end)
        if body != b"few":
            busy()
        done.append(body)
        return frame(body)

    loop = Loop(module, on_frame)
    few, _ = loop.peer()
    loop.clock.advance(KNOWN_AFTER_MS)
    loop.turn()
    many = [loop.peer()[0] for _ in range(8)]
    for peer in many:  # so that the loop knows them
        peer.send(*[b"many"] * KNOWN_BY)
    loop.until(lambda: len(done) == 8 * KNOWN_BY)
    done.clear()
    for peer in many:
        peer.send(b"many")
        peer.push()
    few.send(b"few")
    few.push()
    while b"few" not in done:
        loop.turn()
    assert len(done) <= 2, "all who use much come first"
    loop.until(lambda: len(done) == 9)
    loop.close()


def many_short(
    module: Any, connections: int, requests: int
) -> tuple[Loop, list[bytes], Callable[[], None], list[Any]]:
    """A loop whose requests take a part of a turn, what it has done, one pass of it, and two connections that have sent
    nothing, while others have sent very many requests: none of these uses much, since all of them share the time."""
    done: list[bytes] = []

    def on_frame(connection: Any, buffer: Any, start: int, end: int) -> bytes:
        busy(SHORT_S)
        done.append(body_of(buffer, start, end))
        return frame(b"answer")

    loop = Loop(module, on_frame)

    def turn() -> None:
        loop.clock.advance(FORGOTTEN_MS)
        loop.turn()

    peers = [loop.peer()[0] for _ in range(connections + 2)]
    loop.clock.advance(KNOWN_AFTER_MS)
    turn()
    for number, peer in enumerate(peers[2:]):
        peer.send(*[b"%d" % number] * requests)
        peer.push()
    while len(set(done)) < connections:
        turn()
    done.clear()
    return loop, done, turn, peers[:2]


@pytest.mark.parametrize("module", [each for each in LOOPS if each.__name__ != PLAIN])
def test_who_uses_little_does_not_wait_for_all_who_share_the_time(module: Any) -> None:
    loop, done, turn, (few, _) = many_short(module, 20, 60)
    few.send(b"few")
    few.push()
    while b"few" not in done:
        turn()
    assert done.index(b"few") < 10, "a pass that was under way, and no round of all others"
    loop.close()


@pytest.mark.parametrize("module", [each for each in LOOPS if each.__name__ != PLAIN])
def test_who_has_sent_much_has_a_turn_beside_those_who_send_all_the_time(module: Any) -> None:
    loop, done, turn, others = many_short(module, 1, 60)
    for _ in range(10):
        for other in others:
            other.send(*[b"other"] * 4)
            other.push()
        turn()
    assert done.count(b"0") >= 10
    loop.close()


@pytest.mark.parametrize("module", [each for each in LOOPS if each.__name__ != PLAIN])
def test_who_is_known_to_use_little_goes_before_new_connections(module: Any) -> None:
    """Who opens a connection for each of many requests does not go first because none of them is known."""
    done: list[bytes] = []

    def on_frame(connection: Any, buffer: Any, start: int, end: int) -> bytes:
        done.append(body_of(buffer, start, end))
        return frame(done[-1])

    loop = Loop(module, on_frame)
    known, _ = loop.peer()
    loop.clock.advance(KNOWN_AFTER_MS)
    loop.turn()
    new = [loop.peer()[0] for _ in range(3)]
    for peer in new:
        peer.send(b"new")
        peer.push()
    known.send(b"known")
    known.push()
    loop.until(lambda: len(done) == 4)
    assert done[0] == b"known"
    loop.clock.advance(KNOWN_AFTER_MS)
    loop.turn()
    done.clear()
    for peer in (*new, known):
        peer.send(b"known" if peer is known else b"new")
        peer.push()
    loop.until(lambda: len(done) == 4)
    assert done[0] == b"new", "they are known by now"
    loop.close()


@pytest.mark.parametrize("module", LOOPS, ids=LOOP_NAMES)
def test_what_comes_between_passes_comes_after_the_answers_and_once_each_time(module: Any) -> None:
    done: list[tuple[str, int]] = []

    def on_frame(connection: Any, buffer: Any, start: int, end: int) -> bytes:
        for name in ("first", "second"):
            loop.reactor.call_between(note, name)
        return frame(b"answer")

    def note(name: str) -> None:
        done.append((name, loop.reactor.passes))
        peer.pull()
        assert peer.frames_here() == 1

    loop = Loop(module, on_frame)
    peer, _ = loop.peer()
    peer.send(b"request")
    peer.push()
    while len(done) < 2:
        loop.reactor.run_pass(-1)
    assert [name for name, _ in done] == ["first", "second"] and done[0][1] < done[1][1]
    passes = loop.reactor.passes
    loop.reactor.run_pass(-1)  # what was done last may have left something for the end of a pass
    assert loop.reactor.passes == passes + 1
    loop.close()


@pytest.mark.parametrize("module", LOOPS, ids=LOOP_NAMES)
def test_who_begins_to_use_much_beside_another_who_does_is_heard_once(module: Any) -> None:
    done: list[bytes] = []

    def on_frame(connection: Any, buffer: Any, start: int, end: int) -> bytes:
        busy()
        done.append(body_of(buffer, start, end))
        return frame(done[-1])

    loop = Loop(module, on_frame)
    (many, _), (new, _) = loop.peer(), loop.peer()
    many.send(*[b"many"] * KNOWN_BY)
    assert many.bodies(KNOWN_BY) == [b"many"] * KNOWN_BY
    bodies = [b"%d" % number for number in range(5)]
    new.send(*bodies)
    many.send(b"again")
    for peer in (new, many):
        peer.push()
    assert new.bodies(len(bodies)) == bodies
    assert many.bodies(1) == [b"again"]
    assert sorted(done) == sorted([*[b"many"] * KNOWN_BY, b"again", *bodies])
    loop.close()
