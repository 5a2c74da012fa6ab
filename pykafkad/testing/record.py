"""A record as tests write and read it, and how values become bytes and bytes become values."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Generic, TypeVar

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

V = TypeVar("V")
HeaderList = list[tuple[str, bytes | None]]


@dataclass(frozen=True, slots=True)
class Record(Generic[V]):
    """One record. To produce one only `value` is needed; what is read has all of it. A value of None is a tombstone."""

    value: V | None
    key: Any = None
    headers: HeaderList = field(default_factory=list)
    partition: int | None = None
    timestamp_ms: int | None = None
    offset: int = -1
    topic: str = ""


def encoded(value: object) -> bytes | None:
    """Bytes as they are, text as UTF-8, None as no value at all, and anything else as JSON."""
    if value is None or isinstance(value, bytes):
        return value
    if isinstance(value, bytearray | memoryview):
        return bytes(value)
    if isinstance(value, str):
        return value.encode()
    return json.dumps(value).encode()


def header_list(headers: Mapping[str, object] | HeaderList) -> HeaderList:
    pairs = headers.items() if isinstance(headers, Mapping) else headers
    return [(name, encoded(value)) for name, value in pairs]


def decoded(data: bytes | None, decode: Callable[[bytes], V]) -> V | None:
    """`str` is UTF-8; any other function is called with the bytes."""
    if data is None:
        return None
    if decode is str:
        text: Any = data.decode()
        return text  # type: ignore[no-any-return]
    return decode(data)
