"""SQL types: values that compare by what they are, and write themselves as ksqlDB writes them in its messages.

A name that CREATE TYPE gave is a Custom type until the catalog has resolved it (`resolve`).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from pykafkad.pipelines.names import in_backticks, written


class SqlType:
    """One of the classes below."""

    __slots__ = ()


@dataclass(frozen=True, slots=True)
class Primitive(SqlType):
    """A type without parameters: one of the constants below."""

    name: str

    def __str__(self) -> str:
        return self.name

    def __repr__(self) -> str:
        return self.name


BOOLEAN = Primitive("BOOLEAN")
INTEGER = Primitive("INTEGER")
BIGINT = Primitive("BIGINT")
DOUBLE = Primitive("DOUBLE")
STRING = Primitive("STRING")
BYTES = Primitive("BYTES")
DATE = Primitive("DATE")
TIME = Primitive("TIME")
TIMESTAMP = Primitive("TIMESTAMP")

PRIMITIVES: dict[str, Primitive] = {
    **{
        known.name: known
        for known in (BOOLEAN, INTEGER, BIGINT, DOUBLE, STRING, BYTES, DATE, TIME, TIMESTAMP)
    },
    "INT": INTEGER,
    "VARCHAR": STRING,
}
"""Every word that names a type without parameters."""

MAX_PRECISION = 1000
"""ksqlDB has no bound, memory has one."""


@dataclass(frozen=True, slots=True)
class Decimal(SqlType):
    precision: int
    scale: int

    def __str__(self) -> str:
        return f"DECIMAL({self.precision}, {self.scale})"


@dataclass(frozen=True, slots=True)
class Array(SqlType):
    element: SqlType

    def __str__(self) -> str:
        return f"ARRAY<{self.element}>"


@dataclass(frozen=True, slots=True)
class Map(SqlType):
    key: SqlType
    value: SqlType

    def __str__(self) -> str:
        return f"MAP<{self.key}, {self.value}>"


@dataclass(frozen=True, slots=True)
class Field:
    """A field of a struct; its name has the case that it is written with in data."""

    name: str
    type: SqlType

    def __str__(self) -> str:
        return f"`{in_backticks(self.name)}` {self.type}"


@dataclass(frozen=True, slots=True)
class Struct(SqlType):
    fields: tuple[Field, ...]

    def field(self, name: str) -> Field | None:
        return next((field for field in self.fields if field.name == name), None)

    def __str__(self) -> str:
        return "STRUCT<" + ", ".join(map(str, self.fields)) + ">" if self.fields else "STRUCT< >"


@dataclass(frozen=True, slots=True)
class Custom(SqlType):
    """A type by the name that CREATE TYPE gave it."""

    name: str

    def __str__(self) -> str:
        return written(self.name)


def resolve(sql_type: SqlType, named: Callable[[str], SqlType]) -> SqlType:
    """The type with every custom name in it replaced by what `named` knows (which raises for what it does not)."""
    match sql_type:
        case Custom(name):
            return named(name)
        case Array(element):
            return Array(resolve(element, named))
        case Map(key, value):
            return Map(resolve(key, named), resolve(value, named))
        case Struct(fields):
            return Struct(tuple(Field(field.name, resolve(field.type, named)) for field in fields))
    return sql_type
