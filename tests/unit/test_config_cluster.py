"""What zookeeper.connect makes of a config, and what it excludes."""

from __future__ import annotations

import pytest

from pykafkad.config import BrokerConfig, ConfigError

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
