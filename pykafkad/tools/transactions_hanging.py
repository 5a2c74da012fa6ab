"""`pykafkad transactions find-hanging`: transactions that are open in a partition, and that no coordinator will end.

Owns the search: the partitions in question, who has a transaction open there for too long, and what the coordinators
say of these producers. Many partitions are asked for in pieces, as Kafka's tool does.
"""

from __future__ import annotations

import time

from pykafkad import errors
from pykafkad.tools import admin, admin_transactions
from pykafkad.tools.failures import Failing, Told
from pykafkad.tools.java import hash_order, long_hash
from pykafkad.tools.transactions_table import Table

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from typing import Any

    from pykafkad.net.client import Cluster
    from pykafkad.tools.admin import Partition
    from pykafkad.tools.options import Options

    Open = tuple[Partition, Any]  # a partition, and a producer that has a transaction open there

AT_A_TIME = 500  # topics or partitions in a request
MINUTE_MS = 60_000
HANGING = (
    "Topic",
    "Partition",
    "ProducerId",
    "ProducerEpoch",
    "CoordinatorEpoch",
    "StartOffset",
    "LastTimestamp",
    "Duration(min)",
)


def check(options: Options) -> None:
    if not options.has_any(("topic", "broker-id")):
        raise Told(
            "The `find-hanging` command requires either --topic or --broker-id to limit the scope of the search"
        )
    if options.has("partition") and not options.has("topic"):
        raise Told("The --partition argument requires --topic to be provided")


def find(cluster: Cluster, options: Options) -> Table:
    candidates = _candidates(cluster, options)
    found = _without_coordinator(cluster, candidates) if candidates else []
    now_ms = int(time.time() * 1000)
    shown = Table("hanging", HANGING)
    for (topic, index), row in found:
        duration_ms = now_ms - row.last_timestamp
        cells = (topic, index, row.producer_id, row.producer_epoch, max(row.coordinator_epoch, -1))
        minutes = int(duration_ms / MINUTE_MS)
        fields = {"topic": topic, "partition": index, **producer_fields(row), "duration_ms": duration_ms}
        shown.add((*cells, row.current_txn_start_offset, row.last_timestamp, minutes), fields)
    return shown


def producer_fields(row: Any) -> dict[str, object]:
    """A producer of a partition for --json: what is not known is null."""
    return {
        "producer_id": row.producer_id,
        "producer_epoch": row.producer_epoch,
        "coordinator_epoch": row.coordinator_epoch if row.coordinator_epoch >= 0 else None,
        "last_sequence": row.last_sequence,
        "last_timestamp": row.last_timestamp,
        "transaction_start_offset": row.current_txn_start_offset if is_open(row) else None,
    }


def is_open(row: Any) -> bool:
    return bool(row.current_txn_start_offset >= 0)


# -- candidates


def _candidates(cluster: Cluster, options: Options) -> list[Open]:
    broker_id = options.number("broker-id")
    longer_than_ms = options.integer("max-transaction-timeout") * MINUTE_MS
    found: list[Open] = []
    for some in _pieces(_partitions(cluster, options, broker_id)):
        shown = "Optional.empty" if broker_id is None else f"Optional[{broker_id}]"
        with Failing(f"Failed to describe producers for {len(some)} partitions on broker {shown}"):
            producers = admin_transactions.describe_producers(cluster, some, broker_id=broker_id)
        now_ms = int(time.time() * 1000)
        found += [
            (partition, row)
            for partition, rows in producers.items()
            for row in rows
            if is_open(row) and now_ms - row.last_timestamp > longer_than_ms
        ]
    return found


def _partitions(cluster: Cluster, options: Options, broker_id: int | None) -> list[Partition]:
    topic = options.value("topic")
    if topic is not None and options.has("partition"):
        return [(topic, options.integer("partition"))]
    names = [topic]
    if topic is None:
        with Failing("Failed to list topics"):
            names = hash_order(row.name for row in admin.list_topics(cluster))
    found = []
    for some in _pieces(names):
        with Failing(f"Failed to describe {len(some)} topics"):
            described = admin.described(admin.describe_topics(cluster, some))
        found += [
            (name, row.index)
            for name in hash_order(some, capacity=len(some))
            for row in described[name].partitions
            if broker_id is None or broker_id in row.replicas
        ]
    return found


def _pieces(things: Sequence[Any]) -> Iterator[Sequence[Any]]:
    for at in range(0, len(things), AT_A_TIME):
        yield things[at : at + AT_A_TIME]


# -- what the coordinators say


def _without_coordinator(cluster: Cluster, candidates: Sequence[Open]) -> list[Open]:
    """Those whose transactional id does not exist, or has no transaction open in the partition."""
    by_producer: dict[int, list[Open]] = {}
    for one in candidates:
        by_producer.setdefault(one[1].producer_id, []).append(one)
    with Failing(f"Failed to list transactions for {len(by_producer)} producers"):
        listed = admin_transactions.list_transactions(cluster, producer_ids=by_producer)
    ids = {row.producer_id: row.transactional_id for row in listed}
    with Failing(f"Failed to describe {len(ids)} transactions"):
        expected = {producer_id: _partitions_of(cluster, id) for producer_id, id in ids.items()}
    return [
        one
        for producer_id in hash_order(by_producer, long_hash)
        for one in by_producer[producer_id]
        if one[0] not in expected.get(producer_id, ())
    ]


def _partitions_of(cluster: Cluster, transactional_id: str) -> frozenset[Partition]:
    try:
        return frozenset(admin_transactions.describe_transaction(cluster, transactional_id).partitions)
    except errors.KafkaError as problem:
        if problem.code != errors.TRANSACTIONAL_ID_NOT_FOUND:
            raise
        return frozenset()
