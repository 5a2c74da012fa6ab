"""What zookeeper.connect makes of a config, and what it excludes."""

from __future__ import annotations

import pytest

from pykafkad.cluster import topic_configs
from pykafkad.cluster.image import Image
from pykafkad.config import BrokerConfig, ConfigError, TopicConfig, validate_topic_configs
from pykafkad.pure import releases
from pykafkad.storage.log.settings import rules_of

LEAST = {"zookeeper.connect": "zk:2181/here", "broker.id": "0"}


def made(**more: str) -> BrokerConfig:
    return BrokerConfig.from_sources({**LEAST, **{key.replace("_", "."): text for key, text in more.items()}})


def test_a_cluster_has_the_defaults_of_3_9() -> None:
    config = made()
    assert config.is_clustered and config.node_id == 0
    assert config["group.coordinator.rebalance.protocols"] == ["classic"]
    assert config.topic_defaults["message.timestamp.after.max.ms"] == (1 << 63) - 1
    assert (config.inter_broker_listener, config["zookeeper.session.timeout.ms"]) == ("PLAINTEXT", 18000)
    alone = BrokerConfig.from_sources({})
    assert not alone.is_clustered
    assert alone.topic_defaults["message.timestamp.after.max.ms"] == 3_600_000


def test_what_is_set_counts_more_than_the_defaults_of_3_9() -> None:
    config = made(group_coordinator_rebalance_protocols="classic,consumer")
    assert config["group.coordinator.rebalance.protocols"] == ["classic", "consumer"]


def test_a_node_with_roles_leaves_zookeeper_alone_and_says_so() -> None:
    config = made(process_roles="broker,controller")
    assert not config.is_clustered
    assert [line for level, line in config.notes() if "zookeeper.connect" in line] == [
        "zookeeper.connect changes nothing: process.roles is set, so this is a single node"
    ]


@pytest.mark.parametrize(
    ("keys", "key"),
    [
        ({"zookeeper_connect": " "}, "zookeeper.connect"),
        ({"pykafkad_single_node": "true"}, "zookeeper.connect"),
        ({"controller_quorum_voters": "0@h:1"}, "controller.quorum.voters"),
        ({"inter_broker_protocol_version": "2.7"}, "inter.broker.protocol.version"),
        ({"inter_broker_protocol_version": "4.0"}, "inter.broker.protocol.version"),
        ({"inter_broker_protocol_version": "new"}, "inter.broker.protocol.version"),
        ({"inter_broker_listener_name": "INTERNAL"}, "inter.broker.listener.name"),
        ({"control_plane_listener_name": "CONTROL"}, "control.plane.listener.name"),
    ],
)
def test_what_cannot_be_is_refused(keys: dict[str, str], key: str) -> None:
    with pytest.raises(ConfigError) as raised:
        made(**keys)
    assert raised.value.key == key


def test_an_id_must_be_given() -> None:
    with pytest.raises(ConfigError) as raised:
        BrokerConfig.from_sources({"zookeeper.connect": "zk:2181"})
    assert raised.value.key == "broker.id"
    assert BrokerConfig.from_sources({"zookeeper.connect": "zk:2181", "node.id": "7"}).node_id == 7


@pytest.mark.parametrize("version", ["2.8", "2.8-IV1", "3.4", "3.9-IV0"])
def test_the_protocol_versions_since_topics_have_ids_are_taken(version: str) -> None:
    assert made(inter_broker_protocol_version=version)["inter.broker.protocol.version"] == version


def test_brokers_reach_each_other_through_the_listener_that_is_named() -> None:
    config = made(
        listeners="CLIENT://:1,INTERNAL://:2",
        listener_security_protocol_map="CLIENT:PLAINTEXT,INTERNAL:PLAINTEXT",
        inter_broker_listener_name="INTERNAL",
    )
    assert config.inter_broker_listener == "INTERNAL"


# -- topics have the keys of 3.9; what is expected is what a real 3.9.2 answered

DIFFERENCE, BEFORE, AFTER = (
    f"message.timestamp.{which}.max.ms" for which in ("difference", "before", "after")
)
FORMAT = "message.format.version"
NO_BOUND = 9223372036854775807


@pytest.mark.parametrize("version", [
    "0.8.0", "0.9.0.1", "0.10.2", "1.0.2", " 1.0 ", "2.3.1-IV1", "3.0.x", "3.7-IV4", "3.9", "4.0-IV0", "4.0-IV1",
])  # fmt: skip
def test_a_version_of_the_message_format_is_taken(version: str) -> None:
    validate_topic_configs(made(), {FORMAT: version})


@pytest.mark.parametrize("version", [
    "", "nope", "2.8-IV2", "3.0.", "3.9-IV1", "4.0", "4.0-IV2", "4.1", "0.8.0-IV0", "9",
])  # fmt: skip
def test_one_that_there_was_not_is_refused(version: str) -> None:
    with pytest.raises(ConfigError) as raised:
        validate_topic_configs(made(), {FORMAT: version})
    why = f"Invalid value {version} for configuration {FORMAT}: Version {version} is not a valid version"
    assert raised.value.told == why


@pytest.mark.parametrize(
    ("key", "text", "why"),
    [
        (DIFFERENCE, "-1", "Value must be at least 0"),
        ("segment.bytes", "13", "Value must be at least 14"),
        ("message.downconversion.enable", "x", "Expected value to be either true or false"),
    ],
)
def test_the_other_keys_of_3_9_are_checked(key: str, text: str, why: str) -> None:
    with pytest.raises(ConfigError) as raised:
        validate_topic_configs(made(), {key: text})
    assert raised.value.told == f"Invalid value {text} for configuration {key}: {why}"


