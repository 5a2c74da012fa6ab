"""Which configs groups, subscriptions and loggers may have, at the bounds; the texts are Kafka's."""

from __future__ import annotations

from typing import Any

import pytest

from pykafkad import errors
from pykafkad.cluster import config_rules
from pykafkad.cluster.config_rules import APPEND, DELETE, SET, SUBTRACT
from pykafkad.config import BrokerConfig
from pykafkad.errors import KafkaError

CONFIG = BrokerConfig.from_sources({"log.dirs": "/a"})
SESSION, HEARTBEAT = "consumer.session.timeout.ms", "consumer.heartbeat.interval.ms"
LEVELS = "DEBUG, ERROR, FATAL, INFO, TRACE, WARN"
INTERVAL = "Invalid value {} for interval.ms, interval must be between 100 and 3600000 (1 hour)"


def refusal(check: Any, *arguments: Any) -> tuple[int, str | None] | None:
    try:
        check(*arguments)
    except KafkaError as error:
        return error.code, error.text
    return None


@pytest.mark.parametrize(
    ("configs", "why"),
    [
        ({}, None),
        ({SESSION: "45000", HEARTBEAT: "5000"}, None),
        ({SESSION: "60000", HEARTBEAT: "15000"}, None),
        (
            {SESSION: "44999"},
            f"{SESSION} must be greater than or equal to group.consumer.min.session.timeout.ms",
        ),
        (
            {SESSION: "60001"},
            f"{SESSION} must be less than or equal to group.consumer.max.session.timeout.ms",
        ),
        (
            {HEARTBEAT: "4999"},
            f"{HEARTBEAT} must be greater than or equal to group.consumer.min.heartbeat.interval.ms",
        ),
        (
            {HEARTBEAT: "15001"},
            f"{HEARTBEAT} must be less than or equal to group.consumer.max.heartbeat.interval.ms",
        ),
        (
            {"streams.num.standby.replicas": "3"},
            "streams.num.standby.replicas must be less than or equal to group.streams.max.standby.replicas",
        ),
        ({"streams.num.standby.replicas": "2"}, None),
        ({SESSION: "many"}, f"Invalid value many for configuration {SESSION}: Not a number of type INT"),
        ({SESSION: "50000", "nosuch": "1"}, "Unknown group config name: nosuch"),
    ],
)
def test_what_a_group_may_have(configs: dict[str, str], why: str | None) -> None:
    found = refusal(config_rules.check_group, CONFIG, "readers", configs)
    assert found == (None if why is None else (errors.INVALID_CONFIG, why))
    refused = errors.INVALID_REQUEST, "Default group resources are not allowed."
    assert refusal(config_rules.check_group, CONFIG, "", configs) == refused


@pytest.mark.parametrize(("heartbeat", "good"), [("44999", True), ("45000", False)])
def test_a_session_is_longer_than_the_time_between_heartbeats(heartbeat: str, good: bool) -> None:
    limits = {"group.consumer.max.heartbeat.interval.ms": "50000"}
    config = BrokerConfig.from_sources({"log.dirs": "/a", **limits})
    found = refusal(config_rules.check_group, config, "readers", {HEARTBEAT: heartbeat})
    why = f"{SESSION} must be greater than {HEARTBEAT}"
    assert found == (None if good else (errors.INVALID_CONFIG, why))


def test_a_groups_own_configs_are_before_the_brokers() -> None:
    config = BrokerConfig.from_sources({"log.dirs": "/a", "group.consumer.heartbeat.interval.ms": "6000"})
    values = config_rules.group_values(config, {SESSION: "50000"})
    assert (values[SESSION], values[HEARTBEAT]) == (50_000, 6_000)


