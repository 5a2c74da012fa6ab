"""The metadata and assignments that consumers put into the opaque bytes of the classic protocol.

int16 version, then ConsumerProtocolSubscription or ConsumerProtocolAssignment. A version newer than ours is read as our
newest, as consumers do, since new fields are added at the end. The bytes come from clients: any mistake in them is a
WireError, and so are too many elements.
"""

from __future__ import annotations

from pykafkad.hot.wire import LargeMessage, WireError
from pykafkad.messages import ConsumerProtocolAssignment, ConsumerProtocolSubscription
from pykafkad.pure.groups.consumer_member import Epochs

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import TypeVar

    from pykafkad.hot.wire import Message
    from pykafkad.pure.groups.settings import Topics

    M = TypeVar("M", bound=Message)

PROTOCOL_TYPE = "consumer"
NEWEST = 3
VERSION_BYTES = 2
ELEMENTS_MAX = 100_000  # topics and partitions; to read them takes some 10 ms

AssignedTopic = ConsumerProtocolAssignment.TopicPartition


class Subscription:
    __slots__ = ("owned", "rack_id", "topics")

    def __init__(self, topics: list[str], owned: dict[str, set[int]], rack_id: str | None) -> None:
        self.topics = topics
        self.owned = owned
        self.rack_id = rack_id


def version_of(data: bytes) -> int:
    version = int.from_bytes(data[:VERSION_BYTES], signed=True)
    if version < 0:
        raise WireError(f"version {version}")
    return min(version, NEWEST)


def decoded(kind: type[M], data: bytes) -> M:
    try:
        read, _ = kind.decode_prefix(data, version_of(data), VERSION_BYTES, most=ELEMENTS_MAX)
    except LargeMessage:
        raise WireError(f"more than {ELEMENTS_MAX} elements") from None
    return read


def read_subscription(data: bytes) -> Subscription:
    read = decoded(ConsumerProtocolSubscription, data)
    owned: dict[str, set[int]] = {}
    for topic in read.owned_partitions:
        owned.setdefault(topic.topic, set()).update(topic.partitions)
    return Subscription(list(read.topics), owned, read.rack_id)


def read_assignment(data: bytes) -> tuple[dict[str, set[int]], bytes]:
    """Topics with partitions, and the user data of a custom assignor."""
    read = decoded(ConsumerProtocolAssignment, data)
    assigned: dict[str, set[int]] = {}
    for topic in read.assigned_partitions:
        assigned.setdefault(topic.topic, set()).update(topic.partitions)
    return assigned, bytes(read.user_data or b"")


def assignment_bytes(assigned: Mapping[bytes, object] | Epochs, metadata: bytes, topics: Topics) -> bytes:
    """The assignment in the version of the member's own subscription; topics that do not exist any more are left out."""
    version = version_of(metadata)
    listed = []
    for topic_id in sorted(assigned):
        topic = topics.topics_by_id.get(topic_id)
        if topic is not None:
            partitions = sorted(assigned[topic_id])  # type: ignore[call-overload]
            listed.append(AssignedTopic(topic=topic.name, partitions=partitions))
    return version.to_bytes(VERSION_BYTES) + ConsumerProtocolAssignment(assigned_partitions=listed).encode(
        version
    )
