"""The loop's own speed, by pytest-benchmark: `pytest bench/micro/test_reactor.py`.

Both ends are in one process and share its thread, so the peer's send and receive are included.
"""

from __future__ import annotations

import socket
from typing import Any

import pytest

from pykafkad.net import plain_loop
from pykafkad.net.loop import reactor_module

REQUEST = (200).to_bytes(4, "big") + bytes(200)
ANSWER = (60).to_bytes(4, "big") + bytes(60)
CONNECTIONS, IN_FLIGHT = 50, 16


@pytest.fixture(params=[reactor_module(), plain_loop], ids=lambda module: module.__name__)
def reactor(request: pytest.FixtureRequest) -> Any:
    made = request.param.Reactor(lambda connection, buffer, start, end: ANSWER)
    yield made
    made.close()


def peers(reactor: Any, count: int) -> list[socket.socket]:
    pairs = [socket.socketpair() for _ in range(count)]
    for _, theirs in pairs:
        reactor.adopt(theirs)
    return [ours for ours, _ in pairs]


def test_one_request_at_a_time(reactor: Any, benchmark: Any) -> None:
    (peer,) = peers(reactor, 1)

    def exchange() -> bytes:
        peer.sendall(REQUEST)
        reactor.run_pass(-1)
        return peer.recv(100)

    assert benchmark(exchange) == ANSWER
    peer.close()


def test_800_requests_of_50_connections(reactor: Any, benchmark: Any) -> None:
    ends = peers(reactor, CONNECTIONS)
    requests, answers = REQUEST * IN_FLIGHT, len(ANSWER) * IN_FLIGHT

    def exchange() -> int:
        for end in ends:
            end.sendall(requests)
        reactor.run_pass(-1)
        return sum(len(end.recv(answers, socket.MSG_WAITALL | socket.MSG_DONTWAIT)) for end in ends)

    assert benchmark(exchange) == CONNECTIONS * answers
    for end in ends:
        end.close()


def test_a_timer_set_and_cancelled(reactor: Any, benchmark: Any) -> None:
    others = [reactor.call_later(1000 + i, print) for i in range(1000)]
    benchmark(lambda: reactor.call_later(500, print).cancel())
    assert all(timer.active for timer in others)
