"""Log directories of a broker in a cluster on ZooKeeper: partitions that move, though no metadata says where they lie."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from pykafkad import errors
from pykafkad.clock import ManualClock
from pykafkad.cluster.replicas import Replicas
from pykafkad.config import BrokerConfig
from pykafkad.messages import AlterReplicaLogDirsRequest, DescribeLogDirsRequest, UpdateMetadataRequest
from pykafkad.storage.log.log import Log
from pykafkad.storage.zookeeper_directories import ZooKeeperLogs
from tests.storage_kit import (
    NOW_MS,
    TOPIC_ID,
    Threads,
    append,
    batch,
    lead,
    read_all,
    topic_config,
    untold,
    values,
)
from tests.unit.cluster_kit import TOPIC_ID as ID_OF_ORDERS
from tests.unit.cluster_kit import ClusterDesk, known, state, told, topic_known

KEY = ("orders", 0)
Alter = AlterReplicaLogDirsRequest


class Home:
    """Two log directories, and the broker that lives there."""

    def __init__(self, path: Path) -> None:
        self.paths = [path / "a", path / "b"]
        self.start()

    def start(self) -> None:
        dirs = ",".join(map(str, self.paths))
        config = BrokerConfig.from_sources({"node.id": "2", "log.dirs": dirs})
        clock = ManualClock(NOW_MS)
        self.threads = Threads()
        self.logs = ZooKeeperLogs(
            config, clock, self.threads.submit, replicas=Replicas(config, clock, untold), cluster_id="c" * 22
        )
        self.config: Any = topic_config(segment_bytes=4000, index_interval_bytes=100)
        self.logs.open_all(self.logs.found(), lambda topic: self.config, self.logs)
        for partition in self.logs:
            lead(partition, 1)
        self.threads.all()
        self.logs.moves.resume()

    def make(self) -> Log:
        partition = self.logs.make(*KEY, TOPIC_ID, self.config)
        lead(partition, 0)
        return partition

    def fill(self, count: int) -> None:
        for number in range(count):
            append(self.partition, batch(b"%d" % number + b"x" * 500))
        self.partition.context.dirty.clear()

    def move(self, to: int) -> None:
        self.logs.moves.ask(*KEY, str(self.paths[to]))

    @property
    def partition(self) -> Log:
        return self.logs.partitions[KEY]

    @property
    def where(self) -> str:
        return Path(self.partition.directory).parent.name


@pytest.fixture
def home(tmp_path: Path) -> Home:
    home = Home(tmp_path)
    home.make()
    home.fill(20)
    return home


def test_a_partition_moves_and_is_found_there(home: Home) -> None:
    assert home.where == "a"
    home.move(1)
    home.threads.all()
    assert home.where == "b" and len(read_all(home.partition)) == 20
    home.logs.close()
    home.start()
    assert home.where == "b" and len(read_all(home.partition)) == 20


def test_of_two_copies_after_a_crash_the_one_that_goes_further_counts(home: Home) -> None:
    home.move(1)
    while home.where == "a":
        home.threads.step()
    append(home.partition, batch(b"to the new one"))
    assert all((path / "orders-0").is_dir() for path in home.paths)
    home.logs.close(clean=False)
    home.start()
    assert home.where == "b" and values(read_all(home.partition))[-1] == b"to the new one"
    assert not (home.paths[0] / "orders-0").exists()


@pytest.mark.parametrize("first", ["empty", "the log"])
def test_an_empty_copy_is_the_one_that_goes(home: Home, first: str) -> None:
    home.logs.close()
    (home.paths[1] / "orders-0").mkdir()
    if first == "empty":
        home.paths.reverse()
    home.start()
    assert home.where == "a" and len(read_all(home.partition)) == 20


def test_a_move_that_a_crash_ended_begins_anew(home: Home) -> None:
    home.move(1)
    home.threads.step()
    home.logs.close(clean=False)
    home.start()
    assert home.where == "a" and len(read_all(home.partition)) == 20
    home.threads.all()
    assert home.where == "b" and len(read_all(home.partition)) == 20


def test_a_follower_whose_log_is_cut_moves_all_the_same(home: Home) -> None:
    """As much as was copied may be what is cut off."""
    home.move(1)
    home.threads.step()
    done: list[Any] = []
    home.partition.truncate(7, lambda: True, done.append)
    home.threads.all()
    assert done == [None]
    assert home.where == "b" and len(read_all(home.partition)) == home.partition.log_end_offset == 7
    assert not list(home.paths[1].glob("*-future"))


# -- over the wire


def desk_of(tmp_path: Path) -> ClusterDesk:
    return TwoDirectories(tmp_path / "a", log_dirs=f"{tmp_path}/a,{tmp_path}/b")


class TwoDirectories(ClusterDesk):
    def open_storage(self) -> None:
        self.storage = ZooKeeperLogs(
            self.config, self.clock, replicas=self.replicas, call_later=self.call_later, cluster_id="c" * 22
        )


def alter(desk: ClusterDesk, path: str, index: int = 0, topic: str = "orders") -> int:
    asked = Alter.AlterReplicaLogDirTopic(name=topic, partitions=[index])
    answer = desk.ask(Alter(dirs=[Alter.AlterReplicaLogDir(path=path, topics=[asked])]), 2)
    return int(answer.results[0].partitions[0].error_code)


def homes(desk: ClusterDesk) -> dict[str, list[int]]:
    answer = desk.ask(DescribeLogDirsRequest(topics=None), 4)
    assert all(each.error_code == 0 and each.usable_bytes > 0 for each in answer.results)
    return {
        Path(each.log_dir).name: [part.partition_index for topic in each.topics for part in topic.partitions]
        for each in answer.results
    }


def hear_of(desk: ClusterDesk, *states: Any) -> None:
    topic = topic_known(*states, topic_id=ID_OF_ORDERS)
    desk.ask(UpdateMetadataRequest(topic_states=[topic], **told({})), 8)


def test_a_follower_and_a_leader_may_be_moved(tmp_path: Path) -> None:
    desk = desk_of(tmp_path)
    desk.live(0, 1)
    desk.lead_and_follow(state(0, leader=0), state(1, leader=1))
    for index in (0, 1):
        for path in ("a", "b"):
            assert alter(desk, str(tmp_path / path), index) == errors.NONE
    desk.advance(0)
    desk.end_pass()
    assert homes(desk) == {"a": [], "b": [0, 1]}


def test_what_is_not_here_yet_goes_where_it_was_asked_for(tmp_path: Path) -> None:
    desk = desk_of(tmp_path)
    wanted = str(tmp_path / "b")
    assert alter(desk, wanted) == errors.UNKNOWN_TOPIC_OR_PARTITION
    desk.live(0, 1)
    hear_of(desk, *(known(index, leader=1, replicas=[1]) for index in range(3)))
    assert alter(desk, str(tmp_path / "c")) == errors.LOG_DIR_NOT_FOUND
    for index in (0, 1):
        assert alter(desk, wanted, index) == errors.REPLICA_NOT_AVAILABLE
    desk.lead_and_follow(*(state(index, leader=1) for index in range(3)))
    assert homes(desk) == {"a": [2], "b": [0, 1]}
