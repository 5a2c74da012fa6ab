"""AVRO and JSON_SR: formats whose schemas are in a schema registry, with a schema's id in front of each record's data
(PROTOBUF is another: protobuf_format).

What is read is read by the schema that it was written with, and its fields are found by the columns' names. What is
written is written by the schema of the columns, which is registered with the first record.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from pykafkad.pipelines.errors import StatementError
from pykafkad.pipelines.expressions.schema import Column, Row
from pykafkad.pipelines.formats import avro_codec, avro_schema, json_schema
from pykafkad.pipelines.formats.base import NO_SHAPE, BadRecord, Format, MessageShape
from pykafkad.pipelines.formats.json_format import JsonFormat, filler
from pykafkad.pipelines.formats.json_format import reader as taken_as
from pykafkad.pipelines.formats.registry import (
    HEADER,
    RegisteredSchema,
    RegistryError,
    Subject,
    header,
    schema_id_of,
)
from pykafkad.pipelines.types import Field, SqlType

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


class AvroFormat:
    name = "AVRO"

    def __init__(self, columns: Sequence[Column], wrap: bool, subject: Subject) -> None:
        self.columns, self._wrap, self._subject = tuple(columns), wrap or len(columns) != 1, subject
        self._readers: dict[int, avro_codec.Read] = {}
        self._prefix: bytes | None = None
        self._fill = filler([(column.name, column.type) for column in columns])
        self._take = None if self._wrap else taken_as(columns[0].type)
        self._writers = [avro_codec.writer(column.type) for column in columns]

    def __reduce__(self) -> tuple[Any, ...]:
        return AvroFormat, (self.columns, self._wrap, self._subject)

    def parse(self, data: bytes | None) -> list[Any] | None:
        if not self.columns:
            return []
        if data is None:
            return None
        try:
            value = self._reader(data)(avro_codec.Input(data, HEADER))
            if value is None:
                return None
            return self._fill(value) if self._take is None else [self._take(value)]
        except (ValueError, RecursionError) as error:
            raise BadRecord(f"no value of format AVRO: {error}") from None

    def _reader(self, data: bytes) -> avro_codec.Read:
        schema_id = schema_id_of(data)
        if schema_id is None:
            raise BadRecord("no schema's id is in front of a record of format AVRO")
        if schema_id not in self._readers:
            schema = self._subject.registry.by_id(schema_id)
            if schema is None or schema.kind != "AVRO":
                raise BadRecord(f"the schema registry has no Avro schema {schema_id}")
            self._readers[schema_id] = avro_codec.reader(avro_schema.parse(schema.text))
        return self._readers[schema_id]

    def serialise(self, row: Row | None) -> bytes | None:
        if row is None or not self.columns or (not self._wrap and row[0] is None):
            return None
        if self._prefix is None:
            schema = RegisteredSchema("AVRO", avro_schema.schema_for(self.columns, self._wrap))
            self._prefix = header(self._subject.registry.register(self._subject.name, schema))
        written = [write(value) for write, value in zip(self._writers, row, strict=True)]
        return self._prefix + b"".join(written)

    def from_plain(self, value: Any) -> bytes | None:
        """A test's JSON is read by the columns' types."""
        if value is None:
            return None
        plain = JsonFormat(self.columns, self._wrap)
        return self.serialise(plain.parse(plain.from_plain(value)))

    def to_plain(self, data: bytes | None) -> Any:
        row = self.parse(data)
        plain = JsonFormat(self.columns, self._wrap)
        return plain.to_plain(plain.serialise(row)) if row else None


class JsonSchemaFormat:
    """JSON with a JSON Schema: the data is format JSON's."""

    name = "JSON_SR"

    def __init__(self, columns: Sequence[Column], wrap: bool, subject: Subject) -> None:
        self._json, self._subject = JsonFormat(columns, wrap), subject
        self.columns, self._wrap = self._json.columns, wrap or len(columns) != 1
        self._prefix: bytes | None = None

    def __reduce__(self) -> tuple[Any, ...]:
        return JsonSchemaFormat, (self.columns, self._wrap, self._subject)

    def parse(self, data: bytes | None) -> list[Any] | None:
        if data is not None and self.columns and schema_id_of(data) is None:
            raise BadRecord("no schema's id is in front of a record of format JSON_SR")
        return self._json.parse(data)

    def serialise(self, row: Row | None) -> bytes | None:
        data = self._json.serialise(row)
        if data is None:
            return None
        if self._prefix is None:
            schema = RegisteredSchema("JSON", json_schema.schema_for(self.columns, self._wrap))
            self._prefix = header(self._subject.registry.register(self._subject.name, schema))
        return self._prefix + data

    def from_plain(self, value: Any) -> bytes | None:
        if value is None:
            return None
        return self.serialise(self._json.parse(self._json.from_plain(value)))

    def to_plain(self, data: bytes | None) -> Any:
        return self._json.to_plain(data)


REGISTERED: dict[str, Callable[[Sequence[Column], bool, Subject], Format]] = {
    "AVRO": AvroFormat,
    "JSON_SR": JsonSchemaFormat,
}


def _protobuf_columns(schema: RegisteredSchema, shape: MessageShape) -> list[Field] | SqlType:
    from pykafkad.pipelines.formats import proto_schema, protobuf_format

    return proto_schema.columns_of(protobuf_format.parsed(schema).named(shape.name))


_KINDS: dict[str, tuple[str, Callable[[RegisteredSchema, MessageShape], list[Field] | SqlType]]] = {
    "AVRO": ("AVRO", lambda schema, _: avro_schema.columns_of(schema.text)),
    "JSON_SR": ("JSON", lambda schema, _: json_schema.columns_of(schema.text)),
    "PROTOBUF": ("PROTOBUF", _protobuf_columns),
}


def inferred(name: str, subject: Subject, shape: MessageShape = NO_SHAPE) -> list[Field] | SqlType:
    """The columns of the subject's newest schema, or the type of its bare values."""
    kind, columns_of = _KINDS[name]
    try:
        schema = subject.registry.latest(subject.name)
    except RegistryError as error:
        raise StatementError(str(error)) from None
    if schema is None:
        raise StatementError(f"The schema registry has no schema for the subject {subject.name}.")
    if schema.kind != kind:
        raise StatementError(f"The schema of {subject.name} is {schema.kind}, not {kind} as {name} needs it.")
    try:
        return columns_of(schema, shape)
    except avro_schema.BadSchema as error:
        raise StatementError(f"The schema of {subject.name} cannot be read as columns: {error}") from None
