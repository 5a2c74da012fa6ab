"""The controller's connections that show whether a broker's process lives: what is told, and what says nothing."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from pykafkad.cluster.zookeeper.presence import PAUSE_MS, Presence
from pykafkad.pure.controller.events import BrokerAnswers, BrokerRefuses
from pykafkad.pure.controller.facts import Broker, Endpoint
from tests.net.test_peer import House, look_up
from tests.reactor_kit import LOOP_NAMES, LOOPS

HERE, OTHER, EPOCH = 1, 2, 77
REFUSES, ANSWERS = BrokerRefuses(OTHER, EPOCH), BrokerAnswers(OTHER, EPOCH)


class Street:
    """A controller's presence, and one listener, of broker 2."""

    def __init__(self, house: House) -> None:
        self.house = house
        self.told: list[Any] = []
        self.presence = Presence(HERE, "INTERNAL", house.loop.reactor, look_up, self.told.append)
        self.address = ("127.0.0.1", 0)
        self.listener: socket.socket | None = None
        self.accepted: list[socket.socket] = []

    def open(self) -> None:
        self.listener = socket.create_server(self.address)
        self.listener.setblocking(False)
        self.address = self.listener.getsockname()

    def attend(self, broker_id: int = OTHER) -> None:
        self.presence.attend(broker(broker_id, self.address[1]))

    def until_accepted(self) -> None:
        count = len(self.accepted)
        self.until(lambda: self._accept() > count)

    def _accept(self) -> int:
        assert self.listener is not None
        try:
            self.accepted.append(self.listener.accept()[0])
        except BlockingIOError:
            pass
        return len(self.accepted)

    def end(self) -> None:
        """The process has ended."""
        assert self.listener is not None
        self.listener.close()
        self.hang_up()

    def hang_up(self) -> None:
        while self.accepted:
            self.accepted.pop().close()

    def until(self, there: Any) -> None:
        """Time passes meanwhile."""

        def moved() -> bool:
            self.house.loop.clock.advance(PAUSE_MS)
            return bool(there())

        self.house.until(moved)

    def pass_time(self) -> None:
        for _ in range(20):
            self.house.loop.clock.advance(PAUSE_MS)
            self.house.loop.reactor.run_pass(1)

    def close(self) -> None:
        self.presence.leave_all()
        if self.listener is not None:
            self.end()


def broker(broker_id: int, port: int) -> Broker:
    return Broker(broker_id, EPOCH, (Endpoint("INTERNAL", "localhost", port, "PLAINTEXT"),))


@pytest.fixture(params=LOOPS, ids=LOOP_NAMES)
def street(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Street]:
    house = House(request.param, tmp_path)
    made = Street(house)
    made.open()
    yield made
    made.close()
    house.close()


def test_a_process_that_has_ended_is_told_of_once_and_so_is_its_return(street: Street) -> None:
    street.attend()
    street.until_accepted()
    street.end()
    street.until(lambda: street.told)
    street.pass_time()
    assert street.told == [REFUSES]
    street.open()
    street.until(lambda: len(street.told) > 1)
    assert street.told == [REFUSES, ANSWERS]


def test_a_connection_that_ends_is_made_again_and_says_nothing(street: Street) -> None:
    street.attend()
    for _ in range(3):
        street.until_accepted()
        street.hang_up()
    street.until_accepted()
    assert not street.told


def test_who_was_never_reached_is_tried_until_it_is(street: Street) -> None:
    street.end()
    street.attend()
    street.pass_time()
    street.open()
    street.until_accepted()
    assert not street.told


def test_who_is_left_is_told_of_no_more(street: Street) -> None:
    street.attend()
    street.until_accepted()
    street.presence.leave(OTHER)
    street.end()
    street.pass_time()
    assert not street.told


def test_the_controller_does_not_look_at_itself(street: Street) -> None:
    street.attend(HERE)
    street.attend()
    street.until_accepted()
    street.pass_time()
    assert street._accept() == 1
