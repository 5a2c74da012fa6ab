"""The table of functions: names, variants with their signatures, descriptions. The modules beside it fill it by
decorators.

A variant's implementation takes the values of its arguments and gives the value of the call. Where one of them is
null it is not called and the value is null, unless it says nulls=True. One that must know more than values
(types=True) takes the Call first and gives the function of values.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from importlib import import_module
from typing import Any, NamedTuple, TypeVar

from pykafkad.pipelines.errors import StatementError, did_you_mean
from pykafkad.pipelines.expressions.schema import Value
from pykafkad.pipelines.functions.signatures import (
    Ambiguous,
    Bindings,
    Signature,
    filled,
    resolve,
    signature,
)
from pykafkad.pipelines.types import SqlType

F = TypeVar("F", bound=Callable[..., Any])

SCALAR, AGGREGATE, TABLE = "SCALAR", "AGGREGATE", "TABLE"


class Call(NamedTuple):
    """What an implementation may know of its call before there are rows."""

    types: Sequence[SqlType | None]
    """The types of the arguments as they are given to it."""
    bound: Bindings
    properties: Mapping[str, Any]
    constants: Sequence[Value] = ()
    """Of aggregates: the values of the arguments after the ones that vary."""


Result = Callable[[Sequence[SqlType | None]], SqlType]


@dataclass(frozen=True, slots=True)
class Variant:
    signature: Signature
    implementation: Callable[..., Any]
    nulls: bool = False
    types: bool = False
    result: Result | None = None
    """The type of the result where the signature cannot say it."""

    def result_type(self, call: Call) -> SqlType | None:
        if self.result is not None:
            return self.result(call.types)
        return filled(self.signature.result, call.bound)


@dataclass(slots=True)
class Function:
    name: str
    kind: str
    category: str
    description: str = ""
    variants: list[Variant] = field(default_factory=list)

    def choose(self, types: Sequence[SqlType | None]) -> tuple[Variant, Bindings]:
        """The variant that arguments of these types mean."""
        shown = ", ".join("null" if of is None else str(of) for of in types)
        try:
            found = resolve([variant.signature for variant in self.variants], types)
        except Ambiguous:
            raise StatementError(
                f"Function '{self.name.lower()}' cannot be resolved due to ambiguous method parameters ({shown})."
                f"{self._alternatives()}"
            ) from None
        if found is None:
            raise StatementError(
                f"Function '{self.name.lower()}' does not accept parameters ({shown}).{self._alternatives()}"
            )
        place, bound = found
        return self.variants[place], bound

    def _alternatives(self) -> str:
        shown = "\n".join(f"{self.name.lower()}{variant.signature}" for variant in self.variants)
        return f"\nValid alternatives are:\n{shown}"


class Functions:
    """Functions by their names in upper case."""

    def __init__(self) -> None:
        self._by_name: dict[str, Function] = {}
        self._loaded = False

    def add(self, name: str, kind: str, category: str, description: str, variants: Iterable[Variant]) -> None:
        function = self._by_name.setdefault(name, Function(name, kind, category))
        assert function.kind == kind
        function.description = function.description or description
        function.variants.extend(variants)

    def all(self) -> list[Function]:
        self._load()
        return sorted(self._by_name.values(), key=lambda function: function.name)

    def kind_of(self, name: str) -> str | None:
        self._load()
        found = self._by_name.get(name.upper())
        return None if found is None else found.kind

    def find(self, name: str) -> Function:
        self._load()
        found = self._by_name.get(name.upper())
        if found is None:
            raise StatementError(
                f"Can't find any functions with the name '{name}'.{did_you_mean(name, self._by_name)}"
            )
        return found

    def __reduce__(self) -> str:
        return "FUNCTIONS"  # there is one table in a process

    def _load(self) -> None:
        if self._loaded:
            return
        self._loaded = True
        for module in MODULES:
            import_module(f"pykafkad.pipelines.functions.{module}")


MODULES = (
    "numeric", "text", "regexes", "bytes_functions", "collections", "lambdas", "conditional", "dates", "json_functions",
    "urls", "table_functions", "aggregates", "offsets", "collecting", "statistics",
)  # fmt: skip
"""Every module with functions in it."""

FUNCTIONS = Functions()


def scalar(
    name: str,
    category: str,
    *signatures: str,
    nulls: bool = False,
    types: bool = False,
    result: Result | None = None,
    kind: str = SCALAR,
) -> Callable[[F], F]:
    """Adds the decorated implementation under the name, a variant for each signature; its docstring describes the
    function."""

    def add(implementation: F) -> F:
        variants = [Variant(signature(text), implementation, nulls, types, result) for text in signatures]
        FUNCTIONS.add(name, kind, category, (implementation.__doc__ or "").strip(), variants)
        return implementation

    return add


def table_function(name: str, *signatures: str, nulls: bool = False, types: bool = False) -> Callable[[F], F]:
    """One whose value is a list, of which each item is the value of a row. The signature's result is the type of
    an item."""
    return scalar(name, "TABLE", *signatures, nulls=nulls, types=types, kind=TABLE)


def aggregate(name: str, *signatures: str, result: Result | None = None) -> Callable[[F], F]:
    """One that takes a Call and gives an Aggregator (aggregating.py)."""
    return scalar(name, "AGGREGATE", *signatures, types=True, nulls=True, result=result, kind=AGGREGATE)
