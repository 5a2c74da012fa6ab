"""The directory of a cluster on one machine: who belongs to it and where each listens, as cluster.json says.

Owns the names of the files in it, the ports, which stay for the life of the directory, and what a broker's
server.properties say at first: Kafka 3.9's keys, which the user may change afterwards.
"""

from __future__ import annotations

import json
import os
from typing import NamedTuple

from pykafkad.local_cluster.process import ClusterError, Process
from pykafkad.local_cluster.zookeeper import ZooKeeper
from pykafkad.testing.ports import lasting_port

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

FILE = "cluster.json"
HOST = "127.0.0.1"
BROKERS_MAX = 100
CONNECTION_MS = 30_000
SESSION_MS = 6000  # Kafka's 18 s are for networks: on one machine a broker that is killed is missed sooner
PORTS_TRIED = 100


class BrokerHome(NamedTuple):
    """One broker: its directory, and where it listens for clients and for the other brokers."""

    id: int
    directory: str
    port: int
    internal_port: int
    host: str = HOST

    @property
    def process(self) -> Process:
        return Process(f"broker {self.id}", os.path.join(self.directory, "pid"))

    @property
    def properties(self) -> str:
        return os.path.join(self.directory, "server.properties")

    @property
    def log(self) -> str:
        return os.path.join(self.directory, "broker.log")

    @property
    def data(self) -> str:
        return os.path.join(self.directory, "data")

    @property
    def address(self) -> str:
        return f"{self.host}:{self.port}"


class Home:
    """The whole of it."""

    def __init__(
        self, directory: str, zookeeper: str, own_port: int, places: Mapping[int, tuple[int, int, str]]
    ) -> None:
        """`zookeeper`: the value of zookeeper.connect. `own_port`: of our own ZooKeeper, or 0. `places`: the two ports
        and the host of each broker."""
        self.directory = directory
        self.zookeeper_connect = zookeeper
        self.zookeeper = ZooKeeper(os.path.join(directory, "zookeeper"), own_port) if own_port else None
        self.up = Process("the cluster", os.path.join(directory, "up.pid"))
        self.brokers = {
            id: BrokerHome(id, os.path.join(directory, f"broker-{id}"), *place)
            for id, place in places.items()
        }

    @property
    def bootstrap_servers(self) -> str:
        return ",".join(broker.address for broker in self.brokers.values())

    def broker(self, id: int) -> BrokerHome:
        found = self.brokers.get(id)
        if found is None:
            raise ClusterError(
                f"there is no broker {id} in {self.directory}: {', '.join(map(str, self.brokers))}"
            )
        return found


def exists(directory: str) -> bool:
    return os.path.exists(os.path.join(directory, FILE))


def load(directory: str) -> Home:
    path = os.path.join(directory, FILE)
    try:
        with open(path, encoding="utf-8") as file:
            found: dict[str, Any] = json.load(file)
        places = {
            row["id"]: (row["port"], row["internal_port"], row.get("host", HOST)) for row in found["brokers"]
        }
        return Home(directory, found["zookeeper.connect"], found["zookeeper_port"], places)
    except FileNotFoundError:
        raise ClusterError(
            f"there is no cluster in {directory}: pykafkad cluster up --data DIR makes one"
        ) from None
    except (OSError, ValueError, KeyError, TypeError) as problem:
        raise ClusterError(f"{path} cannot be read: {type(problem).__name__}: {problem}") from None


def make(
    directory: str,
    brokers: int,
    zookeeper: str | None,
    overrides: Mapping[str, str],
    hosts: Mapping[int, str] | None = None,
) -> Home:
    """A new one; with a ZooKeeper of its own unless one is named. `hosts`: of the brokers, if they are not all at the
    loopback address, as in network namespaces."""
    try:
        os.makedirs(directory, exist_ok=True)
        ports = _ports(2 * brokers + 1)
        own_port = 0 if zookeeper else ports.pop()
        places = {
            id: (ports[2 * id], ports[2 * id + 1], (hosts or {}).get(id, HOST)) for id in range(brokers)
        }
        home = Home(directory, zookeeper or f"{HOST}:{own_port}", own_port, places)
        for broker in home.brokers.values():
            os.makedirs(broker.directory, exist_ok=True)
            with open(broker.properties, "w", encoding="utf-8") as file:
                file.writelines(
                    f"{key}={value}\n" for key, value in properties(home, broker, overrides).items()
                )
        _write(home)
    except OSError as problem:
        raise ClusterError(f"the cluster in {directory} cannot be made: {problem}") from problem
    return home


def _write(home: Home) -> None:
    found = {
        "zookeeper.connect": home.zookeeper_connect,
        "zookeeper_port": home.zookeeper.port if home.zookeeper else 0,
        "brokers": [
            {"id": each.id, "port": each.port, "internal_port": each.internal_port, "host": each.host}
            for each in home.brokers.values()
        ],
    }
    path = os.path.join(home.directory, FILE)
    with open(f"{path}.new", "w", encoding="utf-8") as file:
        json.dump(found, file, indent=2)
    os.rename(f"{path}.new", path)


def _ports(count: int) -> list[int]:
    """Different ones that are free, and are not given to clients: a broker that comes back finds its own free."""
    found: dict[int, None] = {}
    for _ in range(PORTS_TRIED + count):
        if (port := lasting_port(HOST)) > 0:
            found[port] = None
        if len(found) == count:
            return list(found)
    raise ClusterError(f"there are no {count} free ports at {HOST}")


def properties(home: Home, broker: BrokerHome, overrides: Mapping[str, str]) -> dict[str, str]:
    """Internal topics are kept by as many brokers as Kafka would like, or as there are."""
    replicas = min(3, len(home.brokers))
    listeners = f"CLIENT://{broker.host}:{broker.port},INTERNAL://{broker.host}:{broker.internal_port}"
    return {
        "broker.id": str(broker.id),
        "zookeeper.connect": home.zookeeper_connect,
        "zookeeper.session.timeout.ms": str(SESSION_MS),
        "zookeeper.connection.timeout.ms": str(CONNECTION_MS),
        "listeners": listeners,
        "advertised.listeners": listeners,
        "listener.security.protocol.map": "CLIENT:PLAINTEXT,INTERNAL:PLAINTEXT",
        "inter.broker.listener.name": "INTERNAL",
        "log.dirs": broker.data,
        "default.replication.factor": str(replicas),
        "offsets.topic.replication.factor": str(replicas),
        "transaction.state.log.replication.factor": str(replicas),
        "transaction.state.log.min.isr": str(max(1, replicas - 1)),
        "group.initial.rebalance.delay.ms": "0",
        **overrides,
    }
