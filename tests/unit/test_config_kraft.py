"""What process.roles=broker makes of a config, and what it excludes."""

from __future__ import annotations

import pytest

from pykafkad.config import BrokerConfig, ConfigError
from pykafkad.config_kraft import voters_of

LEAST = {
    "process.roles": "broker",
    "node.id": "2",
    "controller.quorum.voters": "100@h:9093,101@[::1]:9094",
    "controller.listener.names": "CONTROLLER",
}


def made(**more: str) -> BrokerConfig:
    return BrokerConfig.from_sources({**LEAST, **{key.replace("_", "."): text for key, text in more.items()}})


def test_a_broker_beside_controllers_is_one_of_several() -> None:
    config = made()
    assert config.beside_kraft
    assert config.is_clustered
    assert not config.on_zookeeper
    assert voters_of(config["controller.quorum.voters"]) == {100: ("h", 9093), 101: ("::1", 9094)}
    assert not BrokerConfig.from_sources({}).beside_kraft


def test_bootstrap_servers_do_as_well() -> None:
    config = BrokerConfig.from_sources(
        {
            **{key: text for key, text in LEAST.items() if "voters" not in key},
            "controller.quorum.bootstrap.servers": "h:1,h:2",
        }
    )
    assert config.beside_kraft


def test_its_keys_count() -> None:
    config = made(broker_heartbeat_interval_ms="100", num_replica_fetchers="2", metadata_log_dir="/x")
    assert config.unhonoured == []


@pytest.mark.parametrize(
    ("keys", "key"),
    [
        ({"controller_quorum_voters": "2@h:1"}, "controller.quorum.voters"),
        ({"controller_quorum_voters": ""}, "controller.quorum.voters"),
        ({"controller_listener_names": ""}, "controller.listener.names"),
        ({"listeners": "PLAINTEXT://:1,CONTROLLER://:2"}, "controller.listener.names"),
        (
            {"listener_security_protocol_map": "CONTROLLER:SSL,PLAINTEXT:PLAINTEXT"},
            "controller.listener.names",
        ),
        ({"inter_broker_listener_name": "OTHER"}, "inter.broker.listener.name"),
        ({"pykafkad_single_node": "true"}, "process.roles"),
        ({"pykafkad_create_topics": "a:1"}, "pykafkad.create.topics"),
    ],
)
def test_what_cannot_be_is_refused(keys: dict[str, str], key: str) -> None:
    with pytest.raises(ConfigError) as refused:
        made(**keys)
    assert refused.value.key == key


def test_an_id_must_be_given() -> None:
    with pytest.raises(ConfigError) as refused:
        BrokerConfig.from_sources({key: text for key, text in LEAST.items() if key != "node.id"})
    assert refused.value.key == "node.id"
