"""Brokers come, go, come again and say goodbye.

A broker whose epoch rose has come again: for its partitions that is as if it had gone and come. So is one that refuses
connections, though its session lives, and takes them again.
"""

from __future__ import annotations

from pykafkad import errors
from pykafkad.pure.controller import elections
from pykafkad.pure.controller.intents import Abandon, Connect, Disconnect, Note

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from pykafkad.pure.controller.events import ControlledShutdown, LeaderAndIsrAnswered
    from pykafkad.pure.controller.facts import Broker, Partition, PartitionReplica
    from pykafkad.pure.controller.intents import Steps
    from pykafkad.pure.controller.term import Term

UNKNOWN_EPOCH = -1


class Brokers:
    def __init__(self, term: Term) -> None:
        self._term, self._context = term, term.context

    def changed(self) -> Steps[None]:
        found = yield from self._present()
        known = self._context.brokers
        new = sorted(found.keys() - known.keys())
        dead = sorted(known.keys() - found.keys())
        again = sorted(each for each in found.keys() & known.keys() if found[each].epoch > known[each].epoch)
        if new or dead or again:
            yield Note(
                f"brokers that are new: {new}, gone: {dead}, come again: {again}; alive: {sorted(found)}"
            )
        for broker_id in again + dead:
            yield Abandon(broker_id) if broker_id in self._context.refusing else Disconnect(broker_id)
        for broker_id in new + again:
            yield Connect(found[broker_id])
        if new:
            known.update((each, found[each]) for each in new)
            yield from self._started(new)
        if again:
            yield from self._failed(again)
            known.update((each, found[each]) for each in again)
            yield from self._started(again)
        if dead:
            yield from self._failed(dead)
            yield from self._term.reassignments.brokers_gone()

    def _present(self) -> Steps[dict[int, Broker]]:
        """Who is registered, and does not refuse connections."""
        found = yield from self._term.store.brokers()
        refusing = self._context.refusing
        for broker_id, epoch in list(refusing.items()):
            if broker_id not in found:
                yield Disconnect(broker_id)
            if broker_id not in found or found[broker_id].epoch != epoch:
                del refusing[broker_id]
        return {broker_id: broker for broker_id, broker in found.items() if broker_id not in refusing}

    def refuses(self, broker_id: int, epoch: int) -> Steps[None]:
        known = self._context.brokers.get(broker_id)
        if known is not None and known.epoch == epoch:
            yield Note(f"broker {broker_id} refuses connections: taken for gone before its session ends")
            self._context.refusing[broker_id] = epoch
            yield from self.changed()

    def answers(self, broker_id: int, epoch: int) -> Steps[None]:
        if self._context.refusing.get(broker_id) == epoch:
            del self._context.refusing[broker_id]
            yield from self.changed()

    def watch(self, broker_ids: Sequence[int]) -> Steps[None]:
        for broker_id in broker_ids:
            yield from self.modified(broker_id)

    def modified(self, broker_id: int) -> Steps[None]:
        """Its endpoints may have changed. A changed rack alone is not told, as in Kafka."""
        found = yield from self._term.store.broker(broker_id)
        known = self._context.brokers.get(broker_id)
        if found is None or known is None or found.epoch != known.epoch or found.endpoints == known.endpoints:
            return
        self._context.brokers[broker_id] = found
        yield Connect(found)
        yield from self._term.tell_all()

    def _started(self, broker_ids: list[int]) -> Steps[None]:
        """The others hear of them, they hear of everything, and then what they are to do."""
        term, context = self._term, self._context
        for broker_id in broker_ids:
            context.offline_dirs.pop(broker_id, None)
        yield from term.tell(context.brokers.keys() - set(broker_ids))
        yield from term.tell(broker_ids, context.led_partitions())
        replicas = self._replicas_on(broker_ids)
        yield from term.replicas.bring_online(replicas)
        yield from term.partitions.lead_leaderless()
        yield from term.reassignments.resume_on(set(broker_ids))
        yield from term.deletions.resume({partition[0] for partition, _ in replicas})
        yield from self.watch(broker_ids)

    def _failed(self, broker_ids: list[int]) -> Steps[None]:
        context = self._context
        for broker_id in broker_ids:
            context.brokers.pop(broker_id, None)
            context.shutting_down.discard(broker_id)
        yield from self._lost(self._replicas_on(broker_ids))

    def _replicas_on(self, broker_ids: Sequence[int]) -> list[PartitionReplica]:
        return [
            (partition, broker_id)
            for broker_id in broker_ids
            for partition in self._context.partitions_on(broker_id)
        ]

    def _lost(self, replicas: list[PartitionReplica]) -> Steps[None]:
        """New leaders for what they led, and nobody waits for them."""
        term, context = self._term, self._context
        staying = [each for each in replicas if each[0][0] not in context.deleting]
        yield from term.partitions.take_offline(context.partitions_with_offline_leader())
        has_elected = yield from term.partitions.lead_leaderless()
        yield from term.replicas.take_offline(staying)
        if len(staying) < len(replicas):
            yield from term.deletions.failed([each for each in replicas if each[0][0] in context.deleting])
        if not staying and not has_elected:
            yield from term.tell_all()  # else they have been told who is gone

    # -- log directories

    def log_dirs_failed(self) -> Steps[None]:
        """Of brokers that say so each replica is asked for: who cannot be what it is told to be, answers so."""
        names, broker_ids = yield from self._term.store.log_dir_failures()
        if names:
            yield Note(f"brokers with log directories that failed: {broker_ids}")
            alive = [each for each in broker_ids if each in self._context.brokers]
            yield from self._term.replicas.bring_online(self._replicas_on(alive))
            yield from self._term.store.forget_log_dir_failures(names)

    def leader_and_isr_answered(self, event: LeaderAndIsrAnswered) -> Steps[None]:
        broker = self._context.brokers.get(event.broker_id)
        if broker is None or broker.epoch != event.broker_epoch:
            return
        before = self._context.offline_dirs.get(event.broker_id, set())
        failed = {each for each, code in event.errors.items() if code == errors.KAFKA_STORAGE_ERROR}
        online = {each for each, code in event.errors.items() if code == errors.NONE}
        now = (before - online) | failed
        self._context.offline_dirs[event.broker_id] = now
        lost: list[Partition] = sorted(now - before)
        if lost:
            yield Note(f"broker {event.broker_id} has no log of {names_of(lost)}")
            yield from self._lost([(partition, event.broker_id) for partition in lost])

    # -- controlled shutdown

    def shut_down(self, event: ControlledShutdown) -> Steps[Any]:
        """The partitions that it still leads though others have them too, or an error code."""
        term, context = self._term, self._context
        broker = context.brokers.get(event.broker_id)
        if broker is None:
            known = event.broker_epoch == UNKNOWN_EPOCH
            return errors.BROKER_NOT_AVAILABLE if known else errors.UNKNOWN_SERVER_ERROR
        if event.broker_epoch != UNKNOWN_EPOCH and event.broker_epoch < broker.epoch:
            return errors.STALE_BROKER_EPOCH
        yield Note(f"broker {broker.id} is shutting down")
        context.shutting_down.add(broker.id)
        led: list[Partition] = []
        followed: list[Partition] = []
        for partition in context.partitions_on(broker.id):
            leadership = context.leadership(partition)
            if self._is_shared(partition) and leadership is not None:
                (led if leadership.leader == broker.id else followed).append(partition)
        yield from term.partitions.elect(led, elections.shut_down)
        batch = term.batch()
        for partition in followed:
            batch.stop(broker.id, partition, delete=False)
        yield from batch.send()
        yield from term.replicas.take_offline([(partition, broker.id) for partition in followed])
        return [
            partition
            for partition in context.led_partitions()
            if self._is_shared(partition)
            and context.topics[partition[0]].leaderships[partition[1]].leader == broker.id
        ]

    def _is_shared(self, partition: Partition) -> bool:
        return (
            partition[0] not in self._context.deleting
            and len(self._context.assignment(partition).replicas) > 1
        )


def names_of(partitions: Sequence[Partition]) -> str:
    return ", ".join(f"{name}-{index}" for name, index in partitions)
