"""Asking again before sleeping: only a loop whose events come in quick succession does it."""

from __future__ import annotations

import socket
import time

import pytest
from reactor_kit import LOOP_NAMES, LOOPS, echo, frame

PASSES = 10
WAIT_MS = 30


@pytest.mark.parametrize("module", LOOPS, ids=LOOP_NAMES)
@pytest.mark.parametrize("requests", [0, 500])
def test_a_loop_with_nothing_to_do_sleeps_also_after_a_rush(module, requests: int) -> None:
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
