"""What is written when a node formats a directory, takes it over, and leaves it.

A directory goes from Apache Kafka to us and back because both write these records. Functions here only make
records; the metadata log appends them. Invariants: a partition's directories name the log directory that
holds it; leader epochs only grow; a stopped directory has its broker fenced and no leaders.
"""

from __future__ import annotations

import os

from pykafkad.cluster import features
from pykafkad.cluster.image import ALL_BROKERS, BROKER_RESOURCE, NO_LEADER, NOT_TOLD, Image
from pykafkad.cluster.metadata_records import config_record
from pykafkad.cluster.topic_names import CLUSTER_METADATA
from pykafkad.errors import StartupError
from pykafkad.messages import (
    AbortTransactionRecord,
    BeginTransactionRecord,
    BrokerRegistrationChangeRecord,
    EndTransactionRecord,
    PartitionChangeRecord,
    RegisterBrokerRecord,
)
from pykafkad.uuids import ZERO, random_uuid

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from pykafkad.cluster.image import PartitionInfo, Topic
    from pykafkad.cluster.metadata_log import MetadataLog
    from pykafkad.cluster.metadata_records import Record
    from pykafkad.config_listeners import Endpoint

MAX_RECORDS_IN_BATCH = 10_000
FEATURE_LEVEL = 12  # API key of its record
FENCED, UNFENCED = 1, -1
SECURITY_PROTOCOLS = ("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL")


def check_node(image: Image, node_id: int) -> None:
    """Refuse a directory of another node, or of several: its logs would be set aside as ones that nobody knows."""
    for topic in image.topics.values():
        for index, partition in enumerate(topic.partitions):
            if partition.replicas != [node_id]:
                raise StartupError(
                    f"partition {topic.name}-{index} has replicas {partition.replicas}, but node.id is "
                    f"{node_id}: this directory belongs to another node or to a cluster of several"
                )


def check_not_orphaned(log_directories: Iterable[str]) -> None:
    """Topics without a metadata log: starting an empty cluster here would lose them."""
    for directory in log_directories:
        for name in sorted(os.listdir(directory)) if os.path.isdir(directory) else []:
            topic, _, index = name.rpartition("-")
            if (
                topic
                and topic != CLUSTER_METADATA
                and index.isdigit()
                and os.path.exists(os.path.join(directory, name, "partition.metadata"))
            ):
                raise StartupError(
                    f"{directory} holds {name} but there is no metadata log that knows it; "
                    "bring back __cluster_metadata-0, or start with an empty directory"
                )


def format_log(log: MetadataLog, min_isr: str) -> None:
    """What the first start of 4.3.1 makes of the records that a formatted directory begins with."""
    from pykafkad.cluster import metadata_bootstrap

    bootstrap = metadata_bootstrap.read(log.log_directory) or metadata_bootstrap.formatted()
    levels = {record.name: record.feature_level for record, _ in bootstrap if record.api_key == FEATURE_LEVEL}
    if levels.get(features.ELIGIBLE_LEADER_REPLICAS, 0) > 0:
        bootstrap.append((config_record(BROKER_RESOURCE, ALL_BROKERS, "min.insync.replicas", min_isr), 0))
    if levels.get(features.METADATA_VERSION, 0) >= features.METADATA_TRANSACTIONS:
        begin, end = BeginTransactionRecord(name="Bootstrap records"), EndTransactionRecord()
        bootstrap = [(begin, 0), *bootstrap, (end, 0)]
    log.append(bootstrap)


def check_bootstrap(log_directory: str) -> None:
    """MetadataError for a formatted directory that begins with what is not known here."""
    from pykafkad.cluster import metadata_bootstrap

    image = Image()
    for record, _ in metadata_bootstrap.read(log_directory) or []:
        image.apply(record)


def leave_bootstrap(log_directories: list[str], now_ms: int) -> None:
    """What `kafka-storage format` leaves in directories of a new cluster."""
    from pykafkad.cluster import metadata_bootstrap

    metadata_bootstrap.write(log_directories, metadata_bootstrap.formatted(), now_ms)


def make_dynamic(
    log: MetadataLog, node_id: int, directory_id: bytes, listener: str, host: str, port: int
) -> None:
    """This node is the one voter, and the log says so: where properties name no voters, Kafka looks there (KIP-853)."""
    from pykafkad.messages import VotersRecord

    kind = VotersRecord
    voter = kind.Voter(
        voter_id=node_id,
        voter_directory_id=directory_id,
        endpoints=[kind.Endpoint(name=listener, host=host, port=port)],
        k_raft_version_feature=kind.KRaftVersionFeature(min_supported_version=0, max_supported_version=1),
    )
    log.contents.kraft_version = log.image.kraft_version = 1
    log.contents.voters = bytes(kind(voters=[voter]).encode(0))


