"""Where queries in Spark stand: Spark's own checkpoint, a directory for each query, and beside it what it is of.

NAME.json has the meaning of the query, its operators, and an identity that is made with the checkpoint: by it the sink
knows which batches of this checkpoint are written, and nothing of those of an earlier one. The form of the state is there
too: a query goes on in the form in which it began.
"""

from __future__ import annotations

import json
import os
import shutil
import tempfile
import uuid
from pathlib import Path
from typing import NamedTuple

from pykafkad.pipelines.analysis.session import Session
from pykafkad.pipelines.errors import StatementError
from pykafkad.pipelines.plan.topology import Plan
from pykafkad.pipelines.running.checkpoints import ANEW, Kept, meaning_of, name_of, operators_of
from pykafkad.pipelines.spark_sql.forms import OPERATORS, state_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


class Found(NamedTuple):
    name: str
    identity: str
    goes_on: bool
    """Whether Spark has read anything from it."""
    compiles: bool = True
    """Not if its state is our operators', from before the query could be compiled."""


class SparkCheckpoints(Kept):
    """In a directory for the occasion if none is given: then queries begin anew, but may be tried again."""

    def __init__(self, directory: str | None = None, changed: str | None = None) -> None:
        self._occasion = tempfile.TemporaryDirectory(prefix="pykafkad-sql-") if directory is None else None
        super().__init__(self._occasion.name if self._occasion else str(directory), changed)

    @property
    def directory(self) -> Path:
        return self._directory

    def found(self, session: Session, query_id: str) -> Found:
        """A query's checkpoint, which is made if there is none that it goes on from."""
        name = name_of(session, query_id)
        file, home = self._directory / f"{name}.json", self._directory / name
        plan, kept = session.meanings[query_id].plan, _read(file)
        if kept is not None and not has_read(home):
            kept["state"] = state_of(plan)
        if kept is None or not self._goes_on(session, query_id, kept, file):
            file.unlink(missing_ok=True)
            shutil.rmtree(home, ignore_errors=True)
            kept = {"identity": f"{name}-{uuid.uuid4()}", "state": state_of(plan)}
        state = kept.get("state", OPERATORS)
        about = {"meaning": meaning_of(session, query_id), "operators": operators_of(plan)}
        _write(file, kept | about)
        return Found(name, kept["identity"], has_read(home), _compiles(plan, state))

    def _goes_on(self, session: Session, query_id: str, kept: dict[str, Any], file: Path) -> bool:
        """Operators' state is gone on with by operators, though the query is compiled by now."""
        if not self.fits(session, query_id, kept["meaning"], kept["operators"], file):
            return False
        state, now = kept.get("state", OPERATORS), state_of(session.meanings[query_id].plan)
        if now in ("", state):
            return True
        if self._changed == ANEW:
            return False
        if state != OPERATORS:
            raise StatementError(
                f"The state of {query_id} ({file}) was kept by an aggregation of Spark's own, and the query is not, or "
                "no longer just that: --changed anew begins without it"
            )
        return True

    def close(self) -> None:
        super().close()
        if self._occasion is not None:
            self._occasion.cleanup()


def has_read(home: Path) -> bool:
    return any((home / "offsets").glob("[0-9]*"))


def _compiles(plan: Plan, state: str) -> bool:
    return state != OPERATORS or state_of(plan) in ("", OPERATORS)


def _read(file: Path) -> dict[str, Any] | None:
    try:
        found: dict[str, Any] = json.loads(file.read_text())
    except FileNotFoundError:
        return None
    except ValueError as error:
        raise StatementError(f"{file} cannot be read: {error}. Without it its query begins anew") from None
    return found


def _write(file: Path, content: dict[str, Any]) -> None:
    beside = file.with_suffix(".new")
    with open(beside, "w") as written:
        json.dump(content, written)
        written.flush()
        os.fsync(written.fileno())
    os.replace(beside, file)
