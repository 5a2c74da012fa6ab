"""Three brokers beside one controller of Apache Kafka 4.3.1, of pykafkad or of that Kafka, as processes: what
clusters.ClusterSide is on ZooKeeper.

The controller is the same in both, and is not counted; real brokers have the heap and the collector of Kafka's own start
script, and their directories are formatted before they are started.
"""

from __future__ import annotations

import time
from types import SimpleNamespace
from typing import Any

from bench.clusters import BROKERS, CONFIG
from bench.sides import cpu_seconds, resident_bytes
from compat_tests.cluster.kraft import KAFKA, OURS, KraftCluster

START_SCRIPTS: dict[str, str] = {}  # what the launcher runs with where the environment says nothing
NOBODY = -1
KINDS = {"pykafkad": OURS, "kafka": KAFKA}


class KraftSide:
    """One of the two clusters."""

    def __init__(self, name: str) -> None:
        """With the controller up, and no broker yet."""
        self.name = KINDS[name]
        self.cluster = KraftCluster([self.name] * BROKERS, config=CONFIG, java=START_SCRIPTS)
        self.home = SimpleNamespace(bootstrap_servers=self.cluster.bootstrap_servers)
        self.local = SimpleNamespace(
            kill_broker=self.cluster.kill, stop_broker=self.cluster.stop, start_broker=self._start_broker
        )
        (controller,) = self.cluster.controllers.values()
        controller.start()
        self.cluster.until("a controller", controller.is_listening)
        if self.name == KAFKA:
            for broker in self.cluster.brokers.values():
                broker.format()

    def start(self) -> float:
        """The seconds from the first process's start until each broker knows all of them."""
        began = time.perf_counter()
        for broker in self.cluster.brokers.values():
            broker.start()
        self.cluster.until_registered()
        return time.perf_counter() - began

    def _start_broker(self, id: int) -> None:
        self.cluster.start(id)
        self.cluster.until_registered()

    def close(self) -> None:
        self.cluster.__exit__(None, None, None)

    # -- what it takes

    @property
    def pids(self) -> list[int]:
        return [each.process.pid for each in self.cluster.brokers.values() if each.process is not None]

    def cpu(self) -> float:
        return sum(map(cpu_seconds, self.pids))

    def resident(self) -> int:
        return sum(map(resident_bytes, self.pids))

    # -- what it is like

    def status(self) -> dict[str, Any]:
        """No broker is the controller."""
        return {"controller": NOBODY}

    def until_in_sync(self, topic: str, partitions: int, leader_is_first: bool = False) -> dict[str, Any]:
        rows: list[dict[str, Any]] = []

        def is_so() -> bool:
            found = self.cluster.partitions(topic, self.cluster.running()[0])
            rows[:] = [
                {"leader": row.leader_id, "isr": row.isr_nodes, "replicas": row.replica_nodes}
                for row in found
            ]
            return len(rows) == partitions and all(
                len(row["isr"]) == BROKERS and (not leader_is_first or row["leader"] == row["replicas"][0])
                for row in rows
            )

        self.cluster.until(f"{topic} in sync", is_so)
        return {**self.status(), "partitions": rows}
