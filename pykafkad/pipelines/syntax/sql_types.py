"""Types: INT, DECIMAL(4, 2), ARRAY<..>, MAP<.., ..>, STRUCT<A INT, ..>, and the names that CREATE TYPE gives."""

from __future__ import annotations

from pykafkad.pipelines.syntax.reader import Reader
from pykafkad.pipelines.types import (
    MAX_PRECISION,
    PRIMITIVES,
    Array,
    Custom,
    Decimal,
    Field,
    Map,
    SqlType,
    Struct,
)


def sql_type(r: Reader) -> SqlType:
    r.enter()
    if r.is_next("<", "<>", ahead=1) and r.is_next(*NESTED):
        found = NESTED[r.advance().text](r)
    elif r.is_next("DECIMAL"):
        found = _decimal(r)
    else:
        found = _named(r)
    r.leave()
    return found


def _named(r: Reader) -> SqlType:
    name = r.name("a type")
    if r.is_next("("):
        r.refuse(f"{name} has no length or precision", r.at)
    return PRIMITIVES.get(name) or Custom(name)


def _decimal(r: Reader) -> SqlType:
    r.advance()
    r.expect("(")
    at, precision = r.at, r.whole()
    r.expect(",")
    scale_at, scale = r.at, r.whole()
    r.expect(")")
    if not 1 <= precision <= MAX_PRECISION:
        r.refuse(
            f"DECIMAL precision must be >= 1 and at most {MAX_PRECISION}: DECIMAL({precision},{scale})", at
        )
    if scale > precision:
        r.refuse(f"DECIMAL precision must be >= scale: DECIMAL({precision},{scale})", scale_at)
    return Decimal(precision, scale)


def _array(r: Reader) -> SqlType:
    r.expect("<")
    element = sql_type(r)
    r.expect(">")
    return Array(element)


def _map(r: Reader) -> SqlType:
    r.expect("<")
    key = sql_type(r)
    r.expect(",")
    value = sql_type(r)
    r.expect(">")
    return Map(key, value)


def _struct(r: Reader) -> SqlType:
    if r.accept("<>"):
        return Struct(())
    r.expect("<")
    fields: list[Field] = []
    while not r.accept(">"):
        if fields:
            r.expect(",")
        at, name = r.at, r.name("a field's name")
        if any(field.name == name for field in fields):
            r.refuse(f"Duplicate field names found in STRUCT: {name}", at)
        fields.append(Field(name, sql_type(r)))
    return Struct(tuple(fields))


NESTED = {"ARRAY": _array, "MAP": _map, "STRUCT": _struct}
