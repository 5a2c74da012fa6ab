"""Aggregate functions: what rows add, tables take back, sessions merge."""

from __future__ import annotations

import math
import pickle
from collections.abc import Sequence
from decimal import Decimal
from typing import Any

import pytest

from pykafkad.pipelines import StatementError
from pykafkad.pipelines.expressions.schema import Column, Schema
from pykafkad.pipelines.functions.aggregating import Aggregate, compile_aggregate
from pykafkad.pipelines.functions.registry import AGGREGATE, FUNCTIONS
from pykafkad.pipelines.syntax.ast import FunctionCall
from pykafkad.pipelines.syntax.parser import parse_expression, parse_type


def aggregate(text: str, *types: str, **properties: Any) -> Aggregate:
    """The aggregate over columns X, Y, ... of the types, through a pickle as to a worker."""
    schema = Schema(tuple(Column(name, parse_type(of)) for name, of in zip("XYZ", types, strict=False)))
    call = parse_expression(text)
    assert isinstance(call, FunctionCall)
    loaded = pickle.loads(pickle.dumps(compile_aggregate(call, schema, properties=properties)))
    assert isinstance(loaded, Aggregate)
    return loaded


def results(of: Aggregate, rows: Sequence[tuple[Any, ...]]) -> list[Any]:
    """The result after each row. Every state is pickled on the way, and must not change afterwards."""
    state, found = of.initial(), []
    for row in rows:
        kept = pickle.dumps(state)
        following = of.add(state, row)
        assert pickle.dumps(state) == kept
        state = pickle.loads(pickle.dumps(following))
        found.append(of.result(state))
    return found


def after(of: Aggregate, rows: Sequence[tuple[Any, ...]]) -> Any:
    state = of.initial()
    for row in rows:
        state = of.add(state, row)
    return state


def rows(*values: Any) -> list[tuple[Any, ...]]:
    return [value if isinstance(value, tuple) else (value,) for value in values]


D = Decimal


@pytest.mark.parametrize(
    ("text", "types", "values", "expected"),
    [
        ("COUNT(*)", ["INTEGER"], [1, None], [1, 2]),
        ("COUNT(X)", ["INTEGER"], [1, None, 2], [1, 1, 2]),
        ("COUNT(1)", ["INTEGER"], [None], [1]),
        ("SUM(X)", ["INTEGER"], [2_147_483_647, None, 1], [2_147_483_647, 2_147_483_647, -2_147_483_648]),
        ("SUM(X)", ["BIGINT"], [2_147_483_647, 1], [2_147_483_647, 2_147_483_648]),
        ("SUM(X)", ["DOUBLE"], [None, 1.5], [0.0, 1.5]),
        ("SUM(X)", ["DECIMAL(4, 2)"], [D("1.10"), D("2.20")], [D("1.10"), D("3.30")]),
        ("SUM(X + 1)", ["INTEGER"], [1, 2], [2, 5]),
        ("SUM_LIST(X)", ["ARRAY<BIGINT>"], [[1, 2], None, [3, None]], [3, 3, 6]),
        ("AVG(X)", ["INTEGER"], [None, 1, 2], [0.0, 1.0, 1.5]),
        ("MIN(X)", ["INTEGER"], [None, 5, 7, 3], [None, 5, 5, 3]),
        ("MAX(X)", ["VARCHAR"], ["b", None, "a", "c"], ["b", "b", "b", "c"]),
        ("MAX(X)", ["DECIMAL(3, 1)"], [D("1.5"), D("0.5")], [D("1.5"), D("1.5")]),
        ("MIN(X)", ["TIMESTAMP"], [5, 4], [5, 4]),
        ("COLLECT_LIST(X)", ["INTEGER"], [1, None, 1], [[1], [1, None], [1, None, 1]]),
        ("COLLECT_SET(X)", ["INTEGER"], [1, None, 1, None], [[1], [1, None], [1, None], [1, None]]),
        ("EARLIEST_BY_OFFSET(X)", ["INTEGER"], [None, 1, 2], [None, 1, 1]),
        ("EARLIEST_BY_OFFSET(X, false)", ["INTEGER"], [None, 1], [None, None]),
        ("EARLIEST_BY_OFFSET(X, 2)", ["INTEGER"], [None, 1, 2, 3], [[], [1], [1, 2], [1, 2]]),
        ("EARLIEST_BY_OFFSET(X, 2, false)", ["INTEGER"], [None, 1, 2], [[None], [None, 1], [None, 1]]),
        ("LATEST_BY_OFFSET(X)", ["INTEGER"], [1, None, 2], [1, 1, 2]),
        ("LATEST_BY_OFFSET(X, false)", ["INTEGER"], [1, None], [1, None]),
        ("LATEST_BY_OFFSET(X, 2)", ["INTEGER"], [1, 2, None, 3], [[1], [1, 2], [1, 2], [2, 3]]),
        ("TOPK(X, 2)", ["INTEGER"], [1, 3, None, 2, 3], [[1], [3, 1], [3, 1], [3, 2], [3, 3]]),
        ("TOPKDISTINCT(X, 2)", ["VARCHAR"], ["a", "b", "b", "c"], [["a"], ["b", "a"], ["b", "a"], ["c", "b"]]),
        (
            "TOPK(X, Y, 2)",
            ["INTEGER", "VARCHAR"],
            [(1, "a"), (None, "b"), (1, None), (1, "c")],
            [
                [{"sort_col": 1, "col0": "a"}],
                [{"sort_col": 1, "col0": "a"}],
                [{"sort_col": 1, "col0": "a"}, {"sort_col": 1, "col0": None}],
                [{"sort_col": 1, "col0": "a"}, {"sort_col": 1, "col0": None}],
            ],
        ),
        ("HISTOGRAM(X)", ["VARCHAR"], ["a", "b", "a"], [{"a": 1}, {"a": 1, "b": 1}, {"a": 2, "b": 1}]),
        ("COUNT_DISTINCT(X)", ["VARCHAR"], ["a", "b", "a", None], [1, 2, 2, 2]),
        ("ATTR(X)", ["VARCHAR"], ["a", "a", None], ["a", "a", None]),
        ("STDDEV_SAMP(X)", ["INTEGER"], [10, 12, None, 14], [0.0, 2.0, 2.0, 4.0]),
        ("STDDEV_SAMPLE(X)", ["DOUBLE"], [10.0, 12.0, 14.0], [0.0, math.sqrt(2), 2.0]),
        ("CORRELATION(X, Y)", ["INTEGER", "INTEGER"], [(1, 2), (None, 9), (2, 4), (3, 6)], ["NaN", "NaN", 1.0, 1.0]),
        ("CORRELATION(X, Y)", ["DOUBLE", "DOUBLE"], [(1.0, 2.0), (2.0, 0.0)], ["NaN", -1.0]),
    ],
)  # fmt: skip
def test_what_rows_add(text: str, types: list[str], values: list[Any], expected: list[Any]) -> None:
    got = results(aggregate(text, *types), rows(*values))
    assert ["NaN" if result != result else result for result in got] == expected


