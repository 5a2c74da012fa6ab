"""The znodes' forms: what Kafka 3.9.2 wrote (tests/golden/cluster/znodes.jsonl) is read and written again the same."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from pykafkad.uuids import ZERO, from_text
from pykafkad.zookeeper import config_znodes as configs
from pykafkad.zookeeper import znodes
from pykafkad.zookeeper.config_znodes import ALLOW, LITERAL, PREFIXED, Acl, Pattern, Token
from pykafkad.zookeeper.znodes import (
    Assignment,
    Endpoint,
    MalformedZnode,
    PartitionState,
    Registration,
    Replicas,
)

if TYPE_CHECKING:
    from collections.abc import Callable

GOLDEN = Path(__file__).parent.parent / "golden" / "cluster" / "znodes.jsonl"
RECORDED = [json.loads(line) for line in GOLDEN.read_text().splitlines()]

Way = tuple["Callable[[bytes], Any]", "Callable[[Any], bytes]"]

# What paths are like, and how their data are read and written.
WAYS: list[tuple[str, Way]] = [
    (r"/brokers/ids/\d+", (znodes.read_registration, znodes.write_registration)),
    (r"/brokers/topics/[^/]+", (znodes.read_assignment, znodes.write_assignment)),
    (r"/brokers/topics/[^/]+/partitions/\d+/state", (znodes.read_state, znodes.write_state)),
    (r"/cluster/id", (znodes.read_cluster_id, znodes.write_cluster_id)),
    (r"/config/changes/.*", (configs.read_config_change, configs.write_config_change)),
    (r"/config/(topics|brokers|clients|users|ips)/.*", (configs.read_config, configs.write_config)),
    (r"/controller", (znodes.read_controller, znodes.write_controller)),
    (r"/controller_epoch", (znodes.read_epoch, znodes.write_epoch)),
    (r"/feature", (znodes.read_features, znodes.write_features)),
    (r"/isr_change_notification/.*", (znodes.read_partitions, znodes.write_isr_change)),
    (
        r"/kafka-acl-changes/.*",
        (lambda data: configs.read_acl_change(data, LITERAL), configs.write_acl_change),
    ),
    (
        r"/kafka-acl-extended-changes/.*",
        (lambda data: configs.read_acl_change(data, PREFIXED), configs.write_acl_change),
    ),
    (r"/kafka-acl(-extended/prefixed)?/.*", (configs.read_acls, configs.write_acls)),
    (r"/latest_producer_id_block", (znodes.read_producer_ids, znodes.write_producer_ids)),
]


def way_of(path: str) -> Way:
    return next(way for pattern, way in WAYS if re.fullmatch(pattern, path))


@pytest.mark.parametrize("znode", RECORDED, ids=lambda znode: znode["path"])
def test_what_kafka_wrote_is_written_the_same(znode: dict[str, str]) -> None:
    read, write = way_of(znode["path"])
    written = write(read(znode["data"].encode())).decode()
    assert meaning(written) == meaning(znode["data"])


def meaning(data: str) -> Any:
    """The order of keys is nobody's; a registration that lacks fields is written with what they are then."""
    try:
        value = json.loads(data)
    except ValueError:
        return data
    if isinstance(value, dict) and "endpoints" in value:
        value["endpoints"] = sorted(value["endpoints"])
    return value


def test_every_way_was_taken() -> None:
    taken = {next(pattern for pattern, _ in WAYS if re.fullmatch(pattern, each["path"])) for each in RECORDED}
    assert taken == {pattern for pattern, _ in WAYS}


def test_what_a_broker_registers() -> None:
    endpoints = [Endpoint("IN", "::1", 1, "SSL"), Endpoint("OUT", "host.name", 9092, "PLAINTEXT")]
    registration = Registration(endpoints, "r", 12, features={"x": {"min_version": 0, "max_version": 1}})
    data = znodes.write_registration(registration)
    assert znodes.read_registration(data) == registration
    value = json.loads(data)
    assert value["endpoints"] == ["IN://[::1]:1", "OUT://host.name:9092"]
    assert (value["host"], value["port"], value["timestamp"]) == ("host.name", 9092, "12")
    assert registration.listener("IN") == endpoints[0] and registration.listener("none") is None


