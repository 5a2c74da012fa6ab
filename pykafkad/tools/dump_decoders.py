"""What is inside records: plain texts and numbers, or the records of Kafka's own topics as JSON.

A decoder returns what to show as the key and the payload of a record; None shows nothing. Records that a decoder does
not know are named and skipped. The control records of logs (transaction markers, KRaft) are here as well.
"""

from __future__ import annotations

from pykafkad import messages, uuids
from pykafkad.cluster import metadata_records
from pykafkad.hot.wire import WireError
from pykafkad.net.client import ClientError
from pykafkad.tools import message_json
from pykafkad.tools.options import Options

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from pykafkad.hot.records import Record

    Decoder = Callable[["Record"], tuple[str | None, str | None]]

PACKAGE = "org.apache.kafka.tools.api."

# type of a coordinator's record -> its messages without Key and Value
GROUP_RECORDS = {
    0: "LegacyOffsetCommit",
    1: "OffsetCommit",
    2: "GroupMetadata",
    3: "ConsumerGroupMetadata",
    4: "ConsumerGroupPartitionMetadata",
    5: "ConsumerGroupMemberMetadata",
    6: "ConsumerGroupTargetAssignmentMetadata",
    7: "ConsumerGroupTargetAssignmentMember",
    8: "ConsumerGroupCurrentMemberAssignment",
    10: "ShareGroupMemberMetadata",
    11: "ShareGroupMetadata",
    12: "ShareGroupTargetAssignmentMetadata",
    13: "ShareGroupTargetAssignmentMember",
    14: "ShareGroupCurrentMemberAssignment",
    15: "ShareGroupStatePartitionMetadata",
    16: "ConsumerGroupRegularExpression",
    17: "StreamsGroupMetadata",
    18: "StreamsGroupTopology",
    19: "StreamsGroupMemberMetadata",
    20: "StreamsGroupTargetAssignmentMetadata",
    21: "StreamsGroupTargetAssignmentMember",
    22: "StreamsGroupCurrentMemberAssignment",
}
GROUP_METADATA = 2
TRANSACTION_RECORDS = {0: "TransactionLog"}
SHARE_RECORDS = {0: "ShareSnapshot", 1: "ShareUpdate"}

REMOTE_RECORDS = {
    0: "RemoteLogSegmentMetadataRecord",
    1: "RemoteLogSegmentMetadataUpdateRecord",
    2: "RemotePartitionDeleteMetadataRecord",
    3: "RemoteLogSegmentMetadataSnapshotRecord",
}
SEGMENT_STATES = (
    "COPY_SEGMENT_STARTED",
    "COPY_SEGMENT_FINISHED",
    "DELETE_SEGMENT_STARTED",
    "DELETE_SEGMENT_FINISHED",
)
PARTITION_DELETE_STATES = (
    "DELETE_PARTITION_MARKED",
    "DELETE_PARTITION_STARTED",
    "DELETE_PARTITION_FINISHED",
)

ABORT, COMMIT, LEADER_CHANGE, SNAPSHOT_HEADER, SNAPSHOT_FOOTER, KRAFT_VERSION, KRAFT_VOTERS = range(7)
CONTROL_MESSAGES = {
    LEADER_CHANGE: (" LeaderChange:", "LeaderChangeMessage"),
    SNAPSHOT_HEADER: (" SnapshotHeader", "SnapshotHeaderRecord"),
    SNAPSHOT_FOOTER: (" SnapshotFooter", "SnapshotFooterRecord"),
    KRAFT_VERSION: (" KRaftVersion", "KRaftVersionRecord"),
    KRAFT_VOTERS: (" KRaftVoters", "VotersRecord"),
}


def choose(options: Options) -> Decoder:
    """The decoder that the options select."""
    if options.has("offsets-decoder"):
        return coordinator_decoder(GROUP_RECORDS)
    if options.has("transaction-log-decoder"):
        return coordinator_decoder(TRANSACTION_RECORDS)
    if options.has("cluster-metadata-decoder"):
        return metadata_decoder
    if options.has("remote-log-metadata-decoder"):
        return remote_decoder
    if options.has("share-group-state-decoder"):
        return coordinator_decoder(SHARE_RECORDS)
    value, key = (
        plain_class(options.text("value-decoder-class")),
        plain_class(options.text("key-decoder-class")),
    )
    return lambda record: (
        None if record.key is None else key(record.key),
        None if record.value is None else value(record.value),
    )


# -- plain values


def _number(size: int, name: str) -> Callable[[bytes], str]:
    def decode(data: bytes) -> str:
        if len(data) < size:
            raise ClientError(f"{name}: {len(data)} bytes where {size} are needed")
        return str(int.from_bytes(data[:size], "big", signed=True))

    return decode


CLASSES: dict[str, Callable[[bytes], str]] = {
    "StringDecoder": lambda data: data.decode(errors="replace"),
    "DefaultDecoder": lambda data: data.hex(),
    "IntegerDecoder": _number(4, "IntegerDecoder"),
    "LongDecoder": _number(8, "LongDecoder"),
}
CLASSES_SHOWN = ", ".join(PACKAGE + name for name in CLASSES)


