"""How `pykafkad consume` shows records: Kafka's formatters by their class names, and their properties.

A formatter is made from its properties and turns a record into the bytes for standard output. KIP-1034 and KIP-1001 are
the formatters for Kafka's own topics.
"""

from __future__ import annotations

import struct

from pykafkad.net.client import ClientError
from pykafkad.tools import dump_decoders, message_json

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from pykafkad.hot.records import Batch, Record

    Write = Callable[[str, int, Batch, Record], bytes]
    Deserialize = Callable[[bytes], str]

PACKAGE = "org.apache.kafka.tools.consumer."
SERIALIZATION = "org.apache.kafka.common.serialization."
DEFAULT = PACKAGE + "DefaultMessageFormatter"


def choose(name: str, properties: Mapping[str, str]) -> Write:
    """The formatter of that name; ClientError if there is none."""
    make = FORMATTERS.get(name)
    if make is None:
        raise ClientError(f"{name}: there are {', '.join(FORMATTERS)}")
    return make(properties)


# -- the default one


class DefaultFormatter:
    """The parts that the properties select, one behind the other, and a line separator."""

    def __init__(self, properties: Mapping[str, str]) -> None:
        def flag(name: str, default: bool = False) -> bool:
            return properties.get(name, str(default)).strip().lower() == "true"

        self._timestamp = flag("print.timestamp")
        self._partition = flag("print.partition")
        self._offset = flag("print.offset")
        self._delivery = flag("print.delivery")
        self._epoch = flag("print.epoch")
        self._headers = flag("print.headers")
        self._key = flag("print.key")
        self._value = flag("print.value", True)
        self._separator = properties.get("key.separator", "\t").encode()
        self._line_end = properties.get("line.separator", "\n").encode()
        self._headers_separator = properties.get("headers.separator", ",").encode()
        self._null = properties.get("null.literal", "null").encode()
        self._read_key = deserializer(properties, "key.deserializer")
        self._read_value = deserializer(properties, "value.deserializer")
        self._read_header = deserializer(properties, "headers.deserializer")
        extras = (self._timestamp, self._partition, self._offset, self._delivery, self._epoch, self._headers)
        self._value_alone = self._value and not self._key and not any(extras)

    def __call__(self, topic: str, partition: int, batch: Batch, record: Record) -> bytes:
        if self._value_alone:
            return self._content(self._read_value, record.value) + self._line_end
        parts = self._parts(partition, batch, record)
        if not parts:
            return b""
        return self._separator.join(parts) + self._line_end

    def _parts(self, partition: int, batch: Batch, record: Record) -> list[bytes]:
        parts = []
        if self._timestamp:
            parts.append(timestamp_text(batch, record).encode())
        if self._partition:
            parts.append(b"Partition:%d" % partition)
        if self._offset:
            parts.append(b"Offset:%d" % record.offset)
        if self._delivery:
            parts.append(b"Delivery:NOT_PRESENT")
        if self._epoch:
            parts.append(b"Epoch:NOT_PRESENT")
        if self._headers:
            shown = [
                key.encode() + b":" + self._content(self._read_header, content)
                for key, content in record.headers
            ]
            parts.append(self._headers_separator.join(shown) if shown else b"NO_HEADERS")
        if self._key:
            parts.append(self._content(self._read_key, record.key))
        if self._value:
            parts.append(self._content(self._read_value, record.value))
        return parts

    def _content(self, read: Deserialize | None, data: bytes | None) -> bytes:
        known = self._null if data is None else data
        return known if read is None else read(known).encode()


def as_json(topic: str, partition: int, batch: Batch, record: Record) -> bytes:
    """A record as an object on a line of its own (consume.JSON_EXAMPLE)."""
    import json

    has_timestamp = batch.magic != 0
    shown = {
        "topic": topic,
        "partition": partition,
        "offset": record.offset,
        "timestamp": record.timestamp if has_timestamp else None,
        "timestamp_type": timestamp_type(batch) if has_timestamp else None,
        "headers": [[key, _json_content(content)] for key, content in record.headers],
        "key": _json_content(record.key),
        "value": _json_content(record.value),
    }
    return json.dumps(shown, ensure_ascii=False).encode(errors="replace") + b"\n"


def _json_content(data: bytes | None) -> object:
    if data is None:
        return None
    try:
        return bytes(data).decode()
    except UnicodeDecodeError:
        from base64 import b64encode

        return {"base64": b64encode(data).decode()}


def timestamp_type(batch: Batch) -> str:
    return "LogAppendTime" if batch.is_log_append_time else "CreateTime"


def timestamp_text(batch: Batch, record: Record) -> str:
    if batch.magic == 0:
        return "NO_TIMESTAMP"
    return f"{timestamp_type(batch)}:{record.timestamp}"


# -- deserializers


def _integer(size: int, name: str) -> Deserialize:
    def read(data: bytes) -> str:
        _check_size(data, size, name)
        return str(int.from_bytes(data, "big", signed=True))

    return read


