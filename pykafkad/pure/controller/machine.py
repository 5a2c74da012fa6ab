"""Stands for election, and gives each event to the term of office, if there is one.

Events are handled one at a time, each to its end. What ends a term: the controller epoch is another's by now (a write
says so), another is elected, the session is lost; or this controller met something that it does not understand, in which
case it gives up the office, since whoever is elected next begins with what ZooKeeper has. It rests then, each time for
longer, until a term goes well: what nobody understands would have brokers elect each other all the time.
"""

from __future__ import annotations

from pykafkad import errors
from pykafkad.pure.controller import events
from pykafkad.pure.controller.intents import After, Connect, DisconnectAll, Note, Reply
from pykafkad.pure.controller.store import Moved
from pykafkad.pure.controller.term import Term

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any

    from pykafkad.pure.controller.events import Event
    from pykafkad.pure.controller.intents import Steps
    from pykafkad.pure.controller.store import Elections, Won

NOBODY = -1
PAUSE_MS = 1_000  # after a term that ended in a failure: others go first
PAUSE_MAX_MS = 16_000


class Machine:
    def __init__(self, node_id: int, elections: Elections, config: Mapping[str, Any]) -> None:
        self._node_id, self._elections, self._config = node_id, elections, config
        self.controller_id = NOBODY  # as /controller said last
        self.term: Term | None = None
        self._rests = False
        self._pause_ms = PAUSE_MS

    def handle(self, event: Event) -> Steps[None]:
        """All that follows from an event. A request is answered whatever happens."""
        ticket = getattr(event, "ticket", None)
        try:
            yield from self._handle(event)
        except Moved as moved:
            yield Note(f"the term is over: {moved}")
            yield from self._end()
            yield from self._look_again()
        except Exception as failure:
            yield Note(
                f"the controller gives up its office: {type(event).__name__} failed: {failure!r}",
                is_warning=True,
            )
            yield from self._give_up()
        if ticket is not None and not ticket.is_answered:
            yield Reply(ticket, errors.NOT_CONTROLLER)

    def _handle(self, event: Event) -> Steps[None]:
        if isinstance(event, events.SessionLost):
            yield from self._end()
            self.controller_id = NOBODY
            self._rests = False
        elif isinstance(event, events.ControllerChanged):
            self._rests = self._rests and not event.has_rested
            yield from self._look()
        elif self.term is not None and getattr(event, "controller_epoch", self.term.epoch) == self.term.epoch:
            yield from HANDLERS[type(event)](self.term, event)

    # -- the office

    def _look(self) -> Steps[None]:
        """Who is the controller; if nobody is, this broker stands for it."""
        self.controller_id = yield from self._elections.controller()
        if self.term is not None and self.controller_id != self._node_id:
            yield from self._end()
        if self.controller_id == NOBODY and not self._rests:
            won = yield from self._elections.stand()
            if won is None:
                self.controller_id = yield from self._elections.controller()
            else:
                self.controller_id = self._node_id
                yield from self._begin(won)

    def _look_again(self) -> Steps[None]:
        """A term is over because another controller has begun one, which the watch may have told of before."""
        try:
            self.controller_id = yield from self._elections.controller()
        except Moved:
            self.controller_id = NOBODY  # the session is over, too
        else:
            if self.controller_id in (NOBODY, self._node_id):
                yield After(PAUSE_MS, events.ControllerChanged())

    def _begin(self, won: Won) -> Steps[None]:
        """Takes office: everything is read, and everybody told."""
        yield Note(f"elected as the controller in epoch {won.epoch}")
        term = self.term = Term(self._node_id, won, self._elections.term(won), self._config)
        context = term.context
        yield from term.store.begin()
        context.brokers.update((yield from term.store.brokers()))
        for broker_id in sorted(context.brokers):
            yield Connect(context.brokers[broker_id])
        yield from term.topics.load()
        yield from term.deletions.load()
        yield from term.tell_all()
        yield from term.reassignments.remove_strangers()
        yield from term.replicas.start()
        yield from term.partitions.start()
        yield from term.reassignments.resume_all()
        yield from term.deletions.go_on()
        yield from term.balance.asked_changed()
        yield from term.brokers.watch(sorted(context.brokers))
        yield from term.balance.start()
        self._pause_ms = PAUSE_MS
        yield Note(f"in office: {len(context.brokers)} brokers, {len(context.topics)} topics")

    def _end(self) -> Steps[None]:
        if self.term is not None:
            self.term = None
            yield DisconnectAll()

    def _give_up(self) -> Steps[None]:
        """Nobody knows what is half done in memory; in ZooKeeper nothing is."""
        term = self.term
        yield from self._end()
        self.controller_id = NOBODY
        try:
            if term is not None:
                yield from self._elections.resign(term.won)
        except Exception as failure:
            yield Note(f"the office could not be given up: {failure!r}", is_warning=True)
        self._rests = True
        yield After(self._pause_ms, events.ControllerChanged(has_rested=True))
        self._pause_ms = min(2 * self._pause_ms, PAUSE_MAX_MS)


