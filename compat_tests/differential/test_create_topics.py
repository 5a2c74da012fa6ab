"""CreateTopics: names, counts, assignments, configs, and the messages for invalid ones."""

from __future__ import annotations

from typing import Any

import pytest

from compat_tests.differential.pair import Pair
from compat_tests.differential.requests import creatable, create
from compat_tests.differential.versions import at_every_version
from pykafkad.messages import CreateTopicsRequest

BAD_NAMES = ["", ".", "..", "a b", "a/b", "é", "a\0b", "a" * 250, "a" * 10_000, "a,b", "\t", "😀"]
COUNTS = [
    (1, 1),
    (3, 1),
    (0, 1),
    (-1, 1),
    (-2, 1),
    (1, 0),
    (1, -1),
    (-1, -1),
    (1, -2),
    (1, 2),
    (5, 3),
    (1, 32767),
]
ASSIGNMENTS: list[dict[int, list[int]]] = [
    {0: [1]},
    {0: [1], 1: [1]},
    {1: [1]},
    {0: [1], 2: [1]},
    {-1: [1]},
    {0: []},
    {0: [1], 1: []},
    {0: [2]},
    {0: [1, 1]},
    {0: [1, 2]},
    {0: [1], 1: [2]},
    {0: [-1]},
    {0: [2, 2]},
]
TOPIC_CONFIGS = [
    "cleanup.policy",
    "compression.gzip.level",
    "compression.lz4.level",
    "compression.type",
    "compression.zstd.level",
    "delete.retention.ms",
    "file.delete.delay.ms",
    "flush.messages",
    "flush.ms",
    "follower.replication.throttled.replicas",
    "index.interval.bytes",
    "leader.replication.throttled.replicas",
    "local.retention.bytes",
    "local.retention.ms",
    "max.compaction.lag.ms",
    "max.message.bytes",
    "message.timestamp.after.max.ms",
    "message.timestamp.before.max.ms",
    "message.timestamp.type",
    "min.cleanable.dirty.ratio",
    "min.compaction.lag.ms",
    "min.insync.replicas",
    "preallocate",
    "remote.log.copy.disable",
    "remote.log.delete.on.disable",
    "remote.storage.enable",
    "retention.bytes",
    "retention.ms",
    "segment.bytes",
    "segment.index.bytes",
    "segment.jitter.ms",
    "segment.ms",
    "unclean.leader.election.enable",
    "internal.segment.bytes",
    "message.downconversion.enable",
    "message.format.version",
    "no.such.config",
    "",
]
VALUES = [
    "", " ", "abc", "true", "TRUE", "false", "no", "0", "-0", "+1", "1", "-1", "-2", "-3", "5", "10",
    "22", "23", "1.5", "0.5", "1.0", "1e3", "0x10", " 7 ", "1000000", "2147483647", "2147483648",
    "9223372036854775807", "9223372036854775808", "-9223372036854775808", "delete", "compact",
    "compact,delete", "delete,delete", "delete,abc", ",", "DELETE", "gzip", "producer", "uncompressed",
    "zstd", "none", "CreateTime", "LogAppendTime", "createtime", "*", "0:1", "0:1,1:1", "0:1,", "1:2:3",
    "NaN", "Infinity", "1_000", "１",
]  # fmt: skip


@at_every_version("CreateTopics")
def test_a_topic(pair: Pair, version: int) -> None:
    name = pair.new_name("created")
    pair.same(create(creatable(name)), version)
    pair.same(create(creatable(name)), version)
    pair.same(create(creatable(name), validate_only=True), version)


@at_every_version("CreateTopics")
def test_to_validate_only_makes_nothing(pair: Pair, version: int) -> None:
    name = pair.new_name("validated")
    for _ in range(2):
        pair.same(create(creatable(name, num_partitions=3), validate_only=True), version)


@at_every_version("CreateTopics")
@pytest.mark.parametrize("name", BAD_NAMES, ids=lambda name: name[:10])
def test_bad_names(pair: Pair, version: int, name: str) -> None:
    pair.same(create(creatable(name)), version)
    pair.same(create(creatable(pair.new_name("beside-bad")), creatable(name), validate_only=True), version)


