"""What queries that run are to those who start and watch them, wherever they run."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Protocol

from pykafkad.pipelines.analysis.session import Session
from pykafkad.pipelines.plan.rows import Row
from pykafkad.pipelines.plan.topology import Plan, States
from pykafkad.tools.admin import Partition

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


class Counts:
    """What a query has done so far."""

    __slots__ = ("bad", "read", "written")

    def __init__(self) -> None:
        self.read = self.written = self.bad = 0


class RunningQuery(Protocol):
    id: str
    plan: Plan
    counts: Counts
    is_paused: bool
    problem: str | None
    """Why it has stopped."""

    @property
    def stands(self) -> Mapping[Partition, int]:
        """The offsets behind what it has read."""

    @property
    def lag(self) -> dict[Partition, int]: ...

    @property
    def details(self) -> dict[str, Any]:
        """What else there is to say of how it gets on."""


class QueryEngine(Protocol):
    exactly_once: bool
    """Whether it can write exactly once."""
    pause_s: float
    """Between two steps when the last one found nothing to do."""

    @property
    def tasks(self) -> Mapping[str, RunningQuery]: ...

    def start(
        self,
        query_id: str,
        plan: Plan,
        starts: Mapping[Partition, int],
        states: States | None = None,
        exactly_once: bool = False,
    ) -> None: ...

    def begin(self, session: Session) -> None:
        """The statements so far are obeyed: what has waited for that begins."""

    def stop(self, query_id: str) -> None: ...

    def stop_at_ends(self) -> None:
        """Of topics that no query writes only what is there now is read. To be said before the first step."""

    def step(self) -> bool:
        """Looks after the queries; whether there may be more to do at once."""

    def pushed(self, plan: Plan, starts: Mapping[Partition, int]) -> Iterator[Row | None] | None:
        """The rows of a push query, None while there are none; None: whoever asks runs it."""

    def is_behind(self) -> bool:
        """Whether anything is left that a query which runs has not read."""

    def close(self) -> None: ...
