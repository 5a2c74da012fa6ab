"""Timers, posts, watches and listeners: everything that is not data of a connection."""

from __future__ import annotations

import errno
import gc
import math
import os
import random
import resource
import socket
import sys
import threading
import time
from collections.abc import Iterator
from typing import Any

import pytest

from tests.reactor_kit import LOOP_NAMES, LOOPS, Loop, Peer, frame


@pytest.fixture(params=LOOPS, ids=LOOP_NAMES)
def loop(request: pytest.FixtureRequest) -> Iterator[Loop]:
    made = Loop(request.param)
    yield made
    made.close()
    gc.collect()


# -- timers


def test_timers_fire_in_the_order_of_their_time(loop: Loop) -> None:
    fired: list[int] = []
    for delay_ms in (30, 10, 20, 10, 0):
        loop.reactor.call_later(delay_ms, fired.append, delay_ms)
    loop.turn()
    assert fired == [0]
    loop.clock.advance(10)
    loop.turn()
    assert fired == [0, 10, 10]
    loop.clock.advance(100)
    loop.turn()
    assert fired == [0, 10, 10, 20, 30]


def test_many_timers_cancelled_in_any_order(loop: Loop) -> None:
    chance = random.Random(1)
    fired: list[int] = []
    timers = [loop.reactor.call_later(delay_ms, fired.append, delay_ms) for delay_ms in range(500)]
    kept = set(range(500))
    chance.shuffle(timers)
    gone = timers[:300]
    for timer in gone:
        assert timer.active
        timer.cancel()
        timer.cancel()
        assert not timer.active
    while kept:
        loop.clock.advance(chance.randrange(1, 40))
        loop.turn()
        kept = {i for i in kept if i > loop.clock.monotonic_ms()}
    assert fired == sorted(fired) and len(fired) == 200
    assert not any(timer.active for timer in timers)


def test_a_timer_that_renews_itself_at_once_does_not_hold_up_the_pass(loop: Loop) -> None:
    count = [0]

    def again() -> None:
        count[0] += 1
        loop.reactor.call_later(0, again)

    again()
    loop.turn(5)
    assert count[0] == 6


def test_the_loop_sleeps_until_the_next_timer(loop: Loop) -> None:
    """With a timer that is due there is no wait. The test's clock stands still, so a wait for the timer would not end."""
    fired: list[str] = []
    loop.reactor.call_later(0, fired.append, "now")
    loop.reactor.run_pass(-1)
    assert fired == ["now"]


def test_without_a_clock_of_its_own_a_loop_has_the_machines() -> None:
    for module in LOOPS:
        began_ms = int(time.monotonic() * 1000)
        reactor = module.Reactor(frame)
        fired: list[int] = []
        reactor.call_later(5, fired.append, 1)
        while not fired:
            reactor.run_pass(-1)
        assert began_ms + 5 <= reactor.now_ms <= time.monotonic() * 1000
        reactor.close()


@pytest.mark.parametrize("where", ["timer", "call_soon", "post", "call_between"])
def test_a_callback_that_holds_the_loop_is_named(where: str) -> None:
    def slow(number: int) -> None:
        sum(i * i for i in range(1_500_000))

    for module in LOOPS:
        holds: list[tuple[str, Any]] = []
        loop = Loop(module, on_hold=lambda where, us, detail, holds=holds: holds.append((where, detail)))
        if where == "timer":
            loop.reactor.call_later(0, slow, 7)
        else:
            getattr(loop.reactor, where)(slow, 7)
        loop.turn(2)
        assert holds == [(where, (slow, (7,)))]
        loop.close()


def test_what_goes_wrong_in_a_callback_is_reported_and_the_rest_runs(loop: Loop) -> None:
    fired: list[str] = []

    def broken() -> None:
        raise RuntimeError("oops")

    loop.reactor.call_later(0, broken)
    loop.reactor.call_later(0, fired.append, "timer")
    loop.reactor.call_soon(broken)
    loop.reactor.call_soon(fired.append, "soon")
    loop.reactor.post(broken)
    loop.reactor.post(fired.append, "post")
    loop.turn(2)
    assert sorted(fired) == ["post", "soon", "timer"]
    assert sorted(where for where, _ in loop.errors) == ["call_soon", "post", "timer"]


