"""The controller of a single node: decides about topics and ids, makes it durable, then makes it so.

A change goes: checked and turned into records -> one metadata batch with what else the pass asked for,
fsynced -> applied to the image -> directories created or deleted -> answered. Metadata comes first
(metadata-log rule R7): a directory without its record would be stray. Invariant: requests see each other's
changes in the order in which they came, also while those are on their way to the disk (`_ahead`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any, Protocol

from pykafkad.cluster import handover, internal_topics, topic_names
from pykafkad.cluster.commits import Commits, Soon, Submit, at_once, submit_inline
from pykafkad.cluster.dynamic_config import OF_TOPICS, DynamicConfig
from pykafkad.cluster.metadata_upkeep import CHECK_INTERVAL_MS, Upkeep
from pykafkad.cluster.placement import Placement
from pykafkad.cluster.producer_ids import ProducerIds
from pykafkad.cluster.topic_creation import Planned, Planner
from pykafkad.config import TopicConfig
from pykafkad.errors import KafkaError
from pykafkad.logs import logger
from pykafkad.messages import RemoveTopicRecord
from pykafkad.uuids import ZERO

if TYPE_CHECKING:
    from pykafkad.cluster.image import Image, Topic
    from pykafkad.cluster.metadata_log import MetadataLog
    from pykafkad.cluster.metadata_records import Record
    from pykafkad.cluster.partition_changes import Grown
    from pykafkad.config import BrokerConfig
    from pykafkad.config_listeners import Endpoint
    from pykafkad.storage.directories import LogDirectory

PARTITIONS_A_TURN = 10  # directories made in one go, before the loop serves others again

log = logger("controller")


class Storage(Protocol):
    """What the controller needs of the LogManager."""

    @property
    def moves(self) -> Any: ...
    @property
    def online(self) -> list[LogDirectory]: ...

    def open_all(
        self, known: dict[tuple[str, int], bytes], config_of: Callable[[str], TopicConfig]
    ) -> list[tuple[str, int]]: ...
    def place(self, count: int) -> list[bytes]: ...
    def create(
        self,
        topic: str,
        index: int,
        topic_id: bytes,
        config: TopicConfig,
        leader_epoch: int,
        directory_id: bytes,
    ) -> Any: ...
    def get(self, topic: str, index: int) -> Any: ...
    def placed(self) -> Iterable[tuple[tuple[str, int], bytes]]: ...
    def delete(self, topic: str, index: int) -> Any: ...
    def configure(self, topic: str, count: int, config: TopicConfig) -> None: ...


class Controller:
    def __init__(
        self,
        config: BrokerConfig,
        metadata: MetadataLog,
        storage: Storage,
        node_id: int,
        submit: Submit = submit_inline,
        soon: Soon = at_once,
    ) -> None:
        self.image: Image = metadata.image
        self.node_id = node_id
        self.placement = Placement(self, self.image, storage)
        self.on_topic_deleted: list[Callable[[Topic], None]] = []
        self._config = config
        self._log = metadata
        self._storage = storage
        self._soon = soon
        self._submit = submit
        self._commits = Commits(metadata, submit, soon)
        self.upkeep = Upkeep(config, metadata, metadata.clock, submit, soon)
        self._commits.on_appended = self.upkeep.appended
        self.upkeep.commit = self._commits.add
        self._producer_ids = ProducerIds(self.image, self._commits, node_id)
        self._planner = Planner(config, self.image, self, storage.place)
        # What is asked for but not yet on disk: name -> (a number of its own, the topic's id or None).
        self._ahead: dict[str, tuple[int, bytes | None]] = {}
        self._changes = 0
        self._growing: set[str] = set()  # topics whose new partitions are on their way to the disk
        self._turns: list[tuple[Callable[[], Sequence[Record]], Callable[[KafkaError | None], None]]] = []
        self._creating: set[str] = set()  # by auto_create
        self._wanted: dict[str, list[Callable[[Planned], None]]] = {}
        self._configs: dict[bytes, TopicConfig] = {}  # by topic id; ZERO: of topics without any of their own
        self.dynamic = DynamicConfig(config, self.image, node_id)
        self.dynamic.on_change.append(self._defaults_changed)
        self.image.removed.clear()

    @property
    def broker_epoch(self) -> int:
        return self.image.brokers[self.node_id].epoch

    # -- start and end

    def take_over(
        self,
        endpoints: Sequence[Endpoint],
        directories: list[bytes],
        rack: str | None,
        *,
        some_offline: bool = False,
    ) -> None:
        min_isr = str(self._config["min.insync.replicas"])
        self.placement.some_offline = some_offline
        handover.take_over(
            self._log, self.node_id, endpoints, directories, rack, min_isr, some_offline=some_offline
        )
        self.dynamic.refresh()
        # What a machine's crash could undo before this is done, nobody was promised.
        self._submit(self._log.settle, self._commits.settled)

    def load_logs(self) -> None:
        """Open the logs of all partitions, and lead them in the epochs that the metadata says."""
        topics = self.image.topics
        self._storage.moves.assigned = self.placement.directory_of
        self._storage.moves.on_moved = self.placement.moved
        known = {
            (name, index): topic.id
            for name, topic in topics.items()
            for index in range(len(topic.partitions))
        }
        missing = self._storage.open_all(known, self.topic_config)
        for name, index in missing:
            log.warn(f"the log of {name}-{index} is in none of the log directories")
        lost = {key for key in missing if self.placement.is_lost(*key)}
        for name, topic in topics.items():
            config = self.topic_config(name)
            for index in range(len(topic.partitions)):
                if (name, index) not in lost:
                    self._open_partition(topic, index, config)
        if len(self._config.log_dirs) > 1:  # else the take-over saw to it
            self.placement.correct(self._log)
        self._storage.moves.resume()

    def abandon_log(self) -> None:
        """The directory that the metadata log lies in failed: nothing more is written to it."""
        self._commits.has_failed = True

    def stop(self) -> None:
        """The last records, when nothing is under way any more; blocks for one fsync."""
        if not self._commits.has_failed:
            handover.stop(self._log, self.node_id)
            self._log.sync()
            self._log.close(clean=True)
        self._log.close()

    @property
    def idle(self) -> bool:
        return self._commits.idle

    def on_log_failed(self, told: Callable[[], None]) -> None:
        """Whom to tell when the metadata log cannot be written any more: there is no going on without it."""
        self._commits.on_failed = told

    @property
    def jobs(self) -> list[tuple[int, Callable[[], None]]]:
        """(interval in ms, what to do): for the loop's timers."""
        return [(CHECK_INTERVAL_MS, self.upkeep.check)]

    @property
    def quorum(self) -> tuple[int, int]:
        """The quorum epoch that this node leads, and where the metadata log ends."""
        return self._log.epoch, self._log.end_offset

    @property
    def voter_directory_id(self) -> bytes:
        """Of the log directory that the quorum knows this node by; ZERO where the log names no voters (KIP-853)."""
        voters = self._log.contents.voters
        if not voters:
            return ZERO
        from pykafkad.messages import VotersRecord

        found = {each.voter_id: each.voter_directory_id for each in VotersRecord.decode(voters, 0).voters}
        return found.get(self.node_id, ZERO)

    # -- names, as they will be once everything asked for is done

    def exists(self, name: str) -> bool:
        return self.id_of(name) is not None

    def id_of(self, name: str) -> bytes | None:
        ahead = self._ahead.get(name)
        if ahead is not None:
            return ahead[1]
        topic = self.image.topics.get(name)
        return topic.id if topic is not None else None

    def name_of(self, topic_id: bytes) -> str | None:
        for name, (_, ahead_id) in self._ahead.items():
            if ahead_id == topic_id:
                return name
        topic = self.image.topics_by_id.get(topic_id)
        return topic.name if topic is not None and self.id_of(topic.name) == topic_id else None

    def collides_with(self, name: str) -> str | None:
        if not topic_names.can_collide(name):
            return None
        key = topic_names.collision_key(name)
        for other, (_, topic_id) in self._ahead.items():
            if topic_id is not None and topic_names.collision_key(other) == key:
                return other
        existing = self.image.collides_with(name)
        return existing if existing is not None and self.exists(existing) else None

    def _note(self, name: str, topic_id: bytes | None) -> int:
        self._changes += 1
        self._ahead[name] = (self._changes, topic_id)
        return self._changes

    def _forget(self, name: str, change: int) -> None:
        if self._ahead.get(name, (0, None))[0] == change:
            del self._ahead[name]

    # -- topics

    def create_topics(
        self, topics: Sequence[Any], validate_only: bool, done: Callable[[list[Planned]], None]
    ) -> None:
        """Topics as in CreateTopicsRequest. `done` is called when those without an error can be used."""
        planned = self._planner.plan(topics)
        good = [topic for topic in planned if topic.error is None]
        if validate_only or not good:
            done(planned)
            return
        changes = [(topic.name, self._note(topic.name, topic.topic_id)) for topic in good]

        def durable(error: KafkaError | None) -> None:
            for name, change in changes:
                self._forget(name, change)
            if error is None:
                self._make(
                    [(topic.topic_id, index) for topic in good for index in range(len(topic.replicas))],
                    lambda: done(planned),
                )
                return
            for topic in good:
                topic.error = error
            done(planned)

        self._commits.add([record for topic in good for record in topic.records], durable)

    def create_partitions(
        self, topics: Sequence[Any], validate_only: bool, done: Callable[[list[Grown]], None]
    ) -> None:
        """Topics as in CreatePartitionsRequest. `done` is called when the new partitions can be used."""
        from pykafkad.cluster import partition_changes

        if any(topic.name in self._ahead or topic.name in self._growing for topic in topics):
            # How many partitions there are is known when what was asked for before is on the disk, or failed.
            self._commits.add((), lambda error: self.create_partitions(topics, validate_only, done))
            return
        planned = partition_changes.plan(topics, self.image, self._storage.place)
        good = [topic for topic in planned if topic.error is None]
        if validate_only or not good:
            done(planned)
            return
        self._growing.update(topic.name for topic in good)

        def durable(error: KafkaError | None) -> None:
            self._growing.difference_update(topic.name for topic in good)
            work = []
            for topic in good:
                topic.error = error
                work += [(topic.topic_id, topic.first + number) for number in range(len(topic.records))]
            self._make(work if error is None else [], lambda: done(planned))

        self._commits.add([record for topic in good for record in topic.records], durable)

    def _make(self, work: list[tuple[bytes, int]], done: Callable[[], None]) -> None:
        """Make the directories of these partitions, a few a turn of the loop; the image knows them already."""
        position = 0

        def turn() -> None:
            nonlocal position
            for topic_id, index in work[position : position + PARTITIONS_A_TURN]:
                topic = self.image.topics_by_id.get(topic_id)
                if topic is not None:  # not deleted meanwhile
                    self._open_partition(topic, index, self.topic_config(topic.name))
            position += PARTITIONS_A_TURN
            if position < len(work):
                self._soon(turn)
            else:
                done()

        turn()

    def _open_partition(self, topic: Topic, index: int, config: TopicConfig) -> None:
        partition = topic.partitions[index]
        directory_id = partition.directories[0] if partition.directories else bytes(16)
        try:
            self._storage.create(topic.name, index, topic.id, config, partition.leader_epoch, directory_id)
        except OSError as error:
            # It exists, and is offline: as in Kafka when a log directory fails.
            log.error(f"{topic.name}-{index} is offline: {error}")

    def delete_topics(self, topic_ids: Sequence[bytes], done: Callable[[KafkaError | None], None]) -> None:
        """Delete topics that exist (see `id_of` and `name_of`)."""
        names = [name for name in map(self.name_of, topic_ids) if name is not None]
        changes = [(name, self._note(name, None)) for name in names]
        records = [(RemoveTopicRecord(topic_id=topic_id), 0) for topic_id in topic_ids]

        def durable(error: KafkaError | None) -> None:
            for name, change in changes:
                self._forget(name, change)
            if error is None:
                self._remove()
            done(error)

        self._commits.add(records, durable)

    def _remove(self) -> None:
        """Delete the directories of the topics that left the image."""
        removed, self.image.removed = self.image.removed, []
        for topic in removed:
            for index in range(len(topic.partitions)):
                if self._storage.get(topic.name, index) is not None:
                    self._storage.delete(topic.name, index)
            self._configs.pop(topic.id, None)
            for told in self.on_topic_deleted:
                told(topic)

    # -- what clients need without asking for it

    def auto_create(self, name: str, done: Callable[[Planned], None] | None = None) -> None:
        """Create a missing topic as Kafka does for Metadata and FindCoordinator; once, however many ask."""
        if done is not None:
            self._wanted.setdefault(name, []).append(done)
        if name in self._creating:
            return
        self._creating.add(name)

        def created(planned: list[Planned]) -> None:
            self._creating.discard(name)
            if planned[0].error is not None:
                log.warn(f"topic {name} could not be created: {planned[0].error}")
            for told in self._wanted.pop(name, []):
                told(planned[0])

        topic = internal_topics.creatable(self._config, name, len(self.image.brokers))
        self.create_topics([topic], False, created)

    def commit(self, records: Sequence[Record], done: Callable[[KafkaError | None], None]) -> None:
        """Make these records durable and apply them to the image; then `done`, with what went wrong if it did."""
        self._commits.add(records, done)

    def in_turn(
        self, plan: Callable[[], Sequence[Record]], done: Callable[[KafkaError | None], None]
    ) -> None:
        """Commit what `plan` makes of the image, one such change at a time, so that each sees the one before.

        `plan` may find nothing to do, or raise the KafkaError that `done` is then called with.
        """
        self._turns.append((plan, done))
        if len(self._turns) == 1:
            self._take_turn()

    def _take_turn(self) -> None:
        plan, _ = self._turns[0]
        try:
            records = plan()
        except KafkaError as error:
            self._end_turn(error)
            return
        if records:
            self._commits.add(records, self._end_turn)
        else:
            self._end_turn(None)

    def _end_turn(self, error: KafkaError | None) -> None:
        _, done = self._turns.pop(0)
        if self._turns:
            self._soon(self._take_turn)
        done(error)

    def take_producer_id(self, done: Callable[[int | KafkaError], None]) -> None:
        self._producer_ids.take(done)

    # -- configs

    def topic_config(self, name: str) -> TopicConfig:
        """The resolved configuration of an existing topic; the same object as long as nothing changes it.

        Topics without configs of their own share one.
        """
        topic = self.image.topics[name]
        key = topic.id if topic.configs else ZERO
        config = self._configs.get(key)
        if config is None:
            config = self._configs[key] = TopicConfig(self._config, topic.configs)
        return config

    def topic_config_changed(self, name: str) -> None:
        """The image has other configs of this topic: its partitions follow."""
        topic = self.image.topics.get(name)
        if topic is not None:
            self._configs.pop(topic.id, None)
            self._storage.configure(name, len(topic.partitions), self.topic_config(name))

    def _defaults_changed(self, changed: set[str]) -> None:
        """The broker has other values: so have the topics that go by its keys."""
        if not changed & OF_TOPICS:
            return
        self._configs.clear()
        for name, topic in self.image.topics.items():
            self._storage.configure(name, len(topic.partitions), self.topic_config(name))
