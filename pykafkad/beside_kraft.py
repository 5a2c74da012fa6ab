"""A broker beside controllers of Apache Kafka (`process.roles=broker`): server.Broker, whose metadata is the cluster's.

The start goes as Kafka's: the cluster's id, a registration that is fenced, the metadata log up to what is committed, the
logs, the listeners, and then the broker is unfenced. Nothing of it is imported in other modes.
"""

from __future__ import annotations

import os
from functools import partial
from typing import cast

from pykafkad import errors
from pykafkad.cluster.kraft.cluster import KraftCluster
from pykafkad.cluster.kraft.controller import KraftController
from pykafkad.cluster.kraft.controllers import Controllers
from pykafkad.cluster.kraft.metadata_copy import MetadataCopy
from pykafkad.cluster.kraft.presence import Registered
from pykafkad.cluster.kraft.roles import Roles
from pykafkad.cluster.publishing import CONTROLLER
from pykafkad.cluster.zookeeper.isolation import Isolation
from pykafkad.errors import StartupError
from pykafkad.handlers import kraft_apis
from pykafkad.logs import logger
from pykafkad.messages import DescribeClusterRequest
from pykafkad.net.peers import Peers, Purpose
from pykafkad.pure.kraft.lifecycle import State
from pykafkad.replication.replication import Replication
from pykafkad.replication.requests import versions_for
from pykafkad.server import Broker, NoLogs
from pykafkad.storage.directories import META_PROPERTIES
from pykafkad.storage.manager import LogManager

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from pykafkad.clock import Clock
    from pykafkad.cluster.zookeeper.parts import Cluster
    from pykafkad.config import BrokerConfig

DESCRIBE_CLUSTER, DESCRIBE_CLUSTER_NEWEST, ENDPOINTS_SINCE = 60, 1, 1
OF_CONTROLLERS = 2
AGAIN_MS = 200
LEAVING_MS = 300_000  # as Kafka gives a controlled shutdown
REQUESTS_OF = "3.9"  # what followers ask: every Kafka 3.9 and 4 serves these versions

log = logger("server")


