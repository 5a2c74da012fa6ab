"""What closures of expressions are made of, whatever node they come from: constants, guards, conversions.

A closure may raise for a row; `safe` and `guarded` are where null is made of that.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from pykafkad.pipelines.errors import StatementError
from pykafkad.pipelines.expressions import casts
from pykafkad.pipelines.expressions.moments import parse_timestamp
from pykafkad.pipelines.expressions.numbers import EvaluationError
from pykafkad.pipelines.expressions.schema import Row, Value
from pykafkad.pipelines.syntax import ast
from pykafkad.pipelines.syntax.ast import Expression
from pykafkad.pipelines.syntax.formatting import text
from pykafkad.pipelines.types import BIGINT, SqlType
from pykafkad.pipelines.types import Decimal as DecimalType

Evaluate = Callable[[Row], Value]


class Typed(NamedTuple):
    type: SqlType | None
    call: Evaluate


def without_source(node: Expression) -> Expression:
    return ast.ColumnReference(node.name, at=node.at) if isinstance(node, ast.ColumnReference) else node


def constant(of: SqlType | None, value: Value) -> Typed:
    return Typed(of, lambda row: value)


def true(value: Value) -> bool:
    if value is None:
        raise TypeError("a condition is null")
    return bool(value)


def kind_of(of: SqlType | None) -> str:
    return "NULL" if of is None else "DECIMAL" if isinstance(of, DecimalType) else str(of)


def is_moment(node: Expression, typed: Typed) -> bool:
    names = ("ROWTIME", "WINDOWSTART", "WINDOWEND")
    return isinstance(node, ast.ColumnReference) and typed.type == BIGINT and node.name.endswith(names)


def moment_of(node: ast.StringLiteral) -> int:
    try:
        return parse_timestamp(node.value)
    except EvaluationError as error:
        raise StatementError(str(error), node.at) from None


def first_true(tests: Sequence[Evaluate], values: Sequence[Evaluate]) -> Evaluate:
    branches, default = list(zip(tests, values, strict=False)), values[-1]

    def evaluate(row: Row) -> Value:
        for test, value in branches:
            if test(row):
                return value(row)
        return default(row)

    return evaluate


Caught = Callable[[Exception], object]


class Failures:
    """Of one compiled expression: who is told why a value in it is null, if anybody is."""

    __slots__ = ("on_problem",)

    def __init__(self) -> None:
        self.on_problem: Callable[[str], object] | None = None

    def of(self, node: Expression) -> Caught:
        def caught(error: Exception) -> None:
            if self.on_problem is not None:
                self.on_problem(f"{text(node)}: {str(error) or type(error).__name__}")

        return caught


def safe(call: Evaluate, caught: Caught) -> Evaluate:
    """Null where the closure raises."""

    def evaluate(row: Row) -> Value:
        try:
            return call(row)
        except Exception as error:
            caught(error)
            return None

    return evaluate


def implicit(typed: Typed, wanted: SqlType | None) -> Evaluate:
    if wanted is None or typed.type is None or typed.type == wanted:
        return typed.call
    convert, call = casts.implicit(typed.type, wanted) or casts.cast(typed.type, wanted), typed.call
    if convert is None:
        raise StatementError(f"{typed.type} cannot be taken for {wanted}")

    def evaluate(row: Row) -> Value:
        value = call(row)
        return None if value is None else convert(value)

    return evaluate


def guarded(
    function: Callable[..., Value], arguments: Sequence[Evaluate], nulls: bool, caught: Caught
) -> Evaluate:
    """The call of a function: null where it fails; an argument that fails is null, too."""

    def evaluate(row: Row) -> Value:
        try:
            values = [argument(row) for argument in arguments]
        except Exception:
            values = [safe(argument, caught)(row) for argument in arguments]
        if not nulls and None in values:
            return None
        try:
            return function(*values)
        except Exception as error:
            caught(error)
            return None

    return evaluate
