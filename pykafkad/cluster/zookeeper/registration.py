"""This broker's znode under /brokers/ids, and the id of the cluster.

The znode is ephemeral: whoever sees it go thinks the broker dead. Its czxid is the broker epoch. It is made with null
data and then written, in one transaction, as Kafka does. Where the session expires it is made anew in the next one,
with a new epoch, and `on_registered` is told. A node that is there already may be ours: of this session, by a try whose
answer was lost, or of one before, which ZooKeeper has not ended yet; then it is replaced. Else the id is another's, or
was that of a process of ours that was killed, whose session is not over: its end is waited for, for as long as the
caller has patience. (Kafka's brokers end at once, and have to be started again.)
"""

from __future__ import annotations

from pykafkad.cluster.turns import Turns, tell
from pykafkad.cluster.zookeeper.asking import Asking, expect, settled
from pykafkad.logs import logger
from pykafkad.slices import Wait
from pykafkad.zookeeper.client import (
    BAD_VERSION,
    NO_NODE,
    NODE_EXISTS,
    OK,
    SESSION_EXPIRED,
    Create,
    Delete,
    Exists,
    GetData,
    Multi,
    SetData,
    State,
)
from pykafkad.zookeeper.znodes import (
    CLUSTER_ID,
    Endpoint,
    Registration,
    broker,
    read_cluster_id,
    write_cluster_id,
    write_registration,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any

    from pykafkad import config_listeners
    from pykafkad.cluster.controller import Told
    from pykafkad.slices import Run, Work
    from pykafkad.zookeeper.client import ZooKeeper

log = logger("zookeeper")


class BrokerRegistration:
    """`now_ms`: the wall clock. `version`: of the znode's JSON (4 below inter.broker.protocol.version 2.7)."""

    def __init__(
        self, zookeeper: ZooKeeper, broker_id: int, run: Run, now_ms: Callable[[], int], version: int = 5
    ) -> None:
        self.broker_epoch = -1
        self.on_registered: Callable[[], None] = nothing  # told of every new epoch
        self._zookeeper = zookeeper
        self._asking = Asking(zookeeper)
        self._path = broker(broker_id)
        self._broker_id = broker_id
        self._now_ms = now_ms
        self._version = version
        self._wanted: Registration | None = None
        self._sessions: set[int] = set()  # ours, in which the node was made
        self._line = Turns(run)
        self._waiting: Wait | None = None  # for another's node to go
        zookeeper.on_state(self._on_state)
        zookeeper.on_watch(self._on_watch)

    def register(self, endpoints: Sequence[config_listeners.Endpoint], rack: str | None, done: Told) -> None:
        """As soon as nobody else is registered by this id."""
        self._wanted = Registration(
            [Endpoint(each.name, each.host, each.port, each.protocol) for each in endpoints],
            rack,
            version=self._version,
        )
        self._line.run(self._register(), lambda result: tell(done, settled(result)))

    def close(self, done: Callable[[], None]) -> None:
        """End the session: the znode goes with it."""
        self._wanted = None
        self._look_again()
        self._zookeeper.close()
        done()

    def _on_state(self, state: State) -> None:
        self._look_again()
        if state is State.NEW_SESSION and self._wanted is not None and self.broker_epoch >= 0:
            self._line.run(self._register(), self._registered_anew)

    def _on_watch(self, path: str) -> None:
        if path == self._path:
            self._look_again()

    def _look_again(self) -> None:
        waiting, self._waiting = self._waiting, None
        if waiting is not None:
            waiting.come()

    def _registered_anew(self, result: Any) -> None:
        error = settled(result)
        if error is not None:
            log.error(f"broker {self._broker_id} is not registered any more: {error}")

    def _register(self) -> Work:
        while self._wanted is not None:
            data = write_registration(self._wanted._replace(timestamp_ms=self._now_ms()))
            made = Multi([Create(self._path, None, ephemeral=True), SetData(self._path, data, 0)])
            (result,) = yield from self._asking.ask(made)
            if expect(result, NODE_EXISTS, SESSION_EXPIRED, path=self._path).error == OK:
                self._registered(result.results[1].czxid)
                return
            if result.error == SESSION_EXPIRED:
                continue  # in the next one
            czxid = yield from self._look_at_other()
            if czxid is not None:
                self._registered(czxid)
                return

    def _registered(self, epoch: int) -> None:
        self._sessions.add(self._zookeeper.session_id)
        if epoch == self.broker_epoch:
            return
        self.broker_epoch = epoch
        log.info(f"broker {self._broker_id} is registered, epoch {epoch}")
        self.on_registered()

    def _look_at_other(self) -> Work:
        """The czxid of the node, where it is of this session; None: it is gone now."""
        wait = self._waiting = Wait()
        (found,) = yield from self._asking.ask(Exists(self._path, watch=True))
        if expect(found, NO_NODE, SESSION_EXPIRED, path=self._path).error:
            return None
        if found.owner == self._zookeeper.session_id:
            return found.czxid
        if found.owner in self._sessions:
            (deleted,) = yield from self._asking.ask(Delete(self._path, found.version))
            expect(deleted, NO_NODE, BAD_VERSION, SESSION_EXPIRED, path=self._path)
            return None
        whose = f"session 0x{found.owner:x}"
        log.warn(
            f"broker id {self._broker_id} is another's, or was ours until a moment ago: waiting for the end of {whose}"
        )
        yield from wait.result()
        return None


def cluster_id(asking: Asking, proposed: str) -> Work:
    """The id of the cluster; where there is none yet, it is the proposed one."""
    result = yield from asking.create(CLUSTER_ID, write_cluster_id(proposed))
    if result.error == OK:
        return proposed
    (found,) = yield from asking.ask(GetData(CLUSTER_ID))
    return read_cluster_id(expect(found, path=CLUSTER_ID).data)


def nothing() -> None:
    """Nobody wants to know."""
