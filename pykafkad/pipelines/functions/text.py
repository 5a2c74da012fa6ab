"""Functions of text. Positions count from 1, from the end with negative numbers."""

from __future__ import annotations

import hashlib
import re
import uuid
from collections.abc import Callable

from pykafkad.pipelines.expressions.numbers import EvaluationError
from pykafkad.pipelines.expressions.schema import Value
from pykafkad.pipelines.expressions.texts import utf8
from pykafkad.pipelines.functions.registry import scalar

CATEGORY = "STRING"


@scalar("UCASE", CATEGORY, "(STRING) STRING")
def upper(text: str) -> str:
    """Text in upper case."""
    return text.upper()


@scalar("LCASE", CATEGORY, "(STRING) STRING")
def lower(text: str) -> str:
    """Text in lower case."""
    return text.lower()


@scalar("TRIM", CATEGORY, "(STRING) STRING")
def trim(text: str) -> str:
    """Text without white space at its ends."""
    return text.strip(_SPACES)


_SPACES = "".join(map(chr, range(33)))
"""What String.trim takes away."""


@scalar("LEN", CATEGORY, "(STRING) INTEGER", "(BYTES) INTEGER")
def length(value: str | bytes) -> int:
    """The number of characters of text, or of bytes."""
    return len(value)


@scalar("INITCAP", CATEGORY, "(STRING) STRING")
def initcap(text: str) -> str:
    """Text whose words begin with capitals, their other letters small."""
    return re.sub(r"\S+", lambda word: word.group()[:1].upper() + word.group()[1:].lower(), text)


@scalar("CONCAT", CATEGORY, "(STRING...) STRING", nulls=True)
def concat(*texts: str | None) -> str:
    """Texts or bytes after each other; nulls are left out."""
    return "".join(text for text in texts if text is not None)


@scalar("CONCAT", CATEGORY, "(BYTES...) BYTES", nulls=True)
def concat_bytes(*values: bytes | None) -> bytes:
    return b"".join(value for value in values if value is not None)


@scalar("CONCAT_WS", CATEGORY, "(STRING, STRING...) STRING", nulls=True)
def concat_ws(separator: str | None, *texts: str | None) -> str | None:
    """Texts or bytes with a separator between them; nulls are left out."""
    return None if separator is None else separator.join(text for text in texts if text is not None)


@scalar("CONCAT_WS", CATEGORY, "(BYTES, BYTES...) BYTES", nulls=True)
def concat_ws_bytes(separator: bytes | None, *values: bytes | None) -> bytes | None:
    return None if separator is None else separator.join(value for value in values if value is not None)


def _start(position: int, size: int) -> int:
    return max(position - 1, 0) if position >= 0 else max(size + position, 0)


@scalar("SUBSTRING", CATEGORY, "(STRING, INTEGER) STRING", "(BYTES, INTEGER) BYTES")
def substring(value: Value, position: int) -> Value:
    """What begins at a position, to the end or of a length."""
    return value[_start(position, len(value)) :]


@scalar("SUBSTRING", CATEGORY, "(STRING, INTEGER, INTEGER) STRING", "(BYTES, INTEGER, INTEGER) BYTES")
def substring_of(value: Value, position: int, size: int) -> Value:
    start = _start(position, len(value))
    return value[start : start + max(size, 0)]


@scalar("REPLACE", CATEGORY, "(STRING, STRING, STRING) STRING")
def replace(text: str, old: str, new: str) -> str:
    """Text with every occurrence of one text replaced by another."""
    return text.replace(old, new)


@scalar("INSTR", CATEGORY, "(STRING, STRING) INTEGER")
def instr(text: str, part: str) -> int:
    """Where a text is in another: from a position on (from the end where that is negative), the n-th time; 0 where
    it is not."""
    return text.find(part) + 1


@scalar("INSTR", CATEGORY, "(STRING, STRING, INTEGER) INTEGER")
def instr_from(text: str, part: str, position: int) -> int:
    return instr_nth(text, part, position, 1)


@scalar("INSTR", CATEGORY, "(STRING, STRING, INTEGER, INTEGER) INTEGER")
def instr_nth(text: str, part: str, position: int, occurrence: int) -> int:
    if position > 0:
        found = position - 2
        for _ in range(occurrence):
            found = text.find(part, found + 1)
            if found < 0:
                return 0
        return found + 1 if occurrence > 0 else 0
    end = len(text) + position + len(part)
    for _ in range(occurrence):
        found = text.rfind(part, 0, end) if end >= 0 else -1
        if found < 0:
            return 0
        end = found + len(part) - 1
    return found + 1 if occurrence > 0 else 0


MAX_LENGTH = 16 << 20
"""Up to which LPAD and RPAD fill."""


