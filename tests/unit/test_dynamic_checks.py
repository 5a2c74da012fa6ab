"""Which values a broker's dynamic configs may have: the bounds, and Kafka's words for what is beyond them."""

from __future__ import annotations

from typing import Any

import pytest

from pykafkad.cluster.dynamic_checks import IMMUTABLE, Refused, check
from pykafkad.cluster.dynamic_config import DynamicConfig
from pykafkad.config import BrokerConfig
from pykafkad.slices import finish

GENERAL = "Invalid value org.apache.kafka.common.config.ConfigException: "
OF_ALL = "Invalid dynamic configuration"


def dynamic(**texts: str) -> DynamicConfig:
    file = {name.replace("_", "."): text for name, text in texts.items()}
    return DynamicConfig(BrokerConfig.from_sources(file), Any, 1)  # type: ignore[arg-type]


def refusal(dynamic: DynamicConfig, texts: dict[str, str], *, per_broker: bool = False) -> str | None:
    """Why a broker may not have these; None if it may."""
    try:
        finish(check(dynamic, texts, per_broker=per_broker))
    except Refused as error:
        return str(error).removeprefix(GENERAL).removesuffix(f" for configuration {OF_ALL}")
    return None


@pytest.mark.parametrize(
    ("key", "present"), [("num.io.threads", 8), ("num.replica.fetchers", 5), ("num.network.threads", 4)]
)
def test_threads_are_halved_and_doubled_at_most(key: str, present: int) -> None:
    node = dynamic(**{key.replace(".", "_"): str(present)})
    for wanted in (present // 2, present, 2 * present):
        assert refusal(node, {key: str(wanted)}) is None
    why = f"Dynamic thread count update validation failed for {key}="
    low, high = present // 2 - 1, 2 * present + 1
    assert f"{why}{low}, value should be at least half the current value {present}" in str(
        refusal(node, {key: str(low)})
    )
    assert f"{why}{high}, value should not be greater than double the current value {present}" in str(
        refusal(node, {key: str(high)})
    )


def test_cleaners_are_halved_and_doubled_at_most() -> None:
    node = dynamic(log_cleaner_threads="6")
    for wanted in (3, 6, 12):
        assert refusal(node, {"log.cleaner.threads": str(wanted)}) is None
    why = "Log cleaner threads cannot be"
    assert f"{why} reduced to less than half the current value 6" in str(
        refusal(node, {"log.cleaner.threads": "2"})
    )
    assert f"{why} increased to more than double the current value 6" in str(
        refusal(node, {"log.cleaner.threads": "13"})
    )


@pytest.mark.parametrize(
    ("local_key", "key"),
    [
        ("log.local.retention.ms", "log.retention.ms"),
        ("log.local.retention.bytes", "log.retention.bytes"),
    ],
)
def test_local_retention_is_no_longer_than_the_whole(local_key: str, key: str) -> None:
    node = dynamic(**{key.replace(".", "_"): "1000"})
    for local in ("-2", "0", "999", "1000"):
        assert refusal(node, {local_key: local}) is None
    assert f"Value must not be more than {key} property value: 1000" in str(
        refusal(node, {local_key: "1001"})
    )
    assert f"Value must not be -1 as {key} value is set as 1000." in str(refusal(node, {local_key: "-1"}))
    forever = dynamic(**{key.replace(".", "_"): "-1"})
    assert refusal(forever, {local_key: "-1"}) is refusal(forever, {local_key: "1001"}) is None


@pytest.mark.parametrize("key", ["max.connections", "max.connection.creation.rate"])
def test_a_listener_has_room_for_somebody(key: str) -> None:
    node = dynamic()
    assert refusal(node, {key: "1"}) is None
    assert f"Invalid {key} 0" in str(refusal(node, {key: "0"}))
    own = f"listener.name.plaintext.{key}"
    assert refusal(node, {own: "1"}, per_broker=True) is None
    assert f"Invalid {key} 0" in str(refusal(node, {own: "0"}, per_broker=True))
    assert refusal(dynamic(**{key.replace(".", "_"): "0"}), {key: "0"}) is None, "it is so already"


def test_what_only_a_start_reads_is_not_changed() -> None:
    told = refusal(dynamic(), {"log.dirs": "/x", "num.io.threads": "8", "broker.id": "5"})
    assert told is not None and told.startswith("Cannot update these configs dynamically: [")
    assert sorted(told.partition("[")[2].rstrip("]").split(", ")) == ["broker.id", "log.dirs"]


def test_secrets_are_of_listeners() -> None:
    told = refusal(dynamic(), {"ssl.keystore.location": "/x"}, per_broker=True)
    assert told == (
        "These security configs can be dynamically updated only per-listener using the listener prefix:"
        " [ssl.keystore.location]"
    )
    own = "listener.name.plaintext.ssl.keystore.location"
    assert refusal(dynamic(), {own: "/x"}, per_broker=True) is None
    assert refusal(dynamic(), {own: "/x"}) == (
        "Cannot update these configs at default cluster level, broker id must be specified:"
        " [listener.name.plaintext.ssl.keystore.location]"
    )


def test_classes_cannot_be_loaded() -> None:
    told = refusal(dynamic(), {"metric.reporters": "a.B"})
    assert told is not None and "Validation of dynamic config update of Set(metric.reporters) failed" in told
    assert refusal(dynamic(), {"metric.reporters": ""}) is None
    assert refusal(dynamic(), {"metric.reporters": "org.apache.kafka.common.metrics.JmxReporter"}) is None


def test_what_is_advertised_is_registered_once() -> None:
    node = dynamic()
    assert refusal(node, {"listeners": "PLAINTEXT://127.0.0.1:9092"}, per_broker=True) is None
    assert IMMUTABLE in str(refusal(node, {"listeners": "PLAINTEXT://127.0.0.1:1"}, per_broker=True))


def test_a_value_of_the_wrong_kind_is_told_as_it_is() -> None:
    assert refusal(dynamic(), {"num.io.threads": "many"}) == (
        "Invalid value many for configuration num.io.threads: Not a number of type INT"
    )


def test_a_layer_counts_with_the_other() -> None:
    """The broker's own values are before those of all."""
    node = dynamic(num_io_threads="8")
    node.of_this = {"num.io.threads": "8"}
    assert refusal(node, {"num.io.threads": "100"}) is None
    node.of_this, node.of_all = {}, {"num.io.threads": "100"}
    assert refusal(node, {"num.io.threads": "8"}, per_broker=True) is None
    assert refusal(node, {}, per_broker=True) is not None


def test_many_names_are_looked_at_in_turns() -> None:
    texts = {f"unknown.{number}": "x" for number in range(300)}
    assert sum(1 for _ in check(dynamic(), texts, per_broker=True)) == 4
