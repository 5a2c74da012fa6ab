"""Describing configs: values, sources, synonyms, and what is hidden."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from pykafkad import config_docs, errors, messages
from pykafkad.cluster.config_descriptions import Describer
from pykafkad.config import BROKER_KEYS, TOPIC_KEYS, BrokerConfig
from pykafkad.config_keys import OF_3_9
from tests.unit.config_kit import (
    BROKER,
    BROKER_LOGGER,
    CLIENT_METRICS,
    GROUP,
    SET,
    TOPIC,
    alter,
    describe,
    handler,
    open_configurable,
    synonyms,
    values,
)
from tests.unit.metadata_fakes import call, creatable, create

TOPIC_SOURCE, THIS_BROKER, ALL_BROKERS, STATIC, DEFAULT = range(1, 6)


@pytest.fixture
def broker(tmp_path: Path) -> Any:
    return open_configurable(
        tmp_path, node_id="1", log_roll_hours="5", group_consumer_session_timeout_ms="50000"
    )


def test_every_key_is_shown_unless_it_is_internal(broker: Any) -> None:
    shown = describe(broker, BROKER, "1")
    assert shown.keys() == {name for name, key in BROKER_KEYS.items() if not key.internal}
    assert shown["log.retention.hours"].value == "168"
    assert shown["node.id"].read_only and not shown["log.retention.ms"].read_only


def test_layers_are_synonyms_in_the_order_in_which_they_count(broker: Any) -> None:
    alter(broker, BROKER, "", ("log.roll.ms", SET, "1000"))
    alter(broker, BROKER, "1", ("log.roll.ms", SET, "2000"))
    found = describe(broker, BROKER, "1")
    assert found["log.roll.ms"].value == "2000" and found["log.roll.ms"].config_source == THIS_BROKER
    assert synonyms(found["log.roll.ms"]) == [
        ("log.roll.ms", "2000", THIS_BROKER),
        ("log.roll.ms", "1000", ALL_BROKERS),
        ("log.roll.hours", "5", STATIC),
        ("log.roll.hours", "168", DEFAULT),
    ]
    assert synonyms(found["log.roll.hours"]) == [
        ("log.roll.hours", "5", STATIC),
        ("log.roll.hours", "168", DEFAULT),
    ]
    assert values(describe(broker, BROKER, "")) == {"log.roll.ms": "1000", "min.insync.replicas": "1"}


def test_what_counts_without_a_file_is_shown_as_if_it_stood_in_one() -> None:
    config = BrokerConfig.from_sources()
    dynamic: Any = SimpleNamespace(of_this={}, custom_of_this={}, of_all={}, custom_of_all={})
    (entry,) = Describer(config, dynamic).broker(["group.initial.rebalance.delay.ms"])
    assert (entry.value, entry.source) == ("0", STATIC)
    assert [(each.value, each.source) for each in entry.synonyms] == [("0", STATIC), ("3000", DEFAULT)]


def test_a_topic_inherits_and_overrides(broker: Any) -> None:
    create(broker, creatable("orders", retention_ms=" 7 ", cleanup_policy="compact, delete"))
    alter(broker, BROKER, "1", ("log.segment.bytes", SET, "2000000"))
    found = describe(broker, TOPIC, "orders")
    assert found.keys() == {name for name, key in TOPIC_KEYS.items() if not key.internal}
    assert (found["retention.ms"].value, found["cleanup.policy"].value) == ("7", "compact,delete")
    assert synonyms(found["segment.bytes"]) == [
        ("log.segment.bytes", "2000000", THIS_BROKER),
        ("log.segment.bytes", "1073741824", DEFAULT),
    ]
    assert found["segment.ms"].value == str(5 * 3_600_000)
    assert synonyms(found["segment.ms"]) == [], "hours say nothing of log.roll.ms"


def test_a_groups_defaults_are_the_brokers(broker: Any) -> None:
    assert describe(broker, GROUP, "readers")["consumer.session.timeout.ms"].value == "50000"
    alter(broker, GROUP, "readers", ("consumer.session.timeout.ms", SET, "46000"))
    entry = describe(broker, GROUP, "readers")["consumer.session.timeout.ms"]
    assert synonyms(entry) == [
        ("consumer.session.timeout.ms", "46000", 8),
        ("group.consumer.session.timeout.ms", "50000", STATIC),
        ("group.consumer.session.timeout.ms", "45000", DEFAULT),
    ]


def test_a_subscription_shows_what_was_set_and_the_rest(broker: Any) -> None:
    alter(broker, CLIENT_METRICS, "fast", ("metrics", SET, "a , b"))
    assert values(describe(broker, CLIENT_METRICS, "fast")) == {
        "interval.ms": "300000",
        "match": "",
        "metrics": "a,b",
    }


def test_secrets_and_what_nobody_knows_are_hidden(broker: Any) -> None:
    password = "listener.name.plaintext.ssl.keystore.password"
    alter(broker, BROKER, "1", (password, SET, "secret"), ("custom.key", SET, "secret"))
    found = describe(broker, BROKER, "1", password, "custom.key", "sasl.jaas.config")
    assert all(entry.is_sensitive and entry.value is None for entry in found.values())
    assert [synonym.value for entry in found.values() for synonym in entry.synonyms] == [None, None]
    assert found["custom.key"].config_type == 0 and found[password].config_type == 9


def test_loggers_are_shown_with_their_levels(broker: Any) -> None:
    found = describe(broker, BROKER_LOGGER, "1")
    assert found["root"].value == "INFO" and "config" in found
    assert describe(broker, BROKER_LOGGER, "1", "root").keys() == {"root"}


def test_a_documentation_is_there_for_every_key_and_only_when_asked_for(broker: Any) -> None:
    create(broker, creatable("orders"))
    for resource_type, name in ((BROKER, "1"), (TOPIC, "orders"), (GROUP, "g"), (CLIENT_METRICS, "s")):
        found = describe(broker, resource_type, name, documentation=True)
        assert all(entry.documentation and entry.documentation[0].isupper() for entry in found.values())
        plain = describe(broker, resource_type, name)
        assert not any(entry.documentation for entry in plain.values())
        assert not any(
            entry.documentation for entry in describe(broker, resource_type, name, version=1).values()
        )


def test_the_documentation_is_of_the_keys_there_are() -> None:
    assert config_docs.BROKER.keys() == OF_3_9.broker.keys()
    assert config_docs.TOPIC.keys() == OF_3_9.topic.keys()
    assert all(text.endswith(".") for text in config_docs.BROKER.values())


@pytest.mark.parametrize(
    ("resource_type", "name", "code", "why"),
    [
        (TOPIC, "a/b", errors.INVALID_TOPIC_EXCEPTION, "Topic name is invalid: 'a/b' contains one"),
        (TOPIC, "missing", errors.UNKNOWN_TOPIC_OR_PARTITION, ""),
        (
            BROKER,
            "2",
            errors.INVALID_REQUEST,
            "Unexpected broker id, expected 1 or empty string, but received 2",
        ),
        (BROKER_LOGGER, "", errors.INVALID_REQUEST, "Broker id must not be empty"),
        (BROKER_LOGGER, "2", errors.INVALID_REQUEST, "Unexpected broker id, expected 1 but received 2"),
        (CLIENT_METRICS, "", errors.INVALID_REQUEST, "Client metrics subscription name must not be empty"),
        (GROUP, "", errors.INVALID_REQUEST, "Group name must not be empty"),
    ],
)
def test_what_is_not_there_has_no_configs(
    broker: Any, resource_type: int, name: str, code: int, why: str
) -> None:
    kind = messages.DescribeConfigsRequest.DescribeConfigsResource
    resources = [
        kind(resource_type=resource_type, resource_name=name),
        kind(resource_type=BROKER, resource_name="1"),
    ]
    wrong, right = call(broker, handler("describe_configs"), 4, resources=resources).results
    assert (wrong.error_code, wrong.configs, right.error_code) == (code, [], errors.NONE)
    assert (wrong.error_message or "").startswith(why) and right.configs


def test_one_unknown_kind_spoils_the_request(broker: Any) -> None:
    kind = messages.DescribeConfigsRequest.DescribeConfigsResource
    resources = [kind(resource_type=type, resource_name="1") for type in (BROKER, 77)]
    answer = call(broker, handler("describe_configs"), 4, resources=resources)
    assert [(result.error_code, result.configs) for result in answer.results] == [(42, []), (42, [])]


def test_what_there_is_to_configure_can_be_listed(broker: Any) -> None:
    create(broker, creatable("orders"))
    alter(broker, GROUP, "readers", ("consumer.session.timeout.ms", SET, "46000"))
    alter(broker, CLIENT_METRICS, "fast", ("interval.ms", SET, "1000"))
    listing = handler("list_config_resources")
    found = call(broker, listing, 1).config_resources
    assert [(each.resource_type, each.resource_name) for each in found] == [
        (32, "readers"),
        (16, "fast"),
        (8, "1"),
        (4, "1"),
        (2, "orders"),
    ]
    assert [each.resource_name for each in call(broker, listing, 0).config_resources] == ["fast"]
    assert call(broker, listing, 1, resource_types=[2, 99]).error_code == 35
