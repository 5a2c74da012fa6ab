"""A minute of clients that write down what they see, while their broker is killed, stopped and its clock moved.
`make torture` has the long form; BROKER=kafka does the same to the real broker.
"""

from __future__ import annotations

import os
from pathlib import Path

from compat_tests.history.brokers import Victim
from compat_tests.history.workload import ACTIONS, make_history

SEED = int(os.environ.get("SEED", "20261119"))
SECONDS = 40.0  # and the time to start, to end and to read everything


def test_what_clients_saw_of_a_tormented_broker_has_no_anomaly(tmp_path: Path) -> None:
    with Victim() as victim:
        report = make_history(victim, tmp_path, SEED, SECONDS)
    assert not report.faults and not report.problems, report.text()
    print(report.text())
    assert all(report.done[action] for action in ACTIONS), report.text()
    seen = ("send ok", "commit ok", "abort ok", "poll", "seek", "subscribe")
    assert all(report.done[what] for what in seen), report.text()
