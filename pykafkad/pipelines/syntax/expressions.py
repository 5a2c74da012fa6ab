"""Expressions by precedence: OR, AND, NOT, one predicate, + and -, * / and %, a sign, -> and [], what is not divided."""

from __future__ import annotations

import decimal

from pykafkad.pipelines.errors import Position
from pykafkad.pipelines.syntax import tokens
from pykafkad.pipelines.syntax.ast import (
    AllColumns,
    Arithmetic,
    ArrayLiteral,
    Between,
    BooleanLiteral,
    Case,
    Cast,
    ColumnReference,
    Comparison,
    DecimalLiteral,
    DoubleLiteral,
    Expression,
    FieldAccess,
    FunctionCall,
    In,
    IntegerLiteral,
    IntervalUnit,
    IsNull,
    Lambda,
    LambdaVariable,
    Like,
    Literal,
    Logical,
    MapLiteral,
    Negation,
    Not,
    NullLiteral,
    StringLiteral,
    StructLiteral,
    Subscript,
    When,
)
from pykafkad.pipelines.syntax.reader import Reader
from pykafkad.pipelines.syntax.sql_types import sql_type
from pykafkad.pipelines.types import MAX_PRECISION

COMPARISONS = {"=": "=", "<>": "<>", "!=": "<>", "<": "<", "<=": "<=", ">": ">", ">=": ">="}
SUMS, PRODUCTS = ("+", "-"), ("*", "/", "%")
UNITS = {
    unit: plural
    for plural in ("MILLISECONDS", "SECONDS", "MINUTES", "HOURS", "DAYS")
    for unit in (plural, plural[:-1])
}
"""Units of time in singular and plural, to the plural."""

OF_UNITS = frozenset(("DATEADD", "DATESUB", "TIMEADD", "TIMESUB", "TIMESTAMPADD", "TIMESTAMPSUB"))
"""Functions whose first argument is a unit of time."""

MAX_INTEGER = 2**63


def expression(r: Reader) -> Expression:
    r.enter()
    left = _conjunction(r)
    while r.is_next("OR"):
        at = r.place(r.advance())
        left = Logical("OR", left, _conjunction(r), at=at)
    r.note("OR")
    r.leave()
    return left


def _conjunction(r: Reader) -> Expression:
    left = _negated(r)
    while r.is_next("AND"):
        at = r.place(r.advance())
        left = Logical("AND", left, _negated(r), at=at)
    r.note("AND")
    return left


def _negated(r: Reader) -> Expression:
    nots = []
    while r.is_next("NOT"):
        nots.append(r.place(r.advance()))
    found = _predicate(r)
    for at in reversed(nots):
        found = Not(found, at=at)
    return found


def _predicate(r: Reader) -> Expression:
    left = value_expression(r)
    token = r.token
    if token.kind == tokens.SYMBOL:
        if token.text in COMPARISONS:
            at = r.place(r.advance())
            return Comparison(COMPARISONS[token.text], left, value_expression(r), at=at)  # type: ignore[arg-type]
    elif token.kind == tokens.WORD:
        at = r.at
        if r.accept("IS"):
            return _is(r, left, at)
        negated = r.is_next("BETWEEN", "IN", "LIKE", ahead=1) and r.accept("NOT")
        if r.accept("BETWEEN"):
            low = value_expression(r)
            r.expect("AND")
            return Between(left, low, value_expression(r), negated, at=at)
        if r.accept("IN"):
            return In(left, tuple(_parenthesised(r)), negated, at=at)
        if r.accept("LIKE"):
            return _like(r, left, negated, at)
    r.note("a comparison")
    return left


def _is(r: Reader, left: Expression, at: Position) -> Expression:
    negated = r.accept("NOT")
    if r.accept("NULL"):
        return IsNull(left, negated, at=at)
    r.expect("DISTINCT", "FROM")
    operator = "IS NOT DISTINCT FROM" if negated else "IS DISTINCT FROM"
    return Comparison(operator, left, value_expression(r), at=at)  # type: ignore[arg-type]


def _like(r: Reader, left: Expression, negated: bool, at: Position) -> Expression:
    pattern, escape = value_expression(r), None
    if r.accept("ESCAPE"):
        where, escape = r.at, r.string()
        if len(escape) != 1:
            r.refuse(f"ESCAPE takes one character, not {len(escape)}", where)
    return Like(left, pattern, escape, negated, at=at)


