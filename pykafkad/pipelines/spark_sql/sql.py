"""An expression of Spark SQL, and what must be known of it to be put together with others.

ksqlDB's expressions fail (1/0, arithmetic with null), which makes the whole of them null, whatever stands around the
part that failed: `fails` is the condition of that. Spark's null is not that: NOT of a comparison with null is true here.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from pykafkad.pipelines.expressions.casts import cast
from pykafkad.pipelines.types import (
    BIGINT,
    BOOLEAN,
    BYTES,
    DATE,
    DOUBLE,
    INTEGER,
    STRING,
    TIME,
    TIMESTAMP,
    SqlType,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

SPARK_TYPES: dict[SqlType, str] = {
    BOOLEAN: "BOOLEAN",
    INTEGER: "INT",
    BIGINT: "BIGINT",
    DOUBLE: "DOUBLE",
    STRING: "STRING",
    BYTES: "BINARY",
    DATE: "INT",
    TIME: "INT",
    TIMESTAMP: "BIGINT",
}
"""How values are held: dates and times as the numbers that they are in our rows, too."""

WHOLE = (INTEGER, BIGINT)


class NotCompiled(Exception):
    """What is not proven to mean the same in Spark SQL; str() says what, for people."""


VARIES = object()
"""The constant of what is none."""


@dataclass(frozen=True, slots=True)
class Sql:
    type: SqlType | None
    text: str
    null: str = "false"
    """The condition under which it is null without having failed."""
    fails: str = "false"
    """The condition under which the whole expression is null. The text is null there, or false, or means nothing."""
    quiet: bool = True
    """Whether the text is null or false where it fails."""
    odd: tuple[str, ...] = ()
    """Conditions under which Spark's answer is not ours."""
    constant: Any = VARIES
    exact: bool = True
    """Of a DOUBLE: it is no NaN."""

    @property
    def value(self) -> str:
        """Null also where it fails."""
        if self.fails == "false" or (self.quiet and self.type != BOOLEAN):
            return self.text
        return f"CASE WHEN {self.fails} THEN NULL ELSE {self.text} END"

    @property
    def condition(self) -> str:
        """True where the value is, else false or null."""
        return self.text if self.quiet else f"(NOT ({self.fails}) AND {self.text})"


def any_of(*conditions: str) -> str:
    return _joined("OR", "true", "false", conditions)


def all_of(*conditions: str) -> str:
    return _joined("AND", "false", "true", conditions)


def _joined(word: str, decides: str, neutral: str, conditions: Iterable[str]) -> str:
    found = [one for one in dict.fromkeys(conditions) if one != neutral]
    if decides in found:
        return decides
    return found[0] if len(found) == 1 else "(" + f" {word} ".join(found) + ")" if found else neutral


def is_null(one: Sql) -> str:
    """Of an operand: null, or failed."""
    return any_of(one.null, one.fails)


def column(of: SqlType, name: str) -> Sql:
    if of not in SPARK_TYPES:
        raise NotCompiled(f"a column of type {of}")
    return Sql(of, name, null=f"{name} IS NULL")


def quoted(text: str) -> str:
    """A literal of Spark's."""
    if "\0" in text or any(0xD800 <= ord(each) < 0xE000 for each in text):
        raise NotCompiled("a text with characters that Spark has not")
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"


def literal(of: SqlType | None, value: Any) -> Sql:
    """A constant; its text is only there for types that Spark's columns can have."""
    if value is None:
        name = SPARK_TYPES.get(of, "STRING") if of is not None else "STRING"
        return Sql(of, f"CAST(NULL AS {name})", null="true", constant=None)
    return Sql(of, _text(of, value), constant=value, exact=value == value)


def _text(of: SqlType | None, value: Any) -> str:
    if of == BOOLEAN:
        return "true" if value else "false"
    if of == STRING:
        return quoted(value)
    if of in (INTEGER, DATE, TIME) and 0 <= value < 2**31:
        return str(value)
    if of in SPARK_TYPES and of != BYTES:
        return f"CAST('{value!r}' AS {SPARK_TYPES[of]})"
    return ""


def converted(one: Sql, to: SqlType | None) -> Sql:
    """What is taken for another type unasked, or by a cast that never fails."""
    of = one.type
    if to is None or of == to:
        return one
    if one.constant is not VARIES:
        return literal(to, _converted_constant(one, to))
    if of in WHOLE and to in (*WHOLE, DOUBLE):
        return replace(one, type=to, text=f"CAST({one.text} AS {SPARK_TYPES[to]})")
    raise NotCompiled(f"{of} taken for {to}")


def _converted_constant(one: Sql, to: SqlType) -> Any:
    if one.constant is None or one.type is None:
        return None
    convert = cast(one.type, to)
    if convert is None:
        raise NotCompiled(f"{one.type} taken for {to}")
    try:
        return convert(one.constant)
    except Exception as error:
        raise NotCompiled(f"a constant that fails: {error}") from None
