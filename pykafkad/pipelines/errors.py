"""StatementError: what is wrong with a statement, said to the person who wrote it.

Whatever refuses a statement raises it, from the tokenizer to the analysis, with the place where that is known. No other
exception of a statement's fault may reach a person.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple


class Position(NamedTuple):
    """Where in the text: lines and columns count from 1."""

    line: int
    column: int


NOWHERE = Position(0, 0)


class StatementError(Exception):
    """A statement that is refused. `reason` is the message without the place."""

    def __init__(self, reason: str, at: Position = NOWHERE) -> None:
        super().__init__(reason, at)
        self.reason, self.at = reason, at

    def __str__(self) -> str:
        return f"line {self.at.line}:{self.at.column}: {self.reason}" if self.at.line else self.reason


def nearest(name: str, names: Iterable[str]) -> str | None:
    """The one of `names` that was probably meant by `name`, whatever its case."""
    from difflib import get_close_matches

    by_upper = {known.upper(): known for known in names}
    found = get_close_matches(name.upper(), by_upper, n=1, cutoff=0.6)
    return by_upper[found[0]] if found else None


def did_you_mean(name: str, names: Iterable[str]) -> str:
    """The sentence to put behind a message about an unknown name; empty where nothing is near."""
    found = nearest(name, names)
    return f" Did you mean {found}?" if found else ""
