"""Polling again before sleeping: only a loop whose events come in quick succession does it."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import threading
import time
from typing import Any

import pytest

from pykafkad.net import plain_loop
from pykafkad.net.loop import reactor_module
from tests.reactor_kit import LOOP_NAMES, LOOPS, echo, frame

PASSES = 10
WAIT_MS = 30


@pytest.mark.parametrize("module", LOOPS, ids=LOOP_NAMES)
@pytest.mark.parametrize("requests", [0, 500])
def test_a_loop_with_nothing_to_do_sleeps_also_after_a_rush(module: Any, requests: int) -> None:
    reactor = module.Reactor(echo)
    ours, theirs = socket.socketpair()
    reactor.adopt(theirs)
    for _ in range(requests):
        ours.sendall(frame(b"x"))
        reactor.run_pass(WAIT_MS)
        assert ours.recv(100) == frame(b"x")
    wall, cpu = time.monotonic(), time.process_time()
    for _ in range(PASSES):
        reactor.run_pass(WAIT_MS)
    wall, cpu = time.monotonic() - wall, time.process_time() - cpu
    ours.close()
    reactor.close()
    assert wall >= PASSES * WAIT_MS / 1000 * 0.9, "it did not wait"
    assert cpu < wall / 3, "it did not sleep"


def rush(reactor: Any, ours: socket.socket, requests: int = 100) -> None:
    for _ in range(requests):
        ours.sendall(frame(b"x"))
        reactor.run_pass(WAIT_MS)
        ours.recv(100)


def test_a_rush_lets_a_loop_spin_unless_others_want_its_core() -> None:
    reactor = reactor_module().Reactor(echo)
    ours, theirs = socket.socketpair()
    reactor.adopt(theirs)
    cores = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {min(cores)})
    try:
        rush(reactor, ours)
        assert reactor.spins is (reactor_module() is not plain_loop)
        with subprocess.Popen([sys.executable, "-c", "while True: pass"]) as other:  # on the same core
            deadline = time.monotonic() + 10
            while reactor.spins and time.monotonic() < deadline:
                reactor.run_pass(1)
                rush(reactor, ours)
            other.kill()
        assert not reactor.spins
    finally:
        os.sched_setaffinity(0, cores)
        ours.close()
        reactor.close()


def chat(sock: socket.socket, exchanges: int, failures: list[str]) -> None:
    """A client that waits for each answer, and then closes its connection."""
    for number in range(exchanges):
        asked = frame(str(number).encode())
        sock.sendall(asked)
        answer = sock.recv(100)
        if answer != asked:
            failures.append(f"{number}: {answer!r}")
    sock.close()


@pytest.mark.parametrize("module", LOOPS, ids=LOOP_NAMES)
def test_others_are_heard_beside_a_client_that_chats_and_after_it_has_gone(module: Any) -> None:
    reactor = module.Reactor(echo)
    failures: list[str] = []
    threads = []
    for exchanges in (5000, 50, 500, 5000):
        ours, theirs = socket.socketpair()
        ours.settimeout(10)
        reactor.adopt(theirs)
        threads.append(threading.Thread(target=chat, args=(ours, exchanges, failures)))
    for thread in threads:
        thread.start()
    deadline = time.monotonic() + 60
    while reactor.connections and time.monotonic() < deadline:
        reactor.run_pass(WAIT_MS)
    for thread in threads:
        thread.join()
    left = len(reactor.connections)
    reactor.close()
    assert not failures and left == 0
    assert reactor.frames == 10_550
