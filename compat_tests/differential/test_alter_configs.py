"""AlterConfigs and IncrementalAlterConfigs: which configs are accepted, their effect, and the messages for the others.

Left out: an AlterConfigs request that names a resource twice, which Kafka never answers.
"""

from __future__ import annotations

from typing import Any

import pytest

from compat_tests.differential.config_requests import (
    APPEND,
    BROKER,
    BROKER_LOGGER,
    CLIENT_METRICS,
    DELETE,
    GROUP,
    SET,
    SUBTRACT,
    TOPIC,
    Operation,
    alter,
    alter_one,
    altered,
    describe_one,
    replace,
    replaced,
    settled,
)
from compat_tests.differential.pair import Pair
from compat_tests.differential.requests import creatable, create
from compat_tests.differential.test_create_topics import TOPIC_CONFIGS, VALUES
from compat_tests.differential.versions import at_every_version
from pykafkad.cluster.config_rules import CLIENT_METRICS_KEYS, GROUP_KEYS
from pykafkad.config import BROKER_KEYS, OWN_KEYS
from pykafkad.config_keys import OF_4_3

# In this order, on one topic: the result of each depends on those before it.
TOPIC_STORY: list[list[Operation]] = [
    [("retention.ms", SET, "1000")],
    [("retention.ms", SET, "abc")],
    [("retention.ms", SET, " 2000 ")],
    [("retention.ms", SET, None)],
    [("retention.ms", SET, None), ("retention.bytes", APPEND, None), ("flush.ms", DELETE, None)],
    [("nosuch", SET, "1")],
    [("nosuch", DELETE, None)],
    [("retention.bytes", DELETE, "ignored")],
    [("cleanup.policy", APPEND, "compact")],
    [("cleanup.policy", APPEND, "compact,delete")],
    [("cleanup.policy", APPEND, "nosuch")],
    [("cleanup.policy", SUBTRACT, "delete")],
    [("cleanup.policy", SUBTRACT, "nosuch")],
    [("cleanup.policy", SUBTRACT, "compact")],
    [("cleanup.policy", APPEND, "")],
    [("cleanup.policy", APPEND, "delete,,")],
    [("cleanup.policy", APPEND, ",")],
    [("cleanup.policy", APPEND, " compact")],
    [("cleanup.policy", DELETE, None)],
    [("retention.ms", APPEND, "1")],
    [("retention.ms", SUBTRACT, "1")],
    [("nosuch", APPEND, "1")],
    [("leader.replication.throttled.replicas", APPEND, "0:1,1:1")],
    [("leader.replication.throttled.replicas", APPEND, "1:1,2:1")],
    [("leader.replication.throttled.replicas", SUBTRACT, "0:1,2:1")],
    [("leader.replication.throttled.replicas", APPEND, "*")],
    [("min.compaction.lag.ms", SET, "10"), ("max.compaction.lag.ms", SET, "5")],
    [("min.compaction.lag.ms", SET, "10"), ("max.compaction.lag.ms", SET, "50")],
    [("max.compaction.lag.ms", SET, "5")],
    [("retention.ms", SET, "5"), ("segment.bytes", SET, "1")],
    [("retention.ms", SET, "5"), ("retention.ms", DELETE, None)],
    [("min.insync.replicas", SET, "2")],
    [("min.insync.replicas", DELETE, None)],
    [("retention.ms", 4, "1")],
    [("retention.ms", -1, "1")],
    [("remote.storage.enable", SET, "true")],
    [("internal.segment.bytes", SET, "1000")],
    [("", SET, "1")],
    [],
]

BROKER_VALUES = ["-1", "0", "1", "2", "1000", "2147483648", "", " ", "abc", "true", "1.5", "a,b", "*"]
LISTS = [
    "metric.reporters",
    "log.cleanup.policy",
    "sasl.enabled.mechanisms",
    "ssl.cipher.suites",
    "cordoned.log.dirs",
]


@at_every_version("IncrementalAlterConfigs")
def test_the_story_of_a_topic(pair: Pair, version: int) -> None:
    name = pair.topic("altered")
    for operations in TOPIC_STORY:
        pair.same(alter_one(TOPIC, name, *operations, validate_only=True), version)
        pair.same(alter_one(TOPIC, name, *operations), version)
        settled(pair, describe_one(TOPIC, name), 4)


