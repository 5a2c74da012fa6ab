"""Other projects' suites: a runner that did not finish has not passed, nor has one that ran other tests."""

from __future__ import annotations

from pathlib import Path

import pytest

from compat_tests.suites import kafka_python
from compat_tests.suites.__main__ import missed, told

REPORT = """<?xml version="1.0" encoding="utf-8"?><testsuites><testsuite name="pytest">
<testcase classname="test.integration.test_a_integration" name="test_one[None]" time="1"/>
<testcase classname="test.integration.test_a_integration" name="test_two"><failure message="x">y</failure></testcase>
<testcase classname="test.integration.test_a_integration.TestIt" name="test_three"><skipped/></testcase>
<testcase classname="test.integration.test_a_integration" name="test_four"/>
<testcase classname="test.integration.test_a_integration" name="test_four"><error message="x">y</error></testcase>
</testsuite></testsuites>"""
ONE, TWO = "test_a_integration.py::test_one[None]", "test_a_integration.py::test_two"
THREE, FOUR = "test_a_integration.py::TestIt::test_three", "test_a_integration.py::test_four"


def test_what_each_test_came_to(tmp_path: Path) -> None:
    report = tmp_path / "report.xml"
    report.write_text(REPORT)
    outcomes = kafka_python.outcomes_in(report, 1)
    assert outcomes == {ONE: "PASSED", TWO: "FAILED", THREE: "SKIPPED", FOUR: "ERROR"}


@pytest.mark.parametrize("code", [2, 3, 4, 5, -9, -11])
def test_a_runner_that_crashes_has_told_nothing(tmp_path: Path, code: int) -> None:
    report = tmp_path / "report.xml"
    report.write_text(REPORT)
    with pytest.raises(RuntimeError, match=f"ended with {code}"):
        kafka_python.outcomes_in(report, code)


def test_a_runner_without_a_report_has_told_nothing(tmp_path: Path) -> None:
    with pytest.raises(RuntimeError, match="no report"):
        kafka_python.outcomes_in(tmp_path / "report.xml", 0)


@pytest.mark.parametrize(
    ("outcomes", "wrong"),
    [
        ({"a": "PASSED", "b": "PASSED"}, 0),
        ({"a": "PASSED", "b": "PASSED", "later": "FAILED", "other": "SKIPPED"}, 0),
        ({"a": "PASSED"}, 1),
        ({}, 2),
        ({"a": "PASSED", "b": "SKIPPED"}, 1),
        ({"a": "PASSED", "b": "FAILED"}, 1),
        ({"a": "PASSED", "b": "PASSED", "later": "PASSED"}, 1),
        ({"a": "PASSED", "b": "PASSED", "other": "PASSED"}, 1),
        ({"a": "PASSED", "b": "PASSED", "other": "ERROR"}, 1),
    ],
)
def test_those_on_the_list_pass_and_no_others(outcomes: dict[str, str], wrong: int) -> None:
    passes = ["a", "b"]
    assert told(outcomes, passes, {"later": "transactions"}) + missed(outcomes, passes) == wrong
