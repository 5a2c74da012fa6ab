"""Cuts this broker off from the other brokers of its cluster and from ZooKeeper, for drills, and joins it to them again.

Connections to others end, as do theirs to the inter-broker listener, and there are no new ones; its own to itself are
none the better. Clients of other listeners are served on. The session with ZooKeeper lives on at the server until it
expires. `pykafkad cluster isolate` asks for it by the control socket, which needs no rights beyond the broker's own.
"""

from __future__ import annotations

from pykafkad.logs import logger

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Protocol

    from pykafkad.net.listeners import Listeners
    from pykafkad.net.peers import Peers

    class Line(Protocol):
        def cut(self) -> None: ...
        def mend(self) -> None: ...


log = logger("server")


class Isolation:
    def __init__(self, listeners: Listeners, inter_broker_listener: str, zookeeper: Line) -> None:
        self.is_on = False
        self._listeners, self._name, self._zookeeper = listeners, inter_broker_listener, zookeeper
        self._peers: list[Peers] = []

    def joined(self, peers: Peers) -> Peers:
        """Connections to other brokers that are cut as well."""
        self._peers.append(peers)
        return peers

    def begin(self) -> None:
        log.warn("this broker is cut off from the others and from ZooKeeper, as it was asked to be")
        self._set(is_on=True)

    def end(self) -> None:
        log.warn("this broker is no longer cut off")
        self._set(is_on=False)

    def _set(self, *, is_on: bool) -> None:
        self.is_on = is_on
        if is_on:
            self._listeners.cut(self._name)
        else:
            self._listeners.mend()
        for line in (self._zookeeper, *self._peers):
            change: Callable[[], None] = line.cut if is_on else line.mend
            change()
