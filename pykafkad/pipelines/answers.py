"""What statements answer: a line, or a table of texts. How they are shown is rendering.py's."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import TypeAlias


class Message(NamedTuple):
    text: str


class Grid(NamedTuple):
    headers: tuple[str, ...]
    rows: Sequence[tuple[str, ...]]
    title: str = ""
    note: str = ""


Answer: TypeAlias = Message | Grid
