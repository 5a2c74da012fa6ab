"""Requests of the tools about transactions and the producers of partitions (KIP-664).

Owns the requests and how long which error is waited out; the texts of errors are those of Kafka's admin client.
"""

from __future__ import annotations

from pykafkad import errors
from pykafkad.messages import (
    DescribeProducersRequest,
    DescribeTransactionsRequest,
    InitProducerIdRequest,
    ListTransactionsRequest,
    WriteTxnMarkersRequest,
)
from pykafkad.net.client import TRANSACTION, Cluster, check
from pykafkad.tools.admin import Partition, grouped
from pykafkad.tools.java import hash_order, partition_hash

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Sequence
    from typing import Any

STATES = frozenset(
    {
        "Ongoing",
        "PrepareAbort",
        "PrepareCommit",
        "CompleteAbort",
        "CompleteCommit",
        "Empty",
        "PrepareEpochFence",
    }
)
UNKNOWN_STATE = "Unknown"  # what is shown for a state that is not among them
# the versions of ListTransactions in which its filters were added
DURATION_SINCE, PATTERN_SINCE = 1, 2

NOT_READY = frozenset(
    {errors.COORDINATOR_LOAD_IN_PROGRESS, errors.COORDINATOR_NOT_AVAILABLE, errors.NOT_COORDINATOR}
)
NOT_LED = frozenset({errors.NOT_LEADER_OR_FOLLOWER, errors.UNKNOWN_TOPIC_OR_PARTITION})
NOT_LED_TO_WRITE = NOT_LED | {errors.REPLICA_NOT_AVAILABLE, errors.BROKER_NOT_AVAILABLE}


class Listing:
    __slots__ = ("coordinator", "producer_id", "state", "transactional_id")

    def __init__(self, row: Any, coordinator: int) -> None:
        self.transactional_id: str = row.transactional_id
        self.producer_id: int = row.producer_id
        self.state = shown_state(row.transaction_state)
        self.coordinator = coordinator


class Description:
    """A transactional id. `start_ms` is None before its first transaction."""

    __slots__ = (
        "coordinator",
        "partitions",
        "producer_epoch",
        "producer_id",
        "start_ms",
        "state",
        "timeout_ms",
        "transactional_id",
    )

    def __init__(self, row: Any, coordinator: int) -> None:
        self.transactional_id: str = row.transactional_id
        self.coordinator = coordinator
        self.producer_id: int = row.producer_id
        self.producer_epoch: int = row.producer_epoch
        self.state = shown_state(row.transaction_state)
        self.timeout_ms: int = row.transaction_timeout_ms
        start: int = row.transaction_start_time_ms
        self.start_ms = start if start >= 0 else None
        partitions = [(topic.topic, index) for topic in row.topics for index in topic.partitions]
        self.partitions: list[Partition] = hash_order(partitions, partition_hash)


class AbortSpec:
    """Which transaction to end in which partition."""

    __slots__ = ("coordinator_epoch", "partition", "producer_epoch", "producer_id")

    def __init__(
        self, partition: Partition, producer_id: int, producer_epoch: int, coordinator_epoch: int
    ) -> None:
        self.partition = partition
        self.producer_id = producer_id
        self.producer_epoch = producer_epoch
        self.coordinator_epoch = coordinator_epoch

    def __str__(self) -> str:
        return (
            f"AbortTransactionSpec(topicPartition={partition_text(self.partition)}, "
            f"producerId={self.producer_id}, producerEpoch={self.producer_epoch}, "
            f"coordinatorEpoch={self.coordinator_epoch})"
        )


def partition_text(partition: Partition) -> str:
    return f"{partition[0]}-{partition[1]}"


def shown_state(state: str) -> str:
    return state if state in STATES else UNKNOWN_STATE


# -- transactional ids


def list_transactions(
    cluster: Cluster, *, duration_ms: int = -1, pattern: str | None = None, producer_ids: Collection[int] = ()
) -> list[Listing]:
    """Those of every broker that coordinates some, in the order of their answers."""
    request = ListTransactionsRequest(
        producer_id_filters=list(producer_ids),
        duration_filter=duration_ms,
        transactional_id_pattern=pattern or None,
    )
    found: dict[int, list[Listing]] = {}

    def call() -> None:
        cluster.metadata([])
        for node_id in sorted(cluster.brokers):
            if node_id not in found:
                found[node_id] = _listed_by(cluster, node_id, request)

    retriable = {errors.COORDINATOR_LOAD_IN_PROGRESS}
    cluster.attempt("listTransactions", call, retriable=retriable.__contains__)
    return [row for rows in found.values() for row in rows]


