"""Requests whose arrays are filled to a megabyte: of every API, in its newest and its oldest version, each array in
turn, once with equal elements and once with different ones; and each text and each field of bytes at its largest.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from pykafkad import handlers
from pykafkad.config_def import Key
from pykafkad.hot import wire
from tests.storm.asked import Request
from tests.storm.making import Making, versions_of
from tests.storm.names import Names
from tests.storm.values import INTEGERS, LONGEST

MEGABYTE = 1 << 20
SAMPLE = 16  # elements by which the size of one is measured
ELEMENTS_MAX = 1_000_000  # a message with more is not read
EQUAL, DIFFERENT, LONG = "equal", "different", "long"
Path = tuple[str, ...]


@dataclass(frozen=True)
class Filled:
    """What is filled with what."""

    api: str
    version: int
    path: Path
    how: str

    def __str__(self) -> str:
        return f"{self.api} v{self.version} {'.'.join(self.path)} {self.how}"


class Single(Making):
    """One element in each array, nothing left out, nothing wild."""

    def count(self) -> int:
        return 1

    def leaf(self, owner: Any, field: wire.Field, kind: str) -> Any:
        made = super().leaf(owner, field, kind)
        return made if kind != "string" or made is None else made[:40]

    def config_value(self, key: Key) -> str:
        return super().config_value(key)[:10]

    def value(self, owner: Any, field: wire.Field, version: int) -> Any:
        for _ in range(30):  # a null may be drawn, also as a sane value
            made = super().value(owner, field, version)
            if made is not None:
                return made
        return made


def all_of_them(*, both_versions: bool) -> Iterator[Filled]:
    for api in handlers.APIS.values():
        first, last = versions_of(api)
        for version in (last, first) if both_versions and first != last else (last,):
            message = single(Names(), api.name, version)
            for path, field in fields(message, version):
                if field.type.startswith("[]"):
                    yield Filled(api.name, version, path, EQUAL)
                    yield Filled(api.name, version, path, DIFFERENT)
                elif field.type in ("string", "bytes", "records"):
                    yield Filled(api.name, version, path, LONG)


def single(names: Names, api: str, version: int) -> Any:
    making = Single(names, random.Random(f"{api} {version}"))
    message = making.message(api, version, 0.0)
    if api == "Produce":
        message.acks = 1
    return message


def fields(struct: Any, version: int, above: Path = ()) -> Iterator[tuple[Path, wire.Field]]:
    """The fields of a struct, and of the elements of each array in it."""
    for field in wire.fields(type(struct)):
        if field.versions[0] <= version <= field.versions[1]:
            path = (*above, field.attribute)
            yield path, field
            if field.struct is not None:
                yield from fields(field.struct(), version, path)


def request(filled: Filled, names: Names, number: int, size: int = MEGABYTE) -> Request:
    message = single(names, filled.api, filled.version)
    made = Request(number, filled.api, filled.version, message, f"storm-{number}")
    owner = message
    for attribute in filled.path[:-1]:
        value = getattr(owner, attribute)
        if value is None or value == []:  # of two fields that exclude each other this one
            value = [first_element(names, filled, field_of(owner, attribute))]
            setattr(owner, attribute, value)
        owner = value[0] if isinstance(value, list) else value
    attribute = filled.path[-1]
    field = field_of(owner, attribute)
    if filled.how == LONG:
        setattr(owner, attribute, "x" * LONGEST if field.type == "string" else bytes(size))
        return made
    element = (getattr(owner, attribute) or [first_element(names, filled, field)])[0]
    setattr(owner, attribute, [])
    empty = len(made.frame())
    setattr(owner, attribute, elements(element, field, filled.how, SAMPLE))
    of_one = max(1, (len(made.frame()) - empty) // SAMPLE)
    count = min(ELEMENTS_MAX, max(1, (size - empty) // of_one))
    setattr(owner, attribute, elements(element, field, filled.how, count))
    return made


def field_of(owner: Any, attribute: str) -> wire.Field:
    return next(each for each in wire.fields(type(owner)) if each.attribute == attribute)


def first_element(names: Names, filled: Filled, field: wire.Field) -> Any:
    making = Single(names, random.Random(f"{filled.api} {filled.version}"))
    making.api, making.left = filled.api, 1000
    if field.struct:
        return making.struct(field.struct, filled.version)
    return making.leaf(object, field, field.type.removeprefix("[]"))


def elements(element: Any, field: wire.Field, how: str, count: int) -> list[Any]:
    if how == EQUAL:
        return [element] * count
    return [different(element, field, index) for index in range(count)]


def different(element: Any, field: wire.Field, index: int) -> Any:
    """An element like this one that differs from those of all other indexes."""
    if not field.struct:
        return different_value(element, field.type.removeprefix("[]"), field.entity, index)
    rows = wire.fields(type(element))
    made = type(element)(**{each.attribute: getattr(element, each.attribute) for each in rows})
    names = [
        each
        for each in rows
        if each.type in ("string", "uuid") and getattr(element, each.attribute) is not None
    ]
    numbers = [each for each in rows if each.type in INTEGERS]
    inner = [each for each in rows if each.type.startswith("[]") and getattr(element, each.attribute)]
    for each in names or numbers[:1]:  # where there is a name, numbers stay sane
        value = different_value(getattr(element, each.attribute), each.type, each.entity, index)
        setattr(made, each.attribute, value)
    if not names and not numbers:
        for each in inner[:1]:
            setattr(made, each.attribute, [different(getattr(element, each.attribute)[0], each, index)])
    return made


def different_value(value: Any, kind: str, entity: str | None, index: int) -> Any:
    if kind == "string":
        return f"many-{index}" if entity == "topicName" else f"{(value or '')[:20]}_{index}"
    if kind == "uuid":
        return index.to_bytes(16, "big")
    bits = INTEGERS[kind]
    return index % (1 << (bits - 1))