@at_every_version("CreateTopics")
def test_names_that_collide(pair: Pair, version: int) -> None:
    stem = pair.new_name("collide")
    pair.same(create(creatable(f"{stem}.one_two")), version)
    pair.same(create(creatable(f"{stem}_one.two")), version)
    pair.same(create(creatable(f"{stem}_one_two"), validate_only=True), version)
    pair.same(create(creatable(f"{stem}.x_y"), creatable(f"{stem}_x.y"), validate_only=True), version)


@at_every_version("CreateTopics")
@pytest.mark.parametrize(
    "name", ["__consumer_offsets", "__transaction_state", "__cluster_metadata", "__share_group_state"]
)
def test_names_of_internal_topics(pair: Pair, version: int, name: str) -> None:
    pair.same(create(creatable(name), validate_only=True), version)


@at_every_version("CreateTopics")
@pytest.mark.parametrize(("partitions", "replicas"), COUNTS)
def test_counts(pair: Pair, version: int, partitions: int, replicas: int) -> None:
    name = pair.new_name("counts")
    topic = creatable(name, num_partitions=partitions, replication_factor=replicas)
    pair.same(create(topic), version)


@at_every_version("CreateTopics", since=7)
@pytest.mark.parametrize("partitions", [9_999, 10_000, 10_001, 1_000_000, 2**31 - 1])
def test_too_many_partitions_at_once(pair: Pair, version: int, partitions: int) -> None:
    topic = creatable(pair.new_name("many"), num_partitions=partitions)
    pair.same(create(topic, validate_only=True), version)
    half = [creatable(pair.new_name("many"), num_partitions=5_001) for _ in range(2)]
    pair.same(create(*half, validate_only=True), version)


@at_every_version("CreateTopics")
@pytest.mark.parametrize(
    "counts",
    [
        (2**31 - 1, -(2**31)),
        (10_001, -10_000),
        (9_999, -(2**31), 0),
        (9_999, 2, -5),
        (10_000, -1, 0),
        (9_999, -1),
        (0, -2, 1),
    ],
    ids=str,
)
def test_negative_counts_make_up_for_nothing(pair: Pair, version: int, counts: tuple[int, ...]) -> None:
    topics = [creatable(pair.new_name("summed"), num_partitions=count) for count in counts]
    pair.same(create(*topics, validate_only=True), version)


@at_every_version("CreateTopics", since=7)
def test_assignments_count_as_partitions(pair: Pair, version: int) -> None:
    kind = CreateTopicsRequest.CreatableReplicaAssignment
    topic = creatable(pair.new_name("summed"), num_partitions=-1, replication_factor=-1)
    topic.assignments = [kind(partition_index=index, broker_ids=[1]) for index in range(9_000)]
    pair.same(
        create(topic, creatable(pair.new_name("summed"), num_partitions=900), validate_only=True), version
    )
    pair.same(
        create(topic, creatable(pair.new_name("summed"), num_partitions=1_001), validate_only=True), version
    )


@at_every_version("CreateTopics", since=7)
@pytest.mark.parametrize(
    "brokers",
    [list(range(500, 0, -1)), [1] * 500, [7, 3, 9, 3], [9, 1, 5, 1], [1, -7, 0], [2**31 - 1, -(2**31)]],
)
def test_the_smallest_wrong_broker_is_named(pair: Pair, version: int, brokers: list[int]) -> None:
    topic = creatable(pair.new_name("assigned"), num_partitions=-1, replication_factor=-1)
    topic.assignments = [
        CreateTopicsRequest.CreatableReplicaAssignment(partition_index=0, broker_ids=brokers)
    ]
    pair.same(create(topic, validate_only=True), version)


@at_every_version("CreateTopics")
def test_many_names_twice_and_many_bad_ones(pair: Pair, version: int) -> None:
    names = [pair.new_name("storm") for _ in range(300)]
    pair.same(create(*map(creatable, names + names[:200]), validate_only=True), version)
    pair.same(create(*(creatable(name, num_partitions=0) for name in names), validate_only=True), version)
    pair.same(create(*(creatable(f"a b{place}") for place in range(300)), validate_only=True), version)


