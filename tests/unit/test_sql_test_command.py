"""`pykafkad sql test`: what it takes, and what it says."""

from __future__ import annotations

from pathlib import Path

import pytest

from pykafkad.pipelines.commands import sql, test
from pykafkad.pipelines.commands.arguments import UsageError
from tests.unit.test_pipeline_case_files import write


def said(capsys: pytest.CaptureFixture[str], *arguments: str, code: int) -> str:
    assert sql.main(["test", *arguments]) == code
    captured = capsys.readouterr()
    return captured.out + captured.err


def test_a_case_in_three_files(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    case = write(tmp_path)
    named = [str(case.sql), "-i", str(case.inputs), "-o", str(case.outputs)]
    assert said(capsys, *named, code=0) == "1 of 1 cases passed\n"


def test_directories_of_cases_and_a_difference(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write(tmp_path / "good")
    write(tmp_path / "bad", outputs=[])
    shown = said(capsys, str(tmp_path), code=1)
    assert f"{tmp_path / 'bad'}: - is expected, + came" in shown
    assert '+{"topic": "SLOW", "key": "a"' in shown and shown.endswith("1 of 2 cases passed\n")


def test_what_is_no_case_is_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    shown = said(capsys, str(tmp_path / "nowhere"), code=1)
    assert "there is no such directory" in shown and shown.count("\n") == 1


@pytest.mark.parametrize(
    "arguments", [[], ["x.sql", "-i", "a"], ["x", "y", "-i", "a", "-o", "b"], ["x", "--host", "z"], ["-x"]]
)
def test_a_wrong_command_line_is_refused(arguments: list[str]) -> None:
    with pytest.raises(UsageError):
        test.main(arguments)


def test_what_spark_lacks_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(test, "find_spec", lambda name: None)
    assert test.missing_for_spark() == "Spark is not installed here: pip install pykafkad[pipelines]"
    monkeypatch.setattr(test, "find_spec", lambda name: object())
    monkeypatch.setenv("JAVA_HOME", "/nowhere")
    assert test.missing_for_spark() == "there is no Java for Spark: none in JAVA_HOME=/nowhere"