def _parenthesised(r: Reader) -> list[Expression]:
    r.expect("(")
    found = [expression(r)]
    while r.accept(","):
        found.append(expression(r))
    r.expect(")")
    return found


def value_expression(r: Reader) -> Expression:
    left = _product(r)
    while r.token.kind == tokens.SYMBOL and r.token.text in SUMS:
        token = r.advance()
        left = Arithmetic(token.text, left, _product(r), at=r.place(token))  # type: ignore[arg-type]
    r.note("an operator")
    return left


def _product(r: Reader) -> Expression:
    left = _signed(r)
    while r.token.kind == tokens.SYMBOL and r.token.text in PRODUCTS:
        token = r.advance()
        left = Arithmetic(token.text, left, _signed(r), at=r.place(token))  # type: ignore[arg-type]
    return left


def _signed(r: Reader) -> Expression:
    if r.token.kind != tokens.SYMBOL or r.token.text not in SUMS:
        return _postfix(r)
    if r.is_next("-") and r.peek().kind in NUMBERS:
        return _postfix(r)
    token = r.advance()
    r.enter()
    operand = _signed(r)
    r.leave()
    return operand if token.text == "+" else Negation(operand, at=r.place(token))


def _postfix(r: Reader) -> Expression:
    found = _primary(r)
    while r.token.kind == tokens.SYMBOL:
        at = r.at
        if r.is_next("->") and not r.is_next("*", ahead=1):
            r.advance()
            found = FieldAccess(found, r.name("a field's name"), at=at)
        elif r.is_next("["):
            r.advance()
            found = Subscript(found, expression(r), at=at)
            r.expect("]")
        else:
            break
    return found


def _primary(r: Reader) -> Expression:
    token = r.token
    if token.kind == tokens.WORD:
        special = SPECIAL.get(token.text)
        if special is not None and (special[0] is None or r.is_next(special[0], ahead=1)):
            return special[1](r)
    elif token.kind in LITERALS or r.is_next("-"):
        return literal(r)
    elif r.is_next("("):
        r.advance()
        found = expression(r)
        r.expect(")")
        return found
    if r.is_name():
        return _call(r) if r.is_next("(", ahead=1) else _reference(r)
    r.note("an expression")
    r.fail()


def _reference(r: Reader) -> Expression:
    at, name = r.at, r.name()
    if r.is_next(".") and r.is_name(r.peek()):
        r.advance()
        return ColumnReference(r.name("a column's name"), name, at=at)
    if name in r.lambdas:
        return LambdaVariable(name, at=at)
    return ColumnReference(name, at=at)


# --- calls


def _call(r: Reader) -> Expression:
    at, name = r.at, r.name().upper()
    r.expect("(")
    arguments: list[Expression] = []
    if r.is_next("*") and r.is_next(")", ahead=1):
        star = AllColumns(at=r.at)
        r.advance()
        arguments = [] if name == "COUNT" else [star]
    elif not r.is_next(")"):
        arguments.append(_unit(r) if name in OF_UNITS else _argument(r))
        while r.accept(","):
            arguments.append(_argument(r))
    r.expect(")")
    return FunctionCall(name, tuple(arguments), at=at)


def _unit(r: Reader) -> Expression:
    if r.is_next(*UNITS) and r.is_next(",", ")", ahead=1):
        at = r.at
        return IntervalUnit(UNITS[r.advance().text], at=at)
    return _argument(r)


def _argument(r: Reader) -> Expression:
    """An expression, a lambda, or S.*"""
    if r.is_name():
        if r.is_next("=>", ahead=1):
            return _lambda(r, [r.name()])
        if r.is_next(".", ahead=1) and r.is_next("*", ahead=2):
            at, source = r.at, r.name()
            r.expect(".", "*")
            return AllColumns(source, at=at)
    elif r.is_next("(") and _is_lambda(r):
        r.advance()
        parameters = [r.name()]
        while r.accept(","):
            parameters.append(r.name())
        r.expect(")")
        return _lambda(r, parameters)
    return expression(r)


