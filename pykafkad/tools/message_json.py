"""Messages as the JSON that Kafka's converters write: one line, fields in the order of the schema.

Fields that the version does not have are left out, and so are tagged fields at their default; bytes are base64, ids 22
characters.
"""

from __future__ import annotations

from binascii import b2a_base64

from pykafkad import uuids
from pykafkad.hot import wire

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

_SHORT = {'"': '\\"', "\\": "\\\\", "\n": "\\n", "\r": "\\r", "\t": "\\t", "\b": "\\b", "\f": "\\f"}
ESCAPES = {code: f"\\u{code:04X}" for code in range(32)} | {ord(key): text for key, text in _SHORT.items()}

# class -> its fields: (field, name in JSON)
_fields: dict[type[wire.Struct], list[tuple[wire.Field, str]]] = {}


def to_value(message: wire.Struct, version: int) -> dict[str, Any]:
    """The message as dictionaries, lists and plain values, in order."""
    found = {}
    for field, name in _fields_of(type(message)):
        low, high = field.versions
        if not low <= version <= high:
            continue
        value = getattr(message, field.attribute)
        if field.tag is None or not _is_default(field, value):
            found[name] = _value(field, field.type, value, version)
    return found


def _is_default(field: wire.Field, value: Any) -> bool:
    default = field.default
    return bool(value == (default() if isinstance(default, type) else default))


def _fields_of(cls: type[wire.Struct]) -> list[tuple[wire.Field, str]]:
    known = _fields.get(cls)
    if known is None:
        known = [(field, field.name[0].lower() + field.name[1:]) for field in wire.fields(cls)]
        _fields[cls] = known
    return known


def _value(field: wire.Field, kind: str, value: Any, version: int) -> Any:
    if value is None:
        return None
    if kind.startswith("[]"):
        return [_value(field, kind[2:], element, version) for element in value]
    if kind in ("bytes", "records"):
        return b2a_base64(value, newline=False).decode()
    if kind == "uuid":
        return uuids.to_text(value)
    if isinstance(value, wire.Struct):
        return to_value(value, version)
    return value


def to_text(value: Any) -> str:
    """JSON without blanks, escaped as Kafka's library does it: only control characters are escaped."""
    if value is None:
        return "null"
    if value is True or value is False:
        return "true" if value else "false"
    if isinstance(value, str):
        return f'"{value.translate(ESCAPES)}"'
    if isinstance(value, dict):
        return _object(value)
    if isinstance(value, list):
        return f"[{','.join(map(to_text, value))}]"
    if isinstance(value, float):
        return _double(value)
    return str(value)


def _object(value: Mapping[str, Any]) -> str:
    return "{" + ",".join(f'"{key}":{to_text(member)}' for key, member in value.items()) + "}"


def _double(value: float) -> str:
    from pykafkad.config_def import show_double

    shown = show_double(value)
    return shown if shown[-1].isdigit() else f'"{shown}"'
