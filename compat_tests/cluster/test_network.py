"""A quarter of a minute of clients that write down what they see, while the network between brokers, ZooKeeper and them
is cut and bad. `python -m compat_tests.cluster torment --faults network` has the long form.
"""

from __future__ import annotations

import os
import socket
from pathlib import Path

import pytest

from compat_tests.cluster.brokers import chosen
from compat_tests.cluster.network import CLIENTS, Network, NetworkCluster, both_ways, one_way, why_not
from compat_tests.cluster.network_switch import address
from compat_tests.cluster.network_torment import NETWORK_FAULTS, NetworkNemesis
from compat_tests.cluster.torment import CONFIG, torment

SEED = int(os.environ.get("SEED", "20261119"))
SECONDS, WAIT_S = 12.0, 1.0
# An action takes up to a session and the time until all are in sync again: of so short a run each is short.
FAULTS = tuple(name for name in NETWORK_FAULTS["network"] if name not in ("freeze", "slow_zookeeper"))


@pytest.fixture(autouse=True)
def permitted() -> None:
    if missing := why_not():
        pytest.skip(missing)


def reaches(number: int, port: int) -> bool:
    try:
        with socket.create_connection((address(number), port), timeout=1):
            return True
    except OSError:
        return False


def test_what_clients_saw_of_a_cluster_with_a_bad_network_has_no_anomaly(tmp_path: Path) -> None:
    with (
        Network() as network,
        NetworkCluster(network, tmp_path / "cluster", [chosen()] * 3, CONFIG) as cluster,
    ):
        port = cluster.home.broker(0).port
        assert reaches(0, port)
        for rules in (both_ways(0, [CLIENTS]), one_way([0], [CLIENTS]), one_way([CLIENTS], [0])):
            network.change(rules)
            assert not reaches(0, port), "what is cut is cut"
            assert reaches(1, cluster.home.broker(1).port)
        network.change([])
        report = torment(cluster, tmp_path, SEED, SECONDS, FAULTS, WAIT_S, NetworkNemesis)
    print(report.text())
    assert not report.faults and not report.problems, report.text()
    seen = ("send ok", "poll")
    assert all(report.done[what] for what in seen), report.text()
