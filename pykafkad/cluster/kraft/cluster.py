"""`broker.cluster` beside controllers of Apache Kafka: the parts put together, and what they ask of each other."""

from __future__ import annotations

from pykafkad.cluster.kraft.assignments import Assignments
from pykafkad.cluster.kraft.controllers import Controllers
from pykafkad.cluster.kraft.creating import Creating
from pykafkad.cluster.kraft.forwarding import Forwarding
from pykafkad.cluster.kraft.observing import Observing
from pykafkad.cluster.kraft.presence import Presence
from pykafkad.cluster.zookeeper.parts import Address
from pykafkad.cluster.zookeeper.producer_ids import ProducerIds
from pykafkad.pure.kraft.lifecycle import Lifecycle
from pykafkad.pure.kraft.observer import Observer

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from pykafkad.cluster.delta import Delta
    from pykafkad.cluster.kraft.metadata_copy import MetadataCopy
    from pykafkad.cluster.zookeeper.isolation import Isolation
    from pykafkad.errors import KafkaError
    from pykafkad.net.peers import Peers
    from pykafkad.replication.replication import Replication
    from pykafkad.serving import Loop, ServingBroker


class KraftCluster:
    # What a start makes, in this order:
    isolation: Isolation
    peers: Peers
    replication: Replication

    def __init__(
        self,
        broker: ServingBroker,
        loop: Loop,
        controllers: Controllers,
        copy: MetadataCopy,
        failed: Callable[[str], None],
    ) -> None:
        config, clock = broker.config, broker.clock
        self.controllers, self.copy = controllers, copy
        self._image, self._node_id, self._storage = copy.image, broker.node_id, broker.storage
        self._listener = config.inter_broker_listener
        session_ms = config["broker.session.timeout.ms"]
        machine = Observer(
            controllers.configured, copy.epoch, -1, config["controller.quorum.retry.backoff.ms"]
        )
        self.observing = Observing(
            copy,
            machine,
            controllers,
            config,
            clock,
            loop,
            broker.slices.run,
            broker.submit,
            broker.quiet,
            failed,
        )
        self.presence = Presence(
            Lifecycle(config["broker.heartbeat.interval.ms"], session_ms),
            controllers,
            clock,
            loop,
            broker.quiet,
            session_ms,
            lambda: copy.applied_offset - 1,
            self._cordoned,
        )
        self.creating = Creating(self._node_id, self._image, controllers, loop.call_later)
        self.forwarding = Forwarding(self._node_id, controllers)
        self.assignments = Assignments(
            self._node_id,
            self._image,
            broker.storage,
            controllers,
            lambda: self.broker_epoch,
            loop.call_later,
        )
        self.producer_ids = ProducerIds(self._node_id, self, controllers.peers, loop.call_later, broker.quiet)
        self.observing.on_applied.append(self.creating.look)
        self.observing.on_leader = self._leader_changed

    @property
    def broker_epoch(self) -> int:
        return self.presence.machine.broker_epoch

    @property
    def controller_id(self) -> int:
        return self.controllers.active

    def address_of(self, broker_id: int) -> Address | None:
        """Of a broker on the listener between brokers; None: no such broker is registered, or not with that listener."""
        broker = self._image.brokers.get(broker_id)
        endpoint = broker.endpoints.get(self._listener) if broker is not None else None
        return Address(endpoint.host, endpoint.port) if endpoint is not None else None

    def may_be_in_sync(self, broker_id: int, broker_epoch: int) -> bool:
        """Whether the controller would take a replica into an ISR: of a broker that serves, in the registration that it
        fetched in (KIP-903)."""
        broker = self._image.brokers.get(broker_id)
        if broker is None or broker.fenced or broker.in_controlled_shutdown:
            return False
        return broker_epoch in (-1, broker.epoch)

    def take_producer_id(self, done: Callable[[int | KafkaError], None]) -> None:
        self.producer_ids.take(done)

    def _leader_changed(self) -> None:
        if hasattr(self, "replication"):
            self.replication.controller_changed()
        self.presence.controller_changed()

    def publish(self, delta: Delta) -> None:
        """Whether the metadata still has this broker as it registered."""
        if self._node_id not in delta.brokers or delta.is_whole:
            return
        ours = self._image.brokers.get(self._node_id)
        if ours is None:
            self.presence.machine.registered_by_another()
            self.presence.look()

    def load_ended(self) -> None:
        """The logs are there: where they are may be told."""
        self.assignments.begin()
        self._storage.moves.resume()

    def tell_of_failed_directories(self) -> None:
        failed = [each.directory_id for each in self._storage.directories if not each.is_online]
        self.presence.directories_failed(failed)

    def _cordoned(self) -> list[bytes]:
        storage = self._storage
        return [each.directory_id for each in storage.online if storage.is_cordoned(each)]

    def stop(self) -> None:
        self.producer_ids.close()
        self.presence.close()
        self.observing.close()
        if hasattr(self, "replication"):
            self.replication.close()
            self.peers.close()
        self.controllers.close()
        self.copy.close(clean=True)
