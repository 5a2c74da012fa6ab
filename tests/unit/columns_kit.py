"""Records as Arrow's columns, without Arrow."""

from __future__ import annotations

from array import array
from collections.abc import Sequence

from pykafkad.hot.records import Columns

Cell = bytes | None
Row = tuple[Cell, Cell, int]


def column(values: Sequence[Cell], before: int = 0) -> tuple[int, bytes, array[int], bytes]:
    """The buffers of a column, which begins behind so many others of the same array."""
    cells = [b"other"] * before + list(values)
    offsets, bits = array("i", [0]), bytearray(len(cells) // 8 + 1)
    for place, cell in enumerate(cells):
        offsets.append(offsets[-1] + len(cell or b""))
        bits[place >> 3] |= (cell is not None) << (place & 7)
    return before, bytes(bits), offsets, b"".join(cell or b"" for cell in cells)


def columns(rows: Sequence[Row], before: int = 0) -> Columns:
    keys, values, times = zip(*rows, strict=True)
    return Columns(
        len(rows), column(keys, before), column(values), (before, array("q", [0] * before + list(times)))
    )
