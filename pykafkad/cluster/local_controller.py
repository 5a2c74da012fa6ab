"""The controller of a single node, in its own metadata log: decides about topics and ids, and makes it durable.

A change goes: checked and turned into records -> one metadata batch with what else the pass asked for, fsynced ->
applied to the image -> published (directories are created or deleted, configs count; see publishing) -> answered. All
of it goes on in slices of the loop, however much one request asks for. Invariants: requests see each other's changes in
the order in which they are planned, one after the other (`_line`), also while those are on their way to the disk
(`names`); directories of deleted topics are gone before the image has others of those names; `done` is called whatever
goes wrong.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

from pykafkad.cluster import handover, topic_creation
from pykafkad.cluster.auto_creation import AutoCreation
from pykafkad.cluster.commits import Commits, at_once, nothing
from pykafkad.cluster.dynamic_config import DynamicConfig
from pykafkad.cluster.logs_publisher import LogsPublisher
from pykafkad.cluster.metadata_upkeep import CHECK_INTERVAL_MS, Upkeep
from pykafkad.cluster.names import Names
from pykafkad.cluster.placement import Placement
from pykafkad.cluster.producer_ids import ProducerIds
from pykafkad.cluster.publishing import CONFIGS, LOGS, Publishers
from pykafkad.cluster.topic_creation import MAX_RECORDS_IN_REQUEST, Planned, Planner
from pykafkad.cluster.turns import Turns, as_kafka_error, commit_planned, tell
from pykafkad.errors import INVALID_REPLICATION_FACTOR, UNKNOWN_SERVER_ERROR, UNKNOWN_TOPIC_ID, KafkaError
from pykafkad.logs import logger
from pykafkad.messages import RemoveTopicRecord
from pykafkad.quiet import always
from pykafkad.slices import chunks, finish, run_at_once
from pykafkad.uuids import ZERO
from pykafkad.workers import submit_inline

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from pykafkad.cluster.commits import Soon
    from pykafkad.cluster.controller import (
        CreatableTopic,
        Created,
        CreatePartitionsTopic,
        Deleted,
        Extended,
        Plan,
        Quorum,
        Told,
    )
    from pykafkad.cluster.image import Image
    from pykafkad.cluster.logs_publisher import Storage
    from pykafkad.cluster.metadata_log import MetadataLog
    from pykafkad.cluster.metadata_records import Record
    from pykafkad.cluster.topic_creation import Outcome
    from pykafkad.config import BrokerConfig, TopicConfig
    from pykafkad.config_listeners import Endpoint
    from pykafkad.quiet import Allows
    from pykafkad.slices import Run, Work
    from pykafkad.workers import Submit


HINT = " With --single-node it becomes as many as there are brokers."

log = logger("controller")


class LocalController:
    def __init__(
        self,
        config: BrokerConfig,
        metadata: MetadataLog,
        storage: Storage,
        node_id: int,
        submit: Submit = submit_inline,
        soon: Soon = at_once,
        run: Run = run_at_once,
        allows: Allows = always,
    ) -> None:
        self.image: Image = metadata.image
        self.node_id = self.controller_id = node_id
        self.dynamic = DynamicConfig(config, self.image, node_id)
        self.logs = LogsPublisher(config, self.image, storage, node_id, self._recover)
        self.publishers = Publishers()
        self.publishers.add(CONFIGS, self.dynamic.publish)
        self.publishers.add(LOGS, self.logs.publish)
        self.publishers.prepare = self.logs.preparation
        self._config = config
        self._log = metadata
        self._storage = storage
        self._run = run
        self._submit = submit
        self._commits = Commits(metadata, self.publishers, submit, soon, run)
        self.upkeep = Upkeep(config, metadata, metadata.clock, submit, run)
        self._commits.on_appended = self.upkeep.appended
        self.upkeep.commit = self._commits.add
        self._producer_ids = ProducerIds(self.image, self._commits, node_id)
        self.names = Names(self.image)
        self.placement = Placement(self.image, self.names, storage, node_id, self.commit, self.in_turn)
        self._planner = Planner(config, self.image, self.names, storage.place)
        self._line = Turns(run)  # what is planned, one after the other
        self._changes = Turns(run)  # what is planned when the one before it is in the image
        self._growing: set[str] = set()  # topics whose new partitions are on their way to the disk
        self._allows = allows
        self._auto_creation = AutoCreation(
            config, self.image, self.plan, self._create, self.logs.lead, allows
        )

    @property
    def broker_epoch(self) -> int:
        return self.image.brokers[self.node_id].epoch

    # -- start and end

    def check(self) -> None:
        """StartupError where this directory is not this node's to lead; nothing is changed yet."""
        handover.check_node(self.image, self.node_id)
        if self._log.is_new:
            handover.check_not_orphaned(self._config.log_dirs)
            handover.check_bootstrap(self._log.log_directory)

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
        # What a machine's crash could undo before this is done, nobody was promised.
        self._submit(self._log.settle, self._commits.settled)

    def load_logs(self) -> None:
        """Publish everything there is: the logs of all partitions are opened, and led in the epochs of the metadata."""
        self._publish()
        if len(self._config.log_dirs) > 1:  # else the take-over saw to it
            self.placement.correct(self._log)
            self._publish()
        self._storage.moves.resume()

    def _recover(self) -> set[tuple[str, int]]:
        """Open the logs that are on the disk; what is in none of the directories, and may lie in one that is offline."""
        topics = self.image.topics.items()
        known = {(name, index): topic.id for name, topic in topics for index in range(len(topic.partitions))}
        missing = self._storage.open_all(known, self.topic_config, self.placement)
        for name, index in missing:
            log.warn(f"the log of {name}-{index} is in none of the log directories")
        return {key for key in missing if self.placement.is_lost(*key)}

    def _publish(self) -> None:
        """What was appended at start."""
        finish(self.publishers.publish(self.image.take_delta()))

    def directory_failed(self) -> None:
        """Another log directory is offline."""
        self.placement.directory_failed()

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
    def quorum(self) -> Quorum:
        """This node leads it, and has no followers."""
        from pykafkad.cluster.controller import Quorum

        return Quorum(self.node_id, self._log.epoch, self._log.end_offset, self._voter_directory_id)

    @property
    def _voter_directory_id(self) -> bytes:
        """Of the log directory that the quorum knows this node by; ZERO where the log names no voters (KIP-853)."""
        voters = self._log.contents.voters
        if not voters:
            return ZERO
        from pykafkad.messages import VotersRecord

        found = {each.voter_id: each.voter_directory_id for each in VotersRecord.decode(voters, 0).voters}
        return found.get(self.node_id, ZERO)

    def exists(self, name: str) -> bool:
        """As soon as everything asked for is done."""
        return self.names.exists(name)

    # -- topics

    def create_topics(self, topics: Sequence[CreatableTopic], validate_only: bool, done: Created) -> None:
        """Topics as in CreateTopicsRequest. `done` is called when those without an error can be used."""
        self.plan(
            self._create(topics, validate_only, done),
            lambda error: self._refuse(topics, error, Planned, done),
        )

    def plan(self, work: Work, failed: Callable[[KafkaError], None]) -> None:
        """Do the work behind what was asked for before; `failed` is called where it raises."""

        def ended(result: Any) -> None:
            if isinstance(result, Exception):
                tell(failed, as_kafka_error(result))

        self._line.run(work, ended)

    def _refuse(
        self,
        topics: Sequence[CreatableTopic] | Sequence[CreatePartitionsTopic],
        error: KafkaError,
        kind: type[Outcome],
        done: Callable[[Sequence[Outcome]], None],
    ) -> None:
        self._run(topic_creation.refused(topics, error, kind), lambda refused: tell(done, refused))

    def _create(
        self,
        topics: Sequence[CreatableTopic],
        validate_only: bool,
        done: Created,
        in_image: Created | None = None,
    ) -> Work:
        """`in_image` is told before `done`, when the metadata has the topics, and not all of them have logs."""
        failures = self._commits.failures
        planned = yield from self._planner.plan(topics)
        self._say_replication(planned)
        good = [topic for topic in planned if topic.error is None]
        if validate_only or not good:
            tell(done, planned)
            return
        records = [record for topic in good for record in topic.records]
        encoded = yield from self._commits.encode(records)
        self._commits.check(failures)
        changes = [self.names.note(topic.name, topic.topic_id) for topic in good]

        def applied(error: KafkaError | None) -> None:
            for topic, change in zip(good, changes, strict=True):
                self.names.forget(topic.name, change, topic.topic_id)
                topic.error = error
            if in_image is not None:
                in_image(good)

        self._commits.add(records, lambda error: done(planned), encoded, applied=applied)

    def _say_replication(self, planned: Sequence[Planned]) -> None:
        """One line where it meets nobody's wishes, since whoever asked may only see that it does not work."""
        fewer = next((topic for topic in planned if topic.fewer_than), None)
        if fewer is not None and self._allows(log, "topics with fewer replicas than asked for", "clients"):
            said = (
                f"replication factor {fewer.fewer_than} was asked for, and is {len(fewer.replicas[0])} here"
            )
            log.info(f"topic {fewer.name}: {said} (--single-node)")
        for topic in planned:
            if topic.error is not None and topic.error.code == INVALID_REPLICATION_FACTOR:
                if self._allows(log, "topics refused for their replication factor", "clients"):
                    log.warn(f"topic {topic.name} is not created: {topic.error.text}{HINT}")
                return

    def create_partitions(
        self, topics: Sequence[CreatePartitionsTopic], validate_only: bool, done: Extended
    ) -> None:
        """Topics as in CreatePartitionsRequest. `done` is called, with a Grown each, when the new partitions can be
        used."""
        from pykafkad.cluster.partition_changes import Grown

        self.plan(
            self._grow(topics, validate_only, done), lambda error: self._refuse(topics, error, Grown, done)
        )

    def _grow(
        self, topics: Sequence[CreatePartitionsTopic], validate_only: bool, done: Extended
    ) -> Work[None]:
        from pykafkad.cluster import partition_changes

        failures = self._commits.failures
        for some in chunks(topics):
            if any(self.names.is_changing(topic.name) or topic.name in self._growing for topic in some):
                # How many partitions there are is known when what was asked for before is on the disk, or failed.
                self._commits.add((), lambda error: self.create_partitions(topics, validate_only, done))
                return
            yield
        planned = yield from partition_changes.plan(topics, self.image, self._storage.place)
        good = [topic for topic in planned if topic.error is None]
        if validate_only or not good:
            tell(done, planned)
            return
        self._commits.check(failures)
        names = {topic.name for topic in good}
        self._growing |= names

        def applied(error: KafkaError | None) -> None:
            self._growing -= names
            for topic in good:
                topic.error = error

        records = [record for topic in good for record in topic.records]
        self._commits.add(records, lambda error: done(planned), applied=applied)

    def delete_topics(self, topic_ids: Sequence[bytes], done: Deleted) -> None:
        """`done` is called when the topics are gone, with those that are not and why."""
        self.plan(self._delete(topic_ids, done), lambda error: done(dict.fromkeys(topic_ids, error)))

    def _delete(self, topic_ids: Sequence[bytes], done: Deleted) -> Work:
        failures = self._commits.failures
        errors: dict[bytes, KafkaError] = {}
        found: dict[bytes, str] = {}
        for some in chunks(topic_ids):
            for topic_id in some:
                name = self.names.name_of(topic_id)
                if name is None:
                    errors[topic_id] = KafkaError(UNKNOWN_TOPIC_ID)
                elif len(found) < MAX_RECORDS_IN_REQUEST:
                    found[topic_id] = name
                else:  # as Kafka, whose list of records is full then
                    errors[topic_id] = KafkaError(UNKNOWN_SERVER_ERROR)
            yield
        self._commits.check(failures)
        changes = [(name, self.names.note(name, None)) for name in found.values()]

        def applied(error: KafkaError | None) -> None:
            for name, change in changes:
                self.names.forget(name, change, None)
            if error is not None:
                errors.update(dict.fromkeys(found, error))

        records = [(RemoveTopicRecord(topic_id=topic_id), 0) for topic_id in found]
        self._commits.add(records, lambda error: done(errors), applied=applied, ends_batch=True)

    # -- what clients need without asking for it

    def auto_create(
        self, name: str, done: Callable[[Planned], None], needed: Callable[[], int] | None = None
    ) -> None:
        self._auto_creation.create(name, done, needed)

    def auto_create_all(self, names: Sequence[str], done: Callable[[], None] = nothing) -> None:
        self._auto_creation.create_all(names, done)

    def is_auto_creating(self, name: str) -> bool:
        return self._auto_creation.is_creating(name)

    def commit(self, records: Sequence[Record], done: Told) -> None:
        """Make these records durable, apply them to the image and publish what they change; then `done`, with what went
        wrong if it did."""
        self._commits.add(records, done)

    def in_turn(self, plan: Plan, done: Told) -> None:
        """Commit what `plan` makes of the image, one such change at a time, so that each sees the one before.

        `plan` may give work that ends in the records, find nothing to do, or raise the KafkaError that `done` is then
        called with.
        """
        begin = partial(commit_planned, plan, self._line, self._commits.add, as_kafka_error)
        self._changes.take(begin, partial(tell, done))

    def take_producer_id(self, done: Callable[[int | KafkaError], None]) -> None:
        self._producer_ids.take(done)

    def topic_config(self, name: str) -> TopicConfig:
        return self.logs.config_of(name)
