"""What a topic of CreateTopics comes to: its records and where its replicas go, or a refusal in Kafka's words."""

from __future__ import annotations

from typing import Any

import pytest

from pykafkad import errors
from pykafkad import messages as m
from pykafkad.cluster import partition_changes
from pykafkad.cluster.names import Names
from pykafkad.cluster.topic_creation import Planned, Planner
from pykafkad.config import BrokerConfig
from pykafkad.errors import KafkaError
from pykafkad.slices import finish
from tests.unit.test_image import image_with

FACTOR, COUNT = errors.INVALID_REPLICATION_FACTOR, errors.INVALID_PARTITIONS
ASSIGNMENT, POLICY = errors.INVALID_REPLICA_ASSIGNMENT, errors.POLICY_VIOLATION
BAD_FACTOR = "Replication factor must be larger than 0, or -1 to use the default value."
BAD_COUNT = "Number of partitions was set to an invalid non-positive value."
NOT_UNSET = "A manual partition assignment was specified, but {} was not set to -1."
CORDONED = (
    "Unable to replicate the partition 1 time(s): All brokers are currently fenced, or have all their log"
    " directories cordoned."
)
TOO_FEW = (
    "Unable to replicate the partition {0} time(s): The target replication factor of {0} cannot be reached because"
    " only 3 broker(s) are registered or some brokers have all their log directories cordoned."
)
GAPS = "partitions should be a consecutive 0-based integer sequence"


def directory(number: int) -> bytes:
    return (number + 1).to_bytes(16)


class Plans:
    """Of a cluster of brokers 1 to 3, with a topic `there`."""

    def __init__(self, level: int = 30, elr: bool = True, **properties: str) -> None:
        texts = {key.replace("_", "."): text for key, text in properties.items()}
        brokers = [m.RegisterBrokerRecord(broker_id=each, broker_epoch=1) for each in (3, 1, 2)]
        levels = {"metadata.version": level, "eligible.leader.replicas.version": int(elr)}
        features = [m.FeatureLevelRecord(name=name, feature_level=each) for name, each in levels.items()]
        self.image = image_with(*features, *brokers, m.TopicRecord(name="the.re", topic_id=directory(9)))
        self.placed: list[int] = []
        config = BrokerConfig.from_sources({"log.dirs": "/a,/b", **texts})
        self.planner = Planner(config, self.image, Names(self.image), self.place)

    def place(self, count: int) -> list[bytes]:
        self.placed.append(count)
        return [directory(number) for number in range(count)]

    def all(self, *topics: Any) -> list[Planned]:
        return list(finish(self.planner.plan(topics)))

    def one(self, *arguments: Any, **fields: Any) -> Planned:
        (planned,) = self.all(asked(*arguments, **fields))
        return planned


def asked(
    name: str = "orders",
    partitions: int = 1,
    replicas: int = 1,
    configs: dict[str, str | None] | None = None,
    **assigned: list[int],
) -> Any:
    """`assigned`: the brokers of partition `p0`, `p1`…"""
    kind = m.CreateTopicsRequest
    rows = [
        kind.CreatableReplicaAssignment(partition_index=int(index[1:].split("_")[0]), broker_ids=brokers)
        for index, brokers in assigned.items()
    ]
    pairs = [kind.CreatableTopicConfig(name=key, value=value) for key, value in (configs or {}).items()]
    return kind.CreatableTopic(
        name=name, num_partitions=partitions, replication_factor=replicas, configs=pairs, assignments=rows
    )


def refusal(planned: Planned) -> tuple[int, str | None] | None:
    return None if planned.error is None else (planned.error.code, planned.error.text)