def _padding(size: int, value: Value, padding: Value) -> Value:
    if size < 0 or not padding:
        return None
    if size > MAX_LENGTH:
        raise EvaluationError(f"{size} is more than the {MAX_LENGTH} that texts are padded to")
    missing = size - len(value)
    return (padding * (missing // len(padding) + 1))[: max(missing, 0)]


@scalar("LPAD", CATEGORY, "(STRING, INTEGER, STRING) STRING", "(BYTES, INTEGER, BYTES) BYTES")
def lpad(value: Value, size: int, padding: Value) -> Value:
    """Text or bytes of exactly a length, filled from the left or cut off."""
    filling = _padding(size, value, padding)
    return None if filling is None else (filling + value)[:size]


@scalar("RPAD", CATEGORY, "(STRING, INTEGER, STRING) STRING", "(BYTES, INTEGER, BYTES) BYTES")
def rpad(value: Value, size: int, padding: Value) -> Value:
    """Text or bytes of exactly a length, filled from the right or cut off."""
    filling = _padding(size, value, padding)
    return None if filling is None else (value + filling)[:size]


@scalar("SPLIT", CATEGORY, "(STRING, STRING) ARRAY<STRING>")
def split(text: str, separator: str) -> list[str]:
    """The parts of text or bytes between separators; each character of text where the separator is empty."""
    return text.split(separator) if separator else list(text)


@scalar("SPLIT", CATEGORY, "(BYTES, BYTES) ARRAY<BYTES>")
def split_bytes(value: bytes, separator: bytes) -> list[bytes]:
    return value.split(separator) if separator else [value[at : at + 1] for at in range(len(value))]


@scalar("SPLIT_TO_MAP", CATEGORY, "(STRING, STRING, STRING) MAP<STRING, STRING>")
def split_to_map(text: str, between_entries: str, before_value: str) -> dict[str, str] | None:
    """The entries of text like k=v,l=w as a map."""
    if not between_entries or not before_value:
        return None
    pairs = (entry.split(before_value, 1) for entry in text.split(between_entries) if entry)
    return {pair[0]: pair[1] for pair in pairs if len(pair) == 2}


@scalar("CHR", CATEGORY, "(INTEGER) STRING")
def character(code: int) -> str:
    """The character of a code point, which is a number or written as \\uXXXX."""
    if 0xD800 <= code <= 0xDFFF:
        raise EvaluationError(f"{code} is no character")
    return chr(code)


_ESCAPES = re.compile(r"(?:\\u[0-9a-fA-F]{4})+\Z")


@scalar("CHR", CATEGORY, "(STRING) STRING")
def character_of(escapes: str) -> str | None:
    if not _ESCAPES.match(escapes):
        return None
    units = b"".join(int(unit, 16).to_bytes(2, "big") for unit in escapes.split("\\u")[1:])
    return units.decode("utf-16-be")


@scalar("UUID", CATEGORY, "() STRING")
def random_uuid() -> str:
    """A random UUID, or the one that 16 bytes are."""
    return str(uuid.uuid4())


@scalar("UUID", CATEGORY, "(BYTES) STRING")
def uuid_of(value: bytes) -> str:
    return str(uuid.UUID(bytes=value))


@scalar("MD5", CATEGORY, "(STRING) STRING")
def md5(text: str) -> str:
    """The MD5 checksum of text, in hexadecimal digits."""
    return hashlib.md5(utf8(text), usedforsecurity=False).hexdigest()


# --- masks: by default X for capitals, x for small letters, n for digits, - for all else

_DEFAULTS = ("X", "x", "n", "-")


def masked(text: str, marks: tuple[str | None, ...] = ()) -> str:
    """Each character as the mark of its kind; a mark that is null leaves them as they are."""
    chosen = (*marks, *_DEFAULTS[len(marks) :])

    def mask(character: str) -> str:
        kind = 0 if character.isupper() else 1 if character.islower() else 2 if character.isdigit() else 3
        mark = chosen[kind]
        return character if mark is None else mark[:1]

    return "".join(map(mask, text))


def _count(size: int) -> int:
    if size < 0:
        raise EvaluationError("a mask's length is not negative")
    return size


Masking = Callable[[str, int, tuple[str | None, ...]], str]

MASKS: dict[str, tuple[Masking, str]] = {
    "MASK_LEFT": (
        lambda text, size, marks: masked(text[:size], marks) + text[size:],
        "Text with so many of its first characters masked.",
    ),
    "MASK_RIGHT": (
        lambda text, size, marks: (
            text[: max(len(text) - size, 0)] + masked(text[max(len(text) - size, 0) :], marks)
        ),
        "Text with so many of its last characters masked.",
    ),
    "MASK_KEEP_LEFT": (
        lambda text, size, marks: text[:size] + masked(text[size:], marks),
        "Text with all but so many of its first characters masked.",
    ),
    "MASK_KEEP_RIGHT": (
        lambda text, size, marks: (
            masked(text[: max(len(text) - size, 0)], marks) + text[max(len(text) - size, 0) :]
        ),
        "Text with all but so many of its last characters masked.",
    ),
}


def _add_mask(name: str, masking: Masking, description: str) -> None:
    def call(text: str | None, size: int | None, *marks: str | None) -> str | None:
        return None if text is None or size is None else masking(text, _count(size), marks)

    call.__doc__ = description
    strings = ", STRING" * 4
    scalar(name, CATEGORY, "(STRING, INTEGER) STRING", f"(STRING, INTEGER{strings}) STRING", nulls=True)(call)


for _name, (_masking, _description) in MASKS.items():
    _add_mask(_name, _masking, _description)


@scalar("MASK", CATEGORY, "(STRING) STRING", "(STRING, STRING, STRING, STRING, STRING) STRING", nulls=True)
def mask(text: str | None, *marks: str | None) -> str | None:
    """Text whose characters are replaced by marks: X for capitals, x for small letters, n for digits, - for others."""
    return None if text is None else masked(text, marks)
