"""The tokens of one statement, read from left to right.

The reader notes what it was asked for at the token where it stands; where nothing of it is there, that is what the error
says was expected.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterable
from typing import TypeVar

from pykafkad.pipelines.errors import Position, StatementError, did_you_mean, nearest
from pykafkad.pipelines.names import RESERVED
from pykafkad.pipelines.syntax import tokens
from pykafkad.pipelines.syntax.tokens import Token

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import NoReturn

T = TypeVar("T")

MAX_NESTING = 60
"""How deep parentheses, subscripts, types and the like may nest: what reads them recurses."""


class Reader:
    """`token` is the next one; `lambdas` are the parameters of the lambdas that it stands in."""

    __slots__ = (
        "_index",
        "_line_starts",
        "_nesting",
        "_start",
        "_tokens",
        "_tried",
        "lambdas",
        "text",
        "token",
    )

    def __init__(self, text: str, start: Position) -> None:
        self.text, self._start = text, start
        self._tokens = tokens.tokenize(text, start)
        self._line_starts = (
            [0] if "\n" not in text else [0, *(i + 1 for i, c in enumerate(text) if c == "\n")]
        )
        self._index, self._nesting = 0, 0
        self._tried: list[str] = []
        self.token = self._tokens[0]
        self.lambdas: list[str] = []

    # --- where

    @property
    def at(self) -> Position:
        return self.place(self.token)

    def place(self, token: Token) -> Position:
        line = bisect_right(self._line_starts, token.start) - 1
        if line == 0:
            return Position(self._start.line, self._start.column + token.start)
        return Position(self._start.line + line, token.start - self._line_starts[line] + 1)

    @property
    def size(self) -> int:
        """How many tokens the text has."""
        return len(self._tokens)

    def peek(self, ahead: int = 1) -> Token:
        return self._tokens[min(self._index + ahead, len(self._tokens) - 1)]

    def advance(self) -> Token:
        token = self.token
        if token.kind != tokens.END:
            self._index += 1
            self.token = self._tokens[self._index]
            self._tried.clear()
        return token

    # --- words and symbols

    def accept(self, word: str) -> bool:
        """Takes the keyword or symbol, if it is next."""
        token = self.token
        if token.text == word and token.kind in (tokens.WORD, tokens.SYMBOL):
            self.advance()
            return True
        self._tried.append(word)
        return False

    def accept_all(self, *words: str) -> bool:
        """Takes the words, if all of them are next: `PARTITION BY`."""
        for ahead, word in enumerate(words):
            token = self.peek(ahead)
            if token.text != word or token.kind != tokens.WORD:
                self._tried.append(" ".join(words))
                return False
        for _ in words:
            self.advance()
        return True

    def expect(self, *words: str) -> None:
        for word in words:
            if not self.accept(word):
                self.fail()

    def is_next(self, *words: str, ahead: int = 0) -> bool:
        """Whether one of these keywords or symbols is next, or so many tokens later; it is not noted."""
        token = self.peek(ahead) if ahead else self.token
        return token.text in words and token.kind in (tokens.WORD, tokens.SYMBOL)

    def note(self, wanted: str) -> None:
        """Something else that could have stood here."""
        self._tried.append(wanted)

    # --- names and values

    def is_name(self, token: Token | None = None) -> bool:
        token = token or self.token
        return (token.kind == tokens.WORD and token.text not in RESERVED) or token.kind == tokens.QUOTED

    def name(self, what: str = "a name") -> str:
        """A name as it is meant: in upper case unless quoted."""
        if not self.is_name():
            self.note(what)
            self.fail()
        return self.advance().text

    def written_name(self, what: str) -> str:
        """A name that keeps its case without quotes, or a string: of topics and variables."""
        token = self.token
        if token.kind == tokens.WORD:
            self.advance()
            return self.text[token.start : token.end]
        if token.kind in (tokens.QUOTED, tokens.STRING):
            return self.advance().text
        self.note(what)
        self.fail()

    def string(self, what: str = "a string in quotes") -> str:
        if self.token.kind != tokens.STRING:
            self.note(what)
            self.fail()
        return self.advance().text

    def whole(self, what: str = "a whole number") -> int:
        """A number without sign or fraction, as counts and durations are."""
        if self.token.kind != tokens.INTEGER:
            self.note(what)
            self.fail()
        at, text = self.at, self.advance().text
        if len(text.lstrip("0")) > 18:
            raise StatementError(f"{text} is too large a number", at)
        return int(text)

    def several(self, one: Callable[[Reader], T]) -> tuple[T, ...]:
        """One or more of them, with commas between."""
        found = [one(self)]
        while self.accept(","):
            found.append(one(self))
        return tuple(found)

    # --- nesting

    def enter(self) -> None:
        self._nesting += 1
        if self._nesting > MAX_NESTING:
            raise StatementError(f"more than {MAX_NESTING} levels are nested here", self.at)

    def leave(self) -> None:
        self._nesting -= 1

    # --- errors

    def expect_one_of(self, words: Iterable[str]) -> NoReturn:
        self._tried.extend(words)
        self.fail()

    def fail(self) -> NoReturn:
        """What is next is nothing of what was asked for."""
        raise StatementError(self._message(), self.at)

    def refuse(self, reason: str, at: Position) -> NoReturn:
        raise StatementError(reason, at)

    def _message(self) -> str:
        token, tried = self.token, list(dict.fromkeys(self._tried))
        expected = tried[0] if len(tried) == 1 else f"{', '.join(tried[:-1])} or {tried[-1]}"
        if token.kind == tokens.VARIABLE:
            return f"the variable {token.text} is not defined (DEFINE {token.text[2:-1]} = 'value' would)"
        if token.kind == tokens.END:
            return f"expected {expected}, but the statement ends here"
        found = self.text[token.start : token.end]
        message = f"expected {expected}, found {found}."
        if token.kind == tokens.WORD:
            message += self._hint(found)
        return message.removesuffix(".") if message.endswith(f"{found}.") else message

    def _hint(self, found: str) -> str:
        words = {
            word for phrase in self._tried for word in phrase.split() if word.isalpha() and word.isupper()
        }
        if found.upper() in RESERVED and any(phrase.startswith("a") for phrase in self._tried):
            return f" {found.upper()} is a word of the language: write `{found}` for a name."
        return did_you_mean(found, words) or self._hint_before(words)

    def _hint_before(self, words: set[str]) -> str:
        """A misspelt word may have been taken for a name that may stand there: SELECT A FORM S."""
        before = self._tokens[max(0, self._index - 1)]
        if (
            not self._index
            or not self.is_name(before)
            or before.kind == tokens.QUOTED
            or len(before.text) < 3
        ):
            return ""
        meant = nearest(before.text, words)
        return f" Did you mean {meant} instead of {self.text[before.start : before.end]}?" if meant else ""
