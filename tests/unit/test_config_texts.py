"""Whatever text a client gives a config, there is a proper answer: every key, with AlterConfigs and
IncrementalAlterConfigs.

RUNS and SEED choose how many random texts each key gets, and which.
"""

from __future__ import annotations

import os
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from pykafkad import errors, logs
from pykafkad.cluster.config_rules import CLIENT_METRICS_KEYS, GROUP_KEYS
from pykafkad.config import BROKER_KEYS, TOPIC_KEYS, BrokerConfig, ConfigError
from pykafkad.config_keys import OF_4_3
from pykafkad.coordinator.groups import typed_group_configs
from tests.unit.config_kit import (
    APPEND,
    BROKER,
    BROKER_LOGGER,
    CLIENT_METRICS,
    DELETE,
    GROUP,
    SET,
    SUBTRACT,
    TOPIC,
    alter,
    alter_all,
    altered,
    describe,
    handler,
    open_configurable,
    replace,
)
from tests.unit.metadata_fakes import call, creatable, create

RUNS = int(os.environ.get("RUNS", "4"))
SEED = int(os.environ.get("SEED", random.randrange(1 << 30)))

ZEROS, DIGITS = "0" * 5_000 + "1", "1" * 5_000
NASTY = [
    "", " ", ",", ",,", "*", "*,", "-", "+", "--1", "-+5", "1_000", "²", "h:²", "h:-+5", "h:" + DIGITS, "h:" + ZEROS,
    "٣", "１", "\U0001d7ce", "1\xa0", "\u20031", "\0", "1\0", "0x1p99999", "-0x1p99999", "0x", "0x1", "1L", "1f",
    "1d", "1e400", "-1e400", "NaN", "Infinity", "-Infinity", "nan", "inf", "9223372036854775808", ZEROS, DIGITS, "tr\0ue",
    "falſe", "1:1", "²:²", "0:" + DIGITS, "1@h:²", DIGITS + "@h:1", "X://h:" + DIGITS, "PLAINTEXT://h:²",
    "by_duration:PT" + DIGITS + "S", "by_duration:P²D", "client_id=((", "client_id=[", "client_id", "=", "ſ" * 40,
]  # fmt: skip
ATOMS = [
    "0",
    "1",
    "9",
    "-",
    "+",
    "_",
    ".",
    "e",
    "p",
    "x",
    ":",
    ",",
    " ",
    "@",
    "//",
    "=",
    "²",
    "٣",
    "NaN",
    "0x",
    "d",
    "\0",
]


def texts() -> list[str]:
    chance = random.Random(SEED)
    made = ["".join(chance.choices(ATOMS, k=chance.randint(1, 8))) for _ in range(RUNS)]
    return NASTY + made


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    print(f"SEED={SEED}")
    logs.set_level("off")  # they log thousands of lines about accepted values
    made = open_configurable(tmp_path_factory.mktemp("texts"))
    create(made, creatable("orders", 2))
    yield made
    logs.set_level("info")


KEYS = [
    *((TOPIC, "orders", key) for key in TOPIC_KEYS),
    *((BROKER, name, key) for name in ("", "1") for key in OF_4_3.dynamic.keys() | {"custom", "node.id"}),
    *((GROUP, "readers", key) for key in GROUP_KEYS),
    *((CLIENT_METRICS, "fast", key) for key in CLIENT_METRICS_KEYS),
]
CODES = {errors.NONE, errors.INVALID_CONFIG, errors.INVALID_REQUEST}


@pytest.mark.parametrize(("resource_type", "name", "key"), sorted(KEYS))
def test_every_text_for_every_key_is_answered(broker: Any, resource_type: int, name: str, key: str) -> None:
    for text in texts():
        operations = [altered(resource_type, name, (key, how, text)) for how in (SET, APPEND, SUBTRACT)]
        for operation in operations:
            ((code, _),) = alter_all(broker, operation, validate_only=True)
            assert code in CODES, repr(text)
        ((code, _),) = replace(broker, resource_type, name, {key: text})
        assert code in CODES, repr(text)
        if code == errors.NONE:
            use(broker, resource_type, name)
            always: dict[str, str | None] = (
                {"min.insync.replicas": "1"} if (resource_type, name) == (BROKER, "") else {}
            )
            ((code, _),) = replace(broker, resource_type, name, always)
            assert code in CODES, "threads are not doubled at once"


def use(broker: Any, resource_type: int, name: str) -> None:
    """An accepted value is described and takes effect."""
    describe(broker, resource_type, name)
    if resource_type == GROUP:
        typed_group_configs(broker.image.configs[GROUP, name])
    created = call(broker, handler("create_topics"), 7, topics=[creatable("another")], validate_only=True)
    assert created.topics[0].error_code in CODES | {errors.INVALID_REPLICATION_FACTOR}  # all are cordoned


@pytest.mark.parametrize("text", NASTY)
def test_every_text_for_the_name_of_a_resource_is_answered(broker: Any, text: str) -> None:
    for resource_type, key in (
        (BROKER, "log.retention.ms"),
        (BROKER_LOGGER, "root"),
        (GROUP, "consumer.session.timeout.ms"),
        (TOPIC, "retention.ms"),
        (CLIENT_METRICS, "interval.ms"),
    ):
        if (resource_type, text) != (BROKER, ""):
            assert alter(broker, resource_type, text, (key, DELETE, None))[0] in range(100)


def test_a_brokers_number_may_have_many_zeros(tmp_path: Path) -> None:
    broker = open_configurable(tmp_path)
    assert alter(broker, BROKER, ZEROS, ("log.retention.ms", DELETE, None)) == (0, None)
    code, message = alter(broker, BROKER, DIGITS, ("log.retention.ms", DELETE, None))
    assert (code, message) == (errors.INVALID_REQUEST, f"Node id must be an integer, but it is: {DIGITS}")


def test_every_static_text_starts_or_is_refused() -> None:
    refused = 0
    for key in BROKER_KEYS:
        for text in texts():
            try:
                BrokerConfig({key: text})
            except ConfigError:
                refused += 1
    assert refused > len(BROKER_KEYS)
