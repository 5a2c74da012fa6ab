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
