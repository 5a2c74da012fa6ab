"""A cluster under faults, while a crowd of clients writes down what it sees; the histories' checker is the judge.

Clients and checker are compat_tests/history's: plain and idempotent producers, transactions, transforms, groups, readers.
What is done follows from the seed, when it hits does not. Never so many brokers are away at once that an acknowledged
record could be lost: with three replicas and min.insync.replicas 2, one.
"""

from __future__ import annotations

import random
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from compat_tests.cluster.brokers import OURS
from compat_tests.history.checker import check
from compat_tests.history.crowd import Crowd
from compat_tests.history.workload import (
    TOPICS,
    TRANSACTIONAL_IDS,
    Report,
    abort_what_is_open,
    create_topics,
    parts,
    read,
    read_everything,
    what,
)

CONFIG = {"min.insync.replicas": "2", "unclean.leader.election.enable": "false"}
# Each hits one broker: a controller, a leader or a follower, as it comes, or the controller on purpose.
FAULTS = {
    "kill": ("kill",),
    "stop": ("stop",),
    "freeze": ("freeze",),
    "sleep": ("sleep",),
    "kill-controller": ("kill_controller",),
    "freeze-controller": ("freeze_controller",),
    "bounce": ("kill", "stop", "kill_controller"),
    "isolate": ("isolate", "isolate_controller"),
    "all": (
        "kill",
        "stop",
        "freeze",
        "sleep",
        "kill_controller",
        "freeze_controller",
        "isolate",
        "isolate_controller",
        "crash",
    ),
}
OF_OURS = ("isolate", "isolate_controller")  # which a real Kafka broker cannot be asked for
TEND_S = 0.2
MOST_DOWN_S, MOST_NAP_S = 3.0, 3.0
OVER_THE_SESSION_S = 8.0
WITHOUT = ("raw",)  # clients that know one broker only


class Nemesis:
    """One action after the other, each to its end: the cluster is whole again before the next."""

    def __init__(self, cluster: Any, crowd: Crowd, seed: int, actions: Sequence[str], wait_s: float) -> None:
        """`cluster`: a MixedCluster, or what another kind of nemesis knows."""
        self._cluster, self._crowd, self._wait_s = cluster, crowd, wait_s
        self._actions = [action for action in actions if self._can(action)]
        self._chance = random.Random(f"{seed} nemesis")
        self.done: Counter[str] = Counter()

    def run(self, seconds: float) -> None:
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            self._wait(self._chance.uniform(0.3, 1) * self._wait_s)
            action = self._chance.choice(self._actions)
            getattr(self, f"_{action}")()
            self.done[action] += 1
            self._cluster.until_in_sync()
        self._wait(self._wait_s)

    def _wait(self, seconds: float) -> None:
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            self._crowd.tend()
            time.sleep(TEND_S)

    def _can(self, action: str) -> bool:
        return action not in OF_OURS or set(self._cluster.kinds.of.values()) == {OURS}

    def _any(self) -> int:
        return int(self._chance.choice(self._cluster.ids))

    def _controller(self) -> int:
        status = self._cluster.until("a controller", lambda status: status["controller"] not in (None, -1))
        return int(status["controller"])

    # -- the actions

    def _kill(self, id: int | None = None) -> None:
        id = self._any() if id is None else id
        self._cluster.kill(id)
        self._wait(self._chance.uniform(0, MOST_DOWN_S))
        self._cluster.start(id)

    def _stop(self, id: int | None = None) -> None:
        id = self._any() if id is None else id
        self._cluster.stop(id)
        self._wait(self._chance.uniform(0, MOST_DOWN_S))
        self._cluster.start(id)

    def _sleep(self) -> None:
        """Shorter than its session."""
        self._pause(self._any(), self._chance.uniform(0.2, MOST_NAP_S))

    def _freeze(self) -> None:
        self._pause(self._any(), OVER_THE_SESSION_S)

    def _pause(self, id: int, seconds: float) -> None:
        self._cluster.pause(id)
        self._wait(seconds)
        self._cluster.resume(id)

    def _kill_controller(self) -> None:
        self._kill(self._controller())

    def _freeze_controller(self) -> None:
        self._pause(self._controller(), OVER_THE_SESSION_S)

    def _isolate(self) -> None:
        self._cut_off(self._any())

    def _isolate_controller(self) -> None:
        self._cut_off(self._controller())

    def _cut_off(self, id: int) -> None:
        self._cluster.isolate(id)
        self._wait(self._chance.uniform(0.5, OVER_THE_SESSION_S))
        self._cluster.heal(id)

    def _crash(self) -> None:
        self._crowd.crash(self._chance)


def torment(
    cluster: Any,
    directory: Path,
    seed: int,
    seconds: float,
    faults: Sequence[str] = FAULTS["all"],
    wait_s: float = 3.0,
    kind: type[Nemesis] = Nemesis,
) -> Report:
    """Make a history with a running cluster, and check it. `kind`: who has these faults."""
    bootstrap = cluster.bootstrap_servers
    create_topics(bootstrap, TOPICS, min(3, len(cluster.ids)))
    crowd = Crowd([part for part in parts(bootstrap) if part.label not in WITHOUT], directory, seed)
    nemesis = kind(cluster, crowd, seed, faults, wait_s)
    try:
        nemesis.run(seconds)
    finally:
        crowd.end()
    abort_what_is_open(bootstrap, [name for name in TRANSACTIONAL_IDS if not name.startswith(WITHOUT)])
    problems = read_everything(bootstrap, directory)
    events = read(directory)
    done = nemesis.done + Counter(what(event) for event in events)
    done["client gave up"] = crowd.gave_up
    return Report(seed, events, check(events), problems, done)
