"""Three brokers on a ZooKeeper of their own, of pykafkad or of a real Kafka 3.9.2, as processes: start, CPU, memory.

Both are started by pykafkad/local_cluster, with the same properties; real brokers have the heap and the collector of
Kafka's own start script. Nothing outlives the bench, however it ends.
"""

from __future__ import annotations

import os
import shutil
import tempfile
import time
from typing import Any, Protocol

from bench.sides import cpu_seconds, resident_bytes
from compat_tests.cluster.brokers import KAFKA, OURS, Kinds, kafka_libs, need_zookeeper
from pykafkad.local_cluster import home as homes
from pykafkad.local_cluster import status, zookeeper
from pykafkad.local_cluster.cluster import LocalCluster
from pykafkad.local_cluster.guard import Guard

BROKERS = 3
READY_S = 180.0
POLL_S = 0.05
# kafka-server-start.sh's and kafka-run-class.sh's.
JAVA = (
    *("-Xmx1G", "-Xms1G", "-server", "-XX:+UseG1GC", "-XX:MaxGCPauseMillis=20"),
    *(
        "-XX:InitiatingHeapOccupancyPercent=35",
        "-XX:+ExplicitGCInvokesConcurrent",
        "-Djava.awt.headless=true",
    ),
)
# Leaders change only when a measure wants it. The session time-out is that of local_cluster, 6 s.
CONFIG = {"auto.leader.rebalance.enable": "false", "auto.create.topics.enable": "false"}


class Side(Protocol):
    """What measures need of a cluster."""

    home: Any
    local: Any

    @property
    def pids(self) -> list[int]: ...
    def start(self) -> float: ...
    def close(self) -> None: ...
    def resident(self) -> int: ...
    def status(self) -> dict[str, Any]: ...
    def until_in_sync(self, topic: str, partitions: int, leader_is_first: bool = False) -> dict[str, Any]: ...


class ClusterSide:
    """One of the two clusters."""

    def __init__(self, name: str) -> None:
        """With ZooKeeper up, and no broker yet."""
        self.name = name
        need_zookeeper()
        if name == KAFKA:
            kafka_libs()
        self._work = tempfile.mkdtemp(prefix=f"bench-cluster-{name}-")
        self.home = homes.make(os.path.join(self._work, "cluster"), BROKERS, None, CONFIG)
        self._guard = Guard(self.home.directory, remove=True)
        self.local = LocalCluster(self.home, Kinds([name] * BROKERS, JAVA).launch)
        assert self.home.zookeeper is not None
        self.home.zookeeper.start(zookeeper.jars())
        self.home.zookeeper.wait()

    def start(self) -> float:
        """The seconds from the first process's start until each broker knows all of them and a controller."""
        began = time.perf_counter()
        self.local.start()
        return time.perf_counter() - began

    def close(self) -> None:
        self.local.kill()
        self._guard.dismiss()
        shutil.rmtree(self._work, ignore_errors=True)

    # -- what it takes

    @property
    def pids(self) -> list[int]:
        return [pid for broker in self.home.brokers.values() if (pid := broker.process.pid) is not None]

    def cpu(self) -> float:
        return sum(map(cpu_seconds, self.pids))

    def resident(self) -> int:
        return sum(map(resident_bytes, self.pids))

    # -- what it is like

    def status(self) -> dict[str, Any]:
        return status.gather(self.home)

    def until_in_sync(self, topic: str, partitions: int, leader_is_first: bool = False) -> dict[str, Any]:
        deadline = time.monotonic() + READY_S
        while True:
            found = self.status()
            rows = [row for row in found["partitions"] if row["topic"] == topic]
            if len(rows) == partitions and all(
                len(row["isr"]) == BROKERS and (not leader_is_first or row["leader"] == row["replicas"][0])
                for row in rows
            ):
                return {**found, "partitions": rows}
            if time.monotonic() > deadline:
                raise RuntimeError(f"{topic} is not in sync after {READY_S:g} s: {str(rows)[:500]}")
            time.sleep(POLL_S)


NAMES = {"pykafkad": OURS, "kafka": KAFKA}