@pytest.mark.parametrize("delay_ms", [2**63 - 1, 9_300_000_000_000_000, 1e308, math.inf, 2**63 - 1 + 0.5])
def test_a_timer_for_ever_holds_up_no_other(loop: Loop, delay_ms: float) -> None:
    fired: list[str] = []
    for_ever = loop.reactor.call_later(delay_ms, fired.append, "for ever")
    loop.reactor.call_later(10, fired.append, "in a moment")
    loop.turn()
    assert fired == []
    loop.clock.advance(10)
    loop.turn()
    assert fired == ["in a moment"]
    loop.clock.advance(loop.reactor.now_ms + 2**40)
    loop.reactor.call_soon(loop.reactor.stop)
    loop.reactor.run()
    assert fired == ["in a moment"] and for_ever.active


@pytest.mark.parametrize("delay_ms", [-1, -(2**63), -math.inf, math.nan, -1e308])
def test_a_timer_of_the_past_fires_at_once_and_in_its_turn(loop: Loop, delay_ms: float) -> None:
    fired: list[str] = []
    loop.reactor.call_later(0, fired.append, "first")
    loop.reactor.call_later(delay_ms, fired.append, "second")
    loop.turn(2)  # where the machine is busy a pass may be over after the first
    assert fired == ["first", "second"]


def test_the_loop_can_sleep_until_a_timer_for_ever(loop: Loop) -> None:
    """The system takes the time of a wait in milliseconds, as an int of 32 bits."""
    loop.reactor.call_later(2**63 - 1, lambda: None)
    threading.Timer(0.05, loop.reactor.post, (loop.reactor.stop,)).start()
    loop.reactor.run()


@pytest.mark.parametrize("deadline_ms", [2**63 - 1, -1, 2**31 - 1])
def test_drain_takes_any_deadline(loop: Loop, deadline_ms: int) -> None:
    loop.peer()
    loop.reactor.drain(deadline_ms)
    assert not loop.reactor.connections


def test_an_error_handler_that_fails_stops_nothing(loop: Loop) -> None:
    fired: list[str] = []

    def broken(*_: object) -> None:
        raise OSError(errno.ENOSPC, "the log is full")

    module: Any = sys.modules[type(loop.reactor).__module__]
    reactor = module.Reactor(broken, broken, broken, on_error=broken)
    ours, theirs = socket.socketpair()
    reactor.adopt(theirs)
    reader, writer = os.pipe()
    reactor.watch(writer, broken, write=True)
    ours.sendall(frame(b"x"))
    for _ in range(2):
        reactor.call_later(0, broken)
        reactor.call_soon(broken)
        reactor.post(broken)
        reactor.call_later(0, fired.append, "timer")
        reactor.call_soon(fired.append, "soon")
        reactor.post(fired.append, "post")
        reactor.run_pass(0)
    assert sorted(fired) == ["post", "post", "soon", "soon", "timer", "timer"]
    assert not reactor.connections, "its pass failed"
    reactor.close()
    ours.close()
    os.close(reader)
    os.close(writer)


