"""One pykafkad and one Kafka for the whole session.

DIFFERENTIAL_TWIN=1 puts a second Kafka in pykafkad's place, which must show no difference at all; this tests the tests.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from compat_tests.differential.cast import Cast
from compat_tests.differential.pair import Pair, Side
from compat_tests.reference import ReferenceKafka, free_ports, missing
from pykafkad.messages import MetadataRequest

READY_SECONDS = 30
# For both: no verification of transactions, so that batches can be produced in a transaction that was not begun.
# Heartbeats: what pykafkad has otherwise where it starts without a file.
CONFIG = {
    "transaction.partition.verification.enable": "false",
    "group.max.size": "20",
    "group.consumer.heartbeat.interval.ms": "5000",
    "group.consumer.min.heartbeat.interval.ms": "5000",
}
# What the reference's launcher sets of the configs that clients can see.
OUR_CONFIG = {**CONFIG, "node.id": "1", "group.initial.rebalance.delay.ms": "0"}


# A pair whose logs are checked all the time: retention and compaction that are due happen at once.
TIDY_CONFIG = {
    "log.retention.check.interval.ms": "200",
    "log.initial.task.delay.ms": "200",
    "log.segment.delete.delay.ms": "500",
    "log.cleaner.backoff.ms": "200",
}


@contextmanager
def kafka(config: dict[str, str]) -> Iterator[int]:
    with ReferenceKafka(config=CONFIG | config) as broker:
        yield broker.port


@contextmanager
def pykafkad(directory: Path, config: dict[str, str]) -> Iterator[int]:
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
    advertised = {"advertised.listeners": f"PLAINTEXT://127.0.0.1:{port}"}  # set explicitly, as there
    for key, value in (OUR_CONFIG | advertised | config).items():
        command += ["--override", f"{key}={value}"]
    with (directory / "server.log").open("wb") as log:
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=log, text=True)
    try:
        assert process.stdout is not None
        line = process.stdout.readline()
        assert line.startswith("pykafkad ready:"), (directory / "server.log").read_text()[-2000:]
        yield int(line.rsplit(":", 1)[1])
        assert process.poll() is None, (directory / "server.log").read_text()[-2000:]
    finally:
        process.terminate()
        process.wait(READY_SECONDS)


def wait_until_serving(side: Side) -> None:
    deadline = time.monotonic() + READY_SECONDS
    while not side.demand(MetadataRequest(topics=[]), 12).brokers:
        assert time.monotonic() < deadline, f"{side.name} does not name itself in Metadata"
        time.sleep(0.02)


@pytest.fixture(scope="session")
def pair(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Pair]:
    with made_pair(tmp_path_factory, {}) as made:
        yield made


@pytest.fixture(scope="module")
def tidy_pair(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Pair]:
    with made_pair(tmp_path_factory, TIDY_CONFIG) as made:
        yield made


@contextmanager
def made_pair(tmp_path_factory: pytest.TempPathFactory, config: dict[str, str]) -> Iterator[Pair]:
    why = missing()
    if why:
        pytest.skip(f"NOT COMPARED WITH KAFKA: {why}")
    twin = os.environ.get("DIFFERENTIAL_TWIN")
    other = kafka(config) if twin else pykafkad(tmp_path_factory.mktemp("pykafkad"), config)
    with other as our_port, kafka(config) as their_port:
        made = Pair(Side("kafka too" if twin else "pykafkad", our_port), Side("kafka", their_port))
        for side in made.sides:
            wait_until_serving(side)
        yield made
        for side in made.sides:
            side.hang_up()


@pytest.fixture
def cast(pair: Pair) -> Iterator[Cast]:
    """The members of a new classic group."""
    made = Cast(pair)
    yield made
    made.close()