@pytest.mark.parametrize(
    ("partitions", "replicas", "properties", "refused"),
    [
        (1, 0, {}, (FACTOR, BAD_FACTOR)),
        (1, -2, {}, (FACTOR, BAD_FACTOR)),
        (1, -1, {"default_replication_factor": "0"}, (FACTOR, BAD_FACTOR)),
        (1, 1, {"default_replication_factor": "0"}, None),
        (1, -1, {"default_replication_factor": "3"}, None),
        (1, -1, {"default_replication_factor": "4"}, (FACTOR, TOO_FEW.format(4))),
        (1, 3, {}, None),
        (1, 4, {}, (FACTOR, TOO_FEW.format(4))),
        (0, 1, {}, (COUNT, BAD_COUNT)),
        (-2, 1, {}, (COUNT, BAD_COUNT)),
        (-1, 1, {}, None),
        (1, 1, {"cordoned_log_dirs": "*"}, (FACTOR, CORDONED)),
        (1, 1, {"cordoned_log_dirs": "/a,/b"}, (FACTOR, CORDONED)),
        (1, 1, {"cordoned_log_dirs": "/a"}, None),
    ],
)
def test_how_many_partitions_and_replicas_there_may_be(
    partitions: int, replicas: int, properties: dict[str, Any], refused: Any
) -> None:
    planned = Plans(**properties).one(partitions=partitions, replicas=replicas)
    assert refusal(planned) == refused
    if refused is not None:
        assert not planned.records and planned.topic_id == bytes(16)


@pytest.mark.parametrize(
    ("partitions", "replicas", "placed"),
    [(2, 2, [[1, 2], [1, 2]]), (-1, 1, [[1]] * 4), (1, -1, [[1, 2, 3]]), (-1, -1, [[1, 2, 3]] * 4)],
)
def test_partitions_are_placed_by_the_request_or_by_the_defaults(
    partitions: int, replicas: int, placed: list[list[int]]
) -> None:
    plans = Plans(num_partitions="4", default_replication_factor="3")
    planned = plans.one(partitions=partitions, replicas=replicas)
    assert (planned.replicas, plans.placed) == (placed, [len(placed)])


def test_a_single_node_has_fewer_replicas_and_says_so() -> None:
    plans = Plans(pykafkad_single_node="true")
    planned = plans.one(partitions=1, replicas=4)
    assert (planned.replicas, planned.fewer_than) == ([[1, 2, 3]], 4)
    assert plans.one(partitions=1, replicas=3).fewer_than == 0


@pytest.mark.parametrize(
    ("fields", "refused"),
    [
        ({"p0": [1, 2], "p1": [2, 3]}, None),
        ({"p1": [1], "p0": [2]}, None),
        ({"p0": [1], "replicas": 1}, (errors.INVALID_REQUEST, NOT_UNSET.format("replication factor"))),
        ({"p0": [1], "partitions": 1}, (errors.INVALID_REQUEST, NOT_UNSET.format("numPartitions"))),
        (
            {"p0": [1], "p0_again": [1]},
            (ASSIGNMENT, "Found multiple manual partition assignments for partition 0"),
        ),
        ({"p0": [1], "p2": [1]}, (ASSIGNMENT, GAPS)),
        ({"p1": [1]}, (ASSIGNMENT, GAPS)),
        (
            {"p0": []},
            (ASSIGNMENT, "The manual partition assignment includes an empty replica list."),
        ),
        (
            {"p0": [2, 1, 2]},
            (ASSIGNMENT, "The manual partition assignment includes the broker 2 more than once."),
        ),
        (
            {"p0": [3, 3, 2, 2]},
            (ASSIGNMENT, "The manual partition assignment includes the broker 2 more than once."),
        ),
        (
            {"p0": [1, 9, 5]},
            (
                ASSIGNMENT,
                "The manual partition assignment includes broker 5, but no such broker is registered.",
            ),
        ),
        (
            {"p0": [1], "p1": [1, 2]},
            (
                ASSIGNMENT,
                "The manual partition assignment includes a partition with 2 replica(s), but this is not"
                " consistent with previous partitions, which have 1 replica(s).",
            ),
        ),
    ],
)
def test_replicas_that_the_request_assigns(fields: dict[str, Any], refused: Any) -> None:
    planned = Plans().one(**{"partitions": -1, "replicas": -1, **fields})
    assert refusal(planned) == refused
    if refused is None:
        assert planned.replicas == [brokers for _, brokers in sorted(fields.items())]