@at_every_version("CreateTopics")
def test_texts_that_no_answer_can_carry(pair: Pair, version: int) -> None:
    good, other = creatable(pair.new_name("unsaid")), creatable(pair.new_name("unsaid"))
    pair.same(create(good, creatable("n" * 32_760), validate_only=True), version)
    pair.same(create(creatable("n" * 32_600), good, validate_only=True), version)
    other.configs = [CreateTopicsRequest.CreatableTopicConfig(name="k" * 32_760, value="1")]
    pair.same(create(good, other, validate_only=True), version)


@at_every_version("CreateTopics")
@pytest.mark.parametrize("parts", ASSIGNMENTS, ids=str)
def test_assignments(pair: Pair, version: int, parts: dict[int, list[int]]) -> None:
    kind = CreateTopicsRequest.CreatableReplicaAssignment
    given = [kind(partition_index=index, broker_ids=brokers) for index, brokers in parts.items()]
    for partitions, replicas in ((-1, -1), (1, -1), (-1, 1), (len(parts), 1)):
        topic = creatable(pair.new_name("assigned"), num_partitions=partitions, replication_factor=replicas)
        topic.assignments = given
        pair.same(create(topic), version)


@at_every_version("CreateTopics")
def test_a_partition_assigned_twice(pair: Pair, version: int) -> None:
    kind = CreateTopicsRequest.CreatableReplicaAssignment
    topic = creatable(pair.new_name("twice"), num_partitions=-1, replication_factor=-1)
    topic.assignments = [kind(partition_index=0, broker_ids=[1]) for _ in range(2)]
    pair.same(create(topic), version)


@at_every_version("CreateTopics")
def test_one_name_twice(pair: Pair, version: int) -> None:
    name, other = pair.new_name("double"), pair.new_name("double")
    pair.same(create(creatable(name), creatable(other), creatable(name)), version)
    pair.same(create(creatable(name), validate_only=True), version)


@at_every_version("CreateTopics")
def test_good_and_bad_topics_together(pair: Pair, version: int) -> None:
    good, bad = pair.new_name("mixed"), pair.new_name("mixed")
    topics = [
        creatable(good),
        creatable("a b"),
        creatable(bad, {"retention.ms": "abc"}),
        creatable(pair.new_name("mixed"), replication_factor=2),
    ]
    pair.same(create(*topics), version)


@at_every_version("CreateTopics")
@pytest.mark.parametrize("timeout_ms", [0, -1, 1, 2**31 - 1])
def test_nothing_asked(pair: Pair, version: int, timeout_ms: int) -> None:
    pair.same(create(timeout_ms=timeout_ms), version)


@at_every_version("CreateTopics")
@pytest.mark.parametrize(
    "configs",
    [
        {"retention.ms": "1000", "cleanup.policy": "compact"},
        {"retention.ms": None},
        {"no.such": "1"},
        {"retention.ms": "1000", "no.such": "1"},
        {"segment.bytes": "1"},
        {"min.compaction.lag.ms": "10", "max.compaction.lag.ms": "5"},
        {"max.message.bytes": "0", "segment.bytes": "-1"},
        {"retention.ms": "1000", "local.retention.ms": "2000"},
        {"remote.storage.enable": "true"},
    ],
    ids=str,
)
def test_configs(pair: Pair, version: int, configs: dict[str, str | None]) -> None:
    pair.same(create(creatable(pair.new_name("configs"), configs)), version)


@at_every_version("CreateTopics", since=5)
def test_one_config_twice(pair: Pair, version: int) -> None:
    kind = CreateTopicsRequest.CreatableTopicConfig
    topic = creatable(pair.new_name("configs"))
    topic.configs = [kind(name="retention.ms", value=value) for value in ("1000", "2000")]
    pair.same(create(topic), version)


@pytest.mark.parametrize("key", TOPIC_CONFIGS)
def test_every_config_with_all_kinds_of_values(pair: Pair, key: str) -> None:
    """One request for each config, with a topic for each value; each topic is refused or created by itself."""

    def build(_: Any) -> Any:
        topics = [creatable(f"value-{index:02}", {key: value}) for index, value in enumerate(VALUES)]
        return create(*topics, validate_only=True)

    pair.same(build, 7)
