"""What expressions are made of, what every node of a statement is, and walking over them.

Others take these from ast.py, which has the rest.
"""

from __future__ import annotations

import decimal
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, fields, replace

from pykafkad.pipelines.errors import NOWHERE, Position
from pykafkad.pipelines.types import SqlType

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, TypeAlias
    from typing import Literal as OneOf


@dataclass(frozen=True, slots=True)
class Node:
    at: Position = field(default=NOWHERE, compare=False, repr=False, kw_only=True)


# --- expressions


@dataclass(frozen=True, slots=True)
class Expression(Node):
    pass


@dataclass(frozen=True, slots=True)
class NullLiteral(Expression):
    pass


@dataclass(frozen=True, slots=True)
class BooleanLiteral(Expression):
    value: bool


@dataclass(frozen=True, slots=True)
class IntegerLiteral(Expression):
    """An INTEGER where 32 bits hold it, else a BIGINT; more than 64 bits are refused by the parser."""

    value: int


@dataclass(frozen=True, slots=True)
class DecimalLiteral(Expression):
    """1.50, with the scale that it is written with."""

    value: decimal.Decimal


@dataclass(frozen=True, slots=True)
class DoubleLiteral(Expression):
    """1.5E0."""

    value: float


@dataclass(frozen=True, slots=True)
class StringLiteral(Expression):
    value: str


Literal: TypeAlias = (
    NullLiteral | BooleanLiteral | IntegerLiteral | DecimalLiteral | DoubleLiteral | StringLiteral
)


@dataclass(frozen=True, slots=True)
class ColumnReference(Expression):
    """A column, perhaps of a named source: S.NAME."""

    name: str
    source: str | None = None


@dataclass(frozen=True, slots=True)
class LambdaVariable(Expression):
    """A parameter of the lambda that this stands in."""

    name: str


@dataclass(frozen=True, slots=True)
class IntervalUnit(Expression):
    """The first argument of DATEADD and its like, in the plural: MILLISECONDS, SECONDS, MINUTES, HOURS, DAYS."""

    unit: str


@dataclass(frozen=True, slots=True)
class Negation(Expression):
    """-x, where x is no number."""

    operand: Expression


@dataclass(frozen=True, slots=True)
class Arithmetic(Expression):
    operator: OneOf["+", "-", "*", "/", "%"]
    left: Expression
    right: Expression


@dataclass(frozen=True, slots=True)
class Comparison(Expression):
    operator: OneOf["=", "<>", "<", "<=", ">", ">=", "IS DISTINCT FROM", "IS NOT DISTINCT FROM"]
    left: Expression
    right: Expression


@dataclass(frozen=True, slots=True)
class Logical(Expression):
    operator: OneOf["AND", "OR"]
    left: Expression
    right: Expression


@dataclass(frozen=True, slots=True)
class Not(Expression):
    operand: Expression


@dataclass(frozen=True, slots=True)
class IsNull(Expression):
    operand: Expression
    negated: bool = False


@dataclass(frozen=True, slots=True)
class Between(Expression):
    operand: Expression
    low: Expression
    high: Expression
    negated: bool = False


@dataclass(frozen=True, slots=True)
class In(Expression):
    operand: Expression
    items: tuple[Expression, ...]
    negated: bool = False


@dataclass(frozen=True, slots=True)
class Like(Expression):
    operand: Expression
    pattern: Expression
    escape: str | None = None
    negated: bool = False


@dataclass(frozen=True, slots=True)
class When(Node):
    """A branch of a CASE: `test` is a condition, or what the CASE's operand is compared with."""

    test: Expression
    result: Expression


@dataclass(frozen=True, slots=True)
class Case(Expression):
    """CASE with an operand is ksqlDB's simple one, without its searched one."""

    operand: Expression | None
    whens: tuple[When, ...]
    default: Expression | None


@dataclass(frozen=True, slots=True)
class Cast(Expression):
    operand: Expression
    type: SqlType


@dataclass(frozen=True, slots=True)
class FunctionCall(Expression):
    """The name is in upper case. COUNT(*) has no arguments; other functions of * have one AllColumns."""

    name: str
    arguments: tuple[Expression, ...]


@dataclass(frozen=True, slots=True)
class Lambda(Expression):
    parameters: tuple[str, ...]
    body: Expression


@dataclass(frozen=True, slots=True)
class ArrayLiteral(Expression):
    """ARRAY[1, 2]."""

    items: tuple[Expression, ...]


@dataclass(frozen=True, slots=True)
class MapLiteral(Expression):
    """MAP('a' := 1)."""

    entries: tuple[tuple[Expression, Expression], ...]


@dataclass(frozen=True, slots=True)
class StructLiteral(Expression):
    """STRUCT(A := 1)."""

    fields: tuple[tuple[str, Expression], ...]


@dataclass(frozen=True, slots=True)
class FieldAccess(Expression):
    """struct->FIELD."""

    operand: Expression
    field: str


@dataclass(frozen=True, slots=True)
class Subscript(Expression):
    """array[1], map['k']."""

    operand: Expression
    index: Expression


@dataclass(frozen=True, slots=True)
class AllColumns(Expression):
    """* or S.*, of a SELECT list or a function."""

    source: str | None = None


# --- walking


def parts(node: Node) -> Iterator[Node]:
    """The nodes that this one is directly made of."""
    for attribute in fields(node):
        yield from _nodes(getattr(node, attribute.name))


def _nodes(value: object) -> Iterator[Node]:
    if isinstance(value, Node):
        yield value
    elif type(value) is tuple:
        for item in value:
            yield from _nodes(item)


def walk(node: Node) -> Iterator[Node]:
    """The node and all that is in it, outermost first."""
    yield node
    for part in parts(node):
        yield from walk(part)


def rewrite(expression: Expression, change: Callable[[Expression], Expression]) -> Expression:
    """The expression with `change` applied to its parts and then to itself; what stays the same stays the same object."""
    changed: dict[str, Any] = {
        attribute.name: new
        for attribute in fields(expression)
        if (new := _rewritten(old := getattr(expression, attribute.name), change)) is not old
    }
    return change(replace(expression, **changed) if changed else expression)


def _rewritten(value: object, change: Callable[[Expression], Expression]) -> object:
    if isinstance(value, Expression):
        return rewrite(value, change)
    if isinstance(value, When):
        new = When(rewrite(value.test, change), rewrite(value.result, change), at=value.at)
        return value if new.test is value.test and new.result is value.result else new
    if type(value) is tuple and not isinstance(value, Position):
        items = tuple(_rewritten(item, change) for item in value)
        return value if all(new is old for new, old in zip(items, value, strict=True)) else items
    return value
