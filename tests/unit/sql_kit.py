"""What tests of expressions and functions share: a row with a column of every type, and expressions evaluated on it."""

from __future__ import annotations

import pickle
from decimal import Decimal
from typing import Any

import pytest

from pykafkad.pipelines import StatementError
from pykafkad.pipelines.expressions.compiling import Compiled, compile_expression
from pykafkad.pipelines.expressions.schema import Column, Schema
from pykafkad.pipelines.syntax.parser import parse_expression, parse_type

COLUMNS: dict[str, tuple[str, Any]] = {
    "B": ("BOOLEAN", True),
    "I": ("INTEGER", 7),
    "L": ("BIGINT", 3_000_000_000),
    "D": ("DOUBLE", 2.5),
    "M": ("DECIMAL(6, 2)", Decimal("12.50")),
    "S": ("VARCHAR", "some text"),
    "Y": ("BYTES", b"\x00\x01"),
    "DT": ("DATE", 17_662),
    "TI": ("TIME", 79_113_000),
    "TS": ("TIMESTAMP", 1_526_075_913_000),
    "A": ("ARRAY<INTEGER>", [1, 2, 3]),
    "AA": ("ARRAY<VARCHAR>", ["x", None, "y"]),
    "MP": ("MAP<VARCHAR, INTEGER>", {"a": 1, "b": 2}),
    "ST": ("STRUCT<F INTEGER, G STRUCT<H VARCHAR>>", {"F": 1, "G": {"H": "deep"}}),
    "ROWTIME": ("BIGINT", 1_546_300_800_000),
    "NI": ("INTEGER", None),
    "NS": ("VARCHAR", None),
    "ND": ("DOUBLE", None),
    "NA": ("ARRAY<INTEGER>", None),
    "NM": ("MAP<VARCHAR, INTEGER>", None),
    "NY": ("BYTES", None),
}
SCHEMA = Schema(tuple(Column(name, parse_type(of)) for name, (of, _) in COLUMNS.items()))
ROW = tuple(value for _, value in COLUMNS.values())


def compiled(text: str, **properties: Any) -> Compiled:
    """The expression, through a pickle as to a worker."""
    expression = compile_expression(parse_expression(text), SCHEMA, properties=properties)
    loaded = pickle.loads(pickle.dumps(expression))
    assert isinstance(loaded, Compiled)
    return loaded


def value_of(text: str) -> Any:
    return compiled(text)(ROW)


def type_of(text: str) -> str:
    return str(compiled(text).type)


def refusal_of(text: str) -> str:
    with pytest.raises(StatementError) as refused:
        compiled(text)
    return refused.value.reason