def test_a_registration_without_plaintext_has_no_host() -> None:
    value = json.loads(znodes.write_registration(Registration([Endpoint("S", "h", 1, "SSL")])))
    assert (value["host"], value["port"]) == (None, -1) and "rack" not in value


@pytest.mark.parametrize(
    ("data", "endpoints"),
    [
        ('{"version":1,"host":"h","port":9,"jmx_port":-1}', [("PLAINTEXT", "h", 9, "PLAINTEXT")]),
        ('{"version":2,"jmx_port":-1,"endpoints":["SSL://:9"]}', [("SSL", "", 9, "SSL")]),
    ],
)
def test_registrations_of_older_brokers(data: str, endpoints: list[Any]) -> None:
    assert znodes.read_registration(data.encode()).endpoints == [Endpoint(*each) for each in endpoints]


def test_a_reassignment_says_who_comes_and_who_goes() -> None:
    moving = Replicas([1, 2, 0], [2], [0])
    assignment = Assignment(
        from_text("NnxMskf0RQy0TxPZGngptA"), {0: moving, 1: Replicas([1, 0]), 10: Replicas([0])}
    )
    data = znodes.write_assignment(assignment)
    value = json.loads(data)
    assert value["adding_replicas"] == {"0": [2]} and value["removing_replicas"] == {"0": [0]}
    again = znodes.read_assignment(data)
    assert again == Assignment(
        assignment.topic_id,
        {0: Replicas([1, 2, 0], [2], [0]), 1: Replicas([1, 0], [], []), 10: Replicas([0], [], [])},
    )
    assert list(again.partitions) == [0, 1, 10]
    assert (moving.target, moving.origin) == ([1, 2], [1, 0])
    assert moving.is_reassigned and not again.partitions[1].is_reassigned


def test_topics_of_old_brokers_have_no_id() -> None:
    assert znodes.read_assignment(b'{"version":1,"partitions":{"0":[1]}}').topic_id == ZERO
    assert b"topic_id" not in znodes.write_assignment(Assignment(ZERO, {}))


def test_recovering_is_said_only_while_it_is_so() -> None:
    state = PartitionState(1, 2, [1], 3, 1)
    assert znodes.read_state(znodes.write_state(state)) == state
    assert b"recovery" not in znodes.write_state(state._replace(leader_recovery_state=0))


@pytest.mark.parametrize("data", [None, b"", b"null", b"[]", b"{}", b"{", b"\xff", b'{"version":0}'])
@pytest.mark.parametrize(
    "read",
    [
        znodes.read_registration,
        znodes.read_assignment,
        znodes.read_state,
        znodes.read_controller,
        znodes.read_epoch,
        znodes.read_cluster_id,
        znodes.read_features,
        znodes.read_partitions,
        znodes.read_reassignment,
        znodes.read_log_dir_event,
        configs.read_config_change,
        configs.read_token,
        lambda data: configs.read_acl_change(data, LITERAL),
        lambda data: configs.read_acl_change(data, PREFIXED),
    ],
)
def test_what_cannot_be_read_says_so(read: Callable[[bytes | None], Any], data: bytes | None) -> None:
    with pytest.raises(MalformedZnode):
        read(data)


REGISTRATION = {
    "version": 5,
    "endpoints": ["A://h:1"],
    "listener_security_protocol_map": {"A": "SSL"},
    "jmx_port": 1,
}
STATE = {"leader": 1, "leader_epoch": 2, "isr": [1], "controller_epoch": 3}
LIST = {"version": 1, "partitions": [{"topic": "t", "partition": 0, "replicas": [1]}]}


