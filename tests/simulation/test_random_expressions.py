"""Random expressions: what can be compiled gives, for a full row and for one of nulls, values of the type that it says.

What cannot is refused with StatementError, and nothing else is ever raised.

SEED=n replays one expression, RUNS=n makes more of them; a failure prints its seed and the expression.
"""

from __future__ import annotations

import os
import random
from decimal import Decimal
from typing import Any

from pykafkad.pipelines import StatementError
from pykafkad.pipelines.expressions.compiling import compile_expression
from pykafkad.pipelines.functions.registry import FUNCTIONS, SCALAR
from pykafkad.pipelines.functions.signatures import Pattern
from pykafkad.pipelines.syntax.parser import parse_expression
from pykafkad.pipelines.types import Array, Map, SqlType, Struct
from pykafkad.pipelines.types import Decimal as DecimalType
from tests.unit.sql_kit import COLUMNS, ROW, SCHEMA

RUNS = int(os.environ.get("RUNS", "4000"))
SEEDS = [int(os.environ["SEED"])] if "SEED" in os.environ else [20_261_119 + run for run in range(RUNS)]

SCALARS = [function for function in FUNCTIONS.all() if function.kind == SCALAR]
NAMES = [function.name for function in FUNCTIONS.all()]

NULLS = tuple(None for _ in ROW)

ANYTHING = [
    *COLUMNS, "1", "-3", "0", "2147483648", "1.50", "2.5E0", "'x'", "''", "'5'", "'2018-05-11'", "true", "NULL",
    "ARRAY[1, 2]", "MAP('k' := 1)", "STRUCT(X := 1)", "DAYS", "x => x", "(a, b) => a", "*",
]  # fmt: skip
OPERATORS = ["+", "-", "*", "/", "%", "=", "<>", "<", ">=", "AND", "OR", "LIKE", "IS DISTINCT FROM"]
TYPES = ["INT", "DECIMAL(4, 1)", "VARCHAR", "DOUBLE", "ARRAY<INT>", "TIMESTAMP", "MAP<INT, INT>", "BOOLEAN"]

OF_KIND = {
    "INTEGER": ["I", "NI", "-3", "0", "2147483647"],
    "BIGINT": ["L", "I", "-9223372036854775807"],
    "DOUBLE": ["D", "-D", "1E300", "0E0", "I", "L", "M", "ND"],
    "DECIMAL": ["M", "-M", "0.05", "CAST(I AS DECIMAL(9, 3))"],
    "STRING": ["S", "NS", "''", "'5'", "'a,b'", "'[1, 2]'", "'{\"a\": 1}'", "'yyyy-MM-dd'", "'hex'", "'UTC'"],
    "BYTES": ["Y", "NY"],
    "DATE": ["DT", "CAST(NULL AS DATE)"],
    "TIME": ["TI"],
    "TIMESTAMP": ["TS"],
    "BOOLEAN": ["B", "false"],
    "UNIT": ["DAYS", "HOURS"],
    "VARIABLE": ["I", "M", "S", "D", "L", "A", "ST", "Y", "B", "DT", "NULL"],
    "ARRAY": ["A", "AA", "NA", "ARRAY[M, 1.5]", "ARRAY[ST]", "ARRAY[A]", "ARRAY[D, ND]"],
    "MAP": ["MP", "NM", "MAP(S := M)", "MAP(S := A)"],
}


def any_expression(dice: random.Random, depth: int = 0) -> str:
    """Mostly nonsense: a shape, with an expression for each question mark in it."""
    if depth > 3 or dice.random() < 0.4:
        return dice.choice(ANYTHING)
    shapes = [
        f"{dice.choice(NAMES)}({', '.join('?' * dice.randrange(4))})",
        f"(? {dice.choice(OPERATORS)} ?)",
        f"CAST(? AS {dice.choice(TYPES)})",
        "CASE WHEN ? THEN ? ELSE ? END",
        "(? IN (?, ?))",
        "?[?]",
        "ARRAY[?, ?]",
    ]
    first, *rest = dice.choice(shapes).split("?")
    return first + "".join(any_expression(dice, depth + 1) + part for part in rest)


def argument(dice: random.Random, pattern: Pattern) -> str:
    if pattern.kind != "LAMBDA":
        return dice.choice(OF_KIND[pattern.kind])
    names = ["p", "q", "r"][: len(pattern.parts) - 1]
    return f"({', '.join(names)}) => {dice.choice([*names, 'B', 'I'])}"


def a_call(dice: random.Random) -> str:
    """A function with arguments of the types that it takes."""
    function = dice.choice(SCALARS)
    signature = dice.choice(function.variants).signature
    more = dice.randrange(3) if signature.variadic is not None else 0
    parameters = signature.of_arguments(len(signature.parameters) + more) or []
    return f"{function.name}({', '.join(argument(dice, parameter.pattern) for parameter in parameters)})"


def conforms(value: Any, of: SqlType | None) -> bool:
    match of:
        case _ if value is None:
            return True
        case DecimalType(_, scale):
            return type(value) is Decimal and -int(value.as_tuple().exponent) == scale
        case Array(element):
            return type(value) is list and all(conforms(item, element) for item in value)
        case Map(key, mapped):
            return type(value) is dict and all(
                conforms(k, key) and conforms(v, mapped) for k, v in value.items()
            )
        case Struct(fields):
            return type(value) is dict and all(conforms(value.get(part.name), part.type) for part in fields)
    return type(value) is PYTHON[str(of)] and (type(value) is not int or in_range(value, str(of)))


PYTHON = {
    "BOOLEAN": bool,
    "DOUBLE": float,
    "STRING": str,
    "BYTES": bytes,
    "INTERVALUNIT": str,
    **dict.fromkeys(("INTEGER", "BIGINT", "DATE", "TIME", "TIMESTAMP"), int),
}


def in_range(value: int, of: str) -> bool:
    bits = 31 if of in ("INTEGER", "DATE", "TIME") else 63
    return -(1 << bits) <= value < 1 << bits


def check(text: str) -> bool:
    """Whether the expression could be compiled."""
    try:
        compiled = compile_expression(parse_expression(text), SCHEMA)
    except StatementError:
        return False
    for row in (ROW, NULLS):
        value = compiled(row)
        assert conforms(value, compiled.type), f"{compiled.type}: {value!r}"
    return True


def test_what_compiles_gives_what_it_says_and_all_else_is_refused() -> None:
    compiled = 0
    for seed in SEEDS:
        dice = random.Random(seed)
        text = a_call(dice) if dice.random() < 0.5 else any_expression(dice)
        try:
            compiled += check(text)
        except Exception:
            print(f"replay with SEED={seed}: {text}")
            raise
    assert compiled > len(SEEDS) // 4 or len(SEEDS) < 100