@at_every_version("AlterConfigs")
def test_configs_as_a_whole(pair: Pair, version: int) -> None:
    name = pair.topic("replaced", configs={"retention.bytes": "100"})
    stories: list[list[tuple[str, str | None]]] = [
        [("retention.ms", "1000"), ("flush.ms", "5")],
        [("retention.ms", "2000")],
        [("retention.ms", "abc")],
        [("retention.ms", None)],
        [("nosuch", "1")],
        [("retention.ms", "1"), ("retention.ms", "2")],
        [("cleanup.policy", "compact,delete"), ("min.insync.replicas", "2")],
        [],
    ]
    for configs in stories:
        pair.same(replace(replaced(TOPIC, name, *configs), validate_only=True), version)
        pair.same(replace(replaced(TOPIC, name, *configs)), version)
        settled(pair, describe_one(TOPIC, name), 4)


# Whether they are valid depends on the addresses that a broker listens on, which differ here.
LISTENER_KEYS = {"listeners", "listener.security.protocol.map"}


@pytest.mark.parametrize("key", TOPIC_CONFIGS)
def test_every_topic_config_with_all_kinds_of_values(pair: Pair, key: str) -> None:
    name = pair.topic("values")
    for value in VALUES:
        pair.same(alter_one(TOPIC, name, (key, SET, value), validate_only=True), 1)


@pytest.mark.parametrize("key", GROUP_KEYS)
def test_every_group_config_with_all_kinds_of_values(pair: Pair, key: str) -> None:
    for value in [*VALUES, "1000", "5000", "50000", "500000", "latest", "by_duration:PT1H"]:
        pair.same(alter_one(GROUP, "values", (key, SET, value), validate_only=True), 1)


@pytest.mark.parametrize("key", CLIENT_METRICS_KEYS)
def test_every_client_metrics_config_with_all_kinds_of_values(pair: Pair, key: str) -> None:
    matches = [
        "client_id=a",
        "client_id = a.*",
        "client_id",
        "client_id=",
        "=a",
        "x=a",
        "client_id=a=b",
        "client_id=[",
    ]
    more = [
        *matches,
        "client_id=a,client_source_port=1",
        "client_id=a,client_id=b",
        "99",
        "100",
        "3600000",
        "3600001",
    ]
    for value in [*VALUES, *more]:
        pair.same(alter_one(CLIENT_METRICS, "values", (key, SET, value), validate_only=True), 1)


@pytest.mark.parametrize("resource", ["", "1"])
@pytest.mark.parametrize("key", sorted(OF_4_3.dynamic.keys() - LISTENER_KEYS - OWN_KEYS.keys()))
def test_every_dynamic_broker_config_with_all_kinds_of_values(pair: Pair, resource: str, key: str) -> None:
    for value in BROKER_VALUES:
        pair.same(alter_one(BROKER, resource, (key, SET, value), validate_only=True), 1)


@pytest.mark.parametrize("resource", ["", "1"])
def test_keys_that_are_not_dynamic(pair: Pair, resource: str) -> None:
    for key in sorted(BROKER_KEYS.keys() - OF_4_3.dynamic.keys()):
        pair.same(alter_one(BROKER, resource, (key, SET, "1"), validate_only=True), 1)


