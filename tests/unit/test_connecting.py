"""Connecting on the loop: one attempt ends once, with the socket or with why there is none, and leaves nothing behind."""

from __future__ import annotations

import errno
import os
import socket
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest

from pykafkad.net import connecting
from pykafkad.net.connecting import Connecting

UNDER_WAY = errno.EINPROGRESS


class World:
    """A loop and a socket that do what the test says."""

    def __init__(self) -> None:
        self.connects_with, self.ends_with = UNDER_WAY, 0  # what the system says at first, and at last
        self.made: list[Any] = []  # family, options and address of the socket
        self.closed = 0
        self.timers: list[tuple[int, Callable[[], object]]] = []
        self.watches: list[Callable[[], object]] = []
        self.soon: list[Callable[[], object]] = []
        self.lookups: list[Callable[..., object]] = []
        self.told: list[Any] = []

    # -- the loop

    def call_later(self, delay_ms: int, callback: Callable[..., object], *arguments: Any) -> Any:
        timer = delay_ms, lambda: callback(*arguments)
        self.timers.append(timer)
        return SimpleNamespace(cancel=lambda: timer in self.timers and self.timers.remove(timer))

    def call_soon(self, callback: Callable[..., object], *arguments: Any) -> None:
        self.soon.append(lambda: callback(*arguments))

    def watch(self, fd: int, callback: Callable[[], object], *, write: bool) -> Any:
        assert write, "it can be written to when it is connected"
        self.watches.append(callback)
        return SimpleNamespace(close=lambda: callback in self.watches and self.watches.remove(callback))

    # -- the system

    def socket(self, family: int, kind: int) -> Any:
        self.made += [family]
        return SimpleNamespace(
            setblocking=self.made.append,
            setsockopt=lambda *option: self.made.append(option),
            connect_ex=lambda address: self.made.append(address) or self.connects_with,
            getsockopt=lambda *option: self.ends_with,
            fileno=lambda: 7,
            close=self._close,
        )

    def _close(self) -> None:
        self.closed += 1

    # -- what happens

    def begin(self, host: str = "kafka", found: str | None = "10.0.0.1") -> Connecting:
        attempt = Connecting(
            self,  # type: ignore[arg-type]
            (host, 9092),
            1500,
            lambda hosts, done: self.lookups.append(done),
            self.told.append,
        )
        if found is not None:
            self.found({host: found})
        return attempt

    def found(self, addresses: dict[str, str]) -> None:
        self.lookups.pop()(addresses)

    def all(self) -> None:
        """Whatever is still to come."""
        for callback in [*self.watches, *(fire for _, fire in self.timers), *self.soon]:
            callback()
        for done in self.lookups:
            done({"kafka": "10.0.0.1"})

    @property
    def is_tidy(self) -> bool:
        return not self.timers and not self.watches


@pytest.fixture
def world(monkeypatch: pytest.MonkeyPatch) -> World:
    made = World()
    monkeypatch.setattr(socket, "socket", made.socket)
    return made


def why(world: World) -> tuple[int | None, str]:
    (problem,) = world.told
    assert isinstance(problem, OSError)
    return problem.errno, str(problem.strerror)


@pytest.mark.parametrize("first", [UNDER_WAY, 0])
@pytest.mark.parametrize(("address", "family"), [("10.0.0.1", socket.AF_INET), ("::1", socket.AF_INET6)])
def test_it_gives_the_socket_when_it_is_connected(
    world: World, first: int, address: str, family: int
) -> None:
    world.connects_with = first
    world.begin(found=address)
    assert not world.told and [wait for wait, _ in world.timers] == [1500]
    world.watches[0]()
    assert [each.fileno() for each in world.told] == [7] and world.is_tidy and not world.closed
    assert world.made == [
        family,
        False,
        (socket.IPPROTO_TCP, socket.TCP_NODELAY, True),
        (socket.SOL_SOCKET, socket.SO_KEEPALIVE, True),
        (address, 9092),
    ]


def test_it_says_what_the_system_says(world: World) -> None:
    world.ends_with = errno.ECONNREFUSED
    world.begin()
    world.watches[0]()
    said = f"no connection to kafka:9092: {os.strerror(errno.ECONNREFUSED)}"
    assert why(world) == (errno.ECONNREFUSED, said) and world.is_tidy and world.closed == 1


def test_what_fails_at_once_is_told_later_and_once(world: World) -> None:
    world.connects_with = errno.ENETUNREACH
    world.begin("::2", "::2")
    assert not world.told, "whoever began it does not have it yet"
    world.soon[0]()
    world.all()
    said = f"no connection to [::2]:9092: {os.strerror(errno.ENETUNREACH)}"
    assert why(world) == (errno.ENETUNREACH, said) and world.is_tidy and world.closed == 1


def test_a_host_that_nobody_knows_is_told_later(world: World) -> None:
    world.begin(found=None)
    world.found({})
    assert not world.told and not world.made
    world.soon[0]()
    assert why(world) == (errno.EHOSTUNREACH, "kafka:9092: nobody knows that host") and world.is_tidy


@pytest.mark.parametrize("found", ["10.0.0.1", None])
def test_it_is_in_time_or_not_at_all(world: World, found: str | None) -> None:
    world.begin(found=found)
    ready = world.watches[:]
    world.timers[0][1]()
    assert why(world) == (errno.ETIMEDOUT, "no connection to kafka:9092 in 1500 ms")
    assert isinstance(world.told[0], TimeoutError) and world.is_tidy
    for callback in ready:
        callback()
    world.all()
    assert len(world.told) == 1 and world.closed == len(ready), "no socket for whoever is late"


@pytest.mark.parametrize("found", ["10.0.0.1", None])
def test_after_it_was_cancelled_nobody_is_told(world: World, found: str | None) -> None:
    attempt = world.begin(found=found)
    late = [*world.watches, *(fire for _, fire in world.timers)]
    attempt.cancel()
    assert world.is_tidy and world.closed == (found is not None)
    for callback in late:
        callback()
    world.all()
    assert not world.told and len(world.made) in (0, 5)


def test_addresses_are_named_as_others_write_them() -> None:
    assert connecting.named(("::1", 5)) == "[::1]:5" and connecting.named(("a", 5)) == "a:5"
