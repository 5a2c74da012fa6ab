"""The verdict on every key, compared with that of Apache Kafka 4.3.1 on the same texts.

golden/config/verdicts.jsonl.gz holds what its own KafkaConfig and LogConfig made of some 8,000 configs: a parsed value
or a refusal. The intended differences are listed here, each with its reason; one that no longer exists must be removed.
"""

from __future__ import annotations

import gzip
import json
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from pykafkad import config_entities, config_table
from pykafkad.config import BROKER_KEYS, BrokerConfig, TopicConfig, validate_topic_configs
from pykafkad.config_def import ConfigError, rows
from pykafkad.config_keys import OF_3_9

GOLDEN = Path(__file__).parents[1] / "golden" / "config"

# The configs to which those of the recording were added.
BASE = {
    "process.roles": "broker,controller",
    "node.id": "1",
    "controller.quorum.voters": "1@127.0.0.1:9093",
    "listeners": "PLAINTEXT://127.0.0.1:9092,CONTROLLER://127.0.0.1:9093",
    "advertised.listeners": "PLAINTEXT://127.0.0.1:9092",
    "controller.listener.names": "CONTROLLER",
    "log.dirs": "/tmp/x",
}

CLASSES = "classes cannot be loaded, so their names are only kept"
WORDING = "said in plain words instead of an index out of bounds"
QUORUM = "this broker is its own controller, alone, or beside those of others"
RELAXED = "has a default here"
PORTS = "a port out of range is found before it is bound"
MEANT = {
    **{
        name: CLASSES for name, key in BROKER_KEYS.items() if key.type == "CLASS" and "sasl.oauth" not in name
    },
    "sasl.oauthbearer.jwt.retriever.class": CLASSES,
    "sasl.oauthbearer.jwt.validator.class": CLASSES,
    "group.share.assignors": CLASSES,
    "authorizer.class.name": "classes cannot be loaded, and only what Kafka's own ones decide is known",
    "listener.security.protocol.map": WORDING,
    "max.connections.per.ip.overrides": WORDING,
    "node.id": "Kafka names broker.id, its synonym",
    "num.partitions node.id": "Kafka names broker.id, its synonym",
    "process.roles": QUORUM,
    "process.roles listeners": QUORUM,
    "controller.quorum.voters": QUORUM,
    "controller.quorum.voters controller.quorum.bootstrap.servers": QUORUM,
    "controller.quorum.bootstrap.servers": QUORUM,
    "controller.listener.names": QUORUM,
    "listeners": PORTS,
    "advertised.listeners": PORTS,
    "early.start.listeners": "there is one start",
    "listeners listener.security.protocol.map advertised.listeners": "no other broker must reach us",
    "": RELAXED,
    "broker.id": RELAXED,
    "process.roles node.id": RELAXED,
}


def read(name: str) -> list[Any]:
    with gzip.open(GOLDEN / name, "rt", encoding="ascii") as file:
        return [json.loads(line) for line in file]


@cache
def broker(**extra: str) -> BrokerConfig:
    return BrokerConfig({**BASE, **extra})


def our_topic(kind: str, key: str, configs: dict[str, str]) -> Any:
    base = {"remote.log.storage.system.enable": "true"} if kind == "topic-remote" else {}
    config = broker(**base)
    validate_topic_configs(config, configs)
    return TopicConfig(config, configs)[key] if key else None


def our_broker(kind: str, key: str, configs: dict[str, str]) -> Any:
    texts = {**(BASE if kind == "broker" else {}), **configs}
    config = BrokerConfig({name: text for name, text in texts.items() if text != "<remove>"})
    if key.startswith("t:"):  # the topics' default that results from the broker's keys
        return config.topic_defaults[key[2:]]
    return config[key] if key else None


def ours(kind: str, key: str, configs: dict[str, str]) -> tuple[bool, Any]:
    try:
        return True, (our_topic if kind.startswith("topic") else our_broker)(kind, key, configs)
    except ConfigError as problem:
        return False, str(problem)