def _listed_by(cluster: Cluster, node_id: int, request: Any) -> list[Listing]:
    connection = cluster.broker(node_id)
    _check_filters(request, connection.version_for(request))
    response = cluster.call(connection, request)
    if response.error_code == errors.COORDINATOR_NOT_AVAILABLE:
        why = "failed because the coordinator is shutting down"
    else:
        why = "failed with an unexpected exception"
    check(response.error_code, f"ListTransactions request sent to broker {node_id} {why}")
    return [Listing(row, node_id) for row in response.transaction_states]


def _check_filters(request: Any, version: int) -> None:
    """A broker that does not know a filter would list everything."""
    for is_used, since, name in (
        (request.duration_filter >= 0, DURATION_SINCE, "Duration filter"),
        (request.transactional_id_pattern is not None, PATTERN_SINCE, "Transactional id pattern filter"),
    ):
        if is_used and version < since:
            raise errors.KafkaError(
                errors.UNSUPPORTED_VERSION, f"{name} can be set only when using API version {since} or higher"
            )


def describe_transaction(cluster: Cluster, transactional_id: str) -> Description:
    """TRANSACTIONAL_ID_NOT_FOUND if there is no such id."""
    subject = f"DescribeTransactions request for transactionalId `{transactional_id}`"
    words = {
        errors.TRANSACTIONAL_ID_AUTHORIZATION_FAILED: "failed due to authorization failure",
        errors.TRANSACTIONAL_ID_NOT_FOUND: "failed because the ID could not be found",
    }

    def call() -> Description:
        node_id = cluster.coordinator_id(transactional_id, TRANSACTION)
        request = DescribeTransactionsRequest(transactional_ids=[transactional_id])
        (row,) = cluster.call(cluster.broker(node_id), request).transaction_states
        check(row.error_code, f"{subject} {words.get(row.error_code, 'failed due to unexpected error')}")
        return Description(row, node_id)

    return cluster.attempt("describeTransactions", call, retriable=NOT_READY.__contains__)


def fence(cluster: Cluster, transactional_id: str) -> None:
    """A new epoch for the id: whoever has it is fenced, and its transaction aborted."""
    subject = f"InitProducerId request for transactionalId `{transactional_id}`"
    words = {
        errors.CLUSTER_AUTHORIZATION_FAILED: "failed due to cluster authorization failure",
        errors.TRANSACTIONAL_ID_AUTHORIZATION_FAILED: "failed due to transactional ID authorization failure",
    }
    request = InitProducerIdRequest(
        transactional_id=transactional_id,
        transaction_timeout_ms=cluster.request_timeout_ms,
        producer_id=-1,
        producer_epoch=-1,
    )

    def call() -> None:
        response = cluster.call(cluster.coordinator(transactional_id, TRANSACTION), request)
        check(
            response.error_code,
            f"{subject} {words.get(response.error_code, 'failed due to unexpected error')}",
        )

    waited_out = NOT_READY | {errors.CONCURRENT_TRANSACTIONS}
    cluster.attempt("fenceProducer", call, retriable=waited_out.__contains__)


# -- producers of partitions


def describe_producers(
    cluster: Cluster, partitions: Sequence[Partition], *, broker_id: int | None = None
) -> dict[Partition, list[Any]]:
    """The rows of the producers that a partition's leader knows, or that this broker knows. The first error is raised."""
    found: dict[Partition, list[Any]] = {}
    waited_out = NOT_LED if broker_id is None else frozenset({errors.UNKNOWN_TOPIC_OR_PARTITION})

    def call() -> None:
        left = [key for key in partitions if key not in found]
        leaders = {broker_id: left} if broker_id is not None else by_leader(cluster, left)
        for node_id, keys in leaders.items():
            _ask_producers(cluster, node_id, keys, found, broker_id)

    cluster.attempt(
        "describeProducers", call, retriable=(waited_out | {errors.BROKER_NOT_AVAILABLE}).__contains__
    )
    keys = hash_order(partitions, partition_hash, capacity=len(partitions))
    return {key: found[key] for key in keys}