@pytest.mark.parametrize(
    ("name", "configs", "code", "why"),
    [
        ("m", {}, errors.NONE, ""),
        ("m", {"interval.ms": "100"}, errors.NONE, ""),
        ("m", {"interval.ms": "3600000"}, errors.NONE, ""),
        ("m", {"interval.ms": "99"}, errors.INVALID_REQUEST, INTERVAL.format(99)),
        ("m", {"interval.ms": "3600001"}, errors.INVALID_REQUEST, INTERVAL.format(3600001)),
        ("", {}, errors.INVALID_REQUEST, "Subscription name can't be empty"),
        ("m", {"nosuch": "1"}, errors.INVALID_REQUEST, "Unknown client metrics configuration: nosuch"),
        (
            "m",
            {"interval.ms": "x"},
            errors.INVALID_CONFIG,
            "Invalid value x for configuration interval.ms: Not a number of type INT",
        ),
        ("m", {"match": "client_id=["}, errors.INVALID_CONFIG, None),
        ("m", {"match": "nosuch=a"}, errors.INVALID_CONFIG, None),
        ("m", {"match": "client_id=a.*"}, errors.NONE, ""),
    ],
)
def test_what_a_subscription_may_have(name: str, configs: dict[str, str], code: int, why: str | None) -> None:
    found = refusal(config_rules.check_client_metrics, name, configs)
    assert (found[0] if found else errors.NONE) == code
    assert why is None or (found[1] if found else "") == why


@pytest.mark.parametrize(
    ("name", "operation", "value", "refused"),
    [
        ("root", SET, "DEBUG", None),
        ("controller", SET, "FATAL", None),
        ("controller", DELETE, None, None),
        (
            "root",
            SET,
            "LOUD",
            (
                errors.INVALID_CONFIG,
                f"Cannot set the log level of root to LOUD as it is not a supported log level. Valid log levels"
                f" are {LEVELS}",
            ),
        ),
        (
            "root",
            DELETE,
            None,
            (errors.INVALID_REQUEST, "Removing the log level of the root logger is not allowed"),
        ),
        ("nosuch", SET, "DEBUG", (errors.INVALID_CONFIG, "Logger nosuch does not exist!")),
        ("nosuch", DELETE, None, (errors.INVALID_CONFIG, "Logger nosuch does not exist!")),
        (
            "nosuch",
            APPEND,
            "DEBUG",
            (errors.INVALID_REQUEST, "APPEND operation is not allowed for the BROKER_LOGGER resource"),
        ),
        (
            "root",
            SUBTRACT,
            "DEBUG",
            (errors.INVALID_REQUEST, "SUBTRACT operation is not allowed for the BROKER_LOGGER resource"),
        ),
        ("root", 9, "DEBUG", (errors.UNKNOWN_SERVER_ERROR, None)),
    ],
)
def test_which_levels_a_logger_may_have(name: str, operation: int, value: str | None, refused: Any) -> None:
    found = refusal(config_rules.check_level, name, operation, value)
    assert found == refused or (found and refused and refused[1] is None and found[0] == refused[0])


@pytest.mark.parametrize(("name", "number"), [("1", 1), ("-1", -1), ("+7", 7), ("x", None), ("", None)])
def test_a_broker_is_named_by_its_number(name: str, number: int | None) -> None:
    if number is not None:
        assert config_rules.node_number(name) == number
    else:
        why = f"Broker id must be an integer, but it is: {name}"
        assert refusal(config_rules.node_number, name, "Broker") == (errors.INVALID_REQUEST, why)


def test_the_log_shows_no_secrets_and_nothing_that_is_not_known() -> None:
    for key, seen in (("num.io.threads", "8"), ("ssl.keystore.password", "[hidden]"), ("nosuch", "[hidden]")):
        assert config_rules.shown(4, key, "8") == seen
    assert config_rules.shown(2, "nosuch", "8") == "8"


def test_of_what_is_not_known_the_first_in_kafkas_order_is_named() -> None:
    known: Any = {"a": None}
    assert config_rules.first_unknown(known, ["a"]) is None
    assert config_rules.first_unknown(known, ["a", "zz", "b"]) == "zz", "as Java's set has them"
    many = ["a", *(f"x{number}" for number in range(1_000))]
    assert config_rules.first_unknown(known, many) in many[1:]
