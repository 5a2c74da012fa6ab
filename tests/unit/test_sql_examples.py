"""The examples: every directory's case, and that each says what it is for."""

from __future__ import annotations

from pathlib import Path

import pytest

from pykafkad.pipelines.case_files import cases_in, differences
from pykafkad.pipelines.checking import Checker

EXAMPLES = Path(__file__).parents[2] / "examples"
DIRECTORIES = sorted(path for path in EXAMPLES.iterdir() if path.is_dir())


@pytest.mark.parametrize("directory", DIRECTORIES, ids=lambda path: path.name)
def test_an_example_does_what_its_case_says(directory: Path) -> None:
    cases = list(cases_in(directory))
    assert differences(cases, "local") == [[] for _ in cases]
    assert all('"topic"' in case.outputs.read_text() for case in cases), "a case that expects nothing"


@pytest.mark.parametrize("directory", DIRECTORIES, ids=lambda path: path.name)
def test_an_example_is_explained_and_its_script_has_no_mistake(directory: Path) -> None:
    assert f"]({directory.name})" in (EXAMPLES / "README.md").read_text()
    assert len((directory / "README.md").read_text().splitlines()) >= 8
    for script in directory.glob("*.sql"):
        assert list(Checker().script(script.read_text(), script.name)) == []


def test_the_examples_are_there() -> None:
    assert {"balances", "parquet", "postgres", "retries", "trucks", "word_count"} <= {
        path.name for path in DIRECTORIES
    }
