"""Connections to other brokers: opened by the first request, kept, and opened again after a pause when they were lost."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from pykafkad import errors
from pykafkad.handlers import APIS
from pykafkad.messages import ApiVersionsResponse, FetchRequest, FetchResponse
from pykafkad.net.peer import TooManyUnderWay
from pykafkad.net.peers import Peers, Purpose, UnsupportedByPeer
from tests.net.test_peer import House, look_up
from tests.reactor_kit import LOOP_NAMES, LOOPS
from tests.unit.data_kit import fetch

PLAIN = Purpose("1")
ASKING = Purpose("1", asks_versions=True)
FETCH = 1
NEWEST = APIS[FETCH].versions[1]


class Street:
    """Peers that know one house: broker 2."""

    def __init__(self, module: ModuleType, path: Path) -> None:
        self.house = House(module, path)
        self.endpoints: dict[int, tuple[str, int]] = {2: ("localhost", self.house.sock.getsockname()[1])}
        self.asked_for: list[int] = []
        self.peers = Peers(self.house.loop.reactor, look_up, self.endpoint_of)

    def endpoint_of(self, broker_id: int) -> tuple[str, int] | None:
        self.asked_for.append(broker_id)
        return self.endpoints.get(broker_id)

    def ask(self, broker_id: int = 2, purpose: Purpose = PLAIN, count: int = 1) -> list[Any]:
        for _ in range(count):
            self.peers.to(broker_id, purpose).ask(fetch("topic"), 12, self.house.told.append)
        return self.house.come(count)

    def pause(self, ms: int) -> None:
        self.house.loop.clock.advance(ms)


@pytest.fixture(params=LOOPS, ids=LOOP_NAMES)
def street(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Street]:
    made = Street(request.param, tmp_path)
    yield made
    made.peers.close()
    made.house.close()


def test_one_connection_serves_a_broker_and_purpose(street: Street) -> None:
    assert all(isinstance(answer, FetchResponse) for answer in street.ask(count=3))
    street.ask()
    assert len(street.house.connections) == 1
    street.ask(purpose=Purpose("1-fetcher-0"))
    assert len(street.house.connections) == 2 and street.asked_for == [2, 2]


def test_where_versions_are_asked_the_older_one_is_taken(street: Street) -> None:
    built: list[int] = []

    def build(version: int) -> FetchRequest:
        built.append(version)
        return fetch("topic")

    link = street.peers.to(2, ASKING)
    for newest in (99, 9):
        link.ask_built(FETCH, newest, build, street.house.told.append)
    assert all(isinstance(answer, FetchResponse) for answer in street.house.come(2))
    assert built == [NEWEST, 9]


def test_a_broker_that_does_not_know_the_question_is_asked_in_its_oldest_form(street: Street) -> None:
    address, sock = street.house.silent()
    street.endpoints[3] = address
    versions: list[int] = []

    def build(version: int) -> FetchRequest:
        versions.append(version)
        return fetch("topic")

    street.peers.to(3, ASKING).ask_built(FETCH, 12, build, street.house.told.append)
    street.house.loop.turn(3)
    old = street.house.loop.join(sock.accept()[0])
    asked = old.bodies(1)[0]
    old.send(asked[4:8] + ApiVersionsResponse(error_code=errors.UNSUPPORTED_VERSION).encode(0))
    asked = old.bodies(1)[0]
    assert asked[:4] == b"\0\x12\0\0"
    old.send(
        asked[4:8]
        + ApiVersionsResponse(
            api_keys=[ApiVersionsResponse.ApiVersion(api_key=FETCH, min_version=4, max_version=5)]
        ).encode(0)
    )
    assert old.bodies(1)[0][:4] == b"\0\x01\0\x05" and versions == [5]
    sock.close()


def test_an_api_that_the_other_side_does_not_serve_is_not_sent(street: Street) -> None:
    link = street.peers.to(2, ASKING)
    link.ask_built(7, 3, lambda version: pytest.fail("built"), street.house.told.append)
    link.ask_built(FETCH, 99, lambda version: pytest.fail("built"), street.house.told.append, oldest=90)
    assert all(isinstance(each, UnsupportedByPeer) for each in street.house.come(2))
    assert isinstance(street.ask(purpose=ASKING)[0], FetchResponse)
    assert len(street.house.connections) == 1


def test_a_broker_that_is_not_known_is_looked_for_again_after_a_pause(street: Street) -> None:
    assert isinstance(street.ask(3)[0], ConnectionError)
    street.endpoints[3] = street.endpoints[2]
    street.peers.to(3, PLAIN).ask(fetch("topic"), 12, street.house.told.append)
    street.house.loop.turn(3)
    assert street.asked_for == [3] and not street.house.told
    street.pause(PLAIN.backoff_ms)
    assert isinstance(street.house.come(1)[0], FetchResponse)


def test_a_lost_connection_is_opened_anew_at_the_address_of_then(street: Street) -> None:
    street.ask()
    street.house.connections[0].close("gone")
    street.house.loop.turn(3)
    old = street.endpoints[2]
    street.endpoints[2] = ("nowhere", 1)
    street.pause(PLAIN.backoff_ms)
    assert isinstance(street.ask()[0], OSError)
    street.endpoints[2] = old
    street.pause(PLAIN.backoff_ms)
    street.peers.to(2, PLAIN).ask(fetch("topic"), 12, street.house.told.append)
    assert isinstance(street.house.come(1)[0], FetchResponse)
    assert street.asked_for == [2, 2, 2]


def test_versions_are_asked_again_on_a_new_connection(street: Street) -> None:
    street.ask(purpose=ASKING)
    street.house.connections[0].close("another broker comes up")
    street.house.loop.turn(3)
    street.pause(ASKING.backoff_ms)
    link = street.peers.to(2, ASKING)
    street.house.told.clear()
    versions: list[int] = []

    def build(version: int) -> FetchRequest:
        versions.append(version)
        return fetch("topic")

    link.ask_built(FETCH, 99, build, street.house.told.append)
    street.house.come(1)
    assert versions == [NEWEST]


def test_who_waits_is_told_when_a_broker_is_dropped(street: Street) -> None:
    address, sock = street.house.silent()
    street.endpoints[3] = address
    for purpose in (PLAIN, ASKING):
        street.peers.to(3, purpose).ask(fetch("topic"), 12, street.house.told.append)
    street.house.loop.turn(3)
    assert not street.house.told
    street.peers.drop(3)
    assert all(isinstance(each, ConnectionError) for each in street.house.come(2))
    sock.close()


def test_there_is_a_bound_on_what_waits(street: Street) -> None:
    address, sock = street.house.silent()
    street.endpoints[3] = address
    link = street.peers.to(3, Purpose("1", asks_versions=True, under_way_max=2))
    for _ in range(2):
        assert not link.is_full
        link.ask(fetch("topic"), 12, street.house.told.append)
    with pytest.raises(TooManyUnderWay):
        link.ask(fetch("topic"), 12, street.house.told.append)
    link.close()
    assert len(street.house.come(2)) == 2 and not link.is_full
    sock.close()


def test_a_broker_that_is_cut_off_reaches_nobody_until_that_is_mended(street: Street) -> None:
    street.ask()
    link = street.peers.to(2, PLAIN)
    link.ask(fetch("topic"), 12, street.house.told.append)
    street.peers.cut()
    link.ask(fetch("topic"), 12, street.house.told.append)
    assert all(isinstance(each, ConnectionError) for each in street.house.come(2))
    assert street.asked_for == [2], "it is not even looked up"
    street.peers.mend()
    street.pause(PLAIN.backoff_ms)
    assert isinstance(street.ask()[0], FetchResponse)
