"""Random requests made from the schemas: every API that is served, every version, every field.

A field is sane or wild. Sane values let a handler get far (sane.py), wild ones are the extremes of their type
(values.py). How wild a request is, and whether its bytes are changed afterwards, is random.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

from pykafkad import handlers, messages
from pykafkad.config_def import Key
from pykafkad.hot import wire
from tests.storm import batches, values
from tests.storm.asked import Patch, Request
from tests.storm.names import Names
from tests.storm.sane import AGREE, SANE

FRAME_MAX = 3 << 20  # so that no message has more elements than are read (MESSAGE_ELEMENTS)
ARRAY_BYTES = 128 << 20  # of an array's elements: more than the 100 MiB that a request may have
ELEMENTS_MAX = 20_000  # in all arrays of a request together
WILDNESS = (0.0, 0.02, 0.05, 0.2, 0.6)
NONE_LIKELY = 0.08
AGREE_LIKELY = 0.85
MUTATED = 0.06
NAMED_CLIENT = 0.97  # the others have a client id of their own


class Making:
    """Makes one request after the other; the random generator alone decides."""

    def __init__(self, names: Names, chance: random.Random) -> None:
        self.names: Names = names
        self.chance: random.Random = chance
        self.api = ""
        self.wildness = 0.0
        self.left = 0

    def request(self, number: int, only: str | None = None) -> Request:
        """A request that can be encoded; `number` identifies it in the broker's log."""
        chance = self.chance
        api = chance.choice([each for each in handlers.APIS.values() if only in (None, each.name)])
        first, last = versions_of(api)
        version = chance.choice((last, first, chance.randint(first, last)))
        message = self.message(api.name, version, chance.choice(WILDNESS))
        client = f"storm-{number}" if chance.random() < NAMED_CLIENT else odd_client(chance)
        made = Request(number, api.name, version, message, client)
        try:
            frame = made.frame()
            fits = len(frame) <= FRAME_MAX
        except (wire.WireError, wire.LargeMessage):
            fits = False
        if not fits:
            made.message = self.message(api.name, version, 0.0)
            made.client = f"storm-{number}"
            frame = made.frame()
        made.patches = self.patches(frame)
        return made

    def message(self, api: str, version: int, wildness: float) -> Any:
        self.api, self.wildness, self.left = api, wildness, ELEMENTS_MAX
        return self.struct(getattr(messages, f"{api}Request"), version)

    def struct(self, kind: Any, version: int) -> Any:
        made = kind()
        for field in wire.fields(kind):
            if field.versions[0] <= version <= field.versions[1]:
                setattr(made, field.attribute, self.value(kind, field, version))
        if kind.__name__ in AGREE and self.chance.random() < AGREE_LIKELY:
            AGREE[kind.__name__](self, made, version)
        return made

    def value(self, owner: Any, field: wire.Field, version: int) -> Any:
        can_be_none = field.nullable[0] <= version <= field.nullable[1]
        if can_be_none and self.chance.random() < NONE_LIKELY:
            return None
        kind = field.type.removeprefix("[]")
        if kind != field.type:
            return self.array(owner, field, version)
        if field.struct:
            return self.struct(field.struct, version)
        made = self.leaf(owner, field, kind)
        return "" if made is None and kind == "string" and not can_be_none else made

    def array(self, owner: Any, field: wire.Field, version: int) -> list[Any]:
        chance = self.chance

        def one() -> Any:
            if field.struct:
                return self.struct(field.struct, version)
            made = self.leaf(owner, field, field.type.removeprefix("[]"))
            return "" if made is None and field.type == "[]string" else made

        count = min(self.count(), self.left)
        self.left -= count
        if count and chance.random() < 0.25:
            same = one()
            return [same] * min(count, ARRAY_BYTES // (1 + weight(same, version)))
        few = [
            one() for _ in range(min(count, 50))
        ]  # large arrays repeat these, since making elements takes the most time
        if count > len(few):
            count = min(count, ARRAY_BYTES // (1 + max(weight(each, version) for each in few)))
        return [few[index % len(few)] for index in range(count)] if few else []

    def count(self) -> int:
        chance = self.chance
        kind = chance.random()
        if kind < 0.1 + self.wildness / 10:
            return 0
        if kind < 0.9:
            return chance.choice((1, 1, 1, 2, 3))
        return chance.choice((5, 20, 20, 60, 300, 5000) if kind > 0.98 else (4, 8, 16))

    def leaf(self, owner: Any, field: wire.Field, kind: str) -> Any:
        if self.chance.random() >= self.wildness:
            for key in ((owner.__name__, field.name), field.name, field.entity):
                if key in SANE:
                    return SANE[key](self)
        return WILD[kind](self.chance)

    def config_value(self, key: Key) -> str:
        return self.chance.choice(values.config_values(key))

    def patches(self, frame: bytes) -> list[Patch]:
        """Bytes to be changed in the frame: those that stand for malformed text, and rarely others."""
        chance = self.chance
        found = []
        at = frame.find(MARK)
        while at >= 0:
            found.append((at, chance.choice(values.NO_UTF8)))
            at = frame.find(MARK, at + len(MARK)) if len(found) < 10_000 else -1
        if chance.random() < MUTATED:
            found += [self.change(frame) for _ in range(chance.choice((1, 1, 2, 8)))]
        return found

    def change(self, frame: bytes) -> Patch:
        """Only after the correlation id, which identifies answers."""
        chance = self.chance
        at = chance.randrange(12, max(13, min(len(frame), 400)))
        few = chance.randbytes(chance.choice((1, 1, 2, 4, 40)))
        return at, few if chance.random() < 0.5 else chance.choice(values.HUGE)


MARK = values.NO_TEXT.encode()

WILD: dict[str, Callable[[random.Random], Any]] = {
    **{kind: (lambda chance, kind=kind: values.integer(chance, kind)) for kind in values.INTEGERS},  # type: ignore[misc]
    "bool": lambda chance: chance.random() < 0.5,
    "float64": values.number,
    "string": values.text,
    "bytes": values.some_bytes,
    "records": lambda chance: batches.some(chance),
    "uuid": values.uuid,
}


def versions_of(api: handlers.Api) -> tuple[int, int]:
    """The versions with requests: Produce is advertised from an earlier one on."""
    kind = getattr(messages, f"{api.name}Request")
    return max(api.versions[0], kind.min_version), api.versions[1]


def odd_client(chance: random.Random) -> str | None:
    return chance.choice((None, "", "x" * 32_760, "é" * 3000, "a/b", "\n", values.NO_TEXT, "client"))


def weight(element: Any, version: int) -> int:
    """About how many bytes it is in a request."""
    if isinstance(element, (str, bytes)):
        return len(element)
    if not isinstance(element, wire.Struct):
        return 1
    try:
        return len(element.encode(version))
    except (wire.WireError, wire.LargeMessage):
        return 1  # refused later, or small elements
