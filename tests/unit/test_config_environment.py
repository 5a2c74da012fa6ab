"""The environments of the images that people have in their compose files start this broker as they are."""

from __future__ import annotations

import pytest

from pykafkad import config_environment, first_topics
from pykafkad.config import BrokerConfig, ConfigError

ID = "5L6g3nShT-eMCtK--X86sw"

APACHE = {
    "KAFKA_NODE_ID": "1",
    "KAFKA_PROCESS_ROLES": "broker,controller",
    "KAFKA_LISTENERS": "PLAINTEXT://localhost:9092,CONTROLLER://localhost:9093",
    "KAFKA_ADVERTISED_LISTENERS": "PLAINTEXT://localhost:9092",
    "KAFKA_CONTROLLER_LISTENER_NAMES": "CONTROLLER",
    "KAFKA_LISTENER_SECURITY_PROTOCOL_MAP": "CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT",
    "KAFKA_CONTROLLER_QUORUM_VOTERS": "1@localhost:9093",
    "KAFKA_OFFSETS_TOPIC_REPLICATION_FACTOR": "1",
    "KAFKA_TRANSACTION_STATE_LOG_REPLICATION_FACTOR": "1",
    "KAFKA_TRANSACTION_STATE_LOG_MIN_ISR": "1",
    "KAFKA_SHARE_COORDINATOR_STATE_TOPIC_REPLICATION_FACTOR": "1",
    "KAFKA_SHARE_COORDINATOR_STATE_TOPIC_MIN_ISR": "1",
    "KAFKA_GROUP_INITIAL_REBALANCE_DELAY_MS": "0",
    "KAFKA_NUM_PARTITIONS": "3",
    "KAFKA_LOG_DIRS": "/tmp/kraft-combined-logs",
    "CLUSTER_ID": ID,
}
CONFLUENT = {
    "KAFKA_NODE_ID": "1",
    "KAFKA_LISTENER_SECURITY_PROTOCOL_MAP": "CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT,PLAINTEXT_HOST:PLAINTEXT",
    "KAFKA_ADVERTISED_LISTENERS": "PLAINTEXT://broker:29092,PLAINTEXT_HOST://localhost:9092",
    "KAFKA_OFFSETS_TOPIC_REPLICATION_FACTOR": "1",
    "KAFKA_GROUP_INITIAL_REBALANCE_DELAY_MS": "0",
    "KAFKA_TRANSACTION_STATE_LOG_MIN_ISR": "1",
    "KAFKA_TRANSACTION_STATE_LOG_REPLICATION_FACTOR": "1",
    "KAFKA_JMX_PORT": "9101",
    "KAFKA_JMX_HOSTNAME": "localhost",
    "KAFKA_PROCESS_ROLES": "broker,controller",
    "KAFKA_CONTROLLER_QUORUM_VOTERS": "1@broker:29093",
    "KAFKA_LISTENERS": "PLAINTEXT://broker:29092,CONTROLLER://broker:29093,PLAINTEXT_HOST://0.0.0.0:9092",
    "KAFKA_INTER_BROKER_LISTENER_NAME": "PLAINTEXT",
    "KAFKA_CONTROLLER_LISTENER_NAMES": "CONTROLLER",
    "KAFKA_LOG_DIRS": "/tmp/kraft-combined-logs",
    "KAFKA_HEAP_OPTS": "-Xmx512m",
    "CLUSTER_ID": ID,
}
CONFLUENT_ZOOKEEPER = {
    "KAFKA_BROKER_ID": "1",
    "KAFKA_ZOOKEEPER_CONNECT": "zookeeper:2181",
    "KAFKA_LISTENER_SECURITY_PROTOCOL_MAP": "PLAINTEXT:PLAINTEXT,PLAINTEXT_HOST:PLAINTEXT",
    "KAFKA_ADVERTISED_LISTENERS": "PLAINTEXT://broker:29092,PLAINTEXT_HOST://localhost:9092",
    "KAFKA_OFFSETS_TOPIC_REPLICATION_FACTOR": "1",
    "KAFKA_CONFLUENT_LICENSE_TOPIC_REPLICATION_FACTOR": "1",
    "KAFKA_AUTO_CREATE_TOPICS_ENABLE": "true",
    "KAFKA_LOG4J_ROOT_LOGLEVEL": "WARN",
    "CONFLUENT_METRICS_ENABLE": "false",
}
BITNAMI = {
    "KAFKA_CFG_NODE_ID": "0",
    "KAFKA_CFG_PROCESS_ROLES": "controller,broker",
    "KAFKA_CFG_CONTROLLER_QUORUM_VOTERS": "0@kafka:9093",
    "KAFKA_CFG_LISTENERS": "PLAINTEXT://:9092,CONTROLLER://:9093,EXTERNAL://:9094",
    "KAFKA_CFG_ADVERTISED_LISTENERS": "PLAINTEXT://kafka:9092,EXTERNAL://localhost:9094",
    "KAFKA_CFG_LISTENER_SECURITY_PROTOCOL_MAP": "CONTROLLER:PLAINTEXT,EXTERNAL:PLAINTEXT,PLAINTEXT:PLAINTEXT",
    "KAFKA_CFG_CONTROLLER_LISTENER_NAMES": "CONTROLLER",
    "KAFKA_CFG_AUTO_CREATE_TOPICS_ENABLE": "false",
    "KAFKA_KRAFT_CLUSTER_ID": ID,
    "KAFKA_ENABLE_KRAFT": "yes",
    "ALLOW_PLAINTEXT_LISTENER": "yes",
    "BITNAMI_DEBUG": "true",
}
WURSTMEISTER = {
    "KAFKA_ADVERTISED_HOST_NAME": "192.168.99.100",
    "KAFKA_ZOOKEEPER_CONNECT": "zookeeper:2181",
    "KAFKA_CREATE_TOPICS": "orders:3:1,log:1:1:compact",
    "KAFKA_PORT": "9092",
    "BROKER_ID_COMMAND": "hostname | awk -F'-' '{print $2}'",
}
# image: its variables, where it listens, what clients are told, what is ignored
IMAGES: dict[str, tuple[dict[str, str], str, str, list[str]]] = {
    "apache": (APACHE, "PLAINTEXT://localhost:9092", "PLAINTEXT://localhost:9092", []),
    "confluent": (
        CONFLUENT,
        "PLAINTEXT://broker:29092,PLAINTEXT_HOST://0.0.0.0:9092",
        "PLAINTEXT://broker:29092,PLAINTEXT_HOST://localhost:9092",
        ["KAFKA_HEAP_OPTS", "KAFKA_JMX_HOSTNAME", "KAFKA_JMX_PORT"],
    ),
    "confluent with ZooKeeper": (
        CONFLUENT_ZOOKEEPER,
        "PLAINTEXT://0.0.0.0:29092,PLAINTEXT_HOST://0.0.0.0:9092",
        "PLAINTEXT://broker:29092,PLAINTEXT_HOST://localhost:9092",
        [
            "CONFLUENT_METRICS_ENABLE",
            "KAFKA_CONFLUENT_LICENSE_TOPIC_REPLICATION_FACTOR",
            "KAFKA_ZOOKEEPER_CONNECT",
        ],
    ),
    "bitnami": (
        BITNAMI,
        "PLAINTEXT://:9092,EXTERNAL://:9094",
        "PLAINTEXT://kafka:9092,EXTERNAL://localhost:9094",
        ["ALLOW_PLAINTEXT_LISTENER", "KAFKA_ENABLE_KRAFT"],
    ),
    "wurstmeister": (
        WURSTMEISTER,
        "PLAINTEXT://0.0.0.0:9092",
        "PLAINTEXT://192.168.99.100:9092",
        ["BROKER_ID_COMMAND", "KAFKA_ZOOKEEPER_CONNECT"],
    ),
}


