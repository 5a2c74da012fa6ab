"""Other brokers that are asked nothing: a test sees what was sent to whom (net/peers.py), and says what comes back."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from pykafkad.net.peers import Purpose


class Sent(NamedTuple):
    broker_id: int
    purpose: Purpose
    request: Any
    version: int
    done: Callable[[Any], object]


class FakePeers:
    """In the place of net.peers.Peers. Answers are given by hand: `take()` a request and call its `done`."""

    def __init__(self) -> None:
        self.sent: list[Sent] = []
        self.closed: list[int] = []

    def to(self, broker_id: int, purpose: Purpose) -> FakeLink:
        return FakeLink(self, broker_id, purpose)

    def drop(self, broker_id: int) -> None:
        self.closed.append(broker_id)

    def take(self) -> Sent:
        """The oldest request that was not taken yet."""
        assert self.sent, "nothing was asked"
        return self.sent.pop(0)


class FakeLink:
    is_full = False

    def __init__(self, owner: FakePeers, broker_id: int, purpose: Purpose) -> None:
        self.owner, self.broker_id, self.purpose = owner, broker_id, purpose

    def ask(
        self, request: Any, version: int, done: Callable[[Any], object], *, timeout_ms: int | None = None
    ) -> None:
        self.owner.sent.append(Sent(self.broker_id, self.purpose, request, version, done))

    def ask_built(
        self,
        api_key: int,
        newest: int,
        build: Callable[[int], Any],
        done: Callable[[Any], object],
        *,
        oldest: int = 0,
        timeout_ms: int | None = None,
    ) -> None:
        request = build(newest)
        assert request.api_key == api_key
        self.ask(request, newest, done, timeout_ms=timeout_ms)

    def close(self) -> None:
        self.owner.closed.append(self.broker_id)
