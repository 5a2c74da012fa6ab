"""The states of replicas, and what brokers are told when they change.

    non-existent -> New -> Online <-> Offline -> DeletionStarted -> DeletionSuccessful -> non-existent
                                         ^               |
                                         +-- DeletionIneligible   (its broker is gone, or refused)

Invariant: who is taken offline is taken out of the ISR, except the last one in it.
"""

from __future__ import annotations

from pykafkad.pure.controller.intents import Note, paced

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping

    from pykafkad.pure.controller.batches import Batch
    from pykafkad.pure.controller.facts import Leadership, Partition, PartitionReplica
    from pykafkad.pure.controller.intents import Steps
    from pykafkad.pure.controller.term import Term

NON_EXISTENT = None
NEW, ONLINE, OFFLINE = "NewReplica", "OnlineReplica", "OfflineReplica"
DELETION_STARTED, DELETED, INELIGIBLE = (
    "ReplicaDeletionStarted",
    "ReplicaDeletionSuccessful",
    "ReplicaDeletionIneligible",
)
BEFORE: Mapping[str | None, Collection[str | None]] = {
    NEW: (NON_EXISTENT,),
    ONLINE: (NEW, ONLINE, OFFLINE, INELIGIBLE),
    OFFLINE: (NEW, ONLINE, OFFLINE, INELIGIBLE),
    DELETION_STARTED: (OFFLINE,),
    DELETED: (DELETION_STARTED,),
    INELIGIBLE: (OFFLINE, DELETION_STARTED),
    NON_EXISTENT: (DELETED,),
}


class Replicas:
    def __init__(self, term: Term) -> None:
        self._term, self._context = term, term.context

    def start(self) -> Steps[None]:
        """The states that follow from what was read: those that are alive are told all they have, those that are not
        are out of the ISR. Who is not alive cannot be asked to delete either."""
        context = self._context
        online: list[PartitionReplica] = []
        offline: list[PartitionReplica] = []
        for is_turn, partition in paced(list(context.partitions())):
            if is_turn:
                yield
            for replica in context.assignment(partition).replicas:
                is_online = context.is_online(replica, partition)
                context.set_replica_state((partition, replica), ONLINE if is_online else INELIGIBLE)
                (online if is_online else offline).append((partition, replica))
        yield from self.bring_online(online)
        yield from self.take_offline(offline)

    # -- one method a state, each for any number of replicas

    def create(self, replicas: Iterable[PartitionReplica]) -> Steps[None]:
        batch = self._term.batch()
        for is_turn, replica in paced(self._allowed(replicas, NEW)):
            if is_turn:
                yield
            partition, broker_id = replica
            leadership = self._context.leadership(partition)
            if leadership is not None:
                if leadership.leader == broker_id:
                    continue  # who leads is not new
                assignment = self._context.assignment(partition)
                batch.order((broker_id,), partition, leadership, assignment, is_new=True)
            self._context.set_replica_state(replica, NEW)
        yield from batch.send()

    def bring_online(self, replicas: Iterable[PartitionReplica]) -> Steps[None]:
        batch = self._term.batch()
        for is_turn, replica in paced(self._allowed(replicas, ONLINE)):
            if is_turn:
                yield
            partition, broker_id = replica
            leadership = self._context.leadership(partition)
            if leadership is not None and self._context.replica_state(replica) != NEW:
                batch.order((broker_id,), partition, leadership, self._context.assignment(partition))
            self._context.set_replica_state(replica, ONLINE)
        yield from batch.send()

    def take_offline(self, replicas: Iterable[PartitionReplica]) -> Steps[None]:
        batch = self._term.batch()
        for broker_id, partitions in by_broker(self._allowed(replicas, OFFLINE)):
            yield from self._take_offline(broker_id, partitions, batch)
        yield from batch.send()

    def start_deletion(self, replicas: Iterable[PartitionReplica]) -> Steps[None]:
        batch = self._term.batch()
        for replica in self._allowed(replicas, DELETION_STARTED):
            batch.stop(replica[1], replica[0], delete=True)
            self._context.set_replica_state(replica, DELETION_STARTED)
        yield from batch.send()

    def mark(self, replicas: Iterable[PartitionReplica], state: str) -> None:
        """DELETED or INELIGIBLE, of which nobody is told."""
        for replica in self._allowed(replicas, state):
            self._context.set_replica_state(replica, state)

    def remove(self, replicas: Iterable[PartitionReplica]) -> None:
        for replica in self._allowed(replicas, NON_EXISTENT):
            partition, broker_id = replica
            self._context.assign(partition, self._context.assignment(partition).without(broker_id))
            self._context.set_replica_state(replica, NON_EXISTENT)

    def _allowed(self, replicas: Iterable[PartitionReplica], state: str | None) -> list[PartitionReplica]:
        before = BEFORE[state]
        return [
            each
            for each in replicas
            if each[0][0] in self._context.topics and self._context.replica_state(each) in before
        ]

    # -- offline

    def _take_offline(self, broker_id: int, partitions: list[Partition], batch: Batch) -> Steps[None]:
        context = self._context
        for partition in partitions:
            batch.stop(broker_id, partition, delete=False)
        led = [each for each in partitions if context.leadership(each) is not None]
        changed = yield from self._remove_from_isr(broker_id, led)
        for is_turn, (partition, leadership) in paced(changed.items()):
            if is_turn:
                yield
            if partition[0] not in context.deleting:
                assignment = context.assignment(partition)
                others = [each for each in assignment.replicas if each != broker_id]
                batch.order(others, partition, leadership, assignment)
        for partition in partitions:
            if context.leadership(partition) is None:
                batch.tell(context.brokers, (partition,))
            elif partition not in changed:
                continue
            context.set_replica_state((partition, broker_id), OFFLINE)
        yield

    def _remove_from_isr(
        self, broker_id: int, partitions: list[Partition]
    ) -> Steps[dict[Partition, Leadership]]:
        """The leaderships after that, also of those partitions in whose ISR it was not. What was read or written last is
        good for a first attempt, since a state that somebody else has changed since is not written."""
        wanted = {
            partition: leadership.without(broker_id)
            for partition in partitions
            if (leadership := self._context.leadership(partition)) and broker_id in leadership.isr
        }
        result: dict[Partition, Leadership] = (yield from self._term.store.write_states(wanted)).done
        partitions = [each for each in partitions if each not in result]
        while partitions:
            states = yield from self._term.store.states(partitions)
            wanted = {}
            for is_turn, partition in paced(partitions):
                if is_turn:
                    yield
                state = states.get(partition)
                if state is None:
                    # A deletion that a controller before this one did not end.
                    leadership = self._context.leadership(partition)
                    if partition[0] in self._context.deleting and leadership is not None:
                        result[partition] = leadership
                elif broker_id in state.isr:
                    wanted[partition] = state.without(broker_id)
                else:
                    result[partition] = state
            written = yield from self._term.store.write_states(wanted)
            result.update(written.done)
            for partition, why in written.failed.items():
                yield Note(
                    f"{broker_id} stays in the ISR of {partition[0]}-{partition[1]}: {why}", is_warning=True
                )
            partitions = written.conflicts
        for partition, leadership in result.items():
            self._context.lead(partition, leadership)
        return result


def by_broker(replicas: Iterable[PartitionReplica]) -> list[tuple[int, list[Partition]]]:
    found: dict[int, list[Partition]] = {}
    for partition, broker_id in replicas:
        found.setdefault(broker_id, []).append(partition)
    return sorted(found.items())
