"""Requests of the tools about topics, configs and partitions.

Owns the requests and the reading of their answers. An error of the whole request is raised as KafkaError, errors of
single entries are in what is returned. A partition is a pair (topic, index) throughout. KIP-966 (eligible leader
replicas, DescribeTopicPartitions).
"""

from __future__ import annotations

from pykafkad import errors, uuids
from pykafkad.messages import (
    CreatePartitionsRequest,
    CreateTopicsRequest,
    DeleteTopicsRequest,
    DescribeConfigsRequest,
    DescribeTopicPartitionsRequest,
    IncrementalAlterConfigsRequest,
    ListConfigResourcesRequest,
    ListOffsetsRequest,
    ListPartitionReassignmentsRequest,
)
from pykafkad.net.client import Cluster, api_timeouts, check
from pykafkad.net.connection import UnsupportedVersion
from pykafkad.tools import settings
from pykafkad.tools.options import Options

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from typing import Any

Partition = tuple[str, int]

CALL_MS = 30_000  # the time-out that brokers get for a change

TOPIC, BROKER, BROKER_LOGGER, CLIENT_METRICS, GROUP = 2, 4, 8, 16, 32  # types of config resources
SET, DELETE = 0, 1  # operations on configs

LATEST, EARLIEST, MAX_TIMESTAMP, EARLIEST_LOCAL, LATEST_TIERED, EARLIEST_PENDING_UPLOAD = range(-1, -7, -1)
# the versions of ListOffsets in which these timestamps were added
TIMESTAMPS_SINCE = {MAX_TIMESTAMP: 7, EARLIEST_LOCAL: 8, LATEST_TIERED: 9, EARLIEST_PENDING_UPLOAD: 11}

PARTITIONS_IN_ANSWER = 2000  # of DescribeTopicPartitions


def connect(options: Options, *, client_id: str = "adminclient-1", timeout_ms: int | None = None) -> Cluster:
    """The cluster of --bootstrap-server, with the configs of --command-config."""
    file = options.value("command-config")
    configs = settings.load(file) if file is not None else {}
    settings.check_security(configs)
    server = settings.bootstrap(options.value("bootstrap-server"), configs)
    return connect_to(server, configs, client_id=client_id, timeout_ms=timeout_ms)


def connect_to(
    server: str,
    configs: Mapping[str, str],
    *,
    client_id: str = "adminclient-1",
    timeout_ms: int | None = None,
) -> Cluster:
    timeouts = api_timeouts(configs)
    if timeout_ms is not None:
        timeouts["api_timeout_ms"] = timeout_ms
    return Cluster(server, client_id=configs.get("client.id", client_id), **timeouts)


# -- topics


class PartitionDescription:
    """The replicas of a partition. `leader` is None if there is none, the last two are None if the broker does not
    report them.
    """

    __slots__ = ("eligible", "index", "isr", "last_known", "leader", "replicas")

    def __init__(self, row: Any, eligible: list[int] | None, last_known: list[int] | None) -> None:
        self.index: int = row.partition_index
        self.leader: int | None = row.leader_id if row.leader_id >= 0 else None
        self.replicas: list[int] = row.replica_nodes
        self.isr: list[int] = row.isr_nodes
        self.eligible = eligible
        self.last_known = last_known


class TopicDescription:
    __slots__ = ("id", "is_internal", "name", "partitions")

    def __init__(self, name: str, id: bytes, is_internal: bool) -> None:
        self.name = name
        self.id = id
        self.is_internal = is_internal
        self.partitions: list[PartitionDescription] = []


def list_topics(cluster: Cluster) -> list[TopicDescription]:
    """Every topic, with its partitions."""
    response = cluster.attempt("listTopics", lambda: cluster.metadata(None))
    return [_from_metadata(row) for row in response.topics]


def _from_metadata(row: Any) -> TopicDescription:
    found = TopicDescription(row.name, row.topic_id, row.is_internal)
    found.partitions = [PartitionDescription(partition, None, None) for partition in row.partitions]
    found.partitions.sort(key=lambda partition: partition.index)
    return found


