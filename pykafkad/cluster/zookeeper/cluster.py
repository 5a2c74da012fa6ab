"""`broker.cluster`: the parts of a broker in a cluster, put together.

Owns what they ask of each other, and the order in which they end: nothing is fetched any more, the controller resigns,
and the session goes last, when the logs are closed.
"""

from __future__ import annotations

from pykafkad.cluster.image import TOPIC_RESOURCE
from pykafkad.cluster.zookeeper.parts import Address
from pykafkad.logs import logger
from pykafkad.pure.controller.events import UncleanElectionEnabled
from pykafkad.zookeeper import znodes
from pykafkad.zookeeper.client import Create

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from pykafkad.cluster.delta import Delta
    from pykafkad.cluster.image import Image
    from pykafkad.cluster.zookeeper.control import Control
    from pykafkad.cluster.zookeeper.isolation import Isolation
    from pykafkad.cluster.zookeeper.parts import Changes, Controlling, Registration, Replication
    from pykafkad.cluster.zookeeper.producer_ids import ProducerIds
    from pykafkad.errors import KafkaError
    from pykafkad.net.peers import Peers
    from pykafkad.zookeeper.client import ZooKeeper

UNCLEAN = "unclean.leader.election.enable"  # of topics, and of the broker: the same name

log = logger("controller")


class Cluster:
    # What a start makes, in this order:
    registration: Registration
    changes: Changes
    replication: Replication
    producer_ids: ProducerIds
    control: Control
    controlling: Controlling

    peers: Peers

    def __init__(
        self, zookeeper: ZooKeeper, isolation: Isolation, image: Image, node_id: int, listener: str
    ) -> None:
        """`listener`: on which the brokers reach each other."""
        self.zookeeper = zookeeper
        self.isolation = isolation
        self._image = image
        self._node_id = node_id
        self._listener = listener

    @property
    def broker_epoch(self) -> int:
        return self.registration.broker_epoch

    @property
    def controller_id(self) -> int:
        return self.control.controller_id

    def address_of(self, broker_id: int) -> Address | None:
        broker = self._image.brokers.get(broker_id)
        endpoint = broker.endpoints.get(self._listener) if broker is not None else None
        return Address(endpoint.host, endpoint.port) if endpoint is not None else None

    def take_producer_id(self, done: Callable[[int | KafkaError], None]) -> None:
        self.producer_ids.take(done)

    def controller_changed(self) -> None:
        self.replication.controller_changed()

    def publish(self, delta: Delta) -> None:
        """To the controller, if it is here: where unclean elections are allowed now, there may be somebody to elect."""
        if not self.controlling.is_active:
            return
        for (kind, name), values in delta.configs.items():
            if kind == TOPIC_RESOURCE and is_true(values.get(UNCLEAN)):
                self.controlling.tell(UncleanElectionEnabled(name))
        if UNCLEAN in delta.broker_keys:
            self.controlling.tell(UncleanElectionEnabled(None))

    def tell_of_failed_directory(self) -> None:
        """The controller asks for all partitions then, and hears which are offline."""
        event = Create(znodes.log_dir_event(), znodes.write_log_dir_event(self._node_id), sequential=True)
        self.zookeeper.submit([event], told_of_directory)

    def stop(self) -> None:
        self.producer_ids.close()
        self.replication.close()
        self.controlling.resign()
        self.peers.close()


def is_true(text: str | None) -> bool:
    return text is not None and text.strip().lower() == "true"


def told_of_directory(results: list[Any]) -> None:
    if results[0].error:
        log.error(f"the controller could not be told of a failed log directory: error {results[0].error}")
