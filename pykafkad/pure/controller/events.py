"""What happens to a controller. A request carries a ticket, which is answered exactly once.

Answers are what each request asks for (see the method that answers), or an error code where it failed as a whole.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from pykafkad.pure.controller.facts import Leadership, Partition


class Ticket:
    """The place of an answer."""

    __slots__ = ("_done", "is_answered")

    def __init__(self, done: Callable[[Any], object]) -> None:
        self._done, self.is_answered = done, False

    def answer(self, result: Any) -> None:
        assert not self.is_answered
        self.is_answered = True
        self._done(result)


# -- the office itself


class ControllerChanged(NamedTuple):
    """The node of the controller was made, changed or deleted; or this broker may stand for election from now on, also
    because it has rested."""

    has_rested: bool = False


class SessionLost(NamedTuple):
    """Whatever this broker was, it is no longer."""


# -- what a watch says


class BrokersChanged(NamedTuple):
    pass


class BrokerModified(NamedTuple):
    broker_id: int


class TopicsChanged(NamedTuple):
    pass


class PartitionsModified(NamedTuple):
    topic: str


class DeletionsChanged(NamedTuple):
    pass


class ReassignmentsChanged(NamedTuple):
    """/admin/reassign_partitions, which tools before 2.4 write."""


class ElectionsChanged(NamedTuple):
    """/admin/preferred_replica_election, which tools before 2.4 write."""


class IsrChanged(NamedTuple):
    """Leaders of an inter.broker.protocol.version before 2.7 changed their ISRs."""


class LogDirsFailed(NamedTuple):
    pass


# -- what connections say


class BrokerRefuses(NamedTuple):
    """Nobody listens any more where that broker did: its process has ended, though its session has not."""

    broker_id: int
    broker_epoch: int


class BrokerAnswers(NamedTuple):
    """It takes connections again."""

    broker_id: int
    broker_epoch: int


# -- answers of brokers; of an older controller epoch or broker epoch they count for nothing


class LeaderAndIsrAnswered(NamedTuple):
    controller_epoch: int
    broker_id: int
    broker_epoch: int
    errors: Mapping[Partition, int]


class ReplicasDeleted(NamedTuple):
    """The answer to a StopReplica with deletions, of which these are the outcomes."""

    controller_epoch: int
    broker_id: int
    broker_epoch: int
    errors: Mapping[Partition, int]


# -- time, and configs


class BalanceDue(NamedTuple):
    pass


class UncleanElectionEnabled(NamedTuple):
    topic: str | None  # None: for all


# -- requests


class AlterPartition(NamedTuple):
    ticket: Ticket
    broker_id: int
    broker_epoch: int
    changes: Mapping[tuple[bytes | str, int], Leadership]  # by the topic's id, or its name in old versions
    ineligible: int  # the error code for a replica that may not be in sync, which depends on the version


class AllocateProducerIds(NamedTuple):
    ticket: Ticket
    broker_id: int
    broker_epoch: int


class ControlledShutdown(NamedTuple):
    ticket: Ticket
    broker_id: int
    broker_epoch: int


class ElectLeaders(NamedTuple):
    ticket: Ticket
    partitions: Sequence[Partition] | None  # None: all
    is_unclean: bool


class AlterReassignments(NamedTuple):
    ticket: Ticket
    targets: Mapping[Partition, Sequence[int] | None]  # None: cancel


class ListReassignments(NamedTuple):
    ticket: Ticket
    partitions: Sequence[Partition] | None


Event = (
    ControllerChanged
    | SessionLost
    | BrokersChanged
    | BrokerModified
    | TopicsChanged
    | PartitionsModified
    | DeletionsChanged
    | ReassignmentsChanged
    | ElectionsChanged
    | IsrChanged
    | LogDirsFailed
    | BrokerRefuses
    | BrokerAnswers
    | LeaderAndIsrAnswered
    | ReplicasDeleted
    | BalanceDue
    | UncleanElectionEnabled
    | AlterPartition
    | AllocateProducerIds
    | ControlledShutdown
    | ElectLeaders
    | AlterReassignments
    | ListReassignments
)
