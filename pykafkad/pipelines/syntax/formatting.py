"""Statements and expressions as SQL that reads as the same again.

Parentheses stand only where they are needed. What has no place of its own in a text is a table from class to writer.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from pykafkad.pipelines.names import written
from pykafkad.pipelines.syntax import ast
from pykafkad.pipelines.syntax.ast import Expression, Node
from pykafkad.pipelines.syntax.expressions import OF_UNITS, SPECIAL, UNITS
from pykafkad.pipelines.types import Array, Custom, Map, SqlType, Struct

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

OR, AND, NOT, PREDICATE, SUM, PRODUCT, SIGN, POSTFIX = range(8)
"""How strongly what an expression is made of holds together."""


def text(node: Node) -> str:
    """The node as SQL, statements without a semicolon."""
    return WRITERS[type(node)](node)


def string(value: str) -> str:
    return "'" + value.replace("'", "''") + "'"


def type_text(of: SqlType) -> str:
    """A type as it is declared: names of a struct's fields only in backticks where they need them."""
    match of:
        case Array(element):
            return f"ARRAY<{type_text(element)}>"
        case Map(key, value):
            return f"MAP<{type_text(key)}, {type_text(value)}>"
        case Struct(fields):
            members = ", ".join(f"{written(field.name)} {type_text(field.type)}" for field in fields)
            return f"STRUCT<{members or ' '}>"
        case Custom(name):
            return written(name)
    return str(of)


def _all(nodes: Iterable[Node]) -> str:
    return ", ".join(map(text, nodes))


def _strength(node: Expression) -> int:
    match node:
        case ast.Logical(operator):
            return OR if operator == "OR" else AND
        case ast.Not():
            return NOT
        case ast.Comparison() | ast.IsNull() | ast.Between() | ast.In() | ast.Like():
            return PREDICATE
        case ast.Arithmetic(operator):
            return SUM if operator in "+-" else PRODUCT
        case ast.Negation():
            return SIGN
    return POSTFIX


def _at_least(strength: int, node: Expression) -> str:
    """The expression, in parentheses where it holds together less strongly than its place demands."""
    return text(node) if _strength(node) >= strength else f"({text(node)})"


# --- expressions


def _integer(node: ast.IntegerLiteral) -> str:
    return str(node.value)


def _decimal(node: ast.DecimalLiteral) -> str:
    shown = format(node.value, "f")
    return shown if "." in shown else f"{shown}."


def _double(node: ast.DoubleLiteral) -> str:
    shown = repr(node.value)
    if shown.lstrip("-") == "inf":  # 1E999
        return shown.replace("inf", "1E999")
    return shown.upper() if "e" in shown else f"{shown}E0"


def _column(node: ast.ColumnReference) -> str:
    return _name(node.name) if node.source is None else f"{_name(node.source)}.{written(node.name)}"


def _name(name: str) -> str:
    """A name where an expression may begin: some words begin another one."""
    return f"`{name}`" if name in SPECIAL else written(name)


def _negation(node: ast.Negation) -> str:
    operand = _at_least(SIGN, node.operand)
    return f"-({operand})" if operand[0] in "-.0123456789" else f"-{operand}"


def _arithmetic(node: ast.Arithmetic) -> str:
    strength = _strength(node)
    return f"{_at_least(strength, node.left)} {node.operator} {_at_least(strength + 1, node.right)}"


def _comparison(node: ast.Comparison) -> str:
    return f"{_at_least(SUM, node.left)} {node.operator} {_at_least(SUM, node.right)}"


def _logical(node: ast.Logical) -> str:
    strength = _strength(node)
    return f"{_at_least(strength, node.left)} {node.operator} {_at_least(strength + 1, node.right)}"


def _not(negated: bool) -> str:
    return "NOT " if negated else ""


def _is_null(node: ast.IsNull) -> str:
    return f"{_at_least(SUM, node.operand)} IS {_not(node.negated)}NULL"


def _between(node: ast.Between) -> str:
    operand, low, high = (_at_least(SUM, one) for one in (node.operand, node.low, node.high))
    return f"{operand} {_not(node.negated)}BETWEEN {low} AND {high}"


def _in(node: ast.In) -> str:
    return f"{_at_least(SUM, node.operand)} {_not(node.negated)}IN ({_all(node.items)})"


