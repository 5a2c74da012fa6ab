"""Answers and rows as lines that fit a terminal.

A table that fits has columns as wide as their texts; one that does not gives each column at least MIN_WIDTH and its share
of what is left, and wraps texts within their columns. Wide characters count as two.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator, Sequence

from pykafkad.pipelines.answers import Answer, Grid, Message

MIN_WIDTH = 8
"""Of a column in a table that does not fit; more columns than a terminal holds of these go beyond its edge."""


def lines(answer: Answer, width: int) -> Iterator[str]:
    if isinstance(answer, Message):
        yield from answer.text.split("\n")
        return
    if answer.title:
        yield answer.title
    yield from table(answer, width)
    if answer.note:
        yield answer.note


def table(grid: Grid, width: int) -> Iterator[str]:
    """ksqlDB's look: a header, a line of dashes, the rows, a line of dashes."""
    named = any(grid.headers)
    texts = [[cell_lines(text) for text in row] for row in grid.rows]
    wanted = [
        max([wide(header), *(wide(line) for row in texts for line in row[index])])
        for index, header in enumerate(grid.headers)
    ]
    widths = fitted(wanted, width)
    rule = "-" * (sum(widths) + 3 * len(widths) - 1)
    if named:
        yield from row_lines(grid.headers, widths)
        yield rule
    for row in grid.rows:
        yield from row_lines(row, widths)
    if named:
        yield rule


def fitted(wanted: Sequence[int], width: int) -> list[int]:
    """Widths of columns that fit, with ` | ` between and a space before the first."""
    room = width - 3 * len(wanted) + 1
    if sum(wanted) <= room:
        return list(wanted)
    widths = [min(one, MIN_WIDTH) for one in wanted]
    left = room - sum(widths)
    for index in sorted(range(len(wanted)), key=lambda index: wanted[index]):
        waiting = sum(1 for other in range(len(wanted)) if wanted[other] > widths[other] and other != index)
        more = min(wanted[index] - widths[index], max(0, left) // (waiting + 1))
        widths[index] += more
        left -= more
    return widths


def row_lines(cells: Sequence[str], widths: Sequence[int]) -> Iterator[str]:
    """A row, as many lines as its highest cell needs."""
    wrapped = [
        [part for line in cell_lines(cell) for part in pieces(line, size)]
        for cell, size in zip(cells, widths, strict=True)
    ]
    for index in range(max(map(len, wrapped), default=0)):
        parts = [cell[index] if index < len(cell) else "" for cell in wrapped]
        yield (
            " " + " | ".join(padded(part, size) for part, size in zip(parts, widths, strict=True))
        ).rstrip()


def cell_lines(text: str) -> list[str]:
    """The lines of a cell, with control characters made visible."""
    clean = text.replace("\r\n", "\n").expandtabs(4)
    return ["".join(visible(character) for character in line) for line in clean.split("\n")]


def visible(character: str) -> str:
    return character if character.isprintable() else repr(character)[1:-1]


def pieces(text: str, size: int) -> list[str]:
    """The text cut to lines of that width, at spaces where there are some."""
    found = []
    while wide(text) > size:
        end = prefix(text, size)
        space = text.rfind(" ", 0, end + 1)
        cut = space if space > 0 else end
        found.append(text[:cut])
        text = text[cut:].lstrip(" ") if space > 0 else text[cut:]
    return [*found, text]


def prefix(text: str, size: int) -> int:
    """How many characters of the text fit, at least one."""
    used = 0
    for index, character in enumerate(text):
        used += wide(character)
        if used > size:
            return max(1, index)
    return len(text)


def wide(text: str) -> int:
    if text.isascii():
        return len(text)
    return sum(
        0 if unicodedata.combining(one) else 2 if unicodedata.east_asian_width(one) in "WF" else 1
        for one in text
    )


def padded(text: str, size: int) -> str:
    return text + " " * (size - wide(text))
