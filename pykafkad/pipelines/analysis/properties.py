"""WITH (...): the properties of a stream or table, each with what its value may be."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable

from pykafkad.pipelines.errors import StatementError, did_you_mean
from pykafkad.pipelines.formats.base import MessageShape
from pykafkad.pipelines.syntax import ast

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise ValueError("a string is expected")
    return value


def _count(value: Any) -> int:
    if isinstance(value, str) and re.fullmatch(r"-?\d+", value):
        value = int(value)
    if type(value) is not int:
        raise ValueError("an integer is expected")
    if value < 1:
        raise ValueError("it must be at least 1")
    return value


def _flag(value: Any) -> bool:
    if isinstance(value, str) and value.lower() in ("true", "false"):
        return value.lower() == "true"
    if not isinstance(value, bool):
        raise ValueError("true or false is expected")
    return value


def _delimiter(value: Any) -> str:
    text = _text(value)
    if text == "":
        raise ValueError(
            "Delimiter cannot be empty, if you meant to have a tab or space for delimiter, please use the special values "
            "'TAB' or 'SPACE'\nExample valid value: ';'"
        )
    if len(text) > 1 and text.upper() not in ("TAB", "SPACE"):
        raise ValueError(
            f"Invalid delimiter value: '{text}'. Delimiter must be a single character or TAB,SPACE\n"
            "Example valid value: ';'"
        )
    return text


def _window_type(value: Any) -> str:
    text = _text(value).upper()
    if text not in ("SESSION", "HOPPING", "TUMBLING"):
        raise ValueError("String must be one of: SESSION, HOPPING, TUMBLING, null")
    return text


_SIZE = re.compile(r"\s*(\d+)\s+(MILLISECOND|SECOND|MINUTE|HOUR|DAY)S?\s*\Z", re.IGNORECASE)


def _duration(value: Any) -> int:
    match = _SIZE.match(_text(value))
    if match is None:
        raise ValueError("a duration such as '10 SECONDS' is expected")
    return int(match[1]) * ast.UNIT_MILLISECONDS[match[2].upper() + "S"]


def _representation(value: Any) -> str:
    text = _text(value).upper()
    if text not in ("OPTIONAL", "WRAPPER"):
        raise ValueError("String must be one of: OPTIONAL, WRAPPER, null")
    return text


def _message_name(value: Any) -> str:
    text = _text(value)
    if not re.fullmatch(r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)*", text, re.ASCII):
        raise ValueError("a message's name is expected, with its package where it has one")
    return text


def _cleanup(value: Any) -> str:
    text = _text(value).lower()
    if text not in ("delete", "compact", "delete,compact", "compact,delete"):
        raise ValueError("one of delete, compact, delete,compact is expected")
    return text


_OF_BOTH: dict[str, Callable[[Any], Any]] = {
    "KAFKA_TOPIC": _text,
    "PARTITIONS": _count,
    "REPLICAS": _count,
    "RETENTION_MS": _count,
    "FORMAT": _text,
    "KEY_FORMAT": _text,
    "VALUE_FORMAT": _text,
    "KEY_DELIMITER": _delimiter,
    "VALUE_DELIMITER": _delimiter,
    "KEY_PROTOBUF_NULLABLE_REPRESENTATION": _representation,
    "VALUE_PROTOBUF_NULLABLE_REPRESENTATION": _representation,
    "KEY_SCHEMA_FULL_NAME": _message_name,
    "VALUE_SCHEMA_FULL_NAME": _message_name,
    "WRAP_SINGLE_VALUE": _flag,
    "TIMESTAMP": _text,
    "TIMESTAMP_FORMAT": _text,
}
OF_SOURCES = {**_OF_BOTH, "WINDOW_TYPE": _window_type, "WINDOW_SIZE": _duration}
OF_SINKS = {**_OF_BOTH, "CLEANUP_POLICY": _cleanup}


class Properties:
    """The properties of a statement, checked."""

    def __init__(self, given: Iterable[ast.Property], known: dict[str, Callable[[Any], Any]]) -> None:
        self._values: dict[str, Any] = {}
        for one in given:
            check = known.get(one.name)
            if check is None:
                raise StatementError(
                    f"Invalid config variable(s) in the WITH clause: {one.name}.{did_you_mean(one.name, known)}",
                    one.at,
                )
            if isinstance(one.value, ast.NullLiteral):
                continue
            try:
                self._values[one.name] = check(one.value.value)
            except ValueError as error:
                raise StatementError(
                    f"Failed to prepare statement: Configuration {one.name} is invalid: {error}", one.at
                ) from None

    def get(self, name: str) -> Any:
        return self._values.get(name)

    def format(self, which: str) -> str | None:
        """KEY_FORMAT or VALUE_FORMAT, where FORMAT stands for both."""
        own, both = self.get(f"{which}_FORMAT"), self.get("FORMAT")
        if own is not None and both is not None:
            raise StatementError(
                f"Cannot supply both '{which}_FORMAT' and 'FORMAT' properties, as 'FORMAT' sets both key and value "
                "formats. Either use just 'FORMAT', or use 'KEY_FORMAT' and 'VALUE_FORMAT'."
            )
        name = own or both
        return None if name is None else name.upper()

    def message_shape(self, which: str) -> MessageShape:
        nulls = self.get(f"{which}_PROTOBUF_NULLABLE_REPRESENTATION")
        return MessageShape(nulls, self.get(f"{which}_SCHEMA_FULL_NAME"))
