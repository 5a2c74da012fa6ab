"""Partitions get other replicas, and old ones go.

    asked for: the topic's node names all of them, old and new   -> the leader epoch rises, the new ones begin to fetch
    all of the target are in sync: the leader becomes one of them -> the others leave the ISR, are stopped and deleted
    those of them that are alive have said so                     -> the topic's node names the target alone

The topic's node is written first and last, so that whoever is elected in between goes on. Kafka 3.9 does not wait for the
others before that: if its controller dies then, they keep logs that nobody knows of. Reassignments come by request; those
of tools before 2.4 by /admin/reassign_partitions.
"""

from __future__ import annotations

from pykafkad import errors
from pykafkad.pure.controller import elections
from pykafkad.pure.controller.facts import NO_LEADER, NOT_ASSIGNED, Assignment
from pykafkad.pure.controller.intents import Note, paced
from pykafkad.pure.controller.replicas import DELETED, INELIGIBLE, ONLINE

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Sequence

    from pykafkad.pure.controller.events import AlterReassignments, ListReassignments, ReplicasDeleted
    from pykafkad.pure.controller.facts import Partition
    from pykafkad.pure.controller.intents import Steps
    from pykafkad.pure.controller.term import Term

Outcome = tuple[int, str | None]
DONE: Outcome = (errors.NONE, None)
NOT_REASSIGNED: Outcome = (errors.NO_REASSIGNMENT_IN_PROGRESS, None)
LOSES = (
    "Unable to revert partition assignment for {0}-{1} because it would require an unclean leader election."
)
UNKNOWN: Outcome = (errors.UNKNOWN_TOPIC_OR_PARTITION, "The partition does not exist.")


