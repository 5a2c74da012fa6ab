"""Tables that fit."""

from __future__ import annotations

import pytest

from pykafkad.pipelines.answers import Grid, Message
from pykafkad.pipelines.rendering import lines, wide


def test_a_table_that_fits_is_as_wide_as_its_texts() -> None:
    grid = Grid(("Name", "Type"), [("ID", "INTEGER"), ("名前", "STRING")], title="T", note="n")
    assert list(lines(grid, 80)) == [
        "T",
        " Name | Type",
        "----------------",
        " ID   | INTEGER",
        " 名前 | STRING",
        "----------------",
        "n",
    ]


@pytest.mark.parametrize("width", [24, 40, 60, 79])
def test_a_table_that_does_not_fit_is_wrapped_and_loses_nothing(width: int) -> None:
    grid = Grid(("A", "Long one"), [("x", "some words " * 20), ("y", "z" * 200), ("é", "漢字" * 40)])
    shown = list(lines(grid, width))
    assert max(map(wide, shown)) <= width
    kept = "".join(shown)
    assert [kept.count(one) for one in ("some", "words", "z", "漢")] == [20, 20, 200, 40]


def test_narrow_columns_keep_their_width_beside_wide_ones() -> None:
    grid = Grid(("ID", "A", "B"), [("12", "a" * 100, "b" * 100)])
    rows = list(lines(grid, 50))
    assert rows[2].startswith(" 12 | aaaaaaaa") and max(map(len, rows)) <= 50


def test_control_characters_are_shown_and_lines_stay_lines() -> None:
    grid = Grid(("A",), [("one\ntwo\x1b[31m",)])
    assert list(lines(grid, 80))[2:4] == [" one", " two\\x1b[31m"]


def test_a_message_is_its_lines() -> None:
    assert list(lines(Message("a\nb"), 1)) == ["a", "b"]