@pytest.mark.parametrize(
    ("read", "data"),
    [
        (znodes.read_registration, REGISTRATION | {"jmx_port": float("inf")}),
        (znodes.read_registration, REGISTRATION | {"endpoints": ["A://h:65536"]}),
        (znodes.read_registration, REGISTRATION | {"rack": ["r"]}),
        (znodes.read_registration, REGISTRATION | {"rack": "\ud800"}),
        (znodes.read_registration, REGISTRATION | {"features": {"f": {"max_version": 1 << 15}}}),
        (znodes.read_assignment, {"partitions": {"-1": [1]}}),
        (znodes.read_assignment, {"partitions": {str(1 << 31): [1]}}),
        (znodes.read_assignment, {"partitions": {"0": [1 << 31]}}),
        (znodes.read_state, STATE | {"leader": 1 << 31}),
        (znodes.read_state, STATE | {"leader_epoch": 10**30}),
        (znodes.read_controller, {"brokerid": 1 << 31}),
        (znodes.read_controller, {"brokerid": 1, "timestamp": 1 << 63}),
        (znodes.read_epoch, 1 << 31),
        (znodes.read_cluster_id, {"id": 7}),
        (znodes.read_features, {"version": 2, "status": 1, "features": {"f": {"max_version_level": 1e999}}}),
        (znodes.read_partitions, {"partitions": [{"topic": "t", "partition": -1}]}),
        (znodes.read_reassignment, {"partitions": [{"topic": None, "partition": 0, "replicas": [1]}]}),
        (znodes.read_log_dir_event, {"broker": 1e999}),
        (znodes.read_producer_ids, {"broker": 1, "block_start": "0", "block_end": str(1 << 63)}),
        (configs.read_config, {"config": {"retention.ms": 7}}),
        (configs.read_config_change, {"version": 2, "entity_path": ["topics/t"]}),
    ],
)
def test_what_has_no_place_in_the_protocol_is_not_read(
    read: Callable[[bytes | None], Any], data: Any
) -> None:
    with pytest.raises(MalformedZnode):
        read(json.dumps(data).encode())


@pytest.mark.parametrize("data", [b"[" * 200_000, b'{"a":' * 100_000], ids=["arrays", "objects"])
def test_what_is_nested_deeply_cannot_be_read(data: bytes) -> None:
    with pytest.raises(MalformedZnode):
        znodes.read_state(data)


@pytest.mark.parametrize("data", [b"\xff" * 1_000_000, b'{"leader":"' + b"\x01" * 1_000_000 + b'"}'])
def test_what_is_said_of_what_cannot_be_read_is_short(data: bytes) -> None:
    for read in (znodes.read_state, znodes.read_epoch, lambda data: configs.read_acl_change(data, LITERAL)):
        with pytest.raises(MalformedZnode) as malformed:
            read(data)
        assert len(str(malformed.value)) < 2_000


def test_children_that_are_no_ids_are_no_brokers() -> None:
    assert znodes.broker_ids(["10", "x", "2", "-1", "", "99999999999", "2147483648", "9" * 5000, "²"]) == [
        2,
        10,
    ]


def test_nobody_took_producer_ids_yet() -> None:
    assert znodes.read_producer_ids(None) is None and znodes.read_producer_ids(b"") is None
    with pytest.raises(MalformedZnode):
        znodes.read_producer_ids(b"{}")


def test_wishes_of_old_tools() -> None:
    wanted = {("t", 1): [2, 0], ("u", 0): [1]}
    assert znodes.read_reassignment(znodes.write_reassignment(wanted)) == wanted
    assert znodes.read_partitions(znodes.write_preferred_election(wanted)) == list(wanted)
    assert znodes.read_log_dir_event(znodes.write_log_dir_event(7)) == 7


