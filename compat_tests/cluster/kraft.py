"""A cluster of Apache Kafka 4.3.1 with its own controllers, in which some brokers are ours: each node a process.

Owns the processes, their directories and ports. Controllers and real brokers are the launcher's (compat_tests/reference),
with other roles; a broker of ours is `pykafkad start` with the same keys. What clients see decides when something is
so: nothing here looks into a process.
"""

from __future__ import annotations

import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import Any, NamedTuple

from compat_tests import needs
from compat_tests.reference import PORTS, SCRIPT, is_free
from pykafkad.control.client import ControlClient
from pykafkad.messages import DescribeQuorumRequest, MetadataRequest
from pykafkad.net.client import Cluster as Client

CONTROLLER, KAFKA, OURS = "controller", "kafka", "ours"
VERSION = "4.3.1"
JAVA = {
    "KAFKA_HEAP_OPTS": "-Xmx256m",
    "KAFKA_JVM_OPTS": "-XX:+UseSerialGC -XX:TieredStopAtLevel=1",
    "KAFKA_VERSION": VERSION,
}
DEADLINE_S = 240.0  # a machine with much to do
STOP_S = 60.0
FIRST_CONTROLLER = 100
AUTHORIZER = "authorizer.class.name"
# What makes the tests short.
CONFIG = {
    "broker.session.timeout.ms": "6000",
    "broker.heartbeat.interval.ms": "500",
    "replica.lag.time.max.ms": "3000",
    "offsets.topic.num.partitions": "3",
    "offsets.topic.replication.factor": "3",
    "transaction.state.log.num.partitions": "3",
    "transaction.state.log.replication.factor": "3",
    "transaction.state.log.min.isr": "1",
    "group.initial.rebalance.delay.ms": "0",
    "log.cleaner.dedupe.buffer.size": "10485760",  # the heaps are small
    "initial.broker.registration.timeout.ms": "240000",
}


def need_kafka() -> None:
    """The jars of Kafka 4.3.1; without Java and Maven the test is skipped."""
    needs.program("java")
    needs.program("mvn")
    with needs.alone("kafka-4.3.1"):
        subprocess.run(
            [str(SCRIPT), "install"], env={**os.environ, **JAVA}, check=True, capture_output=True, timeout=900
        )


def free_port(taken: set[int]) -> int:
    for _ in range(1000):
        port = random.choice(PORTS)
        if port not in taken and is_free(port):
            taken.add(port)
            return port
    raise RuntimeError("no free port")


class Place(NamedTuple):
    """Where a node is."""

    host: str
    prefix: list[str]  # of the command that starts it


HERE = Place("127.0.0.1", [])


