"""Clusters for these tests: the processes are testing.Cluster's; which program each broker is, is chosen here.

BROKER=kafka makes all of them real ones where a test does not say otherwise: that shows whether the test is right. Kafka
3.9.2 is the last that runs on ZooKeeper; Maven brings its jars the first time.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import threading
import time
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

import pytest

from compat_tests import needs
from compat_tests.reference import SCRIPT
from pykafkad.local_cluster import zookeeper
from pykafkad.local_cluster.cluster import Launch, ours
from pykafkad.local_cluster.home import BrokerHome
from pykafkad.testing.cluster import Cluster

VERSION = "3.9.2"
OURS, KAFKA = "ours", "kafka"
# Small heaps, and the compiler that starts fast: four JVMs share two cores with the clients.
JAVA = ("-Xmx256m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1")
LOG4J = """\
log4j.rootLogger=INFO, out
log4j.appender.out=org.apache.log4j.ConsoleAppender
log4j.appender.out.layout=org.apache.log4j.PatternLayout
log4j.appender.out.layout.ConversionPattern=[%d] %p %m (%c)%n
"""
INSTALL_S = 900
DEADLINE_S = 60.0
# What makes the drills short; a broker that is gone is missed after its session.
CONFIG = {
    "zookeeper.session.timeout.ms": "4000",
    "zookeeper.connection.timeout.ms": "30000",  # a machine with much to do
    "replica.lag.time.max.ms": "3000",
    "offsets.topic.num.partitions": "3",
    "transaction.state.log.num.partitions": "3",
    "auto.leader.rebalance.enable": "false",
    "auto.create.topics.enable": "false",
    "controlled.shutdown.retry.backoff.ms": "500",
}


def kafka_libs() -> Path:
    """The jars of Kafka 3.9.2; without Java and Maven the test is skipped."""
    needs.program("java")
    needs.program("mvn")
    with needs.alone(f"kafka-{VERSION}"):
        done = subprocess.run(
            [str(SCRIPT), "install"],
            env={**os.environ, "KAFKA_VERSION": VERSION},
            capture_output=True,
            text=True,
            timeout=INSTALL_S,
            check=False,
        )
    assert done.returncode == 0, f"no Kafka {VERSION}:\n{done.stdout}{done.stderr}"
    return Path(done.stdout.splitlines()[-1]) / "libs"


def need_zookeeper() -> None:
    """Without it the test is skipped, and says what is missing."""
    needs.program("java")
    if not shutil.which("mvn") and zookeeper.LIBS not in os.environ:
        needs.program("mvn")
    with needs.alone("zookeeper"):
        zookeeper.jars()


class Kinds:
    """Which program each broker is; may be changed while it is down."""

    def __init__(self, kinds: Iterable[str], java: Iterable[str] = JAVA) -> None:
        self.of = dict(enumerate(kinds))
        self._java = tuple(java)
        self._libs: Path | None = None

    def launch(self, broker: BrokerHome) -> Launch:
        if self.of[broker.id] == OURS:
            return ours(broker)
        if self._libs is None:
            self._libs = kafka_libs()
        log4j = Path(broker.directory) / "log4j.properties"
        log4j.write_text(LOG4J)
        command = ["java", *self._java, f"-Dlog4j.configuration=file:{log4j}", "-cp", f"{self._libs}/*"]
        return Launch([*command, "kafka.Kafka", broker.properties], os.environ)


def chosen() -> str:
    named = os.environ.get("BROKER", "pykafkad")
    if named not in ("pykafkad", "kafka"):
        raise pytest.UsageError(f"BROKER={named}: pykafkad or kafka")
    return OURS if named == "pykafkad" else KAFKA


class MixedCluster(Cluster):
    """A cluster whose brokers may be of both kinds, and change places."""

    def __init__(
        self,
        kinds: Iterable[str] | Kinds = (),
        topics: Mapping[str, int] | None = None,
        config: Mapping[str, str] | None = None,
        zookeeper: str | None = None,
        home: Path | None = None,
    ) -> None:
        """`zookeeper`: one that runs already. `home`: a cluster's directory that is made already, with its configs."""
        need_zookeeper()
        self.kinds = kinds if isinstance(kinds, Kinds) else Kinds(kinds or [chosen()] * 3)
        given = {**CONFIG, **(config or {})} if home is None else {}
        super().__init__(
            len(self.kinds.of),
            topics or {},
            given,
            zookeeper=zookeeper,
            data=home,
            launch=self.kinds.launch,
        )

    def replace(self, id: int, kind: str) -> None:
        """Another program goes on with the broker's data: stopped in order, and started."""
        self.stop(id)
        self.kinds.of[id] = kind
        self.start(id)

    @property
    def ids(self) -> list[int]:
        return list(self.home.brokers)

    # -- what is waited for

    def partitions(self, topic: str) -> dict[int, dict[str, Any]]:
        return {row["partition"]: row for row in self.status()["partitions"] if row["topic"] == topic}

    def until(
        self, what: str, there: Callable[[dict[str, Any]], bool], seconds: float = DEADLINE_S
    ) -> dict[str, Any]:
        """Until the status is so; what it was at last, if it never is."""
        deadline = time.monotonic() + seconds
        while True:
            status = self.status()
            if there(status):
                return status
            assert time.monotonic() < deadline, f"{what}: not after {seconds:g} s: {status}"
            time.sleep(0.1)

    def until_in_sync(self, count: int | None = None) -> None:
        """All partitions have leaders, and all replicas are in sync (or so many of each partition)."""

        def is_so(status: dict[str, Any]) -> bool:
            rows = status["partitions"]
            return bool(rows) and all(
                row["leader"] >= 0 and len(row["isr"]) == (count or len(row["replicas"])) for row in rows
            )

        self.until("all in sync", is_so)

    def until_another_controls(self, last: int) -> dict[str, Any]:
        return self.until("another controller", lambda status: status["controller"] not in (None, -1, last))

    def until_led(self) -> None:
        """All partitions have leaders that run."""

        def is_so(status: dict[str, Any]) -> bool:
            running = {row["id"] for row in status["brokers"] if row["state"] == "running"}
            return bool(status["partitions"]) and all(
                row["leader"] in running for row in status["partitions"]
            )

        self.until("all led", is_so)