def test_without_a_handler_an_error_is_the_callers() -> None:
    for module in LOOPS:
        reactor = module.Reactor(frame)
        reactor.call_soon(lambda: 1 // 0)
        with pytest.raises(ZeroDivisionError):
            reactor.run_pass(0)
        reactor.close()


# -- posts and watches


def test_posts_of_many_threads_arrive_each_in_its_order(loop: Loop) -> None:
    got: list[tuple[int, int]] = []

    def work(number: int) -> None:
        for i in range(500):
            loop.reactor.post(got.append, (number, i))

    threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for _ in range(100_000):
        if len(got) == 2000:
            break
        loop.reactor.run_pass(1)
    for thread in threads:
        thread.join()
    for number in range(4):
        assert [i for n, i in got if n == number] == list(range(500))


def test_a_post_wakes_a_sleeping_loop(loop: Loop) -> None:
    threading.Thread(target=loop.reactor.post, args=(loop.reactor.stop,)).start()
    loop.reactor.run()


def test_a_watch_is_called_while_its_descriptor_is_ready(loop: Loop) -> None:
    reader, writer = os.pipe()
    calls: list[bytes] = []
    watch = loop.reactor.watch(reader, lambda: calls.append(os.read(reader, 1)))
    writable: list[int] = []
    other: Any = loop.reactor.watch(writer, lambda: (writable.append(1), other.close()), write=True)
    os.write(writer, b"ab")
    loop.turn(3)
    assert calls == [b"a", b"b"] and writable == [1]
    os.write(writer, b"c")
    watch.close()
    watch.close()
    loop.turn(2)
    assert calls == [b"a", b"b"]
    os.close(reader)
    os.close(writer)


def test_what_a_loop_had_may_be_closed_after_it(loop: Loop) -> None:
    reader, writer = os.pipe()
    watch = loop.reactor.watch(reader, lambda: None)
    listener = loop.reactor.listen(socket.create_server(("127.0.0.1", 0)), lambda connection: True)
    timer = loop.reactor.call_later(0, lambda: None)
    peer, connection = loop.peer()
    loop.reactor.close()
    watch.close()
    listener.close()
    timer.cancel()
    connection.close()
    peer.pull()
    assert peer.at_end and not loop.reactor.watches and not loop.reactor.connections
    os.close(reader)
    os.close(writer)


def test_a_watch_that_another_closed_is_not_called_in_the_same_pass_or_later(loop: Loop) -> None:
    """Whoever closes one may forget what it was for."""
    pipes = [os.pipe() for _ in range(2)]
    watches: list[Any] = []
    calls: list[int] = []

    def called(number: int) -> None:
        calls.append(number)
        watches[1 - number].close()

    for number, (reader, writer) in enumerate(pipes):
        watches.append(loop.reactor.watch(reader, lambda number=number: called(number)))
        os.write(writer, b"x")
    loop.turn(3)
    assert len(calls) == 3 and len(set(calls)) == 1
    for end in (end for pipe in pipes for end in pipe):
        os.close(end)


def test_what_comes_and_goes_is_counted(loop: Loop) -> None:
    peer, _ = loop.peer()
    peer.send(b"hello", bytes(300_000))
    peer.bodies(2)
    assert loop.reactor.received_bytes == loop.reactor.sent_bytes == 4 + 5 + 4 + 300_000
    assert loop.reactor.frames == 2


def test_control_comes_first_under_a_flood(loop: Loop) -> None:
    """However many sockets are ready, a post waits at most for the present pass and one turn of those who use little."""
    peers = [loop.peer()[0] for _ in range(200)]
    for peer in peers:
        peer.send(*[b"x"] * 20)
    order: list[int] = []
    loop.turn()
    loop.reactor.post(lambda: order.append(loop.reactor.frames))
    before = loop.reactor.frames
    loop.turn()
    assert len(order) == 1 and order[0] < before + 200 * 20


# -- listeners


def test_accepting_and_refusing(loop: Loop) -> None:
    server = socket.create_server(("127.0.0.1", 0))
    seen: list[Any] = []

    def on_accept(connection: Any) -> bool:
        seen.append((connection.peer, connection.listener))
        return len(seen) != 2

    listener = loop.reactor.listen(server, on_accept)
    listener.owner = "mine"
    clients = [socket.create_connection(server.getsockname()) for _ in range(3)]
    loop.until(lambda: len(seen) == 3)
    assert [peer for peer, _ in seen] == [client.getsockname() for client in clients]
    assert all(by is listener for _, by in seen) and len(loop.reactor.connections) == 2
    assert clients[1].recv(1) == b"" and not loop.closed
    for client in (clients[0], clients[2]):
        peer = loop.join(client)
        peer.send(b"hello")
        assert peer.bodies(1) == [b"hello"]
    clients[1].close()


def test_a_mistake_in_on_accept_refuses_that_one(loop: Loop) -> None:
    server = socket.create_server(("127.0.0.1", 0))
    loop.reactor.listen(server, lambda connection: 1 // 0)
    with socket.create_connection(server.getsockname()) as client:
        loop.until(lambda: bool(loop.errors))
        assert client.recv(1) == b""
    assert loop.errors[0][0] == "on_accept" and not loop.reactor.connections


def test_a_paused_listener_leaves_connections_in_the_backlog(loop: Loop) -> None:
    server = socket.create_server(("127.0.0.1", 0), backlog=10)
    listener: Any = loop.reactor.listen(server, lambda connection: (listener.pause(), True)[1])
    clients = [socket.create_connection(server.getsockname()) for _ in range(3)]
    loop.turn(10)
    assert len(loop.reactor.connections) == 1
    for count in (2, 3):
        listener.resume()
        loop.until(lambda count=count: len(loop.reactor.connections) == count)  # type: ignore[misc]
        loop.turn(3)
        assert len(loop.reactor.connections) == count
    for client in clients:
        client.close()


def test_a_listener_that_is_closed_stays_so_whatever_it_is_told(loop: Loop) -> None:
    server = socket.create_server(("127.0.0.1", 0))
    address = server.getsockname()
    listener = loop.reactor.listen(server, lambda connection: True)
    listener.pause()
    listener.close()
    listener.resume()
    listener.close()
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(address)
    loop.turn(3)
    assert not loop.errors


@pytest.mark.parametrize("is_paused", [True, False])
def test_a_listener_that_takes_nobody_now_lets_the_loop_sleep(loop: Loop, is_paused: bool) -> None:
    """It is paused, or has no descriptors, and somebody waits in its backlog."""
    server = socket.create_server(("127.0.0.1", 0))
    listener: Any = loop.reactor.listen(server, lambda connection: is_paused and listener.pause() is None)
    if not is_paused:
        loop.reactor.descriptors_max = 0
    clients = [socket.create_connection(server.getsockname()) for _ in range(2)]
    loop.turn(5)
    began = time.monotonic()
    loop.reactor.run_pass(30)
    assert time.monotonic() - began > 0.02
    for client in clients:
        client.close()


def test_a_peer_over_ipv6_has_an_address(loop: Loop) -> None:
    if not socket.has_dualstack_ipv6():
        pytest.skip("no IPv6 here")
    server = socket.create_server(("::", 0), family=socket.AF_INET6, dualstack_ipv6=True)
    hosts: list[str] = []
    loop.reactor.listen(server, lambda connection: bool(hosts.append(connection.peer[0])) or True)
    for host in ("127.0.0.1", "::1"):
        with socket.create_connection((host, server.getsockname()[1])):
            loop.until(lambda: len(loop.reactor.connections) > 0)
            loop.until(lambda host=host: host in hosts)  # type: ignore[misc]
    assert hosts == ["127.0.0.1", "::1"]


def test_descriptors_that_are_kept_for_others_are_not_for_connections(loop: Loop) -> None:
    server = socket.create_server(("127.0.0.1", 0))
    loop.reactor.listen(server, lambda connection: True)
    clients = [socket.create_connection(server.getsockname()) for _ in range(6)]
    free = sorted(os.open(os.devnull, os.O_RDONLY) for _ in range(4))
    for fd in free:
        os.close(fd)
    loop.reactor.descriptors_max = free[2]
    for _ in range(20):
        loop.turn(5)
        loop.clock.advance(50)
    assert len(loop.reactor.connections) == 3, "one is taken beyond the bound, which shows that it is reached"
    assert [getattr(error, "errno", None) for _, error in loop.errors] == [errno.EMFILE]
    next(iter(loop.reactor.connections)).close()
    next(iter(loop.reactor.connections)).close()
    for _ in range(5):
        loop.clock.advance(100)
        loop.turn(3)
    assert 3 <= len(loop.reactor.connections) <= 4, "as many as have left, and one beyond"
    loop.reactor.descriptors_max = 2**31 - 1
    loop.clock.advance(100)
    loop.until(lambda: len(loop.reactor.connections) == 4)
    for client in clients:
        client.close()


def test_without_descriptors_it_rests_says_so_once_and_goes_on(loop: Loop) -> None:
    server = socket.create_server(("127.0.0.1", 0))
    loop.reactor.listen(server, lambda connection: True)
    clients = [socket.create_connection(server.getsockname()) for _ in range(3)]
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    filler = [os.open(os.devnull, os.O_RDONLY) for _ in range(3)]
    for fd in filler:
        os.close(fd)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(filler), hard))
    try:
        for _ in range(20):
            loop.turn(5)
            loop.clock.advance(50)
        passes = loop.reactor.passes
        assert not loop.reactor.connections
        assert [(where, type(error), getattr(error, "errno", None)) for where, error in loop.errors] == [
            ("accept", OSError, errno.EMFILE)
        ]
        loop.turn()
        assert loop.reactor.passes == passes + 1
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    loop.clock.advance(1000)
    loop.until(lambda: len(loop.reactor.connections) == 3)
    peer = Peer(loop, clients[0])
    loop.peers.append(peer)
    peer.send(b"served")
    loop.until(lambda: peer.received == frame(b"served"))
    for client in clients:
        client.close()
