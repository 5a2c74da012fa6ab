"""All replicas of this node, by topic and partition: one for each log that the storage serves.

The storage reports which logs there are (manager.LogObserver), and gets a replica for each, to which the log reports.
Invariant: a replica is in the table exactly while its log is in the storage's.
"""

from __future__ import annotations

from pykafkad.cluster.replica import Replica

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from pykafkad.clock import Clock
    from pykafkad.cluster.replica import Tail
    from pykafkad.pure.fetch_session import Session
    from pykafkad.storage.files import TopicPartition
    from pykafkad.storage.log.log import Log


def no_controller(replica: Replica, isr: frozenset[int]) -> None:
    """A node alone has no follower, so no ISR of it changes."""


def everybody(broker_id: int, broker_epoch: int) -> bool:
    """The controller does not look at epochs, or there is no other broker."""
    return True


def no_promises(replica: Replica) -> None:
    """Nobody was promised anything."""


class Replicas:
    def __init__(
        self,
        config: Any,
        clock: Clock,
        advanced: Callable[[Replica | Tail | Session], None],
        alter_isr: Callable[[Replica, frozenset[int]], None] = no_controller,
        resigned: Callable[[Replica], None] = no_promises,
    ) -> None:
        """`advanced`: the high watermark, the leader or the fate of a replica changed for which somebody waits.
        `alter_isr` asks the controller for another ISR. `resigned`: another node leads, and may cut off what this one
        has appended."""
        self.node_id: int = config["node.id"]
        self.max_lag_ms: int = config["replica.lag.time.max.ms"]
        self.now_ms = clock.monotonic_ms
        self.advanced = advanced
        self.alter_isr = alter_isr
        self.resigned = resigned
        self.may_be_in_sync: Callable[[int, int], bool] = everybody
        self.table: dict[tuple[str, int], Replica] = {}
        # By (topic, index): None when it is not here, or its log directory is offline.
        self.get = self.table.get

    def listener_of(self, log: Log) -> Replica:
        return Replica(log, self)

    def added(self, key: TopicPartition, log: Log) -> None:
        """`key`: the storage's own, so that there is one of it."""
        self.table[key] = of(log)

    def removed(self, log: Log) -> None:
        del self.table[log.topic, log.index]
        of(log).removed()


def of(log: Log) -> Replica:
    replica = log.listener
    assert isinstance(replica, Replica)
    return replica