@pytest.mark.parametrize(
    ("text", "types", "values"),
    [
        ("COUNT(*)", ["INTEGER"], [1, None, 3]),
        ("COUNT(X)", ["INTEGER"], [1, None, 3]),
        ("SUM(X)", ["INTEGER"], [1, None, 3]),
        ("SUM(X)", ["DECIMAL(4, 2)"], [D("1.10"), None, D("2.20")]),
        ("SUM_LIST(X)", ["ARRAY<INTEGER>"], [[1], None, [3, None]]),
        ("AVG(X)", ["DOUBLE"], [1.0, None, 3.0]),
        ("COLLECT_LIST(X)", ["INTEGER"], [1, None, 3]),
        ("HISTOGRAM(X)", ["VARCHAR"], ["a", "b", "c"]),
        ("ATTR(X)", ["VARCHAR"], ["a", None, "b"]),
        ("STDDEV_SAMP(X)", ["INTEGER"], [1, None, 4]),
        ("CORRELATION(X, Y)", ["INTEGER", "INTEGER"], [(1, 2), (None, 3), (2, 9)]),
    ],
)
def test_what_is_undone_was_never_there(text: str, types: list[str], values: list[Any]) -> None:
    of = aggregate(text, *types)
    assert of.undoes
    for taken in rows(*values):
        left = [row for row in rows(*values) if row is not taken]
        undone = of.undo(after(of, rows(*values)), taken)
        without = of.result(after(of, [row for row in left if row != taken]))
        assert (
            of.result(undone) == pytest.approx(without, nan_ok=True)
            if isinstance(without, float)
            else (of.result(undone) == without)
        )


def test_what_cannot_be_undone_says_so() -> None:
    known = {function.name for function in FUNCTIONS.all() if function.kind == AGGREGATE}
    undoing = {
        name
        for name in known
        for variant in FUNCTIONS.find(name).variants
        if getattr(variant.implementation, "undoes", False)
    }
    assert known - undoing == {
        "MIN", "MAX", "TOPK", "COLLECT_SET", "TOPKDISTINCT", "EARLIEST_BY_OFFSET", "LATEST_BY_OFFSET", "COUNT_DISTINCT",
    }  # fmt: skip


