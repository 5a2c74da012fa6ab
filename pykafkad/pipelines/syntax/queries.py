"""SELECT: what is chosen, from where, in which windows, grouped and ended how."""

from __future__ import annotations

from pykafkad.pipelines.syntax import tokens
from pykafkad.pipelines.syntax.ast import (
    Duration,
    Emit,
    Expression,
    Hopping,
    Join,
    Query,
    SelectAll,
    SelectColumn,
    SelectFields,
    SelectItem,
    Session,
    Source,
    Tumbling,
    Window,
    Within,
)
from pykafkad.pipelines.syntax.expressions import UNITS, expression
from pykafkad.pipelines.syntax.reader import Reader

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Final
    from typing import Literal as OneOf

NO_ALIAS = frozenset(("EMIT", "PARTITION"))
"""Words that go on with the query where they stand behind a source or column without AS."""


def query(r: Reader) -> Query:
    at = r.at
    r.expect("SELECT")
    select = r.several(_select_item)
    r.expect("FROM")
    return Query(
        select=select,
        source=_from(r),
        window=_window(r) if r.accept("WINDOW") else None,
        where=expression(r) if r.accept("WHERE") else None,
        group_by=_grouping(r, "GROUP BY") if r.accept_all("GROUP", "BY") else (),
        partition_by=_grouping(r, "PARTITION BY") if r.accept_all("PARTITION", "BY") else (),
        having=expression(r) if r.accept("HAVING") else None,
        emit=_emit(r) if r.accept("EMIT") else None,
        limit=r.whole() if r.accept("LIMIT") else None,
        at=at,
    )


def _emit(r: Reader) -> Emit:
    if r.accept("FINAL"):
        return Emit.FINAL
    r.expect("CHANGES")
    return Emit.CHANGES


# --- what is chosen


def _select_item(r: Reader) -> SelectItem:
    at = r.at
    if r.accept("*"):
        return SelectAll(at=at)
    if r.is_name() and r.is_next(".", ahead=1) and r.is_next("*", ahead=2):
        source = r.name()
        r.expect(".", "*")
        return SelectAll(source, at=at)
    chosen = expression(r)
    if r.is_next("->"):
        r.expect("->", "*")
        return SelectFields(chosen, at=at)
    return SelectColumn(chosen, _alias(r), at=at)


def _alias(r: Reader) -> str | None:
    if r.accept("AS"):
        return r.name("a name for the column")
    quoted = r.token.kind == tokens.QUOTED
    return r.name() if r.is_name() and (quoted or r.token.text not in NO_ALIAS) else None


def _grouping(r: Reader, clause: str) -> tuple[Expression, ...]:
    """a, b or (a, b)"""
    if r.is_next("(") and r.is_next(")", ahead=1):
        r.refuse(f"{clause} requires at least one expression", r.at)
    if not (r.is_next("(") and _is_whole_list(r)):
        return r.several(expression)
    r.expect("(")
    found = r.several(expression)
    r.expect(")")
    return found


def _is_whole_list(r: Reader) -> bool:
    """Whether the parenthesis that is next holds all of the clause: an operator or comma behind it says no."""
    depth, ahead = 0, 0
    while (token := r.peek(ahead)).kind != tokens.END:
        if token.kind == tokens.SYMBOL:
            depth += (token.text in "([") - (token.text in ")]")
        ahead += 1
        if not depth:
            return r.peek(ahead).kind == tokens.END or r.is_next(*CLAUSES, ahead=ahead)
    return False


CLAUSES: Final = ("PARTITION", "HAVING", "EMIT", "LIMIT", ")", ";")


# --- from where


def _from(r: Reader) -> Source | Join:
    found: Source | Join = _source(r)
    while True:
        at = r.at
        kind = _join(r)
        if kind is None:
            return found
        right = _source(r)
        within = _within(r) if r.accept("WITHIN") else None
        r.expect("ON")
        found = Join(kind, found, right, within, expression(r), at=at)


def _join(r: Reader) -> OneOf["INNER", "LEFT", "RIGHT", "FULL"] | None:
    kinds: tuple[OneOf["INNER", "LEFT", "RIGHT", "FULL"], ...] = ("INNER", "LEFT", "RIGHT", "FULL")
    for kind in kinds:
        if r.is_next(kind):
            r.advance()
            if kind != "INNER":
                r.accept("OUTER")
            r.expect("JOIN")
            return kind
    return "INNER" if r.accept("JOIN") else None


def _source(r: Reader) -> Source:
    at, name = r.at, r.name("a stream or table")
    return Source(name, _alias(r), at=at)


def _within(r: Reader) -> Within:
    at = r.at
    if r.accept("("):
        before = duration(r)
        r.expect(",")
        after = duration(r)
        r.expect(")")
    else:
        before = after = duration(r)
    return Within(before, after, duration(r) if r.accept_all("GRACE", "PERIOD") else None, at=at)


# --- windows and times


def duration(r: Reader) -> Duration:
    at, value = r.at, r.whole("a number and a unit of time")
    if not r.is_next(*UNITS):
        for unit in ("MILLISECONDS", "SECONDS", "MINUTES", "HOURS", "DAYS"):
            r.note(unit)
        r.fail()
    return Duration(value, UNITS[r.advance().text], at=at)


def _window(r: Reader) -> Window:
    at = r.at
    if r.is_name() and not r.is_next(*WINDOWS) and r.is_next(*WINDOWS, ahead=1):
        r.advance()  # a window may have a name, to which nothing can refer
    if r.accept("TUMBLING"):
        r.expect("(", "SIZE")
        size = duration(r)
        return Tumbling(size, *_keeping(r), at=at)
    if r.accept("HOPPING"):
        r.expect("(", "SIZE")
        size = duration(r)
        r.expect(",", "ADVANCE", "BY")
        advance = duration(r)
        return Hopping(size, advance, *_keeping(r), at=at)
    r.expect("SESSION")
    r.expect("(")
    gap = duration(r)
    return Session(gap, *_keeping(r), at=at)


WINDOWS: Final = ("TUMBLING", "HOPPING", "SESSION")


def _keeping(r: Reader) -> tuple[Duration | None, Duration | None]:
    """RETENTION and GRACE PERIOD, and the end of the window's parenthesis."""
    retention = grace = None
    comma = r.accept(",")
    if comma and r.accept("RETENTION"):
        retention = duration(r)
        comma = r.accept(",")
    if comma:
        r.expect("GRACE", "PERIOD")
        grace = duration(r)
    r.expect(")")
    return retention, grace
