from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

import pykafkad
from pykafkad import config_environment
from pykafkad.config import (
    BROKER_KEYS,
    BrokerConfig,
    Endpoint,
    TopicConfig,
    validate_topic_configs,
)
from pykafkad.config_authorizer import OF_ZOOKEEPER, STANDARD, super_users
from pykafkad.config_def import ConfigError, Key, rows, show_double, to_text
from pykafkad.config_entities import GROUP
from pykafkad.config_keys import OF_4_3
from pykafkad.config_listeners import move

KRAFT = {
    "process.roles": "broker,controller",
    "node.id": "7",
    "controller.quorum.voters": "7@localhost:9093",
    "listeners": "PLAINTEXT://:9092,CONTROLLER://:9093",
    "advertised.listeners": "PLAINTEXT://kafka.example:9092",
    "controller.listener.names": "CONTROLLER",
    "log.dirs": "/data/a,/data/b",
}

CLUSTER = {"zookeeper.connect": "zk:2181", "broker.id": "0"}


def plaintext(host: str, port: int, name: str = "PLAINTEXT") -> Endpoint:
    return Endpoint(name, "PLAINTEXT", host, port)


# --- sources


def test_without_sources_a_broker_is_node_1_on_loopback() -> None:
    config = BrokerConfig({})
    assert config.listeners == config.advertised_listeners == [plaintext("127.0.0.1", 9092)]
    assert config.node_id == config["node.id"] == config["broker.id"] == 1
    assert config["log.segment.bytes"] == 1 << 30
    assert config.notes() == []
    assert not config.explicit("log.segment.bytes")


def test_the_environment_wins_over_the_file_and_the_command_line_over_both() -> None:
    file = {"num.partitions": "2", "message.max.bytes": "2000", "log.roll.ms": "5"}
    environment = {"KAFKA_NUM_PARTITIONS": "3", "KAFKA_MESSAGE_MAX_BYTES": "3000", "HOME": "/"}
    config = BrokerConfig.from_sources(file, environment, {"num.partitions": "4"})
    assert (config["num.partitions"], config["message.max.bytes"], config["log.roll.ms"]) == (4, 3000, 5)
    assert config.origins == {
        "num.partitions": "command line",
        "message.max.bytes": "environment",
        "log.roll.ms": "server.properties",
    }
    assert config.explicit("num.partitions")


def test_host_and_port_of_the_command_line_move_the_first_client_listener() -> None:
    texts = {
        "listeners": "CONTROLLER://c:1, BROKEN, A://a:2,B://b:3",
        "controller.listener.names": "CONTROLLER",
    }
    origins = {"listeners": "server.properties"}
    move(texts, origins, "0.0.0.0", None)
    assert texts["listeners"] == "CONTROLLER://c:1,BROKEN,A://0.0.0.0:2,B://b:3"
    assert origins == {"listeners": "command line"}
    move(texts, origins, None, 0)
    assert texts["listeners"] == "CONTROLLER://c:1,BROKEN,A://0.0.0.0:0,B://b:3"
    texts.clear()
    move(texts, origins, None, 9)
    assert texts == {"listeners": "PLAINTEXT://127.0.0.1:9"}


@pytest.mark.parametrize(("idle_ms", "refused"), [(100, True), (0, True), (101, False), (-1, False)])
def test_who_failed_to_authenticate_waits_for_less_than_an_idle_connection(
    idle_ms: int, refused: bool
) -> None:
    texts = {
        "connections.max.idle.ms": str(idle_ms),
        "connection.failed.authentication.delay.ms": "100",
    }
    if refused:
        with pytest.raises(ConfigError, match=r"should always be less than connections\.max\.idle\.ms"):
            BrokerConfig(texts)
    else:
        BrokerConfig(texts)