def describe_topics(
    cluster: Cluster, names: Sequence[str], *, at_a_time: int = PARTITIONS_IN_ANSWER
) -> dict[str, TopicDescription | errors.KafkaError]:
    """The topics of these names, each with its description or its error."""
    if not names:
        return {}
    try:
        return _describe_by_partitions(cluster, sorted(set(names)), at_a_time)
    except UnsupportedVersion:
        response = cluster.attempt("describeTopics", lambda: cluster.metadata(names))
        return {row.name: _described(row) for row in response.topics}


def _described(row: Any) -> TopicDescription | errors.KafkaError:
    if row.error_code:
        return errors.KafkaError(row.error_code)
    return _from_metadata(row)


def _describe_by_partitions(
    cluster: Cluster, names: Sequence[str], at_a_time: int
) -> dict[str, TopicDescription | errors.KafkaError]:
    found: dict[str, TopicDescription | errors.KafkaError] = {}
    cursor = None
    while True:
        start = cursor.topic_name if cursor is not None else ""
        request = DescribeTopicPartitionsRequest(
            topics=[
                DescribeTopicPartitionsRequest.TopicRequest(name=name) for name in names if name >= start
            ],
            response_partition_limit=at_a_time,
            cursor=cursor,
        )
        response = cluster.ask_any("DescribeTopicPartitions", request)
        for row in response.topics:
            if row.error_code:
                found[row.name] = errors.KafkaError(row.error_code)
                continue
            topic = found.get(row.name)
            if not isinstance(topic, TopicDescription):
                topic = found[row.name] = TopicDescription(row.name, row.topic_id, row.is_internal)
            topic.partitions += [
                PartitionDescription(entry, entry.eligible_leader_replicas, entry.last_known_elr)
                for entry in row.partitions
            ]
        if response.next_cursor is None:
            return found
        cursor = DescribeTopicPartitionsRequest.Cursor(
            topic_name=response.next_cursor.topic_name, partition_index=response.next_cursor.partition_index
        )


def described(found: Mapping[str, TopicDescription | errors.KafkaError]) -> dict[str, TopicDescription]:
    """The same without errors: the first one is raised."""
    clean = {}
    for name, topic in found.items():
        if isinstance(topic, errors.KafkaError):
            raise topic
        clean[name] = topic
    return clean


def describe_topic_id(cluster: Cluster, topic_id: bytes) -> TopicDescription:
    response = cluster.attempt("describeTopics", lambda: cluster.metadata([], topic_ids=[topic_id]))
    (row,) = response.topics
    check(row.error_code)
    return _from_metadata(row)


def create_topic(
    cluster: Cluster,
    name: str,
    *,
    partitions: int | None,
    replication_factor: int | None,
    assignment: Mapping[int, Sequence[int]],
    configs: Mapping[str, str],
) -> None:
    topic = CreateTopicsRequest.CreatableTopic(
        name=name,
        num_partitions=-1 if partitions is None or assignment else partitions,
        replication_factor=-1 if replication_factor is None or assignment else replication_factor,
        assignments=[
            CreateTopicsRequest.CreatableReplicaAssignment(partition_index=index, broker_ids=list(brokers))
            for index, brokers in assignment.items()
        ],
        configs=[
            CreateTopicsRequest.CreatableTopicConfig(name=key, value=text) for key, text in configs.items()
        ],
    )
    request = CreateTopicsRequest(topics=[topic], timeout_ms=CALL_MS)
    (row,) = _at_controller(cluster, "createTopics", request, "topics")
    check(row.error_code, row.error_message)


def create_partitions(
    cluster: Cluster, wanted: Mapping[str, tuple[int, Sequence[Sequence[int]] | None]]
) -> None:
    """Add partitions: their number in all, and the replicas of the new ones (None: the controller chooses)."""
    request = CreatePartitionsRequest(
        topics=[
            CreatePartitionsRequest.CreatePartitionsTopic(
                name=name,
                count=count,
                assignments=None
                if places is None
                else [
                    CreatePartitionsRequest.CreatePartitionsAssignment(broker_ids=list(brokers))
                    for brokers in places
                ],
            )
            for name, (count, places) in wanted.items()
        ],
        timeout_ms=CALL_MS,
    )
    for row in _at_controller(cluster, "createPartitions", request, "results"):
        check(row.error_code, row.error_message)


