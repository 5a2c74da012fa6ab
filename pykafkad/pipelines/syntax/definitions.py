"""Statements that make, change, fill and drop streams, tables and types."""

from __future__ import annotations

from pykafkad.pipelines.errors import Position
from pykafkad.pipelines.syntax import tokens
from pykafkad.pipelines.syntax.ast import (
    AlterSource,
    ColumnDefinition,
    CreateAsSelect,
    CreateSource,
    CreateType,
    DropSource,
    DropType,
    Expression,
    InsertSelect,
    InsertValues,
    Kind,
    Property,
    Role,
    Statement,
)
from pykafkad.pipelines.syntax.expressions import expression, literal
from pykafkad.pipelines.syntax.queries import query
from pykafkad.pipelines.syntax.reader import Reader
from pykafkad.pipelines.syntax.sql_types import sql_type


def kind(r: Reader) -> Kind:
    if r.accept("STREAM"):
        return Kind.STREAM
    r.expect("TABLE")
    return Kind.TABLE


def create(r: Reader) -> Statement:
    at = r.place(r.advance())
    or_replace = r.accept("OR")
    if or_replace:
        r.expect("REPLACE")
    elif r.accept("TYPE"):
        return _type(r, at)
    read_only = r.accept("SOURCE")
    what = kind(r)
    if_not_exists = r.accept_all("IF", "NOT", "EXISTS")
    name = r.name(f"a name for the {what.value.lower()}")
    elements = columns(r) if r.is_next("(") else ()
    r.note("(")
    properties = with_properties(r)
    if elements or read_only or not r.accept("AS"):
        if not elements and not properties:
            r.fail()
        return CreateSource(what, name, elements, properties, or_replace, if_not_exists, read_only, at=at)
    return CreateAsSelect(what, name, query(r), properties, or_replace, if_not_exists, at=at)


def _type(r: Reader, at: Position) -> Statement:
    if_not_exists = r.accept_all("IF", "NOT", "EXISTS")
    name = r.name("a name for the type")
    r.expect("AS")
    return CreateType(name, sql_type(r), if_not_exists, at=at)


def with_properties(r: Reader) -> tuple[Property, ...]:
    """WITH (name = value, ...), if it is next."""
    if not r.accept("WITH"):
        return ()
    r.expect("(")
    if r.accept(")"):
        return ()
    found = r.several(_property)
    r.expect(")")
    for index, one in enumerate(found):
        if any(one.name == other.name for other in found[:index]):
            r.refuse(f"{one.name} is given twice", one.at)
    return found


def _property(r: Reader) -> Property:
    at = r.at
    name = r.string() if r.token.kind == tokens.STRING else r.name("a property")
    r.expect("=")
    return Property(name.upper(), literal(r), at=at)


def columns(r: Reader) -> tuple[ColumnDefinition, ...]:
    r.expect("(")
    found = r.several(_column)
    r.expect(")")
    return found


def _column(r: Reader) -> ColumnDefinition:
    at, name, of = r.at, r.name("a column"), sql_type(r)
    if r.accept_all("PRIMARY", "KEY"):
        return ColumnDefinition(name, of, Role.PRIMARY_KEY, at=at)
    if r.accept("KEY"):
        return ColumnDefinition(name, of, Role.KEY, at=at)
    if r.accept("HEADERS"):
        return ColumnDefinition(name, of, Role.HEADERS, at=at)
    if r.accept("HEADER"):
        r.expect("(")
        header = r.string("the header's key in quotes")
        r.expect(")")
        return ColumnDefinition(name, of, Role.HEADER, header, at=at)
    return ColumnDefinition(name, of, at=at)


def alter(r: Reader) -> Statement:
    at = r.place(r.advance())
    what, name = kind(r), r.name("the name of what to alter")
    return AlterSource(what, name, r.several(_added), at=at)


def _added(r: Reader) -> ColumnDefinition:
    r.expect("ADD")
    r.accept("COLUMN")
    at = r.at
    return ColumnDefinition(r.name("a column"), sql_type(r), at=at)


def drop(r: Reader) -> Statement:
    at = r.place(r.advance())
    if r.accept("TYPE"):
        if_exists = r.accept_all("IF", "EXISTS")
        return DropType(r.name("a type"), if_exists, at=at)
    what, if_exists = kind(r), r.accept_all("IF", "EXISTS")
    name = r.name(f"a {what.value.lower()}")
    return DropSource(what, name, if_exists, r.accept_all("DELETE", "TOPIC"), at=at)


def insert(r: Reader) -> Statement:
    at = r.place(r.advance())
    r.expect("INTO")
    target = r.name("a stream or table")
    if r.is_next("(") or r.is_next("VALUES"):
        return InsertValues(target, *values(r), at=at)
    properties = with_properties(r)
    r.note("VALUES")
    return InsertSelect(target, query(r), properties, at=at)


def values(r: Reader, word: str = "VALUES") -> tuple[tuple[str, ...], tuple[Expression, ...]]:
    """(columns) VALUES (...), of which the columns may be left out."""
    names: tuple[str, ...] = ()
    if r.accept("("):
        names = r.several(lambda r: r.name("a column"))
        r.expect(")")
    at = r.at
    r.expect(word, "(")
    found = r.several(expression)
    r.expect(")")
    if names and len(names) != len(found):
        r.refuse(f"{len(names)} columns, but {len(found)} values", at)
    return names, found
