"""What a controller reads from ZooKeeper and writes there, as the machine sees it.

Each write happens only if the controller epoch is still this term's; else it raises Moved, and nothing is written. Reads
marked "watched" tell of the next change by an event.
"""

from __future__ import annotations

from typing import NamedTuple, Protocol

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from pykafkad.pure.controller.facts import Assignment, Broker, Leadership, Partition
    from pykafkad.pure.controller.intents import Steps


class Moved(Exception):
    """Somebody else is the controller by now, or the session is over."""


class StoreFailed(Exception):
    """ZooKeeper refused for a reason that the controller does not know what to do about."""


class Won(NamedTuple):
    """An election: the controller epoch, and the version of its node, which all writes are conditional on."""

    epoch: int
    epoch_version: int


class TopicNode(NamedTuple):
    id: bytes | None
    assignments: Mapping[int, Assignment]


class Written(NamedTuple):
    done: dict[Partition, Leadership]  # with their new partition epochs
    conflicts: list[Partition]  # somebody else wrote them meanwhile
    failed: dict[Partition, str]


class Elections(Protocol):
    """What a candidate needs."""

    def controller(self) -> Steps[int]:
        """Its id, or -1. Watched."""

    def stand(self) -> Steps[Won | None]:
        """None: somebody else is elected, or about to be."""

    def resign(self, won: Won) -> Steps[None]:
        """Removes the controller's node, if it is of that term."""

    def term(self, won: Won) -> Store: ...


class Store(Protocol):
    """What a controller needs."""

    def begin(self) -> Steps[None]:
        """Watches what is not read, and creates what the first controller of a cluster creates."""

    def brokers(self) -> Steps[dict[int, Broker]]:
        """Watched: who comes and goes."""

    def broker(self, broker_id: int) -> Steps[Broker | None]:
        """Watched: its data."""

    def topics(self) -> Steps[list[str]]:
        """Watched: which there are."""

    def topic_nodes(self, topics: Sequence[str]) -> Steps[dict[str, TopicNode]]:
        """Those that exist. Watched: their data."""

    def write_topic(
        self,
        topic: str,
        topic_id: bytes | None,
        assignments: Mapping[int, Assignment],
        *,
        only_these: bool = False,
    ) -> Steps[None]:
        """Other partitions stay as they are, unless it is to have `only_these`."""

    def new_topic_id(self) -> bytes: ...
    def states(self, partitions: Sequence[Partition]) -> Steps[dict[Partition, Leadership]]:
        """Those that exist."""

    def create_states(self, states: Mapping[Partition, Leadership]) -> Steps[Written]: ...
    def write_states(self, states: Mapping[Partition, Leadership]) -> Steps[Written]: ...

    def deletions(self) -> Steps[list[str]]:
        """Watched: which topics are to be deleted."""

    def forget_deletions(self, topics: Iterable[str]) -> Steps[None]: ...
    def delete_topic(self, topic: str) -> Steps[None]:
        """All there is of it; that it is to be deleted is forgotten last."""

    def unclean_elections(self, topics: Iterable[str]) -> Steps[dict[str, bool | None]]:
        """unclean.leader.election.enable of each topic; None: the broker's default counts."""

    def isr_changes(self) -> Steps[tuple[list[str], list[Partition]]]:
        """Notifications and what they name. Watched."""

    def log_dir_failures(self) -> Steps[tuple[list[str], list[int]]]:
        """Notifications and the brokers they name. Watched."""

    def forget_isr_changes(self, names: Sequence[str]) -> Steps[None]: ...
    def forget_log_dir_failures(self, names: Sequence[str]) -> Steps[None]: ...

    def asked_reassignments(self) -> Steps[dict[Partition, tuple[int, ...]]]:
        """Of tools before 2.4. Watched, also while it does not exist."""

    def write_asked_reassignments(self, targets: Mapping[Partition, tuple[int, ...]]) -> Steps[None]:
        """Removes the node if there are none."""

    def asked_elections(self) -> Steps[list[Partition]]:
        """Of tools before 2.4. Watched, also while it does not exist."""

    def forget_asked_elections(self) -> Steps[None]: ...

    def next_producer_ids(self, broker_id: int) -> Steps[tuple[int, int]]:
        """The first of a block of producer ids that nobody else gets, and how many they are."""