def test_a_single_node_and_a_broker_beside_kraft_know_none_of_them() -> None:
    beside = {
        "process.roles": "broker",
        "node.id": "1",
        "controller.listener.names": "CONTROLLER",
        "controller.quorum.voters": "9@127.0.0.1:1",
        "listeners": "PLAINTEXT://127.0.0.1:0",
    }
    for config in (BrokerConfig.from_sources({}), BrokerConfig(beside)):
        for key in (DIFFERENCE, FORMAT, "message.downconversion.enable"):
            with pytest.raises(ConfigError, match=f"Unknown topic config name: {key}"):
                validate_topic_configs(config, {key: "1"})
        with pytest.raises(ConfigError, match="at least 1048576"):
            validate_topic_configs(config, {"segment.bytes": "14"})
    assert BrokerConfig({f"log.{FORMAT}": "3.0"}).unknown == [f"log.{FORMAT}"]


def test_what_of_them_changes_nothing_is_said_at_start() -> None:
    config = BrokerConfig({**LEAST, f"log.{FORMAT}": "3.0", f"log.{DIFFERENCE}": "1"})
    assert (config.unknown, config.unhonoured) == ([], [f"log.{FORMAT}"])


@pytest.mark.parametrize(
    ("of_broker", "of_topic", "expected"),
    [
        ({}, {}, (NO_BOUND, NO_BOUND)),
        ({}, {DIFFERENCE: "1000"}, (1000, 1000)),
        ({}, {DIFFERENCE: "1000", BEFORE: "5"}, (5, 1000)),
        ({}, {DIFFERENCE: "1000", AFTER: "5"}, (1000, 5)),
        ({}, {DIFFERENCE: "1000", BEFORE: str(NO_BOUND)}, (1000, 1000)),
        ({DIFFERENCE: "77"}, {}, (77, 77)),
        ({DIFFERENCE: "77", AFTER: "9"}, {}, (77, 9)),
        ({DIFFERENCE: "77"}, {DIFFERENCE: "7"}, (77, 77)),  # the broker's counts as if said of each direction
        ({BEFORE: "9"}, {DIFFERENCE: "7"}, (9, 7)),
    ],
)
def test_a_bound_of_both_directions_counts_where_one_has_none(
    of_broker: dict[str, str], of_topic: dict[str, str], expected: tuple[int, int]
) -> None:
    config = BrokerConfig({**LEAST, **{f"log.{key}": text for key, text in of_broker.items()}})
    rules = rules_of(TopicConfig(config, of_topic), client=True)
    assert (rules.timestamp_before_max_ms, rules.timestamp_after_max_ms) == expected


def test_what_counts_is_shown_with_where_it_was_said() -> None:
    config = BrokerConfig({**LEAST, f"log.{DIFFERENCE}": "77", f"log.{FORMAT}": "2.0"})
    shown = {
        name: (value, source) for name, value, source, _ in topic_configs.effective(config, Image(), 0, {})
    }
    assert len(shown) == 36
    assert shown[DIFFERENCE] == ("77", topic_configs.STATIC_BROKER_CONFIG)
    assert shown[BEFORE] == shown[AFTER] == ("77", topic_configs.DEFAULT_CONFIG)
    assert shown[FORMAT] == ("3.0-IV1", topic_configs.STATIC_BROKER_CONFIG)


@pytest.mark.parametrize("text", ["true", "false"])
def test_topics_of_a_cluster_convert_as_the_broker_says(text: str) -> None:
    config = made(log_message_downconversion_enable=text)
    assert TopicConfig(config).text("message.downconversion.enable") == text


@pytest.mark.parametrize(("protocol", "format"), [("2.8", "2.0-IV1"), ("3.0", "3.0-IV1")])
def test_before_protocol_3_0_the_format_is_what_the_broker_says(protocol: str, format: str) -> None:
    config = made(inter_broker_protocol_version=protocol, log_message_format_version="2.0")
    assert config.topic_defaults[FORMAT] == format


def test_the_versions_of_kafka_up_to_3_9() -> None:
    """As Kafka's MetadataVersion names them: each release means its last level."""
    last = (
        "0.8.0 0.8.1 0.8.2 0.9.0 0.10.0-IV1 0.10.1-IV2 0.10.2-IV0 0.11.0-IV2 1.0-IV0 1.1-IV0 2.0-IV1 2.1-IV2 2.2-IV1"
        " 2.3-IV1 2.4-IV1 2.5-IV0 2.6-IV0 2.7-IV2 2.8-IV1 3.0-IV1 3.1-IV0 3.2-IV0 3.3-IV3 3.4-IV0 3.5-IV2 3.6-IV2"
        " 3.7-IV4 3.8-IV0 3.9-IV0"
    )
    for name in last.split():
        release, _, level = name.partition("-IV")
        assert releases.full_name(release) == releases.full_name(f"{release}.7") == name
        assert [releases.full_name(f"{release}-IV{each}") for each in range(int(level or -1) + 1)] == [
            f"{release}-IV{each}" for each in range(int(level or -1) + 1)
        ]
        assert releases.full_name(f"{release}-IV{int(level or -1) + 1}") is None


@pytest.mark.parametrize("name", ["", "0.10", "1", "4.0", "4.0-IV2", "2.8-IV", "2.8.", "IV1", "0.7.0"])
def test_what_is_no_version_of_kafka(name: str) -> None:
    assert releases.full_name(name) is None


def test_levels_of_4_0_were_known_before_it() -> None:
    assert [releases.full_name(f"4.0-IV{each}") for each in (0, 1)] == ["4.0-IV0", "4.0-IV1"]
