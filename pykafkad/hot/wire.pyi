"""The wire codec (ext/wire.pyx): message classes out of schemas, frames, request headers."""

import builtins
from typing import Any, ClassVar, Protocol, Self, TypeVar

from typing_extensions import Buffer

class WireError(ValueError):
    """Bytes that are not the message they should be, or a message that this version cannot hold."""

class Range(Protocol):
    """A range of a file that stands for its bytes in an answer."""

    @property
    def size(self) -> int: ...

class Field:
    """One field of a struct as the schema has it, in all versions."""

    name: str
    attribute: str
    type: str
    versions: tuple[int, int]
    nullable: tuple[int, int]
    tag: int | None
    default: Any
    ignorable: bool
    entity: str | None
    struct: builtins.type[Struct] | None

class Struct:
    """A struct of a message; fields are attributes, those not given take their default."""

    __hash__: ClassVar[None]  # type: ignore[assignment]
    unknown_tags: dict[int, bytes] | None

    def encode(self, version: int) -> bytes: ...
    @classmethod
    def decode(cls, buffer: Buffer, version: int, start: int = 0, end: int | None = None) -> Self: ...
    @classmethod
    def decode_prefix(
        cls, buffer: Buffer, version: int, start: int = 0, end: int | None = None
    ) -> tuple[Self, int]: ...

class Message(Struct):
    """A struct that is a whole message."""

    api_key: ClassVar[int]
    min_version: ClassVar[int]
    max_version: ClassVar[int]
    flexible_since: ClassVar[int]

_M = TypeVar("_M", bound=Message)

def read_schema(text: bytes) -> dict[str, Any]: ...
def define(schema: dict[str, Any]) -> type[Message]: ...
def fields(cls: type[Struct]) -> tuple[Field, ...]: ...
def attribute_name(name: str) -> str: ...
def frame(
    message: Message, version: int, correlation_id: int, flexible_header: bool
) -> bytes | list[bytes | Range]: ...
def request(
    message: Message, version: int, correlation_id: int, client_id: str | None
) -> bytes | list[bytes | Range]: ...

class HeaderReader:
    """Reads request headers; made with {api_key: flexible_since}."""

    def __init__(self, flexible_since: dict[int, int]) -> None: ...
    def read(self, buffer: Buffer, start: int, end: int) -> tuple[int, int, int, str | None, int]:
        """(api_key, version, correlation_id, client_id, where the body starts or -1 for an unknown key)."""

class Exchange:
    """A request under way, and the promise of its answer."""

    response: Any
    @property
    def connection(self) -> Any: ...
    @property
    def version(self) -> int: ...
    @property
    def correlation_id(self) -> int: ...
    @property
    def client_id(self) -> str: ...
    @property
    def ticket(self) -> Any: ...
    def __init__(
        self, connection: Any, version: int, correlation_id: int, client_id: str | None, flexible_header: bool
    ) -> None: ...
    def defer(self) -> Self: ...
    def answer(self, response: Any) -> None: ...
    def encode(self) -> bytes | list[bytes | Range]: ...
