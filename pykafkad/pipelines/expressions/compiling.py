"""compile_expression: from the tree of an expression to a closure that is called with a row.

Each class of the tree has a method of `Compiler` (COMPILERS is the table), which gives the type and the closure. A
closure may raise for a row: arithmetic with null raises as Java's does, and so does 1/0. Who catches it makes null
of it: a function call for itself and for its arguments, a constructor of an array, map or struct for its items, and
Compiled for the whole.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence

from pykafkad.pipelines.errors import StatementError, did_you_mean
from pykafkad.pipelines.expressions import arithmetic, casts, comparisons, constructors
from pykafkad.pipelines.expressions.closures import (
    Evaluate,
    Failures,
    Typed,
    constant,
    first_true,
    guarded,
    implicit,
    is_moment,
    kind_of,
    moment_of,
    safe,
    true,
    without_source,
)
from pykafkad.pipelines.expressions.numbers import wrap32
from pykafkad.pipelines.expressions.schema import Column, Row, Schema, Value
from pykafkad.pipelines.functions.registry import FUNCTIONS, SCALAR, Call, Functions, Variant
from pykafkad.pipelines.functions.signatures import UNIT, Bindings, LambdaType, Pattern, filled
from pykafkad.pipelines.syntax import ast
from pykafkad.pipelines.syntax.ast import Expression
from pykafkad.pipelines.syntax.formatting import text
from pykafkad.pipelines.types import (
    BIGINT,
    BOOLEAN,
    DOUBLE,
    INTEGER,
    STRING,
    Array,
    Field,
    Map,
    SqlType,
    Struct,
)
from pykafkad.pipelines.types import Decimal as DecimalType

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


class Compiled:
    """An expression with its type, to be called with rows. Pickles as its tree."""

    __slots__ = ("_caught", "call", "expression", "failures", "parts", "type")

    def __init__(
        self, expression: Expression, parts: tuple[Any, ...], typed: Typed, failures: Failures
    ) -> None:
        self.expression, self.parts = expression, parts
        self.type, self.call = typed
        self.failures = failures
        """Told why a row's value, or a part of it, is null."""
        self._caught = failures.of(expression)

    def __call__(self, row: Row) -> Value:
        try:
            return self.call(row)
        except Exception as error:
            self._caught(error)
            return None

    def __reduce__(self) -> tuple[Any, ...]:
        return compile_expression, (self.expression, *self.parts)


def compile_expression(
    expression: Expression,
    schema: Schema,
    functions: Functions = FUNCTIONS,
    properties: Mapping[str, Any] | None = None,
) -> Compiled:
    compiler = Compiler(schema, functions, properties or {})
    return Compiled(
        expression, (schema, functions, properties), compiler.compile(expression), compiler.failures
    )


