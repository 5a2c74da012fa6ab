"""A cluster beside a controller of Apache Kafka in a network of its own (network.py): brokers 1 to 3 are in the
namespaces 0 to 2, and the controller is where ZooKeeper would be, so that the same faults mean the same."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from compat_tests.cluster.kraft import FIRST_CONTROLLER, KraftCluster, Place
from compat_tests.cluster.kraft_torment import KraftNemesis
from compat_tests.cluster.network import ZOOKEEPER, Network
from compat_tests.cluster.network_switch import address
from compat_tests.cluster.network_torment import NetworkNemesis


def namespace_of(id: int) -> int:
    return ZOOKEEPER if id == FIRST_CONTROLLER else id - 1


class NetworkKraftCluster(KraftCluster):
    def __init__(self, network: Network, brokers: Iterable[str], config: Mapping[str, str]) -> None:
        self.network = network
        super().__init__(brokers, 1, config)

    def place(self, id: int) -> Place:
        number = namespace_of(id)
        return Place(address(number), self.network.entering(number))


class NetworkKraftNemesis(NetworkNemesis, KraftNemesis):
    def _number(self) -> int:
        return namespace_of(self._any())
