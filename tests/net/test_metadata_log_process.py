"""The metadata log of a real process: a start that refuses it leaves it as it is, a failure later ends the broker."""

from __future__ import annotations

import json
import os
import resource
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from pykafkad import errors
from pykafkad.cluster import metadata_records
from pykafkad.cluster.image import Image
from pykafkad.cluster.metadata_reading import read_directory
from pykafkad.hot import records
from pykafkad.messages import CreateTopicsRequest, FeatureLevelRecord, MetadataRequest
from pykafkad.testing import Broker, BrokerError

LOG = "__cluster_metadata-0/00000000000000000000.log"


def tree(directory: Path) -> dict[str, tuple[bytes, int]]:
    return {
        str(path.relative_to(directory)): (path.read_bytes(), path.stat().st_mtime_ns)
        for path in directory.rglob("*")
        if path.is_file()
    }


@pytest.fixture(scope="module")
def stopped(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory with a topic, stopped in order."""
    data = tmp_path_factory.mktemp("stopped") / "data"
    with Broker({"orders": 2}, {"node.id": 1}, data=data) as broker:
        assert broker.stop() == 0
    return data


def level(name: str, number: int) -> bytes:
    return metadata_records.encode(FeatureLevelRecord(name=name, feature_level=number), 0)


def append(data: Path, value: bytes) -> None:
    image = Image()
    contents = read_directory(str(data / "__cluster_metadata-0"), image)
    with (data / LOG).open("ab") as file:
        file.write(
            records.build(
                [(None, value, [], 0)], base_offset=contents.end_offset, leader_epoch=contents.last_epoch
            )
        )


def flip(data: Path) -> None:
    with (data / LOG).open("r+b") as file:
        file.seek(300)
        file.write(b"\xff\xfe")


REFUSED: list[tuple[str, Callable[[Path], Any], str]] = [
    (
        "level",
        lambda data: append(data, level("metadata.version", 31)),
        "metadata.version 31 is newer than 30",
    ),
    ("feature", lambda data: append(data, level("comet.version", 1)), "unknown feature comet.version"),
    ("version", lambda data: append(data, b"\x01\x02\x07\x00"), "unknown version 7 of TopicRecord"),
    ("flip", flip, "at byte 91 (offset 1); the metadata behind it would be lost"),
    ("identity", lambda data: (data / "meta.properties").unlink(), "holds partitions and no meta.properties"),
    (
        "log",
        lambda data: shutil.rmtree(data / "__cluster_metadata-0"),
        "there is no metadata log that knows it",
    ),
]


@pytest.mark.parametrize(("spoil", "said"), [row[1:] for row in REFUSED], ids=[row[0] for row in REFUSED])
def test_what_is_refused_is_left_as_it_is(
    stopped: Path, tmp_path: Path, spoil: Callable[[Path], Any], said: str
) -> None:
    data = tmp_path / "data"
    shutil.copytree(stopped, data)
    spoil(data)
    before = tree(data)
    with pytest.raises(BrokerError) as caught:
        Broker(config={"node.id": 1}, data=data)
    assert "exit code 1" in str(caught.value) and said in str(caught.value)
    assert tree(data) == before


def test_another_node_id_is_refused_and_nothing_is_touched(stopped: Path, tmp_path: Path) -> None:
    data = tmp_path / "data"
    shutil.copytree(stopped, data)
    with pytest.raises(BrokerError, match="node id 1 doesn't match configured node id 2"):
        Broker(config={"node.id": 2}, data=data)
    text = (data / "meta.properties").read_text()
    (data / "meta.properties").write_text(text.replace("node.id=1", "node.id=2"))
    before = tree(data)
    with pytest.raises(BrokerError, match=r"has replicas \[1\], but node.id is 2"):
        Broker(config={"node.id": 2}, data=data)
    assert tree(data) == before


def test_the_marker_of_a_clean_stop_names_the_last_registration(stopped: Path, tmp_path: Path) -> None:
    """The marker in each log directory has the broker epoch of the last registration. To Kafka any other number means
    an unclean stop."""
    directories = [tmp_path / "one", tmp_path / "two"]
    config = {"node.id": 1, "log.dirs": ",".join(map(str, directories))}
    with Broker({"orders": 4}, config) as broker:
        broker.stop()
    image = Image()
    read_directory(str(directories[0] / "__cluster_metadata-0"), image)
    for directory in directories:
        marker = json.loads((directory / ".kafka_cleanshutdown").read_text())
        assert marker == {"version": 0, "brokerEpoch": image.brokers[1].epoch}
    placed = {
        path.name: (directory / "meta.properties").read_text()
        for directory in directories
        for path in directory.glob("orders-*")
    }
    assert len(placed) == 4
    from pykafkad.uuids import to_text

    for index, partition in enumerate(image.topics["orders"].partitions):
        assert f"directory.id={to_text(partition.directories[0])}\n" in placed[f"orders-{index}"]


def create(broker: Broker, name: str) -> Any:
    topic = CreateTopicsRequest.CreatableTopic(name=name, num_partitions=1, replication_factor=1)
    with broker.client() as client:
        return client.call(CreateTopicsRequest(topics=[topic], timeout_ms=10_000), 7).topics[0]


def test_a_metadata_log_that_cannot_be_written_ends_the_broker(tmp_path: Path) -> None:
    """Kafka halts as well. What was acknowledged before is there after the next start."""
    data = tmp_path / "data"
    with Broker({"orders": 1}, {"node.id": 1}, data=data) as broker:
        size = os.path.getsize(data / LOG)
        resource.prlimit(broker.pid, resource.RLIMIT_FSIZE, (size + 20, size + 20))
        try:
            assert create(broker, "refused").error_code == errors.KAFKA_STORAGE_ERROR
        except ConnectionError:
            pass  # it is gone already
        assert broker._process is not None and broker._process.wait(20) == 1
        assert "the metadata log in" in broker.log_text() and "has failed; stopping" in broker.log_text()
        broker.start()
        assert create(broker, "taken").error_code == errors.NONE
        with broker.client() as client:
            names = {topic.name for topic in client.call(MetadataRequest(topics=None), 12).topics}
        assert names == {"orders", "taken"}
        assert broker.stop() == 0


def test_snapshots_and_segments_of_a_serving_broker(tmp_path: Path) -> None:
    data = tmp_path / "data"
    config = {
        "node.id": 1,
        "metadata.log.max.record.bytes.between.snapshots": 3000,
        "internal.metadata.log.segment.bytes": 4000,
    }
    with Broker(config=config, data=data) as broker:
        for number in range(60):
            assert create(broker, f"t{number}").error_code == errors.NONE
        broker.kill()
        names = os.listdir(data / "__cluster_metadata-0")
        assert sum(name.endswith(".log") for name in names) > 2
        assert sum(name.endswith(".checkpoint") for name in names) > 2
        broker.start()
        with broker.client() as client:
            assert len(client.call(MetadataRequest(topics=None), 12).topics) == 60
        assert broker.stop() == 0