def test_groups_do_not_wait_where_there_is_no_file() -> None:
    key = "group.initial.rebalance.delay.ms"
    assert BrokerConfig.from_sources()[key] == 0
    assert (
        BrokerConfig.from_sources({})[key] == BrokerConfig.from_sources({"num.partitions": "2"})[key] == 3000
    )
    assert BrokerConfig.from_sources()["group.consumer.heartbeat.interval.ms"] == 250
    assert BrokerConfig.from_sources({})["group.consumer.heartbeat.interval.ms"] == 5000
    least = "group.consumer.min.heartbeat.interval.ms"
    assert (
        BrokerConfig.from_sources(None, {}, {least: "1000"})["group.consumer.heartbeat.interval.ms"] == 5000
    )
    variable = "KAFKA_GROUP_INITIAL_REBALANCE_DELAY_MS"
    assert BrokerConfig.from_sources(None, {variable: "20"})[key] == 20
    assert BrokerConfig.from_sources(None, {variable: "20"}, {key: "3000"})[key] == 3000


def test_variables_follow_the_rules_of_kafkas_image() -> None:
    environment = {
        "KAFKA_LOG_DIRS": "/x",
        "KAFKA_LISTENER_NAME_MY__NET_SSL_KEYSTORE_TYPE": "JKS",
        "KAFKA_A___B": "1",
        "KAFKA_HEAP_OPTS": "-Xmx1G",
        "KAFKA_VERSION": "4.3.1",
        "NOT_KAFKA_LOG_DIRS": "/y",
    }
    assert config_environment.properties_from_environment(environment) == {
        "log.dirs": "/x",
        "listener.name.my_net.ssl.keystore.type": "JKS",
        "a-b": "1",
    }


def test_unknown_and_unhonoured_keys_are_one_warning_each() -> None:
    config = BrokerConfig({"num.io.threads": "1", "no.such.key": "1", "other": "2", "num.partitions": "3"})
    assert config.unknown == ["no.such.key", "other"]
    assert config.unhonoured == ["num.io.threads"]
    notes = config.notes()
    assert [level for level, _ in notes] == ["warn", "warn"]
    assert "[no.such.key, other]" in notes[0][1]
    assert "[num.io.threads]" in notes[1][1]


def test_keys_of_our_own_are_known_checked_and_dynamic() -> None:
    key = "pykafkad.scrub.max.bytes.per.second"
    assert BrokerConfig({})[key] == 0
    config = BrokerConfig({key: "1000"})
    assert (config[key], config.unknown, config.unhonoured) == (1000, [], [])
    assert key not in BROKER_KEYS, "Kafka's are listed by DescribeConfigs, ours only where they are set"
    with pytest.raises(ConfigError, match="Value must be at least 0"):
        BrokerConfig({key: "-1"})
    assert config.adopt(config.with_dynamic({key: "5"})) == {key}
    assert config[key] == 5
    assert OF_4_3.dynamic[key].update_mode == "cluster-wide"


def test_keys_of_one_listener_are_known_and_not_honoured() -> None:
    config = BrokerConfig(
        {
            "listener.name.plaintext.max.connections": "5",
            "listener.name.x.scram-sha-256.sasl.jaas.config": "y",
        }
    )
    assert config.unknown == []
    assert "listener.name.x.scram-sha-256.sasl.jaas.config" in config.unhonoured


def test_a_secret_is_not_shown_in_an_error() -> None:
    key = Key("secret", "PASSWORD", None, "nonempty", "HIGH", "")
    with pytest.raises(ConfigError, match=r"Invalid value \[hidden\] for configuration secret"):
        key.parse("")


# --- node and quorum


def test_kafkas_combined_properties_are_accepted_and_the_controller_port_stays_shut() -> None:
    config = BrokerConfig(KRAFT)
    assert config.node_id == 7
    assert config.listeners == [plaintext("", 9092)]
    assert config.advertised_listeners == [plaintext("kafka.example", 9092)]
    assert config.controller_listeners == [plaintext("", 9093, "CONTROLLER")]
    assert config.log_dirs == ["/data/a", "/data/b"]
    assert config.metadata_log_dir == "/data/a"
    assert [level for level, line in config.notes() if "CONTROLLER://:9093" in line] == ["info"]


