"""`pykafkad start` with what a compose file gives to an image: the program as a process."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from pykafkad.messages import MetadataRequest
from pykafkad.testing.client import Client

SECONDS = 30
ID, OTHER = "5L6g3nShT-eMCtK--X86sw", "MkU3OEVBNTcwNTJENDM2Qk"
READY = "pykafkad ready: bootstrap.servers="


def program(**variables: str) -> subprocess.Popen[str]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith("KAFKA_")}
    return subprocess.Popen(
        [sys.executable, "-m", "pykafkad", "start"],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=kept | variables,
    )


@contextmanager
def started(**variables: str) -> Iterator[tuple[subprocess.Popen[str], list[int]]]:
    """The program, and the ports of its ready line."""
    with program(**variables) as process:
        try:
            assert process.stdout is not None
            line = process.stdout.readline().rstrip()
            assert line.startswith(READY), line
            yield process, [int(each.rpartition(":")[2]) for each in line.removeprefix(READY).split(",")]
        finally:
            process.kill()


def variables(directory: Path) -> dict[str, str]:
    return {
        "KAFKA_NODE_ID": "1",
        "KAFKA_PROCESS_ROLES": "broker,controller",
        "KAFKA_LISTENERS": "INSIDE://127.0.0.1:0,CONTROLLER://broker:29093,OUTSIDE://127.0.0.1:0",
        "KAFKA_LISTENER_SECURITY_PROTOCOL_MAP": "CONTROLLER:PLAINTEXT,INSIDE:PLAINTEXT,OUTSIDE:PLAINTEXT",
        "KAFKA_INTER_BROKER_LISTENER_NAME": "INSIDE",
        "KAFKA_CONTROLLER_LISTENER_NAMES": "CONTROLLER",
        "KAFKA_CONTROLLER_QUORUM_VOTERS": "1@broker:29093",
        "KAFKA_LOG_DIRS": str(directory),
        "KAFKA_CREATE_TOPICS": "orders:3:1,table:1:1:compact",
        "CLUSTER_ID": ID,
    }


def test_the_cluster_has_its_id_and_its_topics_when_it_is_ready(tmp_path: Path) -> None:
    for _ in range(2):  # the second time the topics are there
        with started(**variables(tmp_path)) as (process, ports):
            assert len(set(ports)) == 2, "every advertised listener is named"
            for port in ports:
                with Client("127.0.0.1", port) as client:
                    answer = client.call(MetadataRequest(topics=None), 12)
                assert answer.cluster_id == ID
                assert {each.name: len(each.partitions) for each in answer.topics} == {
                    "orders": 3,
                    "table": 1,
                }
            process.terminate()
            _, said = process.communicate(timeout=SECONDS)
            assert process.returncode == 0
            assert "ERROR" not in said


def test_a_directory_of_another_cluster_is_refused(tmp_path: Path) -> None:
    with started(**variables(tmp_path)) as (process, _):
        process.terminate()
        process.communicate(timeout=SECONDS)
    with program(**{**variables(tmp_path), "CLUSTER_ID": OTHER}) as process:
        out, said = process.communicate(timeout=SECONDS)
    assert (process.returncode, out) == (1, "")
    file = f"{tmp_path}/meta.properties"
    assert (
        said.splitlines()[-1] == f"pykafkad: Invalid cluster.id in: {file}. Expected {OTHER}, but read {ID}"
    )