def _like(node: ast.Like) -> str:
    escape = f" ESCAPE {string(node.escape)}" if node.escape is not None else ""
    return f"{_at_least(SUM, node.operand)} {_not(node.negated)}LIKE {_at_least(SUM, node.pattern)}{escape}"


def _case(node: ast.Case) -> str:
    operand = f" {text(node.operand)}" if node.operand else ""
    whens = "".join(f" WHEN {text(when.test)} THEN {text(when.result)}" for when in node.whens)
    default = f" ELSE {text(node.default)}" if node.default else ""
    return f"CASE{operand}{whens}{default} END"


def _cast(node: ast.Cast) -> str:
    return f"CAST({text(node.operand)} AS {type_text(node.type)})"


def _call(node: ast.FunctionCall) -> str:
    if node.name == "COUNT" and not node.arguments:
        return "COUNT(*)"
    shown = [text(argument) for argument in node.arguments]
    if (
        node.name in OF_UNITS
        and shown[:1]
        and shown[0] in UNITS
        and isinstance(node.arguments[0], ast.ColumnReference)
    ):
        shown[0] = f"`{shown[0]}`"
    return f"{_name(node.name)}({', '.join(shown)})"


def _lambda(node: ast.Lambda) -> str:
    names = ", ".join(map(written, node.parameters))
    return f"({names}) => {text(node.body)}"


def _map(node: ast.MapLiteral) -> str:
    return "MAP(" + ", ".join(f"{text(key)} := {text(value)}" for key, value in node.entries) + ")"


def _struct(node: ast.StructLiteral) -> str:
    return "STRUCT(" + ", ".join(f"{written(name)} := {text(value)}" for name, value in node.fields) + ")"


def _field(node: ast.FieldAccess) -> str:
    return f"{_operand(node.operand)}->{written(node.field)}"


def _operand(node: Expression) -> str:
    """What -> or [] follows: a negative number would be negated after it."""
    shown = _at_least(POSTFIX, node)
    return f"({shown})" if shown[0] == "-" else shown


def _every(node: ast.AllColumns | ast.SelectAll) -> str:
    return "*" if node.source is None else f"{written(node.source)}.*"


# --- queries


def _chosen(node: ast.SelectColumn) -> str:
    return text(node.expression) + (f" AS {written(node.alias)}" if node.alias else "")


def _source(node: ast.Source) -> str:
    return written(node.name) + (f" AS {written(node.alias)}" if node.alias else "")


def _duration(node: ast.Duration) -> str:
    return f"{node.value} {node.unit}"


def _join(node: ast.Join) -> str:
    within = f" {text(node.within)}" if node.within else ""
    return f"{text(node.left)} {node.kind} JOIN {text(node.right)}{within} ON {text(node.condition)}"


def _within(node: ast.Within) -> str:
    same = node.before == node.after
    size = text(node.before) if same else f"({text(node.before)}, {text(node.after)})"
    return f"WITHIN {size}" + (f" GRACE PERIOD {text(node.grace)}" if node.grace else "")


def _kept(node: ast.Window) -> str:
    retention = f", RETENTION {text(node.retention)}" if node.retention else ""
    return retention + (f", GRACE PERIOD {text(node.grace)}" if node.grace else "")


def _tumbling(node: ast.Tumbling) -> str:
    return f"TUMBLING (SIZE {text(node.size)}{_kept(node)})"


def _hopping(node: ast.Hopping) -> str:
    return f"HOPPING (SIZE {text(node.size)}, ADVANCE BY {text(node.advance)}{_kept(node)})"


def _session(node: ast.Session) -> str:
    return f"SESSION ({text(node.gap)}{_kept(node)})"


def _query(node: ast.Query) -> str:
    clauses = [f"SELECT {_all(node.select)}", f"FROM {text(node.source)}"]
    if node.window:
        clauses.append(f"WINDOW {text(node.window)}")
    if node.where:
        clauses.append(f"WHERE {text(node.where)}")
    if node.group_by:
        clauses.append(f"GROUP BY {_all(node.group_by)}")
    if node.partition_by:
        clauses.append(f"PARTITION BY {_all(node.partition_by)}")
    if node.having:
        clauses.append(f"HAVING {text(node.having)}")
    if node.emit:
        clauses.append(f"EMIT {node.emit.value}")
    if node.limit is not None:
        clauses.append(f"LIMIT {node.limit}")
    return " ".join(clauses)


