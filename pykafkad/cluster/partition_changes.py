"""Changes to partitions of topics that exist: more of them (CreatePartitions), and other replicas for them
(AlterPartitionReassignments, KIP-455).

Nothing here writes or waits: checks, in Kafka's order and words, and the records that result. A node alone
has one valid list of replicas, its own, which is what every partition has: so a reassignment is refused or
changes nothing.
"""

from __future__ import annotations

from pykafkad import errors
from pykafkad.cluster import features
from pykafkad.cluster.topic_creation import (
    MAX_RECORDS_IN_REQUEST,
    bad_assignment,
    check_assignment,
    partition_record,
)
from pykafkad.errors import KafkaError
from pykafkad.uuids import ZERO

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from pykafkad.cluster.image import Image, Topic
    from pykafkad.cluster.metadata_records import Record
    from pykafkad.messages import CreatePartitionsRequest
    from pykafkad.slices import Work


class Grown:
    """What one topic of a CreatePartitions request comes to: an error, or the records of new partitions."""

    __slots__ = ("error", "first", "name", "records", "topic_id")

    def __init__(self, name: str) -> None:
        self.name = name
        self.error: KafkaError | None = None
        self.topic_id = ZERO
        self.first = 0  # the index of the first new partition
        self.records: list[Record] = []


def plan(
    topics: Sequence[CreatePartitionsRequest.CreatePartitionsTopic],
    image: Image,
    place: Callable[[int], list[bytes]],
) -> Work[list[Grown]]:
    """One Grown a topic, in the request's order. `place(count)`: directories for that many partitions.

    Kafka collects the records of a request in a list of 10,000: the topic that overflows it fails, and all
    that need room after it. (Kafka then writes what the list holds all the same; here nothing of it is.)
    """
    room = MAX_RECORDS_IN_REQUEST
    planned: list[Grown] = []
    replicas: dict[str, list[list[int]]] = {}  # of the new partitions
    for wanted in topics:
        grown = Grown(wanted.name)
        planned.append(grown)
        try:
            topic = image.topics.get(wanted.name)
            if topic is None:
                raise KafkaError(errors.UNKNOWN_TOPIC_OR_PARTITION)
            grown.topic_id, grown.first = topic.id, len(topic.partitions)
            new = yield from new_replicas(wanted, topic, image, room)
            replicas[grown.name] = new
            room -= len(new)
        except KafkaError as error:
            grown.error = error.alone()
            if error.code == errors.UNKNOWN_SERVER_ERROR:
                room = 0
        yield
    version = features.partition_version(image.metadata_version)
    directories = iter(place(sum(map(len, replicas.values()))))
    for grown in planned:
        for number, nodes in enumerate(replicas.get(grown.name, ())):
            index, directory = grown.first + number, next(directories)
            grown.records.append(
                (partition_record(grown.topic_id, index, nodes, directory, version), version)
            )
            yield
    return planned


def new_replicas(
    wanted: CreatePartitionsRequest.CreatePartitionsTopic, topic: Topic, image: Image, room: int
) -> Work[list[list[int]]]:
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
            yield from check_assignment(assignment.broker_ids, image.brokers, factor)
    if more > room:
        raise KafkaError(errors.UNKNOWN_SERVER_ERROR)
    if assignments is not None:
        return [assignment.broker_ids for assignment in assignments]
    return [sorted(image.brokers)[:factor]] * more


def check_reassignment(image: Image, name: str, index: int, replicas: list[int] | None) -> Work:
    """KafkaError where Kafka refuses to move a partition to these replicas (None: to end its move)."""
    topic = image.topics.get(name)
    if topic is None:
        raise KafkaError(errors.UNKNOWN_TOPIC_OR_PARTITION, f"Unable to find a topic named {name}.")
    if not 0 <= index < len(topic.partitions):
        raise KafkaError(errors.UNKNOWN_TOPIC_OR_PARTITION, f"Unable to find partition {name}:{index}.")
    if replicas is None:
        raise KafkaError(errors.NO_REASSIGNMENT_IN_PROGRESS)
    yield from check_assignment(replicas, image.brokers, None)
