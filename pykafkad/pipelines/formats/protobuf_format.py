"""PROTOBUF, with schemas in a schema registry, and PROTOBUF_NOSR, whose messages have the fields of the columns.

In front of a record of PROTOBUF are a schema's id and which of the schema's messages it is: how many indexes, then each,
zigzag in seven bits a byte; a single 0 is the first message. What is read is read by the schema that it was written with.
"""

from __future__ import annotations

from collections.abc import Sequence

from pykafkad.pipelines.expressions.schema import Column, Row
from pykafkad.pipelines.formats import proto_codec, proto_schema, proto_text
from pykafkad.pipelines.formats.avro_schema import BadSchema
from pykafkad.pipelines.formats.base import BadRecord, MessageShape
from pykafkad.pipelines.formats.json_format import JsonFormat, filler
from pykafkad.pipelines.formats.proto_nodes import ProtoFile
from pykafkad.pipelines.formats.proto_writing import row_writer
from pykafkad.pipelines.formats.registry import HEADER, RegisteredSchema, Subject, header, schema_id_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

MAX_INDEXES = 100


class BareProtobufFormat:
    """PROTOBUF_NOSR: the message alone."""

    name = "PROTOBUF_NOSR"

    def __init__(self, columns: Sequence[Column], shape: MessageShape) -> None:
        proto_schema.refuse(self.name, columns)
        self.columns, self._shape = tuple(columns), shape
        self._text = proto_schema.schema_for(columns, shape.nulls, shape.name)
        own = proto_text.parse(self._text).named(shape.name)
        self._read = proto_codec.reader(own)
        self._write = row_writer(own, [column.type for column in columns])
        self._fill = filler([(column.name, column.type) for column in columns])

    def __reduce__(self) -> tuple[Any, ...]:
        return BareProtobufFormat, (self.columns, self._shape)

    def parse(self, data: bytes | None) -> list[Any] | None:
        if not self.columns:
            return []
        if data is None:
            return None
        try:
            return self._fill(self._message(data))
        except (ValueError, OverflowError) as error:
            raise BadRecord(f"no value of format {self.name}: {error}") from None

    def _message(self, data: bytes) -> Any:
        return self._read(data, 0)

    def serialise(self, row: Row | None) -> bytes | None:
        if row is None or not self.columns:
            return None
        try:
            return self._prefix() + self._write(row)
        except (ValueError, OverflowError) as error:
            raise BadRecord(f"format {self.name} cannot say it: {error}") from None

    def _prefix(self) -> bytes:
        return b""

    def from_plain(self, value: Any) -> bytes | None:
        """A test's JSON is read by the columns' types."""
        if value is None:
            return None
        plain = JsonFormat(self.columns)
        return self.serialise(plain.parse(plain.from_plain(value)))

    def to_plain(self, data: bytes | None) -> Any:
        row = self.parse(data)
        plain = JsonFormat(self.columns)
        return plain.to_plain(plain.serialise(row)) if row else None


class ProtobufFormat(BareProtobufFormat):
    name = "PROTOBUF"

    def __init__(self, columns: Sequence[Column], shape: MessageShape, subject: Subject) -> None:
        super().__init__(columns, shape)
        self._subject = subject
        self._files: dict[int, ProtoFile] = {}
        self._readers: dict[tuple[int, bytes], proto_codec.Read] = {}
        self._header: bytes | None = None

    def __reduce__(self) -> tuple[Any, ...]:
        return ProtobufFormat, (self.columns, self._shape, self._subject)

    def _message(self, data: bytes) -> Any:
        schema_id = schema_id_of(data)
        if schema_id is None:
            raise BadRecord("no schema's id is in front of a record of format PROTOBUF")
        indexes, start = _indexes(data)
        known = (schema_id, data[HEADER:start])
        if known not in self._readers:
            self._readers[known] = proto_codec.reader(self._file(schema_id).at(indexes))
        return self._readers[known](data[start:], 0)

    def _file(self, schema_id: int) -> ProtoFile:
        if schema_id not in self._files:
            schema = self._subject.registry.by_id(schema_id)
            if schema is None or schema.kind != "PROTOBUF":
                raise BadRecord(f"the schema registry has no Protobuf schema {schema_id}")
            self._files[schema_id] = parsed(schema)
        return self._files[schema_id]

    def _prefix(self) -> bytes:
        if self._header is None:
            schema = RegisteredSchema("PROTOBUF", self._text)
            self._header = header(self._subject.registry.register(self._subject.name, schema)) + b"\0"
        return self._header


def _indexes(data: bytes) -> tuple[list[int], int]:
    count, place = proto_codec.varint(data, HEADER)
    count = proto_codec.unzigzag(count)
    if count == 0:
        return [0], place
    if not 0 < count <= MAX_INDEXES:
        raise ValueError(f"{count} indexes of messages")
    indexes = []
    for _ in range(count):
        index, place = proto_codec.varint(data, place)
        indexes.append(proto_codec.unzigzag(index))
    return indexes, place


def parsed(schema: RegisteredSchema) -> ProtoFile:
    try:
        return proto_text.parse(schema.text, dict(schema.imports))
    except RecursionError:
        raise BadSchema("types in types in types") from None
