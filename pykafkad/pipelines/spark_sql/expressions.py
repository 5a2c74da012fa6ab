"""Expressions of ksqlDB's SQL as expressions of Spark SQL: one method, or one function, a class of the tree.

Types are what our own compiler says. A column of a row is the column of Spark's frame that is called c and its place.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from pykafkad.pipelines.expressions.closures import is_moment, moment_of
from pykafkad.pipelines.expressions.compiling import Compiled, Compiler
from pykafkad.pipelines.expressions.constructors import common_type
from pykafkad.pipelines.expressions.numbers import wrap32
from pykafkad.pipelines.functions.registry import FUNCTIONS
from pykafkad.pipelines.functions.signatures import LambdaType
from pykafkad.pipelines.spark_sql.functions import FUNCTIONS as PROVEN
from pykafkad.pipelines.spark_sql.sql import (
    VARIES,
    WHOLE,
    NotCompiled,
    Sql,
    all_of,
    any_of,
    column,
    converted,
    is_null,
    literal,
    quoted,
)
from pykafkad.pipelines.syntax import ast
from pykafkad.pipelines.syntax.ast import Expression
from pykafkad.pipelines.syntax.formatting import text
from pykafkad.pipelines.types import BIGINT, BOOLEAN, DATE, DOUBLE, INTEGER, STRING, TIME, TIMESTAMP, SqlType

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

MOMENTS = (DATE, TIME, TIMESTAMP)


def compiled(expression: Any) -> Sql:
    """Of one that is called with rows. NotCompiled where it is not proven."""
    if not isinstance(expression, Compiled):
        raise NotCompiled("an expression of our own")
    schema, functions, properties = expression.parts
    return ToSpark(Compiler(schema, functions, properties or {})).compile(expression.expression)


class ToSpark:
    def __init__(self, types: Compiler) -> None:
        self.types = types

    def compile(self, node: Expression) -> Sql:
        how = HOW.get(type(node))
        if how is None:
            raise NotCompiled(f"{type(node).__name__} ({text(node)})")
        return how(self, node)

    def column(self, node: ast.ColumnReference) -> Sql:
        found = self.types.schema.find(node.name, node.source)
        assert found is not None, "our own compiler has found it"
        return column(found[1].type, f"c{found[0]}")

    # --- operators

    def arithmetic(self, node: ast.Arithmetic) -> Sql:
        of = self.types.compile(node).type
        left, right = self.compile(node.left), self.compile(node.right)
        if left.constant is not VARIES and right.constant is not VARIES:
            return self._constant(node)
        if of not in (STRING, DOUBLE, *WHOLE) or (of == DOUBLE and node.operator == "%"):
            raise NotCompiled(f"{node.operator} of {left.type} and {right.type}")
        left, right = converted(left, of), converted(right, of)
        odd = left.odd + right.odd
        if of == STRING:
            return _failing(of, f"concat({left.value}, {right.value})", odd)
        if node.operator == "/" and of == DOUBLE and (right.constant is VARIES or not right.constant):
            odd += (f"{right.value} = 0",)
        return _failing(of, self._operation(node.operator, of, left.value, right.value), odd)

    def _operation(self, sign: str, of: SqlType, left: str, right: str) -> str:
        if sign != "/" or of == DOUBLE:
            return f"({left} {sign} {right})"
        divided = f"({left} DIV {right})"
        return f"CAST({divided} AS INT)" if of == INTEGER else divided

    def negation(self, node: ast.Negation) -> Sql:
        operand = self.compile(node.operand)
        if operand.constant is not VARIES:
            return self._constant(node)
        if operand.type not in (DOUBLE, *WHOLE):
            raise NotCompiled(f"- of {operand.type}")
        odd = operand.odd
        if operand.type == BIGINT:
            odd += (f"{operand.value} = CAST('{-(2**63)}' AS BIGINT)",)
        return _failing(operand.type, f"(- {operand.value})", odd)

    def comparison(self, node: ast.Comparison) -> Sql:
        left, right = self._comparable(node)
        odd = left.odd + right.odd
        if left.type == DOUBLE:
            odd += tuple(f"isnan({one.value})" for one in (left, right) if not one.exact)
        fails = any_of(left.fails, right.fails)
        if node.operator.startswith("IS"):
            same = f"({left.value} <=> {right.value})"
            said = same if node.operator == "IS NOT DISTINCT FROM" else f"(NOT {same})"
            return Sql(BOOLEAN, said, fails=fails, quiet=fails == "false", odd=odd)
        said = f"({left.value} {node.operator} {right.value})"
        may_be_null = any_of(is_null(left), is_null(right)) != "false"
        return Sql(BOOLEAN, f"coalesce({said}, false)" if may_be_null else said, fails=fails, odd=odd)

    def _comparable(self, node: ast.Comparison) -> tuple[Sql, Sql]:
        """Both sides in the type that they are compared in."""
        left, right = self.compile(node.left), self.compile(node.right)
        for one, other, of_one, of_other in (
            (node.left, node.right, left, right),
            (node.right, node.left, right, left),
        ):
            if is_moment(one, self.types.compile(one)) and isinstance(other, ast.StringLiteral):
                moment = literal(BIGINT, moment_of(other))
                return (left, moment) if of_one is left else (moment, right)
            if of_one.type in MOMENTS and isinstance(other, ast.StringLiteral):
                moment = converted(of_other, of_one.type)
                return (left, moment) if of_one is left else (moment, right)
        if None in (left.type, right.type):
            of = left.type or right.type
        elif DOUBLE in (left.type, right.type):
            of = DOUBLE
        elif left.type in WHOLE and right.type in WHOLE:
            of = BIGINT if BIGINT in (left.type, right.type) else INTEGER
        else:
            of = left.type
        if of is None or (
            left.type != right.type and of not in (DOUBLE, *WHOLE) and None not in (left.type, right.type)
        ):
            raise NotCompiled(f"{left.type} compared with {right.type}")
        if of not in (BOOLEAN, STRING, DOUBLE, *WHOLE, *MOMENTS):
            raise NotCompiled(f"{of} compared")
        return converted(left, of), converted(right, of)

    def between(self, node: ast.Between) -> Sql:
        low = self.comparison(ast.Comparison(">=", node.operand, node.low, at=node.at))
        high = self.comparison(ast.Comparison("<=", node.operand, node.high, at=node.at))
        both = self._and(low, high)
        return self._not(both) if node.negated else both

    def logical(self, node: ast.Logical) -> Sql:
        left, right = self.compile(node.left), self.compile(node.right)
        return self._and(left, right) if node.operator == "AND" else self._or(left, right)

    def _and(self, left: Sql, right: Sql) -> Sql:
        """What is right of what is false is not looked at."""
        fails = any_of(is_null(left), all_of(left.text, is_null(right)))
        return Sql(
            BOOLEAN,
            f"({left.text} AND {right.text})",
            fails=fails,
            quiet=fails == "false" or (left.quiet and right.quiet),
            odd=left.odd + right.odd,
        )

    def _or(self, left: Sql, right: Sql) -> Sql:
        fails = any_of(is_null(left), all_of(f"NOT {left.text}", is_null(right)))
        said = f"({left.text} OR {right.text})"
        return Sql(BOOLEAN, said, fails=fails, quiet=fails == "false", odd=left.odd + right.odd)

    def negated(self, node: ast.Not) -> Sql:
        return self._not(self.compile(node.operand))

    def _not(self, one: Sql) -> Sql:
        fails = is_null(one)
        return Sql(BOOLEAN, f"(NOT {one.text})", fails=fails, quiet=fails == "false", odd=one.odd)

    def is_null(self, node: ast.IsNull) -> Sql:
        one = self.compile(node.operand)
        said = f"({one.value} IS {'NOT ' if node.negated else ''}NULL)"
        return Sql(BOOLEAN, said, fails=one.fails, quiet=one.fails == "false", odd=one.odd)

    def within(self, node: ast.In) -> Sql:
        common = common_type(self.types.compile, (node.operand, *node.items))
        operand = converted(self.compile(node.operand), common)
        items = [converted(self.compile(item), common) for item in node.items]
        if operand.type not in (STRING, BOOLEAN, *WHOLE) or any(
            item.constant is VARIES or item.constant is None for item in items
        ):
            raise NotCompiled(f"IN of {operand.type}, or of what varies")
        said = f"coalesce({operand.value} IN ({', '.join(item.text for item in items)}), false)"
        found = Sql(BOOLEAN, said, fails=operand.fails, odd=operand.odd)
        return self._not(found) if node.negated else found

    def like(self, node: ast.Like) -> Sql:
        operand, pattern = self.compile(node.operand), self.compile(node.pattern)
        if not isinstance(pattern.constant, str) or "\\" in pattern.constant or node.escape is not None:
            raise NotCompiled("LIKE of a pattern that varies or has an escape")
        said = f"coalesce({operand.value} LIKE {quoted(pattern.constant)}, false)"
        found = Sql(BOOLEAN, said, fails=operand.fails, odd=operand.odd)
        return self._not(found) if node.negated else found

    def case(self, node: ast.Case) -> Sql:
        of = self.types.compile(node).type
        tests = [self._test(node.operand, when) for when in node.whens]
        results = [when.result for when in node.whens] + [node.default or ast.NullLiteral()]
        values = [converted(self.compile(result), of) for result in results]
        default = values.pop()
        branches = list(zip(tests, values, strict=True))

        def chosen(parts: list[tuple[str, str]], last: str) -> str:
            return f"CASE {' '.join(f'WHEN {test} THEN {part}' for test, part in parts)} ELSE {last} END"

        failing = [
            part for test, value in branches for part in ((test.fails, "true"), (test.condition, value.fails))
        ]
        nulls = [(test.condition, value.null) for test, value in branches]
        return Sql(
            of,
            chosen([(test.condition, value.value) for test, value in branches], default.value),
            null=_simple(chosen(nulls, default.null), [null for _, null in nulls] + [default.null]),
            fails=_simple(
                chosen([one for one in failing if one[0] != "false"], default.fails),
                [*(test.fails for test in tests), *(value.fails for value in values), default.fails],
            ),
            quiet=all(one.fails == "false" for one in (*tests, *values, default)),
            odd=tuple(odd for one in (*tests, *values, default) for odd in one.odd),
            exact=False,
        )

    def _test(self, operand: Expression | None, when: ast.When) -> Sql:
        if operand is not None:
            return self.comparison(ast.Comparison("=", operand, when.test, at=when.at))
        return self.compile(when.test)

    def cast(self, node: ast.Cast) -> Sql:
        one, to = self.compile(node.operand), node.type
        if one.constant is not VARIES:
            return converted(one, to)
        how = CASTS.get((one.type, to))
        if one.type == to:
            return one
        if how is None:
            raise NotCompiled(f"CAST of {one.type} to {to}")
        made, odd = how(one.value)
        found = replace(one, type=to, text=made, odd=one.odd + odd)
        return replace(found, quiet=False) if to == BOOLEAN else found

    def call(self, node: ast.FunctionCall) -> Sql:
        """A call does not fail: it is null where an argument fails, or itself."""
        variant, known, _ = self.types.arguments(node)
        function = PROVEN.get(FUNCTIONS.find(node.name).name)
        if function is None or any(isinstance(of, LambdaType) for of in known.types):
            raise NotCompiled(f"the function {node.name}")
        arguments = [
            converted(self.compile(item), of) for item, of in zip(node.arguments, known.types, strict=True)
        ]
        of = variant.result_type(known)
        made, odd = function([one.type for one in arguments], [f"({one.value})" for one in arguments])
        whole = tuple(odd for one in arguments for odd in one.odd) + odd
        return Sql(of, made, null=f"({made}) IS NULL", odd=whole, exact=False)

    def _constant(self, node: Expression) -> Sql:
        of, call = self.types.compile(node)
        try:
            return literal(of, call(()))
        except Exception as error:
            raise NotCompiled(f"a constant that fails: {error}") from None


def _failing(of: SqlType, said: str, odd: tuple[str, ...]) -> Sql:
    """What is null only where it fails."""
    return Sql(of, said, fails=f"{said} IS NULL", odd=odd, exact=False)


def _simple(whole: str, parts: list[str]) -> str:
    return "false" if all(part == "false" for part in parts) else whole


def _integer(compiler: ToSpark, node: ast.IntegerLiteral) -> Sql:
    return literal(INTEGER if node.value == wrap32(node.value) else BIGINT, node.value)


def _whole_text(digits: int, to: str) -> Callable[[str], tuple[str, tuple[str, ...]]]:
    pattern = quoted(f"^-?[0-9]{{1,{digits}}}$")
    return lambda value: (f"CAST({value} AS {to})", (f"NOT rlike({value}, {pattern})",))


DECIMAL_TEXT = quoted(r"^-?[0-9]{1,300}([.][0-9]{1,300})?$")

CASTS: dict[tuple[SqlType | None, SqlType], Callable[[str], tuple[str, tuple[str, ...]]]] = {
    (INTEGER, BIGINT): lambda value: (f"CAST({value} AS BIGINT)", ()),
    (INTEGER, DOUBLE): lambda value: (f"CAST({value} AS DOUBLE)", ()),
    (BIGINT, DOUBLE): lambda value: (f"CAST({value} AS DOUBLE)", ()),
    (BIGINT, INTEGER): lambda value: (f"CAST({value} AS INT)", ()),
    (DOUBLE, INTEGER): lambda value: (f"CAST({value} AS INT)", ()),
    (DOUBLE, BIGINT): lambda value: (f"CAST({value} AS BIGINT)", ()),
    (INTEGER, STRING): lambda value: (f"CAST({value} AS STRING)", ()),
    (BIGINT, STRING): lambda value: (f"CAST({value} AS STRING)", ()),
    (BOOLEAN, STRING): lambda value: (f"CAST({value} AS STRING)", ()),
    (STRING, INTEGER): _whole_text(9, "INT"),
    (STRING, BIGINT): _whole_text(18, "BIGINT"),
    (STRING, DOUBLE): lambda value: (f"CAST({value} AS DOUBLE)", (f"NOT rlike({value}, {DECIMAL_TEXT})",)),
    (STRING, BOOLEAN): lambda value: (f"(lower({value}) = 'true')", ()),
}
"""What a cast is in Spark, and the conditions under which that is not ours. A DOUBLE's text is not proven."""

HOW: dict[type[Expression], Callable[[ToSpark, Any], Sql]] = {
    ast.NullLiteral: lambda compiler, node: literal(None, None),
    ast.BooleanLiteral: lambda compiler, node: literal(BOOLEAN, node.value),
    ast.IntegerLiteral: _integer,
    ast.DecimalLiteral: lambda compiler, node: compiler._constant(node),
    ast.DoubleLiteral: lambda compiler, node: compiler._constant(node),
    ast.StringLiteral: lambda compiler, node: literal(STRING, node.value),
    ast.ColumnReference: ToSpark.column,
    ast.Arithmetic: ToSpark.arithmetic,
    ast.Negation: ToSpark.negation,
    ast.Comparison: ToSpark.comparison,
    ast.Between: ToSpark.between,
    ast.Logical: ToSpark.logical,
    ast.Not: ToSpark.negated,
    ast.IsNull: ToSpark.is_null,
    ast.In: ToSpark.within,
    ast.Like: ToSpark.like,
    ast.Case: ToSpark.case,
    ast.Cast: ToSpark.cast,
    ast.FunctionCall: ToSpark.call,
}
"""How each class of the tree is compiled; the others are not."""