BROKER_CASES: list[list[Operation]] = [
    [("log.retention.hours", SET, "1"), ("node.id", SET, "1"), ("log.dirs", SET, "/x")],
    [
        ("ssl.keystore.location", SET, "/x"),
        ("ssl.key.password", SET, "/x"),
        ("ssl.truststore.type", SET, "/x"),
    ],
    [("listeners", SET, "x"), ("sasl.jaas.config", SET, "x"), ("ssl.protocol", SET, "x")],
    [("listener.name.plaintext.ssl.keystore.location", SET, "/x")],
    [("listener.name.nosuch.ssl.keystore.password", SET, "/x")],
    [("listener.name.plaintext.max.connections", SET, "abc")],
    [("listener.name.plaintext.max.connections", SET, "5")],
    [("listener.name.plaintext.max.connections", SET, "0")],
    [("listener.name.plaintext.max.connections", SET, "5"), ("max.connections", SET, "0")],
    [("listener.name.plaintext.max.connection.creation.rate", SET, "0")],
    [("listener.name.plaintext.num.network.threads", SET, "100")],
    [("listener.name.plaintext.num.network.threads", SET, "6")],
    [("listener.name.nosuch.num.network.threads", SET, "100")],
    [("listener.name.plaintext.sasl.enabled.mechanisms", SET, "PLAIN")],
    [("listener.name.plaintext.nosuch", SET, "5")],
    [("listener.name.", SET, "5")],
    [("listener.name.plaintext.node.id", SET, "5")],
    [("custom.key", SET, "5")],
    [("custom.key", APPEND, "5")],
    [("log.retention.ms", APPEND, "5")],
    [("log.retention.ms", SUBTRACT, "5")],
    [("leader.replication.throttled.rate", APPEND, "5")],
    [("log.retention.ms", 9, "5")],
    [("log.retention.ms", SET, None)],
    [("log.retention.ms", SET, "5"), ("log.retention.ms", SET, "6")],
    [("log.retention.ms", SET, "5"), ("log.local.retention.ms", SET, "10")],
    [("log.retention.bytes", SET, "5"), ("log.local.retention.bytes", SET, "10")],
    [("log.retention.bytes", SET, "5"), ("log.local.retention.bytes", SET, "-1")],
    [("max.connections.per.ip", SET, "0"), ("max.connections.per.ip.overrides", SET, "127.0.0.1:10")],
    [("max.connections.per.ip.overrides", SET, "127.0.0.1:x")],
    [("max.connections.per.ip.overrides", SET, "nosuch.invalid:5")],
    [("log.cleaner.dedupe.buffer.size", SET, "1048576")],
    [("log.cleaner.dedupe.buffer.size", SET, "1048577")],
    [("log.cleaner.threads", SET, "2"), ("log.cleaner.dedupe.buffer.size", SET, "1048577")],
    [("num.io.threads", SET, "16"), ("num.network.threads", SET, "6")],
    [("num.io.threads", SET, "17")],
    [("num.io.threads", SET, "4")],
    [("num.io.threads", SET, "3")],
    [("min.insync.replicas", DELETE, None)],
    [("min.insync.replicas", SET, "1")],
    [("log.cleanup.policy", APPEND, "nosuch")],
    [("log.message.timestamp.type", SET, "LogAppendTime"), ("compression.type", SET, "gzip")],
    [("", SET, "1")],
    [],
]


@pytest.mark.parametrize("resource", ["", "1"])
@pytest.mark.parametrize("operations", BROKER_CASES, ids=str)
def test_broker_configs(pair: Pair, resource: str, operations: list[Operation]) -> None:
    pair.same(alter_one(BROKER, resource, *operations, validate_only=True), 1)
    if all(operation == SET for _, operation, _ in operations):
        configs = [(name, value) for name, _, value in operations]
        pair.same(replace(replaced(BROKER, resource, *configs), validate_only=True), 2)


@pytest.mark.parametrize("resource", ["", "1"])
@pytest.mark.parametrize("key", LISTS)
def test_lists_of_the_broker(pair: Pair, resource: str, key: str) -> None:
    for operation in (APPEND, SUBTRACT):
        for value in (
            "",
            "x",
            "delete",
            "compact,delete",
            "PLAIN",
            "org.apache.kafka.common.metrics.JmxReporter",
            "*",
        ):
            pair.same(alter_one(BROKER, resource, (key, operation, value), validate_only=True), 1)


BAD_RESOURCES = [
    (TOPIC, "nosuch"),
    (TOPIC, ""),
    (TOPIC, "a b"),
    (TOPIC, "a" * 250),
    (BROKER, "x"),
    (BROKER, "2"),
    (BROKER, "-1"),
    (BROKER, " 1"),
    (BROKER, "99999999999"),
    (BROKER_LOGGER, "x"),
    (BROKER_LOGGER, "2"),
    (BROKER_LOGGER, ""),
    (CLIENT_METRICS, ""),
    (GROUP, ""),
    (0, "x"),
    (1, "x"),
    (3, "1"),
    (64, "x"),
    (-1, "x"),
]


@at_every_version("IncrementalAlterConfigs")
@pytest.mark.parametrize(("resource_type", "name"), BAD_RESOURCES)
def test_bad_resources(pair: Pair, version: int, resource_type: int, name: str) -> None:
    pair.same(alter_one(resource_type, name, ("retention.ms", SET, "5")), version)
    pair.same(alter_one(resource_type, name, ("nosuch", SET, "5")), version)
    pair.same(alter_one(resource_type, name), version)


