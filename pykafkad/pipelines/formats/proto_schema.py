"""Protocol buffers' schemas: made for columns as ksqlDB registers them, and read as columns.

A message ConnectDefault1 has a field a column, numbered from 1; structs and the entries of maps are messages in it,
ConnectDefault2 and so on. A null is nothing (so it is read as the type's default) unless NULLABLE_REPRESENTATION is
OPTIONAL (optional fields) or WRAPPER (google.protobuf.Int32Value and its like).
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator, Sequence

from pykafkad.pipelines.errors import StatementError
from pykafkad.pipelines.expressions.schema import Column
from pykafkad.pipelines.formats.avro_schema import MAX_DEPTH, BadSchema
from pykafkad.pipelines.formats.proto_codec import union_name
from pykafkad.pipelines.formats.proto_known import (
    DATE_NAME,
    DECIMAL_NAME,
    TIME_NAME,
    TIMESTAMP_NAME,
    WRAPPERS,
)
from pykafkad.pipelines.formats.proto_nodes import ProtoField, ProtoMessage
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

OPTIONAL, WRAPPER = "OPTIONAL", "WRAPPER"
DEFAULT_NAME = "ConnectDefault"

_SCALARS: dict[SqlType, str] = {
    BOOLEAN: "bool",
    INTEGER: "int32",
    BIGINT: "int64",
    DOUBLE: "double",
    STRING: "string",
    BYTES: "bytes",
}
_WRAPPED = {kind: name for name, kind in WRAPPERS.items()}
_MESSAGES: dict[SqlType, str] = {DATE: DATE_NAME, TIME: TIME_NAME, TIMESTAMP: TIMESTAMP_NAME}
_IMPORTS = {
    DATE_NAME: "google/type/date.proto",
    TIME_NAME: "google/type/timeofday.proto",
    TIMESTAMP_NAME: "google/protobuf/timestamp.proto",
    DECIMAL_NAME: "confluent/type/decimal.proto",
    **dict.fromkeys(WRAPPERS, "google/protobuf/wrappers.proto"),
}
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\Z")


def refuse(name: str, columns: Sequence[Column]) -> None:
    """Refuses what a message cannot have."""
    for column in columns:
        _refuse_name(name, column.name)
        _refuse(name, column.type)


def _refuse_name(name: str, said: str) -> None:
    if not _NAME.match(said):
        raise StatementError(
            f"The '{name}' format cannot name a field `{said}`: letters, digits and _ are allowed"
        )


def _refuse(name: str, of: SqlType) -> None:
    match of:
        case Array(element):
            if isinstance(element, (Array, Map)):
                raise StatementError(f"The '{name}' format does not support type 'ARRAY' of '{element}'")
            _refuse(name, element)
        case Map(key, value):
            if key != STRING:
                raise StatementError(f"{name} format only supports MAP types with STRING keys")
            _refuse(name, value)
        case Struct(fields):
            for part in fields:
                _refuse_name(name, part.name)
                _refuse(name, part.type)


def schema_for(columns: Sequence[Column], nulls: str | None, full_name: str | None) -> str:
    package, _, name = (full_name or f"{DEFAULT_NAME}1").rpartition(".")
    used: set[str] = set()
    body = _Message(name, itertools.count(2), nulls, used)
    lines = body.lines([(column.name, column.type) for column in columns])
    imports = "".join(f'import "{file}";\n' for file in sorted({_IMPORTS[name] for name in used}))
    parts = [
        'syntax = "proto3";\n',
        f"package {package};\n" if package else "",
        imports,
        "\n".join(lines) + "\n",
    ]
    return "\n".join(part for part in parts if part)


class _Message:
    """The text of a message and of those in it. `numbers` are for the names of messages, in the order of their fields."""

    def __init__(self, name: str, numbers: Iterator[int], nulls: str | None, used: set[str]) -> None:
        self._name, self._numbers, self._nulls, self._used = name, numbers, nulls, used
        self._inner: list[str] = []

    def lines(self, fields: Sequence[tuple[str, SqlType]]) -> list[str]:
        own = [self._field(name, of, number) for number, (name, of) in enumerate(fields, 1)]
        return [f"message {self._name} {{", *(f"  {line}" for line in own), *self._inner, "}"]

    def _field(self, name: str, of: SqlType, number: int) -> str:
        label = "optional " if self._nulls == OPTIONAL else ""
        if isinstance(of, Array):
            label, of = "repeated ", of.element
        elif isinstance(of, Map):
            label = "repeated "
        return f"{label}{self._type(of)} {name} = {number}{_options(of)};"

    def _type(self, of: SqlType) -> str:
        match of:
            case Struct(fields):
                return self._nested(
                    f"{DEFAULT_NAME}{next(self._numbers)}", [(f.name, f.type) for f in fields]
                )
            case Map(key, value):
                return self._nested(
                    f"{DEFAULT_NAME}{next(self._numbers)}Entry", [("key", key), ("value", value)]
                )
        said = DECIMAL_NAME if isinstance(of, Decimal) else _MESSAGES.get(of) or _SCALARS[of]
        if self._nulls == WRAPPER:
            said = _WRAPPED.get(said, said)
        if said in _IMPORTS:
            self._used.add(said)
        return said

    def _nested(self, name: str, fields: Sequence[tuple[str, SqlType]]) -> str:
        lines = _Message(name, self._numbers, self._nulls, self._used).lines(fields)
        self._inner += ["", *(f"  {line}" if line else "" for line in lines)]
        return name


def _options(of: SqlType) -> str:
    if not isinstance(of, Decimal):
        return ""
    pairs = (("precision", of.precision), ("scale", of.scale))
    said = ",\n".join(
        f'      {{\n        key: "{key}",\n        value: "{value}"\n      }}' for key, value in pairs
    )
    return f" [(confluent.field_meta) = {{\n    params: [\n{said}\n    ]\n  }}]"


# --- as columns

_KINDS: dict[str, SqlType] = {
    "double": DOUBLE,
    "float": DOUBLE,
    "bool": BOOLEAN,
    "string": STRING,
    "enum": STRING,
    "bytes": BYTES,
    **dict.fromkeys(("int32", "sint32", "sfixed32"), INTEGER),
    **dict.fromkeys(("uint32", "fixed32", "int64", "uint64", "sint64", "fixed64", "sfixed64"), BIGINT),
}
_STANDS_FOR: dict[str, SqlType] = {DATE_NAME: DATE, TIME_NAME: TIME, TIMESTAMP_NAME: TIMESTAMP}


def columns_of(message: ProtoMessage) -> list[Field]:
    """The columns that a message's fields are, in upper case: first its oneofs, as structs of their fields."""
    return list(_struct(message, 0).fields)


