"""The Controller of a broker in a cluster on ZooKeeper: what handlers and the start ask goes to the part that does it.

Owns nothing but the order: configs are read before logs are opened, logs are opened before the broker is registered,
and what was registered last is ended first.
"""

from __future__ import annotations

from pykafkad.cluster.controller import Quorum
from pykafkad.cluster.dynamic_config import DynamicConfig
from pykafkad.cluster.names import Names
from pykafkad.cluster.publishing import CONFIGS, LOGS, Publishers
from pykafkad.errors import KafkaError, StartupError
from pykafkad.logs import logger
from pykafkad.slices import finish
from pykafkad.uuids import ZERO

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from pykafkad.cluster.controller import (
        CreatableTopic,
        Created,
        CreatePartitionsTopic,
        Deleted,
        Extended,
        Plan,
        Told,
    )
    from pykafkad.cluster.metadata_records import Record
    from pykafkad.cluster.topic_creation import Planned
    from pykafkad.cluster.zookeeper.cluster import Cluster
    from pykafkad.cluster.zookeeper.metadata import ClusterImage
    from pykafkad.cluster.zookeeper.topic_logs import TopicLogs
    from pykafkad.config import BrokerConfig, TopicConfig
    from pykafkad.config_listeners import Endpoint
    from pykafkad.storage.zookeeper_directories import ZooKeeperLogs

    # Runs the loop until what is begun has called back, with what it was given.
    WaitFor = Callable[[Callable[[Told], None], str, int], KafkaError | None]

WAIT_MS = 30_000  # for an answer of ZooKeeper, once there is a session

log = logger("controller")


class ZooKeeperController:
    def __init__(
        self,
        config: BrokerConfig,
        image: ClusterImage,
        cluster: Cluster,
        storage: ZooKeeperLogs,
        topic_logs: TopicLogs,
        wait_for: WaitFor,
    ) -> None:
        self.image = image
        self.node_id = config.node_id
        self.dynamic = DynamicConfig(config, image, config.node_id)
        self.names = Names(image)
        self.publishers = Publishers()
        self.publishers.add(CONFIGS, self.dynamic.publish)
        self.publishers.add(LOGS, topic_logs.publish)
        self.topic_config: Callable[[str], TopicConfig] = topic_logs.config_of
        self._session_timeout_ms: int = config["zookeeper.session.timeout.ms"]
        self._cluster = cluster
        self._storage = storage
        self._wait_for = wait_for

    @property
    def controller_id(self) -> int:
        return self._cluster.controller_id

    @property
    def broker_epoch(self) -> int:
        return self._cluster.broker_epoch

    @property
    def quorum(self) -> Quorum:
        """There is none."""
        return Quorum(-1, -1, -1, ZERO)

    # -- start and end

    def check(self) -> None:
        """What must not be was found when ZooKeeper was asked for the cluster's id."""

    def load_logs(self) -> None:
        """Open what the directories have, with the configs that ZooKeeper has."""
        self._must(self._cluster.changes.load, "the configs could not be read")
        found = self._storage.found()
        finish(self.publishers.publish(self.image.take_delta()))
        self._storage.open_all(found, self.topic_config, self._storage)
        self._storage.moves.resume()

    def take_over(
        self,
        endpoints: Sequence[Endpoint],
        directories: list[bytes],
        rack: str | None,
        *,
        some_offline: bool = False,
    ) -> None:
        """A process with this broker's id that was killed is there until its session ends."""
        registration = self._cluster.registration
        self._must(
            lambda told: registration.register(endpoints, rack, told),
            f"broker {self.node_id} could not be registered (is there another one with this id?)",
            2 * self._session_timeout_ms,
        )

    def _must(self, begin: Callable[[Told], None], said: str, wait_ms: int = WAIT_MS) -> None:
        error = self._wait_for(begin, said, wait_ms)
        if error is not None:
            raise StartupError(f"{said} in ZooKeeper: {error}")

    def on_log_failed(self, told: Callable[[], None]) -> None:
        """There is no metadata log."""

    def abandon_log(self) -> None:
        """There is no metadata log."""

    def directory_failed(self) -> None:
        """The controller looks, by LeaderAndIsr, which replicas it has lost."""
        self._cluster.tell_of_failed_directory()

    def stop(self) -> None:
        self._cluster.stop()

    @property
    def idle(self) -> bool:
        return True

    @property
    def jobs(self) -> list[tuple[int, Callable[[], None]]]:
        return self._cluster.replication.jobs

    # -- what handlers ask

    def exists(self, name: str) -> bool:
        return self.names.exists(name)

    def create_topics(self, topics: Sequence[CreatableTopic], validate_only: bool, done: Created) -> None:
        self._cluster.changes.create_topics(topics, validate_only, done)

    def create_partitions(
        self, topics: Sequence[CreatePartitionsTopic], validate_only: bool, done: Extended
    ) -> None:
        self._cluster.changes.create_partitions(topics, validate_only, done)

    def delete_topics(self, topic_ids: Sequence[bytes], done: Deleted) -> None:
        self._cluster.changes.delete_topics(topic_ids, done)

    def auto_create(
        self, name: str, done: Callable[[Planned], None], needed: Callable[[], int] | None = None
    ) -> None:
        self._cluster.changes.auto_create(name, done, needed)

    def auto_create_all(self, names: Sequence[str], done: Callable[[], None]) -> None:
        self._cluster.changes.auto_create_all(names, done)

    def is_auto_creating(self, name: str) -> bool:
        return self._cluster.changes.is_auto_creating(name)

    def commit(self, records: Sequence[Record], done: Told) -> None:
        self._cluster.changes.commit(records, done)

    def in_turn(self, plan: Plan, done: Told) -> None:
        self._cluster.changes.in_turn(plan, done)

    def take_producer_id(self, done: Callable[[int | KafkaError], None]) -> None:
        self._cluster.take_producer_id(done)
