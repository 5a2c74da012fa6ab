"""How queries get on: a line of a terminal that is overwritten, or JSON lines, once a second."""

from __future__ import annotations

import json
import time

from pykafkad.pipelines.running.hosting import QueryEngine, RunningQuery
from pykafkad.tools import output

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

PERIOD_S = 1.0


class Progress:
    """`watched`: somebody looks at a terminal."""

    def __init__(self, engine: QueryEngine, watched: bool) -> None:
        self._engine, self._watched = engine, watched
        self._line = output.Progress(watched)
        self._since = time.monotonic()
        self._before: dict[str, tuple[int, int]] = {}

    @property
    def is_due(self) -> bool:
        return time.monotonic() - self._since >= PERIOD_S

    def show(self, final: bool = False) -> None:
        now = time.monotonic()
        facts = [self._facts(task, now - self._since) for task in self._engine.tasks.values()]
        self._since = now
        if not self._watched:
            for one in facts:
                output.line(json.dumps(one))
            output.flush()
        elif final:
            for one in facts:
                output.line(_said(one))
        else:
            self._line.show("   ".join(map(_short, facts)))

    def _facts(self, task: RunningQuery, seconds: float) -> dict[str, Any]:
        """Of a query: what it has done, and how fast since it was last asked."""
        counts = task.counts
        read, written = self._before.get(task.id, (0, 0))
        self._before[task.id] = counts.read, counts.written
        return {
            "query": task.id,
            "state": "ERROR" if task.problem else "PAUSED" if task.is_paused else "RUNNING",
            "rows_in": counts.read,
            "rows_out": counts.written,
            "rows_in_per_second": round((counts.read - read) / max(seconds, 0.001)),
            "rows_out_per_second": round((counts.written - written) / max(seconds, 0.001)),
            "bad_records": counts.bad,
            "lag": {f"{topic}-{index}": count for (topic, index), count in task.lag.items()},
            **task.details,
            **({"problem": task.problem} if task.problem else {}),
        }


def _short(facts: dict[str, Any]) -> str:
    lag = sum(facts["lag"].values())
    return (
        f"{facts['query']}: {facts['rows_in_per_second']}/s in, {facts['rows_out_per_second']}/s out, lag {lag}"
        + (f", {facts['state']}" if facts["state"] != "RUNNING" else "")
    )


def _said(facts: dict[str, Any]) -> str:
    bad = f", {facts['bad_records']} left out" if facts["bad_records"] else ""
    return f"{facts['query']}: {facts['rows_in']} records in, {facts['rows_out']} out{bad}, {facts['state']}"
