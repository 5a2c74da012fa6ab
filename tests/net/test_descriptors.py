"""A broker that may open few descriptors: clients that take all of them stop neither other clients nor the logs."""

from __future__ import annotations

import resource
import socket
import subprocess
import sys
import time
from collections.abc import Iterator

import pytest

from pykafkad import messages as m
from pykafkad.hot import records
from pykafkad.net.connection import Connection

LIMIT = 256
PARTITIONS = 150
SECONDS = 60


@pytest.fixture
def broker() -> Iterator[subprocess.Popen[str]]:
    configs = [
        "replica.high.watermark.checkpoint.interval.ms=100",
        "log.flush.offset.checkpoint.interval.ms=100",
        "log.segment.bytes=1048576",
        "internal.metadata.log.segment.bytes=4096",
    ]
    with subprocess.Popen(
        [sys.executable, "-m", "pykafkad", "start", "--port", "0", "--ephemeral"]
        + [argument for config in configs for argument in ("--override", config)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (LIMIT, LIMIT)),
    ) as process:
        yield process
        process.kill()


def create(name: str, partitions: int) -> m.CreateTopicsRequest:
    topic = m.CreateTopicsRequest.CreatableTopic(name=name, num_partitions=partitions, replication_factor=1)
    return m.CreateTopicsRequest(topics=[topic], timeout_ms=10_000)


def produce(name: str, partitions: int, size: int) -> m.ProduceRequest:
    kind = m.ProduceRequest
    data = [
        kind.PartitionProduceData(index=index, records=bytes(records.build([(None, bytes(size), (), 0)])))
        for index in range(partitions)
    ]
    return m.ProduceRequest(
        acks=-1, timeout_ms=10_000, topic_data=[kind.TopicProduceData(name=name, partition_data=data)]
    )


def test_with_all_descriptors_taken_by_clients_logs_are_written_and_rolled(
    broker: subprocess.Popen[str],
) -> None:
    assert broker.stdout is not None and broker.stderr is not None
    port = int(broker.stdout.readline().rsplit(":", 1)[1])
    deadline = time.monotonic() + SECONDS
    client = Connection("127.0.0.1", port, "test")
    client.learn_versions(deadline)
    assert client.call(create("t", PARTITIONS), deadline).topics[0].error_code == 0
    idle = [socket.create_connection(("127.0.0.1", port), SECONDS) for _ in range(120)]
    for _ in range(LIMIT):  # those that the backlog does not take, either
        idle.append(socket.socket())
        idle[-1].setblocking(False)
        idle[-1].connect_ex(("127.0.0.1", port))
    for number in range(4):  # the five segments are rolled in turn
        for partitions, size in ((PARTITIONS, 100), (5, 600_000)):
            answer = client.call(produce("t", partitions, size), deadline, at_most=12)
            assert {row.error_code for row in answer.responses[0].partition_responses} == {0}
        assert client.call(create(f"more-{number}", 20), deadline).topics[0].error_code == 0
    for each in idle:
        each.close()
    other = Connection("127.0.0.1", port, "test")  # connections that were closed made room
    other.learn_versions(deadline)
    other.close()
    client.close()
    assert broker.poll() is None
    broker.terminate()
    lines = broker.stderr.read()
    assert broker.wait(SECONDS) == 0, lines
    assert lines.count("There are") == 1 and "ERROR" not in lines, lines
