"""Connections to other brokers: opened by the first request, kept, and opened again after a pause when they were lost."""

from __future__ import annotations

import socket
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
from tests.reactor_kit import LOOP_NAMES, LOOPS, Peer
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


class Slow:
    """A broker 3 of which a test says what it answers, on each connection that comes."""

    def __init__(self, street: Street) -> None:
        self.street = street
        street.endpoints[3], self.sock = street.house.silent()

    def comes(self) -> Peer:
        self.street.house.loop.turn(3)
        return self.street.house.loop.join(self.sock.accept()[0])

    def serves(self, peer: Peer, code: int = 0, **newest: int) -> None:
        """The answer to the question for versions, which comes first."""
        asked = peer.bodies(1)[0]
        assert asked[:2] == b"\0\x12", "nothing is sent before it is known what is served"
        kind = ApiVersionsResponse
        rows = [kind.ApiVersion(api_key=FETCH, min_version=4, max_version=each) for each in newest.values()]
        peer.send(asked[4:8] + kind(error_code=code, api_keys=rows).encode(int.from_bytes(asked[2:4], "big")))


@pytest.fixture
def slow(street: Street) -> Iterator[Slow]:
    made = Slow(street)
    yield made
    made.sock.close()


def ask(street: Street, purpose: Purpose = ASKING, oldest: int = 0) -> None:
    street.peers.to(3, purpose).ask_built(
        FETCH, 12, lambda version: fetch("topic"), street.house.told.append, oldest=oldest
    )


def test_on_each_connection_versions_come_first_whatever_was_served_before(
    street: Street, slow: Slow
) -> None:
    for newest in (5, 4):
        for _ in range(2):
            ask(street)
        there = slow.comes()
        slow.serves(there, fetch=newest)
        assert [body[:4] for body in there.bodies(2)] == [bytes([0, 1, 0, newest])] * 2
        there.sock.shutdown(socket.SHUT_RDWR)
        assert all(isinstance(each, OSError) for each in street.house.come(2))
        street.pause(ASKING.backoff_ms)
        street.house.loop.turn(3)


def test_the_oldest_version_that_will_do_is_sent_where_it_is_the_newest_served(
    street: Street, slow: Slow
) -> None:
    for oldest in (5, 6):
        ask(street, oldest=oldest)
    there = slow.comes()
    slow.serves(there, fetch=5)
    assert there.bodies(1)[0][:4] == b"\0\1\0\5"
    (refused,) = street.house.come(1)
    assert isinstance(refused, UnsupportedByPeer)
    assert str(refused.strerror) == "broker 3 serves no version from 6 to 12 of the API with key 1"


def test_a_broker_that_does_not_say_what_it_serves_is_left_and_tried_again(
    street: Street, slow: Slow
) -> None:
    ask(street)
    there = slow.comes()
    slow.serves(there, errors.CLUSTER_AUTHORIZATION_FAILED)
    (why,) = street.house.come(1)
    said = f"broker 3: it does not say what it serves: error {errors.CLUSTER_AUTHORIZATION_FAILED}"
    assert isinstance(why, ConnectionError) and why.strerror == said
    there.ends()
    street.pause(ASKING.backoff_ms)
    ask(street)
    slow.serves(slow.comes(), fetch=5)


def test_what_is_under_way_counts_for_the_bound(street: Street, slow: Slow) -> None:
    link = street.peers.to(3, Purpose("1", under_way_max=2))
    for _ in range(2):
        assert not link.is_full
        link.ask(fetch("topic"), 12, street.house.told.append)
        slow.street.house.loop.turn(3)
    assert link.is_full
    with pytest.raises(TooManyUnderWay, match="to broker 3 are under way"):
        link.ask(fetch("topic"), 12, street.house.told.append)


def test_after_a_pause_in_which_nobody_asked_it_is_opened_at_once(street: Street) -> None:
    street.ask()
    street.house.connections[0].close("gone")
    street.house.loop.turn(3)
    street.pause(PLAIN.backoff_ms)
    street.house.loop.turn(3)
    assert street.asked_for == [2], "there is no need of it"
    assert isinstance(street.ask()[0], FetchResponse)


def test_a_link_that_was_closed_does_not_remember_its_pause(street: Street, slow: Slow) -> None:
    ask(street)
    slow.comes().sock.shutdown(socket.SHUT_RDWR)
    assert isinstance(street.house.come(1)[0], OSError)
    street.peers.to(3, ASKING).close()
    ask(street)
    there = slow.comes()
    street.pause(ASKING.backoff_ms)
    street.house.loop.turn(3)
    assert street.asked_for == [3, 3], "one connection"
    slow.serves(there, fetch=5)
    assert there.bodies(1)[0][:2] == b"\0\1"