# --- statements


def _words(*parts: str | None) -> str:
    return " ".join(part for part in parts if part)


def _when(condition: bool, words: str) -> str:
    return words if condition else ""


def _definition(node: ast.ColumnDefinition) -> str:
    role = f"HEADER({string(node.header)})" if node.header is not None else node.role.value
    return _words(written(node.name), type_text(node.type), role)


def _property(node: ast.Property) -> str:
    return f"{written(node.name)} = {text(node.value)}"


def _with(properties: tuple[ast.Property, ...]) -> str:
    return f"WITH ({_all(properties)})" if properties else ""


def _parenthesised(nodes: Iterable[Node]) -> str:
    inside = _all(nodes)
    return f"({inside})" if inside else ""


def _create(node: ast.CreateSource | ast.CreateAsSelect) -> str:
    read_only = isinstance(node, ast.CreateSource) and node.read_only
    return _words(
        "CREATE",
        _when(node.or_replace, "OR REPLACE"),
        _when(read_only, "SOURCE"),
        node.kind.value,
        _when(node.if_not_exists, "IF NOT EXISTS"),
        written(node.name),
        _parenthesised(node.columns) if isinstance(node, ast.CreateSource) else None,
        _with(node.properties),
        f"AS {text(node.query)}" if isinstance(node, ast.CreateAsSelect) else None,
    )


def _insert_select(node: ast.InsertSelect) -> str:
    return _words("INSERT INTO", written(node.target), _with(node.properties), text(node.query))


def _values(node: ast.InsertValues | ast.AssertValues, word: str) -> str:
    columns = f"({', '.join(map(written, node.columns))})" if node.columns else ""
    return _words(written(node.target), columns, f"{word} ({_all(node.values)})")


def _assert_values(node: ast.AssertValues) -> str:
    return (
        f"ASSERT NULL VALUES {_values(node, 'KEY')}"
        if node.tombstone
        else f"ASSERT VALUES {_values(node, 'VALUES')}"
    )


def _drop(node: ast.DropSource) -> str:
    exists, topic = _when(node.if_exists, "IF EXISTS"), _when(node.delete_topic, "DELETE TOPIC")
    return _words("DROP", node.kind.value, exists, written(node.name), topic)


def _alter(node: ast.AlterSource) -> str:
    added = ", ".join(f"ADD COLUMN {text(column)}" for column in node.columns)
    return f"ALTER {node.kind.value} {written(node.name)} {added}"


def _create_type(node: ast.CreateType) -> str:
    exists = _when(node.if_not_exists, "IF NOT EXISTS")
    return _words("CREATE TYPE", exists, written(node.name), "AS", type_text(node.type))


def _drop_type(node: ast.DropType) -> str:
    return _words("DROP TYPE", _when(node.if_exists, "IF EXISTS"), written(node.name))


def _control(node: ast.ControlQuery) -> str:
    if node.query_id is None:
        return f"{node.action} ALL"
    query_id = f"`{node.query_id}`" if node.query_id == "ALL" else written(node.query_id)
    return f"{node.action} {query_id}"


def _show(node: ast.Show) -> str:
    return _words("SHOW", _when(node.every, "ALL"), node.what, _when(node.extended, "EXTENDED"))


def _describe(node: ast.Describe) -> str:
    name = f"`{node.name}`" if node.name in WORDS_OF_DESCRIBE else written(node.name)
    return _words("DESCRIBE", name, _when(node.extended, "EXTENDED"))


def _explain(node: ast.Explain) -> str:
    if node.statement is not None:
        return f"EXPLAIN {text(node.statement)}"
    assert node.query_id is not None
    from pykafkad.pipelines.syntax.parser import STATEMENTS

    return (
        f"EXPLAIN `{node.query_id}`" if node.query_id in STATEMENTS else f"EXPLAIN {written(node.query_id)}"
    )


def _print(node: ast.PrintTopic) -> str:
    return _words(
        "PRINT",
        string(node.topic),
        _when(node.from_beginning, "FROM BEGINNING"),
        f"INTERVAL {node.interval}" if node.interval is not None else None,
        f"LIMIT {node.limit}" if node.limit is not None else None,
    )


def _assert_exists(node: ast.AssertTopic | ast.AssertSchema, what: str) -> str:
    timeout = f"TIMEOUT {text(node.timeout)}" if node.timeout else None
    return _words("ASSERT", _when(not node.exists, "NOT EXISTS"), what, timeout)


