"""The table on standard output and the same in JSON."""

from __future__ import annotations

import json
import os
import platform
import time
from pathlib import Path
from typing import Any, NamedTuple

from bench.plan import Outcome
from bench.targets import ROWS, Row


def values(outcome: Outcome, row: Row, side: str) -> list[float]:
    return [numbers[row.key] * row.scale for numbers in outcome.rounds.get(row.measure, {}).get(side, [])]


def result(outcome: Outcome, row: Row, ours: str, theirs: str) -> dict[str, Any] | None:
    mine, other = values(outcome, row, ours), values(outcome, row, theirs)
    if not mine and not other:
        return None
    one = row.reduce(mine) if mine else None
    two = row.reduce(other) if other else None
    ratio = one / two if one is not None and two else None
    met = row.target.met(one, ratio) if row.target and one is not None else None
    return {
        "name": row.title.strip() if not row.title.startswith(" ") else f"{row.measure}: {row.title.strip()}",
        "title": row.title,
        "unit": row.unit,
        "ours": one,
        "kafka": two,
        "ratio": ratio,
        "target": str(row.target) if row.target else None,
        "met": met,
        "rounds": {"ours": mine, "kafka": other},
    }


def results(outcome: Outcome, ours: str, theirs: str, rows: list[Row] = ROWS) -> list[dict[str, Any]]:
    found = (result(outcome, row, ours, theirs) for row in rows)
    return [row for row in found if row is not None]


def number(value: float | None) -> str:
    if value is None:
        return "-"
    if value >= 1000:
        return f"{value:,.0f}"
    return f"{value:.1f}" if value >= 10 else f"{value:.3f}"


def table(rows: list[dict[str, Any]], theirs: str = "kafka") -> str:
    head = ["", "unit", "pykafkad", theirs.capitalize(), "ratio", "target", "met"]
    lines = [head]
    for row in rows:
        met = {True: "yes", False: "NO", None: ""}[row["met"]]
        numbers = [number(row[key]) for key in ("ours", "kafka", "ratio")]
        lines.append([row["title"], row["unit"], *numbers, row["target"] or "", met])
    widths = [max(len(line[column]) for line in lines) for column in range(len(head))]
    text = []
    for line in lines:
        left = [cell.ljust(width) for cell, width in zip(line[:2], widths[:2], strict=True)]
        right = [cell.rjust(width) for cell, width in zip(line[2:], widths[2:], strict=True)]
        text.append("  ".join(left + right).rstrip())
    text.insert(1, "-" * max(map(len, text)))
    return "\n".join(text)


def write_json(path: Path, rows: list[dict[str, Any]], outcome: Outcome, sizes: NamedTuple) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    document = {
        "when": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        "machine": {
            "cpus": os.cpu_count(),
            "kernel": platform.release(),
            "architecture": platform.machine(),
            "python": platform.python_version(),
        },
        "sizes": sizes._asdict(),
        "rows": [{key: value for key, value in row.items() if key != "title"} for row in rows],
        "failures": outcome.failures,
    }
    path.write_text(json.dumps(document, indent=1) + "\n")