def delete_topics(cluster: Cluster, names: Sequence[str]) -> None:
    request = DeleteTopicsRequest(
        topics=[DeleteTopicsRequest.DeleteTopicState(name=name) for name in names], timeout_ms=CALL_MS
    )

    def call() -> Any:
        connection = cluster.controller()
        request.topic_names = [] if connection.version_for(request) >= 6 else list(names)
        request.topics = request.topics if not request.topic_names else []
        return cluster.call(connection, request, wait_ms=CALL_MS)

    for row in cluster.attempt("deleteTopics", call).responses:
        check(row.error_code, row.error_message)


def _at_controller(cluster: Cluster, name: str, request: Any, rows: str) -> list[Any]:
    """The rows of the answer; the request is sent again if the controller has moved."""

    def call() -> list[Any]:
        response = cluster.call(cluster.controller(), request, wait_ms=CALL_MS)
        found: list[Any] = getattr(response, rows)
        for row in found:
            if row.error_code == errors.NOT_CONTROLLER:
                cluster.controller_id = -1
                raise errors.KafkaError(row.error_code)
        return found

    return cluster.attempt(name, call)


def list_reassignments(cluster: Cluster, partitions: Iterable[Partition]) -> dict[Partition, Any]:
    """The reassignments in progress; none if the broker does not serve this API."""
    by_topic = grouped(partitions)
    request = ListPartitionReassignmentsRequest(
        topics=[
            ListPartitionReassignmentsRequest.ListPartitionReassignmentsTopics(
                name=name, partition_indexes=indexes
            )
            for name, indexes in by_topic.items()
        ],
        timeout_ms=CALL_MS,
    )
    try:
        response = cluster.attempt(
            "listPartitionReassignments", lambda: cluster.call(cluster.controller(), request)
        )
        check(response.error_code, response.error_message)
    except errors.KafkaError as problem:
        if problem.code in (errors.UNSUPPORTED_VERSION, errors.CLUSTER_AUTHORIZATION_FAILED):
            return {}
        raise
    return {(topic.name, row.partition_index): row for topic in response.topics for row in topic.partitions}


def grouped(partitions: Iterable[Partition]) -> dict[str, list[int]]:
    found: dict[str, list[int]] = {}
    for topic, index in partitions:
        found.setdefault(topic, []).append(index)
    return found


# -- configs


def describe_configs(
    cluster: Cluster, resources: Sequence[tuple[int, str]], *, synonyms: bool = False
) -> dict[tuple[int, str], list[Any]]:
    """The configs of each resource; the first error is raised. A broker is asked for its own configs."""
    found: dict[tuple[int, str], list[Any]] = {}
    own = [row for row in resources if row[0] in (BROKER, BROKER_LOGGER) and row[1]]
    shared = [row for row in resources if row not in own]
    for batch in ([shared] if shared else []) + [[row] for row in own]:
        request = DescribeConfigsRequest(
            resources=[
                DescribeConfigsRequest.DescribeConfigsResource(
                    resource_type=kind, resource_name=name, configuration_keys=None
                )
                for kind, name in batch
            ],
            include_synonyms=synonyms,
            include_documentation=False,
        )
        response = _ask_owner(cluster, "describeConfigs", request, batch[0])
        for row in response.results:
            check(row.error_code, row.error_message)
            found[row.resource_type, row.resource_name] = row.configs
    return found


def alter_configs(
    cluster: Cluster, resource: tuple[int, str], changes: Sequence[tuple[int, str, str]]
) -> None:
    """Set and delete configs: (operation, key, value)."""
    kind, name = resource
    entries = [
        IncrementalAlterConfigsRequest.AlterableConfig(name=key, config_operation=operation, value=text)
        for operation, key, text in changes
    ]
    request = IncrementalAlterConfigsRequest(
        resources=[
            IncrementalAlterConfigsRequest.AlterConfigsResource(
                resource_type=kind, resource_name=name, configs=entries
            )
        ],
        validate_only=False,
    )
    for row in _ask_owner(cluster, "incrementalAlterConfigs", request, resource).responses:
        check(row.error_code, row.error_message)


def _ask_owner(cluster: Cluster, name: str, request: Any, resource: tuple[int, str]) -> Any:
    """Ask the broker whose configs these are, or any broker for other resources."""
    kind, owner = resource
    if kind not in (BROKER, BROKER_LOGGER) or not owner:
        return cluster.ask_any(name, request)
    return cluster.attempt(name, lambda: cluster.call(cluster.broker(int(owner)), request))