# -- who handles what, in a term


def _reply(answer: Callable[[Term, Any], Steps[Any]]) -> Callable[[Term, Any], Steps[None]]:
    def handle(term: Term, event: Any) -> Steps[None]:
        yield Reply(event.ticket, (yield from answer(term, event)))

    return handle


def _alter_partition(term: Term, event: events.AlterPartition) -> Steps[None]:
    outcomes, changed = yield from term.isr.alter(event)
    yield Reply(event.ticket, outcomes)
    yield from term.reassignments.isr_changed(changed)


def _replicas_deleted(term: Term, event: events.ReplicasDeleted) -> Steps[None]:
    yield from term.deletions.answered(event)
    yield from term.reassignments.deleted(event)


def _unclean(term: Term, event: events.UncleanElectionEnabled) -> Steps[None]:
    yield from term.partitions.lead_leaderless(event.topic)


HANDLERS: dict[type, Callable[[Term, Any], Steps[None]]] = {
    events.BrokersChanged: lambda term, event: term.brokers.changed(),
    events.BrokerRefuses: lambda term, event: term.brokers.refuses(event.broker_id, event.broker_epoch),
    events.BrokerAnswers: lambda term, event: term.brokers.answers(event.broker_id, event.broker_epoch),
    events.BrokerModified: lambda term, event: term.brokers.modified(event.broker_id),
    events.TopicsChanged: lambda term, event: term.topics.changed(),
    events.PartitionsModified: lambda term, event: term.topics.modified(event.topic),
    events.DeletionsChanged: lambda term, event: term.deletions.changed(),
    events.ReassignmentsChanged: lambda term, event: term.reassignments.asked_changed(),
    events.ElectionsChanged: lambda term, event: term.balance.asked_changed(),
    events.IsrChanged: lambda term, event: term.isr.notified(),
    events.LogDirsFailed: lambda term, event: term.brokers.log_dirs_failed(),
    events.LeaderAndIsrAnswered: lambda term, event: term.brokers.leader_and_isr_answered(event),
    events.ReplicasDeleted: _replicas_deleted,
    events.BalanceDue: lambda term, event: term.balance.due(),
    events.UncleanElectionEnabled: _unclean,
    events.AlterPartition: _alter_partition,
    events.AllocateProducerIds: _reply(lambda term, event: term.isr.allocate_producer_ids(event)),
    events.ControlledShutdown: _reply(lambda term, event: term.brokers.shut_down(event)),
    events.ElectLeaders: _reply(lambda term, event: term.balance.elect(event)),
    events.AlterReassignments: _reply(lambda term, event: term.reassignments.alter(event)),
    events.ListReassignments: _reply(lambda term, event: term.reassignments.under_way(event)),
}
