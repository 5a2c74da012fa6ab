"""make_format: a format by its name, with what WITH (...) says of it."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from pykafkad.pipelines.errors import StatementError, did_you_mean
from pykafkad.pipelines.expressions.schema import Column
from pykafkad.pipelines.formats.base import Format
from pykafkad.pipelines.formats.delimited import DelimitedFormat, delimiter_of
from pykafkad.pipelines.formats.json_format import JsonFormat
from pykafkad.pipelines.formats.kafka import KafkaFormat, NoneFormat


def _kafka(columns: Sequence[Column], wrap: bool | None, delimiter: str | None) -> Format:
    if wrap:
        raise StatementError("Format 'KAFKA' does not support 'WRAP_SINGLE_VALUE' set to 'true'.")
    return KafkaFormat(columns)


def _json(columns: Sequence[Column], wrap: bool | None, delimiter: str | None) -> Format:
    return JsonFormat(columns, wrap is not False)


def _delimited(columns: Sequence[Column], wrap: bool | None, delimiter: str | None) -> Format:
    if wrap is False:
        raise StatementError("Format 'DELIMITED' does not support 'WRAP_SINGLE_VALUE' set to 'false'.")
    return DelimitedFormat(columns, "," if delimiter is None else delimiter_of(delimiter))


def _none(columns: Sequence[Column], wrap: bool | None, delimiter: str | None) -> Format:
    return NoneFormat(columns)


FORMATS: dict[str, Callable[[Sequence[Column], bool | None, str | None], Format]] = {
    "KAFKA": _kafka,
    "JSON": _json,
    "DELIMITED": _delimited,
    "NONE": _none,
}


def make_format(
    name: str, columns: Sequence[Column], wrap: bool | None = None, delimiter: str | None = None
) -> Format:
    """The format; `wrap` is WRAP_SINGLE_VALUE, None where nothing is said.

    Keys of one column are not wrapped in JSON: say False for them.
    """
    make = FORMATS.get(name.upper())
    if make is None:
        raise StatementError(f"Unknown format: {name.upper()}{did_you_mean(name, FORMATS)}")
    if delimiter is not None and make is not _delimited:
        raise StatementError(f"{name.upper()} does not support the following configs: [delimiter]")
    return make(columns, wrap, delimiter)
