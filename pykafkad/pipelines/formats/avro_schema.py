"""Avro schemas: parsed into nodes, made for columns, and read as columns.

Schemas for columns are as ksqlDB registers them: a record KsqlDataSourceSchema whose fields may be null, maps as
arrays of entries with the property connect.internal.type, since Connect's keys may be null.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field

from pykafkad.pipelines.expressions.schema import Column
from pykafkad.pipelines.types import (
    BIGINT,
    BOOLEAN,
    BYTES,
    DATE,
    DOUBLE,
    INTEGER,
    STRING,
    TIME,
    TIMESTAMP,
    Array,
    Decimal,
    Field,
    Map,
    SqlType,
    Struct,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

PRIMITIVES = frozenset(("null", "boolean", "int", "long", "float", "double", "bytes", "string"))
MAX_DEPTH = 100


class BadSchema(ValueError):
    """A schema that cannot be read."""


@dataclass(slots=True)
class AvroNode:
    """A type: `kind` is Avro's word for it, or "union"."""

    kind: str
    logical: str = ""
    scale: int = 0
    precision: int = 0
    size: int = 0
    names: list[str] = field(default_factory=list)
    """Of a record its fields', of an enum its symbols."""
    parts: list[AvroNode] = field(default_factory=list)
    """Of a record its fields', of an array or map its items', of a union its branches'."""
    entries: bool = False
    """An array of a map's entries."""


def parse(text: str) -> AvroNode:
    try:
        return _node(json.loads(text), {}, "", 0)
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise BadSchema(f"no Avro schema: {error}") from None


def _node(said: Any, named: dict[str, AvroNode], namespace: str, depth: int) -> AvroNode:
    if depth > MAX_DEPTH:
        raise BadSchema("types in types in types")
    if isinstance(said, list):
        return AvroNode("union", parts=[_node(branch, named, namespace, depth + 1) for branch in said])
    if isinstance(said, str):
        if said in PRIMITIVES:
            return AvroNode(said)
        return named[said if "." in said or f"{namespace}.{said}" not in named else f"{namespace}.{said}"]
    kind = said["type"]
    if isinstance(kind, (dict, list)):
        return _node(kind, named, namespace, depth + 1)
    if kind not in ("record", "error", "enum", "fixed", "array", "map"):
        node = _node(kind, named, namespace, depth + 1)
        return _with_logical(AvroNode(node.kind), said) if kind in PRIMITIVES else node
    return _complex(kind, said, named, namespace, depth)


def _complex(
    kind: str, said: dict[str, Any], named: dict[str, AvroNode], namespace: str, depth: int
) -> AvroNode:
    node = AvroNode("record" if kind == "error" else kind)
    if kind in ("array", "map"):
        node.parts.append(_node(said["items" if kind == "array" else "values"], named, namespace, depth + 1))
        node.entries = kind == "array" and said.get("connect.internal.type") == "MapEntry"
        return node
    namespace = said.get("namespace", said["name"].rpartition(".")[0] or namespace)
    name = said["name"] if "." in said["name"] or not namespace else f"{namespace}.{said['name']}"
    named[name] = named[said["name"]] = node
    if kind == "fixed":
        node.size = int(said["size"])
        return _with_logical(node, said)
    if kind == "enum":
        node.names = [str(symbol) for symbol in said["symbols"]]
        return node
    for part in said["fields"]:
        node.names.append(part["name"])
        node.parts.append(_node(part["type"], named, namespace, depth + 1))
    return node


def _with_logical(node: AvroNode, said: dict[str, Any]) -> AvroNode:
    node.logical = str(said.get("logicalType", ""))
    node.precision, node.scale = int(said.get("precision", 0)), int(said.get("scale", 0))
    return node


# --- for columns

NAME, NAMESPACE = "KsqlDataSourceSchema", "io.confluent.ksql.avro_schemas"

_SIMPLE: dict[SqlType, Any] = {
    BOOLEAN: "boolean",
    INTEGER: "int",
    BIGINT: "long",
    DOUBLE: "double",
    STRING: "string",
    BYTES: "bytes",
    DATE: {"type": "int", "logicalType": "date"},
    TIME: {"type": "int", "logicalType": "time-millis"},
    TIMESTAMP: {"type": "long", "logicalType": "timestamp-millis"},
}


def schema_for(columns: Sequence[Column], wrap: bool) -> str:
    """The schema of columns, or of the only one's bare values."""
    if not wrap:
        return json.dumps(_nullable(columns[0].type, f"{NAME}_{columns[0].name}"))
    record = _record([(column.name, column.type) for column in columns], NAME)
    return json.dumps({**record, "namespace": NAMESPACE})


def _record(fields: Sequence[tuple[str, SqlType]], name: str) -> dict[str, Any]:
    parts = [{"name": n, "type": _nullable(of, f"{name}_{n}"), "default": None} for n, of in fields]
    return {"type": "record", "name": name, "fields": parts}


def _nullable(of: SqlType, name: str) -> list[Any]:
    return ["null", _said(of, name)]


def _said(of: SqlType, name: str) -> Any:
    match of:
        case Decimal(precision, scale):
            return {"type": "bytes", "logicalType": "decimal", "precision": precision, "scale": scale}
        case Array(element):
            return {"type": "array", "items": _nullable(element, name)}
        case Map(key, value):
            entry = _record([("key", key), ("value", value)], name)
            internal = {"connect.internal.type": "MapEntry"}
            return {"type": "array", "items": {**entry, **internal}, **internal}
        case Struct(fields):
            return _record([(part.name, part.type) for part in fields], name)
    return _SIMPLE[of]


# --- as columns

_LOGICAL: dict[str, SqlType] = {
    "date": DATE,
    "time-millis": TIME,
    "time-micros": TIME,
    "timestamp-millis": TIMESTAMP,
    "timestamp-micros": TIMESTAMP,
}
_KINDS: dict[str, SqlType] = {
    "boolean": BOOLEAN,
    "int": INTEGER,
    "long": BIGINT,
    "float": DOUBLE,
    "double": DOUBLE,
    "bytes": BYTES,
    "fixed": BYTES,
    "string": STRING,
    "enum": STRING,
}


def columns_of(text: str) -> list[Field] | SqlType:
    """The columns that a record's fields are (their names in upper case), or the type of bare values."""
    node = parse(text)
    of = _type_of(node, 0)
    return [Field(part.name.upper(), part.type) for part in of.fields] if isinstance(of, Struct) else of


def _type_of(node: AvroNode, depth: int) -> SqlType:
    if depth > MAX_DEPTH:
        raise BadSchema("a type that contains itself is none of SQL's")
    if node.kind == "union":
        branches = [branch for branch in node.parts if branch.kind != "null"]
        if len(branches) != 1:
            raise BadSchema("a union of several types is none of SQL's")
        return _type_of(branches[0], depth + 1)
    if node.logical == "decimal":
        return Decimal(node.precision, node.scale)
    if node.entries:
        key, value = node.parts[0].parts
        return Map(_type_of(key, depth + 1), _type_of(value, depth + 1))
    if node.kind == "array":
        return Array(_type_of(node.parts[0], depth + 1))
    if node.kind == "map":
        return Map(STRING, _type_of(node.parts[0], depth + 1))
    if node.kind == "record":
        parts = zip(node.names, node.parts, strict=True)
        return Struct(tuple(Field(name.upper(), _type_of(part, depth + 1)) for name, part in parts))
    found = _LOGICAL.get(node.logical) or _KINDS.get(node.kind)
    if found is None:
        raise BadSchema(f"{node.kind} is no type of SQL's")
    return found
