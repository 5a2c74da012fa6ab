"""Functions of text that holds JSON. What is no JSON gives null."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from decimal import Decimal
from functools import lru_cache

from pykafkad.pipelines.expressions.schema import Value
from pykafkad.pipelines.expressions.texts import date_text, time_text, timestamp_text
from pykafkad.pipelines.formats.json_format import write_plain, writer
from pykafkad.pipelines.functions.registry import Call, scalar
from pykafkad.pipelines.types import DATE, TIME, TIMESTAMP, Array, Map, SqlType, Struct

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

CATEGORY = "JSON"


class Exact(Decimal):
    """A number with a point, as it is written."""

    text: str

    def __str__(self) -> str:
        return self.text


def _exact(text: str) -> Exact:
    value = Exact(text)
    value.text = text
    return value


_DECODER = json.JSONDecoder(parse_float=_exact)
MISSING = object()


def parsed(text: str) -> Any:
    """The value of the text; MISSING for text without any."""
    return _DECODER.decode(text) if text.strip() else MISSING


def _as_text(value: Any) -> str | None:
    if value is None or isinstance(value, str):
        return value
    return write_plain(value)


_STEP = re.compile(r"\.([^.\[\]]+)|\[(-?\d+)\]|\['([^']*)'\]|\[\"([^\"]*)\"\]")


@lru_cache(maxsize=256)
def _steps(path: str) -> tuple[str | int, ...]:
    """$.a[0].b as a, 0, b."""
    if not path.startswith("$"):
        raise ValueError(f"A path of JSON begins with $: {path}")
    steps: list[str | int] = []
    place = 1
    while place < len(path):
        found = _STEP.match(path, place)
        if found is None:
            raise ValueError(f"{path} is no path of JSON")
        name, index, *quoted = found.groups()
        steps.append(int(index) if index is not None else next(n for n in (name, *quoted) if n is not None))
        place = found.end()
    return tuple(steps)


def _at(value: Any, path: str) -> Any:
    for step in _steps(path):
        if isinstance(step, int):
            if not isinstance(value, list) or not 0 <= step < len(value):
                return None
            value = value[step]
        elif isinstance(value, dict):
            value = value.get(step)
        else:
            return None
    return value


@scalar("EXTRACTJSONFIELD", CATEGORY, "(STRING, STRING) STRING")
def extract(text: str, path: str) -> str | None:
    """What is at a path like $.a[0].b, as text."""
    return _as_text(_at(parsed(text), path))


@scalar("IS_JSON_STRING", CATEGORY, "(STRING) BOOLEAN", nulls=True)
def is_json(text: str | None) -> bool:
    """Whether text is JSON."""
    try:
        return text is not None and parsed(text) is not MISSING
    except ValueError:
        return False


@scalar("JSON_ARRAY_LENGTH", CATEGORY, "(STRING) INTEGER")
def array_length(text: str) -> int | None:
    """The number of items of a JSON array."""
    value = parsed(text)
    return len(value) if isinstance(value, list) else None


_PRIMITIVE = "BOOLEAN", "INTEGER", "BIGINT", "DOUBLE", "STRING"


@scalar("JSON_ARRAY_CONTAINS", CATEGORY, *(f"(STRING, {of}) BOOLEAN" for of in _PRIMITIVE), nulls=True)
def array_contains(text: str | None, wanted: Value) -> bool:
    """Whether a value is an item of a JSON array."""
    value = None if text is None else parsed(text)
    if not isinstance(value, list):
        return False
    return any(
        (type(item) is type(wanted) and item == wanted) or _same_number(item, wanted) for item in value
    )


def _same_number(item: Any, wanted: Value) -> bool:
    return isinstance(item, Exact) and isinstance(wanted, float) and float(item) == wanted


@scalar("JSON_CONCAT", CATEGORY, "(STRING...) STRING")
def concat(*texts: str) -> str | None:
    """JSON objects as one with all their fields, or arrays (and other values) as one array."""
    values = [parsed(text) for text in texts]
    if any(value is MISSING for value in values):
        return None
    if all(isinstance(value, dict) for value in values):
        merged: dict[str, Any] = {}
        for value in values:
            merged.update(value)
        return write_plain(merged)
    return write_plain([item for value in values for item in (value if isinstance(value, list) else [value])])


@scalar("JSON_ITEMS", CATEGORY, "(STRING) ARRAY<STRING>")
def items(text: str) -> list[str] | None:
    """The items of a JSON array, each as JSON."""
    value = parsed(text)
    return [write_plain(item) for item in value] if isinstance(value, list) else None


@scalar("JSON_KEYS", CATEGORY, "(STRING) ARRAY<STRING>")
def keys(text: str) -> list[str] | None:
    """The names of a JSON object's fields."""
    value = parsed(text)
    return list(value) if isinstance(value, dict) else None


@scalar("JSON_RECORDS", CATEGORY, "(STRING) MAP<STRING, STRING>")
def records(text: str) -> dict[str, str | None] | None:
    """The fields of a JSON object as a map, their values as text."""
    value = parsed(text)
    return {key: _as_text(each) for key, each in value.items()} if isinstance(value, dict) else None


_MOMENTS: dict[SqlType, Callable[[int], str]] = {DATE: date_text, TIME: time_text, TIMESTAMP: timestamp_text}


def _writer(of: SqlType) -> Callable[[Value], str]:
    """As format JSON writes it, but dates and times as text."""
    if of in _MOMENTS:
        write = _MOMENTS[of]
        return lambda value: "null" if value is None else f'"{write(value)}"'
    match of:
        case Array(element):
            item = _writer(element)
            return lambda value: "null" if value is None else f"[{','.join(map(item, value))}]"
        case Map(_, mapped):
            return _object(lambda value: value, lambda key: _writer(mapped))
        case Struct(fields):
            writers = {field.name: _writer(field.type) for field in fields}
            return _object(
                lambda value: {name: value.get(name) for name in writers}, lambda key: writers[key]
            )
    return writer(of)


def _object(
    entries: Callable[[Value], Value], write: Callable[[str], Callable[[Value], str]]
) -> Callable[[Value], str]:
    def written(value: Value) -> str:
        if value is None:
            return "null"
        pairs = (
            f"{json.dumps(key, ensure_ascii=False)}:{write(key)(each)}"
            for key, each in entries(value).items()
        )
        return "{" + ",".join(pairs) + "}"

    return written


@scalar("TO_JSON_STRING", CATEGORY, "(T) STRING", nulls=True, types=True)
def to_json(call: Call) -> Callable[[Value], str]:
    """A value of any type as JSON."""
    of = call.types[0]
    return (lambda value: "null") if of is None else _writer(of)
