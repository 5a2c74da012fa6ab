"""Faults of a cluster whose controllers are Apache Kafka's, for the torment: of its brokers, ours or not, and of its
controllers.

One broker is away at a time; a controller may be away with it. With a single controller nobody decides meanwhile, and
what is decided by then must hold.
"""

from __future__ import annotations

from compat_tests.cluster.kraft import OURS
from compat_tests.cluster.torment import MOST_DOWN_S, MOST_NAP_S, OVER_THE_SESSION_S, Nemesis

CONFIG = {
    "min.insync.replicas": "2",
    "unclean.leader.election.enable": "false",
    "transaction.state.log.min.isr": "2",
    "auto.create.topics.enable": "false",
}
# The session of a broker is 6 s long, a leader of the quorum is missed after 2 s.
KRAFT_FAULTS = {
    "kill": ("kill",),
    "stop": ("stop",),
    "freeze": ("freeze", "sleep"),
    "isolate": ("isolate",),
    "controllers": ("kill_controller", "stop_controller", "freeze_controller"),
    "both": ("kill_both", "freeze_both"),
    "all": (
        *("kill", "stop", "freeze", "sleep", "isolate", "kill_controller", "stop_controller"),
        *("freeze_controller", "kill_both", "freeze_both", "crash"),
    ),
}


class KraftNemesis(Nemesis):
    def _can(self, action: str) -> bool:
        return action != "isolate" or bool(self._ours())

    def _controller(self) -> int:
        """The active one."""
        return int(self._cluster.active())

    def _stop_controller(self) -> None:
        self._stop(self._controller())

    def _isolate(self) -> None:
        self._cut_off(self._chance.choice(self._ours()))

    def _ours(self) -> list[int]:
        return [id for id, node in self._cluster.brokers.items() if node.kind == OURS]

    # -- a broker and the active controller

    def _kill_both(self) -> None:
        both = self._both()
        for id in both:
            self._cluster.kill(id)
        self._wait(self._chance.uniform(0, MOST_DOWN_S))
        for id in both:
            self._cluster.start(id)

    def _freeze_both(self) -> None:
        """For less or more than a session, and the one wakes before the other."""
        both = self._both()
        for id in both:
            self._cluster.pause(id)
        self._wait(self._chance.uniform(0.2, OVER_THE_SESSION_S))
        for id in both:
            self._cluster.resume(id)
            self._wait(self._chance.uniform(0, MOST_NAP_S))

    def _both(self) -> list[int]:
        both = [self._any(), self._controller()]
        self._chance.shuffle(both)
        return both