class Compiler:
    """Compiles against one schema; the values of lambdas' parameters come after those of the columns in a row."""

    def __init__(
        self,
        schema: Schema,
        functions: Functions,
        properties: Mapping[str, Any],
        failures: Failures | None = None,
    ) -> None:
        self.schema, self.functions, self.properties = schema, functions, properties
        self.failures = failures or Failures()

    def compile(self, node: Expression) -> Typed:
        return COMPILERS[type(node)](self, node)

    def known(self, node: Expression) -> tuple[SqlType, Evaluate]:
        """Of what may not be NULL itself."""
        of, call = self.compile(node)
        if of is None:
            raise StatementError(f"{self.shown(node)} has no type", node.at)
        return of, call

    def shown(self, node: Expression) -> str:
        """The expression as a person wrote it: without the name of the only source, without columns of our own."""
        shown = ast.rewrite(node, self._meant)
        several = len({column.source for column in self.schema.columns} - {LAMBDA}) > 1
        return text(shown if several else ast.rewrite(shown, without_source))

    def _meant(self, part: Expression) -> Expression:
        found = self.schema.find(part.name, part.source) if isinstance(part, ast.ColumnReference) else None
        return part if found is None else found[1].stands_for or part

    def common_type(self, nodes: Sequence[Expression]) -> SqlType | None:
        try:
            return constructors.common_type(self.compile, nodes)
        except constructors.NoCommonType as error:
            raise StatementError(
                f"operator does not exist: {error.common} = {error.of} ({self.shown(error.node)})\n"
                "Hint: You might need to add explicit type casts.",
                error.node.at,
            ) from None

    def condition(self, node: Expression, of_what: str) -> Evaluate:
        of, call = self.compile(node)
        if of not in (BOOLEAN, None):
            raise StatementError(f"{of_what} should be BOOLEAN, but {self.shown(node)} is {of}", node.at)
        return call

    # --- names

    def column(self, node: ast.ColumnReference) -> Typed:
        found = self.schema.find(node.name, node.source)
        if found is None:
            names = {column.name for column in self.schema.columns}
            raise StatementError(
                f"Unknown column {self.shown(node)}.{did_you_mean(node.name, names)}", node.at
            )
        place, column = found
        return Typed(column.type, lambda row: row[place])

    def variable(self, node: ast.LambdaVariable) -> Typed:
        columns = self.schema.columns
        places = [
            at for at, column in enumerate(columns) if (column.name, column.source) == (node.name, LAMBDA)
        ]
        if not places:
            raise StatementError(f"{node.name} is no parameter of a lambda here", node.at)
        place, of = places[-1], columns[places[-1]].type
        return Typed(None if of is NULL else of, lambda row: row[place])

    # --- operators

    def arithmetic(self, node: ast.Arithmetic) -> Typed:
        left, right = self.compile(node.left), self.compile(node.right)
        found = arithmetic.operation(node.operator, left.type, right.type)
        if found is None:
            kinds = f"{kind_of(left.type)} {kind_of(right.type)}"
            raise StatementError(
                f"Error processing expression: ({self.shown(node)}). Unsupported arithmetic types. {kinds}",
                node.at,
            )
        of, make = found
        return Typed(of, make(left.call, right.call))

    def negation(self, node: ast.Negation) -> Typed:
        of, call = self.known(node.operand)
        if of == INTEGER:
            return Typed(of, lambda row: wrap32(-call(row)))
        if of in (BIGINT, DOUBLE) or isinstance(of, DecimalType):
            return Typed(of, lambda row: -call(row))
        raise StatementError(f"Unsupported expression: -{self.shown(node.operand)} ({of})", node.at)

    def comparison(self, node: ast.Comparison) -> Typed:
        left, right = self.compile(node.left), self.compile(node.right)
        has_null = isinstance(node.left, ast.NullLiteral) or isinstance(node.right, ast.NullLiteral)
        if has_null and not node.operator.startswith("IS"):
            raise StatementError(
                f"Comparison with NULL not supported: {self.shown(node)}. Use IS NULL or IS NOT NULL.",
                node.at,
            )
        left, right = self._moments(node.left, left, node.right, right)
        make = comparisons.comparison(node.operator, left.type, right.type)
        if make is None:
            raise StatementError(
                f"Cannot compare {self.shown(node.left)} ({left.type}) to {self.shown(node.right)} ({right.type}) "
                f"with {comparisons.NAMES[node.operator]}.",
                node.at,
            )
        return Typed(BOOLEAN, make(left.call, right.call))

    def _moments(
        self, left_node: Expression, left: Typed, right_node: Expression, right: Typed
    ) -> tuple[Typed, Typed]:
        """Text that ROWTIME and windows' bounds are compared with is a timestamp."""
        if is_moment(left_node, left) and isinstance(right_node, ast.StringLiteral):
            return left, constant(BIGINT, moment_of(right_node))
        if is_moment(right_node, right) and isinstance(left_node, ast.StringLiteral):
            return constant(BIGINT, moment_of(left_node)), right
        return left, right

    def between(self, node: ast.Between) -> Typed:
        low = self.comparison(ast.Comparison(">=", node.operand, node.low, at=node.at)).call
        high = self.comparison(ast.Comparison("<=", node.operand, node.high, at=node.at)).call
        if node.negated:
            return Typed(BOOLEAN, lambda row: not (low(row) and high(row)))
        return Typed(BOOLEAN, lambda row: low(row) and high(row))

    def logical(self, node: ast.Logical) -> Typed:
        left = self.condition(node.left, f"What {node.operator} joins")
        right = self.condition(node.right, f"What {node.operator} joins")
        if node.operator == "AND":
            return Typed(BOOLEAN, lambda row: true(left(row)) and true(right(row)))
        return Typed(BOOLEAN, lambda row: true(left(row)) or true(right(row)))

    def negated(self, node: ast.Not) -> Typed:
        call = self.condition(node.operand, "What NOT is said of")
        return Typed(BOOLEAN, lambda row: not true(call(row)))

    def is_null(self, node: ast.IsNull) -> Typed:
        call = self.compile(node.operand).call
        if node.negated:
            return Typed(BOOLEAN, lambda row: call(row) is not None)
        return Typed(BOOLEAN, lambda row: call(row) is None)

    def within(self, node: ast.In) -> Typed:
        nodes = (node.operand, *node.items)
        common = self.common_type(nodes)
        if common is None:
            return constant(BOOLEAN, node.negated)
        operand, *items = (constructors.coerced(self.compile, each, common) for each in nodes)
        negated = node.negated

        def evaluate(row: Row) -> bool:
            value = operand(row)
            return (value is not None and any(value == item(row) for item in items)) != negated

        return Typed(BOOLEAN, evaluate)

    def like(self, node: ast.Like) -> Typed:
        operand, pattern = self.compile(node.operand), self.compile(node.pattern)
        if operand.type not in (STRING, None) or pattern.type not in (STRING, None):
            raise StatementError(f"LIKE compares text: {self.shown(node)}", node.at)
        return Typed(BOOLEAN, comparisons.like(operand.call, pattern.call, node.escape, node.negated))

    def case(self, node: ast.Case) -> Typed:
        tests = [self._test(node.operand, when) for when in node.whens]
        results = [when.result for when in node.whens] + [node.default or ast.NullLiteral()]
        types = [self.compile(result).type for result in results]
        try:
            common = None
            for of in types:
                common = casts.widened(common, of)
        except TypeError:
            shown = ", ".join(f"{self.shown(node)} ({of})" for node, of in zip(results, types, strict=True))
            raise StatementError(
                f"Invalid Case expression. Type for all 'THEN' clauses should be the same. Found: {shown}",
                node.at,
            ) from None
        if common is None:
            raise StatementError("Invalid Case expression. All case branches have NULL type", node.at)
        values = [constructors.coerced(self.compile, result, common) for result in results]
        return Typed(common, first_true(tests, values))

    def _test(self, operand: Expression | None, when: ast.When) -> Evaluate:
        if operand is not None:
            return self.comparison(ast.Comparison("=", operand, when.test, at=when.at)).call
        return self.condition(when.test, "The condition of WHEN")

    def cast(self, node: ast.Cast) -> Typed:
        of, call = self.compile(node.operand)
        if of is None:
            return constant(node.type, None)
        convert = casts.cast(of, node.type)
        if convert is None:
            raise StatementError(f"Cast of {of} to {node.type} is not supported", node.at)
        if convert is casts.same:
            return Typed(node.type, call)

        def evaluate(row: Row) -> Value:
            value = call(row)
            return None if value is None else convert(value)

        return Typed(node.type, evaluate)

    # --- structured values

    def array(self, node: ast.ArrayLiteral) -> Typed:
        element = self.common_type(node.items)
        if element is None:
            raise StatementError(
                constructors.EMPTY_ARRAY if not node.items else constructors.NULL_ARRAY, node.at
            )
        items = [
            safe(constructors.coerced(self.compile, item, element), self.failures.of(item))
            for item in node.items
        ]
        return Typed(Array(element), lambda row: [item(row) for item in items])

    def map(self, node: ast.MapLiteral) -> Typed:
        if not node.entries:
            raise StatementError(constructors.EMPTY_MAP, node.at)
        names, values = zip(*node.entries, strict=True)
        key = self.common_type(names)
        value = self.common_type(values)
        if key is None or value is None:
            which = "keys" if key is None else "values"
            raise StatementError(
                f"Cannot construct a map with all NULL {which}{constructors.WORKAROUND}", node.at
            )
        entries = [
            (
                safe(constructors.coerced(self.compile, k, key), self.failures.of(k)),
                safe(constructors.coerced(self.compile, v, value), self.failures.of(v)),
            )
            for k, v in node.entries
        ]
        return Typed(Map(key, value), lambda row: {name(row): entry(row) for name, entry in entries})

    def struct(self, node: ast.StructLiteral) -> Typed:
        compiled = [(name, self.compile(value)) for name, value in node.fields]
        names = [name for name, _ in compiled]
        for name in names:
            if names.count(name) > 1:
                raise StatementError(f"Duplicate field names found in STRUCT: '{name}'", node.at)
        for (name, typed), (_, value) in zip(compiled, node.fields, strict=True):
            if typed.type is None:
                raise StatementError(
                    f"The field {name} of a STRUCT has no type: {self.shown(value)}", node.at
                )
        fields = tuple(Field(name, typed.type) for name, typed in compiled if typed.type is not None)
        calls = [(name, safe(typed.call, self.failures.of(node))) for name, typed in compiled]
        return Typed(Struct(fields), lambda row: {name: call(row) for name, call in calls})

    def field(self, node: ast.FieldAccess) -> Typed:
        of, call = self.known(node.operand)
        if not isinstance(of, Struct):
            raise StatementError(f"Expected STRUCT type, got: {of}", node.at)
        found, name = of.field(node.field), node.field
        if found is None:
            names = [field.name for field in of.fields]
            raise StatementError(
                f"Could not find field '{name}' in {of}.{did_you_mean(name, names)}", node.at
            )

        def evaluate(row: Row) -> Value:
            value = call(row)
            return None if value is None else value.get(name)

        return Typed(found.type, evaluate)

    def subscript(self, node: ast.Subscript) -> Typed:
        of, call = self.known(node.operand)
        index = self.compile(node.index)
        if isinstance(of, Map):
            return Typed(of.value, constructors.entry_of(call, index.call))
        if isinstance(of, Array) and index.type in (INTEGER, BIGINT, None):
            return Typed(of.element, constructors.item_of(call, index.call))
        raise StatementError(
            f"{self.shown(node.operand)} ({of}) has nothing at {self.shown(node.index)} ({index.type})",
            node.at,
        )

    # --- functions

    def call(self, node: ast.FunctionCall) -> Typed:
        function = self.functions.find(node.name)
        if function.kind != SCALAR:
            raise StatementError(
                f"{function.kind.capitalize()} function {node.name} cannot stand here", node.at
            )
        variant, call, arguments = self.arguments(node)
        implementation = variant.implementation(call) if variant.types else variant.implementation
        caught = self.failures.of(node)
        return Typed(variant.result_type(call), guarded(implementation, arguments, variant.nulls, caught))

    def arguments(self, node: ast.FunctionCall) -> tuple[Variant, Call, list[Evaluate]]:
        """The variant that is meant, what it may know, and its arguments as it takes them."""
        nodes = [item for item in node.arguments if not isinstance(item, ast.AllColumns)]
        typed = [self._argument(item) for item in nodes]
        types = [found.type for found in typed]
        try:
            variant, bound = self.functions.find(node.name).choose(types)
        except StatementError as error:
            raise StatementError(error.reason, node.at) from None
        parameters = variant.signature.of_arguments(len(types))
        assert parameters is not None
        calls: list[Evaluate] = []
        taken: list[SqlType | None] = []
        for item, found, parameter in zip(nodes, typed, parameters, strict=True):
            wanted = filled(parameter.pattern, bound, found.type)
            if isinstance(item, ast.Lambda):
                calls.append(self._lambda(item, parameter.pattern, bound))
            else:
                calls.append(implicit(found, wanted))
            taken.append(wanted)
        return variant, Call(taken, bound, self.properties), calls

    def _argument(self, node: Expression) -> Typed:
        """An argument; a lambda is compiled when the types of its parameters are known."""
        if isinstance(node, ast.Lambda):
            return constant(LambdaType(len(node.parameters)), None)
        return self.compile(node)

    def _lambda(self, node: ast.Lambda, pattern: Pattern, bound: Bindings) -> Evaluate:
        """A closure whose value for a row is the Python function that the lambda is there."""
        *patterns, result = pattern.parts
        columns = [
            Column(name, filled(part, bound) or NULL, LAMBDA)
            for name, part in zip(node.parameters, patterns, strict=True)
        ]
        inner = Compiler(
            Schema((*self.schema.columns, *columns)), self.functions, self.properties, self.failures
        )
        body = inner.compile(node.body)
        if result.kind == "VARIABLE":
            if result.name in bound and bound[result.name] is not None:
                body = Typed(bound[result.name], implicit(body, bound[result.name]))
            else:
                bound[result.name] = body.type
        elif body.type not in (filled(result, bound), None):
            raise StatementError(
                f"The lambda {self.shown(node)} gives {body.type} instead of {result}", node.at
            )
        call = body.call
        return lambda row: lambda *values: call((*row, *values))