@at_every_version("AlterConfigs")
@pytest.mark.parametrize(("resource_type", "name"), BAD_RESOURCES)
def test_bad_resources_as_a_whole(pair: Pair, version: int, resource_type: int, name: str) -> None:
    pair.same(replace(replaced(resource_type, name, ("retention.ms", "5"))), version)
    pair.same(replace(replaced(resource_type, name)), version)


@at_every_version("IncrementalAlterConfigs")
def test_good_and_bad_resources_together(pair: Pair, version: int) -> None:
    good, other = pair.topic("together"), pair.topic("together")
    pair.same(
        alter(
            altered(TOPIC, good, ("retention.ms", SET, "5")),
            altered(TOPIC, other, ("retention.ms", SET, "x")),
            altered(TOPIC, "nosuch", ("retention.ms", SET, "5")),
            altered(BROKER, "2", ("log.retention.ms", SET, "5")),
            altered(BROKER_LOGGER, "1", ("root", SET, "ERROR")),
            altered(77, "1", ("x", SET, "ERROR")),
            altered(GROUP, "together", ("consumer.session.timeout.ms", SET, "46000")),
        ),
        version,
    )
    for resource_type, name in ((TOPIC, good), (TOPIC, other), (GROUP, "together")):
        settled(pair, describe_one(resource_type, name), 4)
    wrong = altered(TOPIC, other, ("retention.ms", 5, "5"))
    pair.same(alter(altered(TOPIC, good, ("retention.ms", SET, "6")), wrong), version)
    settled(pair, describe_one(TOPIC, good), 4)
    pair.same(alter(), version)


@at_every_version("IncrementalAlterConfigs")
def test_a_resource_twice(pair: Pair, version: int) -> None:
    name, other = pair.topic("twice"), pair.topic("twice")
    first, second = (altered(TOPIC, name, ("retention.ms", SET, value)) for value in ("5", "6"))
    pair.same(alter(first, altered(TOPIC, other, ("retention.ms", SET, "7")), second), version)
    settled(pair, describe_one(TOPIC, name), 4)
    settled(pair, describe_one(TOPIC, other), 4)


@at_every_version("IncrementalAlterConfigs")
@pytest.mark.parametrize(
    "operations",
    [
        [("root", SET, level)]
        for level in (
            "TRACE",
            "DEBUG",
            "INFO",
            "WARN",
            "FATAL",
            "info",
            "OFF",
            "ALL",
            "",
            "nosuch",
            None,
            "ERROR",
        )
    ]
    + [
        [("root", DELETE, None)],
        [("root", APPEND, "x")],
        [("root", SUBTRACT, "x")],
        [("root", 9, "x")],
        [("nosuch", SET, "INFO")],
        [("nosuch", SET, "x")],
        [("nosuch", DELETE, None)],
        [("nosuch", APPEND, "x")],
        [("root", SET, "INFO"), ("nosuch", SET, "INFO")],
        [("root", SET, "INFO"), ("root", SET, "WARN")],
        [],
    ],
    ids=str,
)
def test_levels_of_loggers(pair: Pair, version: int, operations: list[Operation]) -> None:
    pair.same(alter_one(BROKER_LOGGER, "1", *operations, validate_only=True), version)
    pair.same(describe_one(BROKER_LOGGER, "1", ["root"]), 4)
    pair.same(alter_one(BROKER_LOGGER, "1", *operations), version)
    pair.same(describe_one(BROKER_LOGGER, "1", ["root"]), 4)


@at_every_version("IncrementalAlterConfigs")
def test_group_configs(pair: Pair, version: int) -> None:
    name = f"configured {version}/ä"
    stories: list[list[Operation]] = [
        [("consumer.session.timeout.ms", SET, "50000"), ("share.auto.offset.reset", SET, "earliest")],
        [("consumer.session.timeout.ms", SET, "1000")],
        [("consumer.session.timeout.ms", SET, "45000"), ("consumer.heartbeat.interval.ms", SET, "45000")],
        [("consumer.session.timeout.ms", APPEND, "1")],
        [("consumer.session.timeout.ms", 7, "1")],
        [("nosuch", SET, "1"), ("foo", SET, "1"), ("bar", SET, "1")],
        [("streams.session.timeout.ms", SET, "46000")],
        [("consumer.session.timeout.ms", DELETE, None), ("share.auto.offset.reset", DELETE, None)],
        [("streams.session.timeout.ms", DELETE, None)],
    ]
    for operations in stories:
        pair.same(alter_one(GROUP, name, *operations), version)
        settled(pair, describe_one(GROUP, name), 4)


