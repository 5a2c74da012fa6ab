"""The parts of the broker that handlers may use, and that a test must provide. The broker itself is server.Broker."""

from __future__ import annotations

from typing import Protocol

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any

    from pykafkad.clock import Clock
    from pykafkad.cluster.acls import Acls
    from pykafkad.cluster.client_quotas import ClientQuotas
    from pykafkad.cluster.config_changes import ConfigChanges
    from pykafkad.cluster.controller import Controller
    from pykafkad.cluster.image import Image
    from pykafkad.cluster.markers import Markers
    from pykafkad.cluster.replica import Replica, Tail
    from pykafkad.cluster.replicas import Replicas
    from pykafkad.cluster.zookeeper.parts import Cluster
    from pykafkad.cluster.zookeeper.remote_coordinator import RemoteCoordinator
    from pykafkad.config import BrokerConfig
    from pykafkad.context import ConnectionState, Context
    from pykafkad.coordinator.groups import GroupCoordinator
    from pykafkad.coordinator.runtime.loop import CoordinatorLoop
    from pykafkad.coordinator.transactions import TransactionCoordinator
    from pykafkad.handlers import Api
    from pykafkad.promises import Promises
    from pykafkad.pure.authorization import Authorizer
    from pykafkad.pure.fetch_session import FetchSessions, Session
    from pykafkad.pure.telemetry import Telemetry
    from pykafkad.quiet import Quiet
    from pykafkad.slices import Slices
    from pykafkad.storage.manager import LogManager
    from pykafkad.unfolding import Unfolding
    from pykafkad.waiting import Attempt


class Answers(Protocol):
    """Sends answers that were deferred."""

    def give(self, context: Context, response: Any) -> None: ...


class Broker(Protocol):
    config: BrokerConfig
    clock: Clock
    node_id: int
    image: Image
    group_coordinator: GroupCoordinator
    transaction_coordinator: TransactionCoordinator
    coordinator_loop: CoordinatorLoop
    storage: LogManager
    replicas: Replicas
    fetch_sessions: FetchSessions
    slices: Slices
    quiet: Quiet
    promises: Promises
    pass_ms: int
    apis: dict[int, Api]
    authorizer: Authorizer | None  # None: everything is allowed
    cluster: Cluster | None  # None: a single node
    acls: Acls | None  # None: there is no authorizer

    @property
    def controller(self) -> Controller: ...
    @property
    def cluster_id(self) -> str: ...
    @property
    def dispatcher(self) -> Answers: ...
    @property
    def config_changes(self) -> ConfigChanges: ...
    @property
    def client_quotas(self) -> ClientQuotas: ...
    @property
    def telemetry(self) -> Telemetry: ...
    @property
    def unfolding(self) -> Unfolding: ...
    @property
    def markers(self) -> Markers: ...
    @property
    def takes_part(self) -> TransactionCoordinator | RemoteCoordinator: ...
    def read_pass_ms(self) -> int: ...
    def state_of(self, connection: Any) -> ConnectionState: ...
    def wait(
        self,
        connection: Any,
        partitions: Iterable[Replica | Tail | Session],
        max_wait_ms: int,
        attempt: Attempt,
        moved: Iterable[Replica | Tail | Session] = ...,
        *,
        is_follower: bool = ...,
    ) -> None: ...
