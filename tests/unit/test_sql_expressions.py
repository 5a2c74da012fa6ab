"""Expressions: their types, their values, what they are where a row has none, and what is refused."""

from __future__ import annotations

import math
from decimal import Decimal
from typing import Any

import pytest

from pykafkad.pipelines import StatementError
from pykafkad.pipelines.expressions.compiling import compile_expression
from pykafkad.pipelines.expressions.schema import Column, Schema
from pykafkad.pipelines.syntax.parser import parse_expression
from pykafkad.pipelines.types import BIGINT, STRING
from tests.unit.sql_kit import ROW, compiled, refusal_of, type_of, value_of


@pytest.mark.parametrize(
    ("text", "of", "value"),
    [
        ("I + 1", "INTEGER", 8),
        ("2147483647 + 1", "INTEGER", -2_147_483_648),
        ("I * L", "BIGINT", 21_000_000_000),
        ("9223372036854775807 + 1", "BIGINT", -9_223_372_036_854_775_808),
        ("-7 / 2", "INTEGER", -3),
        ("-7 % 3", "INTEGER", -1),
        ("I / 0", "INTEGER", None),
        ("I % 0", "INTEGER", None),
        ("D / 0", "DOUBLE", math.inf),
        ("-D / 0", "DOUBLE", -math.inf),
        ("D * 2", "DOUBLE", 5.0),
        ("D + M", "DOUBLE", 15.0),
        ("M + 1", "DECIMAL(13, 2)", Decimal("13.50")),
        ("M * M", "DECIMAL(13, 4)", Decimal("156.2500")),
        ("M / 3", "DECIMAL(17, 13)", Decimal("4.1666666666667")),
        ("M % 5", "DECIMAL(6, 2)", Decimal("2.50")),
        ("M / 0", "DECIMAL(17, 13)", None),
        ("1.50 - 0.5", "DECIMAL(4, 2)", Decimal("1.00")),
        ("-M", "DECIMAL(6, 2)", Decimal("-12.50")),
        ("S + '!'", "STRING", "some text!"),
        ("NI + 1", "INTEGER", None),
        ("NS + 'x'", "STRING", None),
        ("2 + 3 * 4", "INTEGER", 14),
    ],
)
def test_arithmetic_is_javas(text: str, of: str, value: Any) -> None:
    assert (type_of(text), value_of(text)) == (of, value)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("I = 7", True),
        ("I = 7.0", True),
        ("D = 2.5", True),
        ("I <> 7", False),
        ("L > I", True),
        ("S < 'tome'", True),
        ("NI = 1", False),
        ("NI <> 1", False),
        ("NOT (NI = 1)", True),
        ("NI IS NULL", True),
        ("I IS NOT NULL", True),
        ("NI IS DISTINCT FROM 1", True),
        ("NI IS NOT DISTINCT FROM NS", None),
        ("A = ARRAY[1, 2, 3]", True),
        ("B = true AND I > 1", True),
        ("false AND NI > 1", False),
        ("I BETWEEN 7 AND 9", True),
        ("I NOT BETWEEN 7 AND 9", False),
        ("NI BETWEEN 1 AND 2", False),
        ("DT = '2018-05-11'", True),
        ("DT < TS", True),
        ("TS >= '2018-05-11T21:58:33'", True),
        ("TS > '2018-05-12T00:58:33.001+0300'", False),
        ("TI = '21:58:33'", True),
        ("ROWTIME > '2019-01-01T00:00:00+0445'", True),
        ("'2019-01' < ROWTIME", False),
        ("S LIKE 'some%'", True),
        ("S LIKE '%me_te%'", True),
        ("S LIKE 'text'", False),
        ("S NOT LIKE '%z%'", True),
        ("'50%' LIKE '50!%' ESCAPE '!'", True),
        ("'502' LIKE '50!%' ESCAPE '!'", False),
        ("'a.b' LIKE 'a_b'", True),
        ("NS LIKE '%'", False),
        ("I IN (1, 7)", True),
        ("I IN (1, '7', 8.5)", True),
        ("I NOT IN (1, 2)", True),
        ("NI IN (1, NULL)", False),
        ("S IN ('a', 'some text')", True),
        ("I IN (1, '2147483655')", False),
        ("A IN (ARRAY[1, '2', 3])", True),
        ("ST IN (STRUCT(F := 1, G := STRUCT(H := 'deep')))", True),
        ("B IN ('yes')", True),
    ],
)
def test_comparisons(text: str, value: Any) -> None:
    if value is None:
        assert refusal_of(text).startswith("Cannot compare")
    else:
        assert value_of(text) is value


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("CASE WHEN I > 5 THEN 'big' ELSE 'small' END", "big"),
        ("CASE WHEN NI > 5 THEN 'big' WHEN true THEN NULL END", None),
        ("CASE WHEN I < 5 THEN 1 END", None),
        ("CASE WHEN B THEN 1 ELSE 2.5 END", Decimal("1.0")),
        ("CASE I WHEN 6 THEN 'six' WHEN 7 THEN 'seven' END", "seven"),
        ("CASE WHEN I > 5 THEN 1 ELSE 1 / 0 END", 1),
        ("A[1]", 1),
        ("A[-1]", 3),
        ("A[0]", None),
        ("A[4]", None),
        ("A[NI]", None),
        ("NA[1]", None),
        ("MP['b']", 2),
        ("MP['z']", None),
        ("NM['b']", None),
        ("ST->F", 1),
        ("ST->G->H", "deep"),
        ("ARRAY[1, NULL, '3']", [1, None, 3]),
        ("ARRAY[1, 2.5]", [Decimal("1.0"), Decimal("2.5")]),
        ("ARRAY[1 / 0, 2]", [None, 2]),
        ("MAP('k' := I, 2 := '5')", {"k": 7, "2": 5}),
        ("ARRAY['a', 1, true]", ["a", "1", "true"]),
        ("ARRAY[true, 'n', 'YES']", [True, False, True]),
        ("ARRAY[1, '300E-2', '9000000000']", [Decimal("1.00"), Decimal("3.00"), Decimal("9000000000.00")]),
        ("STRUCT(X := I, Y := STRUCT(Z := S))", {"X": 7, "Y": {"Z": "some text"}}),
        ("STRUCT()", {}),
        ("ARRAY[STRUCT(X := 1), STRUCT(Y := 2)]", [{"X": 1, "Y": None}, {"X": None, "Y": 2}]),
        ("IFNULL(1 / 0, 5)", 5),
        ("COALESCE(NI + 1, NI, 9)", 9),
    ],
)
def test_values_that_are_chosen_and_built(text: str, value: Any) -> None:
    assert value_of(text) == value


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("CAST(L AS INT)", -1_294_967_296),
        ("CAST(-2.9 AS INT)", -2),
        ("CAST(1E40 AS BIGINT)", 9_223_372_036_854_775_807),
        ("CAST(' 12 ' AS BIGINT)", 12),
        ("CAST('12x' AS INT)", None),
        ("CAST('3000000000' AS INT)", None),
        ("CAST('1.5e3' AS DOUBLE)", 1500.0),
        ("CAST(I AS DOUBLE)", 7.0),
        ("CAST('12.345' AS DECIMAL(4, 2))", Decimal("12.35")),
        ("CAST(123.4 AS DECIMAL(4, 2))", None),
        ("CAST('1E999999999' AS DECIMAL(4, 2))", None),
        ("CAST(D AS DECIMAL(4, 2))", Decimal("2.50")),
        ("CAST(M AS INT)", 12),
        ("CAST('tru' AS BOOLEAN)", False),
        ("CAST('True' AS BOOLEAN)", True),
        ("CAST('maybe' AS BOOLEAN)", False),
        ("CAST(B AS VARCHAR)", "true"),
        ("CAST(1E10 AS VARCHAR)", "1.0E10"),
        ("CAST(D AS VARCHAR)", "2.5"),
        ("CAST(M AS VARCHAR)", "12.50"),
        ("CAST(A AS VARCHAR)", "[1, 2, 3]"),
        ("CAST(AA AS VARCHAR)", "[x, null, y]"),
        ("CAST(MP AS VARCHAR)", "{a=1, b=2}"),
        ("CAST(ST AS VARCHAR)", "Struct{F=1,G=Struct{H=deep}}"),
        ("CAST(DT AS VARCHAR)", "2018-05-11"),
        ("CAST(TI AS VARCHAR)", "21:58:33"),
        ("CAST(TS AS VARCHAR)", "2018-05-11T21:58:33.000"),
        ("CAST('2018-05-11' AS DATE)", 17_662),
        ("CAST('2018-13-11' AS DATE)", None),
        ("CAST('21:58:33' AS TIME)", 79_113_000),
        ("CAST('2018-05-11T21:58:33Z' AS TIMESTAMP)", 1_526_075_913_000),
        ("CAST(TS AS DATE)", 17_662),
        ("CAST(TS AS TIME)", 79_113_000),
        ("CAST(DT AS TIMESTAMP)", 1_525_996_800_000),
        ("CAST(A AS ARRAY<VARCHAR>)", ["1", "2", "3"]),
        ("CAST(MP AS MAP<VARCHAR, DOUBLE>)", {"a": 1.0, "b": 2.0}),
        ("CAST(ST AS STRUCT<F VARCHAR, Z INT>)", {"F": "1", "Z": None}),
        ("CAST(NULL AS ARRAY<INT>)", None),
        ("CAST(NI AS VARCHAR)", None),
    ],
)
def test_casts(text: str, value: Any) -> None:
    assert value_of(text) == value


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("NOPE", "Unknown column NOPE."),
        ("ROWTIM", "Unknown column ROWTIM. Did you mean ROWTIME?"),
        ("ST->X", "Could not find field 'X' in STRUCT<`F` INTEGER, `G` STRUCT<`H` STRING>>."),
        ("I->X", "Expected STRUCT type, got: INTEGER"),
        ("I[1]", "I (INTEGER) has nothing at 1 (INTEGER)"),
        ("B + 1.5", "Error processing expression: (B + 1.5). Unsupported arithmetic types. BOOLEAN DECIMAL"),
        ("I > 'x'", "Cannot compare I (INTEGER) to 'x' (STRING) with GREATER_THAN."),
        (
            "A < A",
            "Cannot compare A (ARRAY<INTEGER>) to A (ARRAY<INTEGER>) with LESS_THAN.",
        ),
        ("B < true", "Cannot compare B (BOOLEAN) to TRUE (BOOLEAN) with LESS_THAN."),
        ("I = NULL", "Comparison with NULL not supported: I = NULL. Use IS NULL or IS NOT NULL."),
        ("I AND B", "What AND joins should be BOOLEAN, but I is INTEGER"),
        ("CAST(Y AS VARCHAR)", "Cast of BYTES to STRING is not supported"),
        (
            "ARRAY['a', I]",
            "operator does not exist: STRING = INTEGER (I)\nHint: You might need to add explicit type casts.",
        ),
        ("CAST(S AS ARRAY<INT>)", "Cast of STRING to ARRAY<INTEGER> is not supported"),
        ("CASE WHEN B THEN NULL END", "Invalid Case expression. All case branches have NULL type"),
        (
            "CASE WHEN B THEN 1 ELSE 'x' END",
            "Invalid Case expression. Type for all 'THEN' clauses should be the same. Found: 1 (INTEGER), 'x' (STRING)",
        ),
        ("ARRAY[1, '1E999999999']", 'invalid input syntax for type INTEGER: "1E999999999".'),
        ("ARRAY[1, 'x']", 'invalid input syntax for type INTEGER: "x".'),
        (
            "I IN (1, S)",
            "operator does not exist: INTEGER = STRING (S)\nHint: You might need to add explicit type casts.",
        ),
        ("NO_SUCH(1)", "Can't find any functions with the name 'NO_SUCH'."),
        ("SUBSTRNG(S, 1)", "Can't find any functions with the name 'SUBSTRNG'. Did you mean SUBSTRING?"),
        ("SUM(I)", "Aggregate function SUM cannot stand here"),
        ("'x' IN ROWTIME", None),
        ("ROWTIME > 'tomorrow'", None),
        ("1E999", "Number overflows DOUBLE: 1E999"),
        ("x => x", None),
    ],
)
def test_what_can_never_be_evaluated_is_refused(text: str, reason: str | None) -> None:
    said = refusal_of(text)
    assert said == reason if reason is not None else said


