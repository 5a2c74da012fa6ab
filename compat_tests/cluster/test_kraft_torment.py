"""Half a minute of clients that write down what they see, while brokers of ours, one of Kafka's and their controller are
killed, stopped and frozen. `python -m compat_tests.cluster torment --controllers 3` has the long form.
"""

from __future__ import annotations

import os
from pathlib import Path

from compat_tests.cluster.kraft import KAFKA, OURS, KraftCluster
from compat_tests.cluster.kraft_torment import CONFIG, KRAFT_FAULTS, KraftNemesis
from compat_tests.cluster.torment import torment

SEED = int(os.environ.get("SEED", "20261120"))
SECONDS = 25.0  # and the time to start, to end and to read everything


def test_what_clients_saw_of_a_tormented_cluster_has_no_anomaly(tmp_path: Path) -> None:
    with KraftCluster([KAFKA, OURS, OURS], config=CONFIG) as cluster:
        report = torment(cluster, tmp_path, SEED, SECONDS, KRAFT_FAULTS["all"], kind=KraftNemesis)
    print(report.text())
    assert not report.faults and not report.problems, report.text()
    seen = ("send ok", "commit ok", "abort ok", "poll")
    assert all(report.done[what] for what in seen), report.text()
