"""What a controller sends: for each broker a queue, with one request under way.

A request is sent again, every RETRY_MS, until it is answered, or until the broker is gone: whatever a broker was told is
behind what it was told before. What one broker does not take delays no other.
"""

from __future__ import annotations

from collections import deque

from pykafkad.cluster.zookeeper.controller_messages import build, deleted, ordered, parts_of
from pykafkad.errors import NONE
from pykafkad.logs import logger
from pykafkad.net.peers import Purpose
from pykafkad.pure.controller.events import LeaderAndIsrAnswered, ReplicasDeleted
from pykafkad.pure.controller.intents import LeaderAndIsr, StopReplica

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, Protocol

    from pykafkad.cluster.zookeeper.controller_messages import Forms
    from pykafkad.net.peers import Address, Asking
    from pykafkad.pure.controller.events import Event
    from pykafkad.pure.controller.facts import Broker
    from pykafkad.pure.controller.intents import Send
    from pykafkad.slices import Run

    class Connections(Protocol):
        """Of net/peers.py, whose endpoints are `Channels.endpoint_of`."""

        def to(self, broker_id: int, purpose: Purpose) -> Asking: ...
        def drop(self, broker_id: int) -> None: ...
        def close(self) -> None: ...

    Later = Callable[[int, Callable[[], object]], object]
    Connect = Callable[[Callable[[int], Address | None]], Connections]

RETRY_MS = 100

log = logger("controller")


class Channels:
    def __init__(
        self,
        node_id: int,
        forms: Forms,
        connect: Connect,
        call_later: Later,
        run: Run,
        tell: Callable[[Event], None],
    ) -> None:
        """`tell` is given the answers that the machine must know."""
        self.node_id, self.forms, self.call_later, self.run, self.tell = node_id, forms, call_later, run, tell
        # A pause after a lost connection is made here.
        self.purpose = Purpose(str(node_id), backoff_ms=0, under_way_max=1)
        self.connections = connect(self.endpoint_of)
        self._brokers: dict[int, Broker] = {}
        self._channels: dict[int, Channel] = {}

    def endpoint_of(self, broker_id: int) -> Address | None:
        broker = self._brokers.get(broker_id)
        endpoint = None if broker is None else broker.endpoint(self.forms.control_listener)
        return None if endpoint is None else (endpoint.host, endpoint.port)

    def open(self, broker: Broker) -> None:
        """Also for a broker that is open already, and has other endpoints now."""
        self._brokers[broker.id] = broker
        if broker.id not in self._channels:
            self._channels[broker.id] = Channel(self, broker.id)

    def send(self, send: Send) -> None:
        channel = self._channels.get(send.broker_id)
        if channel is not None:
            for part in parts_of(send, self.forms):
                channel.send(part)

    def close(self, broker_id: int) -> None:
        channel = self._channels.pop(broker_id, None)
        if channel is not None:
            channel.close()
            self.connections.drop(broker_id)
            del self._brokers[broker_id]

    def close_all(self) -> None:
        for broker_id in list(self._channels):
            self.close(broker_id)

    @property
    def waiting(self) -> int:
        """Requests that have no answer yet."""
        return sum(len(channel.queue) for channel in self._channels.values())


class Channel:
    def __init__(self, owner: Channels, broker_id: int) -> None:
        self.queue: deque[Send] = deque()  # the first is under way
        self._owner, self._broker_id = owner, broker_id
        self._is_closed = False
        self._is_late = False  # whether it was said that the first is not taken

    def send(self, send: Send) -> None:
        self.queue.append(send)
        if len(self.queue) == 1:
            self._begin()

    def close(self) -> None:
        self._is_closed = True
        self.queue.clear()

    def _begin(self) -> None:
        owner = self._owner
        owner.run(build(owner.node_id, self.queue[0], owner.forms), self._ask)

    def _ask(self, built: Any) -> None:
        if self._is_closed:
            return
        if isinstance(built, Exception):
            raise built
        message, version = built
        link = self._owner.connections.to(self._broker_id, self._owner.purpose)
        link.ask(message, version, lambda answer: self._answered(answer, built))

    def _answered(self, answer: Any, built: Any) -> None:
        if self._is_closed:
            return
        if isinstance(answer, OSError):
            if not self._is_late:
                self._is_late = True
                log.warn(f"broker {self._broker_id} takes no request of the controller yet: {answer}")
            self._owner.call_later(RETRY_MS, lambda: self._ask(built))
            return
        self._is_late = False
        self._tell(self.queue[0], answer)  # which may send more, or close this
        if not self._is_closed:
            self.queue.popleft()
            if self.queue:
                self._begin()

    def _tell(self, send: Send, answer: Any) -> None:
        request = send.request
        origin = send.controller_epoch, send.broker_id, send.broker_epoch
        if answer.error_code != NONE:
            log.warn(
                f"{type(request).__name__} was refused by broker {send.broker_id}: error {answer.error_code}"
            )
        if isinstance(request, LeaderAndIsr) and answer.error_code == NONE:
            self._owner.tell(LeaderAndIsrAnswered(*origin, ordered(request, answer)))
        elif isinstance(request, StopReplica):
            outcomes = deleted(request, answer)
            if outcomes:
                self._owner.tell(ReplicasDeleted(*origin, outcomes))
