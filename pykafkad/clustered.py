"""A broker of a cluster on ZooKeeper (zookeeper.connect): server.Broker, whose metadata is the cluster's.

It has no metadata log. What it leads and follows, and what clients are told, comes from the cluster's controller, which
may be a Kafka 3.9, and from ZooKeeper. The start goes as Kafka's: the cluster's id, the logs, the registration, and then
the listeners; the controller that is too early tries again.
"""

from __future__ import annotations

import os
from functools import partial
from random import randrange
from typing import cast

from pykafkad.cluster.publishing import CONTROLLER
from pykafkad.cluster.zookeeper.changes import ClusterChanges
from pykafkad.cluster.zookeeper.cluster import Cluster
from pykafkad.cluster.zookeeper.control import Control
from pykafkad.cluster.zookeeper.controller import WAIT_MS, ZooKeeperController
from pykafkad.cluster.zookeeper.controller_messages import forms_of, protocol_of
from pykafkad.cluster.zookeeper.controlling import Controlling
from pykafkad.cluster.zookeeper.departure import Departure
from pykafkad.cluster.zookeeper.isolation import Isolation
from pykafkad.cluster.zookeeper.metadata import ClusterImage
from pykafkad.cluster.zookeeper.presence import Presence
from pykafkad.cluster.zookeeper.producer_ids import ProducerIds
from pykafkad.cluster.zookeeper.registration import BrokerRegistration
from pykafkad.cluster.zookeeper.roles import Roles
from pykafkad.cluster.zookeeper.topic_logs import TopicLogs
from pykafkad.errors import StartupError
from pykafkad.handlers import cluster_apis
from pykafkad.logs import logger
from pykafkad.net.peers import Peers
from pykafkad.replication.replication import Replication
from pykafkad.replication.requests import versions_for
from pykafkad.server import Broker, NoLogs
from pykafkad.storage.zookeeper_directories import ZooKeeperLogs
from pykafkad.uuids import random_uuid, to_text
from pykafkad.zookeeper import znodes
from pykafkad.zookeeper.client import NODE_EXISTS, OK, Create, GetData, State
from pykafkad.zookeeper.kazoo_client import KazooZooKeeper
from pykafkad.zookeeper.settings import settings_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any

    from pykafkad.clock import Clock
    from pykafkad.cluster.controller import Told
    from pykafkad.cluster.zookeeper.acls import ClusterAcls
    from pykafkad.config import BrokerConfig
    from pykafkad.errors import KafkaError
    from pykafkad.pure.acl_rules import Rules
    from pykafkad.storage.directories import LogDirectory
    from pykafkad.storage.manager import LogManager
    from pykafkad.zookeeper.client import Operation, Result

log = logger("server")