def _is_lambda(r: Reader) -> bool:
    ahead = 1
    while r.is_name(r.peek(ahead)) and r.is_next(",", ahead=ahead + 1):
        ahead += 2
    return r.is_name(r.peek(ahead)) and r.is_next(")", ahead=ahead + 1) and r.is_next("=>", ahead=ahead + 2)


def _lambda(r: Reader, parameters: list[str]) -> Expression:
    at = r.at
    r.expect("=>")
    r.lambdas.extend(parameters)
    body = expression(r)
    del r.lambdas[len(r.lambdas) - len(parameters) :]
    return Lambda(tuple(parameters), body, at=at)


# --- what begins with a word of the language


def _case(r: Reader) -> Expression:
    at = r.place(r.advance())
    operand = None if r.is_next("WHEN") else expression(r)
    whens: list[When] = []
    while r.is_next("WHEN") or not whens:
        where = r.at
        r.expect("WHEN")
        test = expression(r)
        r.expect("THEN")
        whens.append(When(test, expression(r), at=where))
    default = expression(r) if r.accept("ELSE") else None
    r.note("WHEN")
    r.expect("END")
    return Case(operand, tuple(whens), default, at=at)


def _cast(r: Reader) -> Expression:
    at = r.place(r.advance())
    r.expect("(")
    operand = expression(r)
    r.expect("AS")
    target = sql_type(r)
    r.expect(")")
    return Cast(operand, target, at=at)


def _array(r: Reader) -> Expression:
    at = r.place(r.advance())
    r.expect("[")
    items: list[Expression] = []
    while not r.accept("]"):
        if items:
            r.expect(",")
        items.append(expression(r))
    return ArrayLiteral(tuple(items), at=at)


def _map(r: Reader) -> Expression:
    at = r.place(r.advance())
    r.expect("(")
    entries: list[tuple[Expression, Expression]] = []
    while not r.accept(")"):
        if entries:
            r.expect(",")
        key = expression(r)
        r.expect(":=")
        entries.append((key, expression(r)))
    return MapLiteral(tuple(entries), at=at)


def _struct(r: Reader) -> Expression:
    at = r.place(r.advance())
    r.expect("(")
    members: list[tuple[str, Expression]] = []
    while not r.accept(")"):
        if members:
            r.expect(",")
        name = r.name("a field's name")
        r.expect(":=")
        members.append((name, expression(r)))
    return StructLiteral(tuple(members), at=at)


# --- literals


def literal(r: Reader) -> Literal:
    """A value that stands for itself, as properties are."""
    at, token = r.at, r.token
    if token.kind == tokens.STRING:
        return StringLiteral(r.advance().text, at=at)
    if r.accept("NULL"):
        return NullLiteral(at=at)
    if r.is_next("TRUE", "FALSE"):
        return BooleanLiteral(r.advance().text == "TRUE", at=at)
    negative = r.peek().kind in NUMBERS and r.accept("-")
    if r.token.kind not in NUMBERS:
        r.note("a value")
        r.fail()
    return _number(r, negative, at)


def _number(r: Reader, negative: bool, at: Position) -> Literal:
    token = r.advance()
    text = f"-{token.text}" if negative else token.text
    if token.kind == tokens.DECIMAL:
        if len(text) > MAX_PRECISION:
            r.refuse(f"a number of more than {MAX_PRECISION} digits", at)
        return DecimalLiteral(decimal.Decimal(text), at=at)
    if token.kind == tokens.DOUBLE:
        return DoubleLiteral(float(text), at=at)
    if len(text.lstrip("-0")) > 19 or not -MAX_INTEGER <= int(text) < MAX_INTEGER:
        r.refuse(f"{text} is out of BIGINT's range", at)
    return IntegerLiteral(int(text), at=at)


NUMBERS = (tokens.INTEGER, tokens.DECIMAL, tokens.DOUBLE)
LITERALS = (*NUMBERS, tokens.STRING)
SPECIAL = {
    "NULL": (None, literal),
    "TRUE": (None, literal),
    "FALSE": (None, literal),
    "CASE": (None, _case),
    "CAST": (None, _cast),
    "ARRAY": ("[", _array),
    "MAP": ("(", _map),
    "STRUCT": ("(", _struct),
}
"""Words that begin an expression of their own, some of them only before a certain symbol."""
