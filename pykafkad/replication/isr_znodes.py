"""Below inter.broker.protocol.version 2.7-IV2 a leader writes another ISR into its partition's znode itself, and tells
the controller some seconds later which ones it wrote, all in one node under /isr_change_notification.

The state is read first: what the controller keeps there besides stays, and a write of our own whose answer was lost is
known again. Where another leader or epoch stands there, the change stays asked for until the controller tells of it.
"""

from __future__ import annotations

from functools import partial

from pykafkad.logs import logger
from pykafkad.zookeeper import znodes
from pykafkad.zookeeper.client import BAD_VERSION, NO_NODE, OK, Create, GetData, Result, SetData
from pykafkad.zookeeper.znodes import PartitionState

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from pykafkad.cluster.replica import Replica
    from pykafkad.pure.replication import Leadership
    from pykafkad.replication.fetching import Loop
    from pykafkad.zookeeper.client import ZooKeeper

AGAIN_MS = 1_000  # after ZooKeeper could not be asked
QUIET_MS = 5_000  # the controller is told when nothing has changed for so long,
LATEST_MS = 60_000  # or when it was told last so long ago

log = logger("replication")


class IsrZnodes:
    def __init__(
        self, node_id: int, loop: Loop, zookeeper: Callable[[], ZooKeeper], now_ms: Callable[[], int]
    ) -> None:
        self._node_id, self._loop, self._zookeeper, self._now_ms = node_id, loop, zookeeper, now_ms
        self._busy: set[Leadership] = set()
        self._changed: dict[tuple[str, int], None] = {}  # of which the controller has not been told
        self._changed_ms = self._told_ms = now_ms()
        self._closed = False

    def alter(self, replica: Replica, isr: frozenset[int]) -> None:
        leadership = replica.leadership
        if leadership is not None and leadership not in self._busy:
            self._busy.add(leadership)
            self._read(replica, leadership)

    def controller_changed(self) -> None:
        """ZooKeeper is asked, whoever that is."""

    def close(self) -> None:
        self._closed = True

    # -- one partition

    def _read(self, replica: Replica, leadership: Leadership) -> None:
        if self._closed or replica.leadership is not leadership or leadership.asked_for is None:
            self._busy.discard(leadership)
            return
        path = znodes.state(replica.topic, replica.index)
        self._zookeeper().submit([GetData(path)], partial(self._was_read, replica, leadership))

    def _was_read(self, replica: Replica, leadership: Leadership, results: list[Result]) -> None:
        (result,) = results
        if result.error == NO_NODE:
            self._busy.discard(leadership)  # the topic is being deleted
            return
        if result.error != OK:
            self._loop.call_later(AGAIN_MS, self._read, replica, leadership)
            return
        state, wanted = znodes.read_state(result.data), leadership.asked_for
        is_ours = (state.leader, state.leader_epoch) == (self._node_id, leadership.epoch)
        if wanted is not None and is_ours and frozenset(state.isr) == wanted:
            self._is_so(replica, leadership, state.isr, result.version)
        elif wanted is None or not is_ours or result.version != leadership.partition_epoch:
            log.info(f"{replica.name}: the controller has another state, and will tell of it")
            self._busy.discard(leadership)
        else:
            isr = [each for each in state.isr if each in wanted]
            isr += sorted(wanted.difference(isr))
            self._write(replica, leadership, state._replace(isr=isr, leader_recovery_state=0), result.version)

    def _write(self, replica: Replica, leadership: Leadership, state: PartitionState, version: int) -> None:
        path = znodes.state(replica.topic, replica.index)

        def written(results: list[Result]) -> None:
            (result,) = results
            if result.error == OK:
                self._is_so(replica, leadership, state.isr, result.version)
            elif result.error == BAD_VERSION:
                self._read(replica, leadership)  # it may be our own first try
            else:
                self._loop.call_later(AGAIN_MS, self._read, replica, leadership)

        self._zookeeper().submit([SetData(path, znodes.write_state(state), version)], written)

    def _is_so(self, replica: Replica, leadership: Leadership, isr: Sequence[int], version: int) -> None:
        self._busy.discard(leadership)
        self._changed[replica.topic, replica.index] = None
        self._changed_ms = self._now_ms()
        if replica.leadership is leadership:
            replica.isr_confirmed(leadership.epoch, isr, version)

    # -- the controller is told

    def tell(self) -> None:
        """Asked every few seconds."""
        now_ms = self._now_ms()
        is_time = now_ms - self._changed_ms >= QUIET_MS or now_ms - self._told_ms >= LATEST_MS
        if not self._changed or not is_time:
            return
        changed, self._changed, self._told_ms = self._changed, {}, now_ms

        def told(results: list[Result]) -> None:
            if results[0].error != OK and not self._closed:
                self._changed = {**changed, **self._changed}

        op = Create(znodes.isr_change(), znodes.write_isr_change(changed), sequential=True)
        self._zookeeper().submit([op], told)
