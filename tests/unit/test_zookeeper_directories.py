"""Log directories of a broker in a cluster: whose they are, and what lies in them."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from pykafkad.clock import ManualClock
from pykafkad.cluster.replicas import Replicas
from pykafkad.config import BrokerConfig, TopicConfig
from pykafkad.errors import StartupError
from pykafkad.storage.zookeeper_directories import ZooKeeperLogs

CLUSTER_ID, TOPIC_ID = "Zf85-lVQTY6hzu-o961PJQ", b"topic-id-of-some"


def opened(*paths: Path, node_id: int = 2, cluster_id: str = CLUSTER_ID) -> ZooKeeperLogs:
    config = BrokerConfig.from_sources({"log.dirs": ",".join(map(str, paths)), "node.id": str(node_id)})
    clock = ManualClock()
    replicas = Replicas(config, clock, lambda replica: None)
    return ZooKeeperLogs(config, clock, replicas=replicas, cluster_id=cluster_id)


def test_the_identity_is_kafkas_of_version_0(tmp_path: Path) -> None:
    logs = opened(tmp_path)
    assert logs.cluster_id == CLUSTER_ID
    text = (tmp_path / "meta.properties").read_text()
    assert re.fullmatch(rf"#\n#.* UTC \d+\nbroker.id=2\nversion=0\ncluster.id={CLUSTER_ID}\n", text)
    logs.close()
    opened(tmp_path).close()
    assert (tmp_path / "meta.properties").read_text() == text


def test_a_directory_of_others_is_refused(tmp_path: Path) -> None:
    opened(tmp_path).close()
    with pytest.raises(StartupError, match=r"Invalid cluster\.id"):
        opened(tmp_path, cluster_id="AAAAAAAAAAAAAAAAAAAAAQ")
    with pytest.raises(StartupError, match="Stored node id 2"):
        opened(tmp_path, node_id=3)
    (tmp_path / "meta.properties").write_text(f"version=1\nnode.id=2\ncluster.id={CLUSTER_ID}\n")
    with pytest.raises(StartupError, match="version 1 is not 0"):
        opened(tmp_path)


def test_all_that_lies_there_is_loaded_whatever_the_metadata_says(tmp_path: Path) -> None:
    paths = tmp_path / "a", tmp_path / "b"
    logs = opened(*paths)
    config = BrokerConfig.from_sources({})
    logs.open_all({}, lambda topic: TopicConfig(config))
    for index in range(4):
        logs.make("orders", index, TOPIC_ID, TopicConfig(config))
    assert [len(list(path.glob("orders-*"))) for path in paths] == [2, 2]
    logs.small_files.make()
    logs.close()
    again = opened(*paths)
    found = again.found()
    assert found == {("orders", index): TOPIC_ID for index in range(4)}
    assert again.open_all(found, lambda topic: TopicConfig(config)) == []
    assert sorted(log.name for log in again) == [f"orders-{index}" for index in range(4)]
    again.close()
