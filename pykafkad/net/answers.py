"""Answers as whoever asked reads them: of what type they are, and where their body begins."""

from __future__ import annotations

from functools import cache
from struct import Struct

from pykafkad import messages
from pykafkad.errors import UNSUPPORTED_VERSION

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from typing_extensions import Buffer

    from pykafkad.hot.wire import Message

CORRELATION_ID = Struct(">i")
ERROR_CODE = Struct(">h")
API_VERSIONS = 18


class WrongAnswer(ConnectionError):
    """It answers another request than the one whose turn it is."""


def response_type(request: Message) -> type[Message]:
    return _response_to(type(request).__name__)


@cache
def _response_to(request: str) -> type[Message]:
    kind: type[Message] = getattr(messages, request.removesuffix("Request") + "Response")
    return kind


def read_answer(
    response: type[Message],
    version: int,
    correlation_id: int,
    frame: Buffer,
    start: int = 0,
    end: int | None = None,
) -> Any:
    """The answer in frame[start:end], which is to be one to that request."""
    answer = memoryview(frame)[start:end]
    (found,) = CORRELATION_ID.unpack_from(answer)
    if found != correlation_id:
        raise WrongAnswer(f"the answer to {found} came for request {correlation_id}")
    body = CORRELATION_ID.size
    if response.api_key == API_VERSIONS and ERROR_CODE.unpack_from(answer, body)[0] == UNSUPPORTED_VERSION:
        version = 0  # in which it is said, whatever was asked
    if version >= response.flexible_since and response.api_key != API_VERSIONS:
        body = _after_tags(answer, body) if answer[body] else body + 1
    return response.decode(answer, version, body)


def _after_tags(frame: memoryview, position: int) -> int:
    """Where the body starts: behind the tagged fields of the header, of which we know none."""

    def varint() -> int:
        nonlocal position
        value = shift = 0
        while True:
            byte: int = frame[position]
            position += 1
            value |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                return value

    for _ in range(varint()):
        varint()
        size = varint()
        position += size
    return position