def test_features_of_older_versions() -> None:
    old = znodes.Features(1, {"f": 3}, version=1)
    assert json.loads(znodes.write_features(old))["features"] == {
        "f": {"max_version_level": 3, "min_version_level": 3}
    }
    assert znodes.read_features(znodes.write_features(old)) == old


@pytest.mark.parametrize(
    ("name", "path"),
    [
        ("u1", "u1"),
        ("a b", "a%20b"),
        ("CN=x,O=/", "CN%3Dx%2CO%3D%2F"),
        ("*~ä", "%2A%7E%C3%A4"),
        (None, "<default>"),
    ],
)
def test_names_in_paths_are_sanitized_as_kafka_does(name: str | None, path: str) -> None:
    assert configs.sanitized(name) == path and configs.desanitized(path) == name


def test_configs_that_have_no_data_of_their_own() -> None:
    assert configs.read_config(None) == {} == configs.read_config(b"")
    with pytest.raises(MalformedZnode):
        configs.read_config(b'{"version":1}')


def test_the_first_version_of_a_change_of_configs() -> None:
    old = b'{"version":1,"entity_type":"topics","entity_name":"t"}'
    assert configs.read_config_change(old) == "topics/t"
    with pytest.raises(MalformedZnode):
        configs.read_config_change(b'{"version":3,"entity_path":"topics/t"}')


def test_scram_credentials() -> None:
    (text,) = {
        value
        for each in RECORDED
        if each["path"] == "/config/users/alice"
        for value in configs.read_config(each["data"].encode()).values()
    }
    credential = configs.read_scram(text)
    assert credential.iterations == 4096 and len(credential.stored_key) == len(credential.server_key) == 32
    assert configs.scram_text(credential) == text
    for wrong in ("", "salt=AA==", text.replace("4096", "x"), text.replace("salt=", "salt=!")):
        with pytest.raises(MalformedZnode):
            configs.read_scram(wrong)


def test_where_acls_are() -> None:
    literal, prefixed = Pattern(5, "t", LITERAL), Pattern(3, "g-", PREFIXED)
    assert configs.acl(literal) == "/kafka-acl/TransactionalId/t"
    assert configs.acl(prefixed) == "/kafka-acl-extended/prefixed/Group/g-"
    assert configs.acl_change(literal) == "/kafka-acl-changes/acl_changes_"
    assert configs.write_acl_change(literal) == b"TRANSACTIONAL_ID:t"
    assert configs.read_acl_change(b"TRANSACTIONAL_ID:a:b", LITERAL) == Pattern(5, "a:b", LITERAL)
    assert configs.read_acls(None) == []


def test_every_operation_has_its_name() -> None:
    every = [Acl("User:a", ALLOW, "*", operation) for operation in configs.OPERATIONS]
    assert configs.read_acls(configs.write_acls(every)) == every
    with pytest.raises(MalformedZnode):
        configs.read_acls(
            b'{"version":1,"acls":[{"principal":"a","permissionType":"Allow","host":"*","operation":"Fly"}]}'
        )


def test_tokens() -> None:
    token = Token("id", "User:a b", "User:r", ["User:x/y"], 1, 3, 2)
    data = configs.write_token(token)
    assert b"User%3Aa%20b" in data and configs.read_token(data) == token
    older = {key: value for key, value in json.loads(data).items() if key != "tokenRequester"} | {
        "version": 1
    }
    assert configs.read_token(json.dumps(older).encode()).requester == token.owner


def test_paths() -> None:
    assert znodes.state("t", 3) == "/brokers/topics/t/partitions/3/state"
    assert znodes.parents("/a/b/c") == ["/a", "/a/b", "/a/b/c"]
    assert znodes.name_in(znodes.delete_topic("t")) == "t"
    assert znodes.PERSISTENT[:3] == ("/consumers", "/brokers/ids", "/brokers/topics")
    assert configs.ACL_PATHS[0] == "/kafka-acl/Topic" and "/kafka-acl-extended-changes" in configs.ACL_PATHS