@pytest.mark.parametrize(
    ("base", "known", "foreign"),
    [({}, STANDARD, OF_ZOOKEEPER), (CLUSTER, OF_ZOOKEEPER, STANDARD), ({}, STANDARD, "com.example.Own")],
)
def test_who_wants_access_to_be_checked_is_not_served_unchecked(
    base: dict[str, str], known: str, foreign: str
) -> None:
    key = "authorizer.class.name"
    assert BrokerConfig({**base, key: known}).notes() == []
    assert BrokerConfig({**base, key: " "})[key] == ""
    with pytest.raises(ConfigError, match="access cannot be checked by it here") as refused:
        BrokerConfig({**base, key: foreign})
    assert refused.value.key == key and foreign in str(refused.value) and known in refused.value.allowed


def test_acls_of_another_zookeeper_are_not_taken_for_those_of_this_one() -> None:
    key = "authorizer.zookeeper.url"
    with pytest.raises(ConfigError, match=r"ACLs are in the ZooKeeper of zookeeper\.connect") as refused:
        BrokerConfig({**CLUSTER, "authorizer.class.name": OF_ZOOKEEPER, key: "other:2181"})
    assert refused.value.key == key


def test_super_users_have_types() -> None:
    on = {"authorizer.class.name": STANDARD}
    config = BrokerConfig(
        {**on, "super.users": " User:a;User:CN=b,O=c ;", "allow.everyone.if.no.acl.found": "TRUE"}
    )
    assert super_users(config) == {"User:a", "User:CN=b,O=c"} and config["allow.everyone.if.no.acl.found"]
    assert not super_users(BrokerConfig(on)) and not BrokerConfig(on)["allow.everyone.if.no.acl.found"]
    with pytest.raises(ConfigError, match="principalType:principalName but got ann") as refused:
        BrokerConfig({**on, "super.users": "User:a;ann"})
    assert refused.value.key == "super.users"


def test_without_an_authorizer_nobody_knows_its_keys() -> None:
    config = BrokerConfig({"super.users": "User:a", "allow.everyone.if.no.acl.found": "true"})
    assert config.unknown == ["super.users", "allow.everyone.if.no.acl.found"]


def test_an_old_broker_id_is_the_node_id() -> None:
    assert BrokerConfig({"broker.id": "4"}).node_id == 4
    with pytest.raises(ConfigError, match=r"same value as `broker.id`"):
        BrokerConfig({"broker.id": "4", "node.id": "5"})


@pytest.mark.parametrize(
    ("change", "key"),
    [
        ({"process.roles": "broker"}, "controller.quorum.voters"),  # which has its own id
        ({"process.roles": "controller"}, "process.roles"),
        ({"controller.quorum.voters": "8@h:1"}, "controller.quorum.voters"),
        ({"controller.quorum.voters": "7@h:1,8@h:2"}, "controller.quorum.voters"),
        ({"controller.quorum.bootstrap.servers": "h:1,h:2"}, "controller.quorum.bootstrap.servers"),
    ],
)
def test_a_quorum_of_others_is_refused_rather_than_ignored(change: dict[str, str], key: str) -> None:
    with pytest.raises(ConfigError) as refused:
        BrokerConfig({**KRAFT, **change})
    assert refused.value.key == key


# --- listeners


