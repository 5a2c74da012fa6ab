"""What a command of `pykafkad transactions` shows: a table as Kafka's tool prints it, and the same for --json."""

from __future__ import annotations

from pykafkad.tools import output

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence


class Table:
    __slots__ = ("_cells", "_objects", "_what")

    def __init__(self, what: str, titles: Sequence[str]) -> None:
        self._what = what
        self._cells = [list(titles)]
        self._objects: list[dict[str, object]] = []

    def add(self, cells: Sequence[object], fields: dict[str, object]) -> None:
        """A row, and the object of --json that it is."""
        self._cells.append(["None" if cell is None else str(cell) for cell in cells])
        self._objects.append(fields)

    @property
    def fields(self) -> dict[str, object]:
        return {self._what: self._objects}

    def show(self) -> None:
        """Columns as wide as their widest cell, a tab behind each."""
        widths = [max(map(len, column)) for column in zip(*self._cells, strict=True)]
        for cells in self._cells:
            output.line("".join(f"{cell:<{width}}\t" for cell, width in zip(cells, widths, strict=True)))
