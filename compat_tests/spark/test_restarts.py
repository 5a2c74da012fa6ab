"""Spark and the broker are killed with -9 while a topic is copied into files: no row is lost, and none is doubled."""

from __future__ import annotations

import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from confluent_kafka import Producer

from compat_tests.conftest import running_broker

from .kit import create

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ROWS = 12_000
PARTITIONS = 3
PACE_S = 0.001
DEADLINE_S = 300


class Writer(threading.Thread):
    """Writes ROWS rows, each once (an idempotent producer), whatever becomes of the broker."""

    def __init__(self, bootstrap: str, topic: str) -> None:
        super().__init__(daemon=True)
        self._topic = topic
        self._producer = Producer(
            {"bootstrap.servers": bootstrap, "enable.idempotence": True, "log_level": 0, "linger.ms": 5}
        )
        self.left = ROWS

    def run(self) -> None:
        for number in range(ROWS):
            self._producer.produce(self._topic, str(number).encode(), partition=number % PARTITIONS)
            self._producer.poll(0)
            time.sleep(PACE_S)
        self.left = self._producer.flush(DEADLINE_S)


@contextmanager
def copying(bootstrap: str, topic: str, home: Path) -> Iterator[subprocess.Popen[str]]:
    command = [sys.executable, "-m", "compat_tests.spark.copying", bootstrap, topic, str(home), str(ROWS)]
    with (home / "log").open("a") as log:
        process = subprocess.Popen(command, stdout=log, stderr=log, text=True, start_new_session=True)
        try:
            yield process
        finally:
            kill_all(process)


def kill_all(process: Any) -> None:
    """Python and the JVM beneath it."""
    import os
    import signal

    try:
        os.killpg(process.pid, signal.SIGKILL)
    except ProcessLookupError:
        pass
    process.wait()


def batches(home: Path) -> int:
    """How many the file sink has committed."""
    return len(list((home / "rows" / "_spark_metadata").glob("[0-9]*")))


def wait_for_batches(home: Path, process: Any, more: int) -> None:
    wanted = batches(home) + more
    deadline = time.monotonic() + DEADLINE_S
    while batches(home) < wanted:
        assert process.poll() is None and time.monotonic() < deadline, (home / "log").read_text()[-3000:]
        time.sleep(0.05)


def test_a_copy_survives_kills_of_spark_and_of_the_broker(spark: SparkSession, tmp_path: Path) -> None:
    with running_broker({}) as broker:
        topic = create(broker.bootstrap_servers, "copied", PARTITIONS)
        writer = Writer(broker.bootstrap_servers, topic)
        writer.start()
        with copying(broker.bootstrap_servers, topic, tmp_path) as process:
            wait_for_batches(tmp_path, process, 3)  # and is killed
        with copying(broker.bootstrap_servers, topic, tmp_path) as process:
            wait_for_batches(tmp_path, process, 2)
            broker.kill()
            broker.start()
            assert process.wait(DEADLINE_S) == 0, (tmp_path / "log").read_text()[-3000:]
        writer.join(DEADLINE_S)
        assert writer.left == 0
    found = spark.read.schema("value string, partition int, offset long").json(str(tmp_path / "rows"))
    assert sorted(int(row["value"]) for row in found.collect()) == list(range(ROWS))
