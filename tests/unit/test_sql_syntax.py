"""ksqlDB's statements to what they say, and back to text that reads as the same."""

from __future__ import annotations

import contextlib
import os
import random
import time

import pytest

from pykafkad.pipelines.errors import Position, StatementError
from pykafkad.pipelines.syntax import ast, tokens
from pykafkad.pipelines.syntax.formatting import WRITERS, text
from pykafkad.pipelines.syntax.parser import parse, parse_expression, parse_script, parse_type
from tests.sql_statements import STATEMENTS, Making

RUNS = int(os.environ.get("RUNS", "400"))
SEED = int(os.environ.get("SEED", "15"))


@pytest.mark.parametrize("statement", STATEMENTS)
def test_a_statement_is_written_as_it_was_read(statement: str) -> None:
    assert text(parse(statement)) == statement
    if "`" not in statement and "'" not in statement:
        assert parse(f"{statement.lower()} ;") == parse(statement)


def test_the_statements_here_are_of_every_kind() -> None:
    used = {type(node) for statement in STATEMENTS for node in ast.walk(parse(statement))}
    assert used >= set(WRITERS)


@pytest.mark.parametrize("seed", range(SEED, SEED + 4))
def test_random_expressions_are_read_as_they_were_written(seed: int) -> None:
    chance = random.Random(seed)
    for run in range(RUNS // 4):
        made = Making(chance).expression(4)
        assert parse_expression(text(made)) == made, f"SEED={seed}, run {run}"


def test_names_are_in_upper_case_unless_they_are_quoted() -> None:
    statement = parse('select a, "b""c", `d``e`, source.emit from s emit changes')
    assert isinstance(statement, ast.SelectStatement)
    assert [item.expression for item in statement.query.select if isinstance(item, ast.SelectColumn)] == [
        ast.ColumnReference("A"),
        ast.ColumnReference('b"c'),
        ast.ColumnReference("d`e"),
        ast.ColumnReference("EMIT", "SOURCE"),
    ]
    assert statement.query.emit is ast.Emit.CHANGES


@pytest.mark.parametrize(
    ("shown", "meant"),
    [
        ("a or b and not c = d", "A OR (B AND (NOT (C = D)))"),
        ("1 - 2 - 3 * 4", "(1 - 2) - (3 * 4)"),
        ("- a * b", "(-A) * B"),
        ("a between 1 + 1 and 3 and b", "(A BETWEEN (1 + 1) AND 3) AND B"),
        ("a->b[1]->c", "((A->B)[1])->C"),
        ("a != -1", "A <> (-1)"),
        ("a -1", "A - 1"),
        ("a[-1]", "A[(-1)]"),
        ("+a", "A"),
    ],
)
def test_precedence(shown: str, meant: str) -> None:
    assert parse_expression(shown) == parse_expression(meant)


def test_numbers_are_of_the_kind_that_they_are_written_as() -> None:
    kinds = [type(parse_expression(shown)) for shown in ("1", "1.0", ".5", "1e3", "-9223372036854775808")]
    assert kinds == [
        ast.IntegerLiteral,
        ast.DecimalLiteral,
        ast.DecimalLiteral,
        ast.DoubleLiteral,
        ast.IntegerLiteral,
    ]


def test_a_lambdas_parameters_are_no_columns_within_it() -> None:
    call = parse_expression("f(x, x => x + y + g(z, (y, z) => y + x), x)")
    assert isinstance(call, ast.FunctionCall)
    assert call.arguments[0] == call.arguments[2] == ast.ColumnReference("X")
    variables = {node.name for node in ast.walk(call.arguments[1]) if isinstance(node, ast.LambdaVariable)}
    columns = {node.name for node in ast.walk(call.arguments[1]) if isinstance(node, ast.ColumnReference)}
    assert variables == {"X", "Y"} and columns == {"Y", "Z"}


def test_units_are_units_only_where_a_function_takes_one() -> None:
    added, absolute = parse_expression("dateadd(day, 1, d)"), parse_expression("abs(day)")
    assert isinstance(added, ast.FunctionCall) and isinstance(absolute, ast.FunctionCall)
    assert added.arguments[0] == ast.IntervalUnit("DAYS")
    assert absolute.arguments[0] == ast.ColumnReference("DAY")


def test_groups_may_be_in_parentheses() -> None:
    def grouped(by: str) -> tuple[ast.Expression, ...]:
        statement = parse(f"SELECT COUNT(*) FROM S GROUP BY {by} HAVING A > 1")
        assert isinstance(statement, ast.SelectStatement)
        return statement.query.group_by

    a, b = ast.ColumnReference("A"), ast.ColumnReference("B")
    assert grouped("a, b") == grouped("(a, b)") == grouped("(a), (b)") == (a, b)
    assert grouped("(a) + b") == (ast.Arithmetic("+", a, b),)


def test_comments_and_places() -> None:
    script = "-- first\nSHOW STREAMS; /* a;\n b */\n  SHOW\n  TABLES; "
    first, second = parse_script(script)
    assert (first.statement.at, first.text) == (Position(2, 1), "SHOW STREAMS")
    assert (second.statement.at, second.text) == (Position(4, 3), "SHOW\n  TABLES")


def test_a_script_is_cut_at_semicolons_that_end_statements() -> None:
    pieces, rest = tokens.split("a ';' `;` -- ;\n; b /* ; */;;c 'unended; d")
    assert [piece.text for piece in pieces] == ["a ';' `;` -- ;\n", "b /* ; */"]
    assert rest is not None and rest.text == "c 'unended; d"
    assert tokens.split("  -- only this\n") == ([], None)


def test_variables_are_replaced_as_the_script_goes_on() -> None:
    variables = {"T": "topic"}
    script = parse_script(
        "PRINT '${t}'; PRINT '$${T}'; PRINT ${ T }; PRINT '${none}'; PRINT ${u};", variables
    )
    topics = []
    for statement, _ in script:
        assert isinstance(statement, ast.PrintTopic)
        topics.append(statement.topic)
        variables["U"] = "later"
    assert topics == ["topic", "${T}", "topic", "${none}", "later"]


def test_types() -> None:
    assert str(parse_type("struct<a int, `b` array<map<varchar, decimal(4,2)>>, c struct<>>")) == (
        "STRUCT<`A` INTEGER, `b` ARRAY<MAP<STRING, DECIMAL(4, 2)>>, `C` STRUCT< >>"
    )


def test_a_rewrite_keeps_what_it_does_not_change() -> None:
    whole = parse_expression("case when a = 1 then b else f(c, array[a]) end")
    assert ast.rewrite(whole, lambda node: node) is whole
    renamed = ast.rewrite(
        whole, lambda node: ast.ColumnReference("X") if node == ast.ColumnReference("A") else node
    )
    assert text(renamed) == "CASE WHEN X = 1 THEN B ELSE F(C, ARRAY[X]) END"


def test_variables_that_double_each_other_have_a_bound() -> None:
    with pytest.raises(StatementError, match="the variables of a statement are more than"):
        tokens.substitute("${a}${a}", {"A": "x" * tokens.MAX_REPLACED})


@pytest.mark.parametrize(
    "said",
    [
        "${" * 200_000,
        "(" * 10_000,
        "'" + "x" * 1_000_000,
        "/*" * 200_000,
        "NOT " * 10_000,
        ";" * 500_000,
        "`" * 999_999,
    ],
)
def test_a_megabyte_of_anything_is_refused_soon(said: str) -> None:
    began = time.process_time()
    for statement in (said, f"SELECT {said}"):
        with contextlib.suppress(StatementError):
            list(parse_script(statement))
    assert time.process_time() - began < 5
