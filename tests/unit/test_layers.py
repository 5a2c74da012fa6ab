"""What import-linter cannot see: files are opened by a builtin, which nobody imports."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

import pykafkad

PACKAGE = Path(pykafkad.__file__).parent
WITHOUT_FILES = sorted(path for room in ("handlers", "pure") for path in (PACKAGE / room).rglob("*.py"))


@pytest.mark.parametrize("path", WITHOUT_FILES, ids=lambda path: f"{path.parent.name}/{path.name}")
def test_handlers_and_pure_open_no_file(path: Path) -> None:
    calls = (node.func for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.Call))
    assert [f"line {call.lineno}" for call in calls if isinstance(call, ast.Name) and call.id == "open"] == []


# -- knots: modules that need each other, for types or inside of functions too


LARGEST_KNOT = 9


def test_no_more_modules_need_each_other_than_one_idea_takes() -> None:
    modules = {name_of(path): path for path in PACKAGE.rglob("*.py")}
    numbers = {name: number for number, name in enumerate(modules)}
    reached = [needed_by(path, numbers) for path in modules.values()]
    for middle in range(len(reached)):
        for start, found in enumerate(reached):
            if found >> middle & 1:
                reached[start] |= reached[middle]
    names = list(numbers)
    knots = {
        tuple(
            name for end, name in enumerate(names) if reached[start] >> end & 1 and reached[end] >> start & 1
        )
        for start in range(len(names))
    }
    assert [knot for knot in knots if len(knot) > LARGEST_KNOT] == []
    assert max(map(len, knots)) > 1, "there are some, so they are found"


def name_of(path: Path) -> str:
    parts = path.relative_to(PACKAGE.parent).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def needed_by(path: Path, numbers: dict[str, int]) -> int:
    """The modules that it imports anywhere, as the bits of their numbers."""
    found = 0
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom) and node.module in numbers:
            for alias in node.names:
                found |= 1 << numbers.get(f"{node.module}.{alias.name}", numbers[node.module])
    return found & ~(1 << numbers[name_of(path)])
