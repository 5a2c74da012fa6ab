"""Short forms of messages: a request or an answer in its most common shape, as one object instead of a tree of them.

A short form has the same bytes as the whole message if each of its arrays has one element and there are no tagged
fields: `constant` fields stand for those counts and for everything that is empty. A request of another shape is read as
the whole message (hot.wire.Route), so a handler that supports a short form supports both. The objects of the tree are a
good part of the cost of a small request.
"""

from __future__ import annotations

from pykafkad.hot.wire import define

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

ONE = b"\x02"  # the count of a compact array, plus one
NO_TAGS = b"\x00"
NO_ELEMENTS = b"\x01"
NULL = b"\x00"


def constant(name: str, *parts: bytes) -> dict[str, Any]:
    return {"name": name, "type": "constant", "default": b"".join(parts)}


TOPIC = (
    {"name": "Name", "type": "string", "versions": "9-12", "ignorable": True},
    {"name": "TopicId", "type": "uuid", "versions": "13+", "ignorable": True},
)

# Produce with one batch for one partition, and its answer if the batch was not refused.
LoneProduceRequest: Any = define(
    {
        "name": "LoneProduceRequest",
        "versions": "9-13",
        "flexible": 9,
        "fields": [
            {"name": "TransactionalId", "type": "string", "nullable": True, "default": None},
            {"name": "Acks", "type": "int16"},
            {"name": "TimeoutMs", "type": "int32"},
            constant("Topics", ONE),
            *TOPIC,
            constant("Partitions", ONE),
            {"name": "Index", "type": "int32"},
            {"name": "Records", "type": "records", "nullable": True},
            constant("End", NO_TAGS, NO_TAGS),
        ],
    }
)
LoneProduceResponse: Any = define(
    {
        "name": "LoneProduceResponse",
        "versions": "9-13",
        "flexible": 9,
        "fields": [
            constant("Topics", ONE),
            *TOPIC,
            constant("Partitions", ONE),
            {"name": "Index", "type": "int32"},
            {"name": "ErrorCode", "type": "int16"},
            {"name": "BaseOffset", "type": "int64"},
            {"name": "LogAppendTimeMs", "type": "int64", "default": -1},
            {"name": "LogStartOffset", "type": "int64", "default": -1},
            # record errors, error message; then the tagged fields of the partition and the topic
            constant("End", NO_ELEMENTS, NULL, NO_TAGS, NO_TAGS),
            {"name": "ThrottleTimeMs", "type": "int32"},
        ],
    }
)