def test_several_listeners_have_their_names_protocols_and_addresses() -> None:
    config = BrokerConfig(
        {
            "listeners": "INT://127.0.0.1:9092,ext://[::1]:9094",
            "listener.security.protocol.map": "INT:PLAINTEXT,EXT:PLAINTEXT",
            "advertised.listeners": "EXT://[2001:db8::1]:443,INT://a.b_c-d:443",
        }
    )
    assert config.listeners == [plaintext("127.0.0.1", 9092, "INT"), plaintext("::1", 9094, "EXT")]
    assert config.advertised_listeners == [
        plaintext("2001:db8::1", 443, "EXT"),
        plaintext("a.b_c-d", 443, "INT"),
    ]
    assert [str(endpoint) for endpoint in config.listeners] == ["INT://127.0.0.1:9092", "EXT://[::1]:9094"]


@pytest.mark.parametrize("listener", ["SSL://:9092", "SASL_PLAINTEXT://:9092", "SASL_SSL://:9092"])
def test_a_listener_that_cannot_be_secured_is_refused(listener: str) -> None:
    with pytest.raises(ConfigError, match="security protocol") as refused:
        BrokerConfig({"listeners": listener})
    assert refused.value.allowed == "listeners with PLAINTEXT"


@pytest.mark.parametrize(
    "listeners",
    ["A://127.0.0.1:9092,B://[::1]:9092", "A://127.0.0.1:0,B://127.0.0.1:0"],
)
def test_ports_may_be_shared_by_two_families_or_when_any_will_do(listeners: str) -> None:
    config = BrokerConfig(
        {"listeners": listeners, "listener.security.protocol.map": "A:PLAINTEXT,B:PLAINTEXT"}
    )
    assert len(config.listeners) == 2


@pytest.mark.parametrize(
    "listeners",
    ["A://127.0.0.1:9092,B://127.0.0.2:9092", "A://localhost:9092,B://[::1]:9092", "A://[::1]:1,B://[::2]:1"],
)
def test_otherwise_each_listener_has_a_port_of_its_own(listeners: str) -> None:
    with pytest.raises(ConfigError, match="Each listener must have a different port") as refused:
        BrokerConfig({"listeners": listeners, "listener.security.protocol.map": "A:PLAINTEXT,B:PLAINTEXT"})
    assert refused.value.key == "listeners"


BETWEEN, PROTOCOL = "inter.broker.listener.name", "security.inter.broker.protocol"
NOT_ADVERTISED = (
    f"{BETWEEN} must be a listener name defined in advertised.listeners."
    " The valid options based on currently configured listeners are PLAINTEXT"
)


@pytest.mark.parametrize(
    ("texts", "message"),
    [
        (
            {BETWEEN: "internal"},
            f"Listener with name INTERNAL defined in {BETWEEN} not found in listener.security.protocol.map.",
        ),
        (
            {BETWEEN: "PLAINTEXT", PROTOCOL: "PLAINTEXT"},
            f"Only one of {BETWEEN} and {PROTOCOL} should be set.",
        ),
        ({BETWEEN: ""}, "The provided listener name is null or empty string"),
        ({BETWEEN: "SSL"}, NOT_ADVERTISED),
        ({PROTOCOL: "SSL"}, NOT_ADVERTISED),
        (
            {"advertised.listeners": "SSL://h:1"},
            "advertised.listeners listener names must be equal to or a subset of the ones defined in listeners."
            " Found SSL. The valid options based on the current configuration are PLAINTEXT",
        ),
        (
            {"advertised.listeners": "PLAINTEXT://0.0.0.0:1"},
            "advertised.listeners cannot use the nonroutable meta-address 0.0.0.0. Use a routable IP address.",
        ),
    ],
)
def test_what_brokers_or_clients_could_not_use_is_refused_in_kafkas_words(
    texts: dict[str, str], message: str
) -> None:
    with pytest.raises(ConfigError) as refused:
        BrokerConfig({"listeners": "PLAINTEXT://127.0.0.1:9092", **texts})
    assert str(refused.value) == message and refused.value.key in (*texts, BETWEEN)
    BrokerConfig({BETWEEN: "plaintext"})
    BrokerConfig({PROTOCOL: "PLAINTEXT"})


