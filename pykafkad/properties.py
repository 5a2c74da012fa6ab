"""Java's .properties format: server.properties, meta.properties.

Owns reading (escapes, continuation lines, the three separators, Latin-1 as Java reads a file) and writing (escaped so
that Java and we read the same again). Values keep their trailing blanks, and of two lines with one key the last wins,
as in Java.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

_BLANKS = " \t\f"
_ESCAPES = {"t": "\t", "n": "\n", "r": "\r", "f": "\f"}
_WRITTEN = {"\t": "\\t", "\n": "\\n", "\r": "\\r", "\f": "\\f", "\\": "\\\\"}


class PropertiesError(ValueError):
    """The file is not in the .properties format; str() says where."""


def load(path: str) -> dict[str, str]:
    """Read a file; OSError if it cannot be opened, PropertiesError if a line is malformed."""
    with open(path, "rb") as file:
        return parse(file.read().decode("latin-1"))


def parse(text: str) -> dict[str, str]:
    """The key/value pairs of a file's text, in the order of the file."""
    found: dict[str, str] = {}
    for number, line in _logical_lines(text):
        key_end, value_start = _split(line)
        try:
            found[_unescape(line[:key_end])] = _unescape(line[value_start:])
        except ValueError as problem:
            raise PropertiesError(f"line {number}: {problem}") from problem
    return found


def _logical_lines(text: str) -> Iterator[tuple[int, str]]:
    """Lines joined with their continuations, without comments, each with its first line's number."""
    parts: list[str] = []
    first = 0
    for number, natural in enumerate(text.replace("\r\n", "\n").replace("\r", "\n").split("\n"), 1):
        line = natural.lstrip(_BLANKS)
        if not parts:
            if not line or line[0] in "#!":
                continue
            first = number
        if (len(line) - len(line.rstrip("\\"))) % 2:
            parts.append(line[:-1])
            continue
        yield first, "".join(parts) + line
        parts = []
    if parts:  # the file ends with a backslash
        yield first, "".join(parts)


def _split(line: str) -> tuple[int, int]:
    """Where the key ends and the value begins: at the first unescaped blank, '=' or ':' ."""
    at, end = 0, len(line)
    while at < end and line[at] not in "=: \t\f":
        at += 2 if line[at] == "\\" else 1
    key_end = min(at, end)
    while at < end and line[at] in _BLANKS:
        at += 1
    if at < end and line[at] in "=:":
        at += 1
        while at < end and line[at] in _BLANKS:
            at += 1
    return key_end, at


def _unescape(text: str) -> str:
    if "\\" not in text:
        return text
    out: list[str] = []
    at, surrogates = 0, False
    while at < len(text):
        character = text[at]
        at += 1
        if character == "\\" and at < len(text):
            character = text[at]
            at += 1
            if character == "u":
                digits = text[at : at + 4]
                if len(digits) < 4 or not all(digit in "0123456789abcdefABCDEF" for digit in digits):
                    raise ValueError("Malformed \\uxxxx encoding.")
                character = chr(int(digits, 16))
                surrogates = surrogates or "\ud800" <= character <= "\udfff"
                at += 4
            else:
                character = _ESCAPES.get(character, character)
        out.append(character)
    joined = "".join(out)
    if surrogates:  # Java's strings are UTF-16: a pair of escapes is one character
        joined = joined.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return joined


def dump(properties: Mapping[str, str], comments: tuple[str, ...] = ()) -> str:
    """The text of a file with these pairs, the comments first."""
    lines = [f"#{comment}\n" for comment in comments]
    lines += [f"{_escape(key, key=True)}={_escape(value, key=False)}\n" for key, value in properties.items()]
    return "".join(lines)


def _escape(text: str, *, key: bool) -> str:
    out: list[str] = []
    for at, character in enumerate(text):
        if character in _WRITTEN:
            out.append(_WRITTEN[character])
        elif character in "=:#!" or (character == " " and (key or at == 0)):
            out.append("\\" + character)
        elif " " <= character <= "~":
            out.append(character)
        else:
            units = character.encode("utf-16-be", "surrogatepass").hex().upper()
            out += [f"\\u{units[i : i + 4]}" for i in range(0, len(units), 4)]
    return "".join(out)