def list_config_resources(cluster: Cluster, kind: int) -> list[str]:
    """Names of the resources of a type that have configs."""
    request = ListConfigResourcesRequest(resource_types=[kind])

    def call() -> Any:
        connection = cluster.any_broker()
        if connection.version_for(request) == 0:  # it lists client metrics alone, without types
            if kind != CLIENT_METRICS:
                raise UnsupportedVersion("LIST_CONFIG_RESOURCES")
            request.resource_types = []
        return cluster.call(connection, request)

    response = cluster.attempt("listConfigResources", call)
    check(response.error_code)
    return [row.resource_name for row in response.config_resources]


# -- offsets of logs


def list_offsets(
    cluster: Cluster, wanted: Mapping[Partition, int], *, isolation: int = 0, timeout_ms: int | None = None
) -> dict[Partition, int | errors.KafkaError]:
    """The offset for each partition's timestamp (-1: there is none), or its error."""
    found: dict[Partition, int | errors.KafkaError] = {}

    def call() -> None:
        left = {key: time for key, time in wanted.items() if not isinstance(found.get(key), int)}
        for leader, keys in _by_leader(cluster, left, found).items():
            _ask_offsets(cluster, leader, {key: left[key] for key in keys}, isolation, found)
        for key in left:
            problem = found[key]
            if isinstance(problem, errors.KafkaError) and problem.code in _MOVED:
                raise problem

    try:
        cluster.attempt("listOffsets", call, timeout_ms=timeout_ms)
    except errors.KafkaError:
        if len(found) < len(wanted):
            raise
    return found


_MOVED = frozenset(
    {
        errors.LEADER_NOT_AVAILABLE,
        errors.NOT_LEADER_OR_FOLLOWER,
        errors.FENCED_LEADER_EPOCH,
        errors.UNKNOWN_LEADER_EPOCH,
        errors.OFFSET_NOT_AVAILABLE,
        errors.KAFKA_STORAGE_ERROR,
    }
)


def _by_leader(
    cluster: Cluster, keys: Iterable[Partition], found: dict[Partition, int | errors.KafkaError]
) -> dict[int, list[Partition]]:
    """The partitions of each leader; the errors of those without one are put into `found`."""
    by_topic = grouped(keys)
    topics = {row.name: row for row in cluster.metadata(list(by_topic)).topics}
    leaders: dict[int, list[Partition]] = {}
    for topic, indexes in by_topic.items():
        row = topics[topic]
        known = {partition.partition_index: partition for partition in row.partitions}
        for index in indexes:
            partition = known.get(index)
            if row.error_code or partition is None:
                found[topic, index] = errors.KafkaError(row.error_code or errors.UNKNOWN_TOPIC_OR_PARTITION)
            elif partition.leader_id < 0:
                found[topic, index] = errors.KafkaError(errors.LEADER_NOT_AVAILABLE)
            else:
                leaders.setdefault(partition.leader_id, []).append((topic, index))
    return leaders


def _ask_offsets(
    cluster: Cluster,
    leader: int,
    wanted: Mapping[Partition, int],
    isolation: int,
    found: dict[Partition, int | errors.KafkaError],
) -> None:
    connection = cluster.broker(leader)
    request = ListOffsetsRequest(
        replica_id=-1,
        isolation_level=isolation,
        topics=[
            ListOffsetsRequest.ListOffsetsTopic(
                name=topic,
                partitions=[
                    ListOffsetsRequest.ListOffsetsPartition(
                        partition_index=index, timestamp=wanted[topic, index]
                    )
                    for index in indexes
                ],
            )
            for topic, indexes in grouped(wanted).items()
        ],
        timeout_ms=CALL_MS,
    )
    needed = max(TIMESTAMPS_SINCE.get(time, 1) for time in wanted.values())
    if connection.version_for(request) < needed:
        problem = errors.KafkaError(
            errors.UNSUPPORTED_VERSION,
            f"Broker {leader} does not support the timestamp that was asked for",
        )
        found.update(dict.fromkeys(wanted, problem))
        return
    for topic in cluster.call(connection, request).topics:
        for row in topic.partitions:
            problem_code = row.error_code
            found[topic.name, row.partition_index] = (
                errors.KafkaError(problem_code) if problem_code else row.offset
            )


def id_text(topic_id: bytes) -> str:
    return uuids.to_text(topic_id)
