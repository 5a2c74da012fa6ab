"""DELIMITED: a line of separated values, quoted as Apache Commons CSV quotes them (which ksqlDB writes with).

An empty field is null. Fields are quoted only where they must be; the first field of a line also where it begins with
anything but a letter or digit, so that -1 in front is written "-1".
"""

from __future__ import annotations

import base64
import binascii
import csv
from collections.abc import Callable, Sequence
from decimal import Decimal, InvalidOperation

from pykafkad.pipelines.errors import StatementError
from pykafkad.pipelines.expressions.numbers import EvaluationError, fit
from pykafkad.pipelines.expressions.schema import Column, Row
from pykafkad.pipelines.expressions.texts import texts_of, utf8
from pykafkad.pipelines.formats.base import BadRecord, refuse_types
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
    SqlType,
)
from pykafkad.pipelines.types import Decimal as DecimalType

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_SUPPORTED: tuple[SqlType | type[SqlType], ...] = (
    BOOLEAN, INTEGER, BIGINT, DOUBLE, STRING, BYTES, DATE, TIME, TIMESTAMP, DecimalType,
)  # fmt: skip

DELIMITERS = {"TAB": "\t", "SPACE": " "}


def delimiter_of(text: str) -> str:
    """The character that VALUE_DELIMITER says."""
    if not text:
        raise StatementError(
            "Configuration VALUE_DELIMITER is invalid: Delimiter cannot be empty, if you meant to have a tab or "
            "space for delimiter, please use the special values 'TAB' or 'SPACE'\nExample valid value: ';'"
        )
    found = DELIMITERS.get(text.upper(), text)
    if len(found) != 1:
        raise StatementError(
            f"Configuration VALUE_DELIMITER is invalid: Invalid delimiter value: '{text}'. Delimiter must be a single "
            "character or TAB,SPACE\nExample valid value: ';'"
        )
    return found


def _bool(text: str) -> bool:
    return text.strip().lower() == "true"


def _bounded(bits: int) -> Callable[[str], int]:
    def parse(text: str) -> int:
        value = int(text.strip())
        if not -(1 << bits - 1) <= value < 1 << bits - 1:
            raise ValueError(f"{text} is out of range")
        return value

    return parse


def _reader(of: SqlType) -> Callable[[str], Any]:
    if isinstance(of, DecimalType):
        return lambda text: fit(Decimal(text.strip()), of)
    readers: dict[SqlType, Callable[[str], Any]] = {
        BOOLEAN: _bool,
        INTEGER: _bounded(32),
        BIGINT: _bounded(64),
        DOUBLE: float,
        STRING: str,
        BYTES: lambda text: base64.b64decode(text, validate=True),
        DATE: _bounded(32),
        TIME: _bounded(32),
        TIMESTAMP: _bounded(64),
    }
    return readers[of]


def _writer(of: SqlType) -> Callable[[Any], str]:
    return str if of in (DATE, TIME, TIMESTAMP) else texts_of(of)


class DelimitedFormat:
    name = "DELIMITED"

    def __init__(self, columns: Sequence[Column], delimiter: str = ",") -> None:
        refuse_types(self.name, columns, _SUPPORTED)
        self.columns = tuple(columns)
        self.delimiter = delimiter
        self._readers = [_reader(column.type) for column in columns]
        self._writers = [_writer(column.type) for column in columns]

    def __reduce__(self) -> tuple[Any, ...]:
        return DelimitedFormat, (self.columns, self.delimiter)

    def parse(self, data: bytes | None) -> list[Any] | None:
        if not self.columns:
            return []
        if data is None:
            return None
        try:
            fields = self._fields(data.decode())
            return [
                None if not field else read(field) for read, field in zip(self._readers, fields, strict=True)
            ]
        except (ValueError, InvalidOperation, EvaluationError, binascii.Error) as error:
            raise BadRecord(f"no {len(self.columns)} values of format DELIMITED: {error}") from None

    def _fields(self, text: str) -> list[str]:
        if '"' not in text and "\n" not in text and "\r" not in text:
            fields = text.split(self.delimiter)
        else:
            try:
                fields = next(csv.reader([text], delimiter=self.delimiter, strict=True), [])
            except csv.Error as error:
                raise ValueError(str(error)) from None
        if len(fields) != len(self._readers):
            raise ValueError(
                f"Unexpected field count, csvFields: {len(fields)} schemaFields: {len(self._readers)}"
            )
        return fields

    def serialise(self, row: Row | None) -> bytes | None:
        if row is None or not self.columns:
            return None
        fields = [
            "" if value is None else self._quoted(write(value), place == 0)
            for place, (write, value) in enumerate(zip(self._writers, row, strict=True))
        ]
        return utf8(self.delimiter.join(fields))

    def _quoted(self, field: str, first: bool) -> str:
        if not field:
            return '""' if first else ""
        needs = (
            (first and not ("0" <= field[0] <= "9" or "A" <= field[0] <= "Z" or "a" <= field[0] <= "z"))
            or field[0] <= "#"
            or field[-1] <= " "
            or any(mark in field for mark in (self.delimiter, '"', "\n", "\r"))
        )
        return '"' + field.replace('"', '""') + '"' if needs else field

    def from_plain(self, value: Any) -> bytes | None:
        return None if value is None else utf8(value if isinstance(value, str) else str(value))

    def to_plain(self, data: bytes | None) -> Any:
        return None if data is None else data.decode()
