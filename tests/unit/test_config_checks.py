"""Relations between config keys: the last value that each allows, the first that it refuses, and which key is named."""

from __future__ import annotations

import pytest

from pykafkad.config import BrokerConfig, ConfigError, validate_topic_configs

Texts = dict[str, str]
MIB = 1 << 20
OVERRIDES = "max.connections.per.ip.overrides"


def key_refused(texts: Texts) -> str | None:
    """The key that a broker with these cannot start for; None if it can."""
    try:
        BrokerConfig(texts)
    except ConfigError as refused:
        return refused.key
    return None


@pytest.mark.parametrize(
    ("key", "allowed", "refused", "others"),
    [
        ("offsets.topic.compression.codec", 4, 5, {}),
        ("offsets.topic.compression.codec", 0, -1, {}),
        ("share.coordinator.state.topic.compression.codec", 4, 5, {}),
        ("group.consumer.heartbeat.interval.ms", 10, 9, {"group.consumer.min.heartbeat.interval.ms": "10"}),
        ("group.consumer.session.timeout.ms", 60_000, 60_001, {}),
        ("group.share.heartbeat.interval.ms", 15_000, 15_001, {}),
        ("log.roll.ms", 1, 0, {}),
        ("log.roll.jitter.ms", 0, -1, {}),
        ("log.retention.ms", -1, 0, {}),
        ("log.retention.minutes", 1, 0, {}),
        ("log.retention.hours", 1, 0, {}),
        ("log.cleaner.dedupe.buffer.size", MIB + 1, MIB, {}),
        ("log.cleaner.dedupe.buffer.size", 3 * MIB + 3, 3 * MIB + 2, {"log.cleaner.threads": "3"}),
        ("log.cleaner.threads", 1, 0, {}),
        ("replica.socket.timeout.ms", 500, 499, {}),
        ("replica.lag.time.max.ms", 500, 499, {}),
        ("max.connections.per.ip", 1, 0, {}),
        ("queued.max.request.bytes", 1000, 999, {"socket.request.max.bytes": "1000"}),
        ("queued.max.request.bytes", 0, 1, {"socket.request.max.bytes": "2"}),
    ],
)
def test_the_last_value_that_is_allowed_and_the_first_that_is_not(
    key: str, allowed: int, refused: int, others: Texts
) -> None:
    assert key_refused({**others, key: str(allowed)}) is None
    assert key_refused({**others, key: str(refused)}) == key


def test_the_most_exact_key_of_retention_is_the_one_that_is_checked() -> None:
    assert key_refused({"log.retention.ms": "1", "log.retention.minutes": "0"}) is None
    assert key_refused({"log.retention.minutes": "1", "log.retention.hours": "0"}) is None


def test_an_address_may_have_no_share_where_single_ones_have() -> None:
    assert key_refused({"max.connections.per.ip": "0", OVERRIDES: "127.0.0.1:1"}) is None


def test_assignors_are_kafkas_own_and_classic_groups_are_always_served() -> None:
    ours = "org.apache.kafka.coordinator.group.assignor.RangeAssignor,uniform"
    assert key_refused({"group.consumer.assignors": ours}) is None
    assert key_refused({"group.consumer.assignors": "range,mine"}) == "group.consumer.assignors"
    protocols = "group.coordinator.rebalance.protocols"
    assert key_refused({protocols: "classic"}) is None
    assert key_refused({protocols: "consumer"}) == protocols


def test_what_would_be_allowed_is_told() -> None:
    with pytest.raises(ConfigError) as refused:
        BrokerConfig({"group.consumer.heartbeat.interval.ms": "20000"})
    assert refused.value.allowed == "<= 15000"
    assert str(refused.value) == (
        "group.consumer.heartbeat.interval.ms must be less than or equal to"
        " group.consumer.max.heartbeat.interval.ms"
    )
    with pytest.raises(ConfigError) as refused:
        BrokerConfig({"replica.fetch.wait.max.ms": "40000"})
    assert refused.value.allowed == "40000 or more"
    assert refused.value.told == f"requirement failed: {refused.value}", "as Kafka has it"


# -- topics

TIERED = {"remote.storage.enable": "true"}


def topic_key_refused(texts: Texts, *, remote_system: bool = True) -> str | None:
    config = BrokerConfig({"remote.log.storage.system.enable": str(remote_system).lower()})
    try:
        validate_topic_configs(config, texts)
    except ConfigError as refused:
        return refused.key
    return None


def test_a_topic_is_compacted_no_earlier_than_it_must_be() -> None:
    most = {"max.compaction.lag.ms": "1000"}
    assert topic_key_refused({**most, "min.compaction.lag.ms": "1000"}) is None
    assert topic_key_refused({**most, "min.compaction.lag.ms": "1001"}) == "min.compaction.lag.ms"


def test_remote_storage_is_for_topics_that_delete_on_brokers_that_have_it() -> None:
    assert topic_key_refused(TIERED, remote_system=False) == "remote.storage.enable"
    for policy, refused in (("delete", None), ("", None), ("compact", "cleanup.policy")):
        assert topic_key_refused({**TIERED, "cleanup.policy": policy}) == refused
    assert topic_key_refused({**TIERED, "cleanup.policy": "compact,delete"}) == "cleanup.policy"


@pytest.mark.parametrize("unit", ["bytes", "ms"])
@pytest.mark.parametrize(
    ("local", "whole", "is_allowed"),
    [(-2, 100, True), (0, 100, True), (100, 100, True), (101, 100, False), (-1, 100, False), (-1, -1, True)],
)
def test_no_more_is_kept_locally_than_in_all(unit: str, local: int, whole: int, is_allowed: bool) -> None:
    texts = {**TIERED, f"local.retention.{unit}": str(local), f"retention.{unit}": str(whole)}
    assert topic_key_refused(texts) == (None if is_allowed else f"local.retention.{unit}")


@pytest.mark.parametrize("unit", ["bytes", "ms"])
@pytest.mark.parametrize(("local", "is_allowed"), [(-2, True), (100, True), (99, False)])
def test_where_nothing_more_is_copied_all_of_it_is_local(unit: str, local: int, is_allowed: bool) -> None:
    texts = {
        **TIERED,
        "remote.log.copy.disable": "true",
        f"local.retention.{unit}": str(local),
        f"retention.{unit}": "100",
    }
    assert topic_key_refused(texts) == (None if is_allowed else f"local.retention.{unit}")
