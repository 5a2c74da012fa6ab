"""Changes to partitions of topics that exist: more of them (CreatePartitions), and other replicas for them
(AlterPartitionReassignments, KIP-455).

Nothing here writes or waits: checks, in Kafka's order and words, and the records that result. A node alone
has one valid list of replicas, its own, which is what every partition has: so a reassignment is refused or
changes nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pykafkad import errors
from pykafkad.cluster import features
from pykafkad.cluster.topic_creation import MAX_RECORDS_IN_REQUEST, bad_assignment, check_assignment
from pykafkad.errors import KafkaError
from pykafkad.messages import PartitionRecord

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from pykafkad.cluster.image import Image, Topic
    from pykafkad.cluster.metadata_records import Record


class Grown:
    """What one topic of a CreatePartitions request comes to: an error, or the records of new partitions."""

    __slots__ = ("error", "first", "name", "records", "topic_id")

    def __init__(self, name: str) -> None:
        self.name = name
        self.error: KafkaError | None = None
        self.topic_id = bytes(16)
        self.first = 0  # the index of the first new partition
        self.records: list[Record] = []


def plan(topics: Sequence[Any], image: Image, place: Callable[[int], list[bytes]]) -> list[Grown]:
    """One Grown a topic, in the request's order. `place(count)`: directories for that many partitions.

    Kafka collects the records of a request in a list of 10,000: the topic that overflows it fails, and all
    that need room after it. (Kafka then writes what the list holds all the same; here nothing of it is.)
    """
    room = MAX_RECORDS_IN_REQUEST
    planned = []
    for wanted in topics:
        grown = Grown(wanted.name)
        planned.append(grown)
        try:
            topic = image.topics.get(wanted.name)
            if topic is None:
                raise KafkaError(errors.UNKNOWN_TOPIC_OR_PARTITION)
            replicas = new_replicas(wanted, topic, image, room)
            grown.records = records_of(topic, replicas, image, place)
        except KafkaError as error:
            grown.error = error
            if error.code == errors.UNKNOWN_SERVER_ERROR:
                room = 0
            continue
        grown.topic_id, grown.first = topic.id, len(topic.partitions)
        room -= len(grown.records)
    return planned


def new_replicas(wanted: Any, topic: Topic, image: Image, room: int) -> list[list[int]]:
    """The replicas of each new partition, or KafkaError."""
    present, factor = len(topic.partitions), len(topic.partitions[0].replicas)
    more = wanted.count - present
    if more == 0:
        raise KafkaError(errors.INVALID_PARTITIONS, f"Topic already has {present} partition(s).")
    if more < 0:
        raise KafkaError(
            errors.INVALID_PARTITIONS,
            f"The topic {topic.name} currently has {present} partition(s); {wanted.count} would not be an "
            "increase.",
        )
    assignments = wanted.assignments
    if assignments is not None:
        if len(assignments) != more:
            raise bad_assignment(
                f"Attempted to add {more} additional partition(s), but only {len(assignments)} "
                "assignment(s) were specified."
            )
        for assignment in assignments:
            check_assignment(assignment.broker_ids, image.brokers, factor)
    if more > room:
        raise KafkaError(errors.UNKNOWN_SERVER_ERROR)
    if assignments is not None:
        return [assignment.broker_ids for assignment in assignments]
    return [sorted(image.brokers)[:factor]] * more


def records_of(
    topic: Topic, replicas: list[list[int]], image: Image, place: Callable[[int], list[bytes]]
) -> list[Record]:
    version = features.partition_version(image.metadata_version)
    first = len(topic.partitions)
    records: list[Record] = []
    for number, (nodes, directory) in enumerate(zip(replicas, place(len(replicas)), strict=True)):
        record = PartitionRecord(
            partition_id=first + number,
            topic_id=topic.id,
            replicas=nodes,
            isr=nodes,
            leader=nodes[0],
            leader_epoch=0,
            partition_epoch=0,
            directories=[directory] if version >= 1 else [],
        )
        records.append((record, version))
    return records


def check_reassignment(image: Image, name: str, index: int, replicas: list[int] | None) -> None:
    """KafkaError where Kafka refuses to move a partition to these replicas (None: to end its move)."""
    topic = image.topics.get(name)
    if topic is None:
        raise KafkaError(errors.UNKNOWN_TOPIC_OR_PARTITION, f"Unable to find a topic named {name}.")
    if not 0 <= index < len(topic.partitions):
        raise KafkaError(errors.UNKNOWN_TOPIC_OR_PARTITION, f"Unable to find partition {name}:{index}.")
    if replicas is None:
        raise KafkaError(errors.NO_REASSIGNMENT_IN_PROGRESS)
    check_assignment(replicas, image.brokers, None)