def kafkas(key: str, verdict: dict[str, Any]) -> tuple[bool, Any]:
    if not verdict["ok"]:
        return False, verdict["error"].removeprefix("requirement failed: ")
    value = verdict["value"]
    if isinstance(value, dict):
        value = float(value["double"].replace("Infinity", "inf"))
    if key.startswith("t:") and value is None:  # Kafka leaves it to the topic's own default
        value = {name: row.default for name, row in rows(config_entities.TOPIC).items()}[key[2:]]
    return True, value


def test_every_verdict_is_kafkas_but_for_the_differences_that_are_meant() -> None:
    verdicts = read("verdicts.jsonl.gz")
    assert len(verdicts) > 8000
    differing: dict[str, tuple[Any, ...]] = {}
    for kind, key, configs, verdict in verdicts:
        expected, found = kafkas(key, verdict), ours(kind, key, configs)
        if expected != found and repr(expected) != repr(found):  # NaN is not itself
            differing.setdefault(" ".join(configs), (kind, configs, expected, found))
    assert {name: case for name, case in differing.items() if name not in MEANT} == {}
    assert MEANT.keys() - differing.keys() == set()


def test_topic_verdicts_have_no_differences() -> None:
    topics = [row for row in read("verdicts.jsonl.gz") if row[0].startswith("topic")]
    assert len(topics) > 500
    for kind, key, configs, verdict in topics:
        assert repr(ours(kind, key, configs)) == repr(kafkas(key, verdict)), configs


@pytest.mark.parametrize(
    ("name", "table"),
    [
        ("broker", config_table.BROKER),
        ("topic", config_entities.TOPIC),
        ("group", config_entities.GROUP),
        ("client-metrics", config_entities.CLIENT_METRICS),
    ],
)
def test_the_tables_hold_kafkas_facts(name: str, table: tuple[tuple[object, ...], ...]) -> None:
    facts = {fact["name"]: fact for fact in read(f"{name}.json.gz")[0]}
    keys = rows(table)
    assert keys.keys() == facts.keys()
    for key in keys.values():
        fact = facts[key.name]
        assert (key.type, key.default, key.importance, key.internal, key.sensitive) == (
            fact["type"],
            fact.get("default"),
            fact["importance"],
            fact["internal"],
            fact["sensitive"],
        ), key.name
        assert key.update_mode == fact.get("updateMode", "read-only")
        assert bool(key.validator) == ("valid" in fact), key.name


def test_topic_defaults_come_from_the_broker_keys_that_kafka_asks() -> None:
    for fact in read("topic.json.gz")[0]:
        asked = [(synonym["name"], synonym["multiplier"]) for synonym in fact.get("serverSynonyms", ())]
        assert list(config_entities.TOPIC_SYNONYMS.get(fact["name"], ())) == asked


def test_a_cluster_has_the_topic_keys_of_3_9() -> None:
    facts = {fact["name"]: fact for fact in read("topic-3.9.json.gz")[0]}
    assert OF_3_9.topic.keys() - facts.keys() == {"internal.segment.bytes"}
    for name, fact in facts.items():
        key = OF_3_9.topic[name]
        assert (key.type, key.default, key.importance) == (fact["type"], fact["default"], fact["importance"])
        valid = fact.get("valid", {})
        if valid.get("kind") == "range" and "max" not in valid:
            assert key.validator == f"{valid['min']}..", name


def test_the_broker_keys_of_3_9_alone_are_its_facts() -> None:
    facts = {fact["name"]: fact for fact in read("broker-3.9.json.gz")[0]}
    for key in rows(config_table.OF_3_9).values():
        fact = facts[key.name]
        ours = (key.type, key.default, key.importance, key.update_mode, bool(key.validator))
        theirs = (fact["type"], fact["default"], fact["importance"], fact["updateMode"], "valid" in fact)
        assert ours == theirs, key.name


def test_honoured_keys_exist() -> None:
    assert config_table.HONOURED.issubset(BROKER_KEYS)
    assert config_table.HONOURED_OF_3_9.issubset(OF_3_9.broker.keys() - BROKER_KEYS)
    assert config_entities.TOPIC_HONOURED_IN_CLUSTER.issubset(OF_3_9.topic)
    assert config_entities.TOPIC_HONOURED.issubset(rows(config_entities.TOPIC))
