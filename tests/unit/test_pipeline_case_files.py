"""Cases in files: what is found, what is compared, how a difference is shown."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from pykafkad.pipelines.case_files import CaseError, CaseFiles, cases_in, difference, differences

SCRIPT = """
CREATE STREAM clicks (who STRING KEY, ms INT) WITH (kafka_topic='clicks', value_format='JSON');
CREATE STREAM slow AS SELECT * FROM clicks WHERE ms > 5;
"""
INPUTS = [{"topic": "clicks", "key": "a", "value": {"ms": 9}, "timestamp": 3}]
OUTPUTS = [{"topic": "SLOW", "key": "a", "value": {"MS": 9}}]


def write(
    directory: Path, inputs: Any = INPUTS, outputs: Any = OUTPUTS, script: str | None = SCRIPT
) -> CaseFiles:
    directory.mkdir(parents=True, exist_ok=True)
    (directory / "input.json").write_text(json.dumps({"inputs": inputs}))
    (directory / "output.json").write_text(json.dumps({"outputs": outputs}))
    if script is not None:
        (directory / "script.sql").write_text(script)
    return CaseFiles(directory / "script.sql", directory / "input.json", directory / "output.json")


def test_what_is_expected_passes(tmp_path: Path) -> None:
    timed = [{**OUTPUTS[0], "timestamp": 3}]
    assert differences([write(tmp_path / "a"), write(tmp_path / "b", outputs=timed)], "local") == [[], []]


def test_a_difference_is_a_diff(tmp_path: Path) -> None:
    (lines,) = differences([write(tmp_path, outputs=[{**OUTPUTS[0], "value": {"MS": 8}}])], "local")
    assert [line for line in lines if line[0] in "+-"] == [
        '-{"topic": "SLOW", "key": "a", "value": {"MS": 8}}',
        '+{"topic": "SLOW", "key": "a", "value": {"MS": 9}}',
    ]


def test_order_counts_within_a_key_and_not_between_keys() -> None:
    def records(*keys_and_values: tuple[str, int]) -> list[dict[str, Any]]:
        return [{"topic": "T", "key": key, "value": value} for key, value in keys_and_values]

    assert difference(records(("a", 1), ("b", 2)), records(("b", 2), ("a", 1))) == []
    assert difference(records(("a", 1), ("a", 2)), records(("a", 2), ("a", 1))) != []
    assert difference(records(("a", 1)), records(("a", 1), ("a", 1))) != []
    assert (
        difference(
            [{"topic": "T", "key": 1.0, "value": {"x": [2.0]}}],
            [{"topic": "T", "key": 1, "value": {"x": [2]}}],
        )
        == []
    )


def test_windows_are_told_apart() -> None:
    one = {"topic": "T", "key": "a", "value": 1, "window": {"start": 0, "end": 5}}
    assert difference([one], [{**one, "window": {"start": 0, "end": 9}}]) != []


def test_a_directory_s_cases_use_the_nearest_script(tmp_path: Path) -> None:
    write(tmp_path)
    write(tmp_path / "cases" / "one", script=None)
    assert [case.sql.parent for case in cases_in(tmp_path)] == [tmp_path, tmp_path]


@pytest.mark.parametrize(
    ("inputs", "outputs", "script", "reason"),
    [
        ([{"topic": "nowhere"}], OUTPUTS, SCRIPT, "no statement names topic nowhere"),
        ([{"key": 1}], OUTPUTS, SCRIPT, 'inputs[0] has no "topic"'),
        (INPUTS, {}, SCRIPT, 'has no list "outputs"'),
        (INPUTS, OUTPUTS, "CREATE STREM x;", "script.sql: line 1:8:"),
    ],
)
def test_what_is_no_case_is_refused(
    tmp_path: Path, inputs: Any, outputs: Any, script: str, reason: str
) -> None:
    with pytest.raises(CaseError) as refused:
        differences([write(tmp_path, inputs, outputs, script)], "local")
    assert reason in str(refused.value)


def test_a_directory_without_cases_or_with_two_scripts_is_refused(tmp_path: Path) -> None:
    with pytest.raises(CaseError, match=r"no input\.json"):
        list(cases_in(tmp_path))
    write(tmp_path)
    (tmp_path / "other.sql").write_text("")
    with pytest.raises(CaseError, match=r"other\.sql"):
        list(cases_in(tmp_path))
