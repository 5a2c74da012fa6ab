"""Leadership goes back to the preferred replicas: on request, and by itself where a broker leads too little of what is
its own (auto.leader.rebalance.enable). Unclean elections on request are here too."""

from __future__ import annotations

from functools import partial

from pykafkad import errors
from pykafkad.pure.controller import elections
from pykafkad.pure.controller.events import BalanceDue
from pykafkad.pure.controller.facts import NO_LEADER
from pykafkad.pure.controller.intents import After

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from pykafkad.pure.controller.events import ElectLeaders
    from pykafkad.pure.controller.facts import Partition
    from pykafkad.pure.controller.intents import Steps
    from pykafkad.pure.controller.term import Term

FIRST_MS = 5_000
Outcome = int | tuple[int, str | None]  # who leads now, or an error


class Balance:
    def __init__(self, term: Term) -> None:
        self._term, self._context = term, term.context

    def start(self) -> Steps[None]:
        if self._term.config["auto.leader.rebalance.enable"]:
            yield After(FIRST_MS, BalanceDue())

    def due(self) -> Steps[None]:
        seconds = self._term.config["leader.imbalance.check.interval.seconds"]
        yield After(1_000 * seconds, BalanceDue())
        allowed = self._term.config["leader.imbalance.per.broker.percentage"] / 100
        own: dict[int, int] = {}
        elsewhere: dict[int, list[Partition]] = {}
        for partition in self._context.led_partitions():
            replicas = self._context.assignment(partition).replicas
            if replicas:
                own[replicas[0]] = own.get(replicas[0], 0) + 1
                if self._leader(partition) != replicas[0]:
                    elsewhere.setdefault(replicas[0], []).append(partition)
        yield
        for broker_id, partitions in sorted(elsewhere.items()):
            if len(partitions) / own[broker_id] > allowed:
                candidates = [each for each in partitions if self._can_lead(broker_id, each)]
                yield from self._term.partitions.elect(candidates, elections.preferred)

    def _leader(self, partition: Partition) -> int:
        leadership = self._context.leadership(partition)
        return NO_LEADER if leadership is None else leadership.leader

    def _can_lead(self, broker_id: int, partition: Partition) -> bool:
        leadership = self._context.leadership(partition)
        return (
            leadership is not None
            and broker_id in leadership.isr
            and self._context.is_online(broker_id, partition)
        )

    def asked_changed(self) -> Steps[None]:
        """/admin/preferred_replica_election."""
        asked = yield from self._term.store.asked_elections()
        wanted = [each for each in asked if self._refusal(each, is_unclean=False) is None]
        yield from self._term.partitions.elect(wanted, elections.preferred)
        if asked:
            yield from self._term.store.forget_asked_elections()

    def elect(self, event: ElectLeaders) -> Steps[dict[Partition, Outcome]]:
        """What each came to. If all are asked for, those that need no election are left out."""
        asked: Sequence[Partition] = event.partitions or ()
        if event.partitions is None:
            asked = [
                each
                for each in self._context.led_partitions()
                if not self._refusal(each, is_unclean=event.is_unclean)
            ]
        outcomes: dict[Partition, Outcome] = {}
        wanted: list[Partition] = []
        for partition in asked:
            refusal = self._refusal(partition, is_unclean=event.is_unclean)
            if refusal is None:
                wanted.append(partition)
            else:
                outcomes[partition] = refusal
        yield
        rule = partial(elections.offline, unclean=True) if event.is_unclean else elections.preferred
        code = (
            errors.ELIGIBLE_LEADERS_NOT_AVAILABLE
            if event.is_unclean
            else errors.PREFERRED_LEADER_NOT_AVAILABLE
        )
        failures = yield from self._term.partitions.elect(wanted, rule)
        for partition in wanted:
            if partition in failures:
                outcomes[partition] = (
                    code,
                    f"Failed to elect leader for partition {partition[0]}-{partition[1]}",
                )
            else:
                outcomes[partition] = self._leader(partition)
        return outcomes

    def _refusal(self, partition: Partition, *, is_unclean: bool) -> tuple[int, str | None] | None:
        if self._context.leadership(partition) is None:
            return errors.UNKNOWN_TOPIC_OR_PARTITION, "The partition does not exist."
        if partition[0] in self._context.deleting:
            return errors.INVALID_TOPIC_EXCEPTION, "The topic is being deleted"
        leader = self._leader(partition)
        if is_unclean:
            is_needed = not self._context.is_live(leader)
        else:
            is_needed = leader != self._context.assignment(partition).replicas[0]
        return (
            None
            if is_needed
            else (errors.ELECTION_NOT_NEEDED, errors.MESSAGES.get(errors.ELECTION_NOT_NEEDED))
        )
