"""A request as the storm sends it: message, version, client id, and bytes to be changed in its frame.

`to_json` and `from_json` store one in a file; ids that a broker chose are stored by their meanings.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from pykafkad import handlers, messages
from pykafkad.hot import wire
from tests.storm.names import Names

Patch = tuple[int, bytes]
SIZE = 4
# Their answers may take as long as the request asks for.
MAY_WAIT = frozenset({"Fetch", "JoinGroup", "SyncGroup"})
API_VERSIONS = 18
KEYS = {api.name: key for key, api in handlers.APIS.items()}


@dataclass
class Request:
    number: int
    api: str
    version: int
    message: Any
    client: str | None
    patches: list[Patch] = field(default_factory=list)

    def frame(self) -> bytes:
        made = wire.request(self.message, self.version, self.number, self.client)
        whole = bytearray(made if isinstance(made, bytes) else b"".join(made))  # type: ignore[arg-type]
        for at, put in self.patches:
            whole[at : at + len(put)] = put
        whole[:SIZE] = (len(whole) - SIZE).to_bytes(SIZE, "big")
        return bytes(whole)

    @property
    def is_changed(self) -> bool:
        """Its bytes may not be a valid request any more."""
        return bool(self.patches)

    @property
    def is_answered(self) -> bool:
        return self.api != "Produce" or self.message.acks != 0

    @property
    def may_wait(self) -> bool:
        return self.api in MAY_WAIT or self.is_changed

    def answer(self, frame: bytes) -> Any:
        """The answer, decoded; WireError if it is malformed."""
        kind: Any = getattr(messages, f"{self.api}Response")
        version = self.version
        flexible = version >= kind.flexible_since and KEYS[self.api] != API_VERSIONS
        if KEYS[self.api] == API_VERSIONS and int.from_bytes(frame[4:6], "big") == 35:
            version = 0  # a version that is not served is answered in the oldest one
        return kind.decode(frame, version, 5 if flexible else 4)

    def __str__(self) -> str:
        changed = ", with changed bytes" if self.patches else ""
        return f"{self.api} v{self.version} ({len(self.frame())} bytes{changed})"


def to_json(request: Request, names: Names) -> dict[str, Any]:
    return {
        "number": request.number,
        "api": request.api,
        "version": request.version,
        "client": request.client,
        "message": plain(request.message, names),
        "patches": [[at, put.hex()] for at, put in request.patches],
    }


def from_json(row: dict[str, Any], names: Names) -> Request:
    kind = getattr(messages, f"{row['api']}Request")
    patches = [(at, bytes.fromhex(put)) for at, put in row["patches"]]
    message = built(kind, row["message"], names)
    return Request(row["number"], row["api"], row["version"], message, row["client"], patches)


def plain(value: Any, names: Names) -> Any:
    """In a form for JSON; repeated elements of an array are stored once, with their number."""
    symbol = names.symbol(value) if isinstance(value, str | bytes) else None
    if symbol is not None:
        return symbol
    if isinstance(value, bytes | bytearray | memoryview):
        return {"hex": bytes(value).hex()}
    if isinstance(value, list):
        return {"array": runs([plain(each, names) for each in value])}
    if isinstance(value, wire.Struct):
        empty = type(value)()
        return {
            each.attribute: plain(getattr(value, each.attribute), names)
            for each in wire.fields(type(value))
            if is_set(getattr(value, each.attribute), getattr(empty, each.attribute))
        }
    return value


def is_set(value: Any, default: Any) -> bool:
    return isinstance(value, wire.Struct | float) or value != default  # -0.0 equals 0.0, and differs


def runs(elements: list[Any]) -> list[list[Any]]:
    found: list[list[Any]] = []
    for element in elements:
        if found and found[-1][1] == element:
            found[-1][0] += 1
        else:
            found.append([1, element])
    return found


def built(kind: Any, row: dict[str, Any], names: Names) -> Any:
    made = kind()
    for each in wire.fields(kind):
        if each.attribute in row:
            setattr(made, each.attribute, value_of(row[each.attribute], each, names))
    return made


def value_of(plain_value: Any, each: wire.Field, names: Names) -> Any:
    if not isinstance(plain_value, dict):
        return plain_value
    if "array" in plain_value:
        return [made for count, one in plain_value["array"] for made in [value_of(one, each, names)] * count]
    if each.struct is not None:
        return built(each.struct, plain_value, names)
    if "hex" in plain_value:
        return bytes.fromhex(plain_value["hex"])
    return names.meaning(plain_value)
