"""Faults of the network between brokers, ZooKeeper and clients, for the torment: cuts both ways and one way, loss, delay.

A cut lasts for up to longer than a session. One broker is concerned at a time, so that nothing that is acknowledged may
be lost: who is cut off from the others cannot acknowledge anything by itself (min.insync.replicas 2).
"""

from __future__ import annotations

from collections.abc import Iterable

from compat_tests.cluster.network import (
    ALL,
    BROKERS,
    CLIENTS,
    ZOOKEEPER,
    Rule,
    both_ways,
    one_way,
)
from compat_tests.cluster.torment import OVER_THE_SESSION_S, Nemesis

CUTS = ("between_brokers", "from_brokers", "from_zookeeper", "from_clients", "alone")
ONE_WAY = ("deaf_to_a_broker", "mute_to_a_broker", "deaf_to_zookeeper", "mute_to_zookeeper", "deaf", "mute")
BAD = ("slow", "lossy", "slow_zookeeper")
NETWORK_FAULTS = {
    "cut": CUTS,
    "cut-one-way": ONE_WAY,
    "bad-network": BAD,
    "network": (*CUTS, *ONE_WAY, *BAD, "kill", "freeze"),
}
LEAST_S = 0.5
MOST_LOST, MOST_DELAY_MS = 0.2, 150.0


class NetworkNemesis(Nemesis):
    def _number(self) -> int:
        """Of a broker's namespace."""
        return self._any()

    def _hold(self, rules: Iterable[Rule]) -> None:
        self._cluster.network.change(rules)
        self._wait(self._chance.uniform(LEAST_S, OVER_THE_SESSION_S))
        self._cluster.network.change([])

    def _others(self, id: int) -> list[int]:
        return [each for each in range(BROKERS) if each != id]

    def _pair(self) -> tuple[int, int]:
        one, other = self._chance.sample(range(BROKERS), 2)
        return one, other

    # -- cut both ways

    def _between_brokers(self) -> None:
        one, other = self._pair()
        self._hold(both_ways(one, [other]))

    def _from_brokers(self) -> None:
        id = self._number()
        self._hold(both_ways(id, self._others(id)))

    def _from_zookeeper(self) -> None:
        self._hold(both_ways(self._number(), [ZOOKEEPER]))

    def _from_clients(self) -> None:
        self._hold(both_ways(self._number(), [CLIENTS]))

    def _alone(self) -> None:
        self._hold(both_ways(self._number(), ALL))

    # -- cut one way: what it is told does not come, or what it says

    def _deaf_to_a_broker(self) -> None:
        one, other = self._pair()
        self._hold(one_way([other], [one]))

    def _mute_to_a_broker(self) -> None:
        one, other = self._pair()
        self._hold(one_way([one], [other]))

    def _deaf_to_zookeeper(self) -> None:
        self._hold(one_way([ZOOKEEPER], [self._number()]))

    def _mute_to_zookeeper(self) -> None:
        self._hold(one_way([self._number()], [ZOOKEEPER]))

    def _deaf(self) -> None:
        self._hold(one_way(ALL, [self._number()]))

    def _mute(self) -> None:
        self._hold(one_way([self._number()], ALL))

    # -- a bad network

    def _slow(self) -> None:
        self._hold(both_ways(self._number(), ALL, 0.0, self._chance.uniform(1, MOST_DELAY_MS)))

    def _lossy(self) -> None:
        self._hold(both_ways(self._number(), ALL, self._chance.uniform(0.01, MOST_LOST)))

    def _slow_zookeeper(self) -> None:
        self._hold(both_ways(ZOOKEEPER, range(BROKERS), 0.0, self._chance.uniform(1, 10 * MOST_DELAY_MS)))
