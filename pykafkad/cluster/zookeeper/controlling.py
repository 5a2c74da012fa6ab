"""Runs the controller's machine: watches and requests in, ZooKeeper operations and requests to brokers out.

Events wait in a line, and each is handled to its end, in slices of the loop, before the next one begins. Invariants:
every request is answered once, NOT_CONTROLLER where this broker is not the controller, or no longer; nobody stands for
election in a session in which this broker is not registered.
"""

from __future__ import annotations

from collections import deque

from pykafkad.cluster.turns import tell
from pykafkad.cluster.zookeeper.controller_channels import Channels
from pykafkad.cluster.zookeeper.controller_store import ControllerElections
from pykafkad.errors import NOT_CONTROLLER
from pykafkad.logs import logger
from pykafkad.pure.controller import events, intents
from pykafkad.pure.controller.machine import Machine
from pykafkad.slices import GO_ON, Wait
from pykafkad.zookeeper import znodes

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any

    from pykafkad.cluster.zookeeper.controller_channels import Connect, Later
    from pykafkad.cluster.zookeeper.controller_messages import Forms
    from pykafkad.cluster.zookeeper.presence import Presence
    from pykafkad.pure.controller.events import Event
    from pykafkad.slices import Run, Work
    from pykafkad.zookeeper.client import ZooKeeper

WATCHED: dict[str, Callable[[], Event]] = {
    znodes.CONTROLLER: events.ControllerChanged,
    znodes.BROKER_IDS: events.BrokersChanged,
    znodes.TOPICS: events.TopicsChanged,
    znodes.DELETE_TOPICS: events.DeletionsChanged,
    znodes.REASSIGN_PARTITIONS: events.ReassignmentsChanged,
    znodes.PREFERRED_ELECTION: events.ElectionsChanged,
    znodes.ISR_CHANGES: events.IsrChanged,
    znodes.LOG_DIR_EVENTS: events.LogDirsFailed,
}

log = logger("controller")


class Controlling:
    def __init__(
        self,
        node_id: int,
        zookeeper: ZooKeeper,
        config: Mapping[str, Any],
        forms: Forms,
        connect: Connect,
        call_later: Later,
        run: Run,
        now_ms: Callable[[], int],
        attend: Callable[[Callable[[Event], None]], Presence] | None = None,
    ) -> None:
        """`attend`: who tells of brokers that refuse connections, given whom to tell."""
        elections = ControllerElections(node_id, lambda: zookeeper.session_id, now_ms, forms)
        self.machine = Machine(node_id, elections, config)
        self.channels = Channels(node_id, forms, connect, call_later, run, self.tell)
        self.presence = None if attend is None else attend(self.tell)
        self._zookeeper, self._call_later, self._run = zookeeper, call_later, run
        self._line: deque[tuple[Event, str]] = deque()  # with the path whose watch told of it, if one did
        self._told: set[str] = set()  # paths in the line: what waits to be read needs no second event
        self._is_busy = self._is_advancing = False
        self._has_begun = False  # and may be elected
        self._is_listening = False

    @property
    def is_active(self) -> bool:
        return self.machine.term is not None

    @property
    def untold(self) -> int:
        return self.channels.waiting

    @property
    def is_idle(self) -> bool:
        return not self._is_busy and not self._line

    # -- what the broker says

    def begin(self) -> None:
        """The broker is registered in this session: stand for election, and watch who is elected."""
        if not self._is_listening:
            self._is_listening = True
            self._zookeeper.on_watch(self._on_watch)
        self._has_begun = True
        self.tell(events.ControllerChanged())

    def resign(self) -> None:
        """The session was lost, or the broker stops. What waits is refused."""
        self._has_begun = False
        waiting, self._line = self._line, deque()
        self._told.clear()
        for event, _ in waiting:
            ticket = getattr(event, "ticket", None)
            if ticket is not None:
                tell(ticket.answer, NOT_CONTROLLER)
        self.tell(events.SessionLost())

    def ask(self, make: Callable[..., Event], done: Callable[[Any], object], *facts: Any) -> None:
        """A request of those in pure/controller/events.py; `done` is called with its answer, or with an error code."""
        self.tell(make(events.Ticket(done), *facts))

    # -- events

    def tell(self, event: Event, path: str = "") -> None:
        self._line.append((event, path))
        self._advance()

    def _on_watch(self, path: str) -> None:
        event = event_of(path)
        if event is not None and path not in self._told:
            self._told.add(path)
            self.tell(event, path)

    def _advance(self) -> None:
        """Not by recursion: what is handled at once may be much."""
        if self._is_advancing:
            return
        self._is_advancing = True
        try:
            while self._line and not self._is_busy:
                event, path = self._line.popleft()
                self._told.discard(path)  # what changes from now on may be behind what is read
                if self._has_begun or not isinstance(event, events.ControllerChanged):
                    self._is_busy = True
                    self._run(self._handle(event), self._handled)
        finally:
            self._is_advancing = False

    def _handled(self, failure: Any) -> None:
        self._is_busy = False
        if isinstance(failure, Exception):
            log.error(f"the controller failed: {failure!r}")
        self._advance()

    def _handle(self, event: Event) -> Work:
        steps = self.machine.handle(event)
        answer: Any = None
        failure: Exception | None = None
        while True:
            try:
                intent = steps.send(answer) if failure is None else steps.throw(failure)
            except StopIteration:
                return
            answer = failure = None
            if intent is None:
                yield GO_ON
            elif isinstance(intent, intents.Ask):
                wait = Wait()
                self._zookeeper.submit(intent.operations, wait.come)
                answer = yield from wait.result()
            else:
                try:
                    self._do(intent)
                except Exception as error:
                    failure = error  # the machine must know: it gives up its office

    # -- intents

    def _do(self, intent: Any) -> None:
        if isinstance(intent, intents.Send):
            self.channels.send(intent)
        elif isinstance(intent, intents.Reply):
            tell(intent.ticket.answer, intent.answer)
        elif isinstance(intent, intents.Connect):
            self.channels.open(intent.broker)
            if self.presence is not None:
                self.presence.attend(intent.broker)
        elif isinstance(intent, intents.Disconnect | intents.Abandon):
            self.channels.close(intent.broker_id)
            if self.presence is not None and isinstance(intent, intents.Disconnect):
                self.presence.leave(intent.broker_id)
        elif isinstance(intent, intents.DisconnectAll):
            self.channels.close_all()
            if self.presence is not None:
                self.presence.leave_all()
        elif isinstance(intent, intents.After):
            self._wait(intent)
        else:
            (log.warn if intent.is_warning else log.info)(intent.text)

    def _wait(self, intent: intents.After) -> None:
        term = self.machine.term

        def come() -> None:
            if self.machine.term is term:
                self.tell(intent.event)

        self._call_later(intent.delay_ms, come)


def event_of(path: str) -> Event | None:
    if path in WATCHED:
        return WATCHED[path]()
    parent, _, name = path.rpartition("/")
    if parent == znodes.BROKER_IDS:
        return next(map(events.BrokerModified, znodes.broker_ids([name])), None)
    if parent == znodes.TOPICS:
        return events.PartitionsModified(name)
    return None