def plain_class(name: str) -> Callable[[bytes], str]:
    known = CLASSES.get(name.removeprefix(PACKAGE))
    if known is None:
        raise ClientError(f"Failed to load decoder class {name}: there are {CLASSES_SHOWN}")
    return known


# -- coordinators' records: int16 type before the key, int16 version before the value


class UnknownType(Exception):
    """A type of record that the topic's decoder does not know."""


def coordinator_record(names: dict[int, str], key: bytes, value: bytes | None) -> tuple[int, Any, int, Any]:
    """(type, key as JSON value, version, value as JSON value or None)"""
    if len(key) < 2:
        raise ValueError("Could not read version from key's buffer.")
    record_type = int.from_bytes(key[:2], "big", signed=True)
    name = names.get(record_type)
    if name is None:
        raise UnknownType(record_type)
    shown_key = _part(f"{name}Key", key, 0, "key")
    if value is None:
        return record_type, shown_key, -1, None
    if len(value) < 2:
        raise ValueError("Could not read version from value's buffer.")
    version = int.from_bytes(value[:2], "big", signed=True)
    cls = getattr(messages, f"{name}Value")
    if not cls.min_version <= version <= cls.max_version:
        raise ValueError(f"Found an unknown record version {version} for {record_type} type")
    return record_type, shown_key, version, _part(f"{name}Value", value, version, "value")


def _part(name: str, data: bytes, version: int, which: str) -> dict[str, Any]:
    try:
        message, _ = getattr(messages, name).decode_prefix(data, version, 2)
    except WireError as problem:
        raise ValueError(
            f"Could not read record with version {version} from {which}'s buffer due to: {problem}."
        ) from None
    return message_json.to_value(message, version)


def coordinator_decoder(names: dict[int, str]) -> Decoder:
    def decode(record: Record) -> tuple[str | None, str | None]:
        if record.key is None:
            raise ClientError(
                f"Failed to decode message at offset {record.offset} using the specified decoder (message had "
                "a missing key)"
            )
        try:
            record_type, key, version, value = coordinator_record(names, record.key, record.value)
        except UnknownType as problem:
            return f"Unknown record type {problem} at offset {record.offset}, skipping.", None
        except ValueError as problem:
            return f"Error at offset {record.offset}, skipping. {problem}", None
        shown = message_json.to_text({"type": str(record_type), "data": key})
        if value is None:
            return shown, "<DELETE>"
        if names is GROUP_RECORDS and record_type == GROUP_METADATA:
            open_members(value)
        return shown, message_json.to_text({"version": str(version), "data": value})

    return decode


def open_members(group: dict[str, Any]) -> None:
    """Show consumers' subscriptions and assignments decoded, in place of their bytes."""
    if group.get("protocolType") != "consumer":
        return
    for member in group.get("members") or ():
        for field, name in (
            ("subscription", "ConsumerProtocolSubscription"),
            ("assignment", "ConsumerProtocolAssignment"),
        ):
            opened = _opened(getattr(messages, name), member.get(field))
            if opened is not None:
                member[field] = opened


def _opened(cls: Any, text: str | None) -> dict[str, Any] | None:
    from binascii import a2b_base64

    data = a2b_base64(text) if text else b""
    if len(data) < 2:
        return None
    version = int.from_bytes(data[:2], "big", signed=True)
    if not cls.min_version <= version <= cls.max_version:
        return None
    try:
        message, _ = cls.decode_prefix(data, version, 2)
    except WireError:
        return None
    return message_json.to_value(message, version)


# -- framed records: varints of frame version, type and version, then the message


def framed(names: dict[int, str], data: bytes) -> tuple[str, int, Any]:
    """(name of the message, version, message); ValueError with Kafka's text if there is no such record."""
    position = 0

    def varint(what: str) -> int:
        nonlocal position
        value = shift = 0
        while True:
            if position >= len(data) or shift > 28:
                raise ValueError(f"Error while reading {what}")
            byte = data[position]
            position += 1
            value |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                break
        if value > 32767:
            raise ValueError(f"Value for {what} was too large.")
        return value

    frame_version = varint("frame version")
    if frame_version == 0:
        raise ValueError(
            "Could not deserialize metadata record with frame version 0. Note that upgrades from the preview "
            "release of KRaft in 2.8 to newer versions are not supported."
        )
    if frame_version != metadata_records.FRAME_VERSION:
        raise ValueError(
            f"Could not deserialize metadata record due to unknown frame version {frame_version}(only frame "
            "version 1 is supported)"
        )
    record_type, version = varint("type"), varint("version")
    name = names.get(record_type)
    if name is None:
        raise ValueError(
            f"org.apache.kafka.common.errors.UnsupportedVersionException: Unknown metadata id {record_type}"
        )
    try:
        message, end = getattr(messages, name).decode_prefix(data, version, position)
    except WireError:
        raise ValueError(f"Failed to deserialize record with type {record_type}") from None
    if end < len(data):
        raise ValueError(f"Found {len(data) - end} byte(s) of garbage after {record_type}")
    return name, version, message


