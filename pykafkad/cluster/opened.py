"""The metadata of an opened directory: which topics are shown, and what may not be changed about them.

Topics, their ids and configs come from the copied metadata log where there is one, else from the names of the
directories and their partition.metadata. This node leads the partitions that are there, whoever did before; those that
are not have no leader. All of it is written into a new metadata log in the overlay, where producer ids and
`__consumer_offsets` go as well. Invariant: everything else that would change the metadata is refused.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence

from pykafkad.cluster import features
from pykafkad.cluster.handover import in_batches
from pykafkad.cluster.image import NO_LEADER, TOPIC_RESOURCE, Image
from pykafkad.cluster.local_controller import LocalController
from pykafkad.cluster.metadata_reading import read_directory
from pykafkad.cluster.metadata_records import MetadataError, config_record
from pykafkad.cluster.topic_creation import Planned, refused
from pykafkad.cluster.topic_names import CONSUMER_OFFSETS, MOST_PARTITIONS
from pykafkad.config import ConfigError, TopicConfig
from pykafkad.logs import logger
from pykafkad.messages import PartitionRecord, TopicRecord
from pykafkad.storage.checkpoints import checkpoints
from pykafkad.storage.files import TopicPartition
from pykafkad.storage.overlay import overlay
from pykafkad.storage.overlay.opened import refusal
from pykafkad.uuids import ZERO, random_uuid

TYPE_CHECKING = False
if TYPE_CHECKING:
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
    from pykafkad.config import BrokerConfig
    from pykafkad.slices import Work
    from pykafkad.storage.log.log import Log
    from pykafkad.storage.overlay.overlay import Source


NAMED = 5  # topics that one line of the log names

log = logger("open")


class OpenedTopic:
    """A topic that is shown: all its partitions, and which of them are there."""

    __slots__ = ("configs", "id", "name", "partitions", "present")

    def __init__(self, name: str, topic_id: bytes, configs: dict[str, str], partitions: int) -> None:
        self.name = name
        self.id = topic_id
        self.configs = configs
        self.partitions: list[tuple[list[int], int]] = [([], 0)] * partitions  # replicas, leader epoch
        self.present: set[int] = set()


def read_images(sources: Iterable[Source]) -> Image:
    """What the copied metadata logs say; the longest one counts. An empty image where there is none to be read."""
    best = Image()
    for source in sources:
        if source.metadata is None:
            continue
        image = Image()
        try:
            read_directory(source.metadata, image)
        except (MetadataError, OSError) as error:
            log.warn(f"{error}; topics are shown as the directories say")
            continue
        best = max(best, image, key=lambda each: each.offset)
    return best


def catalogue(
    shown: dict[TopicPartition, Source], image: Image, config: BrokerConfig
) -> dict[str, OpenedTopic]:
    """The topics of which partitions are there. What belongs to another topic of the same name is dropped from
    `shown`."""
    topics: dict[str, OpenedTopic] = {}
    unknown = sorted({name for name, _ in shown if name not in image.topics})
    if unknown:
        log.info(
            f"no metadata tells of {', '.join(unknown[:NAMED])}{' …' if len(unknown) > NAMED else ''}: "
            "shown as their directories say, without configs"
        )
    paths_of: dict[str, dict[int, str]] = {}
    for (name, index), source in sorted(shown.items(), key=lambda each: each[0]):
        path = source.partitions[name, index]
        if index < MOST_PARTITIONS:
            paths_of.setdefault(name, {})[index] = path
        else:
            log.warn(f"{path} is not shown: no topic has {index} partitions before it")
            del shown[name, index]
    for name, paths in paths_of.items():
        ids = {index: checkpoints.read_topic_id(path) for index, path in paths.items()}
        topic = known(name, image, config) or found(name, paths, ids, config)
        for index, path in paths.items():
            if ids[index] not in (None, topic.id):
                log.warn(f"{path} belongs to another topic of this name and is not shown")
                del shown[name, index]
            else:
                topic.partitions += [([], 0)] * (index + 1 - len(topic.partitions))
                replicas, epoch = topic.partitions[index]
                topic.partitions[index] = (replicas, max(epoch, overlay.last_epoch(path)))
                topic.present.add(index)
        if topic.present:
            topics[name] = topic
    return topics


def known(name: str, image: Image, config: BrokerConfig) -> OpenedTopic | None:
    """A topic as the metadata log has it."""
    topic = image.topics.get(name)
    if topic is None:
        return None
    shown = OpenedTopic(name, topic.id, usable(name, topic.configs, config), 0)
    shown.partitions = [(partition.replicas, partition.leader_epoch) for partition in topic.partitions]
    return shown


def found(
    name: str, paths: dict[int, str], ids: dict[int, bytes | None], config: BrokerConfig
) -> OpenedTopic:
    """A topic that only its directories tell of; before 2.8 they had no id."""
    topic_id = next((each for each in ids.values() if each is not None), None) or random_uuid()
    count = max(paths) + 1
    if name == CONSUMER_OFFSETS and (len(paths) < count or config.explicit("offsets.topic.num.partitions")):
        # Which of its partitions a group is in depends on how many there are.
        configured = config["offsets.topic.num.partitions"]
        count = max(count, configured if configured <= MOST_PARTITIONS else 0)
    return OpenedTopic(name, topic_id, {}, count)


def usable(name: str, configs: dict[str, str], config: BrokerConfig) -> dict[str, str]:
    """The configs that this broker understands; an older or newer one may have had others."""
    kept = {}
    for key, text in configs.items():
        try:
            if key not in config.keys.topic:
                raise ConfigError(key, text, f"Unknown topic config name: {key}")
            TopicConfig(config, {key: text})
        except ConfigError as error:
            log.warn(f"topic {name} is shown without its {key}={text}: {error}")
        else:
            kept[key] = text
    return kept


class OpenedController(LocalController):
    """Shows what was opened. Only `__consumer_offsets` may be made, in the overlay."""

    topics: dict[str, OpenedTopic]  # what to show; given before it takes over

    def check(self) -> None:
        """What was copied may be of any node, and of several."""

    def load_logs(self) -> None:
        """What could be opened becomes known to the metadata, and is published like any other change."""
        self._publish()
        for topic in self.topics.values():
            self._log.append(*in_batches(self._records(topic)))
        self._publish()

    def _recover(self) -> set[TopicPartition]:
        configs = {name: TopicConfig(self._config, topic.configs) for name, topic in self.topics.items()}
        known = {(name, index): topic.id for name, topic in self.topics.items() for index in topic.present}
        for name, index in self._storage.open_all(known, configs.__getitem__):
            log.warn(f"{name}-{index} could not be opened")
        return set()

    def _records(self, topic: OpenedTopic) -> list[Record]:
        """Of every partition; those that were opened are led. Groups need all of `__consumer_offsets`: the missing ones
        begin empty."""
        records: list[Record] = [(TopicRecord(name=topic.name, topic_id=topic.id), 0)]
        for key, value in topic.configs.items():
            records.append((config_record(TOPIC_RESOURCE, topic.name, key, value), 0))
        for index in range(len(topic.partitions)):
            partition = self._storage.get(topic.name, index)
            if partition is not None or topic.name == CONSUMER_OFFSETS:
                records.append(self._led(topic, index, partition))
            else:
                records.append(self._absent(topic, index))
        return records

    def _led(self, topic: OpenedTopic, index: int, partition: Log | None) -> Record:
        record = PartitionRecord(
            partition_id=index,
            topic_id=topic.id,
            replicas=[self.node_id],
            isr=[self.node_id],
            leader=self.node_id,
            leader_epoch=max(topic.partitions[index][1], partition.epochs.latest if partition else 0, 0),
            directories=[partition.log_directory.directory_id] if partition else [ZERO],
        )
        return record, features.partition_version(self.image.metadata_version)

    def _absent(self, topic: OpenedTopic, index: int) -> Record:
        replicas, epoch = topic.partitions[index]
        record = PartitionRecord(
            partition_id=index,
            topic_id=topic.id,
            replicas=replicas,
            leader=NO_LEADER,
            leader_epoch=max(epoch, 0),
            directories=[ZERO] * len(replicas),
        )
        return record, features.partition_version(self.image.metadata_version)

    # -- what is refused

    def _create(
        self,
        topics: Sequence[CreatableTopic],
        validate_only: bool,
        done: Created,
        in_image: Created | None = None,
    ) -> Work:
        if [topic.name for topic in topics] == [CONSUMER_OFFSETS]:
            yield from super()._create(topics, validate_only, done, in_image)
        else:
            done((yield from refused(topics, refusal(), Planned)))

    def _grow(
        self, topics: Sequence[CreatePartitionsTopic], validate_only: bool, done: Extended
    ) -> Work[None]:
        from pykafkad.cluster.partition_changes import Grown

        done((yield from refused(topics, refusal(), Grown)))

    def delete_topics(self, topic_ids: Sequence[bytes], done: Deleted) -> None:
        done(dict.fromkeys(topic_ids, refusal()))

    def commit(self, records: Sequence[Record], done: Told) -> None:
        done(refusal())

    def in_turn(self, plan: Plan, done: Told) -> None:
        done(refusal())


def describe(topics: dict[str, OpenedTopic], sources: Sequence[Source]) -> str:
    """One line on what is shown."""
    present = sum(len(topic.present) for topic in topics.values())
    absent = sum(len(topic.partitions) for topic in topics.values()) - present
    line = f"{os.pathsep.join(source.path for source in sources)}: {len(topics)} topics, {present} partitions"
    return f"{line}; {absent} more are not here" if absent else line