def _assert_topic(node: ast.AssertTopic) -> str:
    return _assert_exists(node, _words("TOPIC", string(node.topic), _with(node.properties)))


def _assert_schema(node: ast.AssertSchema) -> str:
    subject = f"SUBJECT {string(node.subject)}" if node.subject is not None else None
    schema_id = f"ID {node.schema_id}" if node.schema_id is not None else None
    return _assert_exists(node, _words("SCHEMA", subject, schema_id))


def _assert_source(node: ast.AssertSource) -> str:
    columns = _parenthesised(node.columns)
    return _words("ASSERT", node.kind.value, written(node.name), columns, _with(node.properties))


WORDS_OF_DESCRIBE = frozenset(("STREAMS", "TABLES", "FUNCTION", "EXTENDED"))
"""Names that DESCRIBE would take for something else."""

WRITERS: dict[type[Node], Callable[[Any], str]] = {
    ast.NullLiteral: lambda node: "NULL",
    ast.BooleanLiteral: lambda node: "TRUE" if node.value else "FALSE",
    ast.IntegerLiteral: _integer,
    ast.DecimalLiteral: _decimal,
    ast.DoubleLiteral: _double,
    ast.StringLiteral: lambda node: string(node.value),
    ast.ColumnReference: _column,
    ast.LambdaVariable: lambda node: written(node.name),
    ast.IntervalUnit: lambda node: node.unit,
    ast.Negation: _negation,
    ast.Arithmetic: _arithmetic,
    ast.Comparison: _comparison,
    ast.Logical: _logical,
    ast.Not: lambda node: f"NOT {_at_least(NOT, node.operand)}",
    ast.IsNull: _is_null,
    ast.Between: _between,
    ast.In: _in,
    ast.Like: _like,
    ast.Case: _case,
    ast.Cast: _cast,
    ast.FunctionCall: _call,
    ast.Lambda: _lambda,
    ast.ArrayLiteral: lambda node: f"ARRAY[{_all(node.items)}]",
    ast.MapLiteral: _map,
    ast.StructLiteral: _struct,
    ast.FieldAccess: _field,
    ast.Subscript: lambda node: f"{_operand(node.operand)}[{text(node.index)}]",
    ast.AllColumns: _every,
    ast.SelectColumn: _chosen,
    ast.SelectAll: _every,
    ast.SelectFields: lambda node: f"{_operand(node.operand)}->*",
    ast.Duration: _duration,
    ast.Tumbling: _tumbling,
    ast.Hopping: _hopping,
    ast.Session: _session,
    ast.Source: _source,
    ast.Within: _within,
    ast.Join: _join,
    ast.Query: _query,
    ast.Property: _property,
    ast.ColumnDefinition: _definition,
    ast.CreateSource: _create,
    ast.CreateAsSelect: _create,
    ast.InsertSelect: _insert_select,
    ast.InsertValues: lambda node: f"INSERT INTO {_values(node, 'VALUES')}",
    ast.SelectStatement: lambda node: text(node.query),
    ast.DropSource: _drop,
    ast.AlterSource: _alter,
    ast.CreateType: _create_type,
    ast.DropType: _drop_type,
    ast.ControlQuery: _control,
    ast.Show: _show,
    ast.Describe: _describe,
    ast.DescribeAll: lambda node: _words("DESCRIBE", f"{node.kind.value}S", _when(node.extended, "EXTENDED")),
    ast.DescribeFunction: lambda node: f"DESCRIBE FUNCTION {written(node.name)}",
    ast.Explain: _explain,
    ast.PrintTopic: _print,
    ast.SetProperty: lambda node: f"SET {string(node.name)} = {string(node.value)}",
    ast.UnsetProperty: lambda node: f"UNSET {string(node.name)}",
    ast.DefineVariable: lambda node: f"DEFINE {written(node.name)} = {string(node.value)}",
    ast.UndefineVariable: lambda node: f"UNDEFINE {written(node.name)}",
    ast.RunScript: lambda node: f"RUN SCRIPT {string(node.path)}",
    ast.AssertTopic: _assert_topic,
    ast.AssertSchema: _assert_schema,
    ast.AssertSource: _assert_source,
    ast.AssertValues: _assert_values,
}