def _struct(message: ProtoMessage, depth: int) -> Struct:
    if depth > MAX_DEPTH:
        raise BadSchema("a message that contains itself is none of SQL's types")
    unions = [
        Field(
            union_name(message, oneof).upper(),
            Struct(tuple(_named(one, depth) for one in _members(message, oneof))),
        )
        for oneof in message.oneofs
    ]
    return Struct((*unions, *(_named(one, depth) for one in message.fields if one.oneof is None)))


def _members(message: ProtoMessage, oneof: str) -> list[ProtoField]:
    return [one for one in message.fields if one.oneof == oneof]


def _named(one: ProtoField, depth: int) -> Field:
    of = _type_of(one, depth)
    return Field(one.name.upper(), Array(of) if one.repeated and not isinstance(of, Map) else of)


def _type_of(one: ProtoField, depth: int) -> SqlType:
    message = one.message
    if message is None:
        return _KINDS[one.kind]
    if message.map_entry and one.repeated:
        key, value = message.fields
        return Map(_type_of(key, depth + 1), _named(value, depth + 1).type)
    if message.full_name in WRAPPERS:
        return _KINDS[WRAPPERS[message.full_name]]
    if message.full_name == DECIMAL_NAME:
        return _decimal(one)
    return _STANDS_FOR.get(message.full_name) or _struct(message, depth + 1)


def _decimal(one: ProtoField) -> Decimal:
    try:
        return Decimal(int(one.options.get("precision", 38)), int(one.options.get("scale", 0)))
    except ValueError:
        raise BadSchema(f"the precision and scale of {one.name} are no numbers") from None
