"""--json: one shape a tool, which is the one in its documentation (JSON_EXAMPLE), also where there is nothing, and of
an error; and that it says what the lines say."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from types import ModuleType
from typing import Any

import pytest

from pykafkad import tools
from pykafkad.testing import Broker
from pykafkad.tools import configs, consume, groups, log_dirs, offsets, topics

FREE = frozenset({"configs", "entity"})  # objects whose keys are names
VIEWS = ("state", "members", "offsets")
Json = Callable[..., Any]


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    with Broker() as broker:
        yield broker


@pytest.fixture
def shown(broker: Broker, capsys: pytest.CaptureFixture[str]) -> Json:
    def run(tool: str, *arguments: str, code: int = 0) -> Any:
        capsys.readouterr()
        where = ["--bootstrap-server", broker.bootstrap_servers]
        assert tools.main(tool, [*arguments, "--json", *where]) == code
        return json.loads(capsys.readouterr().out)

    return run


@pytest.fixture
def run(broker: Broker, capsys: pytest.CaptureFixture[str]) -> Callable[..., str]:
    def run(tool: str, *arguments: str) -> str:
        capsys.readouterr()
        assert tools.main(tool, [*arguments, "--bootstrap-server", broker.bootstrap_servers]) == 0
        return capsys.readouterr().out

    return run


def example(module: ModuleType) -> Any:
    return json.loads(module.JSON_EXAMPLE)


def check(wanted: Any, found: Any, *, but: frozenset[str] = frozenset(), path: str = "") -> None:
    """The keys and types of the example, except for what may be null or absent."""
    if path.rpartition(".")[2] in FREE and isinstance(wanted, dict):
        assert isinstance(found, dict)
    elif isinstance(wanted, dict):
        assert set(found) == set(wanted) - but, path
        for key in found:
            check(wanted[key], found[key], but=but, path=f"{path}.{key}")
    elif isinstance(wanted, list) and wanted:
        for one in found:
            check(wanted[0], one, but=but, path=f"{path}[]")
    elif wanted is not None and found is not None:
        assert type(found) is type(wanted), path


def test_nothing_is_valid_json_too(shown: Json) -> None:
    assert shown("topics", "--list", "--topic", "none") == {"topics": []}
    assert shown("topics", "--describe", "--topic", "none", "--if-exists") == {"topics": []}
    assert shown("groups", "--list", "--state", "Dead") == {"groups": []}
    assert shown("groups", "--describe", "--all-groups") == {"groups": []}
    assert shown("offsets", "--topic", "none") == {"offsets": []}
    assert shown("configs", "--describe", "--entity-type", "client-metrics") == {"configs": []}
    assert shown("configs", "--describe", "--user", "nobody") == {"configs": []}


@pytest.mark.parametrize(
    ("tool", "arguments", "name"),
    [
        ("topics", "--describe --topic none", "FAILED"),
        ("topics", "--list --describe", "USAGE"),
        ("topics", "--list --no-such-option", "USAGE"),
        ("topics", "--create --topic t", "USAGE"),
        ("groups", "--describe --group none", "GROUP_ID_NOT_FOUND"),
        ("groups", "--list --type none", "FAILED"),
        ("groups", "--list --group g", "USAGE"),
        ("configs", "--describe --topic none", "RESOURCE_NOT_FOUND"),
        ("configs", "--describe", "FAILED"),
        ("offsets", "--time soon", "FAILED"),
        ("log-dirs", "--describe --broker-list 9", "FAILED"),
    ],
)
def test_errors_are_json(shown: Json, tool: str, arguments: str, name: str) -> None:
    found = shown(tool, *arguments.split(), code=1)
    assert set(found) == {"error"} and set(found["error"]) == {"name", "message"}
    assert found["error"]["name"] == name and found["error"]["message"]


def test_topics(run: Callable[..., str], shown: Json) -> None:
    run("topics", "--create", "--topic", "described", "--partitions", "2", "--config", "retention.ms=5000")
    found = shown("topics", "--describe", "--topic", "described")
    check(example(topics), found)
    (topic,) = found["topics"]
    assert (topic["configs"]["retention.ms"], len(topic["partitions"])) == ("5000", 2)
    listed = shown("topics", "--list", "--topic", "described")
    check(example(topics), listed, but=frozenset({"configs", "partitions"}))
    assert shown("topics", "--describe", "--topic", "described", "--unavailable-partitions") == {"topics": []}
    assert shown("topics", "--describe", "--topic", "described", "--topics-with-overrides") == found
    by_id = shown("topics", "--describe", "--topic-id", topic["topic_id"])
    check(example(topics), by_id)
    assert by_id["topics"][0]["configs"] == topic["configs"]


def test_groups(broker: Broker, run: Callable[..., str], shown: Json) -> None:
    run("topics", "--create", "--topic", "read", "--partitions", "2")
    group = ["--group", "reading"]
    run("groups", "--reset-offsets", *group, "--topic", "read:0", "--to-earliest", "--execute")
    found = shown("groups", "--describe", *group)
    check(example(groups), found)
    (one,) = found["groups"]
    assert (one["state"], one["members"]) == ("Empty", [])
    assert [(row["partition"], row["committed_offset"], row["lag"]) for row in one["offsets"]] == [(0, 0, 0)]
    views = {view: set(shown("groups", "--describe", *group, f"--{view}")["groups"][0]) for view in VIEWS}
    assert views == {
        "state": set(one) - {"members", "offsets"},
        "members": set(one) - {"offsets"},
        "offsets": set(one) - {"members"},
    }
    listed = {"group": "reading", "type": "Classic", "state": "Empty", "protocol_type": ""}
    assert shown("groups", "--list")["groups"] == [listed]
    assert shown("groups", "--list", "--all-types")["groups"] == [listed]


def test_a_member(broker: Broker, run: Callable[..., str], shown: Json) -> None:
    from pykafkad.tools.consumer import Consumer

    run("topics", "--create", "--topic", "joined")
    for protocol in ("classic", "consumer"):
        consumer = Consumer(broker.bootstrap_servers, {"group.id": protocol, "group.protocol": protocol})
        try:
            consumer.subscribe(["joined"])
            for _ in range(600):
                consumer.poll(0.1)
                found = shown("groups", "--describe", "--group", protocol)
                (group,) = found["groups"]
                if group["members"] and group["members"][0]["assignment"]:
                    break
            check(example(groups), found)
            (member,) = group["members"]
            assert member["assignment"] == [{"topic": "joined", "partition": 0}]
            assert [row["member_id"] for row in group["offsets"]] == [member["member_id"]]
            assert (group["type"], group["group_epoch"] is None) == (
                protocol.capitalize(),
                protocol == "classic",
            )
        finally:
            consumer.close()


def test_configs(run: Callable[..., str], shown: Json) -> None:
    run("topics", "--create", "--topic", "set", "--config", "retention.ms=5000")
    found = shown("configs", "--describe", "--topic", "set")
    check(example(configs), found)
    assert [entry["value"] for entry in found["configs"][0]["entries"]] == ["5000"]
    everything = shown("configs", "--describe", "--topic", "set", "--all")
    check(example(configs), everything)
    assert len(everything["configs"][0]["entries"]) > 20


def test_quotas_have_the_shape_of_configs(run: Callable[..., str], shown: Json) -> None:
    quota = ["--add-config", "producer_byte_rate=1024"]
    run("configs", "--alter", "--user", "alice", "--client", "c", *quota)
    run("configs", "--alter", "--user-defaults", *quota)
    found = shown("configs", "--describe", "--user", "alice", "--client", "c")
    check(example(configs), found)
    entry = {
        "name": "producer_byte_rate",
        "value": "1024.0",
        "source": "QUOTA",
        "sensitive": False,
        "synonyms": [],
    }
    assert found == {"configs": [{"entity": {"users": "alice", "clients": "c"}, "entries": [entry]}]}
    assert shown("configs", "--describe", "--user-defaults")["configs"][0]["entity"] == {"users": None}


def test_offsets_and_log_dirs(run: Callable[..., str], shown: Json) -> None:
    run("topics", "--create", "--topic", "sized")
    found = shown("offsets", "--topic", "sized")
    check(example(offsets), found)
    assert found == {"offsets": [{"topic": "sized", "partition": 0, "offset": 0, "error": None}]}
    assert shown("offsets", "--topic", "sized", "--time", "99")["offsets"][0]["offset"] is None
    described = shown("log-dirs", "--describe", "--topic-list", "sized")
    check(example(log_dirs), described)
    assert described == json.loads(run("log-dirs", "--describe", "--topic-list", "sized").splitlines()[2])


def test_records(
    broker: Broker, run: Callable[..., str], shown: Json, capsys: pytest.CaptureFixture[str]
) -> None:
    from pykafkad.tools.producer import Producer

    producer = Producer(broker.bootstrap_servers, {})
    producer.send(
        "records", b"k", "é".encode(), [("h", b"1"), ("none", None)], timestamp_ms=1_700_000_000_000
    )
    producer.send("records", None, b"\xff\x00", timestamp_ms=1_700_000_000_001)
    producer.close()
    how = ["--topic", "records", "--partition", "0", "--offset", "earliest", "--max-messages", "2", "--json"]
    first, second = map(json.loads, run("consume", *how).splitlines())
    check(example(consume), first)
    assert (first["key"], first["value"], first["headers"]) == ("k", "é", [["h", "1"], ["none", None]])
    assert (second["offset"], second["key"], second["value"]) == (1, None, {"base64": "/wA="})
    assert first["timestamp"] == 1_700_000_000_000
    where = ["--bootstrap-server", broker.bootstrap_servers]
    assert tools.main("consume", [*how, "--formatter-property", "print.key=true", *where]) == 1
    assert "can't be used with option" in capsys.readouterr().err
