"""A data directory and the two programs that can run on it, one at a time.

Owns: the directory, the port that both use (the metadata has it), and the process that is running. `run` returns a
client once every partition of the metadata can be read; `end` stops the program in order, or kills it.
"""

from __future__ import annotations

import os
import subprocess
import time
from pathlib import Path
from typing import Any

from compat_tests.raw import RawClient
from compat_tests.reference import SCRIPT, SHORT_SESSION, ReferenceKafka, free_ports
from pykafkad.messages import FindCoordinatorRequest, ListOffsetsRequest, MetadataRequest
from pykafkad.testing import Broker

PYKAFKAD, KAFKA = "pykafkad", "kafka"
READY_SECONDS = 60
CLUSTER_ID = "MkU3OEVBNTcwNTJENDM2Qk"
FEW_PARTITIONS = {"offsets.topic.num.partitions": "3", "transaction.state.log.num.partitions": "2"}
# The configs of both.
SHARED = {
    **FEW_PARTITIONS,
    "log.cleaner.backoff.ms": "500",
    "log.retention.check.interval.ms": "500",
    "log.initial.task.delay.ms": "500",
    "log.segment.delete.delay.ms": "500",
    "group.initial.rebalance.delay.ms": "0",
    "auto.create.topics.enable": "false",
}
KAFKA_HEAP = {"KAFKA_HEAP_OPTS": "-Xmx400M", "KAFKA_JVM_OPTS": "-XX:+UseSerialGC -XX:TieredStopAtLevel=1"}


class Home:
    def __init__(self, directory: Path, kafka_config: dict[str, str] | None = None) -> None:
        self.directory = directory
        self.port = free_ports()
        self.kafka_config = kafka_config or {}
        self.pykafkad_config: dict[str, str] = {}
        self.directories = [directory / "data"]
        self.side = ""
        self._kafka: ReferenceKafka | None = None
        self._ours: Broker | None = None
        self.client: Any = None

    @property
    def data(self) -> Path:
        return self.directory / "data"

    @property
    def metadata(self) -> Path:
        return self.data / "__cluster_metadata-0"

    @property
    def bootstrap(self) -> str:
        return f"127.0.0.1:{self.port}"

    def format(self) -> None:
        """The same as `kafka-storage format`."""
        os.environ.update(KAFKA_HEAP)
        config = self.directory / "format.properties"
        pairs = {
            "process.roles": "broker,controller",
            "node.id": "1",
            "controller.quorum.voters": f"1@127.0.0.1:{self.port + 1}",
            "listeners": f"PLAINTEXT://127.0.0.1:{self.port},CONTROLLER://127.0.0.1:{self.port + 1}",
            "controller.listener.names": "CONTROLLER",
            "log.dirs": str(self.data),
            **self.kafka_config,
        }
        config.write_text("".join(f"{key}={value}\n" for key, value in pairs.items() if value))
        standalone = [] if pairs["controller.quorum.voters"] else ["--standalone"]
        command = [
            "class",
            "kafka.tools.StorageTool",
            "format",
            *standalone,
            "-t",
            CLUSTER_ID,
            "-c",
            str(config),
        ]
        subprocess.run([str(SCRIPT), *command], check=True, capture_output=True)

    def make_dynamic(self) -> None:
        """The voters are in the log, not in the properties; and there is a second log directory."""
        self.directories.append(self.directory / "more")
        self.kafka_config["controller.quorum.voters"] = ""
        self.kafka_config["controller.quorum.bootstrap.servers"] = f"127.0.0.1:{self.port + 1}"
        self.kafka_config["log.dirs"] = ",".join(map(str, self.directories))
        self.pykafkad_config["log.dirs"] = self.kafka_config["log.dirs"]

    def run(self, side: str) -> Any:
        """Start that program; returns a client of it."""
        self.side = side
        if side == KAFKA:
            os.environ.update(KAFKA_HEAP)
            config = {**SHARED, **SHORT_SESSION, **self.kafka_config}
            self._kafka = ReferenceKafka(directory=self.directory, port=self.port, config=config)
            self._kafka.start()
        else:
            config = {"node.id": "1", **SHARED, **self.pykafkad_config}
            self._ours = Broker(config=config, data=self.data, port=self.port, single_node=False)
        self.client = RawClient(self.port)
        self._wait_until_all_is_led()
        return self.client

    def end(self, *, kill: bool = False) -> None:
        if self.client is not None:
            self.client.close()
            self.client = None
        if self._kafka is not None:
            self._kafka.kill() if kill else self._kafka.stop()
        if self._ours is not None and self._ours.running:
            if kill:
                self._wait_until_all_have_ids()
                self._ours.kill()
            else:
                assert self._ours.stop() == 0, self._ours.log_text()[-3000:]
        if self._ours is not None:
            self._ours.close()
        self._kafka = self._ours = None

    def _wait_until_all_have_ids(self) -> None:
        """A log without records gets its partition.metadata a moment later; before that Kafka treats it as a stray
        one."""
        deadline = time.monotonic() + READY_SECONDS
        while any(
            not (path / "partition.metadata").exists()
            for home in self.directories
            for path in home.glob("*-*/")
        ):
            assert time.monotonic() < deadline
            time.sleep(0.05)

    def log_text(self) -> str:
        """The log lines of the running program."""
        if self._ours is not None:
            return self._ours.log_text()
        path = self.directory / "server.log"
        return path.read_text(errors="replace") if path.exists() else ""

    def _wait_until_all_is_led(self) -> None:
        deadline = time.monotonic() + READY_SECONDS
        while waits_for := self._not_led():
            assert time.monotonic() < deadline, (
                f"{self.side} does not serve {waits_for}\n{self.log_text()[-3000:]}"
            )
            time.sleep(0.05)

    def _not_led(self) -> list[str]:
        metadata = self.client.ask(MetadataRequest(topics=None), 12)
        if not metadata.brokers:
            return ["any broker"]
        kind = ListOffsetsRequest
        request = kind(
            topics=[
                kind.ListOffsetsTopic(
                    name=topic.name,
                    partitions=[
                        kind.ListOffsetsPartition(partition_index=item.partition_index, timestamp=-1)
                        for item in topic.partitions
                    ],
                )
                for topic in metadata.topics
            ]
        )
        answer = self.client.ask(request, 7)
        return [
            f"{topic.name}-{item.partition_index}"
            for topic in answer.topics
            for item in topic.partitions
            if item.error_code
        ]

    def wait_for_coordinator(self, group_id: str) -> None:
        deadline = time.monotonic() + READY_SECONDS
        request = FindCoordinatorRequest(key_type=0, coordinator_keys=[group_id])
        while self.client.ask(request, 4).coordinators[0].error_code:
            assert time.monotonic() < deadline, f"{self.side} has no coordinator for {group_id}"
            time.sleep(0.05)
