"""Functions that make several rows of one."""

from __future__ import annotations

from collections.abc import Mapping

from pykafkad.pipelines.errors import StatementError
from pykafkad.pipelines.expressions.closures import Typed, guarded
from pykafkad.pipelines.expressions.compiling import Compiled, Compiler
from pykafkad.pipelines.expressions.schema import Schema, Value
from pykafkad.pipelines.functions.registry import FUNCTIONS, TABLE, Functions, table_function
from pykafkad.pipelines.syntax.ast import FunctionCall

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


@table_function("EXPLODE", "(ARRAY<T>) T")
def explode(items: list[Value]) -> list[Value]:
    """A row for each item of an array."""
    return items


@table_function("CUBE_EXPLODE", "(ARRAY<T>) ARRAY<T>")
def cube_explode(items: list[Value]) -> list[list[Value]]:
    """A row for each combination of an array's items with nulls in their places."""
    rows: list[list[Value]] = [[]]
    for item in items:
        choices = [None] if item is None else [None, item]
        rows = [[*row, choice] for row in rows for choice in choices]
    return rows


def compile_table_function(
    call: FunctionCall,
    schema: Schema,
    functions: Functions = FUNCTIONS,
    properties: Mapping[str, Any] | None = None,
) -> CompiledTableFunction:
    """What is called with a row and gives a list, of values of its .type."""
    function = functions.find(call.name)
    if function.kind != TABLE:
        raise StatementError(f"{call.name} is no table function", call.at)
    compiler = Compiler(schema, functions, properties or {})
    variant, known, arguments = compiler.arguments(call)
    implementation = variant.implementation(known) if variant.types else variant.implementation
    caught = compiler.failures.of(call)
    typed = Typed(variant.result_type(known), guarded(implementation, arguments, variant.nulls, caught))
    return CompiledTableFunction(call, (schema, functions, properties), typed, compiler.failures)


class CompiledTableFunction(Compiled):
    """Null is no row."""

    __slots__ = ()

    def __call__(self, row: Any) -> list[Value]:
        return super().__call__(row) or []

    def __reduce__(self) -> tuple[Any, ...]:
        return compile_table_function, (self.expression, *self.parts)
