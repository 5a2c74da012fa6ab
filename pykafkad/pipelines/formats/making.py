"""make_format: a format by its name, with what WITH (...) says of it."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from pykafkad.pipelines.errors import StatementError, did_you_mean
from pykafkad.pipelines.expressions.schema import Column
from pykafkad.pipelines.formats.base import Format
from pykafkad.pipelines.formats.delimited import DelimitedFormat, delimiter_of
from pykafkad.pipelines.formats.json_format import JsonFormat
from pykafkad.pipelines.formats.kafka import KafkaFormat, NoneFormat
from pykafkad.pipelines.formats.registry import REGISTRY_URL, Subject

Make = Callable[[Sequence[Column], bool | None, str | None, Subject | None], Format]


def _kafka(columns: Sequence[Column], wrap: bool | None, *_: object) -> Format:
    if wrap:
        raise StatementError("Format 'KAFKA' does not support 'WRAP_SINGLE_VALUE' set to 'true'.")
    return KafkaFormat(columns)


def _json(columns: Sequence[Column], wrap: bool | None, *_: object) -> Format:
    return JsonFormat(columns, wrap is not False)


def _delimited(columns: Sequence[Column], wrap: bool | None, delimiter: str | None, *_: object) -> Format:
    if wrap is False:
        raise StatementError("Format 'DELIMITED' does not support 'WRAP_SINGLE_VALUE' set to 'false'.")
    return DelimitedFormat(columns, "," if delimiter is None else delimiter_of(delimiter))


def _none(columns: Sequence[Column], *_: object) -> Format:
    return NoneFormat(columns)


def _registered(name: str) -> Make:
    def make(
        columns: Sequence[Column], wrap: bool | None, delimiter: str | None, subject: Subject | None
    ) -> Format:
        from pykafkad.pipelines.formats.registered import REGISTERED

        if subject is None:
            raise StatementError(
                f"Format {name} keeps its schemas in a schema registry: say where it is, "
                f"SET '{REGISTRY_URL}'='http://...';"
            )
        return REGISTERED[name](columns, wrap is not False, subject)

    return make


FORMATS: dict[str, Make] = {
    "KAFKA": _kafka,
    "JSON": _json,
    "DELIMITED": _delimited,
    "NONE": _none,
    "AVRO": _registered("AVRO"),
    "JSON_SR": _registered("JSON_SR"),
}
WITH_REGISTRY = ("AVRO", "JSON_SR")
UNWRAPPED_KEYS = ("JSON", *WITH_REGISTRY)
"""Formats that write a key of one column bare."""


def make_format(
    name: str,
    columns: Sequence[Column],
    wrap: bool | None = None,
    delimiter: str | None = None,
    subject: Subject | None = None,
) -> Format:
    """The format; `wrap` is WRAP_SINGLE_VALUE, None where nothing is said: say False for keys in UNWRAPPED_KEYS.

    `subject` is where a schema registry, if there is one, has the schemas.
    """
    make = FORMATS.get(name.upper())
    if make is None:
        raise StatementError(f"Unknown format: {name.upper()}{did_you_mean(name, FORMATS)}")
    if delimiter is not None and make is not _delimited:
        raise StatementError(f"{name.upper()} does not support the following configs: [delimiter]")
    return make(columns, wrap, delimiter, subject)
