"""Topics are deleted: nobody is told of them any more, each replica is stopped and deletes its log, and when all have
said so the znodes go, the wish to delete last.

A topic waits while a replica's broker is gone. Other than in Kafka 3.9 it does not wait for its reassignments: they are
given up, since one may wait for a leader, which a topic that is to go does not get. Invariant: what is queued here has a
node under /admin/delete_topics, so that whoever is elected next goes on.
"""

from __future__ import annotations

from pykafkad import errors
from pykafkad.pure.controller.intents import Note
from pykafkad.pure.controller.replicas import DELETED, DELETION_STARTED, INELIGIBLE

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Sequence

    from pykafkad.pure.controller.events import ReplicasDeleted
    from pykafkad.pure.controller.facts import PartitionReplica
    from pykafkad.pure.controller.intents import Steps
    from pykafkad.pure.controller.term import Term


class Deletions:
    def __init__(self, term: Term) -> None:
        self._term, self._context = term, term.context

    def load(self) -> Steps[None]:
        """At the start of a term, before the replicas' states follow from what was read."""
        context = self._context
        names = yield from self._term.store.deletions()
        if not self._term.config["delete.topic.enable"]:
            yield from self._term.store.forget_deletions(names)
            return
        self._queue(names)
        for name in names:
            replicas = context.replicas_of(name)
            if not all(context.is_online(broker, partition) for partition, broker in replicas):
                context.ineligible.add(name)

    def changed(self) -> Steps[None]:
        """Somebody wants topics deleted."""
        context, store = self._context, self._term.store
        names = yield from store.deletions()
        unknown = [each for each in names if each not in context.topics]
        if unknown:
            yield from store.forget_deletions(unknown)
        known = [each for each in names if each in context.topics]
        if not self._term.config["delete.topic.enable"]:
            yield from store.forget_deletions(known)
        elif known:
            self._queue(known)
            yield from self.go_on()

    def _queue(self, topics: list[str]) -> None:
        self._context.deleting.update(dict.fromkeys(topics))
        self._term.reassignments.give_up(topics)

    def _hold(self, topics: Iterable[str]) -> None:
        """They are not deleted for now."""
        self._context.ineligible.update(each for each in topics if each in self._context.deleting)

    def resume(self, topics: Collection[str]) -> Steps[None]:
        """Whatever they waited for may have come."""
        waiting = [each for each in self._context.deleting if each in topics]
        if waiting:
            self._context.ineligible.difference_update(waiting)
            yield from self.go_on()

    def failed(self, replicas: Sequence[PartitionReplica]) -> Steps[None]:
        """These could not be deleted, as their brokers are gone or said so."""
        waiting = [each for each in replicas if each[0][0] in self._context.deleting]
        if waiting:
            self._term.replicas.mark(waiting, INELIGIBLE)
            self._hold({partition[0] for partition, _ in waiting})
            yield from self.go_on()

    def answered(self, event: ReplicasDeleted) -> Steps[None]:
        broker = self._context.brokers.get(event.broker_id)
        if broker is None or broker.epoch != event.broker_epoch:
            return
        deleted = [(each, event.broker_id) for each, code in event.errors.items() if code == errors.NONE]
        failed = [(each, event.broker_id) for each, code in event.errors.items() if code != errors.NONE]
        yield from self.failed(failed)
        if deleted:
            self._term.replicas.mark(
                [each for each in deleted if each[0][0] in self._context.deleting], DELETED
            )
            yield from self.go_on()

    def go_on(self) -> Steps[None]:
        """Whatever can be done now for any topic."""
        context, replicas = self._context, self._term.replicas
        retried: list[PartitionReplica] = []
        ready: list[str] = []
        for topic in list(context.deleting):
            states = {context.replica_state(each) for each in context.replicas_of(topic)}
            if states <= {DELETED}:
                yield from self._complete(topic)
            elif DELETION_STARTED not in states:
                retried += context.replicas_in(topic, INELIGIBLE)
                if topic not in context.ineligible:
                    ready.append(topic)
            yield
        if retried:
            yield from replicas.take_offline(retried)
        if ready:
            yield from self._start(ready)

    def _complete(self, topic: str) -> Steps[None]:
        self._term.replicas.remove(self._context.replicas_in(topic, DELETED))
        yield from self._term.store.delete_topic(topic)
        self._context.remove_topic(topic)
        yield Note(f"the topic {topic} is deleted")

    def _start(self, topics: list[str]) -> Steps[None]:
        term, context = self._term, self._context
        yield Note(f"topics are being deleted: {', '.join(topics)}")
        unseen = [each for each in topics if each not in context.deletion_started]
        partitions = [partition for topic in unseen for partition in context.partitions_of(topic)]
        yield from term.partitions.take_offline(partitions)
        yield from term.partitions.remove(partitions)
        context.deletion_started.update(unseen)
        yield from term.tell_all(
            [partition for topic in topics for partition in context.partitions_of(topic)]
        )
        dead, alive = [], []
        for topic in topics:
            for replica in context.replicas_of(topic):
                if not context.is_online(replica[1], replica[0]):
                    dead.append(replica)
                elif context.replica_state(replica) != DELETED:
                    alive.append(replica)
        term.replicas.mark(dead, INELIGIBLE)
        yield from term.replicas.take_offline(alive)
        yield from term.replicas.start_deletion(alive)
        self._hold({partition[0] for partition, _ in dead})