LAMBDA = "=>"
"""The source of columns that are parameters of lambdas."""

NULL = Array(STRING)
"""What stands for the type of NULL in a lambda's parameter."""


def _integer(compiler: Compiler, node: ast.IntegerLiteral) -> Typed:
    return constant(INTEGER if -(2**31) <= node.value < 2**31 else BIGINT, node.value)


def _decimal(compiler: Compiler, node: ast.DecimalLiteral) -> Typed:
    return constant(constructors.literal_type(node), node.value)


def _double(compiler: Compiler, node: ast.DoubleLiteral) -> Typed:
    if math.isinf(node.value):
        raise StatementError(f"Number overflows DOUBLE: {text(node)}", node.at)
    return constant(DOUBLE, node.value)


def _unsupported(compiler: Compiler, node: Expression) -> Typed:
    raise StatementError(f"{text(node)} cannot stand here", node.at)


COMPILERS: dict[type[Expression], Callable[[Compiler, Any], Typed]] = {
    ast.NullLiteral: lambda compiler, node: constant(None, None),
    ast.BooleanLiteral: lambda compiler, node: constant(BOOLEAN, node.value),
    ast.IntegerLiteral: _integer,
    ast.DecimalLiteral: _decimal,
    ast.DoubleLiteral: _double,
    ast.StringLiteral: lambda compiler, node: constant(STRING, node.value),
    ast.IntervalUnit: lambda compiler, node: constant(UNIT, node.unit),
    ast.ColumnReference: Compiler.column,
    ast.LambdaVariable: Compiler.variable,
    ast.Arithmetic: Compiler.arithmetic,
    ast.Negation: Compiler.negation,
    ast.Comparison: Compiler.comparison,
    ast.Between: Compiler.between,
    ast.Logical: Compiler.logical,
    ast.Not: Compiler.negated,
    ast.IsNull: Compiler.is_null,
    ast.In: Compiler.within,
    ast.Like: Compiler.like,
    ast.Case: Compiler.case,
    ast.Cast: Compiler.cast,
    ast.ArrayLiteral: Compiler.array,
    ast.MapLiteral: Compiler.map,
    ast.StructLiteral: Compiler.struct,
    ast.FieldAccess: Compiler.field,
    ast.Subscript: Compiler.subscript,
    ast.FunctionCall: Compiler.call,
    ast.Lambda: _unsupported,
    ast.AllColumns: _unsupported,
}
"""How each class of the tree is compiled."""