@pytest.mark.parametrize("items", ["ARRAY[]", "ARRAY[NULL]", "MAP()", "MAP(NULL := 1)", "MAP('k' := NULL)"])
def test_constructors_need_a_type(items: str) -> None:
    assert "onstruct" in refusal_of(items)


def test_a_function_says_what_it_would_take() -> None:
    assert refusal_of("ABS(S)") == (
        "Function 'abs' does not accept parameters (STRING).\n"
        "Valid alternatives are:\nabs(DOUBLE)\nabs(DECIMAL)\nabs(INTEGER)\nabs(BIGINT)"
    )
    assert "cannot be resolved due to ambiguous method parameters (null, null)" in refusal_of(
        "GREATEST(NULL, NULL)"
    )
    assert "ambiguous method parameters (INTEGER, DECIMAL(6, 2))" in refusal_of("LEAST(I, M)")


def test_lambdas() -> None:
    assert value_of("TRANSFORM(A, x => x * I)") == [7, 14, 21]
    assert value_of("TRANSFORM(A, x => TRANSFORM(A, y => x * y))") == [[1, 2, 3], [2, 4, 6], [3, 6, 9]]
    assert value_of("FILTER(AA, x => x IS NOT NULL)") == ["x", "y"]
    assert value_of("FILTER(MP, (k, v) => v > 1)") == {"b": 2}
    assert value_of("REDUCE(A, 10, (s, x) => s + x)") == 16
    assert value_of("REDUCE(MP, CAST(0 AS BIGINT), (s, k, v) => s + v)") == 3
    assert value_of("TRANSFORM(MP, (k, v) => UCASE(k), (k, v) => v + 1)") == {"A": 2, "B": 3}
    assert value_of("TRANSFORM(AA, x => x + '!')") is None
    assert value_of("TRANSFORM(NA, x => x)") is None
    assert type_of("TRANSFORM(A, x => CAST(x AS VARCHAR))") == "ARRAY<STRING>"


def test_a_failure_is_told_to_who_wants_to_know() -> None:
    told: list[str] = []
    division = compiled("I / 0")
    division.failures.on_problem = told.append
    assert division(ROW) is None
    assert told == ["I / 0: / by zero"]


def test_messages_show_what_a_person_wrote() -> None:
    grouped = Schema((Column("TOTAL 0", BIGINT, "GROUPED ", parse_expression("SUM(T.X)")),))
    with pytest.raises(StatementError, match=r"Cannot compare SUM\(X\) \(BIGINT\) to 'x' \(STRING\)"):
        compile_expression(parse_expression("`GROUPED `.`TOTAL 0` > 'x'"), grouped)
    joined = Schema((Column("X", BIGINT, "L"), Column("X", STRING, "R")))
    with pytest.raises(StatementError, match=r"Cannot compare L.X \(BIGINT\) to R.X \(STRING\)"):
        compile_expression(parse_expression("L.X > R.X"), joined)
