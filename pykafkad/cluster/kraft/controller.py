"""The Controller of a broker beside controllers of Apache Kafka: what handlers and the start ask goes to the part that
does it.

What only the active controller decides never comes here: those requests are forwarded as they are
(handlers/kraft_apis.py). Here are the topics that this broker needs itself, and the order of start and stop.
"""

from __future__ import annotations

from pykafkad.cluster.auto_creation import AutoCreation
from pykafkad.cluster.controller import Quorum
from pykafkad.cluster.dynamic_config import DynamicConfig
from pykafkad.cluster.names import Names
from pykafkad.cluster.publishing import CONFIGS, LOGS, Publishers
from pykafkad.cluster.turns import as_kafka_error, tell
from pykafkad.errors import NOT_CONTROLLER, KafkaError
from pykafkad.slices import finish
from pykafkad.uuids import ZERO

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any

    from pykafkad.cluster.controller import Created, Deleted, Plan, Told
    from pykafkad.cluster.image import Image
    from pykafkad.cluster.kraft.cluster import KraftCluster
    from pykafkad.cluster.kraft.roles import Roles
    from pykafkad.cluster.metadata_records import Record
    from pykafkad.cluster.topic_creation import Planned
    from pykafkad.config import BrokerConfig, TopicConfig
    from pykafkad.config_listeners import Endpoint
    from pykafkad.quiet import Allows
    from pykafkad.slices import Run, Work


class KraftController:
    logs: Roles  # when the replication is there

    def __init__(
        self, config: BrokerConfig, image: Image, cluster: KraftCluster, run: Run, allows: Allows
    ) -> None:
        self.image = image
        self.node_id = config.node_id
        self.controller_id = config.node_id  # clients ask any broker, as in Kafka
        self.dynamic = DynamicConfig(config, image, config.node_id)
        self.names = Names(image)
        self.publishers = Publishers()
        self.publishers.add(CONFIGS, self.dynamic.publish)
        self._cluster, self._run = cluster, run
        self._auto_creation = AutoCreation(
            config, image, self._plan, cluster.creating.create, lambda name, index: None, allows
        )

    @property
    def broker_epoch(self) -> int:
        return self._cluster.broker_epoch

    @property
    def quorum(self) -> Quorum:
        """As far as this broker has it."""
        copy = self._cluster.copy
        return Quorum(copy.leader, copy.epoch, copy.end_offset, ZERO)

    # -- start and end

    def check(self) -> None:
        """The controllers refuse a broker that must not be."""

    def load_logs(self) -> None:
        """Everything that the metadata says is published: logs are loaded, led, followed."""
        self.publishers.add(LOGS, self.logs.publish)
        finish(self.publishers.publish(self.image.take_delta()))
        self._cluster.load_ended()

    def take_over(
        self,
        endpoints: Sequence[Endpoint],
        directories: list[bytes],
        rack: str | None,
        *,
        some_offline: bool = False,
    ) -> None:
        """What a controller grants is asked for by presence.py."""

    def on_log_failed(self, told: Callable[[], None]) -> None:
        """Whoever follows the metadata log says so itself."""

    def abandon_log(self) -> None:
        self._cluster.observing.close()

    def directory_failed(self) -> None:
        self._cluster.tell_of_failed_directories()

    def stop(self) -> None:
        self._cluster.stop()

    @property
    def idle(self) -> bool:
        return self._cluster.observing.idle

    @property
    def jobs(self) -> list[tuple[int, Callable[[], None]]]:
        return [*self._cluster.replication.jobs, *self._cluster.observing.jobs]

    # -- what handlers ask

    def exists(self, name: str) -> bool:
        return self.names.exists(name)

    def topic_config(self, name: str) -> TopicConfig:
        return self.logs.config_of(name)

    def _plan(self, work: Work, failed: Callable[[KafkaError], None]) -> None:
        def ended(result: Any) -> None:
            if isinstance(result, Exception):
                tell(failed, as_kafka_error(result))

        self._run(work, ended)

    def auto_create(
        self, name: str, done: Callable[[Planned], None], needed: Callable[[], int] | None = None
    ) -> None:
        self._auto_creation.create(name, done, needed)

    def auto_create_all(self, names: Sequence[str], done: Callable[[], None]) -> None:
        self._auto_creation.create_all(names, done)

    def is_auto_creating(self, name: str) -> bool:
        """Its logs are made where it is led, whenever that is."""
        return False

    def take_producer_id(self, done: Callable[[int | KafkaError], None]) -> None:
        self._cluster.take_producer_id(done)

    # -- what is asked of the active controller alone

    def create_topics(self, topics: Sequence[Any], validate_only: bool, done: Created) -> None:
        raise KafkaError(NOT_CONTROLLER)

    def create_partitions(self, topics: Sequence[Any], validate_only: bool, done: Created) -> None:
        raise KafkaError(NOT_CONTROLLER)

    def delete_topics(self, topic_ids: Sequence[bytes], done: Deleted) -> None:
        raise KafkaError(NOT_CONTROLLER)

    def commit(self, records: Sequence[Record], done: Told) -> None:
        done(KafkaError(NOT_CONTROLLER))

    def in_turn(self, plan: Plan, done: Told) -> None:
        done(KafkaError(NOT_CONTROLLER))