def test_host_and_port_replace_those_of_the_first_client_listener() -> None:
    config = BrokerConfig.from_sources(
        {**KRAFT, "listeners": "CONTROLLER://:9093,PLAINTEXT://:9092"}, host="0.0.0.0", port=0
    )
    assert config.listeners == [plaintext("0.0.0.0", 0)]
    assert config.controller_listeners == [plaintext("", 9093, "CONTROLLER")]
    assert config.advertised_listeners == [plaintext("kafka.example", 9092)], "a proxy's, perhaps"


def test_a_port_alone_keeps_the_hosts() -> None:
    config = BrokerConfig.from_sources(KRAFT, port=1234)
    assert config.listeners == [plaintext("", 1234)]
    assert config.advertised_listeners == [plaintext("kafka.example", 9092)]
    assert BrokerConfig.from_sources(port=1).listeners == [plaintext("127.0.0.1", 1)]


def test_a_host_is_also_what_clients_are_told() -> None:
    config = BrokerConfig.from_sources(KRAFT, host="::1")
    assert config.listeners == [plaintext("::1", 9092)]
    assert config.advertised_listeners == [plaintext("kafka.example", 9092)]
    assert BrokerConfig.from_sources(host="::1").advertised_listeners == [plaintext("::1", 9092)]


def test_explicit_listeners_win_when_no_host_or_port_is_given() -> None:
    assert BrokerConfig.from_sources({"listeners": "PLAINTEXT://h:1"}).listeners == [plaintext("h", 1)]


def test_connection_overrides_are_read() -> None:
    config = BrokerConfig({"max.connections.per.ip.overrides": "127.0.0.1:3, ::1:4 ,host:0"})
    assert config.connections_per_ip_overrides == {"127.0.0.1": 3, "::1": 4, "host": 0}


# --- topics


def test_a_topic_takes_the_brokers_defaults_and_its_own_configs() -> None:
    broker = BrokerConfig({"log.segment.bytes": "2000000", "log.retention.hours": "2", "log.roll.hours": "3"})
    topic = TopicConfig(broker, {"retention.ms": "77", "cleanup.policy": "compact, delete"})
    assert topic["segment.bytes"] == 2_000_000
    assert topic["retention.ms"] == 77
    assert TopicConfig(broker)["retention.ms"] == 7_200_000
    assert topic["segment.ms"] == 10_800_000
    assert topic["cleanup.policy"] == ["compact", "delete"]
    assert topic.text("cleanup.policy") == "compact,delete"


def test_one_topics_list_does_not_leak_into_anothers() -> None:
    broker = BrokerConfig({})
    TopicConfig(broker, {"cleanup.policy": "compact"})
    assert TopicConfig(broker)["cleanup.policy"] == ["delete"]


def test_the_internal_segment_size_is_the_one_that_counts() -> None:
    topic = TopicConfig(BrokerConfig({}), {"internal.segment.bytes": "100", "segment.bytes": "2000000"})
    assert topic["segment.bytes"] == 100
    assert topic.text("segment.bytes") == "2000000"


def test_negative_retention_means_unlimited() -> None:
    assert BrokerConfig({"log.retention.minutes": "-5"}).topic_defaults["retention.ms"] == -1


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        (
            "retention.ms",
            "abc",
            "Invalid value abc for configuration retention.ms: Not a number of type LONG",
        ),
        ("nope", "1", "Unknown topic config name: nope"),
        ("retention.ms", None, "Null value not supported for topic configs: retention.ms"),
    ],
)
def test_one_topic_config_is_refused_in_kafkas_words(name: str, value: str | None, message: str) -> None:
    with pytest.raises(ConfigError) as refused:
        OF_4_3.check_topic(name, value)
    assert str(refused.value) == message


def test_null_is_refused_before_anything_else() -> None:
    with pytest.raises(
        ConfigError, match=r"Null value not supported for topic configs: retention\.ms,flush\.ms"
    ):
        validate_topic_configs(BrokerConfig({}), {"retention.ms": None, "nope": "1", "flush.ms": None})


