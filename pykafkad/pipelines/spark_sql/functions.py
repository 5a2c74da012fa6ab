"""The functions that are proven: what each is in Spark SQL, and the conditions under which that is not ours."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from pykafkad.pipelines.spark_sql.sql import NotCompiled
from pykafkad.pipelines.types import DOUBLE, STRING, SqlType

Made = tuple[str, tuple[str, ...]]
Function = Callable[[Sequence[SqlType | None], Sequence[str]], Made]

SPACES = f"CAST(unhex('{bytes(range(1, 33)).hex()}') AS STRING)"


def _of_text(make: Callable[..., Made]) -> Function:
    """One whose first argument is text, of BYTES it is another."""

    def function(types: Sequence[SqlType | None], arguments: Sequence[str]) -> Made:
        if types[0] != STRING:
            raise NotCompiled(f"a function of {types[0]}")
        return make(*arguments)

    return function


def _letters(name: str) -> Function:
    """Beyond ASCII the cases of letters are those of two Unicode versions."""
    return _of_text(lambda value: (f"{name}({value})", (f"octet_length({value}) <> char_length({value})",)))


def _substring(value: str, position: str, *size: str) -> Made:
    return f"substring({', '.join((value, position, *size))})", (f"{position} < 1",)


def _concat(types: Sequence[SqlType | None], arguments: Sequence[str]) -> Made:
    if any(of != STRING for of in types):
        raise NotCompiled("CONCAT of other than text")
    return f"concat({', '.join(f'''coalesce({one}, '')''' for one in arguments)})", ()


def _coalesce(types: Sequence[SqlType | None], arguments: Sequence[str]) -> Made:
    return f"coalesce({', '.join(arguments)})", ()


def _absolute(types: Sequence[SqlType | None], arguments: Sequence[str]) -> Made:
    if types[0] != DOUBLE:
        raise NotCompiled(f"ABS of {types[0]}")
    return f"abs({arguments[0]})", ()


FUNCTIONS: dict[str, Function] = {
    "UCASE": _letters("upper"),
    "LCASE": _letters("lower"),
    "LEN": _of_text(lambda value: (f"char_length({value})", ())),
    "TRIM": _of_text(
        lambda value: (f"btrim({value}, {SPACES})", (f"instr({value}, CAST(unhex('00') AS STRING)) > 0",))
    ),
    "CONCAT": _concat,
    "SUBSTRING": _of_text(_substring),
    "REPLACE": _of_text(lambda value, old, new: (f"replace({value}, {old}, {new})", (f"{old} = ''",))),
    "INSTR": lambda types, arguments: _instr(arguments),
    "COALESCE": _coalesce,
    "IFNULL": _coalesce,
    "AS_VALUE": lambda types, arguments: (arguments[0], ()),
    "ABS": _absolute,
}


def _instr(arguments: Sequence[str]) -> Made:
    if len(arguments) != 2:
        raise NotCompiled("INSTR from a position")
    return f"instr({arguments[0]}, {arguments[1]})", (f"{arguments[1]} = ''",)
