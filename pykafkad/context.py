"""What a handler is given of its request, and what the broker remembers of the connection that it came through."""

from __future__ import annotations

from pykafkad.hot.wire import Exchange
from pykafkad.pure.authorization import ANONYMOUS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pykafkad.waiting import Waiter

Context = Exchange  # version, client id, principal, listener; the answer's place, its throttle


class ConnectionState:
    """Made when there is something to remember."""

    __slots__ = ("client_id", "principal", "software", "waiters")

    def __init__(self) -> None:
        self.principal = ANONYMOUS
        self.software: tuple[str, str] | None = None  # the client's, and its version
        self.client_id = ""  # the one with which the client introduced itself; equal ones are one object
        self.waiters: set[Waiter] | None = None  # made for the first one: many connections never wait

    def own_waiters(self) -> set[Waiter]:
        if self.waiters is None:
            self.waiters = set()
        return self.waiters
