"""The wire codec (ext/wire.pyx): message classes out of schemas, frames, request headers."""

import builtins
from collections.abc import Callable
from typing import Any, ClassVar, Final, Protocol, Self, TypeVar

from typing_extensions import Buffer

from pykafkad.pure.authorization import Principal

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
        cls, buffer: Buffer, version: int, start: int = 0, end: int | None = None, most: int = -1
    ) -> tuple[Self, int]: ...
    @classmethod
    def decode_apart(cls, buffer: Buffer, version: int, start: int = 0) -> Self: ...

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
def hash_code(text: str) -> int:
    """String.hashCode of Java, as an unsigned number."""

MESSAGE_ELEMENTS_MAX: Final[int]

class LargeMessage(Exception): ...

def release_memory(least: int) -> bool:
    """Give memory that was freed back to the system, where it is `least` bytes or more; whether that was done."""

class WorkInSlices(TypeError): ...

class Route:
    """What a request for one API becomes: which versions are read, as what, and who is called with it."""

    @property
    def name(self) -> str: ...
    @property
    def handle(self) -> Any: ...
    @property
    def min_version(self) -> int: ...
    @property
    def max_version(self) -> int: ...
    def __init__(
        self,
        request: type[Message],
        versions: tuple[int, int],
        handle: Any,
        old_answer_header: bool = False,
        short_form: type[Message] | None = None,
        write_large: Callable[[Exchange], Any] | None = None,
    ) -> None: ...

class RequestReader:
    """Reads whole requests, header and body; `route_of` is asked once for each API that requests come for."""

    def __init__(self, route_of: Callable[[int], Route | None]) -> None: ...
    def read(self, connection: Any, buffer: Buffer, start: int, end: int) -> tuple[Exchange, Any]:
        """The request under way and its message; None for what no route serves, or what `is_large`."""
    def read_large(self, connection: Any, buffer: Buffer, start: int, end: int) -> tuple[Exchange, Any]:
        """The same for another thread."""

class Exchange:
    """A request under way, and the promise of its answer."""

    response: Any
    amend: Any  # Callable[[Any], Any] | None: given each response, gives the one to answer
    refuse: Any  # Callable[[KafkaError], Any] | None
    watcher: Any  # Callable[[Exchange], None] | None: told just before the answer is encoded
    @property
    def connection(self) -> Any: ...
    @property
    def route(self) -> Any: ...  # a Route; None: nothing serves this API key
    @property
    def api_key(self) -> int: ...
    @property
    def version(self) -> int: ...
    @property
    def correlation_id(self) -> int: ...
    @property
    def client_id(self) -> str: ...
    @property
    def principal(self) -> Principal: ...
    @property
    def listener_name(self) -> str: ...
    @property
    def ticket(self) -> Any: ...
    @property
    def is_large(self) -> bool: ...
    @property
    def throttle_ms(self) -> int: ...
    def throttle(self, delay_ms: int) -> None: ...
    def defer(self) -> Self: ...
    def answer(self, response: Any) -> None: ...
    def hold(self) -> None: ...
    def release(self) -> None: ...
    def changed(self) -> None: ...
    def weigh(self) -> int: ...
    def encode_large(self) -> Any: ...
    def encode(self) -> Any: ...  # bytes or a list of bytes and ranges; the ticket of what is held
