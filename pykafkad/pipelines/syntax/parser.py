"""Statements by their first words, and the ways in: `parse` for one, `parse_script` for many."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import NamedTuple, TypeVar

from pykafkad.pipelines.errors import Position, StatementError
from pykafkad.pipelines.syntax import definitions, tokens
from pykafkad.pipelines.syntax.assertions import assertion
from pykafkad.pipelines.syntax.ast import (
    ControlQuery,
    DefineVariable,
    Describe,
    DescribeAll,
    DescribeFunction,
    Explain,
    Expression,
    Kind,
    Node,
    PrintTopic,
    RunScript,
    SelectStatement,
    SetProperty,
    Show,
    Statement,
    UndefineVariable,
    UnsetProperty,
    parts,
)
from pykafkad.pipelines.syntax.expressions import expression
from pykafkad.pipelines.syntax.queries import query
from pykafkad.pipelines.syntax.reader import Reader
from pykafkad.pipelines.syntax.sql_types import sql_type
from pykafkad.pipelines.syntax.tokens import START
from pykafkad.pipelines.types import SqlType

T = TypeVar("T")

MAX_DEPTH = 150
"""How deep what is read may be nested, a chain of operators included: whatever walks over it recurses."""


class Parsed(NamedTuple):
    """A statement and the text that it was read from, variables replaced."""

    statement: Statement
    text: str


def parse(text: str, at: Position = START) -> Statement:
    """The one statement of a text, with or without a semicolon."""
    return _whole(text, at, _statement)


def parse_script(text: str, variables: Mapping[str, str] | None = None) -> Iterator[Parsed]:
    """The statements of a script one by one; `variables` are looked at before each, so DEFINE may be obeyed between."""
    pieces, rest = tokens.split(text)
    for piece in [*pieces, rest] if rest else pieces:
        replaced = tokens.substitute(piece.text, variables) if variables else piece.text
        yield Parsed(parse(replaced, piece.at), replaced)


def parse_expression(text: str) -> Expression:
    return _whole(text, START, expression)


def parse_type(text: str) -> SqlType:
    return _whole(text, START, sql_type)


def _whole(text: str, at: Position, one: Callable[[Reader], T]) -> T:
    r = Reader(text, at)
    found = one(r)
    if r.is_next(";"):
        r.advance()
    if r.token.kind != tokens.END:
        r.note("the end of the statement")
        r.fail()
    if isinstance(found, Node) and r.size > MAX_DEPTH:
        _check_depth(found)
    return found


def _check_depth(node: Node) -> None:
    """Without recursion: level by level."""
    level, depth = [node], 0
    while level:
        depth += 1
        if depth > MAX_DEPTH:
            raise StatementError(
                f"more than {MAX_DEPTH} operators and parentheses are nested here", level[0].at
            )
        level = [part for one in level for part in parts(one)]


def _statement(r: Reader) -> Statement:
    read = STATEMENTS.get(r.token.text) if r.token.kind == tokens.WORD else None
    if read is None:
        r.expect_one_of(STATEMENTS)
    return read(r)


# --- queries that run


def _select(r: Reader) -> Statement:
    at = r.at
    return SelectStatement(query(r), at=at)


def _control(r: Reader) -> Statement:
    token = r.advance()
    at = r.place(token)
    if r.accept("ALL"):
        return ControlQuery(token.text, None, at=at)  # type: ignore[arg-type]
    if r.is_name(r.peek()) and r.is_next("QUERY"):
        r.advance()
    return ControlQuery(token.text, r.name("a query's id"), at=at)  # type: ignore[arg-type]


def _explain(r: Reader) -> Statement:
    at = r.place(r.advance())
    if r.is_name() and (r.token.kind == tokens.QUOTED or r.token.text not in STATEMENTS):
        return Explain(r.name("a query's id"), None, at=at)
    r.note("a query's id")
    return Explain(None, _statement(r), at=at)


# --- what there is


def _show(r: Reader) -> Statement:
    at = r.place(r.advance())
    if r.accept("ALL"):
        r.expect("TOPICS")
        return Show("TOPICS", r.accept("EXTENDED"), every=True, at=at)
    for what in SHOWN:
        if r.accept(what):
            extended = what in SHOWN_EXTENDED and r.accept("EXTENDED")
            return Show(what, extended, at=at)  # type: ignore[arg-type]
    r.fail()


def _describe(r: Reader) -> Statement:
    at = r.place(r.advance())
    if r.is_name(r.peek()):
        if r.accept("FUNCTION"):
            return DescribeFunction(r.name("a function"), at=at)
        if r.is_next("EXTENDED"):
            r.advance()
            return Describe(r.name("a stream or table"), True, at=at)
    for kind in Kind:
        if r.accept(f"{kind.value}S"):
            return DescribeAll(kind, r.accept("EXTENDED"), at=at)
    return Describe(r.name("a stream or table"), r.accept("EXTENDED"), at=at)


def _print(r: Reader) -> Statement:
    at = r.place(r.advance())
    topic = r.written_name("a topic")
    from_beginning = r.accept_all("FROM", "BEGINNING")
    interval = r.whole() if r.accept("INTERVAL") or r.accept("SAMPLE") else None
    limit = r.whole() if r.accept("LIMIT") else None
    return PrintTopic(topic, from_beginning, interval, limit, at=at)


# --- the session


def _set(r: Reader) -> Statement:
    at = r.place(r.advance())
    name = r.string("a property in quotes")
    r.expect("=")
    return SetProperty(name, r.string(), at=at)


def _unset(r: Reader) -> Statement:
    at = r.place(r.advance())
    return UnsetProperty(r.string("a property in quotes"), at=at)


def _define(r: Reader) -> Statement:
    at = r.place(r.advance())
    name = r.written_name("a variable")
    r.expect("=")
    return DefineVariable(name, r.string(), at=at)


def _undefine(r: Reader) -> Statement:
    at = r.place(r.advance())
    return UndefineVariable(r.written_name("a variable"), at=at)


def _run(r: Reader) -> Statement:
    at = r.place(r.advance())
    r.expect("SCRIPT")
    return RunScript(r.string("a path in quotes"), at=at)


SHOWN = ("STREAMS", "TABLES", "TOPICS", "QUERIES", "FUNCTIONS", "PROPERTIES", "VARIABLES", "TYPES")
SHOWN_EXTENDED = frozenset(("STREAMS", "TABLES", "TOPICS", "QUERIES"))

STATEMENTS: dict[str, Callable[[Reader], Statement]] = {
    "CREATE": definitions.create,
    "SELECT": _select,
    "INSERT": definitions.insert,
    "DROP": definitions.drop,
    "ALTER": definitions.alter,
    "TERMINATE": _control,
    "PAUSE": _control,
    "RESUME": _control,
    "SHOW": _show,
    "LIST": _show,
    "DESCRIBE": _describe,
    "EXPLAIN": _explain,
    "PRINT": _print,
    "SET": _set,
    "UNSET": _unset,
    "DEFINE": _define,
    "UNDEFINE": _undefine,
    "RUN": _run,
    "ASSERT": assertion,
}
"""The words that statements begin with."""
