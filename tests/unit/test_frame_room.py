"""The memory of frames that are not whole yet, in the plain Python loop: who has room, who waits, and who gives way."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import pytest

from pykafkad.net.plain_connections import Connection
from pykafkad.net.plain_room import RECEIVE_CHUNK_BYTES, FrameRoom

CHUNK = RECEIVE_CHUNK_BYTES
MOST, FRAME = 10 * CHUNK, 4 * CHUNK


class Client:
    """A connection, as far as the room looks at it."""

    def __init__(self, room: FrameRoom, reactor: Any) -> None:
        self.room, self.reactor = room, reactor
        self.closed = self._finishing = False
        self.frame_bytes = 0
        self.frame_began_ms: int | None = None
        self._frames = SimpleNamespace(wanted=FRAME)
        self.marks = self.settled = 0
        self.dropped: str | None = None

    @property
    def me(self) -> Connection:
        return cast(Connection, self)

    def has(self, size: int, same_frame: bool = True) -> None:
        self.frame_bytes = size
        self.room.follow(self.me, same_frame=same_frame)

    @property
    def may_go_on(self) -> bool:
        return self.room.has_room(self.me)

    def _mark(self) -> None:
        self.marks += 1

    def _settle(self) -> None:
        self.settled += 1

    def _drop(self, reason: str) -> None:
        self.dropped, self.closed = reason, True
        self.room.leave(self.me)


class House:
    def __init__(self) -> None:
        self.reactor = SimpleNamespace(now_ms=1000)
        self.room = FrameRoom(MOST, FRAME)

    def clients(self, count: int) -> list[Client]:
        return [Client(self.room, self.reactor) for _ in range(count)]


@pytest.fixture
def house() -> House:
    return House()


def test_a_large_frame_grows_to_half_of_what_the_others_leave(house: House) -> None:
    one, two = house.clients(2)
    two.has(2 * CHUNK)
    assert one.may_go_on, "the first bytes of a frame are always taken"
    one.has(1)
    assert one.may_go_on
    one.has(3 * CHUNK)  # and one more is half of 8
    assert one.may_go_on and house.room.used == 5 * CHUNK
    one.has(3 * CHUNK + 1)
    assert not one.may_go_on
    one._frames.wanted = CHUNK + 1
    assert not one.may_go_on
    one._frames.wanted = CHUNK
    assert one.may_go_on, "a small frame is not kept waiting"


def test_when_a_frame_is_whole_its_room_is_the_others(house: House) -> None:
    one, two = house.clients(2)
    one.has(3 * CHUNK + 1)
    two.has(2 * CHUNK)
    assert not one.may_go_on
    two.has(0)
    assert one.may_go_on
    assert list(house.room.unfinished) == [one.me] and house.room.used == 3 * CHUNK + 1


@pytest.mark.parametrize("end", ["closed", "_finishing"])
def test_who_goes_keeps_nothing(house: House, end: str) -> None:
    (one,) = house.clients(1)
    one.has(CHUNK)
    setattr(one, end, True)
    one.has(CHUNK)
    assert house.room.used == 0 and not house.room.unfinished


def test_a_frame_began_when_its_first_bytes_came(house: House) -> None:
    (one,) = house.clients(1)
    one.has(1)
    house.reactor.now_ms += 5
    one.has(2)
    assert one.frame_began_ms == 1000
    one.has(1, same_frame=False)
    assert one.frame_began_ms == 1005
    house.reactor.now_ms += 5
    one.has(0)
    one.has(1)
    assert one.frame_began_ms == 1010


def test_where_small_frames_are_too_much_together_the_least_recently_fed_gives_way(house: House) -> None:
    clients = house.clients(15)
    for each in clients[:14]:
        each.has(CHUNK)
    assert not any(each.dropped for each in clients), "as much as the bound, and a frame"
    clients[0].has(CHUNK)  # fed again: the second is the one that has waited longest now
    clients[14].has(CHUNK)
    assert [place for place, each in enumerate(clients) if each.dropped] == [1]
    assert clients[1].dropped == "the memory for unfinished frames is used up"
    assert house.room.used == 14 * CHUNK


def test_larger_frames_may_be_expected_later(house: House) -> None:
    clients = house.clients(16)
    house.room.expect(FRAME - 1)
    house.room.expect(FRAME + CHUNK)
    for each in clients[:15]:
        each.has(CHUNK)
    assert not any(each.dropped for each in clients)
    clients[15].has(CHUNK)
    assert clients[0].dropped


def test_the_one_that_has_waited_longest_always_goes_on(house: House) -> None:
    one, two, three = house.clients(3)
    for each in (one, two, three):
        each.has(4 * CHUNK + 1)
        house.room.wait(each.me)
    assert [each.marks for each in (one, two, three)] == [1, 1, 1] and not house.room.unfinished
    house.reactor.now_ms += 50
    house.room.let_on()
    assert [each.settled for each in (one, two, three)] == [1, 0, 0]
    assert list(house.room.waiting) == [two.me, three.me] and list(house.room.unfinished) == [one.me]
    assert one.frame_began_ms == 1050, "what it had to wait is not its fault"
    one.has(100 * CHUNK)
    assert one.may_go_on and not one.dropped, "it may have its whole frame"
    house.room.let_on()
    assert two.settled == 0
    one.has(0)
    house.room.let_on()
    assert (two.settled, three.settled) == (1, 0), "now it is the next one's turn"
    two.has(0)
    house.room.let_on()
    three.has(0)
    assert house.room.used == 0 and not house.room.waiting


def test_those_behind_go_on_as_far_as_there_is_room(house: House) -> None:
    one, two, three = house.clients(3)
    one.has(4 * CHUNK)
    two.has(2 * CHUNK)
    three.has(4 * CHUNK)
    for each in (one, two, three):
        house.room.wait(each.me)
    house.room.let_on()  # the first one's bytes do not count any more: 10 - 4 are left for the second, which may have 3
    assert [each.settled for each in (one, two, three)] == [1, 1, 0]


def test_who_leaves_while_it_waits_is_not_called(house: House) -> None:
    one, two = house.clients(2)
    for each in (one, two):
        each.has(CHUNK)
        house.room.wait(each.me)
    one.has(0)
    house.room.let_on()
    assert (one.settled, two.settled) == (0, 1) and not house.room.waiting


def test_what_the_favoured_one_had_is_not_given_back_twice(house: House) -> None:
    one, two, three = house.clients(3)
    one.has(3 * CHUNK)
    house.room.wait(one.me)
    house.room.let_on()
    one.has(5 * CHUNK)
    one.has(0)
    two.has(2 * CHUNK)
    three.has(3 * CHUNK)
    assert three.may_go_on
    three.has(3 * CHUNK + 1)
    assert not three.may_go_on
