"""The states of partitions, and the elections that changing them takes.

    non-existent -> New -> Online <-> Offline -> non-existent

New: it has an assignment and was never led. Online: it has a leader. Offline: it had one, which is gone.
"""

from __future__ import annotations

from functools import partial

from pykafkad.pure.controller import elections
from pykafkad.pure.controller.facts import Leadership
from pykafkad.pure.controller.intents import Note, paced

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping, Sequence
    from typing import Any

    from pykafkad.pure.controller.batches import Batch
    from pykafkad.pure.controller.context import Context
    from pykafkad.pure.controller.elections import Elected
    from pykafkad.pure.controller.facts import Partition
    from pykafkad.pure.controller.intents import Steps
    from pykafkad.pure.controller.term import Term

    Rule = Callable[[Context, Partition, Leadership], Elected]

NON_EXISTENT = None
NEW, ONLINE, OFFLINE = "NewPartition", "OnlinePartition", "OfflinePartition"
BEFORE: Mapping[str | None, Collection[str | None]] = {
    NEW: (NON_EXISTENT,),
    ONLINE: (NEW, ONLINE, OFFLINE),
    OFFLINE: (NEW, ONLINE, OFFLINE),
    NON_EXISTENT: (OFFLINE,),
}


class Partitions:
    def __init__(self, term: Term) -> None:
        self._term, self._context = term, term.context

    def start(self) -> Steps[None]:
        """The states that follow from what was read, and leaders for those that have none."""
        context = self._context
        for is_turn, partition in paced(list(context.partitions())):
            if is_turn:
                yield
            leadership = context.leadership(partition)
            if leadership is None:
                state = NEW
            else:
                state = ONLINE if context.is_online(leadership.leader, partition) else OFFLINE
            context.set_partition_state(partition, state)
        yield from self.lead_leaderless()

    def lead_leaderless(self, topic: str | None = None) -> Steps[bool]:
        """Elects leaders for the partitions that are new or offline; whether there was any success."""
        found = self._context.partitions_in((OFFLINE, NEW), topic)
        partitions = [each for each in found if each[0] not in self._context.deleting]
        failures = yield from self.elect(partitions)
        return len(failures) < len(partitions)

    def create(self, partitions: Sequence[Partition]) -> Steps[None]:
        for partition in self._allowed(partitions, NEW):
            self._context.set_partition_state(partition, NEW)
        yield

    def take_offline(self, partitions: Sequence[Partition]) -> Steps[None]:
        for partition in self._allowed(partitions, OFFLINE):
            self._context.set_partition_state(partition, OFFLINE)
        yield

    def remove(self, partitions: Sequence[Partition]) -> Steps[None]:
        for partition in self._allowed(partitions, NON_EXISTENT):
            self._context.set_partition_state(partition, NON_EXISTENT)
        yield

    def elect(self, partitions: Sequence[Partition], rule: Rule | None = None) -> Steps[dict[Partition, str]]:
        """A leader for each, by the rule for offline partitions if no other is given; why those failed that did. Who is
        elected, and who follows, is told. The first attempt is made with what was read or written last: a state that
        somebody else has changed since is not written, and is read then."""
        failures: dict[Partition, str] = {}
        batch = self._term.batch()
        allowed = self._allowed(partitions, ONLINE)
        new = [each for each in allowed if self._context.partition_state(each) == NEW]
        remaining = [each for each in allowed if self._context.partition_state(each) != NEW]
        if new:
            failures.update((yield from self._initialize(new, batch)))
        known = {each: state for each in remaining if (state := self._context.leadership(each)) is not None}
        refused: dict[Partition, str] = {}
        yield from self._choose(known, rule, batch, refused)
        remaining = [each for each in remaining if known.get(each) == self._context.leadership(each)]
        while remaining:
            remaining = yield from self._elect(remaining, rule, batch, failures)
        yield from batch.send()
        # All that they are to be moved to may be in sync from the beginning.
        yield from self._term.reassignments.isr_changed([each for each in new if each not in failures])
        for partition, why in failures.items():
            yield Note(f"no leader for {partition[0]}-{partition[1]}: {why}", is_warning=True)
        return failures

    def _allowed(self, partitions: Sequence[Partition], state: str | None) -> list[Partition]:
        before = BEFORE[state]
        return [each for each in partitions if self._context.partition_state(each) in before]

    # -- the first leader

    def _initialize(self, partitions: list[Partition], batch: Batch) -> Steps[dict[Partition, str]]:
        """The first leader is the first replica that is alive, and all that are alive are in sync."""
        context = self._context
        failures: dict[Partition, str] = {}
        states: dict[Partition, Leadership] = {}
        for is_turn, partition in paced(partitions):
            if is_turn:
                yield
            replicas = context.assignment(partition).replicas
            alive = tuple(each for each in replicas if context.is_online(each, partition))
            if alive:
                states[partition] = Leadership(alive[0], 0, alive, controller_epoch=self._term.epoch)
            else:
                failures[partition] = f"none of its replicas {list(replicas)} is alive"
        written = yield from self._term.store.create_states(states)
        failures.update(written.failed)
        # What is there already was written by an attempt whose answer was lost, or by a controller that died.
        found = (yield from self._term.store.states(written.conflicts)) if written.conflicts else {}
        for is_turn, (partition, leadership) in paced({**written.done, **found}.items()):
            if is_turn:
                yield
            context.lead(partition, leadership)
            context.set_partition_state(partition, ONLINE)
            assignment = context.assignment(partition)
            batch.order(leadership.isr, partition, leadership, assignment, is_new=True)
        gone = [each for each in found if not context.is_online(found[each].leader, each)]
        yield from self.take_offline(gone)
        while gone:
            gone = yield from self._elect(gone, None, batch, failures)
        return failures

    # -- the next one

    def _elect(
        self, partitions: list[Partition], rule: Rule | None, batch: Batch, failures: dict[Partition, str]
    ) -> Steps[list[Partition]]:
        """One attempt; those that somebody else changed meanwhile are to be tried again."""
        states = yield from self._term.store.states(partitions)
        for partition in partitions:
            if partition not in states:
                failures[partition] = "its state is not in ZooKeeper"
        return (yield from self._choose(states, rule, batch, failures))

    def _choose(
        self,
        states: Mapping[Partition, Leadership],
        rule: Rule | None,
        batch: Batch,
        failures: dict[Partition, str],
    ) -> Steps[list[Partition]]:
        context = self._context
        rules = yield from self._rules(states, rule)
        recipients: dict[Partition, tuple[int, ...]] = {}
        chosen: dict[Partition, Leadership] = {}
        for is_turn, (partition, old) in paced(states.items()):
            if is_turn:
                yield
            elected = rules[partition](context, partition, old)
            if elected.leadership is None:
                failures[partition] = f"none of {list(old.isr)}, which are in sync, is alive"
            else:
                recipients[partition], chosen[partition] = elected.recipients, elected.leadership
        written = yield from self._term.store.write_states(chosen)
        failures.update(written.failed)
        for is_turn, (partition, leadership) in paced(written.done.items()):
            if is_turn:
                yield
            context.lead(partition, leadership)
            context.set_partition_state(partition, ONLINE)
            batch.order(recipients[partition], partition, leadership, context.assignment(partition))
        return written.conflicts

    def _rules(
        self, states: Mapping[Partition, Leadership], rule: Rule | None
    ) -> Steps[dict[Partition, Rule]]:
        if rule is not None:
            return dict.fromkeys(states, rule)
        context = self._context
        lost = {
            partition
            for partition, old in states.items()
            if not any(context.is_online(each, partition) for each in old.isr)
        }
        topics = sorted({partition[0] for partition in lost})
        enabled = (yield from self._term.store.unclean_elections(topics)) if topics else {}
        default = bool(self._term.config["unclean.leader.election.enable"])
        rules: dict[Partition, Rule] = {}
        for partition in states:
            own: Any = enabled.get(partition[0]) if partition in lost else False
            rules[partition] = partial(elections.offline, unclean=default if own is None else own)
        return rules