def metadata_decoder(record: Record) -> tuple[str | None, str | None]:
    try:
        name, version, message = framed(metadata_records.NAMES, record.value or b"")
    except ValueError as problem:
        return None, f"Error at {record.offset}, skipping. {problem}"
    data = message_json.to_value(message, version)
    return None, message_json.to_text({"type": _constant(name), "version": version, "data": data})


def _constant(name: str) -> str:
    """The name as a constant: TopicRecord becomes TOPIC_RECORD."""
    return "".join("_" + letter if letter.isupper() else letter for letter in name).lstrip("_").upper()


# -- records of remote storage, in the form of their Java classes' toString()


def remote_decoder(record: Record) -> tuple[str | None, str | None]:
    try:
        name, _, message = framed(REMOTE_RECORDS, record.value or b"")
        return None, remote_text(name, message)
    except (ValueError, IndexError) as problem:
        return None, f"Error at offset {record.offset}, skipping. {problem}"


def remote_text(name: str, message: Any) -> str:
    shown: dict[str, str] = {}
    if name == "RemotePartitionDeleteMetadataRecord":
        shown["topicPartition"] = _topic_partition(message.topic_id_partition)
        shown["state"] = PARTITION_DELETE_STATES[message.remote_partition_delete_state]
        shown["eventTimestampMs"] = str(message.event_timestamp_ms)
        shown["brokerId"] = str(message.broker_id)
        return _shown_object(name, shown)
    state = SEGMENT_STATES[message.remote_log_segment_state]
    custom = message.custom_metadata
    custom_text = "Optional.empty" if custom is None else f"Optional[CustomMetadata{{{len(custom)} bytes}}]"
    if name == "RemoteLogSegmentMetadataSnapshotRecord":
        shown["segmentId"] = uuids.to_text(message.segment_id)
    else:
        entry = message.remote_log_segment_id
        shown["remoteLogSegmentId"] = (
            f"RemoteLogSegmentId{{topicIdPartition={_topic_partition(entry.topic_id_partition)}, "
            f"id={uuids.to_text(entry.id)}}}"
        )
    if name == "RemoteLogSegmentMetadataUpdateRecord":
        shown |= {"customMetadata": custom_text, "state": state}
        shown |= {"eventTimestampMs": str(message.event_timestamp_ms), "brokerId": str(message.broker_id)}
        return _shown_object(name, shown)
    return _shown_object(name, shown | _segment(name, message, custom_text, state))


def _segment(name: str, message: Any, custom_text: str, state: str) -> dict[str, str]:
    """The fields of a whole segment; those of a snapshot are fewer."""
    epochs = ", ".join(
        f"{entry.leader_epoch}={entry.offset}"
        for entry in sorted(message.segment_leader_epochs, key=lambda entry: int(entry.leader_epoch))
    )
    shown = {"startOffset": str(message.start_offset), "endOffset": str(message.end_offset)}
    is_snapshot = name == "RemoteLogSegmentMetadataSnapshotRecord"
    if not is_snapshot:
        shown["brokerId"] = str(message.broker_id)
    shown["maxTimestampMs"] = str(message.max_timestamp_ms)
    if not is_snapshot:
        shown["eventTimestampMs"] = str(message.event_timestamp_ms)
    return shown | {
        "segmentLeaderEpochs": f"{{{epochs}}}",
        "segmentSizeInBytes": str(message.segment_size_in_bytes),
        "customMetadata": custom_text,
        "state": state,
        "txnIdxEmpty": str(message.txn_index_empty).lower(),
    }


def _topic_partition(entry: Any) -> str:
    return f"{uuids.to_text(entry.id)}:{entry.name}-{entry.partition}"


def _shown_object(name: str, shown: dict[str, str]) -> str:
    fields = ", ".join(f"{key}={text}" for key, text in shown.items())
    return f"{name.removesuffix('Record')}{{{fields}}}"


# -- control records: int16 version and int16 type as the key


def control_text(record: Record) -> str:
    control_type = int.from_bytes((record.key or b"")[2:4], "big", signed=True)
    value = record.value or b""
    if control_type in (ABORT, COMMIT):
        epoch = int.from_bytes(value[2:6], "big", signed=True)
        name = "COMMIT" if control_type == COMMIT else "ABORT"
        return f" endTxnMarker: {name} coordinatorEpoch: {epoch}"
    if control_type not in CONTROL_MESSAGES:
        return f" controlType: UNKNOWN({control_type})"
    title, name = CONTROL_MESSAGES[control_type]
    message, _ = getattr(messages, name).decode_prefix(value, 0)
    return f"{title} {message_json.to_text(message_json.to_value(message, message.version))}"
