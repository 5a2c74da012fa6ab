"""One node is one node: what asks for more copies than there can be, with --single-node and without."""

from __future__ import annotations

import io
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from pykafkad import cli, errors, logs
from pykafkad.cluster import topic_names
from pykafkad.config import BrokerConfig, ConfigError
from pykafkad.handlers import create_topics, find_coordinator
from pykafkad.quiet import Quiet
from tests.unit.config_kit import BROKER, SET, TOPIC, alter, describe, open_configurable, synonyms
from tests.unit.metadata_fakes import call, creatable, create, open_broker

ALONE: dict[str, Any] = {"pykafkad_single_node": "true"}
STATIC, DEFAULT = 4, 5


@pytest.fixture
def said() -> Iterator[io.StringIO]:
    stream = io.StringIO()
    logs.set_stream(stream)
    yield stream
    logs.set_stream(None)


def quietly(broker: Any) -> None:
    broker.controller._allows = Quiet(lambda: 0, lambda delay_ms, callback: None).allows


def test_the_option_sets_the_key() -> None:
    assert cli.parse_start(["--single-node"]).overrides == {"pykafkad.single.node": "true"}


def test_what_counts_brokers_counts_one_and_is_said_once() -> None:
    texts = {
        "pykafkad.single.node": "true",
        "offsets.topic.replication.factor": "3",
        "min.insync.replicas": "2",
        "default.replication.factor": "1",
    }
    config = BrokerConfig(texts)
    for key in (
        "default.replication.factor",
        "min.insync.replicas",
        "offsets.topic.replication.factor",
        "transaction.state.log.replication.factor",
        "transaction.state.log.min.isr",
        "share.coordinator.state.topic.replication.factor",
        "share.coordinator.state.topic.min.isr",
    ):
        assert (config[key], config.text(key)) == (1, "1")
    line = "min.insync.replicas=2, offsets.topic.replication.factor=3: this is a single node, so each counts as 1"
    assert config.notes() == [("info", line)]
    assert BrokerConfig({}).single_node is False
    assert BrokerConfig({})["offsets.topic.replication.factor"] == 3


def test_internal_topics_have_few_partitions_unless_somebody_says_how_many() -> None:
    alone = {"pykafkad.single.node": "true"}
    assert BrokerConfig(alone)["offsets.topic.num.partitions"] == 5
    assert BrokerConfig({**alone, "offsets.topic.num.partitions": "50"})["offsets.topic.num.partitions"] == 50


def test_a_value_that_is_wrong_is_refused_as_ever() -> None:
    with pytest.raises(ConfigError, match=r"offsets\.topic\.replication\.factor"):
        BrokerConfig({"pykafkad.single.node": "true", "offsets.topic.replication.factor": "0"})


def test_a_dynamic_value_counts_one_too(tmp_path: Path) -> None:
    broker = open_configurable(tmp_path, **ALONE)
    alter(broker, BROKER, "", ("min.insync.replicas", SET, "2"))
    assert broker.config["min.insync.replicas"] == 1


def test_the_configs_that_count_are_shown(tmp_path: Path) -> None:
    broker = open_configurable(tmp_path, offsets_topic_replication_factor="3", **ALONE)
    entry = describe(broker, BROKER, "1")["offsets.topic.replication.factor"]
    assert entry.value == "1"
    assert [(value, source) for _, value, source in synonyms(entry)] == [("1", STATIC), ("3", DEFAULT)]
    create(broker, creatable("orders"))
    alter(broker, TOPIC, "orders", ("min.insync.replicas", SET, "2"))
    assert describe(broker, TOPIC, "orders")["min.insync.replicas"].value == "1"


def test_a_topic_gets_as_many_copies_as_there_can_be(tmp_path: Path, said: io.StringIO) -> None:
    broker = open_broker(tmp_path, **ALONE)
    quietly(broker)
    for name in ("orders", "bills"):
        topics = [creatable(name, 2, 3, min_insync_replicas="2")]
        (topic,) = call(broker, create_topics, 7, topics=topics, timeout_ms=1_000).topics
        assert (topic.error_code, topic.replication_factor) == (errors.NONE, 1)
        assert [entry.value for entry in topic.configs if entry.name == "min.insync.replicas"] == ["1"]
    assert [partition.replicas for partition in broker.image.topics["orders"].partitions] == [[1], [1]]
    assert said.getvalue().count("\n") == 1
    assert (
        "topic orders: replication factor 3 was asked for, and is 1 here (--single-node)" in said.getvalue()
    )


@pytest.mark.parametrize("value", ["x", "0", "9" * 20, "9" * 5_000, ""])
def test_a_topics_value_that_is_wrong_is_refused_as_ever(tmp_path: Path, value: str) -> None:
    broker = open_broker(tmp_path, **ALONE)
    topics = [creatable("orders", 1, 1, min_insync_replicas=value)]
    (topic,) = call(broker, create_topics, 7, topics=topics, timeout_ms=1_000).topics
    assert topic.error_code == errors.INVALID_CONFIG


def test_groups_have_a_coordinator_whatever_was_asked_for(tmp_path: Path) -> None:
    broker = open_broker(tmp_path, offsets_topic_replication_factor="3", **ALONE)
    answer = call(broker, find_coordinator, 4, coordinator_keys=["g", "h"])
    assert [found.error_code for found in answer.coordinators] == [errors.NONE] * 2
    assert len(broker.image.topics[topic_names.CONSUMER_OFFSETS].partitions) == 5


def test_without_it_kafka_answers_and_one_line_says_what_to_set(tmp_path: Path, said: io.StringIO) -> None:
    broker = open_broker(tmp_path, offsets_topic_replication_factor="3")
    quietly(broker)
    for _ in range(3):  # clients ask again and again
        answer = call(broker, find_coordinator, 4, coordinator_keys=["g", "h"])
        assert answer.coordinators[0].error_code == errors.COORDINATOR_NOT_AVAILABLE
    (topic,) = call(broker, create_topics, 7, topics=[creatable("orders", 1, 3)], timeout_ms=1_000).topics
    assert topic.error_code == errors.INVALID_REPLICATION_FACTOR
    (line,) = said.getvalue().splitlines()
    assert "topic __consumer_offsets is not created: Unable to replicate the partition 3 time" in line
    assert "--single-node" in line
