"""The records of the metadata log: the frame around them, and which schema an API key names.

    value of a record:           uvarint frame version (1) | uvarint API key | uvarint record version | body
    key of a control record:     int16 version (0) | int16 type
    value of a control record:   a message that begins with its own int16 version

A record of a type that 4.3.1 does not know is kept as it is, and no snapshot is made that would lose it; a version that
4.3.1 does not know of a type that it does is a MetadataError.
"""

from __future__ import annotations

from functools import lru_cache

from pykafkad import messages
from pykafkad.errors import StartupError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    Record = tuple[Any, int]  # a message of messages.*Record, and the version it is written in

FRAME_VERSION = 1

NAMES: dict[int, str] = {
    0: "RegisterBrokerRecord",
    1: "UnregisterBrokerRecord",
    2: "TopicRecord",
    3: "PartitionRecord",
    4: "ConfigRecord",
    5: "PartitionChangeRecord",
    7: "FenceBrokerRecord",
    8: "UnfenceBrokerRecord",
    9: "RemoveTopicRecord",
    10: "DelegationTokenRecord",
    11: "UserScramCredentialRecord",
    12: "FeatureLevelRecord",
    14: "ClientQuotaRecord",
    15: "ProducerIdsRecord",
    17: "BrokerRegistrationChangeRecord",
    18: "AccessControlEntryRecord",
    19: "RemoveAccessControlEntryRecord",
    20: "NoOpRecord",
    21: "ZkMigrationStateRecord",
    22: "RemoveUserScramCredentialRecord",
    23: "BeginTransactionRecord",
    24: "EndTransactionRecord",
    25: "AbortTransactionRecord",
    26: "RemoveDelegationTokenRecord",
    27: "RegisterControllerRecord",
    28: "ClearElrRecord",
}

# Fields that are structs themselves.
PARTS = {0: ("end_points", "features"), 14: ("entity",), 27: ("end_points", "features")}

LEADER_CHANGE, SNAPSHOT_HEADER, SNAPSHOT_FOOTER, KRAFT_VERSION, KRAFT_VOTERS = 2, 3, 4, 5, 6

# A whole record with a NoOp: Kafka writes one every 500 ms, so they are told by their bytes, undecoded.
NO_OP = bytes.fromhex("1400000001080114000000")

_schemas: dict[int, Any] = {}  # API key -> class, of the records met so far


class MetadataError(StartupError):
    """The metadata log says something that cannot be, or that this broker cannot understand."""


def encode(record: Any, version: int) -> bytes:
    return head(record.api_key, version) + bytes(record.encode(version))


@lru_cache(maxsize=256)
def head(api_key: int, version: int) -> bytes:
    """The frame of a record, before its body."""
    return b"\x01" + uvarint(api_key) + uvarint(version)


def encode_all(records: Sequence[Record]) -> list[bytes]:
    return [encode(record, version) for record, version in records]


def decode(value: bytes | memoryview) -> Any:
    """The message in a record's value; None for a type of record that is not known."""
    frame_version, api_key, version, position = frame(value)
    if frame_version != FRAME_VERSION:
        raise MetadataError(f"unknown frame version {frame_version}")
    schema = _schemas.get(api_key) or schema_of(api_key)
    if schema is None:
        return None
    if not schema.min_version <= version <= schema.max_version:
        raise MetadataError(f"unknown version {version} of {NAMES[api_key]}")
    try:
        return schema.decode(value, version, position)
    except ValueError as error:
        raise MetadataError(f"malformed {NAMES[api_key]}: {error}") from None


def schema_of(api_key: int) -> Any:
    """The class of these records, None if they are not known; classes are made when first met."""
    name = NAMES.get(api_key)
    if name is None:
        return None
    _schemas[api_key] = getattr(messages, name)
    return _schemas[api_key]


def frame(value: bytes | memoryview) -> tuple[int, int, int, int]:
    """Frame version, API key and version of a record, and where its body begins."""
    if len(value) > 2 and value[0] | value[1] | value[2] < 128:  # as they all are: one byte each
        return value[0], value[1], value[2], 3
    frame_version, position = read_uvarint(value, 0)
    api_key, position = read_uvarint(value, position)
    version, position = read_uvarint(value, position)
    return frame_version, api_key, version, position


def type_of(value: bytes | memoryview) -> int:
    """The API key in a record's frame."""
    return frame(value)[1]


def version_of(value: bytes | memoryview) -> int:
    """The record's version in its frame."""
    return frame(value)[2]


def has_unknown_tags(record: Any) -> bool:
    """Whether it says something that 4.3.1 does not know, in a field of its own or of a part of it."""
    if record.unknown_tags:
        return True
    fields = PARTS.get(record.api_key)
    return fields is not None and any(
        part.unknown_tags for field in fields for part in getattr(record, field)
    )


def kraft_version_of(value: bytes | None) -> int:
    if value is None or len(value) < 4:
        raise MetadataError("control record without a kraft.version")
    return int.from_bytes(value[2:4], "big", signed=True)


def quorum(kraft_version: int, voters: bytes) -> list[tuple[int, bytes]]:
    """The control records that say which kind of quorum it is and who votes (KIP-853)."""
    level = b"\0\0" + kraft_version.to_bytes(2, "big") + b"\0"
    return [(KRAFT_VERSION, level), (KRAFT_VOTERS, voters)]


def control_key(control_type: int) -> bytes:
    return b"\x00\x00" + control_type.to_bytes(2, "big")


def control_type(key: bytes | None) -> int:
    if key is None or len(key) < 4:
        raise MetadataError("control record without a type")
    return int.from_bytes(key[2:4], "big")


def uvarint(number: int) -> bytes:
    out = bytearray()
    while number > 127:
        out.append(number & 127 | 128)
        number >>= 7
    out.append(number)
    return bytes(out)


def read_uvarint(data: bytes | memoryview, position: int) -> tuple[int, int]:
    number = 0
    for shift in range(0, 35, 7):
        if position >= len(data):
            break
        byte = data[position]
        position += 1
        number |= (byte & 127) << shift
        if byte < 128:
            return number, position
    raise MetadataError("malformed record frame")


def config_record(resource_type: int, resource: str, key: str, value: str | None) -> messages.ConfigRecord:
    """A key that is set, or (None) no longer."""
    kind = messages.ConfigRecord
    return kind(resource_type=resource_type, resource_name=resource, name=key, value=value)
