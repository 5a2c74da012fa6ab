"""What the broker tells its replication (parts.Replication): whom to follow, who leads, who is the controller.

Owns which connection a partition is fetched through: num.replica.fetchers of them to each leader, among which its
partitions are spread by their names as in Kafka. A connection without partitions is closed. Invariant: a partition is
fetched through one connection, that to the leader that was told last.
"""

from __future__ import annotations

from functools import partial
from typing import cast

from pykafkad.errors import StartupError
from pykafkad.pure.java import as_int, hash_code
from pykafkad.replication.fetching import LeaderConnection, Parts
from pykafkad.replication.isr import IsrChanges
from pykafkad.replication.quotas import FOLLOWER, LEADER, ReplicationQuota
from pykafkad.replication.requests import Asking, Versions

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, Protocol

    from pykafkad.clock import Clock
    from pykafkad.cluster.image import Image
    from pykafkad.cluster.replica import Replica
    from pykafkad.cluster.replicas import Replicas
    from pykafkad.net.peers import Connections
    from pykafkad.quiet import Quiet
    from pykafkad.replication.fetching import Loop
    from pykafkad.replication.isr_znodes import IsrZnodes

    class Serving(Protocol):
        """What it is given of the broker."""

        node_id: int
        config: Any
        clock: Clock
        image: Image
        quiet: Quiet
        replicas: Replicas

        def when_written(self, callback: Callable[[], None]) -> None: ...

    class Surroundings(Protocol):
        """What it is given of the cluster (parts.Cluster)."""

        @property
        def broker_epoch(self) -> int: ...
        @property
        def controller_id(self) -> int: ...


LEADERS_ALONE = (None, "", "org.apache.kafka.common.replica.LeaderSelector")
BY_RACK = "org.apache.kafka.common.replica.RackAwareReplicaSelector"

Place = tuple[int, int]  # leader, number of the connection
NOWHERE = (-1, -1)
LOOK_MS = 2_500  # at whether the controller is to be told of ISRs that were written here


class Replication:
    def __init__(
        self,
        broker: Serving,
        loop: Loop,
        connections: Connections,
        cluster: Surroundings,
        versions: Versions,
        controllers: Connections | None = None,
    ) -> None:
        """Takes over `broker.replicas.alter_isr`. `versions`: see requests.versions_for. `controllers`: where they are
        no brokers, and look at the epochs of those in an ISR."""
        config, clock = broker.config, broker.clock
        self._config, self._replicas = config, broker.replicas
        self.selects_by_rack = selects_by_rack(config["replica.selector.class"])
        self.leader_quota = ReplicationQuota(LEADER, config, clock, broker.image)
        self._parts = Parts(
            node_id=broker.node_id,
            config=config,
            clock=clock,
            loop=loop,
            connections=connections,
            quiet=broker.quiet,
            asking=Asking(config, versions, broker.node_id),
            quota=ReplicationQuota(FOLLOWER, config, clock, broker.image),
            truncates_on_fetch=versions.truncates_on_fetch,
            broker_epoch=lambda: cluster.broker_epoch,
            when_written=broker.when_written,
        )
        self._isr: IsrChanges | IsrZnodes
        self._telling: list[tuple[int, Callable[[], None]]] = []
        if versions.alter_partition:
            self._isr = IsrChanges(
                broker.node_id,
                loop,
                controllers or connections,
                broker.quiet,
                lambda: cluster.controller_id,
                lambda: cluster.broker_epoch,
                tells_epochs=controllers is not None,
            )
        else:
            self._isr = znodes = self._own_writer(broker, loop, cluster)
            self._telling.append((LOOK_MS, znodes.tell))
        self._connections: dict[Place, LeaderConnection] = {}
        self._places: dict[Replica, Place] = {}
        self._fetchers: int = config["num.replica.fetchers"]
        self.alter_isr = broker.replicas.alter_isr = self._isr.alter

    @staticmethod
    def _own_writer(broker: Serving, loop: Loop, cluster: Surroundings) -> IsrZnodes:
        """Below 2.7-IV2 there is no AlterPartition."""
        from pykafkad.replication.isr_znodes import IsrZnodes

        return IsrZnodes(
            broker.node_id, loop, lambda: cast("Any", cluster).zookeeper, broker.clock.monotonic_ms
        )

    # -- following

    def follow(self, replica: Replica, leader_id: int, leader_epoch: int) -> None:
        """Fetch from that broker in that epoch, instead of whom it followed before."""
        place = leader_id, self._number_of(replica)
        if self._places.get(replica, place) != place:
            self.stop(replica)
        connection = self._connections.get(place)
        if connection is None:
            emptied = partial(self._emptied, place)
            connection = self._connections[place] = LeaderConnection(self._parts, *place, emptied)
        self._places[replica] = place
        connection.follow(replica, leader_epoch)

    def stop(self, replica: Replica) -> None:
        """Nothing more is fetched for it: it leads, is stopped or gone."""
        connection = self._connections.get(self._places.pop(replica, NOWHERE))
        if connection is not None:
            connection.stop((replica.topic, replica.index))

    def _number_of(self, replica: Replica) -> int:
        """As in Kafka, whose hash may be negative."""
        code = as_int(31 * hash_code(replica.topic) + replica.index & 0xFFFFFFFF)
        return (0 if code == -(1 << 31) else abs(code)) % self._fetchers

    def _emptied(self, place: Place) -> None:
        self._connections.pop(place).close()

    def _spread(self) -> None:
        """num.replica.fetchers may be another one (a dynamic config): partitions move to their new connections."""
        if self._config["num.replica.fetchers"] == self._fetchers:
            return
        self._fetchers = self._config["num.replica.fetchers"]
        for replica, (leader_id, number) in list(self._places.items()):
            if self._number_of(replica) != number:
                self.follow(replica, leader_id, replica.leader_epoch)

    # -- leading

    def controller_changed(self) -> None:
        self._isr.controller_changed()

    @property
    def jobs(self) -> list[tuple[int, Callable[[], None]]]:
        return [(max(1, self._config["replica.lag.time.max.ms"] // 2), self._look_after), *self._telling]

    def _look_after(self) -> None:
        self._spread()
        for replica in list(self._replicas.table.values()):
            replica.check_isr()
        for connection in self._connections.values():
            connection.fetcher.touch_all()  # logs may start elsewhere since retention ran

    def close(self) -> None:
        self._isr.close()
        for connection in self._connections.values():
            connection.close()
        self._connections.clear()
        self._places.clear()


def selects_by_rack(name: str | None) -> bool:
    if name not in (*LEADERS_ALONE, BY_RACK):
        raise StartupError(
            f"replica.selector.class {name} is not known here: {BY_RACK} is, and no class at all"
        )
    return name == BY_RACK
