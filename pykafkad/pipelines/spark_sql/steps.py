"""What is done to Spark's frames: each step does it to a frame, and says it as a program for PySpark."""

from __future__ import annotations

from dataclasses import dataclass

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, TypeAlias


@dataclass(frozen=True, slots=True)
class Select:
    columns: tuple[str, ...]

    def applied(self, frame: Any) -> Any:
        return frame.selectExpr(*self.columns)

    def said(self) -> str:
        return f"selectExpr(\n{_lines(self.columns)})"


@dataclass(frozen=True, slots=True)
class Where:
    condition: str

    def applied(self, frame: Any) -> Any:
        return frame.where(self.condition)

    def said(self) -> str:
        return f"where({self.condition!r})"


@dataclass(frozen=True, slots=True)
class Watermark:
    """Of a frame with a TIMESTAMP called time: in the next batch windows are closed that ended so much before the
    greatest time."""

    delay_ms: int

    def applied(self, frame: Any) -> Any:
        return frame.withWatermark("time", self._delay)

    def said(self) -> str:
        return f"withWatermark('time', {self._delay!r})"

    @property
    def _delay(self) -> str:
        return f"{self.delay_ms} milliseconds"


@dataclass(frozen=True, slots=True)
class Total:
    """GROUP BY columns, and what is known of each group; the only step with state."""

    by: tuple[str, ...]
    values: tuple[str, ...]

    def applied(self, frame: Any) -> Any:
        from pyspark.sql.functions import expr

        return frame.groupBy(*self.by).agg(*map(expr, self.values))

    def said(self) -> str:
        made = "".join(f"    expr({value!r}),\n" for value in self.values)
        return f"groupBy({', '.join(map(repr, self.by))}).agg(\n{made})"


def _lines(columns: tuple[str, ...]) -> str:
    return "".join(f"    {column!r},\n" for column in columns)


AnyStep: TypeAlias = Select | Where | Watermark | Total


@dataclass(frozen=True, slots=True)
class Chain:
    """What is done to the frame, in order."""

    steps: tuple[AnyStep, ...]

    def applied(self, frame: Any) -> Any:
        for step in self.steps:
            frame = step.applied(frame)
        return frame