class ClusterBroker(Broker):
    apis = cluster_apis.APIS
    cluster: Cluster
    storage: ZooKeeperLogs

    def __init__(self, config: BrokerConfig, clock: Clock | None = None) -> None:
        super().__init__(config, clock)
        self.storage = cast("ZooKeeperLogs", NoLogs())
        self.image = self._metadata = ClusterImage()
        self.zookeeper = KazooZooKeeper(settings_of(config, os.environ, text_of), self.reactor.post)
        listener = config.inter_broker_listener
        isolation = Isolation(self.listeners, listener, self.zookeeper)
        self.cluster = Cluster(self.zookeeper, isolation, self.image, self.node_id, listener)
        self.cluster.peers = self._peers(self.cluster.address_of)

    def _peers(self, endpoint_of: Callable[[int], tuple[str, int] | None]) -> Peers:
        return self.cluster.isolation.joined(Peers(self.reactor, self.look_up, endpoint_of))

    # -- start

    def _open_storage(self, kind: Callable[..., LogManager] = ZooKeeperLogs) -> ZooKeeperLogs:
        self._connect()
        opened = super()._open_storage(partial(kind, cluster_id=self._id_of_cluster()))
        return cast("ZooKeeperLogs", opened)

    def _connect(self) -> None:
        config = self.config
        wait_ms = config["zookeeper.connection.timeout.ms"] or config["zookeeper.session.timeout.ms"]
        states: list[State] = []
        self.zookeeper.on_state(states.append)
        self.zookeeper.start()
        if not self._runs_until(lambda: bool(states), wait_ms) or states[0] is State.FAILED:
            raise StartupError(
                f"ZooKeeper at {config['zookeeper.connect']} does not answer, or not to this broker"
            )

    def _id_of_cluster(self) -> str:
        """That of /cluster/id, which the first broker makes."""
        self._ask([Create(path) for each in znodes.PERSISTENT for path in znodes.parents(each)])
        made = znodes.write_cluster_id(to_text(random_uuid()))
        self._ask([Create(znodes.CLUSTER), Create(znodes.CLUSTER_ID, made)])
        return znodes.read_cluster_id(self._ask([GetData(znodes.CLUSTER_ID)])[0].data)

    def _load(self) -> None:
        cluster, config = self.cluster, self.config
        self.storage.take_markers()
        topic_logs = TopicLogs(config, self.image, self.storage)
        self.controller = controller = ZooKeeperController(
            config, self._metadata, cluster, self.storage, topic_logs, self._wait_for
        )
        cluster.registration = BrokerRegistration(
            self.zookeeper, self.node_id, self.slices.run, self.clock.now_ms
        )
        cluster.changes = ClusterChanges(
            config,
            self.zookeeper,
            self.image,
            controller.names,
            controller.publishers,
            lambda work, done: cluster.control.obey(work, done),
            lambda: cluster.controlling.is_active,
            self.slices.run,
            self.clock.now_ms,
            self.reactor.call_later,
            randrange,
            self.quiet.allows,
        )
        self._make_coordinators()
        self.group_coordinator.follows_metadata = False
        self.transaction_coordinator.follows_metadata = False
        cluster.replication = Replication(
            self, self.reactor, cluster.peers, cluster, versions_for(config["inter.broker.protocol.version"])
        )
        cluster.producer_ids = ProducerIds(
            self.node_id, cluster, cluster.peers, self.reactor.call_later, self.quiet
        )
        roles = Roles(
            self._metadata,
            self.replicas,
            self.storage,
            cluster.replication,
            (self.group_coordinator, self.transaction_coordinator),
            topic_logs.config_of,
            cluster.changes.load_topics,
        )
        cluster.control = Control(
            self._metadata, roles, controller.publishers, lambda: cluster.broker_epoch, self.slices.run
        )
        cluster.control.on_updated = cluster.changes.image_changed
        cluster.control.on_controller = cluster.controller_changed
        cluster.controlling = self._make_controlling()
        self._add_publishers()
        controller.publishers.add(CONTROLLER, cluster.publish)
        controller.load_logs()
        controller.take_over(self.listeners.advertised, [], config["broker.rack"])

    def _make_acls(self, rules: Rules) -> ClusterAcls:
        return self.cluster.changes.keep_acls(rules)

    def _make_controlling(self) -> Controlling:
        config, reactor = self.config, self.reactor
        forms = forms_of(
            protocol_of(config["inter.broker.protocol.version"]),
            config.inter_broker_listener,
            config["control.plane.listener.name"],
        )
        return Controlling(
            self.node_id,
            self.zookeeper,
            cast("Mapping[str, Any]", config),
            forms,
            self._peers,
            reactor.call_later,
            self.slices.run,
            self.clock.now_ms,
            partial(Presence, self.node_id, forms.control_listener, self.reactor, self.look_up),
        )

    def _session_changed(self, state: State) -> None:
        """Who is registered anew may be elected anew."""
        if state is State.EXPIRED:
            self.cluster.controlling.resign()

    def start(self) -> None:
        super().start()
        controlling = self.cluster.controlling
        self.zookeeper.on_state(self._session_changed)
        self.cluster.registration.on_registered = controlling.begin
        controlling.begin()

    def _wait_for(self, begin: Callable[[Told], None], said: str, wait_ms: int) -> KafkaError | None:
        answers: list[KafkaError | None] = []
        begin(answers.append)
        if not self._runs_until(lambda: bool(answers), wait_ms):
            raise StartupError(f"{said} in {wait_ms} ms")
        return answers[0]

    def _ask(self, ops: list[Operation]) -> list[Result]:
        """What is there already is as good as made."""
        answers: list[list[Result]] = []
        self.zookeeper.submit(ops, answers.append)
        if not self._runs_until(lambda: bool(answers), WAIT_MS):
            raise StartupError(f"ZooKeeper has not answered in {WAIT_MS} ms")
        for result in answers[0]:
            if result.error not in (OK, NODE_EXISTS):
                raise StartupError(f"ZooKeeper refuses {result.path}: error {result.error}")
        return answers[0]

    # -- stop

    def stop(self, reason: str) -> None:
        """What this broker leads goes to others before it ends, if they can take it."""
        if self._stopping or not self.config["controlled.shutdown.enable"]:
            super().stop(reason)
            return
        log.info(f"{reason}: asking the controller to move what this broker leads")
        self._stopping = True
        Departure(
            self.config,
            self.node_id,
            self.cluster,
            self.cluster.peers,
            self.reactor.call_later,
            lambda: self.cluster.controlling.untold,
            partial(self.reactor.call_soon, self.reactor.stop),
        ).ask()

    def _logs_closed(self) -> None:
        self.zookeeper.close()

    # -- there is no metadata log

    def _check_metadata_directory(self) -> None:
        pass

    def _holds_metadata(self, directory: LogDirectory) -> bool:
        return False


def text_of(path: str) -> str:
    with open(path, encoding="utf-8") as file:
        return file.read()