@pytest.mark.parametrize("image", IMAGES)
def test_the_environment_of_an_image_is_a_config(image: str) -> None:
    environment, listens, advertised, ignored = IMAGES[image]
    config = BrokerConfig.from_sources(None, {"HOME": "/", "PATH": "/bin", **environment})
    assert ",".join(map(str, config.listeners)) == listens
    assert ",".join(map(str, config.advertised_listeners)) == advertised
    assert config.unknown == []
    assert config.ignored_variables == ignored
    said = [line for _, line in config.notes() if "these variables change nothing here" in line]
    assert said == ([f"{', '.join(ignored)}: these variables change nothing here."] if ignored else [])
    assert config["pykafkad.cluster.id"] == (ID if ID in environment.values() else None)


def test_a_variable_of_bitnamis_counts_for_more_than_kafkas() -> None:
    both = {"KAFKA_CFG_NUM_PARTITIONS": "3", "KAFKA_NUM_PARTITIONS": "2"}
    assert BrokerConfig.from_sources(None, both)["num.partitions"] == 3


def test_what_a_file_says_of_listeners_stands() -> None:
    environment = {"KAFKA_ADVERTISED_LISTENERS": "PLAINTEXT://kafka:9092"}
    file = {"listeners": "PLAINTEXT://127.0.0.1:1"}
    assert [str(each) for each in BrokerConfig.from_sources(file, environment).listeners] == [
        "PLAINTEXT://127.0.0.1:1"
    ]