class KraftBroker(Broker):
    apis = kraft_apis.APIS
    kraft: KraftCluster

    def __init__(self, config: BrokerConfig, clock: Clock | None = None) -> None:
        super().__init__(config, clock)
        self.storage = cast("LogManager", NoLogs())
        self.controllers = Controllers(
            config,
            partial(Peers, self.reactor, self.look_up),
            self.reactor.call_later,
            self.clock.monotonic_ms,
        )

    # -- start

    def _open_storage(self, kind: Callable[..., LogManager] = LogManager) -> LogManager:
        return super()._open_storage(partial(kind, cluster_id=self._id_of_cluster()))

    def _id_of_cluster(self) -> str | None:
        """None: the directories say it, or the config does. Else this broker joins the cluster of its controllers."""
        paths = [os.path.join(path, META_PROPERTIES) for path in self.config.log_dirs]
        if any(map(os.path.exists, paths)) or self.config["pykafkad.cluster.id"]:
            return None
        found: list[str] = []
        why: list[str] = ["none was reached"]
        wait_ms = self.config["initial.broker.registration.timeout.ms"]
        for node in self.controllers.configured:
            self._ask_id(node, found, why)
        if not self._runs_until(lambda: bool(found), wait_ms):
            raise StartupError(f"no controller has said in {wait_ms} ms which cluster this is: {why[-1]}")
        log.info(f"new directories join the cluster {found[0]}")
        return found[0]

    def _ask_id(self, node: int, found: list[str], why: list[str]) -> None:
        """`why` is what was said instead, the last of it."""

        def answered(answer: Any) -> None:
            if not isinstance(answer, OSError) and not answer.error_code:
                found.append(answer.cluster_id)
            elif not found:
                refused = getattr(answer, "error_code", errors.NONE)
                why[:] = [errors.NAMES.get(refused, str(refused)) if refused else str(answer)]
                if self.quiet.allows(log, "controllers that do not say which cluster this is", str(node)):
                    log.warn(f"a controller does not say which cluster this is: {why[-1]}; it is asked again")
                self.reactor.call_later(AGAIN_MS, self._ask_id, node, found, why)

        purpose = Purpose(
            f"broker-{self.node_id}-cluster-id",
            asks_versions=True,
            request_timeout_ms=self.config["controller.quorum.request.timeout.ms"],
        )
        self.controllers.peers.to(node, purpose).ask_built(
            DESCRIBE_CLUSTER,
            DESCRIBE_CLUSTER_NEWEST,
            lambda version: DescribeClusterRequest(endpoint_type=OF_CONTROLLERS),
            answered,
            oldest=ENDPOINTS_SINCE,
        )

    def _load(self) -> None:
        self._check_metadata_directory()
        config = self.config
        copy = MetadataCopy(
            config.metadata_log_dir,
            self.clock,
            self.controllers.voters,
            segment_bytes=config["internal.metadata.log.segment.bytes"]
            or config["metadata.log.segment.bytes"],
            segment_ms=config["metadata.log.segment.ms"],
        )
        copy.read()
        previous_epoch = self._epoch_of_last_stop()
        self.storage.take_markers()
        copy.prepare()
        self.image = copy.image
        kraft = self.kraft = KraftCluster(self, self.reactor, self.controllers, copy, self._cannot_go_on)
        self.cluster = cast("Cluster", kraft)  # what only a controller is asked for, nobody asks here
        self.controller = controller = KraftController(
            config, copy.image, kraft, self.slices.run, self.quiet.allows
        )
        self._join(previous_epoch)
        self._make_coordinators()
        self.group_coordinator.follows_metadata = False
        self.transaction_coordinator.follows_metadata = False
        kraft.isolation = Isolation(self.listeners, config.inter_broker_listener, self.controllers.peers)
        kraft.peers = kraft.isolation.joined(Peers(self.reactor, self.look_up, kraft.address_of))
        kraft.replication = Replication(
            self, self.reactor, kraft.peers, kraft, versions_for(REQUESTS_OF), self.controllers.peers
        )
        self.replicas.may_be_in_sync = kraft.may_be_in_sync
        controller.logs = Roles(
            config,
            copy.image,
            self.storage,
            self.replicas,
            kraft.replication,
            (self.group_coordinator, self.transaction_coordinator),
            kraft.assignments,
        )
        self._add_publishers()
        controller.publishers.add(CONTROLLER, kraft.publish)
        controller.load_logs()
        kraft.observing.publish_to(controller.publishers)

    def _epoch_of_last_stop(self) -> int:
        """As all directories have it; -1: it was no clean stop."""
        epochs = {each.broker_epoch if each.was_clean else -1 for each in self.storage.directories}
        return epochs.pop() if len(epochs) == 1 else -1

    def _join(self, previous_epoch: int) -> None:
        """Register, and catch up with the metadata."""
        kraft, storage = self.kraft, self.storage
        wait_ms = self.config["initial.broker.registration.timeout.ms"]
        home = next((each for each in storage.online if self._holds_metadata(each)), storage.online[0])
        kraft.observing.begin(self.cluster_id, home.directory_id)
        kraft.presence.begin(
            Registered(
                self.node_id,
                self.cluster_id,
                self.listeners.advertised,
                [each.directory_id for each in storage.online],
                self.config["broker.rack"],
                previous_epoch,
            )
        )
        machine = kraft.presence.machine
        if not self._runs_until(
            lambda: (
                self.exit_code != 0 or (machine.state is not State.STARTING and kraft.observing.is_caught_up)
            ),
            wait_ms,
        ):
            raise StartupError(f"this broker has not been registered, and caught up, in {wait_ms} ms")
        self._check_going_on()

    def start(self) -> None:
        super().start()
        machine = self.kraft.presence.machine
        self.kraft.presence.ready()
        wait_ms = self.config["initial.broker.registration.timeout.ms"]
        if not self._runs_until(lambda: self.exit_code != 0 or machine.state is State.SERVING, wait_ms):
            raise StartupError(f"the controllers have not unfenced this broker in {wait_ms} ms")
        self._check_going_on()

    def _check_going_on(self) -> None:
        if self.exit_code:
            raise StartupError("the metadata of the cluster cannot be followed")

    def _cannot_go_on(self, why: str) -> None:
        log.error(f"{why}; stopping")
        self.exit_code = 1
        self.reactor.call_soon(self.reactor.stop)

    # -- stop

    def stop(self, reason: str) -> None:
        """What this broker leads goes to others before it ends, if the controllers can be asked."""
        if self._stopping:
            return
        if self.kraft.presence.machine.state is not State.SERVING:
            super().stop(reason)
            return
        log.info(f"{reason}: asking the controllers to move what this broker leads")
        self._stopping = True
        self.kraft.presence.on_gone = partial(self.reactor.call_soon, self.reactor.stop)
        self.kraft.presence.leave()
        self.reactor.call_later(LEAVING_MS, self.reactor.stop)