def tool(cluster: Cluster, name: str, *arguments: str, stdin: str | None = None) -> str:
    """The output of one of Kafka's own tools, of the release that knows ZooKeeper."""
    kafka_libs()
    done = subprocess.run(
        [str(SCRIPT), name, "--bootstrap-server", cluster.bootstrap_servers, *arguments],
        env={**os.environ, "KAFKA_VERSION": VERSION},
        input=stdin,
        capture_output=True,
        text=True,
        timeout=DEADLINE_S * 2,
        check=False,
    )
    assert done.returncode == 0, f"{name} {arguments}: {done.stdout}{done.stderr}"
    return done.stdout


def tool_lines(cluster: Cluster, name: str, *arguments: str, until: str = "max lag is") -> list[str]:
    """What one of Kafka's tools that never ends says, up to the second line with these words."""
    libs = kafka_libs()
    main = {"replica-verification": "org.apache.kafka.tools.ReplicaVerificationTool"}[name]
    command = [
        "java",
        *JAVA,
        "-cp",
        f"{libs}/*",
        main,
        "--broker-list",
        cluster.bootstrap_servers,
        *arguments,
    ]
    lines: list[str] = []
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as process:
        late = threading.Timer(DEADLINE_S, process.kill)
        late.start()
        assert process.stdout is not None
        for line in process.stdout:
            lines.append(line.rstrip("\n"))
            if sum(until in each for each in lines) == 2:
                break
        late.cancel()
        process.kill()
    return lines