class Reassignments:
    def __init__(self, term: Term) -> None:
        self._term, self._context = term, term.context
        # Complete but for these brokers, which have not said yet that they deleted what they had; the dead among them
        # are not waited for.
        self._leaving: dict[Partition, set[int]] = {}

    # -- what is asked for

    def alter(self, event: AlterReassignments) -> Steps[dict[Partition, Outcome]]:
        """What each came to. A reassignment that is begun ends by itself, whoever is the controller then."""
        outcomes: dict[Partition, Outcome] = {}
        wanted: dict[Partition, Assignment] = {}
        for partition, target in event.targets.items():
            refusal = None if target is None else self._refusal(partition, tuple(target))
            assignment = self._wanted(partition, target)
            if refusal is not None:
                outcomes[partition] = refusal
            elif assignment is None:
                outcomes[partition] = NOT_REASSIGNED
            else:
                wanted[partition] = assignment
        yield
        yield from self._forget_asked(wanted)
        outcomes.update((yield from self._begin(wanted)))
        return outcomes

    def under_way(self, event: ListReassignments) -> Steps[dict[Partition, Assignment]]:
        asked = self._context.reassigning if event.partitions is None else event.partitions
        found = {each: self._context.assignment(each) for each in asked}
        yield
        return {each: assignment for each, assignment in found.items() if assignment.is_reassigned}

    def asked_changed(self) -> Steps[None]:
        """/admin/reassign_partitions."""
        asked = yield from self._term.store.asked_reassignments()
        wanted, refused = {}, []
        for partition, target in asked.items():
            assignment = self._wanted(partition, target)
            if assignment is None or not target:
                refused.append(partition)
            else:
                wanted[partition] = assignment
        outcomes = yield from self._begin(wanted)
        refused += [each for each, outcome in outcomes.items() if outcome != DONE]
        if refused:
            yield from self._forget_asked(refused)

    def _refusal(self, partition: Partition, target: tuple[int, ...]) -> Outcome | None:
        code = errors.INVALID_REPLICA_ASSIGNMENT
        if not target:
            return code, "Empty replica list specified in partition reassignment."
        if len(set(target)) < len(target):
            return code, f"Duplicate replica ids in partition reassignment replica list: {show(target)}"
        if min(target) < 0:
            return code, f"Invalid broker id in replica list: {show(target)}"
        adding = self._context.assignment(partition).reassigned_to(target).adding
        if not all(self._context.is_live(each) for each in adding):
            live = ", ".join(
                str(each) for each in sorted(self._context.brokers) if self._context.is_live(each)
            )
            text = f"Replica assignment has brokers that are not alive. Replica list: {show(adding)}, live broker list: "
            return code, f"{text}Set({live})"
        return None

    def _wanted(self, partition: Partition, target: Sequence[int] | None) -> Assignment | None:
        """None: there is nothing to cancel."""
        now = self._context.assignment(partition)
        if target is None:
            return now.reassigned_to(now.origin) if now.is_reassigned else None
        wanted = now.reassigned_to(tuple(target))
        # Who still has to delete what it had stays in the node until it has.
        leaving = self._leaving.get(partition, set()).difference(wanted.replicas)
        late = tuple(sorted(leaving))
        return wanted._replace(replicas=wanted.replicas + late, removing=wanted.removing + late)

    def _begin(self, wanted: dict[Partition, Assignment]) -> Steps[dict[Partition, Outcome]]:
        outcomes: dict[Partition, Outcome] = {}
        for partition, assignment in wanted.items():
            known = self._context.assignment(partition) != NOT_ASSIGNED
            if partition[0] in self._context.deleting or not known:
                outcomes[partition] = UNKNOWN
            elif self._would_lose(partition, assignment):
                outcomes[partition] = errors.INVALID_REPLICA_ASSIGNMENT, LOSES.format(*partition)
            else:
                yield from self._go_on(partition, assignment)
                outcomes[partition] = DONE
        return outcomes

    def _would_lose(self, partition: Partition, assignment: Assignment) -> bool:
        """A replica that was about to be added may be the only one in sync by now: nobody else has everything."""
        leadership = self._context.leadership(partition)
        return leadership is not None and set(assignment.replicas).isdisjoint(leadership.isr)

    def _forget_asked(self, partitions: Collection[Partition]) -> Steps[None]:
        """A request overrides what the node asks for, and what is done is taken out of it."""
        asked = yield from self._term.store.asked_reassignments()
        left = {each: target for each, target in asked.items() if each not in partitions}
        if len(left) < len(asked):
            yield from self._term.store.write_asked_reassignments(left)

    # -- what goes on

    def resume_all(self) -> Steps[None]:
        """At the start of a term."""
        yield from self.asked_changed()
        yield from self._resume(list(self._context.reassigning))

    def remove_strangers(self) -> Steps[None]:
        """At the start of a term: who is in an ISR and no replica any more, as the controller before this one had
        written that, and no more. Before the dead leave the ISR, or a stranger might be the last in it."""
        context = self._context
        for is_turn, partition in paced(context.led_partitions()):
            if is_turn:
                yield
            leadership, replicas = context.leadership(partition), context.assignment(partition).replicas
            strangers = (
                [] if leadership is None else [each for each in leadership.isr if each not in replicas]
            )
            for stranger in strangers:
                context.set_replica_state((partition, stranger), ONLINE)
            yield from self._stop(partition, strangers)

    def resume_on(self, broker_ids: set[int]) -> Steps[None]:
        """Brokers came that are to have replicas, or have come again that are to delete theirs."""
        context = self._context
        batch = self._term.batch()
        for partition, leaving in self._leaving.items():
            for each in sorted(leaving & broker_ids):
                batch.stop(each, partition, delete=True)
        yield from batch.send()
        yield from self._resume(
            [
                each
                for each in context.reassigning
                if not broker_ids.isdisjoint(context.assignment(each).target)
            ]
        )

    def _resume(self, partitions: list[Partition]) -> Steps[None]:
        for partition in partitions:
            if partition in self._context.reassigning and partition not in self._leaving:
                yield from self._go_on(partition, self._context.assignment(partition))

    def isr_changed(self, partitions: Iterable[Partition]) -> Steps[None]:
        """Whether all of the target are in sync by now."""
        for partition in partitions:
            if partition not in self._context.reassigning or partition in self._leaving:
                continue
            assignment = self._context.assignment(partition)
            if (yield from self._is_complete(partition, assignment)):
                yield from self._go_on(partition, assignment)

    def _go_on(self, partition: Partition, assignment: Assignment) -> Steps[None]:
        yield from self._adopt(partition, assignment)
        if (yield from self._is_complete(partition, assignment)):
            yield from self._complete(partition, assignment)
        else:
            yield from self._raise_epoch(partition, assignment)
            yield from self._term.replicas.create([(partition, each) for each in assignment.adding])

    def _adopt(self, partition: Partition, assignment: Assignment) -> Steps[None]:
        now = self._context.assignment(partition)
        for each in self._leaving.pop(partition, ()):
            if each in assignment.removing:
                self._context.set_replica_state((partition, each), ONLINE)
        if now != assignment:
            text = f"from {list(now.replicas)} to {list(assignment.target)}"
            yield Note(f"{partition[0]}-{partition[1]} is reassigned {text}")
            yield from self._write(partition, assignment)
            self._context.assign(partition, assignment)
            # What an earlier reassignment was about to add, and this one does not want.
            yield from self._stop(
                partition, [each for each in now.replicas if each not in assignment.replicas]
            )
        self._context.reassigning[partition] = None

    def _is_complete(self, partition: Partition, assignment: Assignment) -> Steps[bool]:
        if not assignment.is_reassigned:
            return True
        states = yield from self._term.store.states([partition])
        return partition in states and set(assignment.target) <= set(states[partition].isr)

    def _complete(self, partition: Partition, assignment: Assignment) -> Steps[None]:
        term, context = self._term, self._context
        yield from term.replicas.bring_online([(partition, each) for each in assignment.adding])
        target = Assignment(assignment.target)
        context.assign(partition, target)
        if not (yield from self._lead_in_target(partition, target)):
            context.assign(
                partition, assignment
            )  # a broker of the target is gone: when it comes again, this goes on
            return
        yield from self._stop(partition, assignment.removing)
        self._leaving[partition] = set(assignment.removing)
        yield from self._finish_if_left(partition)

    def deleted(self, event: ReplicasDeleted) -> Steps[None]:
        """A broker has done with what it had. One that could not is not asked again, as in Kafka."""
        broker = self._context.brokers.get(event.broker_id)
        if broker is not None and broker.epoch == event.broker_epoch:
            for partition in [each for each in event.errors if each in self._leaving]:
                self._leaving[partition].discard(event.broker_id)
                yield from self._finish_if_left(partition)

    def give_up(self, topics: Collection[str]) -> None:
        """They are to be deleted, and whoever has something of them is to delete it then."""
        context = self._context
        for partition in [each for each in context.reassigning if each[0] in topics]:
            del context.reassigning[partition]
            for each in sorted(self._leaving.pop(partition, ())):
                now = context.assignment(partition)
                context.assign(partition, now._replace(replicas=(*now.replicas, each)))
                is_online = context.is_online(each, partition)
                context.set_replica_state((partition, each), ONLINE if is_online else INELIGIBLE)

    def brokers_gone(self) -> Steps[None]:
        """What they had stays on their disks: a reassignment away from them must end without them."""
        for partition in list(self._leaving):
            yield from self._finish_if_left(partition)

    def _finish_if_left(self, partition: Partition) -> Steps[None]:
        if self._leaving[partition].isdisjoint(self._context.brokers):
            del self._leaving[partition]
            if partition in self._context.reassigning:
                yield from self._finish(partition)

    def _finish(self, partition: Partition) -> Steps[None]:
        target = self._context.assignment(partition)
        yield from self._write(partition, target)
        yield from self._forget_asked([partition])
        self._context.reassigning.pop(partition, None)
        yield from self._term.tell_all([partition])
        yield Note(f"{partition[0]}-{partition[1]} has its replicas on {list(target.replicas)}")

    def _lead_in_target(self, partition: Partition, target: Assignment) -> Steps[bool]:
        leadership = self._context.leadership(partition)
        leader = NO_LEADER if leadership is None else leadership.leader
        if leader in target.replicas and self._context.is_online(leader, partition):
            return (yield from self._raise_epoch(partition, target))
        failures = yield from self._term.partitions.elect([partition], elections.reassigned)
        return partition not in failures

    def _raise_epoch(self, partition: Partition, assignment: Assignment) -> Steps[bool]:
        """The same leader in its next epoch, which makes it learn of the other replicas."""
        while True:
            states = yield from self._term.store.states([partition])
            if partition not in states:
                return False
            old = states[partition]
            written = yield from self._term.store.write_states({partition: old.led_by(old.leader)})
            if partition in written.done:
                break
            if partition in written.failed:
                return False
        leadership = written.done[partition]
        self._context.lead(partition, leadership)
        batch = self._term.batch()
        batch.order(assignment.origin, partition, leadership, assignment)
        batch.order(assignment.adding, partition, leadership, assignment, is_new=True)
        yield from batch.send()
        return True

    def _stop(self, partition: Partition, broker_ids: Sequence[int]) -> Steps[None]:
        """They leave the ISR, stop, and delete what they have; nobody waits for their answers."""
        term = self._term
        replicas = [(partition, each) for each in broker_ids]
        if not replicas:
            return
        yield from term.replicas.take_offline(replicas)
        yield from term.replicas.start_deletion(replicas)
        term.replicas.mark(replicas, DELETED)
        term.replicas.remove(replicas)
        leadership = self._context.leadership(partition)
        if leadership is not None and leadership.leader == NO_LEADER:
            yield from term.partitions.take_offline([partition])
            yield from term.partitions.elect([partition])

    def _write(self, partition: Partition, assignment: Assignment) -> Steps[None]:
        name, index = partition
        topic_id = self._context.topic_id(name)
        yield from self._term.store.write_topic(name, topic_id, {index: assignment})


def show(replicas: Sequence[int]) -> str:
    return f"List({', '.join(map(str, replicas))})"
