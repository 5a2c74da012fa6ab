"""What a format is, and what the formats share: refusals of types, and the error of a record that cannot be read."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, Protocol

from pykafkad.pipelines.errors import StatementError
from pykafkad.pipelines.expressions.schema import Column, Row
from pykafkad.pipelines.types import Array, Decimal, Map, Primitive, SqlType, Struct

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


class BadRecord(Exception):
    """A key or value that is not what its columns say."""

    target = "value"
    """What of the record it is: key or value."""
    written_to: str | None = None
    """The topic for which it could not be written; None where it was read."""


class MessageShape(NamedTuple):
    """What WITH (...) says of Protobuf's messages."""

    nulls: str | None = None
    """OPTIONAL or WRAPPER: how a null differs from the type's default."""
    name: str | None = None
    """The message's, with its package."""


NO_SHAPE = MessageShape()


class Format(Protocol):
    """The key or the value of a topic's records. Pickles."""

    name: str
    columns: tuple[Column, ...]

    def parse(self, data: bytes | None) -> list[Any] | None: ...

    def serialise(self, row: Row | None) -> bytes | None: ...

    def from_plain(self, value: Any) -> bytes | None: ...

    def to_plain(self, data: bytes | None) -> Any: ...


def base_name(of: SqlType) -> str:
    """ARRAY of ARRAY<INTEGER>."""
    match of:
        case Primitive(name):
            return name
        case Decimal():
            return "DECIMAL"
        case Array():
            return "ARRAY"
        case Map():
            return "MAP"
        case Struct():
            return "STRUCT"
    return str(of)


def described(columns: Sequence[Column], key: bool = False) -> str:
    return "[" + ", ".join(f"`{c.name}` {c.type}{' KEY' if key else ''}" for c in columns) + "]"


def refuse_types(name: str, columns: Sequence[Column], supported: Sequence[SqlType | type[SqlType]]) -> None:
    for column in columns:
        if column.type not in supported and type(column.type) not in supported:
            raise StatementError(
                f"The '{name}' format does not support type '{base_name(column.type)}', column: `{column.name}`"
            )
