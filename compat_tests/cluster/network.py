"""A cluster in a network of its own: each broker, ZooKeeper and the clients have a network namespace each, and what goes
between two of them can be cut off, one way or both, lost in part, or delayed.

It needs root's rights and /dev/net/tun, and no netfilter, no netem: packets are carried by network_switch.py. Whoever
opens one is among its clients until it is closed, with the threads and processes that it starts meanwhile; the machine's
own network is not touched.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from types import TracebackType
from typing import Self

from compat_tests.cluster.brokers import CONFIG, Kinds, MixedCluster, need_zookeeper
from compat_tests.cluster.network_switch import address, enter
from pykafkad.local_cluster import home as homes
from pykafkad.local_cluster import zookeeper as local
from pykafkad.local_cluster.cluster import Launch
from pykafkad.local_cluster.home import BrokerHome

BROKERS = 3
ZOOKEEPER, CLIENTS = BROKERS, BROKERS + 1  # behind the brokers' numbers
ALL = range(BROKERS + 2)
ZOOKEEPER_PORT = 2181

Rule = tuple[int, int, float, float]  # from, to, the part that is lost, milliseconds of delay


def why_not() -> str:
    """What is missing here, or nothing."""
    if sys.platform != "linux" or not Path("/dev/net/tun").exists():
        return "network namespaces with /dev/net/tun are needed"
    if missing := [name for name in ("ip", "nsenter") if shutil.which(name) is None]:
        return f"{' and '.join(missing)} are needed: apt-get install iproute2 util-linux"
    tried = subprocess.run(switch_command(1), input="", capture_output=True, text=True, check=False)
    if tried.stdout.startswith("READY"):
        return ""
    return f"no network can be made, for which root's rights are needed: {tried.stderr[-300:]}"


def switch_command(count: int) -> list[str]:
    return [sys.executable, "-m", "compat_tests.cluster.network_switch", str(count)]


class Network:
    def __enter__(self) -> Self:
        self._outside = os.open("/proc/thread-self/ns/net", os.O_RDONLY)
        self._switch = subprocess.Popen(
            switch_command(len(ALL)), stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        pid, *descriptors = self._said("READY").split()
        self._namespaces = [f"/proc/{pid}/fd/{descriptor}" for descriptor in descriptors]
        self._enter(CLIENTS)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        enter(self._outside)
        os.close(self._outside)
        self._switch.communicate()

    def _said(self, word: str) -> str:
        assert self._switch.stdout is not None
        first, _, rest = self._switch.stdout.readline().partition(" ")
        assert first.strip() == word, f"the switch said {first!r}"
        return rest

    def _enter(self, number: int) -> None:
        namespace = os.open(self._namespaces[number], os.O_RDONLY)
        enter(namespace)
        os.close(namespace)

    def launched(self, number: int, launch: Launch) -> Launch:
        """The same, in that namespace."""
        return Launch([*self.entering(number), *launch.command], launch.environment)

    def entering(self, number: int) -> list[str]:
        """What a command begins with that is to run in that namespace."""
        return ["nsenter", f"--net={self._namespaces[number]}", "--"]

    def start_zookeeper(self, directory: Path) -> NetworkZooKeeper:
        server = NetworkZooKeeper(str(directory), ZOOKEEPER_PORT)
        self._enter(ZOOKEEPER)
        try:
            server.start(local.jars())
            server.wait()
        finally:
            self._enter(CLIENTS)
        return server

    # -- what is done to it

    def change(self, rules: Iterable[Rule]) -> None:
        """These instead of those before; none: everything is carried."""
        assert self._switch.stdin is not None
        self._switch.stdin.write(json.dumps(list(rules)) + "\n")
        self._switch.stdin.flush()
        self._said("OBEYED")


def both_ways(one: int, others: Iterable[int], lost: float = 1.0, delay_ms: float = 0.0) -> list[Rule]:
    return [*one_way([one], others, lost, delay_ms), *one_way(others, [one], lost, delay_ms)]


def one_way(
    sources: Iterable[int], targets: Iterable[int], lost: float = 1.0, delay_ms: float = 0.0
) -> list[Rule]:
    targets = list(targets)
    return [(source, target, lost, delay_ms) for source in sources for target in targets if source != target]


class NetworkZooKeeper(local.ZooKeeper):
    """At the address of its namespace, and at its loopback, where its readiness is looked at."""

    def _config(self) -> str:
        return super()._config().replace(f"clientPortAddress={local.HOST}", "clientPortAddress=0.0.0.0")


class NetworkKinds(Kinds):
    def __init__(self, kinds: Iterable[str], network: Network) -> None:
        super().__init__(kinds)
        self._network = network

    def launch(self, broker: BrokerHome) -> Launch:
        return self._network.launched(broker.id, super().launch(broker))


class NetworkCluster(MixedCluster):
    """Three brokers and their ZooKeeper in a network, which stays when the cluster is closed."""

    def __init__(
        self, network: Network, directory: Path, kinds: Iterable[str], config: Mapping[str, str]
    ) -> None:
        need_zookeeper()
        self.network = network
        self._zookeeper = network.start_zookeeper(directory / "zookeeper")
        try:
            connect = f"{address(ZOOKEEPER)}:{ZOOKEEPER_PORT}"
            hosts = {id: address(id) for id in range(BROKERS)}
            homes.make(str(directory / "cluster"), BROKERS, connect, {**CONFIG, **config}, hosts)
            super().__init__(NetworkKinds(kinds, network), home=directory / "cluster")
        except BaseException:
            self._zookeeper.process.kill()
            raise

    def close(self) -> None:
        super().close()
        if self._zookeeper.process.is_running:
            self._zookeeper.process.kill()
