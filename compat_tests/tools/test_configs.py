"""kafka-configs and kafka-client-metrics: every entity type, described, altered, refused."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from compat_tests.tools.both import Both

TOPIC = ("--entity-type", "topics", "--entity-name")
BROKER = ("--entity-type", "brokers", "--entity-name", "1")
BROKERS = ("--entity-type", "brokers", "--entity-default")
LOGGERS = ("--entity-type", "broker-loggers", "--entity-name", "1")
GROUP = ("--entity-type", "groups", "--entity-name")
METRICS = ("--entity-type", "client-metrics", "--entity-name")


def alter(both: Both, entity: tuple[str, ...], add: str = "", delete: str = "", exits: int = 0) -> None:
    what = [*(["--add-config", add] if add else []), *(["--delete-config", delete] if delete else [])]
    both.same("configs", "--alter", *entity, *what, exits=exits)


@pytest.fixture
def topic(both: Both) -> str:
    return both.topic("configured", 1, retention_ms="86400000")


def test_describe_a_topic(both: Both, topic: str) -> None:
    both.same("configs", "--describe", *TOPIC, topic, has="retention.ms=86400000")
    both.same("configs", "--describe", *TOPIC, topic, "--all", has="DEFAULT_CONFIG")
    both.same("configs", "--describe", "--entity-type", "topics")


def test_alter_a_topic(both: Both, topic: str) -> None:
    alter(both, (*TOPIC, topic), "cleanup.policy=[compact,delete],segment.bytes=1048576", "retention.ms")
    both.same("configs", "--describe", *TOPIC, topic, "--all", has="cleanup.policy=compact,delete")


@pytest.mark.parametrize(
    "pair",
    [
        "cleanup.policy=nonsense",
        "no.such.key=1",
        "segment.bytes=1",
        "retention.ms=x",
        "min.insync.replicas=0",
    ],
)
def test_topic_configs_that_are_refused(both: Both, topic: str, pair: str) -> None:
    alter(both, (*TOPIC, topic), pair, exits=1)
    both.same("configs", "--describe", *TOPIC, topic, has="retention.ms=86400000")


def test_deleting_a_config_that_is_not_set(both: Both, topic: str) -> None:
    alter(both, (*TOPIC, topic), delete="segment.bytes")


def test_a_topic_that_is_not_there(both: Both) -> None:
    both.same("configs", "--describe", *TOPIC, "not-there", exits=0)
    alter(both, (*TOPIC, "not-there"), "retention.ms=1000", exits=1)


def test_describe_a_broker(both: Both) -> None:
    both.same("configs", "--describe", *BROKER, "--all", has="message.max.bytes=1048588")
    both.same("configs", "--describe", *BROKER)
    both.same("configs", "--describe", *BROKERS)


@pytest.fixture
def clean_brokers(both: Both) -> Iterator[None]:
    yield
    for entity in (BROKER, BROKERS):
        both.raw("configs", "--alter", *entity, "--delete-config", "log.retention.ms")
        both.raw("configs", "--alter", *entity, "--delete-config", "message.max.bytes")


@pytest.mark.usefixtures("clean_brokers")
def test_dynamic_broker_configs_and_their_synonyms(both: Both, topic: str) -> None:
    alter(both, BROKERS, "log.retention.ms=3600000,message.max.bytes=2000000")
    alter(both, BROKER, "log.retention.ms=7200000")
    both.same("configs", "--describe", *BROKERS, has="log.retention.ms=3600000")
    both.same("configs", "--describe", *BROKER, has="DYNAMIC_DEFAULT_BROKER_CONFIG:log.retention.ms=3600000")
    both.same("configs", "--describe", *TOPIC, topic, "--all", has="DYNAMIC_DEFAULT_BROKER_CONFIG")
    alter(both, BROKER, delete="log.retention.ms")
    both.same("configs", "--describe", *BROKER)
    both.same("configs", "--describe", *BROKER, "--all", has="DYNAMIC_DEFAULT_BROKER_CONFIG")


@pytest.mark.parametrize(
    "pair",
    ["node.id=5", "log.dirs=/elsewhere", "message.max.bytes=many", "log.retention.ms=0"],
)
def test_broker_configs_that_are_refused(both: Both, pair: str) -> None:
    alter(both, BROKER, pair, exits=1)
    both.same("configs", "--describe", *BROKER)


def test_a_key_that_no_broker_knows(both: Both) -> None:
    alter(both, BROKERS, "no.such.key=1")
    both.same("configs", "--describe", *BROKERS, has="no.such.key=")
    alter(both, BROKERS, delete="no.such.key")


def test_brokers_that_are_not_there(both: Both) -> None:
    both.same("configs", "--describe", "--entity-type", "brokers", "--entity-name", "7", has="doesn't exist")
    both.same("configs", "--describe", "--entity-type", "brokers", "--entity-name", "x", exits=1)


def test_loggers(both: Both) -> None:
    ours, theirs = both.raw("configs", "--describe", *LOGGERS)
    assert ours.code == theirs.code == 0, (ours, theirs)
    assert "Dynamic configs for broker-logger 1 are:" in ours.out, ours
    alter(both, LOGGERS, "no.such.logger=DEBUG", exits=1)
    alter(both, LOGGERS, "root=LOUD", exits=1)


def test_group_configs(both: Both) -> None:
    group = both.name("group")
    alter(both, (*GROUP, group), "consumer.session.timeout.ms=50000,consumer.heartbeat.interval.ms=6000")
    both.same("configs", "--describe", *GROUP, group, has="consumer.session.timeout.ms=50000")
    both.same("configs", "--describe", *GROUP, group, "--all", has="DEFAULT")
    both.same("configs", "--describe", "--entity-type", "groups", has=group)
    alter(both, (*GROUP, group), "consumer.session.timeout.ms=1", exits=1)
    alter(both, (*GROUP, group), "no.such.key=1", exits=1)
    alter(both, (*GROUP, group), delete="consumer.session.timeout.ms,consumer.heartbeat.interval.ms")
    both.same("configs", "--describe", *GROUP, group)


def test_client_metrics_as_configs(both: Both) -> None:
    name = both.name("subscription")
    alter(both, (*METRICS, name), "metrics=[org.apache.kafka.,other.],interval.ms=1000,match=[client_id=a.*]")
    both.same("configs", "--describe", *METRICS, name, has="interval.ms=1000")
    alter(both, (*METRICS, name), "interval.ms=1", exits=1)
    alter(both, (*METRICS, name), "match=nonsense", exits=1)
    alter(both, (*METRICS, name), delete="metrics,interval.ms,match")


def test_client_metrics(both: Both) -> None:
    name = both.name("metrics")
    both.same(
        "client-metrics", "--alter", "--name", name, "--metrics", "org.apache.kafka.", "--interval", "5000"
    )
    both.same("client-metrics", "--list", has=name)
    both.same("client-metrics", "--describe", "--name", name, has="interval.ms=5000")
    both.same("client-metrics", "--describe", has=name)
    both.same("client-metrics", "--delete", "--name", name)
    both.same("client-metrics", "--list")
    both.same("client-metrics", "--delete", "--name", "not-there")


QUOTAS = [
    ["--entity-type", "users", "--entity-name", "alice"],
    ["--entity-type", "users", "--entity-default"],
    ["--entity-type", "clients", "--entity-name", "app"],
    ["--entity-type", "clients", "--entity-default"],
    ["--entity-type", "users", "--entity-name", "alice", "--entity-type", "clients", "--entity-name", "app"],
    ["--entity-type", "users", "--entity-default", "--entity-type", "clients", "--entity-default"],
]


def in_one_order(line: str) -> str:
    """The quotas of an entity, which Kafka has in a hash map."""
    head, are, quotas = line.partition(" are ")
    return head + are + ", ".join(sorted(quotas.split(", ")))


def test_client_quotas(both: Both) -> None:
    for number, entity in enumerate(QUOTAS):
        pairs = f"producer_byte_rate={1000 + number},consumer_byte_rate=2000,request_percentage=50"
        both.same("configs", "--alter", *entity, "--add-config", pairs)
    for entity in QUOTAS:
        both.same("configs", "--describe", *entity, has="producer_byte_rate", rewrite=in_one_order)
    both.same(
        "configs", "--describe", "--entity-type", "users", "--entity-type", "clients", rewrite=in_one_order
    )
    for entity in QUOTAS:
        gone = "producer_byte_rate,consumer_byte_rate,request_percentage"
        both.same("configs", "--alter", *entity, "--delete-config", gone)
        both.same("configs", "--describe", *entity)


def test_connection_quotas_of_addresses(both: Both) -> None:
    address = ["--entity-type", "ips", "--entity-name", "10.1.2.3"]
    both.same("configs", "--alter", *address, "--add-config", "connection_creation_rate=10")
    both.same("configs", "--describe", *address, has="connection_creation_rate=10")
    both.same("configs", "--alter", *address, "--delete-config", "connection_creation_rate")
    both.same(
        "configs",
        "--alter",
        "--entity-type",
        "ips",
        "--entity-name",
        "no address",
        "--add-config",
        "connection_creation_rate=10",
        exits=1,
    )


@pytest.mark.parametrize("pair", ["producer_byte_rate=-5", "no_such_quota=1", "producer_byte_rate=x"])
def test_quotas_that_are_refused(both: Both, pair: str) -> None:
    both.same("configs", "--alter", *QUOTAS[0], "--add-config", pair, exits=1)
