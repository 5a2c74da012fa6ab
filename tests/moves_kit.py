"""Moving the one partition of topic `t` between log directories, over the wire."""

from __future__ import annotations

import time
from typing import Any

from pykafkad.messages import AlterReplicaLogDirsRequest, DescribeLogDirsRequest

SECONDS = 30


def home_of(client: Any) -> str:
    """The directory that the partition is served from."""
    (path,) = (
        result.log_dir
        for result in client.call(DescribeLogDirsRequest(topics=None), 4).results
        for topic in result.topics
        for part in topic.partitions
        if topic.name == "t" and not part.is_future_key
    )
    return str(path)


def move(client: Any, path: str) -> None:
    kind = AlterReplicaLogDirsRequest
    topic = kind.AlterReplicaLogDirTopic(name="t", partitions=[0])
    answer = client.call(kind(dirs=[kind.AlterReplicaLogDir(path=path, topics=[topic])]), 2)
    assert answer.results[0].partitions[0].error_code == 0


def wait_until_at(client: Any, path: str) -> None:
    deadline = time.monotonic() + SECONDS
    while home_of(client) != path:
        assert time.monotonic() < deadline, f"it does not get to {path}"
        time.sleep(0.005)
