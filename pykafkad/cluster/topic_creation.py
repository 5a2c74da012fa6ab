"""Creating topics: what is refused, in which order and in which words (all of it Kafka's), and which
records result.

Nothing here writes or waits: `plan` looks at the names taken, in slices of the loop, and returns what each topic comes
to. The order of a topic's records is Kafka's: Topic, its Configs, ClearElr where min.insync.replicas is set, its
Partitions. Invariant: numbers that a request names are checked before anything of their size is made.
"""

from __future__ import annotations

from pykafkad import config_single_node, errors
from pykafkad.cluster import features, topic_names
from pykafkad.cluster.image import TOPIC_RESOURCE, Image
from pykafkad.cluster.metadata_records import config_record
from pykafkad.cluster.topic_configs import why_refused
from pykafkad.errors import KafkaError
from pykafkad.messages import ClearElrRecord, PartitionRecord, TopicRecord
from pykafkad.slices import chunks
from pykafkad.uuids import ZERO, random_uuid

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Container, Iterator, Sequence
    from typing import Protocol, TypeVar

    from pykafkad.cluster.metadata_records import Record
    from pykafkad.config import BrokerConfig
    from pykafkad.messages import CreatePartitionsRequest, CreateTopicsRequest
    from pykafkad.slices import Work

    Named = CreateTopicsRequest.CreatableTopic | CreatePartitionsRequest.CreatePartitionsTopic

    class Result(Protocol):
        """What a topic of a request came to."""

        error: KafkaError | None

        def __init__(self, name: str) -> None: ...

    Outcome = TypeVar("Outcome", bound=Result)

    class Names(Protocol):
        """The topics there are, with what is about to be created and without what is about to be deleted."""

        def exists(self, name: str) -> bool: ...
        def collides_with(self, name: str) -> str | None: ...


MAX_PARTITIONS_IN_REQUEST = 10_000
MAX_RECORDS_IN_REQUEST = 10_000
NOT_SET = -1

TOO_MANY_PARTITIONS = "Excessively large number of partitions per request."
TOO_MANY_RECORDS = "Unable to perform excessively large batch operation."


class Planned:
    """What one topic of a request comes to: an error, or records."""

    __slots__ = ("clears_elr", "configs", "error", "fewer_than", "name", "records", "replicas", "topic_id")

    def __init__(self, name: str) -> None:
        self.name = name
        self.error: KafkaError | None = None
        self.topic_id = ZERO
        self.configs: dict[str, str] = {}
        self.clears_elr = False  # min.insync.replicas counts anew
        self.replicas: list[list[int]] = []  # of each partition
        self.fewer_than = 0  # the replication factor that was asked for, where --single-node made it less
        self.records: list[Record] = []