@pytest.mark.parametrize(
    ("name", "code", "why"),
    [
        ("the.re", errors.TOPIC_ALREADY_EXISTS, "Topic 'the.re' already exists."),
        (
            "the_re",
            errors.INVALID_TOPIC_EXCEPTION,
            "Topic 'the_re' collides with existing topic: the.re",
        ),
        (
            "..",
            errors.INVALID_TOPIC_EXCEPTION,
            'Topic name is invalid: topic name cannot be "." or ".."',
        ),
    ],
)
def test_names_that_are_taken_or_are_none(name: str, code: int, why: str) -> None:
    found = refusal(Plans().one(name))
    assert found is not None and found[0] == code
    assert found[1] == why or code == errors.INVALID_TOPIC_EXCEPTION


@pytest.mark.parametrize(
    ("configs", "why"),
    [
        ({"retention.ms": "7"}, None),
        ({"retention.ms": "x"}, "Invalid value x for configuration retention.ms: Not a number of type LONG"),
        ({"retention.ms": "7", "flush.ms": None}, "Null value not supported for topic configs: flush.ms"),
    ],
)
def test_configs_are_checked(configs: dict[str, str | None], why: str | None) -> None:
    planned = Plans().one(configs=configs)
    assert refusal(planned) == (None if why is None else (errors.INVALID_CONFIG, why))
    assert planned.configs == ({} if why else configs)


def test_the_records_of_a_topic() -> None:
    plans = Plans()
    planned = plans.one(partitions=2, replicas=2, configs={"min.insync.replicas": "2"})
    topic, config, clear, *partitions = planned.records
    assert topic == (m.TopicRecord(name="orders", topic_id=planned.topic_id), 0)
    assert config[0].value == "2" and clear == (m.ClearElrRecord(topic_name="orders"), 0)
    expected: dict[str, Any] = {
        "topic_id": planned.topic_id,
        "replicas": [1, 2],
        "isr": [1, 2],
        "leader": 1,
        "leader_epoch": 0,
        "partition_epoch": 0,
    }
    assert partitions == [
        (m.PartitionRecord(partition_id=index, directories=[directory(index)], **expected), 2)
        for index in (0, 1)
    ]
    for record, _ in planned.records:
        plans.image.apply(record)


@pytest.mark.parametrize(
    ("level", "elr", "kinds", "version"),
    [(30, True, 4, 2), (30, False, 3, 2), (22, False, 3, 1), (16, False, 3, 0)],
)
def test_records_are_those_that_the_level_of_the_metadata_knows(
    level: int, elr: bool, kinds: int, version: int
) -> None:
    planned = Plans(level, elr).one(configs={"min.insync.replicas": "1"})
    record, of_version = planned.records[-1]
    assert (len(planned.records), of_version) == (kinds, version)
    assert record.directories == ([directory(0)] if version else [])


@pytest.mark.parametrize(
    ("counts", "refused"),
    [
        ((10_001,), "Excessively large number of partitions per request."),
        ((10_000,), "Unable to perform excessively large batch operation."),
        ((9_999,), None),
        ((5_000, 4_998), None),
        ((5_000, 4_999), "Unable to perform excessively large batch operation."),
        ((5_000, 5_001), "Excessively large number of partitions per request."),
        ((10_000, -5), "Unable to perform excessively large batch operation."),
    ],
)
def test_a_request_makes_ten_thousand_partitions_and_records_at_most(
    counts: tuple[int, ...], refused: str | None
) -> None:
    plans = Plans()
    planned = plans.all(*(asked(f"t{number}", count) for number, count in enumerate(counts)))
    assert [each.name for each in planned] == [f"t{number}" for number in range(len(counts))]
    expected = None if refused is None else (POLICY, refused)
    assert {refusal(each) for each in planned} == {expected}
    assert plans.placed == ([] if refused else [sum(counts)])