def _ask_producers(
    cluster: Cluster,
    node_id: int,
    partitions: Iterable[Partition],
    found: dict[Partition, list[Any]],
    broker_id: int | None,
) -> None:
    request = DescribeProducersRequest(
        topics=[
            DescribeProducersRequest.TopicRequest(name=name, partition_indexes=indexes)
            for name, indexes in grouped(partitions).items()
        ]
    )
    problem: errors.KafkaError | None = None
    for topic in cluster.call(cluster.broker(node_id), request).topics:
        for row in topic.partitions:
            if row.error_code:
                text = _producers_text((topic.name, row.partition_index), row, broker_id)
                problem = problem or errors.KafkaError(row.error_code, text)
            else:
                found[topic.name, row.partition_index] = row.active_producers
    if problem is not None:
        raise problem


def _producers_text(partition: Partition, row: Any, broker_id: int | None) -> str | None:
    shown = partition_text(partition)
    if row.error_code in NOT_LED:
        on = f"Failed to describe active producers for partition {shown} on brokerId {broker_id}"
        return on if broker_id is not None and row.error_code == errors.NOT_LEADER_OR_FOLLOWER else None
    if row.error_code == errors.INVALID_TOPIC_EXCEPTION:
        why = row.error_message or errors.MESSAGES[row.error_code]
        return f"Failed to fetch metadata for partition {shown} due to invalid topic error: {why}"
    if row.error_code == errors.TOPIC_AUTHORIZATION_FAILED:
        why = f"authorization failure on topic `{partition[0]}`"
        return f"Failed to describe active producers for partition {shown} due to {why}"
    return f"Failed to describe active producers for partition {shown} due to unexpected error"


def by_leader(cluster: Cluster, partitions: Iterable[Partition]) -> dict[int, list[Partition]]:
    """The partitions of each leader; the first one without is an error."""
    wanted = grouped(partitions)
    leaders: dict[int, list[Partition]] = {}
    for topic in cluster.metadata(list(wanted)).topics:
        known = {row.partition_index: row for row in topic.partitions}
        for index in wanted[topic.name]:
            row = known.get(index)
            if topic.error_code == errors.INVALID_TOPIC_EXCEPTION:
                shown = partition_text((topic.name, index))
                text = f"Failed to fetch metadata for partition {shown} due to invalid topic `{topic.name}`"
                raise errors.KafkaError(topic.error_code, text)
            check(topic.error_code)
            if row is None:
                raise errors.KafkaError(errors.UNKNOWN_TOPIC_OR_PARTITION)
            if row.leader_id < 0:
                raise errors.KafkaError(errors.NOT_LEADER_OR_FOLLOWER)
            leaders.setdefault(row.leader_id, []).append((topic.name, index))
    return leaders


def abort(cluster: Cluster, spec: AbortSpec) -> None:
    """An abort marker in the one partition, without the coordinator."""
    subject = f"WriteTxnMarkers request with {spec}"
    words = {
        errors.CLUSTER_AUTHORIZATION_FAILED: "failed due to cluster authorization error",
        errors.INVALID_PRODUCER_EPOCH: "failed due an invalid producer epoch",
        errors.TRANSACTION_COORDINATOR_FENCED: (
            f"failed since the provided coordinator epoch {spec.coordinator_epoch} has been fenced by the active "
            "coordinator"
        ),
    }
    topic, index = spec.partition
    marker = WriteTxnMarkersRequest.WritableTxnMarker(
        producer_id=spec.producer_id,
        producer_epoch=spec.producer_epoch,
        coordinator_epoch=spec.coordinator_epoch,
        transaction_result=False,
        topics=[WriteTxnMarkersRequest.WritableTxnMarkerTopic(name=topic, partition_indexes=[index])],
    )

    def call() -> None:
        (leader,) = by_leader(cluster, [spec.partition])
        response = cluster.call(cluster.broker(leader), WriteTxnMarkersRequest(markers=[marker]))
        (answered,) = response.markers
        code = answered.topics[0].partitions[0].error_code
        unexpected = f"failed due to unexpected error: {errors.MESSAGES.get(code)}"
        check(code, None if code in NOT_LED_TO_WRITE else f"{subject} {words.get(code, unexpected)}")

    cluster.attempt("abortTransaction", call, retriable=NOT_LED_TO_WRITE.__contains__)
