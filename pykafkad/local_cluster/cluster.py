"""Starting, ending, pausing and waking the processes of a cluster on one machine.

Owns the order: ZooKeeper first, and when it answers, all brokers at once, none of which has to try again then; at the end
the brokers stop one after the other and ZooKeeper last, so that each can hand over what it leads. A process that does
not stop in time is killed.
"""

from __future__ import annotations

import os
import sys
import time
from typing import NamedTuple

from pykafkad.control.client import ControlClient, ControlError
from pykafkad.errors import KafkaError
from pykafkad.local_cluster import home as homes
from pykafkad.local_cluster import zookeeper
from pykafkad.local_cluster.process import ClusterError
from pykafkad.net.client import Cluster as Client
from pykafkad.net.reaching import Unreachable

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from typing import Any

    from pykafkad.local_cluster.home import BrokerHome, Home

READY_S = 60.0
STOP_S = 60.0
POLL_S = 0.02
LOG_LINES = 20
AGAIN_S = 0.3
STILL_REGISTERED = ("DUPLICATE_BROKER_REGISTRATION", "KeeperErrorCode = NodeExists")  # ours, and Kafka's


class Launch(NamedTuple):
    """How a broker's process is begun."""

    command: list[str]
    environment: Mapping[str, str]


def ours(broker: BrokerHome) -> Launch:
    """KAFKA_ variables do not reach it: a cluster means the same in every shell."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("KAFKA_")}
    return Launch([sys.executable, "-m", "pykafkad", "start", broker.properties], environment)


class LocalCluster:
    def __init__(self, home: Home, launch: Callable[[BrokerHome], Launch] = ours) -> None:
        """`launch`: what a broker is; another one, and real Kafka brokers stand in the cluster."""
        self.home = home
        self._launch = launch
        self._began_at: dict[int, int] = {}  # how long a broker's log was when it began

    # -- all of it

    def start(self) -> None:
        """Begin whatever does not run, and wait until each broker knows all that run."""
        if self.home.zookeeper is not None:
            if not self.home.zookeeper.process.is_running:
                self.home.zookeeper.start(zookeeper.jars())
            self.home.zookeeper.wait()
        elif not zookeeper_answers(self.home.zookeeper_connect):
            raise ClusterError(f"no ZooKeeper answers at {self.home.zookeeper_connect}")
        missing = [each for each in self.home.brokers.values() if not each.process.is_running]
        for broker in missing:
            self._begin(broker)
        self.wait(self.home.brokers)

    def stop(self) -> None:
        """All brokers, and ZooKeeper if it is ours."""
        for broker in self.running():
            self.stop_broker(broker.id)
        if self.home.zookeeper is not None:
            self.home.zookeeper.process.ask_to_stop()
            if not self.home.zookeeper.process.wait(STOP_S):
                self.home.zookeeper.process.kill()

    def kill(self) -> None:
        """All at once: nothing is flushed or finished."""
        processes = [each.process for each in self.home.brokers.values()]
        if self.home.zookeeper is not None:
            processes.append(self.home.zookeeper.process)
        for process in processes:
            if process.is_running:
                process.kill()

    def running(self) -> list[BrokerHome]:
        return [each for each in self.home.brokers.values() if each.process.is_running]

    # -- one broker

    def start_broker(self, id: int) -> None:
        broker = self.home.broker(id)
        self._begin(broker)
        self.wait([id])

    def stop_broker(self, id: int) -> None:
        process = self.home.broker(id).process
        process.ask_to_stop()
        if not process.wait(STOP_S):
            process.kill()

    def kill_broker(self, id: int) -> None:
        self.home.broker(id).process.kill()

    def pause_broker(self, id: int) -> None:
        self.home.broker(id).process.pause()

    def resume_broker(self, id: int) -> None:
        self.home.broker(id).process.resume()

    def isolate_broker(self, id: int) -> None:
        """It is cut off from the other brokers and from ZooKeeper; its clients still reach it."""
        self._tell(id, "isolate", isolated=True)

    def heal_broker(self, id: int) -> None:
        self._tell(id, "heal", isolated=False)

    def _tell(self, id: int, command: str, *, isolated: bool) -> None:
        broker = self.home.broker(id)
        if not broker.process.is_running:
            raise ClusterError(f"broker {id} is not running")
        try:
            client = ControlClient(broker.data)
            try:
                list(client.ask(command))
            finally:
                client.close()
        except ControlError as problem:
            raise ClusterError(f"broker {id}: {problem}") from problem
        broker.process.mark_isolated(isolated)

    def _begin(self, broker: BrokerHome) -> None:
        self._began_at[broker.id] = os.path.getsize(broker.log) if os.path.exists(broker.log) else 0
        command, environment = self._launch(broker)
        broker.process.start(command, broker.log, environment)

    # -- readiness

    def wait(self, ids: Iterable[int], seconds: float = READY_S) -> None:
        """Until each of these brokers answers, and knows all of them and a controller."""
        brokers = [self.home.broker(id) for id in ids]
        wanted = {broker.id for broker in brokers}
        deadline = time.monotonic() + seconds
        for broker in brokers:
            while not self._is_ready(broker, wanted):
                for other in brokers:
                    if not other.process.is_running:
                        self._begin_again(other)
                if time.monotonic() > deadline:
                    raise ClusterError(
                        f"broker {broker.id} was not ready in {seconds:g} s; its log ends:\n{log_tail(broker)}"
                    )
                time.sleep(POLL_S)

    def _begin_again(self, broker: BrokerHome) -> None:
        """A broker that was killed cannot come back before ZooKeeper has ended its old session: Kafka leaves it to
        whoever starts it to try again."""
        began_at = self._began_at.get(broker.id)  # None: somebody else began it
        said = "" if began_at is None else log_tail(broker, began_at)
        if not any(words in said for words in STILL_REGISTERED):
            raise ClusterError(f"broker {broker.id} ended at its start; its log ends:\n{log_tail(broker)}")
        time.sleep(AGAIN_S)
        self._begin(broker)

    @staticmethod
    def _is_ready(broker: BrokerHome, wanted: set[int]) -> bool:
        try:
            found = ask(broker)
        except (OSError, KafkaError, Unreachable, ValueError):
            return False
        return wanted <= {row.node_id for row in found.brokers} and found.controller_id >= 0


def ask(broker: BrokerHome) -> Any:
    """What this broker says of the cluster."""
    client = Client(broker.address, request_timeout_ms=2000, api_timeout_ms=2000, setup_timeout_ms=2000)
    try:
        return client.metadata([])
    finally:
        client.close()


def zookeeper_answers(connect: str) -> bool:
    """Whether one of the servers of a zookeeper.connect does."""
    for server in connect.partition("/")[0].split(","):
        host, _, port = server.rpartition(":")
        if not host or not port.isascii() or not port.isdigit():
            raise ClusterError(f"{connect}: HOST:PORT is wanted, or several with commas, and /CHROOT")
        if zookeeper.answers(host.strip("[]"), int(port)):
            return True
    return False


def log_tail(broker: BrokerHome, start: int = 0) -> str:
    """Its last lines; none before that byte."""
    try:
        with open(broker.log, "rb") as file:
            file.seek(start)
            return b"".join(file.readlines()[-LOG_LINES:]).decode(errors="replace")
    except OSError:
        return ""


def open_or_make(
    directory: str, brokers: int | None, zookeeper: str | None, overrides: Mapping[str, str]
) -> Home:
    """What is there already counts; an option that says otherwise is a mistake."""
    if not homes.exists(directory):
        return homes.make(directory, 3 if brokers is None else brokers, zookeeper, overrides)
    home = homes.load(directory)
    if brokers not in (None, len(home.brokers)):
        raise ClusterError(f"{directory} holds a cluster of {len(home.brokers)} brokers, not of {brokers}")
    if zookeeper not in (None, home.zookeeper_connect):
        raise ClusterError(f"{directory} holds a cluster on the ZooKeeper at {home.zookeeper_connect}")
    if overrides:
        raise ClusterError(
            f"{directory} holds a cluster with configs of its own: change {directory}/broker-*/server.properties"
        )
    return home
