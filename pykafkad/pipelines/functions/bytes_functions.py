"""Functions between bytes, their encodings as text, and numbers."""

from __future__ import annotations

import base64
import binascii
import struct
from collections.abc import Callable

from pykafkad.pipelines.expressions.numbers import EvaluationError
from pykafkad.pipelines.expressions.texts import utf8
from pykafkad.pipelines.functions.registry import scalar

CATEGORY = "CONVERSIONS"


def _encoded(encode: Callable[[], bytes]) -> bytes:
    try:
        return encode()
    except (binascii.Error, ValueError) as error:
        raise EvaluationError(str(error)) from None


def _ascii(value: bytes) -> str:
    return value.decode("ascii", "replace")


ENCODINGS: dict[str, tuple[Callable[[str], bytes], Callable[[bytes], str]]] = {
    "hex": (lambda text: binascii.unhexlify(text), lambda value: value.hex().upper()),
    "utf8": (utf8, lambda value: value.decode("utf-8", "replace")),
    "ascii": (lambda text: text.encode("ascii", "replace"), _ascii),
    "base64": (
        lambda text: base64.b64decode(text, validate=True),
        lambda value: base64.b64encode(value).decode(),
    ),
}


def _encoding(name: str) -> tuple[Callable[[str], bytes], Callable[[bytes], str]]:
    found = ENCODINGS.get(name.lower())
    if found is None:
        raise EvaluationError(
            f"Unsupported encoding type: {name}. Supported types are: hex, utf8, ascii and base64"
        )
    return found


@scalar("TO_BYTES", CATEGORY, "(STRING, STRING) BYTES")
def to_bytes(text: str, encoding: str) -> bytes:
    """The bytes that text stands for in an encoding: hex, utf8, ascii or base64."""
    return _encoded(lambda: _encoding(encoding)[0](text))


@scalar("FROM_BYTES", CATEGORY, "(BYTES, STRING) STRING")
def from_bytes(value: bytes, encoding: str) -> str:
    """Bytes as text in an encoding: hex, utf8, ascii or base64."""
    return _encoding(encoding)[1](value)


def _bare_hex(text: str) -> str:
    """Digits out of 0xDIGITS, X'DIGITS' and x'DIGITS'; a leading 0 where they are odd."""
    if text.startswith(("0x", "0X")):
        digits = text[2:]
        return digits if len(digits) % 2 == 0 else f"0{digits}"
    if text[:2] in ("X'", "x'") and text.endswith("'") and len(text) > 2:
        return text[2:-1]
    return text


@scalar("ENCODE", "STRING", "(STRING, STRING, STRING) STRING")
def encode(text: str, of: str, to: str) -> str:
    """Text in one encoding as text in another: hex, utf8, ascii or base64."""
    decode, write = _encoding(of)[0], _encoding(to)[1]
    return write(_encoded(lambda: decode(_bare_hex(text) if of.lower() == "hex" else text)))


_ORDERS = {"BIG_ENDIAN": ">", "LITTLE_ENDIAN": "<"}


def _add_number(name: str, code: str, result: str) -> None:
    def of(value: bytes, order: str = "BIG_ENDIAN") -> float:
        if order.upper() not in _ORDERS:
            raise EvaluationError("Byte order must be BIG_ENDIAN or LITTLE_ENDIAN")
        try:
            found: float = struct.unpack(_ORDERS[order.upper()] + code, value)[0]
        except struct.error as error:
            raise EvaluationError(str(error)) from None
        return found

    of.__doc__ = f"The {result} that bytes are, in an order that is BIG_ENDIAN unless LITTLE_ENDIAN is said."
    scalar(name, CATEGORY, f"(BYTES) {result}", f"(BYTES, STRING) {result}")(of)


_add_number("INT_FROM_BYTES", "i", "INTEGER")
_add_number("BIGINT_FROM_BYTES", "q", "BIGINT")
_add_number("DOUBLE_FROM_BYTES", "d", "DOUBLE")