class Planner:
    """`place(count)`: the log directories (ids) of that many new partitions."""

    def __init__(
        self, config: BrokerConfig, image: Image, names: Names, place: Callable[[int], list[bytes]]
    ) -> None:
        self._config = config
        self._image = image
        self._names = names
        self._place = place

    def plan(self, topics: Sequence[CreateTopicsRequest.CreatableTopic]) -> Work[list[Planned]]:
        """One Planned a topic, in the request's order. Topics of a request do not see each other's names."""
        wanted = 0
        for some in chunks(topics):
            wanted += sum(map(self._partitions_wanted, some))
            yield
        if wanted > MAX_PARTITIONS_IN_REQUEST:
            return (
                yield from refused(topics, KafkaError(errors.POLICY_VIOLATION, TOO_MANY_PARTITIONS), Planned)
            )
        planned = []
        for topic in topics:
            planned.append((yield from self._plan(topic)))
            yield
        good = [topic for topic in planned if topic.error is None]
        if sum(map(records_wanted, good)) > MAX_RECORDS_IN_REQUEST:
            return (
                yield from refused(topics, KafkaError(errors.POLICY_VIOLATION, TOO_MANY_RECORDS), Planned)
            )
        directories = iter(self._place(sum(len(topic.replicas) for topic in good)))
        for each in good:
            each.topic_id = random_uuid()
            yield from self._add_records(each, directories)
        return planned

    def _partitions_wanted(self, topic: CreateTopicsRequest.CreatableTopic) -> int:
        """0 for a negative number, which is refused later. (Kafka's sum is an int, so it may get past 2^31: it runs
        out of memory then.)"""
        if topic.assignments:
            return len(topic.assignments)
        if topic.num_partitions == NOT_SET:
            return int(self._config["num.partitions"])
        return max(0, int(topic.num_partitions))

    def _plan(self, topic: CreateTopicsRequest.CreatableTopic) -> Work[Planned]:
        planned = Planned(topic.name)
        try:
            self._check_name(topic.name)
            if topic.configs:
                planned.configs = yield from self._checked_configs(topic)
            if topic.assignments:
                planned.replicas = yield from self._assigned(topic)
            else:
                planned.replicas = self._placed(topic, planned)
            planned.clears_elr = "min.insync.replicas" in planned.configs and self._image.elr_enabled
        except KafkaError as error:
            planned.error = error.alone()
        return planned

    def _check_name(self, name: str) -> None:
        if self._names.exists(name):
            raise KafkaError(errors.TOPIC_ALREADY_EXISTS, f"Topic '{name}' already exists.")
        problem = topic_names.why_invalid(name)
        if problem is not None:
            raise KafkaError(errors.INVALID_TOPIC_EXCEPTION, problem)
        other = self._names.collides_with(name)
        if other is not None:
            raise KafkaError(
                errors.INVALID_TOPIC_EXCEPTION, f"Topic '{name}' collides with existing topic: {other}"
            )

    def _checked_configs(self, topic: CreateTopicsRequest.CreatableTopic) -> Work[dict[str, str]]:
        wanted: dict[str, str | None] = {}
        for some in chunks(topic.configs):
            wanted.update((item.name, item.value) for item in some)
            yield
        problem = why_refused(self._config, wanted)
        if problem is not None:
            raise KafkaError(errors.INVALID_CONFIG, problem)
        given = {name: value for name, value in wanted.items() if value is not None}
        return config_single_node.lowered(given) if self._config.single_node else given

    # -- where the replicas go

    def _placed(self, topic: CreateTopicsRequest.CreatableTopic, planned: Planned) -> list[list[int]]:
        """The replicas of each partition where the request assigns none, or KafkaError."""
        factor, count = topic.replication_factor, topic.num_partitions
        default = int(self._config["default.replication.factor"])  # which Kafka lets be anything
        if factor < NOT_SET or factor == 0 or (factor == NOT_SET and default <= 0):
            raise KafkaError(
                errors.INVALID_REPLICATION_FACTOR,
                "Replication factor must be larger than 0, or -1 to use the default value.",
            )
        if count < NOT_SET or count == 0:
            raise KafkaError(
                errors.INVALID_PARTITIONS, "Number of partitions was set to an invalid non-positive value."
            )
        factor = default if factor == NOT_SET else factor
        count = int(self._config["num.partitions"]) if count == NOT_SET else count
        brokers = sorted(self._image.brokers)
        if self._is_cordoned():
            raise KafkaError(
                errors.INVALID_REPLICATION_FACTOR,
                f"Unable to replicate the partition {factor} time(s): All brokers are currently fenced, or "
                "have all their log directories cordoned.",
            )
        if factor > len(brokers) and self._config.single_node:
            planned.fewer_than, factor = factor, len(brokers)
        if factor > len(brokers):
            raise KafkaError(
                errors.INVALID_REPLICATION_FACTOR,
                f"Unable to replicate the partition {factor} time(s): The target replication factor of "
                f"{factor} cannot be reached because only {len(brokers)} broker(s) are registered or some "
                "brokers have all their log directories cordoned.",
            )
        return [brokers[:factor]] * count

    def _is_cordoned(self) -> bool:
        """Whether no log directory takes new partitions (KIP-1066)."""
        cordoned = self._config["cordoned.log.dirs"]
        return bool(cordoned) and (cordoned == ["*"] or not set(self._config.log_dirs) - set(cordoned))

    def _assigned(self, topic: CreateTopicsRequest.CreatableTopic) -> Work[list[list[int]]]:
        for field, value in (
            ("replication factor", topic.replication_factor),
            ("numPartitions", topic.num_partitions),
        ):
            if value != NOT_SET:
                raise KafkaError(
                    errors.INVALID_REQUEST,
                    f"A manual partition assignment was specified, but {field} was not set to -1.",
                )
        assigned: dict[int, list[int]] = {}
        expected = None
        for assignment in topic.assignments:
            if assignment.partition_index in assigned:
                raise bad_assignment(
                    f"Found multiple manual partition assignments for partition {assignment.partition_index}"
                )
            yield from check_assignment(assignment.broker_ids, self._image.brokers, expected)
            assigned[assignment.partition_index] = assignment.broker_ids
            expected = expected or len(assignment.broker_ids)
            yield
        if set(assigned) != set(range(len(assigned))):
            raise bad_assignment("partitions should be a consecutive 0-based integer sequence")
        return [assigned[index] for index in range(len(assigned))]

    # -- records

    def _add_records(self, planned: Planned, directories: Iterator[bytes]) -> Work:
        name, topic_id, records = planned.name, planned.topic_id, planned.records
        version = features.partition_version(self._image.metadata_version)
        records.append((TopicRecord(name=name, topic_id=topic_id), 0))
        for key, value in planned.configs.items():
            records.append((config_record(TOPIC_RESOURCE, name, key, value), 0))
        if planned.clears_elr:
            records.append((ClearElrRecord(topic_name=name), 0))
        for index, (replicas, directory) in enumerate(zip(planned.replicas, directories, strict=False)):
            records.append((partition_record(topic_id, index, replicas, directory, version), version))
            yield


