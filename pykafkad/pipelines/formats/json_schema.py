"""JSON Schemas: made for columns as ksqlDB registers them, and read as columns.

Whole numbers say in connect.type how wide they are, what is no JSON type in title what Connect takes it for.
"""

from __future__ import annotations

import json
from collections.abc import Sequence

from pykafkad.pipelines.expressions.schema import Column
from pykafkad.pipelines.formats.avro_schema import MAX_DEPTH, BadSchema
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

_DATA = "org.apache.kafka.connect.data"

_SIMPLE: dict[SqlType, dict[str, Any]] = {
    BOOLEAN: {"type": "boolean"},
    INTEGER: {"type": "integer", "connect.type": "int32"},
    BIGINT: {"type": "integer", "connect.type": "int64"},
    DOUBLE: {"type": "number", "connect.type": "float64"},
    STRING: {"type": "string"},
    BYTES: {"type": "string", "connect.type": "bytes"},
    DATE: {"type": "integer", "title": f"{_DATA}.Date", "connect.type": "int32"},
    TIME: {"type": "integer", "title": f"{_DATA}.Time", "connect.type": "int32"},
    TIMESTAMP: {"type": "integer", "title": f"{_DATA}.Timestamp", "connect.type": "int64"},
}


def schema_for(columns: Sequence[Column], wrap: bool) -> str:
    if not wrap:
        return json.dumps(_nullable(columns[0].type))
    return json.dumps(_object([(column.name, column.type) for column in columns]))


def _object(fields: Sequence[tuple[str, SqlType]]) -> dict[str, Any]:
    properties = {name: {"connect.index": at, **_nullable(of)} for at, (name, of) in enumerate(fields)}
    return {"type": "object", "properties": properties}


def _nullable(of: SqlType) -> dict[str, Any]:
    return {"oneOf": [{"type": "null"}, _said(of)]}


def _said(of: SqlType) -> dict[str, Any]:
    match of:
        case Decimal(precision, scale):
            parameters = {"scale": str(scale), "connect.decimal.precision": str(precision)}
            return {
                "type": "number",
                "title": f"{_DATA}.Decimal",
                "connect.type": "bytes",
                "connect.parameters": parameters,
            }
        case Array(element):
            return {"type": "array", "items": _nullable(element)}
        case Map(_, value):
            return {"type": "object", "connect.type": "map", "additionalProperties": _nullable(value)}
        case Struct(fields):
            return _object([(part.name, part.type) for part in fields])
    return _SIMPLE[of]


# --- as columns

_TITLES: dict[str, SqlType] = {f"{_DATA}.Date": DATE, f"{_DATA}.Time": TIME, f"{_DATA}.Timestamp": TIMESTAMP}
_INTEGERS = frozenset(("int8", "int16", "int32"))


def columns_of(text: str) -> list[Field] | SqlType:
    """The columns that an object's properties are (their names in upper case), or the type of bare values."""
    try:
        of = _type_of(json.loads(text), 0)
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise BadSchema(f"no JSON Schema that has columns: {error}") from None
    return [Field(part.name.upper(), part.type) for part in of.fields] if isinstance(of, Struct) else of


def _type_of(said: dict[str, Any], depth: int) -> SqlType:
    if depth > MAX_DEPTH:
        raise BadSchema("types in types in types")
    branches = said.get("oneOf") or said.get("anyOf")
    if branches is not None:
        return _type_of(_only([branch for branch in branches if branch.get("type") != "null"]), depth + 1)
    kind = said.get("type")
    if isinstance(kind, list):
        kind = _only([each for each in kind if each != "null"])
    return _of_kind(kind, said, depth)


def _only(branches: list[Any]) -> Any:
    if len(branches) != 1:
        raise BadSchema("a choice of several types is none of SQL's")
    return branches[0]


def _of_kind(kind: Any, said: dict[str, Any], depth: int) -> SqlType:
    title = str(said.get("title", ""))
    if title == f"{_DATA}.Decimal":
        parameters = said.get("connect.parameters", {})
        return Decimal(int(parameters.get("connect.decimal.precision", 38)), int(parameters.get("scale", 0)))
    if title in _TITLES:
        return _TITLES[title]
    if kind == "array":
        return Array(_type_of(said["items"], depth + 1))
    if kind == "object":
        return _object_type(said, depth)
    if kind == "integer":
        return INTEGER if said.get("connect.type") in _INTEGERS else BIGINT
    if kind == "string":
        return BYTES if said.get("connect.type") == "bytes" else STRING
    found = {"boolean": BOOLEAN, "number": DOUBLE}.get(kind)
    if found is None:
        raise BadSchema(f"{kind} is no type of SQL's")
    return found


def _object_type(said: dict[str, Any], depth: int) -> SqlType:
    mapped = said.get("additionalProperties")
    if isinstance(mapped, dict) and "properties" not in said:
        return Map(STRING, _type_of(mapped, depth + 1))
    properties = sorted(said["properties"].items(), key=lambda item: item[1].get("connect.index", 0))
    return Struct(tuple(Field(name.upper(), _type_of(part, depth + 1)) for name, part in properties))
