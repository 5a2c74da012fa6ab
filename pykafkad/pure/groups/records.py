"""Records of `__consumer_offsets`: which key and value belong together, and their format.

Key: int16 type, then the key message in version 0. Value: int16 version, then the value message in that version; a
tombstone has no value. Types and versions of a newer Kafka raise UnknownRecord, and the loader leaves such records
alone. KIP-848 added types 3 to 8 and 16; 10 to 15 are share groups', 17 to 23 streams groups'.
"""

from __future__ import annotations

from collections.abc import Callable

from pykafkad import messages
from pykafkad.hot.wire import WireError
from pykafkad.pure.effects import LARGE_VALUE, UnknownRecord

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

Bytes = bytes | memoryview

LEGACY_OFFSET_COMMIT, OFFSET_COMMIT, GROUP_METADATA = 0, 1, 2
OFFSET_COMMITS = frozenset((LEGACY_OFFSET_COMMIT, OFFSET_COMMIT))
MEMBER_RECORDS = frozenset((5, 7, 8, 16))  # of consumer groups, that may have many elements

# type -> (name of the messages without Key and Value, version in which values are written by Kafka 4.3.1)
TYPES: dict[int, tuple[str, int]] = {
    LEGACY_OFFSET_COMMIT: ("LegacyOffsetCommit", 0),
    OFFSET_COMMIT: ("OffsetCommit", 4),
    GROUP_METADATA: ("GroupMetadata", 3),
    3: ("ConsumerGroupMetadata", 0),
    4: ("ConsumerGroupPartitionMetadata", 0),
    5: ("ConsumerGroupMemberMetadata", 0),
    6: ("ConsumerGroupTargetAssignmentMetadata", 0),
    7: ("ConsumerGroupTargetAssignmentMember", 0),
    8: ("ConsumerGroupCurrentMemberAssignment", 0),
    16: ("ConsumerGroupRegularExpression", 0),
}
WITH_EXPIRY = 1  # the only version of an offset's value that has an expiry time


class Codec:
    """How one type of record is written and read; made when the first one is needed."""

    __slots__ = (
        "decode_apart",
        "decode_key",
        "decode_value",
        "prefix",
        "value_prefix",
        "value_version",
        "value_versions",
    )

    def __init__(self, record_type: int) -> None:
        name, version = TYPES[record_type]
        key, value = getattr(messages, f"{name}Key"), getattr(messages, f"{name}Value")
        self.prefix = record_type.to_bytes(2)
        self.value_version = version
        self.value_prefix = version.to_bytes(2)
        self.decode_key: Callable[..., Any] = key.decode
        self.decode_value: Callable[..., Any] = value.decode
        self.decode_apart: Callable[..., Any] = value.decode_apart
        self.value_versions: tuple[int, int] = (value.min_version, value.max_version)


_codecs: dict[int, Codec] = {}


def codec_of(record_type: int) -> Codec:
    codec = _codecs.get(record_type)
    if codec is None:
        codec = _codecs[record_type] = Codec(record_type)
    return codec


def encode(key: Any, value: Any) -> tuple[bytes, bytes | None]:
    """The key and value bytes of a record."""
    record_type = key.api_key
    codec = _codecs.get(record_type) or codec_of(record_type)
    key_bytes: bytes = codec.prefix + key.encode(0)
    if value is None:
        return key_bytes, None
    if record_type == OFFSET_COMMIT and value.expire_timestamp != -1:
        return key_bytes, WITH_EXPIRY.to_bytes(2) + value.encode(WITH_EXPIRY)
    return key_bytes, codec.value_prefix + value.encode(codec.value_version)


def decode(key: bytes | None, value: bytes | None) -> tuple[Any, Any]:
    """A record from its bytes. UnknownRecord if this broker does not know its type or version, WireError if it is
    malformed.

    Offsets in the format of Kafka before 0.9 are returned in today's.
    """
    if key is None:
        raise UnknownRecord("a record without a key")
    if len(key) < 2:
        raise WireError("a key without its type")
    record_type = int.from_bytes(key[:2], signed=True)
    if record_type not in TYPES:
        raise UnknownRecord(f"a record of type {record_type}")
    codec = codec_of(record_type)
    decoded = codec.decode_key(key, 0, 2)
    if record_type == LEGACY_OFFSET_COMMIT:
        decoded = modern_key(decoded)
    if value is None:
        return decoded, None
    if len(value) < 2:
        raise WireError("a value without its version")
    version = int.from_bytes(value[:2], signed=True)
    if not codec.value_versions[0] <= version <= codec.value_versions[1]:
        raise UnknownRecord(f"a {TYPES[record_type][0]} of version {version}")
    read = codec.decode_value if len(value) < LARGE_VALUE else codec.decode_apart
    decoded_value = read(value, version, 2)
    return decoded, modern_value(decoded_value) if record_type == LEGACY_OFFSET_COMMIT else decoded_value


def modern_key(key: Any) -> Any:
    return messages.OffsetCommitKey(group=key.group, topic=key.topic, partition=key.partition)


def modern_value(value: Any) -> Any:
    return messages.OffsetCommitValue(
        offset=value.offset,
        metadata=value.metadata,
        commit_timestamp=value.commit_timestamp,
    )
