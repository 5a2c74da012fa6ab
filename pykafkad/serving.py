"""A broker as its handlers and the dispatcher see it, without the sockets, threads and signals of server.Broker.

Owns the parts that a request may need (handlers/broker.py lists them) and the shape of a pass of the loop: frames were
handled and queued appends; at its end the appends are written, waiting fetches are asked, and only then the answers are
encoded. Whoever makes one gives it a loop for timers, and `submit` for work in threads; tests give it their own.
Invariant: no answer leaves before what it promises is written.
"""

from __future__ import annotations

import os
from functools import partial
from types import MethodType

from pykafkad.cluster.replicas import Replicas
from pykafkad.context import ConnectionState
from pykafkad.coordinator.runtime.loop import CoordinatorLoop
from pykafkad.handlers import APIS
from pykafkad.logs import logger
from pykafkad.periodic import Periodic
from pykafkad.promises import Promises
from pykafkad.pure.fetch_session import FetchSessions
from pykafkad.quiet import Quiet
from pykafkad.slices import Slices
from pykafkad.waiting import Waiting

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from typing import Any, Protocol

    from pykafkad.clock import Clock
    from pykafkad.cluster.acls import Acls
    from pykafkad.cluster.client_quotas import ClientQuotas
    from pykafkad.cluster.config_changes import ConfigChanges
    from pykafkad.cluster.controller import RunningController
    from pykafkad.cluster.image import Image
    from pykafkad.cluster.markers import Markers
    from pykafkad.cluster.replica import Replica, Tail
    from pykafkad.cluster.zookeeper.parts import Cluster
    from pykafkad.cluster.zookeeper.remote_coordinator import RemoteCoordinator
    from pykafkad.cluster.zookeeper.remote_markers import ClusterMarkers
    from pykafkad.config import BrokerConfig
    from pykafkad.coordinator.groups import GroupCoordinator
    from pykafkad.coordinator.transactions import TransactionCoordinator
    from pykafkad.dispatcher import Dispatcher
    from pykafkad.pure.authorization import Authorizer
    from pykafkad.pure.fetch_session import Session
    from pykafkad.pure.telemetry import Telemetry
    from pykafkad.storage.manager import LogManager
    from pykafkad.unfolding import Unfolding
    from pykafkad.waiting import Attempt
    from pykafkad.workers import Submit

    class Loop(Protocol):
        def call_later(self, delay_ms: int, callback: Callable[..., Any], *arguments: Any) -> Any: ...
        def call_soon(self, callback: Callable[..., Any], *arguments: Any) -> Any: ...
        def call_between(self, callback: Callable[..., Any], *arguments: Any) -> Any: ...
        def send_answers(self) -> None: ...


log = logger("server")


