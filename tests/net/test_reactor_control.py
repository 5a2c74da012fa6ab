"""Timers, posts, watches and listeners: what is not a connection's data."""

from __future__ import annotations

import errno
import gc
import os
import random
import resource
import socket
import threading
from collections.abc import Iterator
from typing import Any

import pytest
from reactor_kit import LOOP_NAMES, LOOPS, Loop, Peer, frame


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
    """With a timer due, no timeout is waited for; the clock stands, so a wait until it would not end."""
    fired: list[str] = []
    loop.reactor.call_later(0, fired.append, "now")
    loop.reactor.run_pass(-1)
    assert fired == ["now"]


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
    other = loop.reactor.watch(writer, lambda: (writable.append(1), other.close()), write=True)
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


def test_control_comes_first_under_a_flood(loop: Loop) -> None:
    """However many sockets are ready, a post waits for no more than the pass under way."""
    peers = [loop.peer()[0] for _ in range(200)]
    for peer in peers:
        peer.send(*[b"x"] * 20)
    order: list[int] = []
    loop.turn()
    loop.reactor.post(lambda: order.append(loop.reactor.frames))
    before = loop.reactor.frames
    loop.turn()
    assert order == [before]


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
    listener = loop.reactor.listen(server, lambda connection: (listener.pause(), True)[1])
    clients = [socket.create_connection(server.getsockname()) for _ in range(3)]
    loop.turn(10)
    assert len(loop.reactor.connections) == 1
    for count in (2, 3):
        listener.resume()
        loop.until(lambda count=count: len(loop.reactor.connections) == count)
        loop.turn(3)
        assert len(loop.reactor.connections) == count
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
            loop.until(lambda host=host: host in hosts)
    assert hosts == ["127.0.0.1", "::1"]


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
        assert [(where, type(error), error.errno) for where, error in loop.errors] == [
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