@pytest.mark.parametrize(
    ("text", "types", "left", "right", "merged"),
    [
        ("COUNT(X)", ["INTEGER"], [1, None], [2], 2),
        ("SUM(X)", ["INTEGER"], [1], [2, 3], 6),
        ("AVG(X)", ["INTEGER"], [1], [2, 6], 3.0),
        ("MIN(X)", ["INTEGER"], [3], [2], 2),
        ("MAX(X)", ["INTEGER"], [], [2], 2),
        ("COLLECT_LIST(X)", ["INTEGER"], [1], [1, 2], [1, 1, 2]),
        ("COLLECT_SET(X)", ["INTEGER"], [1], [1, 2], [1, 2]),
        ("TOPK(X, 2)", ["INTEGER"], [3, 1], [2], [3, 2]),
        ("TOPK(X, X, 1)", ["INTEGER"], [3, 1], [4], [{"sort_col": 4, "col0": 4}]),
        ("TOPKDISTINCT(X, 2)", ["INTEGER"], [3, 1], [3], [3, 1]),
        ("HISTOGRAM(X)", ["VARCHAR"], ["a"], ["a", "b"], {"a": 2, "b": 1}),
        ("COUNT_DISTINCT(X)", ["VARCHAR"], ["a"], ["a", "b"], 2),
        ("ATTR(X)", ["VARCHAR"], ["a"], ["a"], "a"),
        ("ATTR(X)", ["VARCHAR"], ["a"], ["b"], None),
        ("STDDEV_SAMP(X)", ["INTEGER"], [10], [12, 14], 4.0),
        ("STDDEV_SAMP(X)", ["INTEGER"], [], [12, 14], 2.0),
        ("CORRELATION(X, X)", ["INTEGER"], [1], [2, 5], 1.0),
        ("EARLIEST_BY_OFFSET(X)", ["INTEGER"], [1], [2], 1),
        ("LATEST_BY_OFFSET(X)", ["INTEGER"], [1], [2], 2),
    ],
)
def test_sessions_merge(text: str, types: list[str], left: list[Any], right: list[Any], merged: Any) -> None:
    of = aggregate(text, *types)
    one, other = after(of, rows(*left)), after(of, rows(*right))
    assert of.result(of.merge(one, other)) == merged


def test_what_came_first_is_known_when_sessions_merge_the_other_way() -> None:
    of = aggregate("LATEST_BY_OFFSET(X, 2)", "INTEGER")
    older, newer = after(of, rows(1)), after(of, rows(2))
    newest = of.add(of.merge(newer, older), (3,))
    assert of.result(newest) == [2, 3]


def test_lists_have_a_limit() -> None:
    limited = aggregate("COLLECT_LIST(X)", "INTEGER", **{"ksql.functions.collect_list.limit": "2"})
    assert limited.result(after(limited, rows(1, 2, 3))) == [1, 2]
    assert limited.result(limited.merge([1, 2], [3])) == [1, 2]
    by_default = aggregate("COLLECT_SET(X)", "INTEGER")
    assert len(by_default.result(after(by_default, rows(*range(1100))))) == 1000


@pytest.mark.parametrize("many", [2048, 20_000])
def test_distinct_values_are_counted_and_beyond_some_thousands_estimated(many: int) -> None:
    of = aggregate("COUNT_DISTINCT(X)", "INTEGER")
    first, second = after(of, rows(*range(many // 2))), after(of, rows(*range(many // 4, many)))
    count = of.result(of.merge(first, second))
    assert count == many if many <= 2048 else abs(count - many) < many * 0.1


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (
            "LATEST_BY_OFFSET(X, X)",
            "Parameter 2 passed to function LATEST_BY_OFFSET must be a literal constant, but was expression: 'X'",
        ),
        ("SUM(Y)", "Function 'sum' does not accept parameters (STRING)."),
        ("ABS(X)", "ABS is no aggregate function"),
        ("SUM(NOPE)", "Unknown column NOPE."),
    ],
)
def test_refusals(text: str, reason: str) -> None:
    with pytest.raises(StatementError) as refused:
        aggregate(text, "INTEGER", "VARCHAR")
    assert refused.value.reason.startswith(reason)


def test_types_and_what_delimited_cannot_keep() -> None:
    assert (
        str(aggregate("TOPK(X, Y, 2)", "INTEGER", "VARCHAR").type)
        == "ARRAY<STRUCT<`sort_col` INTEGER, `col0` STRING>>"
    )
    assert str(aggregate("LATEST_BY_OFFSET(X, 2)", "INTEGER").type) == "ARRAY<INTEGER>"
    assert str(aggregate("SUM(X)", "DECIMAL(4, 2)").type) == "DECIMAL(4, 2)"
    assert not aggregate("SUM(X)", "INTEGER").structured
    assert aggregate("AVG(X)", "INTEGER").structured


def test_an_argument_that_fails_is_null() -> None:
    of = aggregate("COUNT(10 / X)", "INTEGER")
    assert results(of, rows(1, 0)) == [1, 1]
