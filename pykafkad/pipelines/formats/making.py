"""make_format: a format by its name, with what WITH (...) says of it."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from pykafkad.pipelines.errors import StatementError, did_you_mean
from pykafkad.pipelines.expressions.schema import Column
from pykafkad.pipelines.formats.base import NO_SHAPE, Format, MessageShape
from pykafkad.pipelines.formats.delimited import DelimitedFormat, delimiter_of
from pykafkad.pipelines.formats.json_format import JsonFormat
from pykafkad.pipelines.formats.kafka import KafkaFormat, NoneFormat
from pykafkad.pipelines.formats.registry import REGISTRY_URL, Subject

Make = Callable[[Sequence[Column], bool | None, str | None, Subject | None, MessageShape], Format]


def _kafka(columns: Sequence[Column], wrap: bool | None, *_: object) -> Format:
    if wrap:
        raise StatementError("Format 'KAFKA' does not support 'WRAP_SINGLE_VALUE' set to 'true'.")
    return KafkaFormat(columns)


def _json(columns: Sequence[Column], wrap: bool | None, *_: object) -> Format:
    return JsonFormat(columns, wrap is not False)


def _delimited(columns: Sequence[Column], wrap: bool | None, delimiter: str | None, *_: object) -> Format:
    _refuse_unwrapped("DELIMITED", wrap)
    return DelimitedFormat(columns, "," if delimiter is None else delimiter_of(delimiter))


def _none(columns: Sequence[Column], *_: object) -> Format:
    return NoneFormat(columns)


def _registered(name: str) -> Make:
    def make(
        columns: Sequence[Column],
        wrap: bool | None,
        delimiter: str | None,
        subject: Subject | None,
        *_: object,
    ) -> Format:
        from pykafkad.pipelines.formats.registered import REGISTERED

        return REGISTERED[name](columns, wrap is not False, _known(subject, name))

    return make


def _known(subject: Subject | None, name: str) -> Subject:
    if subject is None:
        raise StatementError(
            f"Format {name} keeps its schemas in a schema registry: say where it is, "
            f"SET '{REGISTRY_URL}'='http://...';"
        )
    return subject


def _protobuf(
    columns: Sequence[Column], wrap: bool | None, _: object, subject: Subject | None, shape: MessageShape
) -> Format:
    from pykafkad.pipelines.formats.protobuf_format import ProtobufFormat

    _refuse_unwrapped("PROTOBUF", wrap)
    return ProtobufFormat(columns, shape, _known(subject, "PROTOBUF"))


def _bare_protobuf(
    columns: Sequence[Column], wrap: bool | None, _: object, __: object, shape: MessageShape
) -> Format:
    from pykafkad.pipelines.formats.protobuf_format import BareProtobufFormat

    _refuse_unwrapped("PROTOBUF_NOSR", wrap)
    return BareProtobufFormat(columns, shape)


def _refuse_unwrapped(name: str, wrap: bool | None) -> None:
    if wrap is False:
        raise StatementError(f"Format '{name}' does not support 'WRAP_SINGLE_VALUE' set to 'false'.")


FORMATS: dict[str, Make] = {
    "KAFKA": _kafka,
    "JSON": _json,
    "DELIMITED": _delimited,
    "NONE": _none,
    "AVRO": _registered("AVRO"),
    "JSON_SR": _registered("JSON_SR"),
    "PROTOBUF": _protobuf,
    "PROTOBUF_NOSR": _bare_protobuf,
}
WITH_REGISTRY = ("AVRO", "JSON_SR", "PROTOBUF")
UNWRAPPED_KEYS = ("JSON", "AVRO", "JSON_SR")
"""Formats that write a key of one column bare."""


def make_format(
    name: str,
    columns: Sequence[Column],
    wrap: bool | None = None,
    delimiter: str | None = None,
    subject: Subject | None = None,
    shape: MessageShape = NO_SHAPE,
) -> Format:
    """The format; `wrap` is WRAP_SINGLE_VALUE, None where nothing is said: say False for keys in UNWRAPPED_KEYS.

    `subject` is where a schema registry, if there is one, has the schemas; `shape` is for Protobuf.
    """
    make = FORMATS.get(name.upper())
    if make is None:
        raise StatementError(f"Unknown format: {name.upper()}{did_you_mean(name, FORMATS)}")
    if delimiter is not None and make is not _delimited:
        raise StatementError(f"{name.upper()} does not support the following configs: [delimiter]")
    if shape != NO_SHAPE and make not in (_protobuf, _bare_protobuf):
        unsupported = "fullSchemaName" if shape.nulls is None else "nullableRepresentation"
        raise StatementError(f"{name.upper()} does not support the following configs: [{unsupported}]")
    return make(columns, wrap, delimiter, subject, shape)