class ServingBroker:
    # None: everybody may do everything.
    authorizer: Authorizer | None = None
    acls: Acls | None = None  # what it decides by
    apis = APIS
    pass_ms = 0  # the wall clock as the pass has read it; 0: not yet
    # What a start makes when it has read what is there:
    storage: LogManager
    cluster_id: str
    image: Image
    controller: RunningController
    group_coordinator: GroupCoordinator
    transaction_coordinator: TransactionCoordinator
    look_up: Callable[..., None]

    def __init__(
        self, config: BrokerConfig, clock: Clock, dispatcher: Dispatcher, loop: Loop, submit: Submit
    ) -> None:
        # None: a single node, which has its own metadata log. Asked for each fetch, so it is the instance's.
        self.cluster: Cluster | None = None
        self.config = config
        self.clock = clock
        self.node_id = config.node_id
        self.dispatcher = dispatcher
        self.submit = self.submit_large = submit
        self._call_later = loop.call_later
        self.quiet = Quiet(clock.monotonic_ms, loop.call_later)
        self.slices = Slices(loop.call_between, clock)
        self.waiting = Waiting(loop.call_later, loop.send_answers)
        self.promises = Promises(loop.call_later)
        self._at_pass_end: list[Callable[[], None]] = []
        self.replicas = Replicas(config, clock, self.waiting.advanced, resigned=self.promises.fail)
        self.coordinator_loop = CoordinatorLoop(
            clock, loop.call_later, loop.call_soon, submit, self.slices.run, self.promises
        )
        self.fetch_sessions = FetchSessions(
            config["max.incremental.fetch.session.cache.slots"], random_session_id
        )
        self._client_quotas: ClientQuotas | None = None
        self._config_changes: ConfigChanges | None = None
        self._markers: Markers | None = None
        self._cluster_markers: ClusterMarkers | None = None
        self._remote_coordinator: RemoteCoordinator | None = None
        self._telemetry: Telemetry | None = None
        self._unfolding: Unfolding | None = None

    def begin_jobs(self, submit_cleaning: Submit) -> Periodic:
        """What is done again and again as time passes."""
        periodic = Periodic(self._call_later, self.clock)
        coordinators = (*self.group_coordinator.jobs, *self.transaction_coordinator.jobs)
        for interval_ms, job in (*self.storage.jobs, *coordinators, *self.controller.jobs):
            periodic.every(interval_ms, job)
        for interval_ms, job in self.storage.later_jobs:
            periodic.every(interval_ms, job, first_ms=self.config["log.initial.task.delay.ms"])
        self.storage.compaction.begin(self._call_later, submit_cleaning)
        return periodic

    # -- made for those who ask for it: a start has no use of it

    @property
    def config_changes(self) -> ConfigChanges:
        """Made when somebody changes a config: a start has no use of it."""
        if self._config_changes is None:
            from pykafkad.cluster.config_changes import ConfigChanges

            self._config_changes = ConfigChanges(self.config, self.controller, self.slices.run)
        return self._config_changes

    @property
    def client_quotas(self) -> ClientQuotas:
        """Made when somebody changes one."""
        if self._client_quotas is None:
            from pykafkad.cluster.client_quotas import ClientQuotas

            self._client_quotas = ClientQuotas(self.controller, self.look_up, self.slices.run)
        return self._client_quotas

    @property
    def unfolding(self) -> Unfolding:
        """Made with the first batch that is unfolded in slices."""
        if self._unfolding is None:
            from pykafkad.unfolding import Unfolding

            self._unfolding = Unfolding()
        return self._unfolding

    @property
    def telemetry(self) -> Telemetry:
        """Made when a client asks for what it is subscribed to: most never do."""
        if self._telemetry is None:
            from pykafkad.cluster.telemetry import from_image

            self._telemetry = from_image(self.config, self.image)
        return self._telemetry

    @property
    def markers(self) -> Markers:
        """Made when the first transaction ends."""
        if self._markers is None:
            from pykafkad.cluster.markers import Markers

            self._markers = Markers(
                self.image,
                self.replicas,
                self.group_coordinator,
                self.coordinator_loop,
                self.waiting,
                self.config["request.timeout.ms"],
            )
        return self._markers

    # -- transactions

    @property
    def ending_markers(self) -> Markers | ClusterMarkers:
        """What our own coordinator asks: in a cluster other brokers lead partitions, too."""
        if self.cluster is None:
            return self.markers
        if self._cluster_markers is None:
            from pykafkad.cluster.zookeeper.remote_markers import ClusterMarkers

            self._cluster_markers = ClusterMarkers(
                self.node_id, self.image, lambda: self.markers, self.cluster.peers, self.coordinator_loop
            )
        return self._cluster_markers

    @property
    def takes_part(self) -> TransactionCoordinator | RemoteCoordinator:
        """Who knows which partitions take part in a transaction: in a cluster the coordinator may be another broker."""
        if self.cluster is None:
            return self.transaction_coordinator
        if self._remote_coordinator is None:
            from pykafkad.cluster.zookeeper.remote_coordinator import RemoteCoordinator

            self._remote_coordinator = RemoteCoordinator(
                self.node_id, self.image, self.transaction_coordinator, self.cluster.peers
            )
        return self._remote_coordinator

    # -- a pass

    def read_pass_ms(self) -> int:
        """One look at the clock serves all appends of a pass."""
        self.pass_ms = self.clock.now_ms()
        return self.pass_ms

    def _on_pass_end(self) -> None:
        self.pass_ms = 0
        promises = self.promises
        coordinators = self.coordinator_loop
        if coordinators.uncommitted:
            coordinators.append_pending()
        if self.storage.dirty:
            failures = self.storage.commit()
            if failures:
                promises.refuse({id(log) for log, _ in failures})
                for partition, error in failures:
                    if self.quiet.allows(log, "appends that failed", partition.name):
                        log.error(f"append to {partition.name} failed: {error}")
        if coordinators.uncommitted:
            coordinators.commit()
        promises.settle()
        if self.waiting.woken:
            self.waiting.ask_woken()
        if self._at_pass_end:
            left, self._at_pass_end = self._at_pass_end, []
            for callback in left:
                callback()

    def when_written(self, callback: Callable[[], None]) -> None:
        """Call this at the end of the pass under way, when what was appended in it is written."""
        self._at_pass_end.append(callback)

    # -- requests that wait

    def wait(
        self,
        connection: Any,
        partitions: Iterable[Replica | Tail | Session],
        max_wait_ms: int,
        attempt: Attempt,
        moved: Iterable[Replica | Tail | Session] = (),
        *,
        is_follower: bool = False,
    ) -> None:
        """Ask `attempt` when a partition advances or the time is up, unless the connection closes first."""
        failed = partial(self._wait_failed, connection)
        waiter = self.waiting.wait(partitions, max_wait_ms, attempt, failed, moved)
        waiter.request = attempt.__self__ if isinstance(attempt, MethodType) else None
        waiter.is_follower = is_follower
        waiter.owner = self.state_of(connection).own_waiters()
        waiter.owner.add(waiter)

    @staticmethod
    def _wait_failed(connection: Any, error: Exception) -> None:
        log.exception("a waiting request failed; its connection is closed", error)
        connection.close("a waiting request failed")

    def forget_waiters(self, connection: Any) -> None:
        state = connection.state
        if state is not None and state.waiters:
            for waiter in list(state.waiters):
                self.waiting.cancel(waiter)

    def state_of(self, connection: Any) -> ConnectionState:
        state = connection.state
        if state is None:
            state = connection.state = ConnectionState()
        assert isinstance(state, ConnectionState)
        return state


def random_session_id() -> int:
    return int.from_bytes(os.urandom(4)) & 0x7FFFFFFF
