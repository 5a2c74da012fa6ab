"""What is asked of topics in a cluster on ZooKeeper: checked in Kafka 3.9's order and words, and which replicas result.

Nothing here writes or waits. What a topic may be called, and be configured as, is as on a single node; where its
replicas go is decided among the live brokers.
"""

from __future__ import annotations

from pykafkad import errors
from pykafkad.cluster.topic_creation import NOT_SET, Planned, Planner
from pykafkad.errors import KafkaError
from pykafkad.pure.replica_placement import Placement
from pykafkad.slices import GO_ON
from pykafkad.uuids import ZERO

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from pykafkad.cluster.image import Image
    from pykafkad.cluster.topic_creation import Names
    from pykafkad.config import BrokerConfig
    from pykafkad.messages import CreatePartitionsRequest, CreateTopicsRequest
    from pykafkad.slices import Work
    from pykafkad.zookeeper.znodes import Assignment

MAX_PARTITIONS = 10_000  # new ones of a request

NO_PARTITIONS = "Number of partitions must be larger than 0."
NO_REPLICAS = "Replication factor must be larger than 0."
NO_RACKS = "Not all brokers have rack information for replica rack aware assignment."


class ClusterPlanner(Planner):
    """`random(n)`: one of the numbers below n, for where a new topic's first round begins."""

    def __init__(
        self, config: BrokerConfig, image: Image, names: Names, random: Callable[[int], int]
    ) -> None:
        super().__init__(config, image, names, lambda count: [])
        self._random = random

    def _placed(self, topic: CreateTopicsRequest.CreatableTopic, planned: Planned) -> list[list[int]]:
        count = (
            int(self._config["num.partitions"]) if topic.num_partitions == NOT_SET else topic.num_partitions
        )
        factor = topic.replication_factor
        factor = int(self._config["default.replication.factor"]) if factor == NOT_SET else factor
        racks = racks_of(self._image)
        if count <= 0:
            raise KafkaError(errors.INVALID_PARTITIONS, NO_PARTITIONS)
        check_factor(factor, racks)
        placement = Placement(racks, factor, self._random(len(racks)), self._random(len(racks)))
        return list(placement.partitions(0, count))

    def _add_records(self, planned: Planned, directories: Iterator[bytes]) -> Work:
        """None: the topic becomes znodes."""
        yield GO_ON


def check_factor(factor: int, racks: dict[int, str | None]) -> None:
    if factor <= 0:
        raise KafkaError(errors.INVALID_REPLICATION_FACTOR, NO_REPLICAS)
    if factor > len(racks):
        why = f"Replication factor: {factor} larger than available brokers: {len(racks)}."
        raise KafkaError(errors.INVALID_REPLICATION_FACTOR, why)
    if len({rack is None for rack in racks.values()}) > 1:
        raise KafkaError(errors.UNKNOWN_SERVER_ERROR, NO_RACKS)


def racks_of(image: Image) -> dict[int, str | None]:
    return {broker.id: broker.rack for broker in image.brokers.values()}


class Grown:
    """What one topic of a CreatePartitions request comes to: an error, or the replicas of new partitions."""

    __slots__ = ("error", "first", "name", "replicas", "topic_id")

    def __init__(self, name: str) -> None:
        self.name = name
        self.error: KafkaError | None = None
        self.topic_id = ZERO
        self.first = 0  # the index of the first new partition
        self.replicas: list[list[int]] = []


def grow(
    wanted: CreatePartitionsRequest.CreatePartitionsTopic, grown: Grown, assignment: Assignment, image: Image
) -> Work:
    """Fill in the replicas; KafkaError where the topic cannot have these partitions."""
    if any(each.is_reassigned for each in assignment.partitions.values()):
        why = f"A partition reassignment is in progress for the topic '{wanted.name}'."
        raise KafkaError(errors.REASSIGNMENT_IN_PROGRESS, why)
    there = len(assignment.partitions)
    more = wanted.count - there
    if more < 0:
        why = f"Topic currently has {there} partitions, which is higher than the requested {wanted.count}."
        raise KafkaError(errors.INVALID_PARTITIONS, why)
    if more == 0:
        raise KafkaError(errors.INVALID_PARTITIONS, f"Topic already has {there} partitions.")
    if more > MAX_PARTITIONS:
        why = "Excessively large number of partitions per request."
        raise KafkaError(errors.POLICY_VIOLATION, why)
    grown.topic_id, grown.first = assignment.topic_id, there
    racks, like = racks_of(image), list(assignment.partitions[0].replicas)
    if wanted.assignments is not None:
        yield from check_assignments(wanted.assignments, racks, more, there, len(like))
        grown.replicas = [list(each.broker_ids) for each in wanted.assignments]
        return
    check_factor(len(like), racks)
    start = next((place for place, broker in enumerate(sorted(racks)) if broker >= like[0]), 0)
    grown.replicas = list(Placement(racks, len(like), start, start).partitions(there, more))


def check_assignments(
    assignments: Sequence[CreatePartitionsRequest.CreatePartitionsAssignment],
    racks: dict[int, str | None],
    more: int,
    first: int,
    factor: int,
) -> Work:
    """In Kafka's order: brokers that do not live, how many, then each for itself, and last how many replicas."""
    if len(assignments) != more:
        why = f"Increasing the number of partitions by {more} but {len(assignments)} assignments provided."
        raise bad(why)
    most = len(racks) + 1  # of a longer list, one is unknown or named twice
    for each in assignments:
        unknown = {broker for broker in each.broker_ids[:most] if broker not in racks}
        if unknown:
            raise bad(f"Unknown broker(s) in replica assignment: {', '.join(map(str, sorted(unknown)))}.")
        yield
    for index, each in enumerate(assignments, first):
        replicas = each.broker_ids[:most]
        if not replicas:
            raise bad(f"Cannot have replication factor of 0 for partition id {index}.")
        if len(set(replicas)) != len(replicas):
            shown = ", ".join(map(str, replicas))
            raise bad(
                f"Duplicate brokers not allowed in replica assignment: {shown} for partition id {index}."
            )
        yield
    counts = [(index, len(each.broker_ids)) for index, each in enumerate(assignments, first)]
    odd = [(index, count) for index, count in counts if count != factor]
    if odd:
        raise bad(
            f"Inconsistent replication factor between partitions, partition 0 has {factor} while partitions "
            f"[{', '.join(str(index) for index, _ in odd)}] have replication factors "
            f"[{', '.join(str(count) for _, count in odd)}], respectively."
        )


def bad(text: str) -> KafkaError:
    return KafkaError(errors.INVALID_REPLICA_ASSIGNMENT, text)