def test_each_topic_of_a_request_is_refused_for_itself() -> None:
    plans = Plans()
    good, bad, other = plans.all(asked("a", 2), asked("b", 0), asked("c", 1))
    assert (refusal(good), refusal(bad), refusal(other)) == (None, (COUNT, BAD_COUNT), None)
    found = [record.directories for record, _ in (*good.records[1:], *other.records[1:])]
    assert found == [[directory(0)], [directory(1)], [directory(2)]] and plans.placed == [3]
    assert good.topic_id != other.topic_id


# -- more partitions for a topic, and other replicas


def grown(count: int, assigned: list[list[int]] | None = None, replicas: tuple[int, ...] = (2, 1)) -> Any:
    """What becomes of a topic of two partitions that is to have `count`."""
    image = Plans().image
    for index in range(2):
        record = m.PartitionRecord(partition_id=index, topic_id=directory(9), replicas=list(replicas))
        image.apply(record)
    kind = m.CreatePartitionsRequest
    rows = None
    if assigned is not None:
        rows = [kind.CreatePartitionsAssignment(broker_ids=each) for each in assigned]
    wanted = [kind.CreatePartitionsTopic(name="the.re", count=count, assignments=rows)]
    (found,) = finish(partition_changes.plan(wanted, image, lambda count: list(map(directory, range(count)))))
    return found


@pytest.mark.parametrize(
    ("count", "assigned", "code", "why"),
    [
        (2, None, COUNT, "Topic already has 2 partition(s)."),
        (
            1,
            None,
            COUNT,
            "The topic the.re currently has 2 partition(s); 1 would not be an increase.",
        ),
        (
            4,
            [[1, 2]],
            ASSIGNMENT,
            "Attempted to add 2 additional partition(s), but only 1 assignment(s) were specified.",
        ),
        (
            3,
            [[1]],
            ASSIGNMENT,
            "The manual partition assignment includes a partition with 1 replica(s), but this is not"
            " consistent with previous partitions, which have 2 replica(s).",
        ),
        (10_003, None, errors.UNKNOWN_SERVER_ERROR, None),
    ],
)
def test_a_topic_that_cannot_grow_so(
    count: int, assigned: list[list[int]] | None, code: int, why: str | None
) -> None:
    found = grown(count, assigned)
    assert found.error.code == code and (why is None or found.error.text == why)
    assert not found.records


def test_a_topic_grows_as_it_is_asked_or_as_it_is() -> None:
    for found, nodes in ((grown(4), [[1, 2], [1, 2]]), (grown(4, [[3, 1], [2, 3]]), [[3, 1], [2, 3]])):
        assert found.error is None and (found.topic_id, found.first) == (directory(9), 2)
        assert [(record.partition_id, record.replicas) for record, _ in found.records] == [
            (2, nodes[0]),
            (3, nodes[1]),
        ]
        assert [record.directories for record, _ in found.records] == [[directory(0)], [directory(1)]]
        assert {version for _, version in found.records} == {2}
    assert len(grown(10_002).records) == 10_000


@pytest.mark.parametrize(
    ("name", "index", "replicas", "refused"),
    [
        ("the.re", 0, [3, 1], None),
        ("the.re", 0, None, (errors.NO_REASSIGNMENT_IN_PROGRESS, None)),
        ("the.re", 1, [1], (errors.UNKNOWN_TOPIC_OR_PARTITION, "Unable to find partition the.re:1.")),
        ("the.re", -1, [1], (errors.UNKNOWN_TOPIC_OR_PARTITION, "Unable to find partition the.re:-1.")),
        ("no", 0, [1], (errors.UNKNOWN_TOPIC_OR_PARTITION, "Unable to find a topic named no.")),
        (
            "the.re",
            0,
            [4],
            (
                ASSIGNMENT,
                "The manual partition assignment includes broker 4, but no such broker is registered.",
            ),
        ),
    ],
)
def test_where_a_partition_may_go(name: str, index: int, replicas: list[int] | None, refused: Any) -> None:
    image = Plans().image
    image.apply(m.PartitionRecord(partition_id=0, topic_id=directory(9), replicas=[1]))
    found = None
    try:
        finish(partition_changes.check_reassignment(image, name, index, replicas))
    except KafkaError as error:
        found = error.code, error.message
    assert found == refused
