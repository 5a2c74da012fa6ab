"""The short form of the copy test; `python -m compat_tests.history copy` has the one of 100,000 messages."""

from __future__ import annotations

import os
from pathlib import Path

from compat_tests.history.brokers import Victim
from compat_tests.history.copying import Task, copy

SEED = int(os.environ.get("SEED", "20261119"))
SHORT = Task(count=10_000, kills=3, every_s=2.0, pause_s=0.7)


def test_a_copy_in_transactions_is_exact_though_broker_and_copiers_are_killed(tmp_path: Path) -> None:
    with Victim() as victim:
        copied = copy(victim, tmp_path, SEED, SHORT)
    assert copied.found == copied.wanted, copied.text()
    assert copied.crashed == SHORT.kills