def records_wanted(planned: Planned) -> int:
    return 1 + len(planned.configs) + planned.clears_elr + len(planned.replicas)


def partition_record(
    topic_id: bytes, index: int, replicas: list[int], directory: bytes, version: int
) -> PartitionRecord:
    """Of a new partition."""
    return PartitionRecord(
        partition_id=index,
        topic_id=topic_id,
        replicas=replicas,
        isr=replicas,
        leader=replicas[0],
        leader_epoch=0,
        partition_epoch=0,
        directories=[directory] if version >= 1 else [],
    )


def check_assignment(replicas: Sequence[int], brokers: Container[int], expected: int | None) -> Work:
    """KafkaError for replicas that a partition cannot have; `expected`: how many its siblings have. Kafka names the
    smallest id that is wrong, as it sorts them; here they are not, since sorting holds the loop."""
    if not replicas:
        raise bad_assignment("The manual partition assignment includes an empty replica list.")
    seen: set[int] = set()
    wrong: set[int] = set()
    for some in chunks(replicas):
        for broker in some:
            if broker in seen or broker not in brokers:
                wrong.add(broker)
            seen.add(broker)
        wrong = {min(wrong)} if wrong else wrong
        yield
    if wrong:
        (broker,) = wrong
        raise bad_assignment(
            f"The manual partition assignment includes the broker {broker} more than once."
            if broker in brokers
            else f"The manual partition assignment includes broker {broker}, but no such broker is registered."
        )
    if expected is not None and expected != len(replicas):
        raise bad_assignment(
            f"The manual partition assignment includes a partition with {len(replicas)} replica(s), but "
            f"this is not consistent with previous partitions, which have {expected} replica(s)."
        )


def bad_assignment(text: str) -> KafkaError:
    return KafkaError(errors.INVALID_REPLICA_ASSIGNMENT, text)


def refused(topics: Sequence[Named], error: KafkaError, kind: type[Outcome]) -> Work[list[Outcome]]:
    """All of them, for the same reason: a Planned or a Grown each."""
    planned: list[Outcome] = []
    for some in chunks(topics):
        for topic in some:
            planned.append(kind(topic.name))
            planned[-1].error = error
        yield
    return planned
