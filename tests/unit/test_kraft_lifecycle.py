"""A broker's life as its controllers see it: when it registers, what its heartbeats want."""

from __future__ import annotations

from typing import Any

import pytest

from pykafkad import errors
from pykafkad.messages import BrokerHeartbeatResponse
from pykafkad.pure.kraft.lifecycle import FIRST_PAUSE_MS, NEVER_MS, SOON_MS, Lifecycle, State, Want

BEAT_MS, SESSION_MS = 500, 4000


def beaten(machine: Lifecycle, now_ms: int, *told: bytes, **fields: Any) -> None:
    assert machine.next(now_ms) is Want.BEAT
    machine.beaten(BrokerHeartbeatResponse(**{"is_fenced": True, **fields}), told, now_ms)


def registered() -> Lifecycle:
    machine = Lifecycle(BEAT_MS, SESSION_MS)
    assert machine.next(0) is Want.REGISTER
    machine.registered(0, 17, 0)
    return machine


def serving() -> Lifecycle:
    machine = registered()
    beaten(machine, 0, is_caught_up=True)
    machine.ready()
    beaten(machine, 0, is_caught_up=True, is_fenced=False)
    assert machine.state is State.SERVING
    return machine


def test_a_heartbeat_follows_the_registration_at_once() -> None:
    machine = registered()
    assert (machine.broker_epoch, machine.state) == (17, State.STARTING)
    assert machine.next(0) is Want.BEAT


def test_nothing_is_asked_while_a_request_is_under_way() -> None:
    machine = Lifecycle(BEAT_MS, SESSION_MS)
    machine.next(0)
    assert machine.next_ms == NEVER_MS
    assert machine.next(1 << 40) is None


def test_it_waits_until_it_has_caught_up_and_then_until_it_is_ready() -> None:
    machine = registered()
    beaten(machine, 0)
    assert (machine.state, machine.next_ms) == (State.STARTING, SOON_MS)
    beaten(machine, SOON_MS, is_caught_up=True)
    assert machine.state is State.CAUGHT_UP
    assert not machine.is_ready
    machine.ready()
    beaten(machine, SOON_MS, is_caught_up=True)
    assert machine.state is State.CAUGHT_UP  # fenced still
    beaten(machine, 2 * SOON_MS, is_caught_up=True, is_fenced=False)
    assert (machine.state, machine.next_ms) == (State.SERVING, 2 * SOON_MS + BEAT_MS)


def test_what_is_refused_is_asked_again_after_pauses_that_double() -> None:
    machine = Lifecycle(BEAT_MS, SESSION_MS)
    pauses, now_ms = [], 0
    for _ in range(8):
        assert machine.next(now_ms) is Want.REGISTER
        machine.registered(errors.DUPLICATE_BROKER_REGISTRATION, -1, now_ms)
        pauses.append(machine.next_ms - now_ms)
        now_ms = machine.next_ms
    assert pauses == [min(FIRST_PAUSE_MS << count, SESSION_MS) for count in range(8)]


@pytest.mark.parametrize("code", [errors.STALE_BROKER_EPOCH, errors.BROKER_ID_NOT_REGISTERED])
def test_whose_registration_is_gone_registers_anew(code: int) -> None:
    machine = serving()
    beaten(machine, BEAT_MS, error_code=code)
    assert machine.next(machine.next_ms) is Want.REGISTER


def test_a_broker_that_was_fenced_goes_on_beating() -> None:
    machine = serving()
    beaten(machine, BEAT_MS, is_fenced=True)
    assert machine.is_fenced
    assert machine.state is State.SERVING
    beaten(machine, 2 * BEAT_MS, is_fenced=False)
    assert not machine.is_fenced


def test_it_leaves_when_the_controller_says_so() -> None:
    machine = serving()
    machine.leave()
    beaten(machine, 1)
    assert machine.state.name == "LEAVING"
    assert machine.next_ms - 1 < BEAT_MS  # the first time it asks again soon
    beaten(machine, 100)
    assert machine.next_ms == 100 + BEAT_MS
    beaten(machine, 100 + BEAT_MS, should_shut_down=True)
    assert machine.state is State.GONE
    assert machine.next_ms == NEVER_MS


def test_it_leaves_without_them_when_they_do_not_answer_for_as_long_as_a_session() -> None:
    machine = serving()
    machine.leave()
    now_ms = 0
    while machine.next_ms != NEVER_MS:
        assert machine.next(now_ms) is Want.BEAT
        machine.lost(now_ms)
        now_ms = machine.next_ms
        assert now_ms < 4 * SESSION_MS or now_ms == NEVER_MS
    assert machine.state is State.GONE


def test_news_are_told_at_once_but_not_after_a_failure() -> None:
    machine = serving()
    assert machine.next(BEAT_MS) is Want.BEAT
    machine.directories_failed([b"d"])
    machine.lost(BEAT_MS)
    assert machine.next_ms == BEAT_MS + FIRST_PAUSE_MS
    beaten(machine, BEAT_MS + FIRST_PAUSE_MS, b"d", is_fenced=False)
    assert machine.offline == {b"d": True}


@pytest.mark.parametrize("is_asking", [False, True])
@pytest.mark.parametrize("want", [Want.BEAT, Want.REGISTER])
def test_a_directory_that_failed_and_another_registration_are_told_at_once(
    want: Want, is_asking: bool
) -> None:
    machine = serving()
    now_ms = BEAT_MS if is_asking else 1
    assert machine.next(now_ms) is (Want.BEAT if is_asking else None)
    if want is Want.BEAT:
        machine.directories_failed([b"d"])
    else:
        machine.registered_by_another()
    if is_asking:
        machine.beaten(BrokerHeartbeatResponse(is_fenced=False), (), now_ms)
    assert machine.next(now_ms) is want
    assert machine.offline == ({b"d": False} if want is Want.BEAT else {})


def test_another_controller_is_asked_at_once_however_long_the_one_before_was_asked_in_vain() -> None:
    machine = serving()
    now_ms = BEAT_MS
    for _ in range(8):
        assert machine.next(now_ms) is Want.BEAT
        machine.lost(now_ms)
        now_ms = machine.next_ms
    machine.next(now_ms)
    machine.lost(now_ms)
    assert machine.next_ms == now_ms + SESSION_MS
    machine.controller_changed()
    assert machine.next(now_ms + 1) is Want.BEAT
    machine.lost(now_ms + 1)
    assert machine.next_ms == now_ms + 1 + FIRST_PAUSE_MS
