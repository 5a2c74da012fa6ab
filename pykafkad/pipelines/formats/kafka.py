"""KAFKA: one column, as Kafka's own serializers write it; NONE: no columns at all."""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence

from pykafkad.pipelines.errors import StatementError
from pykafkad.pipelines.expressions.schema import Column, Row
from pykafkad.pipelines.expressions.texts import utf8
from pykafkad.pipelines.formats.base import BadRecord, described, refuse_types
from pykafkad.pipelines.types import BIGINT, BYTES, DOUBLE, INTEGER, STRING

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_NUMBERS = {INTEGER: struct.Struct(">i"), BIGINT: struct.Struct(">q"), DOUBLE: struct.Struct(">d")}


class KafkaFormat:
    name = "KAFKA"

    def __init__(self, columns: Sequence[Column]) -> None:
        refuse_types(self.name, columns, (INTEGER, BIGINT, DOUBLE, STRING, BYTES))
        if len(columns) > 1:
            raise StatementError(
                f"The 'KAFKA' format only supports a single field. Got: {described(columns)}"
            )
        self.columns = tuple(columns)
        of = columns[0].type if columns else None
        self._number = _NUMBERS.get(of) if of is not None else None  # type: ignore[call-overload]
        self._text = of == STRING
        self._convert: Callable[[Any], Any] = float if of == DOUBLE else int

    def __reduce__(self) -> tuple[Any, ...]:
        return KafkaFormat, (self.columns,)

    def parse(self, data: bytes | None) -> list[Any] | None:
        if not self.columns:
            return []
        return None if data is None else [self._value(data)]

    def _value(self, data: bytes) -> Any:
        try:
            if self._number is not None:
                return self._number.unpack(data)[0]
            return data.decode() if self._text else data
        except (struct.error, UnicodeDecodeError):
            raise BadRecord(f"{len(data)} bytes are no {self.columns[0].type} of format KAFKA") from None

    def serialise(self, row: Row | None) -> bytes | None:
        if row is None or not self.columns or row[0] is None:
            return None
        if self._number is not None:
            return bytes(self._number.pack(row[0]))
        return utf8(row[0]) if self._text else bytes(row[0])

    def from_plain(self, value: Any) -> bytes | None:
        from base64 import b64decode

        if value is None:
            return None
        if not self.columns:
            return utf8(str(value))
        if self._number is not None:
            try:
                return bytes(self._number.pack(self._convert(value)))
            except (struct.error, ValueError, TypeError):
                return utf8(str(value))  # what a test gives to see it refused
        return utf8(str(value)) if self._text else b64decode(value)

    def to_plain(self, data: bytes | None) -> Any:
        from base64 import b64encode

        row = self.parse(data)
        if not row:
            return None
        return b64encode(row[0]).decode() if isinstance(row[0], bytes) else row[0]


class NoneFormat:
    """No columns, and null bytes: the key of what has none. What comes in is not looked at."""

    name = "NONE"

    def __init__(self, columns: Sequence[Column]) -> None:
        if columns:
            raise StatementError(
                "The 'NONE' format can only be used when no columns are defined. "
                f"Got: {described(columns, key=True)}"
            )
        self.columns: tuple[Column, ...] = ()

    def parse(self, data: bytes | None) -> list[Any] | None:
        return []

    def serialise(self, row: Row | None) -> bytes | None:
        return None

    def from_plain(self, value: Any) -> bytes | None:
        return None if value is None else utf8(str(value))

    def to_plain(self, data: bytes | None) -> Any:
        return None