@at_every_version("AlterConfigs")
def test_group_and_client_metrics_configs_as_a_whole(pair: Pair, version: int) -> None:
    cases: dict[int, list[list[tuple[str, str | None]]]] = {
        GROUP: [
            [("consumer.session.timeout.ms", "50000")],
            [("share.session.timeout.ms", "50000")],
            [("x", "1")],
            [],
        ],
        CLIENT_METRICS: [
            [("metrics", "a,b")],
            [("interval.ms", "1000")],
            [("x", "1")],
            [("interval.ms", "x")],
            [],
        ],
    }
    for resource_type, stories in cases.items():
        for configs in stories:
            pair.same(replace(replaced(resource_type, f"whole-{version}", *configs)), version)
            settled(pair, describe_one(resource_type, f"whole-{version}"), 4)


@at_every_version("IncrementalAlterConfigs")
def test_client_metrics_configs(pair: Pair, version: int) -> None:
    stories: list[list[Operation]] = [
        [("metrics", SET, "*"), ("interval.ms", SET, "1000"), ("match", SET, "client_id=x.*")],
        [("metrics", APPEND, "b")],
        [("interval.ms", SET, "99")],
        [("match", SET, "client_id")],
        [("nosuch", SET, "1"), ("foo", SET, "1")],
        [("nosuch", DELETE, "1")],
        [("match", DELETE, None)],
        [("metrics", SET, "a , b")],
        [("metrics", DELETE, None), ("interval.ms", DELETE, None)],
    ]
    for operations in stories:
        pair.same(alter_one(CLIENT_METRICS, f"subscribed-{version}", *operations), version)
        settled(pair, describe_one(CLIENT_METRICS, f"subscribed-{version}"), 4)


def test_a_broker_whose_directories_are_cordoned_gets_no_topics(pair: Pair) -> None:
    name = pair.new_name("cordoned")
    try:
        pair.same(alter_one(BROKER, "1", ("cordoned.log.dirs", SET, "*")), 1)
        settled(pair, describe_one(BROKER, "1", ["cordoned.log.dirs"]), 4)
        settled(pair, create(creatable(name), validate_only=True), 7)
        pair.same(create(creatable(name, num_partitions=5, replication_factor=-1), validate_only=True), 7)
    finally:
        pair.same(alter_one(BROKER, "1", ("cordoned.log.dirs", DELETE, None)), 1)
    settled(pair, create(creatable(name), validate_only=True), 7)


def test_listeners_come_and_go(pair: Pair) -> None:
    """The two listen on different addresses: each is asked for its own."""
    extra = ",EXTRA://127.0.0.1:0"
    for side in pair.sides:
        answer = side.demand(describe_one(BROKER, "1", ["listeners"]), 4)
        found = {each.name: each.value for each in answer.results[0].configs}
        names = "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT,EXTRA:PLAINTEXT"
        mapped: Operation = ("listener.security.protocol.map", SET, names)
        wanted: Operation = ("listeners", SET, found["listeners"] + extra)
        alone = side.demand(alter_one(BROKER, "1", wanted), 1).responses[0]
        assert alone.error_code == 42
        assert alone.error_message.endswith("No security protocol defined for listener EXTRA"), side.name
        both = side.demand(alter_one(BROKER, "1", wanted, mapped, validate_only=True), 1).responses[0]
        assert both.error_code == 0, side.name


def test_more_records_than_one_change_may_have(pair: Pair) -> None:
    operations: list[Any] = [(f"custom.{number}", SET, "1") for number in range(10_001)]
    pair.same(alter_one(BROKER, "", *operations, validate_only=True), 1)
    pair.same(alter_one(BROKER, "", *operations[:10_000], validate_only=True), 1)


def test_min_insync_replicas_belongs_to_all_brokers(pair: Pair) -> None:
    key = "min.insync.replicas"
    for resource in ("", "1"):
        for operations in ([(key, SET, "2")], [(key, SET, "1")], [(key, DELETE, None)]):
            pair.same(alter_one(BROKER, resource, *operations), 1)
        settled(pair, describe_one(BROKER, resource, [key]), 4)
    pair.same(replace(replaced(BROKER, "", ("log.retention.ms", "5"))), 2)
    pair.same(replace(replaced(BROKER, "", (key, "1"))), 2)


