"""DescribeConfigs: every key of every type of resource, where its value comes from, and what is refused."""

from __future__ import annotations

import pytest

from compat_tests.differential.config_requests import (
    BROKER,
    BROKER_LOGGER,
    CLIENT_METRICS,
    DELETE,
    GROUP,
    SET,
    TOPIC,
    alter_one,
    describe,
    describe_one,
    described,
    settled,
)
from compat_tests.differential.pair import Pair
from compat_tests.differential.versions import at_every_version
from pykafkad.config import BROKER_KEYS

# Configs with which the two are started differently.
LAUNCHED = frozenset({
    "advertised.listeners", "controller.listener.names", "controller.quorum.voters", "group.initial.rebalance.delay.ms",
    "listeners", "log.dirs", "offsets.topic.replication.factor", "process.roles",
    "share.coordinator.state.topic.min.isr", "share.coordinator.state.topic.replication.factor",
    "transaction.state.log.min.isr", "transaction.state.log.replication.factor",
})  # fmt: skip
DOCUMENTED_SINCE = 3
COMMON = sorted(BROKER_KEYS.keys() - LAUNCHED)

BAD = [
    (TOPIC, ""),
    (TOPIC, "nosuch"),
    (TOPIC, "a b"),
    (TOPIC, ".."),
    (TOPIC, "a" * 250),
    (BROKER, "x"),
    (BROKER, "2"),
    (BROKER, "-1"),
    (BROKER, "99999999999"),
    (BROKER_LOGGER, ""),
    (BROKER_LOGGER, "x"),
    (BROKER_LOGGER, "2"),
    (CLIENT_METRICS, ""),
    (GROUP, ""),
    (0, "x"),
    (1, "x"),
    (3, "1"),
    (64, "x"),
    (-1, "x"),
    (127, "x"),
]


@at_every_version("DescribeConfigs")
@pytest.mark.parametrize("synonyms", [True, False])
def test_the_broker(pair: Pair, version: int, synonyms: bool) -> None:
    pair.same(describe(described(BROKER, "1", COMMON), synonyms=synonyms), version)


@at_every_version("DescribeConfigs", since=3)
def test_every_key_of_the_broker_is_documented(pair: Pair, version: int) -> None:
    pair.same(describe(described(BROKER, "1", COMMON), documentation=True), version)


def test_the_broker_lists_all_of_kafkas_keys(pair: Pair) -> None:
    ours, theirs = (
        {
            each.name: (each.config_type, each.read_only, each.is_sensitive)
            for each in side.demand(describe_one(BROKER, "1"), 4).results[0].configs
        }
        for side in pair.sides
    )
    assert ours == theirs


@at_every_version("DescribeConfigs")
@pytest.mark.parametrize(
    "keys", [None, [], ["min.insync.replicas"], ["nosuch"], ["log.retention.ms"]], ids=str
)
def test_all_brokers(pair: Pair, version: int, keys: list[str] | None) -> None:
    pair.same(describe_one(BROKER, "", keys), version)


@at_every_version("DescribeConfigs")
@pytest.mark.parametrize("synonyms", [True, False])
@pytest.mark.parametrize("documentation", [True, False])
def test_a_topic(pair: Pair, version: int, synonyms: bool, documentation: bool) -> None:
    configs = {
        "segment.ms": "100000",
        "cleanup.policy": "delete, compact",
        "min.cleanable.dirty.ratio": ".25",
    }
    name = pair.topic("described", configs=configs)
    documentation = documentation and version >= DOCUMENTED_SINCE
    request = describe(described(TOPIC, name), synonyms=synonyms, documentation=documentation)
    settled(pair, request, version)


@at_every_version("DescribeConfigs")
@pytest.mark.parametrize("resource_type", [GROUP, CLIENT_METRICS])
@pytest.mark.parametrize("keys", [None, [], ["match"], ["consumer.session.timeout.ms", "nosuch"]], ids=str)
def test_what_nobody_configured(pair: Pair, version: int, resource_type: int, keys: list[str] | None) -> None:
    pair.same(describe_one(resource_type, "never-configured", keys), version)