def _check_size(data: bytes, size: int, name: str) -> None:
    if len(data) != size:
        raise ClientError(f"Size of data received by {name} is not {size}")


def _double(data: bytes) -> str:
    from pykafkad.config_def import show_double

    _check_size(data, 8, "DoubleDeserializer")
    (value,) = struct.unpack(">d", data)
    return show_double(value)


def _float(data: bytes) -> str:
    """The fewest digits that identify this float, as Java prints it."""
    from pykafkad.config_def import show_double

    _check_size(data, 4, "FloatDeserializer")
    (value,) = struct.unpack(">f", data)
    for digits in range(1, 10):
        shorter = float(f"{value:.{digits}g}")
        if abs(shorter) <= 3.4028235e38 and struct.pack(">f", shorter) == data:
            return show_double(shorter)
    return show_double(value)


def _boolean(data: bytes) -> str:
    _check_size(data, 1, "BooleanDeserializer")
    if data[0] > 1:
        raise ClientError(f"Unexpected byte received by BooleanDeserializer: {data[0]}")
    return "true" if data[0] else "false"


def _escaped(data: bytes) -> str:
    r"""Kafka's Bytes.toString(): printable characters, and \xNN for all others."""
    return "".join(chr(byte) if 32 <= byte < 127 and byte != 0x5C else f"\\x{byte:02X}" for byte in data)


DESERIALIZERS: dict[str, Deserialize] = {
    "IntegerDeserializer": _integer(4, "IntegerDeserializer"),
    "LongDeserializer": _integer(8, "LongDeserializer"),
    "ShortDeserializer": _integer(2, "ShortDeserializer"),
    "DoubleDeserializer": _double,
    "FloatDeserializer": _float,
    "BooleanDeserializer": _boolean,
    "BytesDeserializer": _escaped,
    "UUIDDeserializer": lambda data: data.decode(errors="replace"),
}


def deserializer(properties: Mapping[str, str], name: str) -> Deserialize | None:
    """The deserializer of that name; its own properties have that name as their prefix."""
    wanted = properties.get(name)
    if wanted is None:
        return None
    simple = wanted.removeprefix(SERIALIZATION)
    if simple == "StringDeserializer":
        return _string(properties, name)
    known = DESERIALIZERS.get(simple)
    if known is None:
        there_are = ", ".join(["StringDeserializer", *DESERIALIZERS])
        raise ClientError(f"Unable to instantiate a deserializer from {wanted}: there are {there_are}")
    return known


def _string(properties: Mapping[str, str], name: str) -> Deserialize:
    which = "key" if name.startswith("key") else "value"
    encoding = properties.get(f"{name}.{which}.deserializer.encoding") or properties.get(
        f"{name}.deserializer.encoding", "UTF-8"
    )
    try:
        b"".decode(encoding)
    except LookupError:
        raise ClientError(
            "Error when deserializing byte[] to string due to unsupported encoding " + encoding
        ) from None
    return lambda data: data.decode(encoding, errors="replace")


# -- the others


def _logging(properties: Mapping[str, str]) -> Write:
    """Kafka's formatter logs each record as well, at a level that its tools do not show."""
    return DefaultFormatter(properties)


def _no_op(properties: Mapping[str, str]) -> Write:
    return lambda topic, partition, batch, record: b""


def _coordinator(names: dict[int, str], allowed: frozenset[int]) -> Callable[[Mapping[str, str]], Write]:
    def write(topic: str, partition: int, batch: Batch, record: Record) -> bytes:
        if record.key is None:
            return b""
        try:
            record_type, key, version, value = dump_decoders.coordinator_record(
                names, record.key, record.value
            )
        except dump_decoders.UnknownType:
            return b""
        except ValueError as problem:
            raise ClientError(
                f"Could not read record at offset {record.offset} due to: {problem}"
            ) from problem
        if record_type not in allowed:
            return b""
        shown = {
            "key": {"type": record_type, "data": key},
            "value": None if value is None else {"version": version, "data": value},
        }
        return message_json.to_text(shown).encode()

    return lambda properties: write


FORMATTERS: dict[str, Callable[[Mapping[str, str]], Write]] = {
    DEFAULT: DefaultFormatter,
    PACKAGE + "LoggingMessageFormatter": _logging,
    PACKAGE + "NoOpMessageFormatter": _no_op,
    PACKAGE + "OffsetsMessageFormatter": _coordinator(dump_decoders.GROUP_RECORDS, frozenset({0, 1})),
    PACKAGE + "GroupMetadataMessageFormatter": _coordinator(dump_decoders.GROUP_RECORDS, frozenset({2})),
    PACKAGE + "TransactionLogMessageFormatter": _coordinator(
        dump_decoders.TRANSACTION_RECORDS, frozenset({0})
    ),
    PACKAGE + "group.share.ShareGroupStateMessageFormatter": _coordinator(
        dump_decoders.SHARE_RECORDS, frozenset({0, 1})
    ),
}
