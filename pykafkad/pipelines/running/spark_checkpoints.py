"""Where queries in Spark stand: Spark's own checkpoint, a directory for each query, and beside it what it is of.

NAME.json has the meaning of the query, its operators, and an identity that is made with the checkpoint: by it the sink
knows which batches of this checkpoint are written, and nothing of those of an earlier one.
"""

from __future__ import annotations

import json
import os
import shutil
import tempfile
import uuid
from pathlib import Path
from typing import Any, NamedTuple

from pykafkad.pipelines.analysis.session import Session
from pykafkad.pipelines.errors import StatementError
from pykafkad.pipelines.running.checkpoints import Kept, meaning_of, name_of, operators_of


class Found(NamedTuple):
    name: str
    identity: str
    goes_on: bool
    """Whether Spark has read anything from it."""


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
        kept = _read(file)
        if kept is None or not self.fits(session, query_id, kept["meaning"], kept["operators"], file):
            file.unlink(missing_ok=True)
            shutil.rmtree(home, ignore_errors=True)
            kept = {"identity": f"{name}-{uuid.uuid4()}"}
        meaning, operators = meaning_of(session, query_id), operators_of(session.meanings[query_id].plan)
        _write(file, kept | {"meaning": meaning, "operators": operators})
        return Found(name, kept["identity"], any((home / "offsets").glob("[0-9]*")))

    def close(self) -> None:
        super().close()
        if self._occasion is not None:
            self._occasion.cleanup()


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
