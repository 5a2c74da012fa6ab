"""Files of requests that failed, and sending them again: to a new broker, on the same connections."""

from __future__ import annotations

import json
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from pykafkad.hot.wire import WireError
from tests.storm import lines as lines_module
from tests.storm.asked import from_json, to_json
from tests.storm.judge import Fault, judge
from tests.storm.lines import ONE, PIPELINE, Fate, Line
from tests.storm.names import Names
from tests.storm.shrinking import OutOfTime, fewest, smallest
from tests.storm.world import World

Tree = dict[str, Any]
ANSWER_SECONDS = 3.0
NEEDS_NEIGHBOUR = ("hold", "neighbour")


def trees_of(lines: Sequence[Line], names: Names) -> list[Tree]:
    """The lines of requests in the form of a file."""
    return [
        {
            "manner": line.manner,
            "piece": line.piece,
            "cut": line.cut,
            "requests": [to_json(request, names) for request in line.requests],
        }
        for line in lines
    ]


def lines_of(trees: Sequence[Tree], names: Names) -> list[Line]:
    return [
        Line(tree["manner"], [from_json(row, names) for row in tree["requests"]], tree["piece"], tree["cut"])
        for tree in trees
    ]


def again(trees: Sequence[Tree], *, neighbour: bool = True) -> tuple[list[Fault], list[Fate]]:
    """Send the same requests to a new broker."""
    with World(neighbour=neighbour) as world:
        if world.neighbour is not None:
            time.sleep(0.25)
            world.neighbour.report()
        lines = lines_of(trees, world.names)
        lines_module.run(lines, world.address, world.names.learn, answer_seconds=ANSWER_SECONDS)
        fates = [fate for line in lines for fate in line.fates]
        report = world.neighbour.report() if world.neighbour is not None else None
        return judge(world, fates, report), fates


def shrink(trees: list[Tree], fault: Fault, seconds: float) -> list[Tree] | None:
    """A smaller part of them with the same fault; None if it cannot be repeated."""
    deadline = time.monotonic() + seconds
    neighbour = fault.kind in NEEDS_NEIGHBOUR

    def fails(fewer: list[Tree]) -> bool:
        if time.monotonic() > deadline:
            raise OutOfTime
        try:
            return fault in again(fewer, neighbour=neighbour)[0]
        except WireError:
            return False  # it has become smaller than its version can have it

    single = alone(trees, fault)
    try:
        if single is not None and fails([single]):
            trees = [single]
        elif not fails(trees):
            return None
        trees = fewest(trees, fails)
        flat = [one(tree, row) for tree in trees for row in tree["requests"]]
        together = [
            {**trees[0], "manner": ONE, "requests": [row for tree in flat for row in tree["requests"]]}
        ]
        if fails(together):
            trees = together
        for index, tree in enumerate(trees):
            trees[index] = shrink_line(trees, index, tree, fails)
    except OutOfTime:
        pass
    return trees


def alone(trees: list[Tree], fault: Fault) -> Tree | None:
    """The one request that the fault names."""
    for tree in trees:
        for row in tree["requests"]:
            if row["number"] == fault.number:
                return one(tree, row)
    return None


def one(tree: Tree, row: Tree) -> Tree:
    return {**tree, "manner": ONE if tree["manner"] == ONE else PIPELINE, "requests": [row]}


def shrink_line(trees: list[Tree], index: int, tree: Tree, fails: Any) -> Tree:
    def with_requests(rows: list[Tree]) -> list[Tree]:
        return [*trees[:index], {**tree, "requests": rows}, *trees[index + 1 :]]

    rows = fewest(tree["requests"], lambda fewer: fails(with_requests(fewer)))
    for at in range(len(rows)):
        rows[at] = smallest(
            rows[at],
            lambda row, at=at: fails(with_requests([*rows[:at], row, *rows[at + 1 :]])),  # type: ignore[misc]
        )
    return {**tree, "requests": rows}


def save(trees: Sequence[Tree], fault: Fault) -> Path:
    handle, path = tempfile.mkstemp(prefix=f"storm-{fault.kind}-", suffix=".json")
    with open(handle, "w", encoding="utf-8") as file:
        json.dump({"fault": str(fault), "lines": list(trees)}, file)
    return Path(path)


def load(path: str) -> list[Tree]:
    with open(path, encoding="utf-8") as file:
        lines: list[Tree] = json.load(file)["lines"]
    return lines
