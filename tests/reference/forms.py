"""Messages in other forms: the JSON of Kafka's own converters, and the reference codec's plain dicts."""

from __future__ import annotations

import base64
from typing import Any

from pykafkad.hot import wire


def camel(name: str) -> str:
    return name[0].lower() + name[1:]


def from_json(cls: type[wire.Struct], form: dict[str, Any], unknown: list[Any] | None = None) -> Any:
    """An object from Kafka's JSON form; missing fields have their defaults."""
    values = {}
    for field in wire.fields(cls):
        if camel(field.name) in form:
            values[field.attribute] = value_from_json(field, form[camel(field.name)])
    made = cls(**values)
    if unknown:
        made.unknown_tags = {tag: bytes.fromhex(value) for tag, value in unknown}
    return made


def value_from_json(field: wire.Field, form: Any) -> Any:
    if isinstance(form, list):
        return [one_from_json(field, item) for item in form]
    return one_from_json(field, form)


def one_from_json(field: wire.Field, form: Any) -> Any:
    kind = field.type.removeprefix("[]")
    if form is None:
        return None
    if field.struct is not None:
        return from_json(field.struct, form)
    if kind == "uuid":
        return base64.urlsafe_b64decode(form + "==")
    if kind in ("bytes", "records"):
        return base64.b64decode(form)
    if kind == "float64":
        return float(form)
    return form


def to_plain(made: Any) -> dict[str, Any]:
    """The reference codec's dict of an object."""
    plain = {field.name: value_to_plain(getattr(made, field.attribute)) for field in wire.fields(type(made))}
    if made.unknown_tags is not None:
        plain[""] = made.unknown_tags
    return plain


def value_to_plain(value: Any) -> Any:
    if isinstance(value, list):
        return [value_to_plain(item) for item in value]
    if isinstance(value, memoryview):
        return bytes(value)
    return to_plain(value) if isinstance(value, wire.Struct) else value


def from_plain(cls: Any, plain: dict[str, Any]) -> Any:
    values = {}
    for field in wire.fields(cls):
        value = plain[field.name]
        if field.struct is not None and isinstance(value, list):
            value = [from_plain(field.struct, item) for item in value]
        elif field.struct is not None and value is not None:
            value = from_plain(field.struct, value)
        values[field.attribute] = value
    return cls(**values, unknown_tags=plain.get(""))