def take_over(
    log: MetadataLog,
    node_id: int,
    endpoints: Iterable[Endpoint],
    directories: list[bytes],
    rack: str | None,
    min_isr: str = "1",
    *,
    some_offline: bool = False,
) -> None:
    """Lead a new quorum epoch, register this broker in it, and lead every partition. Nothing is written in an
    epoch that another node led, or this node before a crash.

    `directories`: the ids of those that are online. `some_offline`: there are others, and what is not in these may
    lie there.
    """
    is_new = log.is_new
    log.begin_epoch(node_id)
    log.append_leader_change(node_id)
    if is_new:
        format_log(log, min_isr)
    elif log.open_transaction:
        log.append([(AbortTransactionRecord(reason="The controller changed."), 0)])
        log.open_transaction = False
    image = log.image
    epoch = log.end_offset
    changes = [
        (BrokerRegistrationChangeRecord(broker_id=node_id, broker_epoch=epoch, fenced=UNFENCED), 0),
        *(
            change
            for topic in image.topics.values()
            for change in lead_again(image, topic, node_id, directories, some_offline)
        ),
    ]
    log.append([registration(image, node_id, epoch, endpoints, directories, rack)], *in_batches(changes))


def registration(
    image: Image,
    node_id: int,
    broker_epoch: int,
    endpoints: Iterable[Endpoint],
    directories: list[bytes],
    rack: str | None,
) -> Record:
    version = features.register_broker_version(image.metadata_version)
    record = RegisterBrokerRecord(
        broker_id=node_id,
        incarnation_id=random_uuid(),
        broker_epoch=broker_epoch,
        end_points=[
            RegisterBrokerRecord.BrokerEndpoint(
                name=point.name,
                host=point.host,
                port=point.port,
                security_protocol=SECURITY_PROTOCOLS.index(point.protocol),
            )
            for point in endpoints
        ],
        features=[
            RegisterBrokerRecord.BrokerFeature(
                name=name, min_supported_version=lowest, max_supported_version=highest
            )
            for name, (lowest, highest) in features.SUPPORTED.items()
        ],
        rack=rack,
        fenced=True,
        log_dirs=directories if version >= 3 else [],
        cordoned_log_dirs=[] if version >= 4 else None,
    )
    return record, version


def lead_again(
    image: Image, topic: Topic, node_id: int, directories: list[bytes], some_offline: bool
) -> Iterator[Record]:
    """This node leads each partition in a new epoch, also one it led before a crash; but none whose directory is
    offline."""
    version = features.partition_version(image.metadata_version)
    for index, partition in enumerate(topic.partitions):
        if some_offline and is_elsewhere(partition, directories):
            if partition.leader != NO_LEADER:
                yield resign(image, topic, index, partition)
            continue
        change = PartitionChangeRecord(partition_id=index, topic_id=topic.id, isr=[node_id], leader=node_id)
        if version >= 2 and (partition.eligible_leader_replicas or partition.last_known_elr):
            change.eligible_leader_replicas = []
            change.last_known_elr = []
        if partition.leader_recovery_state:
            change.leader_recovery_state = 0
        alone = len(directories) == 1 and not some_offline
        if version >= 1 and alone and partition.directories != directories:
            change.directories = directories  # Kafka had not yet noted where it put the log
        yield change, version


def is_elsewhere(partition: PartitionInfo, directories: list[bytes]) -> bool:
    """Whether the metadata names a directory, and none of these."""
    named = partition.directories[0] if partition.directories else ZERO
    return named not in NOT_TOLD and named not in directories


def stop(log: MetadataLog, node_id: int) -> None:
    """Controlled shutdown, complete: no leaders, then this broker fenced, as one that is gone is in Kafka."""
    image = log.image
    broker = image.brokers[node_id]
    changes: list[Record] = [
        (
            BrokerRegistrationChangeRecord(
                broker_id=node_id, broker_epoch=broker.epoch, in_controlled_shutdown=1
            ),
            1,
        ),
        *(
            resign(image, topic, index, partition)
            for topic in image.topics.values()
            for index, partition in enumerate(topic.partitions)
            if partition.leader == node_id
        ),
    ]
    fence = BrokerRegistrationChangeRecord(broker_id=node_id, broker_epoch=broker.epoch, fenced=FENCED)
    log.append(*in_batches(changes), [(fence, 0)])


def resign(image: Image, topic: Topic, index: int, partition: PartitionInfo) -> Record:
    """With eligible leader replicas (KIP-966) an empty ISR is allowed, and the last of it stays eligible."""
    change = PartitionChangeRecord(partition_id=index, topic_id=topic.id, leader=NO_LEADER)
    if image.elr_enabled:
        change.isr = []
        change.eligible_leader_replicas = list(partition.isr)
        change.last_known_elr = list(partition.isr)
    return change, features.partition_version(image.metadata_version)


def in_batches(changes: Sequence[Record]) -> list[Sequence[Record]]:
    return [
        changes[start : start + MAX_RECORDS_IN_BATCH]
        for start in range(0, len(changes), MAX_RECORDS_IN_BATCH)
    ]
