"""The files that every .proto file may import, as far as their messages are in data: what their fields are called and
how they are numbered.
"""

from __future__ import annotations

WRAPPERS = {
    "google.protobuf.DoubleValue": "double",
    "google.protobuf.FloatValue": "float",
    "google.protobuf.Int64Value": "int64",
    "google.protobuf.UInt64Value": "uint64",
    "google.protobuf.Int32Value": "int32",
    "google.protobuf.UInt32Value": "uint32",
    "google.protobuf.BoolValue": "bool",
    "google.protobuf.StringValue": "string",
    "google.protobuf.BytesValue": "bytes",
}
"""Messages around one value, which may so be null."""

TIMESTAMP_NAME = "google.protobuf.Timestamp"
DATE_NAME = "google.type.Date"
TIME_NAME = "google.type.TimeOfDay"
DECIMAL_NAME = "confluent.type.Decimal"

_GOOGLE = 'syntax = "proto3"; package google.protobuf;'
_TYPE = 'syntax = "proto3"; package google.type;'

KNOWN = {
    "google/protobuf/wrappers.proto": _GOOGLE
    + "".join(f"message {name.rpartition('.')[2]} {{{kind} value = 1;}}" for name, kind in WRAPPERS.items()),
    "google/protobuf/timestamp.proto": _GOOGLE + "message Timestamp {int64 seconds = 1; int32 nanos = 2;}",
    "google/protobuf/duration.proto": _GOOGLE + "message Duration {int64 seconds = 1; int32 nanos = 2;}",
    "google/protobuf/any.proto": _GOOGLE + "message Any {string type_url = 1; bytes value = 2;}",
    "google/protobuf/empty.proto": _GOOGLE + "message Empty {}",
    "google/type/date.proto": _TYPE + "message Date {int32 year = 1; int32 month = 2; int32 day = 3;}",
    "google/type/timeofday.proto": _TYPE
    + "message TimeOfDay {int32 hours = 1; int32 minutes = 2; int32 seconds = 3; int32 nanos = 4;}",
    "confluent/type/decimal.proto": 'syntax = "proto3"; package confluent.type;'
    "message Decimal {bytes value = 1; uint32 precision = 2; int32 scale = 3;}",
}
"""Their texts by the names that `import` says."""