@at_every_version("DescribeConfigs")
def test_the_root_logger_has_a_level(pair: Pair, version: int) -> None:
    pair.same(alter_one(BROKER_LOGGER, "1", ("root", SET, "WARN")), 1)
    request = describe(described(BROKER_LOGGER, "1", ["root"]), documentation=version >= DOCUMENTED_SINCE)
    pair.same(request, version)


@at_every_version("DescribeConfigs")
@pytest.mark.parametrize(("resource_type", "name"), BAD)
def test_bad_resources(pair: Pair, version: int, resource_type: int, name: str) -> None:
    pair.same(describe_one(resource_type, name), version)


@at_every_version("DescribeConfigs")
def test_several_resources_in_the_order_asked(pair: Pair, version: int) -> None:
    name = pair.topic("described")
    pair.same(
        describe(
            described(TOPIC, "nosuch"),
            described(GROUP, "g", ["consumer.session.timeout.ms"]),
            described(TOPIC, name, ["retention.ms"]),
            described(TOPIC, name, ["retention.ms", "retention.ms"]),
            described(BROKER, "7"),
            described(CLIENT_METRICS, "s"),
        ),
        version,
    )
    pair.same(describe(described(TOPIC, name), described(77, "x"), described(TOPIC, "nosuch")), version)
    pair.same(describe(), version)


@pytest.mark.parametrize("resource", ["", "1"])
def test_dynamic_broker_configs_are_shown_with_their_synonyms(pair: Pair, resource: str) -> None:
    topic = pair.topic("inherits", configs={"retention.bytes": "77"})
    configs = {
        "log.roll.ms": "1234567",
        "log.retention.bytes": "123456789",
        "log.cleanup.policy": "delete,compact",
        "compression.type": "zstd",
        "leader.replication.throttled.rate": "1000",
        "something.custom": "secret",
        "listener.name.plaintext.max.connections": "1000",
        "group.consumer.assignment.interval.ms": "500",
    }
    if resource:
        configs["listener.name.plaintext.ssl.keystore.location"] = "/nowhere"
        configs["listener.name.plaintext.ssl.keystore.password"] = "secret"
    try:
        for key, value in configs.items():
            pair.same(alter_one(BROKER, resource, (key, SET, value)), 1)
        settled(pair, describe_one(BROKER, ""), 4)
        settled(pair, describe_one(BROKER, "1", [*COMMON, *configs]), 4)
        settled(pair, describe_one(TOPIC, topic), 4)
        settled(pair, describe_one(GROUP, "g"), 4)
    finally:
        pair.same(alter_one(BROKER, resource, *((key, DELETE, None) for key in configs)), 1)
    settled(pair, describe_one(BROKER, "1", COMMON), 4)
    settled(pair, describe_one(TOPIC, topic), 4)


def test_both_layers_of_dynamic_broker_configs(pair: Pair) -> None:
    topic = pair.topic("inherits")
    try:
        pair.same(alter_one(BROKER, "", ("log.retention.ms", SET, "1000000")), 1)
        pair.same(alter_one(BROKER, "1", ("log.retention.ms", SET, "2000000")), 1)
        settled(pair, describe_one(BROKER, "1", ["log.retention.ms", "log.retention.hours"]), 4)
        settled(pair, describe_one(TOPIC, topic), 4)
        pair.same(alter_one(BROKER, "1", ("log.retention.ms", DELETE, None)), 1)
        settled(pair, describe_one(BROKER, "1", ["log.retention.ms", "log.retention.hours"]), 4)
    finally:
        for resource in ("", "1"):
            pair.same(alter_one(BROKER, resource, ("log.retention.ms", DELETE, None)), 1)
    settled(pair, describe_one(BROKER, "1", ["log.retention.ms", "log.retention.hours"]), 4)
