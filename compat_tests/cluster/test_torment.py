"""A minute of clients that write down what they see, while brokers of their cluster are killed, stopped and frozen.
`python -m compat_tests.cluster torment` has the long form; BROKER=kafka does the same to real brokers.
"""

from __future__ import annotations

import os
from pathlib import Path

from compat_tests.cluster.brokers import MixedCluster
from compat_tests.cluster.torment import CONFIG, torment

SEED = int(os.environ.get("SEED", "20261119"))
SECONDS = 40.0  # and the time to start, to end and to read everything


def test_what_clients_saw_of_a_tormented_cluster_has_no_anomaly(tmp_path: Path) -> None:
    with MixedCluster(config=CONFIG) as cluster:
        report = torment(cluster, tmp_path, SEED, SECONDS)
    print(report.text())
    assert not report.faults and not report.problems, report.text()
    seen = ("send ok", "commit ok", "abort ok", "poll")
    assert all(report.done[what] for what in seen), report.text()
