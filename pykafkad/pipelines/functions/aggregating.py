"""compile_aggregate: an aggregate function's call as what a host of operators needs of it.

A state is plain data. `add` and its like give a new state and leave the old one as it was. `undo` takes back what
`add` did with the same row (where .undoes says so: tables need it); `merge` is the state of both, of which the
first is the older window's.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from pykafkad.pipelines.errors import StatementError
from pykafkad.pipelines.expressions.closures import Typed
from pykafkad.pipelines.expressions.compiling import Compiled, Compiler
from pykafkad.pipelines.expressions.schema import Row, Schema, Value
from pykafkad.pipelines.functions.registry import AGGREGATE, FUNCTIONS, Call, Functions
from pykafkad.pipelines.syntax import ast
from pykafkad.pipelines.syntax.formatting import text
from pykafkad.pipelines.types import SqlType

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import ClassVar

State = Any

LITERALS = (
    ast.NullLiteral,
    ast.BooleanLiteral,
    ast.IntegerLiteral,
    ast.DecimalLiteral,
    ast.DoubleLiteral,
    ast.StringLiteral,
)


class Aggregator:
    """An aggregate of values, whatever rows they come from."""

    undoes: ClassVar[bool] = False
    structured: ClassVar[bool] = True
    """Whether ksqlDB keeps more than one plain value, which format DELIMITED cannot say."""

    def __init__(self, call: Call) -> None:
        """`call` has the types of the values and the constants."""

    def initial(self) -> State:
        raise NotImplementedError

    def add(self, state: State, *values: Value) -> State:
        raise NotImplementedError

    def undo(self, state: State, *values: Value) -> State:
        raise NotImplementedError

    def merge(self, state: State, other: State) -> State:
        raise NotImplementedError

    def result(self, state: State) -> Value:
        raise NotImplementedError


class Aggregate:
    """The call of an aggregate function over rows of a schema. Pickles as the call."""

    def __init__(
        self,
        call: ast.FunctionCall,
        parts: tuple[Any, ...],
        aggregator: Aggregator,
        arguments: Sequence[Compiled],
        of: SqlType | None,
    ) -> None:
        self.call, self.arguments, self.type = call, list(arguments), of
        self.undoes, self.structured = aggregator.undoes, aggregator.structured
        self.initial, self.merge, self.result = aggregator.initial, aggregator.merge, aggregator.result
        self.add, self.undo = _of_rows(aggregator.add, arguments), _of_rows(aggregator.undo, arguments)
        self._parts = parts

    def __reduce__(self) -> tuple[Any, ...]:
        return compile_aggregate, (self.call, *self._parts)


def _of_rows(step: Callable[..., State], arguments: Sequence[Compiled]) -> Callable[[State, Row], State]:
    """What goes from a state to the next with a row. Most take no argument, or one."""
    if not arguments:
        return lambda state, row: step(state)
    if len(arguments) == 1:
        (only,) = arguments
        return lambda state, row: step(state, only(row))
    return lambda state, row: step(state, *[argument(row) for argument in arguments])


def compile_aggregate(
    call: ast.FunctionCall,
    schema: Schema,
    functions: Functions = FUNCTIONS,
    properties: Mapping[str, Any] | None = None,
) -> Aggregate:
    function = functions.find(call.name)
    if function.kind != AGGREGATE:
        raise StatementError(f"{call.name} is no aggregate function", call.at)
    compiler = Compiler(schema, functions, properties or {})
    variant, known, calls = compiler.arguments(call)
    parameters = variant.signature.of_arguments(len(calls)) or []
    constants = sum(parameter.constant for parameter in parameters)
    varying = len(calls) - constants
    known = known._replace(
        constants=[_constant(call, place) for place in range(varying, len(calls))],
        types=known.types[:varying],
    )
    parts = (schema, functions, properties)
    arguments = [
        Compiled(node, parts, Typed(of, evaluate), compiler.failures)
        for node, of, evaluate in zip(call.arguments[:varying], known.types, calls[:varying], strict=True)
    ]
    return Aggregate(call, parts, variant.implementation(known), arguments, variant.result_type(known))


def _constant(call: ast.FunctionCall, place: int) -> Value:
    node = call.arguments[place]
    if not isinstance(node, LITERALS):
        raise StatementError(
            f"Parameter {place + 1} passed to function {call.name} must be a literal constant, "
            f"but was expression: '{text(node)}'",
            node.at,
        )
    return None if isinstance(node, ast.NullLiteral) else node.value
