"""Sane values for fields: names that exist, indexes of partitions, ids that the broker gave out; and which fields of a
struct must agree with each other, so that a handler gets far.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from pykafkad import config_entities
from pykafkad.config_def import Key, rows
from pykafkad.config_keys import OF_4_3
from tests.storm import batches, values
from tests.storm.names import GROUPS, TOPICS, USERS

if TYPE_CHECKING:
    from tests.storm.making import Making

TOPIC_KEYS, GROUP_KEYS = rows(config_entities.TOPIC), rows(config_entities.GROUP)
METRICS_KEYS = rows(config_entities.CLIENT_METRICS)
TOPIC, BROKER, LOGGER, METRICS, GROUP = 2, 4, 8, 16, 32  # kinds of resources
KEYS: dict[int, dict[str, Key]] = {
    TOPIC: TOPIC_KEYS,
    BROKER: OF_4_3.dynamic,
    METRICS: METRICS_KEYS,
    GROUP: GROUP_KEYS,
    LOGGER: {},
}
# Configs that would keep everybody out, or fill the disk: configs.py tries these one at a time.
SHUTTING = frozenset({
    "max.connections", "max.connections.per.ip", "max.connections.per.ip.overrides", "max.connection.creation.rate",
    "connections.max.idle.ms", "preallocate", "log.preallocate", "cordoned.log.dirs",
})  # fmt: skip
RESOURCES = {
    TOPIC: (*TOPICS, "made-1"),
    BROKER: ("", "1", "2"),
    LOGGER: ("1",),
    METRICS: ("metrics-1", "metrics-2"),
    GROUP: GROUPS,
}
QUOTAS = tuple(rows(config_entities.QUOTA_USER_CLIENT))
METADATA_BY_ID = 10  # since this version
DESCRIBE = ("DescribeConfigs",)


def one_of(*choices: Any) -> Callable[[Making], Any]:
    return lambda making: making.chance.choice(choices)


def topics_named(making: Making) -> list[str]:
    return [making.names.topic(making.chance) for _ in range(making.chance.randrange(4))]


PARTITION = one_of(0, 0, 0, 1, 2, 3, 7, 8, -1)
OFFSET = one_of(0, 0, 1, 2, 10, 100, -1, -2, 1 << 40)
MILLISECONDS = one_of(0, 1, 10, 50, 100, 1000, 30_000)
EPOCH = one_of(-1, -1, -1, 0, 0, 1, 5)

# By struct and field, by field, or by the schema's entity type.
SANE: dict[Any, Callable[[Making], Any]] = {
    "topicName": lambda making: making.names.topic(making.chance),
    "groupId": lambda making: making.names.group(making.chance),
    "brokerId": one_of(1, 1, 1, -1, 0, 2),
    "producerId": lambda making: making.names.producer(making.chance)[0],
    "transactionalId": one_of(None, None, "transaction"),
    "TransactionalIds": one_of("transaction", "transaction", "nobody", ""),
    ("InitProducerIdRequest", "TransactionalId"): one_of(None, None, None, "transaction", ""),
    "TopicId": lambda making: making.names.topic_id(making.chance),
    **dict.fromkeys(("Partition", "PartitionIndex", "Partitions", "PartitionIndexes", "Index"), PARTITION),
    **dict.fromkeys(("Offset", "CommittedOffset", "FetchOffset", "LogStartOffset"), OFFSET),
    "Timestamp": one_of(-1, -2, -3, -4, -5, -6, 0, 1, 1_795_000_000_000, 1_795_000_000_002, 1 << 62),
    **dict.fromkeys(("TimeoutMs", "timeoutMs", "RetentionTimeMs", "TransactionTimeoutMs"), MILLISECONDS),
    "MaxWaitMs": one_of(0, 0, 0, 1, 10, 50),
    "MinBytes": one_of(0, 0, 1, 1, 1000),
    **dict.fromkeys(("MaxBytes", "PartitionMaxBytes"), one_of(0, 1, 100, 10_000, 1 << 20, 50 << 20)),
    **dict.fromkeys(("CurrentLeaderEpoch", "LastFetchedEpoch", "LeaderEpoch"), EPOCH),
    **dict.fromkeys(("CommittedLeaderEpoch", "ReplicaEpoch"), EPOCH),
    "IsolationLevel": one_of(0, 1),
    "SessionId": one_of(0, 0, 0, 1),
    "SessionEpoch": one_of(-1, 0, 0, 1),
    "Acks": one_of(-1, -1, 1, 1, 0),
    "Records": lambda making: batches.some(making.chance, making.names.producer(making.chance)),
    "NumPartitions": one_of(1, 1, 2, 3, 8, -1),
    "ReplicationFactor": one_of(1, 1, -1),
    "Count": one_of(1, 2, 4, 9, 12),
    "KeyType": one_of(0, 0, 0, 1, 2),
    "CoordinatorKeys": lambda making: making.names.group(making.chance),
    "Key": lambda making: making.names.group(making.chance),
    "SessionTimeoutMs": one_of(100, 1000, 6000, 10_000),
    "RebalanceTimeoutMs": one_of(10, 50, 100, 500),
    **dict.fromkeys(("GenerationId", "GenerationIdOrMemberEpoch", "MemberEpoch"), one_of(-2, -1, 0, 0, 1, 2, 3)),
    "MemberId": one_of("", "", "me", "nobody-knows-me"),
    **dict.fromkeys(("GroupInstanceId", "InstanceId"), one_of(None, None, None, "static-1", "static-2")),
    "ProtocolType": one_of("consumer", "consumer", "connect"),
    "ProtocolName": one_of("range", "roundrobin"),
    ("JoinGroupRequestProtocol", "Name"): one_of("range", "roundrobin", "cooperative-sticky"),
    "Metadata": lambda making: values.consumer_subscription(making.chance, topics_named(making)),
    "Assignment": lambda making: values.consumer_assignment(making.chance, topics_named(making)),
    "CommittedMetadata": one_of("", "note", None, "x" * 4096, "x" * 4097),
    "SubscribedTopicRegex": lambda making: making.chance.choice((None, *values.PATTERNS)),
    "ServerAssignor": one_of(None, None, "uniform", "range", "nothing"),
    "RackId": one_of("", "rack"),
    "StateFilters": one_of("Ongoing", "Ongoing", "Empty", "CompleteCommit", "nonsense"),
    "DurationFilter": one_of(-1, -1, 0, 1000),
    "TransactionalIdPattern": lambda making: making.chance.choice((None, "trans.*", *values.PATTERNS)),
    "StatesFilter": one_of("Stable", "stable", "Empty", "PreparingRebalance", "nonsense"),
    "TypesFilter": one_of("classic", "consumer", "share", "nonsense"),
    "ResourceType": one_of(TOPIC, TOPIC, BROKER, GROUP, METRICS),
    "ResourceTypes": one_of(TOPIC, BROKER, LOGGER, METRICS, GROUP),
    "ConfigOperation": one_of(0, 0, 1, 2, 3),
    "ConfigurationKeys": lambda making: making.chance.choice((*TOPIC_KEYS, *OF_4_3.dynamic)),
    "EntityType": one_of("user", "client-id", "ip"),
    ("ComponentData", "Match"): one_of(None, *USERS, "10.0.0.1"),
    "EntityName": one_of(None, *USERS),
    ("OpData", "Key"): one_of(*QUOTAS),
    "MatchType": one_of(0, 1, 2),
    "ElectionType": one_of(0, 1),
    "UpgradeType": one_of(1, 2, 3),
    "MaxVersionLevel": one_of(0, 1, 2, 25),
    "Feature": one_of("metadata.version", "group.version", "transaction.version", "kraft.version", "nonsense"),
    "EndpointType": one_of(1, 2),
    "ResponsePartitionLimit": one_of(1, 2, 100, 2000),
    "ClientInstanceId": lambda making: making.names.instance(making.chance)[0],
    "SubscriptionId": lambda making: making.names.instance(making.chance)[1],
    "CompressionType": one_of(0, 1, 2, 3, 4),
    "ProducerEpoch": one_of(-1, -1, 0, 1),
    "ClusterId": lambda making: making.chance.choice((None, making.names.cluster_id)),
    "Path": lambda making: making.chance.choice((*making.names.directories, "/nowhere")),
    "ClientSoftwareName": one_of("storm", "apache-kafka-java"),
    "ClientSoftwareVersion": one_of("1.0", "4.3.1"),
    ("UserName", "Name"): one_of(*USERS),
    ("Listener", "Name"): one_of("CONTROLLER", "PLAINTEXT"),
    "Reason": one_of(None, "because"),
    ("AclCreation", "ResourceType"): one_of(2, 2, 3, 4, 5, 6, 7, 1, 99),
    ("AclCreation", "ResourceName"): one_of("kafka-cluster", "*", "", "a/b", *TOPICS),
    "ResourcePatternType": one_of(3, 3, 4, 4, 1, 2, 99),
    "Principal": one_of("User:storm", "User:*", "nobody"),
    ("AclCreation", "Host"): one_of("*", "10.0.0.1", ""),
    ("AclCreation", "Operation"): one_of(2, 3, 4, 8, 12, 15, 1, 99),
    "ResourceTypeFilter": one_of(1, 1, 2, 4, 99),
    "ResourceNameFilter": one_of(None, None, "kafka-cluster", *TOPICS),
    "PatternTypeFilter": one_of(1, 2, 3, 4, 99),
    **dict.fromkeys(("PrincipalFilter", "HostFilter"), one_of(None, None, None, "*", "User:storm")),
    **dict.fromkeys((("DescribeAclsRequest", "Operation"), ("DeleteAclsFilter", "Operation")), one_of(1, 1, 3, 99)),
    "PermissionType": one_of(1, 2, 3, 3, 99),
}  # fmt: skip


def a_config(making: Making, resource_type: int) -> tuple[str, str | None]:
    """A key that such a resource has, and a value."""
    chance = making.chance
    usable = [key for key in KEYS[resource_type].values() if key.name not in SHUTTING]
    if not usable:
        return chance.choice(("root", "net", "server")), chance.choice(("INFO", "DEBUG", "nonsense"))
    key = chance.choice(usable)
    return key.name, None if chance.random() < 0.05 else making.config_value(key)


def agree_on_a_resource(making: Making, made: Any, version: int) -> None:
    """A type of resource, a resource of that type, and configs that it has."""
    chance = making.chance
    kinds = (TOPIC, TOPIC, BROKER, METRICS, GROUP)
    made.resource_type = chance.choice((*kinds, LOGGER) if making.api in DESCRIBE else kinds)
    made.resource_name = chance.choice(RESOURCES[made.resource_type])
    if making.api in DESCRIBE:
        if made.configuration_keys and KEYS[made.resource_type]:
            made.configuration_keys = [
                chance.choice(list(KEYS[made.resource_type])) for _ in made.configuration_keys
            ]
        return
    for config in made.configs:
        config.name, config.value = a_config(making, made.resource_type)


def agree_on_a_topic_to_create(making: Making, made: Any, version: int) -> None:
    chance = making.chance
    made.name = f"made-{chance.randrange(30)}" if chance.random() < 0.8 else made.name
    if chance.random() < 0.7:
        made.assignments = []
    elif chance.random() < 0.7:
        made.num_partitions = made.replication_factor = -1
        for index, row in enumerate(made.assignments):
            row.partition_index, row.broker_ids = index, [1]
    for config in made.configs:
        config.name, config.value = a_config(making, TOPIC)


def agree_on_a_member(making: Making, made: Any, version: int) -> None:
    """A member of that group, as the broker knows it."""
    member, generation = making.names.member(making.chance, made.group_id)
    made.member_id = member
    for attribute in ("generation_id", "generation_id_or_member_epoch", "member_epoch"):
        if hasattr(made, attribute):
            setattr(made, attribute, generation)


def agree_to_join(making: Making, made: Any, version: int) -> None:
    made.group_id = making.chance.choice(GROUPS[: len(GROUPS) // 2])
    made.protocol_type = "consumer"
    if making.chance.random() < 0.6:
        made.member_id = making.names.member(making.chance, made.group_id)[0]


def agree_on_a_heartbeat(making: Making, made: Any, version: int) -> None:
    """Three kinds of heartbeats: join, continue, leave."""
    chance = making.chance
    made.group_id = chance.choice(GROUPS[len(GROUPS) // 2 :])
    kind = chance.random()
    if kind < 0.5:
        made.member_epoch = 0
        made.member_id = f"member-{chance.randrange(4)}" if version else ""
        made.topic_partitions = []
        made.rebalance_timeout_ms = 1000
        if made.subscribed_topic_names is None and made.subscribed_topic_regex is None:
            made.subscribed_topic_names = [making.names.topic(chance)]
        return
    agree_on_a_member(making, made, version)
    if kind < 0.6:
        made.member_epoch = -1


def agree_on_a_session(making: Making, made: Any, version: int) -> None:
    if making.chance.random() < 0.4:
        made.session_id, made.session_epoch = (
            making.names.session(making.chance),
            making.chance.choice((1, 2, 3)),
        )
    made.replica_id = -1


def agree_on_no_id(making: Making, made: Any, version: int) -> None:
    """By name or by id, not both."""
    if making.chance.random() < 0.7:
        made.topic_id = bytes(16)
    elif making.api != "Metadata" or version >= METADATA_BY_ID:
        made.name = None


def agree_on_a_quota(making: Making, made: Any, version: int) -> None:
    """One entity of each type; never for all addresses, nor for ours, since then nobody else could connect any more."""
    parts = {part.entity_type: part for part in made.entity}
    made.entity = list(parts.values())
    for part in made.entity:
        if part.entity_type == "ip":
            part.entity_name = making.chance.choice(
                ("10.0.0.1", "::1", "fe80::1%lo", "nobody.invalid", "9" * 300)
            )
            made.entity = [part]
            for op in made.ops:
                op.key = "connection_creation_rate"


AGREE: dict[str, Callable[[Making, Any, int], None]] = {
    "AlterConfigsResource": agree_on_a_resource,
    "DescribeConfigsResource": agree_on_a_resource,
    "CreatableTopic": agree_on_a_topic_to_create,
    "JoinGroupRequest": agree_to_join,
    "SyncGroupRequest": agree_on_a_member,
    "HeartbeatRequest": agree_on_a_member,
    "LeaveGroupRequest": lambda making, made, version: None,
    "OffsetCommitRequest": agree_on_a_member,
    "ConsumerGroupHeartbeatRequest": agree_on_a_heartbeat,
    "FetchRequest": agree_on_a_session,
    "MetadataRequestTopic": agree_on_no_id,
    "DeleteTopicState": agree_on_no_id,
    "EntryData": agree_on_a_quota,
}
