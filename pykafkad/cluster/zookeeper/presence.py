"""Which brokers' processes have ended, seen by the controller before their sessions with ZooKeeper are over.

A connection to each broker, on which nothing is sent, ends with its process. If the host then refuses another one, nobody
listens there, and the machine takes the broker for gone until it takes connections again (pure/controller/brokers.py).
That is as safe as the end of a session, which a broker may outlive, too: epochs fence it. Any other failure says nothing:
who is cut off or stands still is missed when its session ends. Kafka waits for that in each case.
"""

from __future__ import annotations

import errno

from pykafkad.net.connecting import Connecting
from pykafkad.pure.controller.events import BrokerAnswers, BrokerRefuses

TYPE_CHECKING = False
if TYPE_CHECKING:
    import socket
    from collections.abc import Callable
    from typing import Any

    from pykafkad.hot.reactor import Reactor
    from pykafkad.net.hosts import LookUp
    from pykafkad.pure.controller.events import Event
    from pykafkad.pure.controller.facts import Broker

TIMEOUT_MS = 10_000
PAUSE_MS = 50  # before another attempt


class Presence:
    def __init__(
        self, node_id: int, listener: str, reactor: Reactor, look_up: LookUp, tell: Callable[[Event], None]
    ) -> None:
        """`listener`: of the other brokers, on which the controller reaches them."""
        self.reactor, self.look_up, self.tell = reactor, look_up, tell
        self._node_id, self._listener = node_id, listener
        self._doors: dict[int, Door] = {}

    def attend(self, broker: Broker) -> None:
        """Also to a broker that has come again, or has other endpoints now."""
        self.leave(broker.id)
        endpoint = broker.endpoint(self._listener)
        if broker.id != self._node_id and endpoint is not None:
            self._doors[broker.id] = Door(self, broker, (endpoint.host, endpoint.port))

    def leave(self, broker_id: int) -> None:
        door = self._doors.pop(broker_id, None)
        if door is not None:
            door.close()

    def leave_all(self) -> None:
        for broker_id in list(self._doors):
            self.leave(broker_id)


class Door:
    """A broker's endpoint: connected to, or tried again and again."""

    def __init__(self, owner: Presence, broker: Broker, address: tuple[str, int]) -> None:
        self._owner, self._broker, self._address = owner, broker, address
        self._was_open = False
        self._is_refused = False  # and the machine knows
        self._connecting: Connecting | None = None
        self._socket: socket.socket | None = None
        self._watch: Any = None
        self._pause: Any = None
        self._try()

    def close(self) -> None:
        if self._connecting is not None:
            self._connecting.cancel()
        if self._pause is not None:
            self._pause.cancel()
        self._let_go()

    def _try(self) -> None:
        self._pause = None
        owner = self._owner
        self._connecting = Connecting(owner.reactor, self._address, TIMEOUT_MS, owner.look_up, self._tried)

    def _tried(self, result: socket.socket | OSError) -> None:
        self._connecting = None
        is_refused = isinstance(result, OSError) and result.errno == errno.ECONNREFUSED
        if isinstance(result, OSError):
            self._try_later()
        else:
            self._was_open = True
            self._socket = result
            self._watch = self._owner.reactor.watch(result.fileno(), self._ended)
        broker = self._broker
        if is_refused and self._was_open and not self._is_refused:
            self._is_refused = True
            self._owner.tell(BrokerRefuses(broker.id, broker.epoch))
        elif self._socket is not None and self._is_refused:
            self._is_refused = False
            self._owner.tell(BrokerAnswers(broker.id, broker.epoch))

    def _ended(self) -> None:
        """Or it sends something, though it is not asked."""
        self._let_go()
        self._try_later()

    def _try_later(self) -> None:
        self._pause = self._owner.reactor.call_later(PAUSE_MS, self._try)

    def _let_go(self) -> None:
        if self._socket is not None:
            self._watch.close()
            self._socket.close()
            self._socket = None