ZEROS, DIGITS = "0" * 5_000 + "1", "1" * 5_000
# Python would parse some of these differently from Java, or not at all.
NUMBERS = [
    "+5", "--5", "-+5", "1_000", "\u0663", "\uff15", "\u00b2", "\U0001d7d3", "5\u00a0", "\x1f5\0", ZEROS, DIGITS, "1L",
    "1.", ".5", "5d", "5F", "1e400", "-1e400", "1e-400", "NaN", "nan", "-NaN", "Infinity", "inf", "0x1", "0x1p-1",
    "0x1p99999", "-0x1p99999", "0x1.8p-1d", "fal\u017fe", "TRUE ",
]  # fmt: skip
PAIRS = [
    "h:\u00b2", "h:-+5", "h:" + DIGITS, "h:" + ZEROS, "a:1,,b:2", "a:1,,", "a:x,b:y", "*,", ",", "0:\u00b2",
    "0:" + DIGITS,
]  # fmt: skip
DURATIONS = [
    "PT1,5S",
    "P1D",
    "-PT-1S",
    "PT-1S",
    "PT",
    "pt1h",
    "PT\u0661S",
    f"PT{DIGITS}S",
    "P106751991167301D",
]


@pytest.mark.parametrize(
    ("resource_type", "key"),
    [
        (TOPIC, "min.cleanable.dirty.ratio"),
        (TOPIC, "retention.ms"),
        (TOPIC, "max.message.bytes"),
        (TOPIC, "preallocate"),
        (BROKER, "log.cleaner.io.max.bytes.per.second"),
        (BROKER, "log.cleaner.io.buffer.load.factor"),
        (BROKER, "log.segment.delete.delay.ms"),
        (BROKER, "message.max.bytes"),
        (GROUP, "consumer.session.timeout.ms"),
        (GROUP, "share.renew.acknowledge.enable"),
        (CLIENT_METRICS, "interval.ms"),
    ],
)
def test_numbers_are_read_as_java_does(pair: Pair, resource_type: int, key: str) -> None:
    name = {TOPIC: pair.topic("numbers") if resource_type == TOPIC else "", BROKER: "1"}.get(
        resource_type, "numbers"
    )
    for text in NUMBERS:
        pair.same(alter_one(resource_type, name, (key, SET, text), validate_only=True), 1)
        pair.same(replace(replaced(resource_type, name, (key, text)), validate_only=True), 2)


@pytest.mark.parametrize("text", PAIRS)
def test_lists_of_pairs(pair: Pair, text: str) -> None:
    name = pair.topic("pairs")
    pair.same(alter_one(BROKER, "1", ("max.connections.per.ip.overrides", SET, text), validate_only=True), 1)
    pair.same(
        alter_one(TOPIC, name, ("leader.replication.throttled.replicas", SET, text), validate_only=True), 1
    )


@pytest.mark.parametrize("text", DURATIONS)
def test_durations(pair: Pair, text: str) -> None:
    reset = ("share.auto.offset.reset", SET, f"by_duration:{text}")
    pair.same(alter_one(GROUP, "durations", reset, validate_only=True), 1)


@pytest.mark.parametrize("name", [ZEROS, DIGITS, "+1", "\uff11", "\u00b9", "1_0"])
def test_names_of_brokers(pair: Pair, name: str) -> None:
    for resource_type in (BROKER, BROKER_LOGGER):
        key = "log.retention.ms" if resource_type == BROKER else "root"
        pair.same(alter_one(resource_type, name, (key, DELETE, None), validate_only=True), 1)
        pair.same(describe_one(resource_type, name, ["log.retention.hours"]), 4)


LONG = "y" * 32_767


@pytest.mark.parametrize(
    "resource",
    [
        (BROKER, "1", ("log.retention.ms", SET, LONG)),
        (BROKER, "1" * 32_760, ("log.retention.ms", SET, "1")),
        (
            BROKER,
            "",
            *((f"listener.name.x{number}.ssl.keystore.type", SET, "JKS") for number in range(2_000)),
        ),
        (GROUP, "long", *((f"{'a' * 30_000}{number}", SET, None) for number in range(3))),
        (GROUP, "long", (LONG, SET, "1")),
    ],
    ids=["value", "name", "listeners", "nulls", "key"],
)
def test_a_text_that_no_answer_can_carry(pair: Pair, resource: Any) -> None:
    """Alone in its request: Kafka gives no answer at all if the controller has to be asked about another one too."""
    pair.same(alter(altered(*resource), validate_only=True), 1)
