"""Random messages as the reference codec's plain dicts, with many extremes."""

from __future__ import annotations

import random
import struct
from typing import Any

from tests.reference.codec import INTEGERS, Codec

TEXTS = ["", "a", "orders", "mañana", "日本", "😀", "nul\0nul", "x" * 127, "x" * 128, "é" * 300]


def message(codec: Codec, chance: random.Random) -> dict[str, Any]:
    return struct_value(codec, codec.schema["fields"], chance)


def struct_value(codec: Codec, fields: list[dict[str, Any]], chance: random.Random) -> dict[str, Any]:
    value = {field["name"]: field_value(codec, field, chance) for field in fields}
    if codec.flexible and chance.random() < 0.1:
        value[""] = {tag: chance.randbytes(chance.randrange(9)) for tag in chance.sample(range(50, 20000), 2)}
    return value


def field_value(codec: Codec, field: dict[str, Any], chance: random.Random) -> Any:
    """A value that the version can hold; for a field that the version does not have, any value if that is ignored."""
    usable = codec.default(field) is not None or codec.nullable(field)
    if not (codec.has(field) or field.get("ignorable")) or (usable and chance.random() < 0.2):
        return codec.default(field)
    if codec.nullable(field) and chance.random() < 0.2:
        return None
    if not field["type"].startswith("[]"):
        return one_value(codec, field, field["type"], chance)
    return [one_value(codec, field, field["type"][2:], chance) for _ in range(chance.choice((0, 1, 2, 3)))]


def one_value(codec: Codec, field: dict[str, Any], kind: str, chance: random.Random) -> Any:
    if kind in INTEGERS:
        return integer(kind, chance)
    if kind == "bool":
        return chance.random() < 0.5
    if kind == "float64":
        return chance.choice((0.0, -1.5, 1e300, float("inf"), chance.random()))
    if kind == "uuid":
        return chance.choice((bytes(16), chance.randbytes(16)))
    if kind == "string":
        return chance.choice(TEXTS)
    if kind in ("bytes", "records"):
        return chance.randbytes(chance.choice((0, 1, 126, 127, 128, 500)))
    return struct_value(codec, codec.fields_of(field), chance)


def integer(kind: str, chance: random.Random) -> int:
    bits = 8 * struct.calcsize(INTEGERS[kind])
    least = 0 if kind.startswith("u") else -(1 << (bits - 1))
    most = least + (1 << bits) - 1
    return chance.choice((least, most, 0, 1, most // 2, chance.randint(least, most)))
