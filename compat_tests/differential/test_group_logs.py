"""`__consumer_offsets` on disk: the same requests leave the same records, as stock dump-log shows them, and each broker
continues with the other's directory where that one stopped: offsets, members, generations.
"""

from __future__ import annotations

import re
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from compat_tests.differential.offset_requests import commit_of, coordinates, delete, fetch, member
from compat_tests.differential.pair import Side
from compat_tests.reference import SCRIPT, ReferenceKafka, free_ports, missing
from pykafkad.messages import (
    CreateTopicsRequest,
    DeleteGroupsRequest,
    DescribeGroupsRequest,
    HeartbeatRequest,
    ListGroupsRequest,
)

CONFIG = {
    "offsets.topic.num.partitions": "3",
    "group.initial.rebalance.delay.ms": "0",
    "offsets.topic.segment.bytes": "1048576",
}
READY_SECONDS = 60
TOPIC = "orders"
UNKNOWN_TOPIC = 3
RANDOM = (
    (re.compile(r'"(\w*[tT]imestamp)":\d+'), r'"\1":0'),
    (re.compile(r'"topicId":"[^"]*"'), '"topicId":""'),
    (re.compile(r"-[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}"), "-UUID"),
)

Broker = Callable[[Path], Any]


@contextmanager
def kafka(directory: Path) -> Iterator[Side]:
    with ReferenceKafka(config=CONFIG, directory=directory) as broker:
        yield ready(Side("kafka", broker.port))


@contextmanager
def pykafkad(directory: Path) -> Iterator[Side]:
    port = free_ports()
    command = [
        sys.executable,
        "-m",
        "pykafkad",
        "start",
        "--port",
        str(port),
        "--data",
        str(directory / "data"),
    ]
    for key, value in {**CONFIG, "node.id": "1"}.items():
        command += ["--override", f"{key}={value}"]
    directory.mkdir(exist_ok=True)
    with (directory / "pykafkad.log").open("ab") as log:
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=log, text=True)
    try:
        assert process.stdout is not None
        line = process.stdout.readline()
        assert line.startswith("pykafkad ready:"), (directory / "pykafkad.log").read_text()[-2000:]
        yield ready(Side("pykafkad", port))
    finally:
        process.terminate()
        process.wait(READY_SECONDS)


def ready(side: Side) -> Side:
    """A broker that has just started may not lead any partition yet."""
    answer = side.demand(CreateTopicsRequest(topics=[], timeout_ms=10_000), 7)
    assert answer.topics == []
    deadline = time.monotonic() + READY_SECONDS
    while not all(coordinates(side, name) for name in ("simple", "member", "gone")):
        assert time.monotonic() < deadline, f"{side.name} has no coordinator"
        time.sleep(0.05)
    return side


def live(side: Side) -> tuple[str, int]:
    """The life of some groups; returns the members at its end."""
    topic = CreateTopicsRequest.CreatableTopic(name=TOPIC, num_partitions=3, replication_factor=1)
    made = side.demand(CreateTopicsRequest(topics=[topic], timeout_ms=30_000), 7).topics[0]
    assert made.error_code == 0
    side.topic_ids[TOPIC] = made.topic_id

    def commit(group_id: str, *rows: tuple[Any, ...], version: int = 8, **fields: Any) -> None:
        codes = {UNKNOWN_TOPIC}
        while UNKNOWN_TOPIC in codes:  # the topic was just created
            answer = side.demand(commit_of(side, group_id, [(TOPIC, rows)], **fields), version)
            codes = {row.error_code for row in answer.topics[0].partitions}
        assert codes == {0}

    commit("simple", (0, 5, "some é"), (1, 6, None, 2))
    commit("simple", (0, 7), version=10)
    commit("simple", (2, 1), version=2, retention_time_ms=86_400_000)
    commit("gone", (0, 1), (1, 2))
    side.demand(delete("simple", (TOPIC, [1])), 0)
    side.demand(DeleteGroupsRequest(groups_names=["gone"]), 2)
    member_id, generation = member(side, "member", TOPIC, instance="instance-1")
    fields: dict[str, Any] = {"member_id": member_id, "generation_id_or_member_epoch": generation}
    commit("member", (0, 9), (2, 8), **fields, group_instance_id="instance-1")
    return member_id, generation


def decoded(directory: Path) -> dict[str, list[str]]:
    """dump-log's output for each partition of __consumer_offsets, without random values."""
    found = {}
    for index in range(3):
        path = directory / "data" / f"__consumer_offsets-{index}" / "00000000000000000000.log"
        command = [str(SCRIPT), "dump-log", "--offsets-decoder", "--files", str(path)]
        text = subprocess.run(command, check=True, capture_output=True, text=True).stdout
        records = [line.partition(" key: ")[2] for line in text.splitlines() if line.startswith("| offset:")]
        for pattern, replacement in RANDOM:
            records = [pattern.sub(replacement, record) for record in records]
        found[path.parent.name] = records
    return found


def state(side: Side) -> Any:
    """Everything that requests show of the groups."""
    listed = side.demand(ListGroupsRequest(), 5)
    offsets = {}
    for group in listed.groups:
        answer = side.demand(fetch(8, group.group_id, None)(side), 8).groups[0]
        offsets[group.group_id] = sorted(
            (row.partition_index, row.committed_offset, row.committed_leader_epoch, row.metadata)
            for topic in answer.topics
            for row in topic.partitions
        )
    groups = sorted((group.group_id, group.group_state, group.group_type) for group in listed.groups)
    return groups, offsets, side.demand(DescribeGroupsRequest(groups=["member"]), 5).groups[0]


@pytest.fixture(scope="module")
def directories(tmp_path_factory: pytest.TempPathFactory) -> dict[str, tuple[Path, tuple[str, int], Any]]:
    why = missing()
    if why:
        pytest.skip(f"NOT COMPARED WITH KAFKA: {why}")
    made = {}
    for name, broker in (("kafka", kafka), ("pykafkad", pykafkad)):
        directory = tmp_path_factory.mktemp(name)
        with broker(directory) as side:
            who = live(side)
            made[name] = directory, who, state(side)
            side.hang_up()
    return made


def test_the_records_are_those_that_kafka_writes(
    directories: dict[str, tuple[Path, tuple[str, int], Any]],
) -> None:
    ours, theirs = decoded(directories["pykafkad"][0]), decoded(directories["kafka"][0])
    assert ours == theirs
    assert sum(map(len, theirs.values())) > 8


@pytest.mark.parametrize(("writer", "reader"), [("pykafkad", kafka), ("kafka", pykafkad)])
def test_the_other_broker_goes_on(
    directories: dict[str, tuple[Path, tuple[str, int], Any]], writer: str, reader: Any
) -> None:
    directory, (member_id, generation), before = directories[writer]
    with reader(directory) as side:
        assert state(side) == before
        beat = HeartbeatRequest(
            group_id="member", generation_id=generation, member_id=member_id, group_instance_id="instance-1"
        )
        assert side.demand(beat, 4).error_code == 0
        fields: dict[str, Any] = {"member_id": member_id, "generation_id_or_member_epoch": generation}
        answer = side.demand(commit_of(side, "member", [(TOPIC, [(1, 77)])], **fields), 8)
        assert answer.topics[0].partitions[0].error_code == 0
        side.hang_up()