class Node:
    def __init__(
        self,
        kind: str,
        id: int,
        home: Path,
        config: Mapping[str, str],
        place: Place,
        port: int,
        format_options: str = "",
        java: Mapping[str, str] = JAVA,
    ) -> None:
        self.kind, self.id, self.place, self.port = kind, id, place, port
        self._environment = {
            **os.environ,
            "KAFKA_VERSION": VERSION,
            "KAFKA_FORMAT_OPTS": format_options,
            **java,
        }
        self.home = home / f"{kind}-{id}"
        self.config = dict(config)
        self.disks = 1
        self.process: subprocess.Popen[bytes] | None = None

    @property
    def address(self) -> str:
        return f"{self.place.host}:{self.port}"

    @property
    def data(self) -> Path:
        return self.home / "data"

    @property
    def directories(self) -> list[Path]:
        return [self.data, *(self.home / f"data-{number}" for number in range(1, self.disks))]

    @property
    def log(self) -> Path:
        return self.home / "server.log"

    def start(self) -> None:
        self.home.mkdir(exist_ok=True)
        if self.kind == OURS:
            properties = self.home / "server.properties"
            properties.write_text("".join(f"{key}={value}\n" for key, value in self._keys().items()))
            command = [sys.executable, "-m", "pykafkad", "start", str(properties)]
            environment = {key: text for key, text in os.environ.items() if not key.startswith("KAFKA_")}
        else:
            command, environment = self._launcher("run"), self._environment
        with self.log.open("ab") as log:
            self.process = subprocess.Popen(
                [*self.place.prefix, *command],
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
            )

    def format(self) -> None:
        """A real one, which is otherwise done by its first start."""
        subprocess.run(self._launcher("format"), env=self._environment, check=True, timeout=DEADLINE_S)

    def is_listening(self) -> bool:
        return not is_free(self.port)

    def _launcher(self, verb: str) -> list[str]:
        pairs = [f"{key}={value}" for key, value in self._keys().items()]
        return [str(SCRIPT), verb, str(self.home), str(self.port), *pairs]

    def _keys(self) -> dict[str, str]:
        name = "CONTROLLER" if self.kind == CONTROLLER else "PLAINTEXT"
        listener = f"{name}://{self.address}"
        keys = {
            "process.roles": "controller" if self.kind == CONTROLLER else "broker",
            "node.id": str(self.id),
            "listeners": listener,
            "advertised.listeners": listener,
            "controller.listener.names": "CONTROLLER",
            "listener.security.protocol.map": "CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT",
            "log.dirs": ",".join(map(str, self.directories)),
            **self.config,
        }
        voters = keys.get("controller.quorum.voters", "")
        if self.kind == OURS and self.id % 2 and voters:  # the other way to be told where the controllers are
            del keys["controller.quorum.voters"]
            keys["controller.quorum.bootstrap.servers"] = addresses(voters)
        return keys

    def kill(self) -> None:
        if self.process is not None:
            self.process.kill()
            self.process.wait()
            self.process = None

    def pause(self) -> None:
        assert self.process is not None
        self.process.send_signal(signal.SIGSTOP)

    def resume(self) -> None:
        assert self.process is not None
        self.process.send_signal(signal.SIGCONT)

    def tell(self, command: str) -> None:
        """One of ours, by its control socket."""
        client = ControlClient(str(self.data))
        try:
            list(client.ask(command))
        finally:
            client.close()

    def stop(self) -> None:
        """In order; 0 is what a process ends with that was asked to, or its signal."""
        assert self.process is not None
        self.process.terminate()
        code = self.process.wait(STOP_S)
        self.process = None
        assert code in (0, 143, -15), f"{self.kind} {self.id} ended with {code}: {self.end_of_log()}"

    def end_of_log(self) -> str:
        return self.log.read_text(errors="replace")[-2000:]


def formatted(dynamic: bool, id: int) -> str:
    """What `kafka-storage format` is told of a controller."""
    if not dynamic:
        return ""
    return "--standalone" if id == FIRST_CONTROLLER else "--no-initial-controllers"


def addresses(voters: str) -> str:
    return ",".join(voter.partition("@")[2] for voter in voters.split(","))


