"""Signatures of functions as text, and which of several a call means.

(ARRAY<T>, (T) => U) ARRAY<U>       T and U stand for any type, the same one wherever they stand; a lambda is a
parameter, too (STRING, STRING...) STRING          the last parameter any number of times (T, INTEGER!) ARRAY<T>
a constant, of aggregates (DECIMAL) DECIMAL                   of any precision and scale; what the result's are, the
function says itself (UNIT, INTEGER, DATE) DATE          DAYS, HOURS, ...
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from pykafkad.pipelines.expressions.casts import implicit, rank, widened
from pykafkad.pipelines.expressions.numbers import as_decimal_type, is_numeric
from pykafkad.pipelines.types import (
    PRIMITIVES,
    Array,
    Map,
    Primitive,
    SqlType,
    Struct,
)
from pykafkad.pipelines.types import Decimal as DecimalType

ANY = "ANY"
"""The variable that may stand for another type each time."""

UNIT = Primitive("INTERVALUNIT")
"""The type of DAYS in DATEADD(DAYS, 1, d)."""


@dataclass(frozen=True, slots=True)
class LambdaType(SqlType):
    """What a lambda that is an argument has for a type: how many parameters."""

    parameters: int

    def __str__(self) -> str:
        return "LAMBDA"


@dataclass(frozen=True, slots=True)
class Pattern:
    """A type of a signature: `kind` is that of a SQL type, or VARIABLE, LAMBDA or ANY STRUCT; `parts` what it is
    made of."""

    kind: str
    parts: tuple[Pattern, ...] = ()
    name: str = ""

    def variables(self) -> Iterator[str]:
        if self.kind == "VARIABLE":
            yield self.name
        for part in self.parts:
            yield from part.variables()

    def __str__(self) -> str:
        inner = ", ".join(map(str, self.parts))
        if self.kind == "VARIABLE":
            return self.name
        if self.kind == "LAMBDA":
            return f"({', '.join(map(str, self.parts[:-1]))}) => {self.parts[-1]}"
        return f"{self.kind}<{inner}>" if self.parts else self.kind


@dataclass(frozen=True, slots=True)
class Parameter:
    pattern: Pattern
    constant: bool = False

    def __str__(self) -> str:
        return str(self.pattern)


@dataclass(frozen=True, slots=True)
class Signature:
    parameters: tuple[Parameter, ...]
    variadic: int | None
    """The place of the parameter that may come any number of times, once at least."""
    result: Pattern

    def of_arguments(self, count: int) -> list[Parameter] | None:
        """A parameter for each of so many arguments; None where that is not its number."""
        if self.variadic is None:
            return list(self.parameters) if count == len(self.parameters) else None
        times = count - len(self.parameters) + 1
        if times < 1:
            return None
        before, after = self.parameters[: self.variadic], self.parameters[self.variadic + 1 :]
        return [*before, *(self.parameters[self.variadic],) * times, *after]

    def __str__(self) -> str:
        texts = [
            f"{parameter}..." if place == self.variadic else str(parameter)
            for place, parameter in enumerate(self.parameters)
        ]
        return f"({', '.join(texts)})"


_TOKEN = re.compile(r"\s*(=>|\.\.\.|[A-Z][A-Z0-9_]*|[(),<>!])")


class _Reader:
    def __init__(self, text: str) -> None:
        self.tokens = [found.group(1) for found in _TOKEN.finditer(text)] + [""]
        self.place = 0

    def take(self, expected: str) -> bool:
        found = self.tokens[self.place] == expected
        self.place += found
        return found

    def parts(self, closing: str) -> list[Pattern]:
        found: list[Pattern] = []
        while not self.take(closing):
            found.append(self.pattern())
            self.take(",")
        return found

    def pattern(self) -> Pattern:
        if self.take("("):
            parameters = self.parts(")")
            assert self.take("=>")
            return Pattern("LAMBDA", (*parameters, self.pattern()))
        word = self.tokens[self.place]
        self.place += 1
        if self.take("<"):
            return Pattern(word, tuple(self.parts(">")))
        if word in PRIMITIVES or word in ("DECIMAL", "UNIT", "STRUCT"):
            return Pattern(word)
        return Pattern("VARIABLE", (), word)

    def signature(self) -> Signature:
        parameters: list[Parameter] = []
        variadic = None
        assert self.take("(")
        while not self.take(")"):
            pattern = self.pattern()
            if self.take("..."):
                variadic = len(parameters)
            parameters.append(Parameter(pattern, self.take("!")))
            self.take(",")
        return Signature(tuple(parameters), variadic, self.pattern())


def signature(text: str) -> Signature:
    return _Reader(text).signature()


Bindings = dict[str, SqlType | None]


def accepts(pattern: Pattern, actual: SqlType | None, bound: Bindings, casting: bool) -> bool:
    """Whether an argument of the type may be given; learns what variables stand for."""
    if actual is None:
        return pattern.kind != "LAMBDA" and pattern.kind != "UNIT"
    match pattern.kind:
        case "VARIABLE":
            return _bind(pattern.name, actual, bound)
        case "DECIMAL":
            return isinstance(actual, DecimalType) or (casting and is_numeric(actual) and rank(actual) < 2)
        case "ARRAY":
            return isinstance(actual, Array) and _inner(pattern.parts[0], actual.element, bound, casting)
        case "MAP":
            return (
                isinstance(actual, Map)
                and _inner(pattern.parts[0], actual.key, bound, casting)
                and _inner(pattern.parts[1], actual.value, bound, casting)
            )
        case "STRUCT":
            return isinstance(actual, Struct)
        case "LAMBDA":
            return isinstance(actual, LambdaType) and actual.parameters == len(pattern.parts) - 1
        case "UNIT":
            return actual == UNIT
    wanted = PRIMITIVES[pattern.kind]
    return actual == wanted or (casting and implicit(actual, wanted) is not None)


def _inner(pattern: Pattern, actual: SqlType, bound: Bindings, casting: bool) -> bool:
    return accepts(pattern, actual, bound, casting)


def _bind(name: str, actual: SqlType, bound: Bindings) -> bool:
    if isinstance(actual, LambdaType) or actual == UNIT:
        return False
    if name == ANY:
        return True
    try:
        bound[name] = widened(bound.get(name), actual)
    except TypeError:
        return False
    return True


def filled(pattern: Pattern, bound: Bindings, actual: SqlType | None = None) -> SqlType | None:
    """The type that the pattern stands for; `actual` is the argument's, where it is a parameter's pattern."""
    match pattern.kind:
        case "VARIABLE":
            return actual if pattern.name == ANY else bound.get(pattern.name)
        case "DECIMAL":
            return as_decimal_type(actual) if actual is not None else None
        case "ARRAY":
            inner = filled(pattern.parts[0], bound, actual.element if isinstance(actual, Array) else None)
            return None if inner is None else Array(inner)
        case "MAP":
            key = filled(pattern.parts[0], bound, actual.key if isinstance(actual, Map) else None)
            value = filled(pattern.parts[1], bound, actual.value if isinstance(actual, Map) else None)
            return None if key is None or value is None else Map(key, value)
        case "STRUCT" | "LAMBDA" | "UNIT":
            return actual
    return PRIMITIVES[pattern.kind]


def _preferred(one: Sequence[Parameter], other: Sequence[Parameter]) -> bool:
    """Whether the first's parameters are in no place wider than the second's."""
    return all(_narrower(a.pattern, b.pattern) for a, b in zip(one, other, strict=True))


def _narrower(one: Pattern, other: Pattern) -> bool:
    if one.kind == other.kind or other.kind == "VARIABLE":
        return True
    return one.kind in ("INT", "INTEGER", "BIGINT") and (
        other.kind in ("DOUBLE", "DECIMAL") or (other.kind == "BIGINT" and one.kind != "BIGINT")
    )


class Ambiguous(Exception):
    """Several signatures fit, none of them better than the others."""


def resolve(signatures: Sequence[Signature], types: Sequence[SqlType | None]) -> tuple[int, Bindings] | None:
    """Which signature is meant by arguments of these types: one that takes them as they are, else one that casts
    them."""
    for casting in (False, True):
        fitting: list[tuple[int, list[Parameter], Bindings]] = []
        for place, candidate in enumerate(signatures):
            parameters, bound = candidate.of_arguments(len(types)), Bindings()
            if parameters is not None and all(
                accepts(parameter.pattern, of, bound, casting)
                for parameter, of in zip(parameters, types, strict=True)
            ):
                fitting.append((place, parameters, bound))
        if fitting:
            return _best(fitting, signatures)
    return None


def _best(
    fitting: list[tuple[int, list[Parameter], Bindings]], signatures: Sequence[Signature]
) -> tuple[int, Bindings]:
    fixed = [each for each in fitting if signatures[each[0]].variadic is None] or fitting
    for place, parameters, bound in fixed:
        if all(_preferred(parameters, other) for _, other, _ in fixed):
            return place, bound
    raise Ambiguous
