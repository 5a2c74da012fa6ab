"""The ISR changes: leaders ask for it (AlterPartition), or those of an older version write it and notify.

Other than in Kafka 3.9, who asks has to lead, and the ISR has to hold it and no stranger: else one epoch could have two
leaders, or the next leader could be somebody who has nothing.
"""

from __future__ import annotations

from pykafkad import errors
from pykafkad.pure.controller.facts import RECOVERED, RECOVERING, Leadership
from pykafkad.pure.controller.intents import paced

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from pykafkad.pure.controller.events import AllocateProducerIds, AlterPartition
    from pykafkad.pure.controller.facts import Partition
    from pykafkad.pure.controller.intents import Steps
    from pykafkad.pure.controller.term import Term

Outcome = int | Leadership  # an error code, or what holds now


class Isr:
    def __init__(self, term: Term) -> None:
        self._term, self._context = term, term.context

    def alter(self, event: AlterPartition) -> Steps[tuple[Any, list[Partition]]]:
        """The outcomes by what the request calls the partitions, or an error code; and what changed."""
        broker = self._context.brokers.get(event.broker_id)
        if broker is None or broker.epoch != event.broker_epoch:
            return errors.STALE_BROKER_EPOCH, []
        outcomes: dict[tuple[bytes | str, int], Outcome] = {}
        wanted: dict[Partition, Leadership] = {}
        named: dict[Partition, tuple[bytes | str, int]] = {}
        for is_turn, (key, change) in paced(event.changes.items()):
            if is_turn:
                yield
            name = self._context.names.get(key[0]) if isinstance(key[0], bytes) else key[0]
            if name is None:
                outcomes[key] = errors.UNKNOWN_TOPIC_ID
                continue
            partition = name, key[1]
            named[partition] = key
            outcome = self._check(partition, change, event)
            if outcome is None:
                wanted[partition] = change
            else:
                outcomes[key] = outcome
        written = yield from self._write(wanted)
        outcomes.update((named[partition], outcome) for partition, outcome in written.items())
        yield from self._term.tell_all(named)
        return outcomes, [each for each, key in named.items() if isinstance(outcomes[key], Leadership)]

    def _check(self, partition: Partition, new: Leadership, event: AlterPartition) -> Outcome | None:
        """None: it is to be written."""
        now = self._context.leadership(partition)
        if now is None:
            return errors.UNKNOWN_TOPIC_OR_PARTITION
        if new.partition_epoch > now.partition_epoch or new.leader_epoch > now.leader_epoch:
            return errors.NOT_CONTROLLER  # it knows more: there is a controller after this one
        if new.leader_epoch < now.leader_epoch:
            return errors.FENCED_LEADER_EPOCH
        if is_same(new, now):
            return now
        if new.partition_epoch < now.partition_epoch:
            return errors.INVALID_UPDATE_VERSION
        if not self._is_possible(partition, new, now):
            return errors.INVALID_REQUEST
        if not all(self._context.is_live(each) for each in new.isr):
            return event.ineligible
        return None

    def _is_possible(self, partition: Partition, new: Leadership, now: Leadership) -> bool:
        if new.recovery == RECOVERING and (len(new.isr) > 1 or now.recovery == RECOVERED):
            return False
        if new.leader != now.leader or new.leader not in new.isr or len(set(new.isr)) < len(new.isr):
            return False
        return set(new.isr) <= {*self._context.assignment(partition).replicas, *now.isr}

    def _write(self, wanted: dict[Partition, Leadership]) -> Steps[dict[Partition, Outcome]]:
        outcomes: dict[Partition, Outcome] = {}
        written = yield from self._term.store.write_states(wanted)
        for partition in written.failed:
            outcomes[partition] = errors.UNKNOWN_SERVER_ERROR
        # Somebody else wrote: an older leader, or this very request, if the answer to the write was lost.
        found = (yield from self._term.store.states(written.conflicts)) if written.conflicts else {}
        for partition in written.conflicts:
            same = partition in found and is_same(wanted[partition], found[partition])
            outcomes[partition] = found[partition] if same else errors.INVALID_UPDATE_VERSION
        for partition, leadership in {**found, **written.done}.items():
            self._context.lead(partition, leadership)
        outcomes.update(written.done)
        return outcomes

    def notified(self) -> Steps[None]:
        """Leaders of an inter.broker.protocol.version before 2.7 have written their states."""
        store = self._term.store
        names, partitions = yield from store.isr_changes()
        known = [each for each in partitions if self._context.leadership(each) is not None]
        if known:
            states = yield from store.states(known)
            for partition, leadership in states.items():
                self._context.lead(partition, leadership)
            yield from self._term.tell_all(known)
            yield from self._term.reassignments.isr_changed(known)
        if names:
            yield from store.forget_isr_changes(names)

    def allocate_producer_ids(self, event: AllocateProducerIds) -> Steps[Any]:
        """(the first, how many), or an error code."""
        broker = self._context.brokers.get(event.broker_id)
        if broker is None:
            return errors.BROKER_ID_NOT_REGISTERED
        if broker.epoch != event.broker_epoch:
            return errors.STALE_BROKER_EPOCH
        return (yield from self._term.store.next_producer_ids(event.broker_id))


def is_same(new: Leadership, now: Leadership) -> bool:
    """A request that is repeated, since the answer was lost, names an older partition epoch."""
    return (
        (new.leader, new.leader_epoch, new.recovery) == (now.leader, now.leader_epoch, now.recovery)
        and set(new.isr) == set(now.isr)
        and new.partition_epoch <= now.partition_epoch
    )