def test_what_kubernetes_says_of_a_service_called_kafka_is_no_config() -> None:
    environment = {
        "KAFKA_PORT": "tcp://10.0.0.7:9092",
        "KAFKA_SERVICE_HOST": "10.0.0.7",
        "KAFKA_SERVICE_PORT": "9092",
        "KAFKA_PORT_9092_TCP_ADDR": "10.0.0.7",
        "KAFKA_BOOTSTRAP_SERVERS": "kafka:9092",
    }
    assert config_environment.properties_from_environment(environment) == {}
    with_host = {**environment, "KAFKA_ADVERTISED_HOST_NAME": "here"}
    found = config_environment.properties_from_environment(with_host)
    assert found == {"advertised.listeners": "PLAINTEXT://here:9092"}


def test_a_variable_cluster_id_alone_is_somebody_elses() -> None:
    assert BrokerConfig.from_sources(None, {"CLUSTER_ID": "prod-eu-1"})["pykafkad.cluster.id"] is None
    with pytest.raises(ConfigError, match="Cluster ID string prod-eu-1 does not appear to be a valid UUID"):
        BrokerConfig.from_sources(None, {"CLUSTER_ID": "prod-eu-1", "KAFKA_NODE_ID": "1"})


@pytest.mark.parametrize(
    ("environment", "level"),
    [
        ({}, None),
        ({"BITNAMI_DEBUG": "true"}, "debug"),
        ({"BITNAMI_DEBUG": "false"}, None),
        ({"KAFKA_LOG4J_ROOT_LOGLEVEL": "WARN"}, "warn"),
        ({"KAFKA_LOG4J_ROOT_LOGLEVEL": "info"}, "info"),
        ({"KAFKA_LOG4J_ROOT_LOGLEVEL": "loud"}, None),
    ],
)
def test_log_levels(environment: dict[str, str], level: str | None) -> None:
    assert config_environment.log_level(environment) == level


# -- topics


def test_topics_to_create() -> None:
    found = BrokerConfig.from_sources(None, WURSTMEISTER)["pykafkad.create.topics"]
    topics = [
        (
            topic.name,
            topic.num_partitions,
            topic.replication_factor,
            [(each.name, each.value) for each in topic.configs],
        )
        for topic in first_topics.parse(f"{found}, plain")
    ]
    assert topics == [
        ("orders", 3, 1, []),
        ("log", 1, 1, [("cleanup.policy", "compact")]),
        ("plain", -1, -1, []),
    ]


def test_another_separator() -> None:
    environment = {"KAFKA_CREATE_TOPICS": "a:1:1\nb:2:1", "KAFKA_CREATE_TOPICS_SEPARATOR": "\n"}
    topics = BrokerConfig.from_sources(None, environment)["pykafkad.create.topics"]
    assert [topic.name for topic in first_topics.parse(topics)] == ["a", "b"]
