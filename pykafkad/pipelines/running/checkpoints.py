"""Where queries stood when their process ended: a file each in a directory, for the next run of the script.

A file has the offsets that were read, the operators' state, and what the query meant: a checkpoint fits a query that
means the same. It is written whole beside the old one and then takes its place. What was written to topics after the
last one is written again by the next run: at least once.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import pickle
import time
from pathlib import Path
from typing import NamedTuple

from pykafkad.pipelines.analysis.session import Session
from pykafkad.pipelines.errors import StatementError
from pykafkad.pipelines.plan.topology import Plan, States
from pykafkad.pipelines.running.engine import Task
from pykafkad.pipelines.settings import ABOUT_BAD_RECORDS, CACHE, WITHOUT_EFFECT
from pykafkad.tools.admin import Partition

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

FORMAT = 1
PERIOD_S = 1.0
SHARE = 10
"""Writing takes at most one part in so many of the time."""

KEEP, ANEW = "keep", "anew"
MEANINGLESS = frozenset(
    ("auto.offset.reset", "processing.guarantee", CACHE, *ABOUT_BAD_RECORDS, *WITHOUT_EFFECT)
)
"""Properties that may change without a query meaning something else."""


class Checkpoint(NamedTuple):
    meaning: str
    operators: list[str]
    positions: dict[Partition, int]
    states: States


class Kept:
    """A directory that one run has at a time, whichever host its queries run in.

    `changed`: what to do with a query whose checkpoint is of another meaning: KEEP its state and offsets, begin ANEW,
    or refuse (None)."""

    def __init__(self, directory: str, changed: str | None = None) -> None:
        self._directory, self._changed = Path(directory), changed
        self._directory.mkdir(parents=True, exist_ok=True)
        self._lock = self._locked()

    def fits(self, session: Session, query_id: str, meaning: str, operators: list[str], file: Path) -> bool:
        """Whether a query goes on from a checkpoint of this meaning and with the state of these operators."""
        if meaning == meaning_of(session, query_id):
            return True
        if self._changed is None:
            raise StatementError(
                f"{query_id} means something else than when its checkpoint was made ({file}). "
                "--changed keep goes on with its state where that fits, --changed anew begins without it."
            )
        if self._changed == ANEW:
            return False
        if operators != operators_of(session.meanings[query_id].plan):
            raise StatementError(
                f"The state of {query_id} does not fit it any more: --changed anew begins without it"
            )
        return True

    def close(self) -> None:
        os.close(self._lock)

    def _locked(self) -> int:
        descriptor = os.open(self._directory / "lock", os.O_CREAT | os.O_RDWR, 0o600)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            os.close(descriptor)
            raise StatementError(
                f"{self._directory} is in use: another run keeps its checkpoints there"
            ) from None
        return descriptor


class Checkpoints(Kept):
    """Those of the plain loop."""

    def __init__(self, directory: str, changed: str | None = None) -> None:
        super().__init__(directory, changed)
        self._due = time.monotonic() + PERIOD_S
        self._kept: dict[str, dict[Partition, int]] = {}

    def found(self, session: Session, query_id: str) -> Checkpoint | None:
        """What a query goes on from; None if it begins."""
        name = name_of(session, query_id)
        checkpoint = self._read(name)
        if checkpoint is None:
            return None
        fits = self.fits(session, query_id, checkpoint.meaning, checkpoint.operators, self._file(name))
        return checkpoint if fits else None

    def _read(self, name: str) -> Checkpoint | None:
        try:
            version, *parts = pickle.loads(self._file(name).read_bytes())
        except FileNotFoundError:
            return None
        except Exception as error:
            raise StatementError(
                f"{self._file(name)} cannot be read: {error}. Without it {name} begins anew"
            ) from None
        if version != FORMAT:
            raise StatementError(f"{self._file(name)} was made by another version of pykafkad")
        return Checkpoint(*parts)

    def keep(self, session: Session, tasks: dict[str, Task], now: bool = False) -> None:
        """Writes what has changed, when that is due. What the tasks wrote must have been acknowledged."""
        begun = time.monotonic()
        if begun < self._due and not now:
            return
        for query_id, task in tasks.items():
            if task.problem is None and self._kept.get(query_id) != task.reading.merging.taken:
                self._write(session, query_id, task)
        self._due = time.monotonic() + max(PERIOD_S, SHARE * (time.monotonic() - begun))

    def _write(self, session: Session, query_id: str, task: Task) -> None:
        positions = dict(task.reading.merging.taken)
        content: tuple[Any, ...] = (
            FORMAT,
            meaning_of(session, query_id),
            operators_of(task.plan),
            positions,
            task.states,
        )
        file = self._file(name_of(session, query_id))
        beside = file.with_suffix(".new")
        with open(beside, "wb") as written:
            pickle.dump(content, written, pickle.HIGHEST_PROTOCOL)
            written.flush()
            os.fsync(written.fileno())
        os.replace(beside, file)
        self._kept[query_id] = positions

    def _file(self, name: str) -> Path:
        return self._directory / f"{name}.checkpoint"


def name_of(session: Session, query_id: str) -> str:
    """By what a query writes to: of those that insert into the same stream, by their order."""
    queries = session.catalog.queries
    sink = queries[query_id].sink
    safe = "".join(
        letter if letter.isascii() and letter.isalnum() else f"-{ord(letter):x}-" for letter in sink
    )
    if not query_id.startswith("INSERTQUERY"):
        return safe
    alike = [one.id for one in queries.values() if one.sink == sink and one.id.startswith("INSERTQUERY")]
    return f"{safe}.{alike.index(query_id) + 1}"


def meaning_of(session: Session, query_id: str) -> str:
    """A hash of the query's statement, and of what it reads and writes."""
    catalog = session.catalog
    query = catalog.queries[query_id]
    sources = [catalog.sources[name] for name in sorted({*query.sources, query.sink})]
    properties = {name: value for name, value in catalog.properties.items() if name not in MEANINGLESS}
    said = repr((query.text, sources, sorted(properties.items())))
    return hashlib.sha256(said.encode()).hexdigest()


def operators_of(plan: Plan) -> list[str]:
    return [type(step.operator).__name__ for step in plan.steps]