# --- values


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.0, "0.0"),
        (0.5, "0.5"),
        (1e-3, "0.001"),
        (1e-4, "1.0E-4"),
        (1.25e-05, "1.25E-5"),
        (0.00012, "1.2E-4"),
        (-0.00012, "-1.2E-4"),
        (9999999.0, "9999999.0"),
        (1e7, "1.0E7"),
        (12345678.5, "1.23456785E7"),
        (1e300, "1.0E300"),
        (2147483647.0, "2.147483647E9"),
        (float("nan"), "NaN"),
        (float("-inf"), "-Infinity"),
    ],
)
def test_doubles_are_shown_as_java_shows_them(value: float, text: str) -> None:
    assert show_double(value) == text


def test_values_are_shown_to_clients_as_they_could_set_them() -> None:
    config = BrokerConfig({"log.dirs": "/a, /b"})
    assert config.text("log.dirs") == "/a,/b"
    assert config.text("auto.create.topics.enable") == "true"
    assert config.text("log.roll.ms") is None
    assert to_text(0.5) == "0.5"


def test_every_key_says_what_it_allows() -> None:
    assert all(key.allowed() for key in BROKER_KEYS.values())
    assert BROKER_KEYS["log.segment.bytes"].allowed() == "a whole number of 1048576 or more"
    assert BROKER_KEYS["compression.lz4.level"].allowed() == "a whole number from 1 to 17"
    assert BROKER_KEYS["compression.gzip.level"].allowed() == "a whole number from 1 to 9, or -1"


RESET = "share.auto.offset.reset"


@pytest.mark.parametrize(
    "text",
    ["latest", "earliest", "by_duration:PT1H", "by_duration:P1D", "by_duration:PT0S", "by_duration:pt1h"],
)
def test_share_groups_reset_to_an_end_or_by_a_duration(text: str) -> None:
    assert rows(GROUP)[RESET].parse(text) == text


@pytest.mark.parametrize(
    "text",
    ["LATEST", "none", "", "x:PT1H", "BY_DURATION:PT1H"]
    + [f"by_duration:{wrong}" for wrong in ("", "x", "-PT1H", "PT-1S", "P1Y", "P", "PT", "P1DT")],
)
def test_share_groups_reset_to_nothing_else(text: str) -> None:
    with pytest.raises(ConfigError) as refused:
        rows(GROUP)[RESET].parse(text)
    assert str(refused.value) == (
        f"Invalid value {text} for configuration {RESET}: Invalid value `{text}` for configuration {RESET}. "
        "The value must be either 'earliest', 'latest' or of the format 'by_duration:<PnDTnHnMn.nS>'."
    )


def test_the_config_modules_import_nothing_slow() -> None:
    slow = {"argparse", "asyncio", "dataclasses", "inspect", "json", "logging", "threading", "typing"}
    code = (
        "import sys; before = set(sys.modules); import pykafkad.config, pykafkad.cli, pykafkad.properties;"
        " print(*sorted(set(sys.modules) - before))"
    )
    command = [sys.executable, "-S", "-c", code]
    environment = {**os.environ, "PYTHONPATH": str(Path(pykafkad.__file__).parents[1])}
    loaded = subprocess.run(
        command, capture_output=True, text=True, check=True, env=environment
    ).stdout.split()
    assert slow & set(loaded) == set()


@pytest.mark.parametrize(("port", "fits"), [(0, True), (65_535, True), (65_536, False)])
def test_a_port_has_sixteen_bits(port: int, fits: bool) -> None:
    texts = {"listeners": f"PLAINTEXT://h:{port}"}
    if fits:
        assert [each.port for each in BrokerConfig(texts).listeners] == [port]
    else:
        with pytest.raises(ConfigError):
            BrokerConfig(texts)
