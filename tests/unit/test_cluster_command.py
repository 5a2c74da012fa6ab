"""A cluster on one machine: its files, the command line, and how its state is shown."""

from __future__ import annotations

from pathlib import Path

import pytest

from pykafkad import properties
from pykafkad.local_cluster import command, status
from pykafkad.local_cluster import home as homes
from pykafkad.local_cluster.cluster import open_or_make
from pykafkad.local_cluster.process import ClusterError
from pykafkad.messages import DescribeLogDirsResponse, MetadataResponse


@pytest.fixture(autouse=True)
def ports(monkeypatch: pytest.MonkeyPatch) -> None:
    given = iter(range(20001, 30000))
    monkeypatch.setattr(homes, "lasting_port", lambda host: next(given))


def test_a_broker_has_kafkas_keys(tmp_path: Path) -> None:
    home = homes.make(str(tmp_path), 3, None, {"num.partitions": "5", "zookeeper.session.timeout.ms": "9000"})
    broker = home.broker(1)
    found = properties.load(broker.properties)
    assert found["broker.id"] == "1" and found["zookeeper.connect"] == home.zookeeper_connect
    assert (
        found["listeners"] == f"CLIENT://127.0.0.1:{broker.port},INTERNAL://127.0.0.1:{broker.internal_port}"
    )
    assert found["inter.broker.listener.name"] == "INTERNAL"
    assert found["num.partitions"] == "5" and found["zookeeper.session.timeout.ms"] == "9000"


@pytest.mark.parametrize(
    ("brokers", "replicas", "in_sync"), [(1, "1", "1"), (2, "2", "1"), (3, "3", "2"), (5, "3", "2")]
)
def test_internal_topics_have_as_many_replicas_as_there_are_brokers(
    brokers: int, replicas: str, in_sync: str, tmp_path: Path
) -> None:
    home = homes.make(str(tmp_path), brokers, None, {})
    found = properties.load(home.broker(0).properties)
    assert found["offsets.topic.replication.factor"] == replicas
    assert found["transaction.state.log.replication.factor"] == replicas
    assert found["transaction.state.log.min.isr"] == in_sync


def test_a_directory_keeps_its_cluster(tmp_path: Path) -> None:
    made = open_or_make(str(tmp_path), 2, "zk:2181/kafka", {})
    again = open_or_make(str(tmp_path), None, None, {})
    assert again.brokers == made.brokers and again.zookeeper is None
    assert again.zookeeper_connect == "zk:2181/kafka"
    with pytest.raises(ClusterError, match="a cluster of 2 brokers, not of 3"):
        open_or_make(str(tmp_path), 3, None, {})
    with pytest.raises(ClusterError, match="on the ZooKeeper at zk:2181/kafka"):
        open_or_make(str(tmp_path), 2, "zk:2182", {})
    with pytest.raises(ClusterError, match="configs of its own"):
        open_or_make(str(tmp_path), 2, None, {"num.partitions": "5"})


def test_a_directory_without_a_cluster_is_told(tmp_path: Path) -> None:
    with pytest.raises(ClusterError, match="there is no cluster in"):
        homes.load(str(tmp_path))
    (tmp_path / homes.FILE).write_text("[]")
    with pytest.raises(ClusterError, match="cannot be read: TypeError"):
        homes.load(str(tmp_path))
    with pytest.raises(ClusterError, match=r"there is no broker 7 in .*: 0, 1"):
        homes.make(str(tmp_path), 2, None, {}).broker(7)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ("up 3", "3: nothing is expected there"),
        ("up --brokers 0", "--brokers 0: a number from 1 to 100 is allowed"),
        ("up --brokers three", "--brokers three: a number from 1 to 100 is allowed"),
        ("up --detach", "--detach goes with --data DIR"),
        ("up --broker 3", "unknown option --broker"),
        ("status", "which cluster? --data DIR names it"),
        ("kill --data D", "N, the number of the broker, is missing"),
        ("kill one --data D", "one: the number of a broker is wanted"),
        ("kill 1 2 --data D", "2: nothing is expected there"),
        ("upp", "unknown command cluster upp"),
    ],
)
def test_a_wrong_command_line_is_explained(
    arguments: str, said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert command.main(arguments.split()) == 2
    assert said in capsys.readouterr().err


def test_the_usage_names_every_command(capsys: pytest.CaptureFixture[str]) -> None:
    assert command.main(["--help"]) == 0
    said = capsys.readouterr().out
    for name in command.COMMANDS:
        assert f"\n  {name} " in said
    for option in (*command.SETTERS, "--detach", "--json"):
        assert f"\n  {option}" in said


# -- what is shown


def partition(index: int, leader: int, epoch: int, replicas: list[int], isr: list[int]) -> object:
    return MetadataResponse.MetadataResponsePartition(
        partition_index=index, leader_id=leader, leader_epoch=epoch, replica_nodes=replicas, isr_nodes=isr
    )


def view(controller: int) -> MetadataResponse:
    topic = MetadataResponse.MetadataResponseTopic(
        name="t",
        partitions=[partition(1, -1, 4, [1, 2], [2]), partition(0, 1, 2, [0, 1, 2], [1, 2])],  # type: ignore[list-item]
    )
    return MetadataResponse(cluster_id="C", controller_id=controller, topics=[topic])


def directories(lag: int) -> DescribeLogDirsResponse:
    response = DescribeLogDirsResponse
    each = response.DescribeLogDirsPartition(partition_index=0, offset_lag=lag)
    moved = response.DescribeLogDirsPartition(partition_index=0, offset_lag=99, is_future_key=True)
    topic = response.DescribeLogDirsTopic(name="t", partitions=[each, moved])
    return response(results=[response.DescribeLogDirsResult(topics=[topic])])


def test_the_state_is_what_the_controller_says(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    home = homes.make(str(tmp_path), 3, "127.0.0.1:1", {})
    answers = {0: (view(9), directories(7)), 1: (view(1), directories(0)), 2: None}
    monkeypatch.setattr(status, "_ask", lambda broker: answers[broker.id])
    monkeypatch.setattr(status, "_epochs", lambda home: {"controller": 5, "1": 71})
    found = status.gather(home)
    assert (found["controller"], found["controller_epoch"], found["cluster_id"]) == (1, 5, "C")
    assert [row["state"] for row in found["brokers"]] == ["stopped"] * 3
    assert [row["epoch"] for row in found["brokers"]] == [None, 71, None]
    assert [row["leads"] for row in found["brokers"]] == [0, 1, 0]
    first, second = found["partitions"]
    assert (first["leader"], first["leader_epoch"], first["isr"]) == (1, 2, [1, 2])
    assert first["lag"] == {"0": 7, "2": None} and second["lag"] == {"1": None, "2": None}
    assert (found["offline"], found["under_replicated"]) == (1, 2)
    assert list(status.lines(found))[-3:] == [
        "TOPIC  PARTITION  LEADER  EPOCH  REPLICAS  ISR  LAG",
        "t      0          1       2      0,1,2     1,2  0:7 2:-",
        "t      1          -1      4      1,2       2    1:- 2:-",
    ]


def test_a_cluster_of_which_nobody_answers_is_shown_without_what_only_they_know(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = homes.make(str(tmp_path), 2, "127.0.0.1:1", {})
    monkeypatch.setattr(status, "_epochs", lambda home: {})
    found = status.gather(home)
    assert found["controller"] is None and found["cluster_id"] is None and found["partitions"] == []
    assert "  controller         none" in list(status.lines(found))
