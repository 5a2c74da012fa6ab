"""Text cut into tokens, scripts into statements, and variables put into text.

A token is a tuple: its kind, its text (without quotes; of a word in upper case), where it begins and ends. Comments and
spaces are no tokens. The last token is always of kind END.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import NamedTuple

from pykafkad.pipelines.errors import Position, StatementError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Final

WORD: Final = "word"
QUOTED: Final = "quoted"
STRING: Final = "string"
INTEGER: Final = "integer"
DECIMAL: Final = "decimal"
DOUBLE: Final = "double"
SYMBOL: Final = "symbol"
VARIABLE: Final = "variable"
END: Final = "end"

_PATTERN = re.compile(
    r"""
    (?P<space>\s+ | --[^\n]* | /\*.*?\*/)
  | (?P<double>(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)[eE][+-]?[0-9]+(?![A-Za-z0-9_@]))
  | (?P<decimal>[0-9]+\.[0-9]*(?![A-Za-z_@]) | \.[0-9]+(?![A-Za-z_@]))
  | (?P<integer>[0-9]+(?![A-Za-z0-9_@]))
  | (?P<word>[A-Za-z0-9_@]+)
  | (?P<string>'(?:[^']|'')*')
  | (?P<quoted>`(?:[^`]|``)*` | "(?:[^"]|"")*")
  | (?P<variable>\$\{[^{}]*\})
  | (?P<symbol>-> | => | := | <> | != | <= | >= | /(?!\*) | [-+*%=<>()\[\],.;:])
""",
    re.VERBOSE | re.DOTALL,
)
_VARIABLE = re.compile(r"(\$?)\$\{([^{}]*)\}")
"""It ends before the next brace: many that do not end would take for ever."""
MAX_REPLACED = 1 << 20
"""Characters that variables bring into a statement: each may have others in it, twice."""


START: Final = Position(1, 1)


class Token(NamedTuple):
    kind: str
    text: str
    start: int
    end: int


class Piece(NamedTuple):
    """A statement of a script as it stands there, without its semicolon, and where it begins."""

    text: str
    at: Position


def tokenize(text: str, at: Position = START) -> list[Token]:
    """The tokens of a text that begins at `at`."""
    tokens, offset, match = [], 0, _PATTERN.match
    while found := match(text, offset):
        kind, start = found.lastgroup, offset
        offset = found.end()
        if kind == "space":
            continue
        if kind == "word":
            tokens.append(Token(WORD, found[0].upper(), start, offset))
        else:
            assert kind is not None
            tokens.append(_token(kind, found[0], start, offset, text, at))
    if offset < len(text):
        raise StatementError(_unreadable(text[offset:]), place(text, offset, at))
    tokens.append(Token(END, "", offset, offset))
    return tokens


def _token(kind: str, found: str, start: int, end: int, text: str, at: Position) -> Token:
    if kind in (STRING, QUOTED):
        quote = found[0]
        found = found[1:-1].replace(quote * 2, quote)
    if kind == QUOTED and not found:
        raise StatementError("a name cannot be empty", place(text, start, at))
    return Token(kind, found, start, end)


def _unreadable(rest: str) -> str:
    unended = {
        "'": "the string that begins here",
        "`": "the name that begins here",
        '"': "the name that begins here",
    }
    if rest.startswith("/*"):
        return "the comment that begins here does not end"
    if rest[0] in unended:
        return f"{unended[rest[0]]} does not end"
    return f"{rest[0]!r} means nothing here"


def place(text: str, offset: int, at: Position = START) -> Position:
    """The line and column of an offset into a text that begins at `at`."""
    line = text.count("\n", 0, offset)
    if not line:
        return Position(at.line, at.column + offset)
    return Position(at.line + line, offset - text.rindex("\n", 0, offset))


def split(text: str) -> tuple[list[Piece], Piece | None]:
    """The statements of a script that end with a semicolon, and what stands after the last one, if anything does.

    Where a string, name or comment does not end, everything from its statement on is that rest."""
    pieces: list[Piece] = []
    begun: int | None = None
    offset = 0
    while offset < len(text):
        found = _PATTERN.match(text, offset)
        if begun is None and (found is None or found.lastgroup != "space"):
            begun = offset
        if found is None and text[offset] in "'`\"/":
            break
        if found is not None and found[0] == ";":
            assert begun is not None
            if begun < offset:
                pieces.append(Piece(text[begun:offset], place(text, begun)))
            begun = None
        offset = found.end() if found else offset + 1
    return pieces, None if begun is None else Piece(text[begun:].rstrip(), place(text, begun))


def substitute(text: str, variables: Mapping[str, str]) -> str:
    """The text with ${name} replaced, wherever it stands; $${name} becomes ${name}.

    The names in `variables` are in upper case. What is unknown stays: outside of strings the parser refuses it."""

    left = MAX_REPLACED

    def value(found: re.Match[str]) -> str:
        nonlocal left
        said = found[0][1:] if found[1] else variables.get(found[2].strip().upper(), found[0])
        left -= len(said)
        if left < 0:
            raise StatementError(f"the variables of a statement are more than {MAX_REPLACED} characters")
        return said

    return _VARIABLE.sub(value, text)