class KraftCluster:
    """`with KraftCluster([KAFKA, OURS, OURS]) as cluster`: brokers 1, 2 and 3, controllers from 100 on."""

    def __init__(
        self,
        brokers: Iterable[str],
        controllers: int = 1,
        config: Mapping[str, str] | None = None,
        *,
        dynamic: bool = False,
        java: Mapping[str, str] = JAVA,
    ) -> None:
        """`dynamic`: the first controller is a quorum of its own, and the others may join it when they are started;
        nobody is configured with more than the first. `java`: what the brokers' launcher finds in its environment."""
        need_kafka()
        self.home = Path(tempfile.mkdtemp(prefix="kraft-")).resolve()
        taken: set[int] = set()
        ports = {FIRST_CONTROLLER + number: free_port(taken) for number in range(controllers)}
        voters = ",".join(f"{id}@{self.place(id).host}:{port}" for id, port in ports.items())
        self._starts_with = controllers
        keys = {**CONFIG, "controller.quorum.voters": voters, **(config or {})}
        if dynamic:
            self._starts_with = 1
            keys["controller.quorum.voters"] = ""
            keys["controller.quorum.bootstrap.servers"] = addresses(voters.partition(",")[0])
        self.controllers = {
            id: Node(CONTROLLER, id, self.home, keys, self.place(id), port, formatted(dynamic, id))
            for id, port in ports.items()
        }
        self._keys, self._taken, self._java = keys, taken, java
        self.brokers: dict[int, Node] = {}
        for kind in brokers:
            self.add(kind)

    def place(self, id: int) -> Place:
        """Of a broker or controller."""
        return HERE

    def add(self, kind: str) -> Node:
        """Another broker, that is not started yet."""
        id = len(self.brokers) + 1
        port = free_port(self._taken)
        node = Node(kind, id, self.home, self._keys, self.place(id), port, java=self._java)
        self.brokers[id] = node
        return node

    @property
    def bootstrap_servers(self) -> str:
        return ",".join(node.address for node in self.brokers.values())

    def __enter__(self) -> KraftCluster:
        try:
            for node in (*list(self.controllers.values())[: self._starts_with], *self.brokers.values()):
                node.start()
            self.until_registered()
        except BaseException as error:
            self.__exit__(type(error), error, None)
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for node in (*self.brokers.values(), *self.controllers.values()):
            node.kill()
        if error is None:
            shutil.rmtree(self.home, ignore_errors=True)

    # -- what is done to it: brokers and controllers by their ids

    @property
    def ids(self) -> list[int]:
        """Of the brokers."""
        return list(self.brokers)

    def node(self, id: int) -> Node:
        return self.brokers.get(id) or self.controllers[id]

    def kill(self, id: int) -> None:
        self.node(id).kill()

    def stop(self, id: int) -> None:
        self.node(id).stop()

    def start(self, id: int) -> None:
        self.node(id).start()

    def pause(self, id: int) -> None:
        self.node(id).pause()

    def resume(self, id: int) -> None:
        self.node(id).resume()

    def isolate(self, id: int) -> None:
        """One of ours, from everybody."""
        self.node(id).tell("isolate")

    def heal(self, id: int) -> None:
        self.node(id).tell("heal")

    # -- what clients see

    @contextmanager
    def connected(self, id: int | None = None) -> Iterator[Client]:
        servers = self.bootstrap_servers if id is None else self.brokers[id].address
        client = Client(servers, client_id="kraft-test", api_timeout_ms=5_000)
        try:
            yield client
        finally:
            client.close()

    def metadata(self, id: int) -> Any:
        """As that broker says it."""
        with self.connected(id) as client:
            return client.call(client.any_broker(), MetadataRequest(topics=None), at_most=13)

    def until(self, what: str, is_so: Callable[[], object], seconds: float = DEADLINE_S) -> None:
        deadline = time.monotonic() + seconds
        seen: object = None
        while True:
            try:
                seen = is_so()
                if seen:
                    return
            except Exception as error:  # nobody answers yet
                seen = error
            for node in (*self.controllers.values(), *self.brokers.values()):
                ended = node.process is not None and node.process.poll() is not None
                assert not ended, f"{node.kind} {node.id} has ended: {node.end_of_log()}"
            assert time.monotonic() < deadline, f"{what}: not after {seconds:g} s: {seen!r}"
            time.sleep(0.1)

    def quorum(self, id: int | None = None) -> Any:
        """As that broker says, or any; the active controller answers."""
        kind = DescribeQuorumRequest
        part = kind.TopicData(topic_name="__cluster_metadata", partitions=[kind.PartitionData()])
        with self.connected(id) as client:
            answer = client.call(client.any_broker(), kind(topics=[part]), at_most=2)
        return answer.topics[0].partitions[0]

    def active(self) -> int:
        """The controller that is."""
        found = -1

        def is_there() -> bool:
            nonlocal found
            found = int(self.quorum().leader_id)
            return found >= 0

        self.until("an active controller", is_there)
        return found

    def running(self) -> list[int]:
        return [id for id, node in self.brokers.items() if node.process is not None]

    def until_registered(self) -> None:
        """Each broker that runs says that all of these do."""
        running = self.running()
        self.until(
            "all registered",
            lambda: all({row.node_id for row in self.metadata(id).brokers} >= set(running) for id in running),
        )

    def partitions(self, topic: str, id: int) -> list[Any]:
        rows = next(row for row in self.metadata(id).topics if row.name == topic)
        return sorted(rows.partitions, key=lambda row: int(row.partition_index))

    def until_in_sync(self, *topics: str) -> None:
        """Every replica of these topics, or of all, is in sync, and all that run say so."""

        def is_so() -> bool:
            return all(
                row.leader_id >= 0 and len(row.isr_nodes) == len(row.replica_nodes)
                for id in self.running()
                for topic in self.metadata(id).topics
                if topic.name in topics or not topics
                for row in topic.partitions
            )

        self.until(f"{topics} in sync", is_so)

    def until_led(self, *topics: str) -> None:
        """By brokers that run."""
        running = self.running()

        def is_so() -> bool:
            return all(
                row.leader_id in running for topic in topics for row in self.partitions(topic, running[0])
            )

        self.until(f"{topics} led", is_so)
