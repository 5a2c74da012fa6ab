"""Snapshots of the metadata: what the image says, as the records that say it (KIP-630).

    batch of control records    SnapshotHeader; with kraft.version 1 also KRaftVersion and Voters
    batches of records          features (metadata.version first), brokers, controllers, each topic and its partitions,
                                configs, quotas, producer ids, ACLs, SCRAM credentials, delegation tokens
    batch of control records    SnapshotFooter

Offsets count from 0; the epoch of all batches is the one of the last record covered. Invariant: replaying a
snapshot gives the image that it was made of. A Snapshot is taken in one go, without encoding anything: it holds on to
the topics and configs as they are, and the image keeps what it changes meanwhile (`Image.before`). Only the loop
makes parts of it, a slice at a time.
"""

from __future__ import annotations

from itertools import islice

from pykafkad.cluster import features, metadata_records
from pykafkad.cluster.metadata_records import config_record
from pykafkad.hot import records
from pykafkad.messages import (
    ClientQuotaRecord,
    FeatureLevelRecord,
    PartitionRecord,
    ProducerIdsRecord,
    RegisterBrokerRecord,
    SnapshotFooterRecord,
    SnapshotHeaderRecord,
    TopicRecord,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    from pykafkad.cluster.image import BrokerInfo, Image, PartitionInfo
    from pykafkad.cluster.metadata_log import MetadataLog
    from pykafkad.cluster.metadata_records import Record

RECORDS_A_BATCH = 100


class Snapshot:
    """The image as it is now, to be encoded a batch at a time by `next_batch`."""

    def __init__(self, log: MetadataLog, now_ms: int) -> None:
        image = log.image
        self.id = (log.end_offset, log.last_epoch)
        self.covered_bytes = log.bytes_appended
        self._image = image
        self._now_ms = now_ms
        self._timestamp = log.last_timestamp
        self._kraft_version, self._voters = image.kraft_version, log.contents.voters
        self._offset = 0
        self._level, self._elr = image.metadata_version, image.elr_enabled
        self._records = self._all(taken(image))
        self._step = 0
        image.before = {}

    def next_batch(self) -> bytes | None:
        """The bytes of the next batch; None behind the last one."""
        if self._step == 0:
            self._step = 1
            return self._control(self._header())
        if self._step == 1:
            batch = list(islice(self._records, RECORDS_A_BATCH))
            if batch:
                rows: list[Any] = [
                    (None, value, [], self._now_ms) for value in metadata_records.encode_all(batch)
                ]
                return self._built(rows, control=False)
            self._step = 2
            self._image.before = None
            footer = SnapshotFooterRecord().encode(0)
            return self._control([(metadata_records.SNAPSHOT_FOOTER, bytes(footer))])
        return None

    def _header(self) -> list[tuple[int, bytes]]:
        header = SnapshotHeaderRecord(last_contained_log_timestamp=self._timestamp).encode(0)
        rows = [(metadata_records.SNAPSHOT_HEADER, bytes(header))]
        if self._kraft_version > 0:
            rows += metadata_records.quorum(self._kraft_version, self._voters)
        return rows

    def _control(self, rows: list[tuple[int, bytes]]) -> bytes:
        keyed: list[Any] = [
            (metadata_records.control_key(kind), value, [], self._now_ms) for kind, value in rows
        ]
        return self._built(keyed, control=True)

    def _built(self, rows: list[Any], *, control: bool) -> bytes:
        data: bytes = records.build(rows, base_offset=self._offset, leader_epoch=self.id[1], control=control)
        self._offset += len(rows)
        return data

    # -- records

    def _all(self, image: dict[str, Any]) -> Iterator[Record]:
        for name, level in image["features"]:
            yield FeatureLevelRecord(name=name, feature_level=level), 0
        for broker in image["brokers"]:
            yield self._broker(broker)
        for controller in image["controllers"]:
            yield controller, 0
        for topic in image["topics"]:
            yield TopicRecord(name=topic.name, topic_id=topic.id), 0
            partitions = (self._image.before or {}).get(topic.id, topic.partitions)
            for index, partition in enumerate(list(partitions)):
                yield self._partition(topic.id, index, partition)
        for (kind, name), configs in zip(image["resources"], image["configs"], strict=True):
            for key, value in configs.items():
                yield config_record(kind, name, key, value), 0
        for entity, quotas in image["quotas"]:
            for key, number in quotas.items():
                yield quota(entity, key, number), 0
        if image["producer ids"] > 0:
            record = ProducerIdsRecord(broker_id=-1, broker_epoch=-1, next_producer_id=image["producer ids"])
            yield record, 0
        for other in image["others"]:
            yield other, 0

    def _broker(self, broker: BrokerInfo) -> Record:
        version = features.register_broker_version(self._level)
        record = RegisterBrokerRecord(
            broker_id=broker.id,
            incarnation_id=broker.incarnation_id,
            broker_epoch=broker.epoch,
            end_points=list(broker.endpoints.values()),  # as they were registered
            features=broker.features,
            rack=broker.rack,
            fenced=broker.fenced,
            in_controlled_shutdown=broker.in_controlled_shutdown,
            log_dirs=broker.directories if version >= 3 else [],
            cordoned_log_dirs=(broker.cordoned_directories or []) if version >= 4 else None,
        )
        return record, version

    def _partition(self, topic_id: bytes, index: int, partition: PartitionInfo) -> Record:
        version = features.partition_version(self._level)
        record = PartitionRecord(
            partition_id=index,
            topic_id=topic_id,
            replicas=partition.replicas,
            isr=partition.isr,
            removing_replicas=partition.removing_replicas,
            adding_replicas=partition.adding_replicas,
            leader=partition.leader,
            leader_recovery_state=partition.leader_recovery_state,
            leader_epoch=partition.leader_epoch,
            partition_epoch=partition.partition_epoch,
            directories=partition.directories if version >= 1 else [],
        )
        if version >= 2 and self._elr:
            record.eligible_leader_replicas = partition.eligible_leader_replicas or None
            record.last_known_elr = partition.last_known_elr or None
        return record, version


def taken(image: Image) -> dict[str, Any]:
    """The image's parts, copied as far as they change in place; partitions and configs are copied when they do."""
    levels = sorted(image.features.items(), key=lambda each: each[0] != features.METADATA_VERSION)
    return {
        "features": levels,
        "brokers": [copied(broker) for broker in image.brokers.values()],
        "controllers": list(image.controllers.values()),
        "topics": list(image.topics.values()),
        "resources": list(image.configs),
        "configs": list(image.configs.values()),
        "quotas": [(entity, dict(quotas)) for entity, quotas in image.client_quotas.items()],
        "producer ids": image.next_producer_id,
        "others": [
            *image.acls.values(),
            *image.scram_users.values(),
            *image.delegation_tokens.values(),
        ],
    }


def copied(broker: BrokerInfo) -> BrokerInfo:
    made = broker.__class__.__new__(broker.__class__)
    for field in broker.__slots__:
        setattr(made, field, getattr(broker, field))
    return made


def quota(entity: tuple[tuple[str, str | None], ...], key: str, value: float) -> Any:
    parts = [ClientQuotaRecord.EntityData(entity_type=kind, entity_name=name) for kind, name in entity]
    return ClientQuotaRecord(entity=parts, key=key, value=value)
