"""The life of a broker as its controllers see it: registered, caught up, unfenced, leaving (KIP-500, KIP-631).

    STARTING   registered, and behind with the metadata; it asks to stay fenced
    CAUGHT_UP  the controller says that it is not; its logs are loaded now
    SERVING    it takes connections, and was unfenced
    LEAVING    it asks to shut down: the controller has others lead what it leads
    GONE       the controller has let it go

Every heartbeat says what it wants. Invariants: nothing is asked while a request is under way; a broker is fenced until
it says that it is ready; what failed is asked again after a pause that doubles, up to the session's time, unless another
controller becomes active: of that one a session begins anew, and it is asked at once.
"""

from __future__ import annotations

from enum import Enum

from pykafkad import errors

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any

NO_EPOCH = -1
FIRST_PAUSE_MS = 100
SOON_MS = 10  # between two heartbeats at start: there may be nothing to recover
LEAVING_SOON_MS = 50
NEVER_MS = 1 << 62
# The registration that these speak of is not the controller's: the broker registers anew.
NOT_REGISTERED = (errors.STALE_BROKER_EPOCH, errors.BROKER_ID_NOT_REGISTERED)


class State(Enum):
    STARTING = 1
    CAUGHT_UP = 2
    SERVING = 3
    LEAVING = 4
    GONE = 5


class Want(Enum):
    REGISTER = 1
    BEAT = 2


class Lifecycle:
    def __init__(self, heartbeat_ms: int, session_ms: int) -> None:
        self.state = State.STARTING
        self.broker_epoch = NO_EPOCH
        self.is_ready = False  # to be unfenced
        self.is_fenced = True
        self._heartbeat_ms, self._session_ms = heartbeat_ms, session_ms
        self._is_registered = False
        self._is_asking = False
        self._is_hurried = False  # the next request goes out as soon as the one under way is answered
        self._was_told_to_wait = False
        self._failures = 0
        self._failing_since_ms = NEVER_MS
        self._next_ms = 0
        self.offline: dict[bytes, bool] = {}  # log directories that failed: whether the controller knows

    # -- what happens here

    def ready(self) -> None:
        """The broker takes connections: it may be unfenced."""
        self.is_ready = True
        self._hurry()

    def leave(self) -> None:
        self.state = State.LEAVING
        self._hurry()

    def directories_failed(self, ids: Iterable[bytes]) -> None:
        for each in ids:
            self.offline.setdefault(each, False)
        self._hurry()

    def registered_by_another(self) -> None:
        """The metadata shows another registration of this broker than the one it knows of."""
        self._is_registered = False
        self._hurry()

    def controller_changed(self) -> None:
        self._failures = 0
        self._hurry()

    def _hurry(self) -> None:
        if self._is_asking:
            self._is_hurried = True
        else:
            self._next_ms = 0

    # -- asking

    @property
    def next_ms(self) -> int:
        """When there may be something to ask."""
        return NEVER_MS if self._is_asking or self.state is State.GONE else self._next_ms

    def next(self, now_ms: int) -> Want | None:
        if now_ms < self.next_ms:
            return None
        self._is_asking = True
        return Want.BEAT if self._is_registered else Want.REGISTER

    # -- answers

    def registered(self, error_code: int, broker_epoch: int, now_ms: int) -> None:
        if error_code:
            self.lost(now_ms)
            return
        self.broker_epoch, self._is_registered = broker_epoch, True
        self._failures, self._failing_since_ms = 0, NEVER_MS
        self._again(now_ms, 0)

    def beaten(self, answer: Any, told: Iterable[bytes], now_ms: int) -> None:
        """`told`: the failed log directories that the heartbeat spoke of."""
        if answer.error_code:
            if answer.error_code in NOT_REGISTERED:
                self._is_registered = False
            self.lost(now_ms)
            return
        self._failures, self._failing_since_ms = 0, NEVER_MS
        self.is_fenced = answer.is_fenced
        self.offline.update(dict.fromkeys(told, True))
        self._again(now_ms, self._pause_after(answer))

    def _pause_after(self, answer: Any) -> int:
        if self.state is State.STARTING:
            if answer.is_caught_up:
                self.state = State.CAUGHT_UP
            return SOON_MS
        if self.state is State.CAUGHT_UP:
            if self.is_ready and not answer.is_fenced:
                self.state = State.SERVING
            return SOON_MS if self.is_ready and self.state is State.CAUGHT_UP else self._heartbeat_ms
        if self.state is State.LEAVING:
            if answer.should_shut_down:
                self.state = State.GONE
            is_first, self._was_told_to_wait = not self._was_told_to_wait, True
            return LEAVING_SOON_MS if is_first else self._heartbeat_ms
        return self._heartbeat_ms

    def lost(self, now_ms: int) -> None:
        """No answer came, or one that refuses. Who wants to leave does not wait for one longer than its session lasts:
        for the controllers it is gone then as well."""
        self._failing_since_ms = min(self._failing_since_ms, now_ms)
        if self.state is State.LEAVING and now_ms - self._failing_since_ms >= self._session_ms:
            self.state = State.GONE
        pause_ms = min(FIRST_PAUSE_MS << min(self._failures, 10), self._session_ms)
        self._failures += 1
        self._is_hurried = False  # never at once after a failure
        self._again(now_ms, pause_ms)

    def _again(self, now_ms: int, pause_ms: int) -> None:
        self._is_asking = False
        is_hurried, self._is_hurried = self._is_hurried, False
        self._next_ms = now_ms + (0 if is_hurried else pause_ms)
