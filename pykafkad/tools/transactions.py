"""`pykafkad transactions`: what kafka-transactions does."""

from __future__ import annotations

import time
from functools import partial

from pykafkad.tools import admin, admin_transactions, transactions_hanging
from pykafkad.tools.admin_transactions import AbortSpec, partition_text
from pykafkad.tools.commands import Command, CommandLine
from pykafkad.tools.failures import Failing, Told
from pykafkad.tools.options import INTEGER, LONG, SHORT, Option, Options, bootstrap, flag, run, value
from pykafkad.tools.transactions_table import Table

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any

    from pykafkad.net.client import Cluster
    from pykafkad.tools.admin import Partition

COMMANDS: dict[str, Command] = {
    "list": Command("list transactions"),
    "describe": Command("the state of a transactional id", "transactional-id"),
    "describe-producers": Command("the producers that a partition knows", "partition", "topic"),
    "abort": Command("end a hanging transaction in a partition", "partition", "topic"),
    "find-hanging": Command("find transactions that nobody will end"),
    "forceTerminateTransaction": Command("abort the transaction of a transactional id", "transactionalId"),
}
ABOUT = (
    "This tool is used to analyze the transactional state of producers in the cluster. It can be used to detect "
    "and recover from hanging transactions.\n\nusage: pykafkad transactions COMMAND [options]\n\n"
    + "".join(f"  {name:<27}{command.about}\n" for name, command in COMMANDS.items())
)
OPTIONS: tuple[Option, ...] = (
    bootstrap(),
    value("command-config", "FILE", "Configs of the client: a properties file."),
    value(
        "duration-filter",
        "duration (ms)",
        "With list: only transactions that have run longer; all of them if it is negative.",
        kind=LONG,
        available_with=("list",),
    ),
    value(
        "transactional-id-pattern",
        "regular expression",
        "With list: only transactional ids that match it.",
        available_with=("list",),
    ),
    value(
        "transactional-id",
        "transactional id",
        "With describe: the id that is meant.",
        available_with=("describe",),
    ),
    value(
        "topic",
        "topic",
        "With describe-producers and abort: the topic. With find-hanging: search this topic only.",
        available_with=("describe-producers", "abort", "find-hanging"),
    ),
    value(
        "partition",
        "partition",
        "The partition of --topic.",
        kind=INTEGER,
        available_with=("describe-producers", "abort", "find-hanging"),
    ),
    value(
        "broker-id",
        "broker id",
        "With describe-producers: the replica to ask, instead of the leader. With find-hanging: search the "
        "partitions of this broker.",
        kind=INTEGER,
        available_with=("describe-producers", "find-hanging"),
    ),
    value(
        "start-offset",
        "offset",
        "With abort: where the transaction begins, for brokers since 3.0.",
        kind=LONG,
        available_with=("abort",),
    ),
    value(
        "producer-id",
        "producer id",
        "With abort: the producer, for brokers before 3.0, which need the two epochs too.",
        kind=LONG,
        available_with=("abort",),
    ),
    value(
        "producer-epoch", "epoch", "With abort: the producer's epoch.", kind=SHORT, available_with=("abort",)
    ),
    value(
        "coordinator-epoch",
        "epoch",
        "With abort: the coordinator's epoch.",
        kind=INTEGER,
        available_with=("abort",),
    ),
    value(
        "max-transaction-timeout",
        "minutes",
        "With find-hanging: how long a transaction may have been without a record.",
        kind=INTEGER,
        default="15",
        available_with=("find-hanging",),
    ),
    value(
        "transactionalId",
        "transactional id",
        "With forceTerminateTransaction: the id that is meant.",
        available_with=("forceTerminateTransaction",),
    ),
    flag(
        "json",
        "With list, describe, describe-producers and find-hanging: one JSON document on standard output, also for an "
        "error.",
        available_with=("list", "describe", "describe-producers", "find-hanging"),
    ),
)
JSON_EXAMPLE = """\
{"transactions": [{"transactional_id": "billing", "coordinator": 1, "producer_id": 4, "producer_epoch": 2,
  "state": "Ongoing", "timeout_ms": 60000, "start_time_ms": 1700000000000, "duration_ms": 1500,
  "partitions": [{"topic": "orders", "partition": 0}]}]}
"""
JSON_NOTE = (
    "This is describe; list has transactional_id, coordinator, producer_id and state. describe-producers has "
    "`producers` with producer_id, producer_epoch, coordinator_epoch, last_sequence, last_timestamp and "
    "transaction_start_offset, find-hanging the same in `hanging`, with topic, partition and duration_ms. What is not "
    "known, or not there, is null."
)
UNKNOWN_EPOCH = 0  # taken where no coordinator has written yet: not higher than any coordinator's epoch


def main(arguments: Sequence[str]) -> int:
    return run(OPTIONS, arguments, ABOUT, body, as_json=as_json, read=partial(CommandLine, COMMANDS))


def body(options: Options) -> int:
    found = _act(options)
    if found is not None:
        found.show()
    return 0


def as_json(options: Options) -> object:
    found = _act(options)
    assert found is not None, "a command that shows nothing has no --json"
    return found.fields


def _act(options: Options) -> Table | None:
    assert isinstance(options, CommandLine)
    if options.command == "abort":
        _check_abort(options)
    elif options.command == "find-hanging":
        transactions_hanging.check(options)
    cluster = admin.connect(options)
    try:
        return ACTIONS[options.command](cluster, options)
    finally:
        cluster.close()


def list_transactions(cluster: Cluster, options: Options) -> Table:
    duration_ms = options.number("duration-filter")
    with Failing("Failed to list transactions"):
        found = admin_transactions.list_transactions(
            cluster,
            duration_ms=-1 if duration_ms is None else duration_ms,
            pattern=options.value("transactional-id-pattern"),
        )
    shown = Table("transactions", ("TransactionalId", "Coordinator", "ProducerId", "TransactionState"))
    for row in found:
        shown.add(
            (row.transactional_id, row.coordinator, row.producer_id, row.state),
            {
                "transactional_id": row.transactional_id,
                "coordinator": row.coordinator,
                "producer_id": row.producer_id,
                "state": row.state,
            },
        )
    return shown


DESCRIBED = (
    "CoordinatorId",
    "TransactionalId",
    "ProducerId",
    "ProducerEpoch",
    "TransactionState",
    "TransactionTimeoutMs",
    "CurrentTransactionStartTimeMs",
    "TransactionDurationMs",
    "TopicPartitions",
)


def describe(cluster: Cluster, options: Options) -> Table:
    id = options.text("transactional-id")
    with Failing(f"Failed to describe transaction state of transactional-id `{id}`"):
        found = admin_transactions.describe_transaction(cluster, id)
    duration_ms = None if found.start_ms is None else int(time.time() * 1000) - found.start_ms
    fields = {
        "transactional_id": id,
        "coordinator": found.coordinator,
        "producer_id": found.producer_id,
        "producer_epoch": found.producer_epoch,
        "state": found.state,
        "timeout_ms": found.timeout_ms,
        "start_time_ms": found.start_ms,
        "duration_ms": duration_ms,
        "partitions": [{"topic": topic, "partition": index} for topic, index in found.partitions],
    }
    cells = (
        *(found.coordinator, id, found.producer_id, found.producer_epoch, found.state, found.timeout_ms),
        *(found.start_ms, duration_ms, ",".join(map(partition_text, found.partitions))),
    )
    shown = Table("transactions", DESCRIBED)
    shown.add(cells, fields)
    return shown


PRODUCERS = (
    "ProducerId",
    "ProducerEpoch",
    "LatestCoordinatorEpoch",
    "LastSequence",
    "LastTimestamp",
    "CurrentTransactionStartOffset",
)


def describe_producers(cluster: Cluster, options: Options) -> Table:
    partition, broker_id = _partition(options), options.number("broker-id")
    on = "leader" if broker_id is None else f"broker {broker_id}"
    with Failing(f"Failed to describe producers for partition {partition_text(partition)} on {on}"):
        found = admin_transactions.describe_producers(cluster, [partition], broker_id=broker_id)
    shown = Table("producers", PRODUCERS)
    for row in found[partition]:
        fields = transactions_hanging.producer_fields(row)
        start = fields["transaction_start_offset"]
        cells = (row.producer_id, row.producer_epoch, max(row.coordinator_epoch, -1), row.last_sequence)
        shown.add((*cells, row.last_timestamp, start), fields)
    return shown


def _partition(options: Options) -> Partition:
    return options.text("topic"), options.integer("partition")


# -- abort


def _check_abort(options: Options) -> None:
    if options.has("start-offset"):
        return
    if not options.has("producer-id"):
        raise Told(
            "The transaction to abort must be identified either with --start-offset (for brokers on 3.0 or above) or "
            "with --producer-id, --producer-epoch, and --coordinator-epoch (for older brokers)"
        )
    for name in ("producer-epoch", "coordinator-epoch"):
        if not options.has(name):
            raise Told(f"Missing required argument --{name}")


def abort(cluster: Cluster, options: Options) -> None:
    if options.has("start-offset"):
        spec = _open_at(cluster, _partition(options), options.integer("start-offset"))
    else:
        spec = AbortSpec(
            _partition(options),
            options.integer("producer-id"),
            options.integer("producer-epoch"),
            max(UNKNOWN_EPOCH, options.integer("coordinator-epoch")),
        )
    with Failing(f"Failed to abort transaction {spec}"):
        admin_transactions.abort(cluster, spec)


def _open_at(cluster: Cluster, partition: Partition, start_offset: int) -> AbortSpec:
    """The transaction that is open in the partition since this offset."""
    shown = partition_text(partition)
    with Failing(f"Failed to validate producer state for partition {shown}"):
        rows = admin_transactions.describe_producers(cluster, [partition])[partition]
    found: Any = next((row for row in rows if row.current_txn_start_offset == start_offset >= 0), None)
    if found is None:
        raise Told(
            f"Could not find any open transactions starting at offset {start_offset} on partition {shown}"
        )
    epoch = max(UNKNOWN_EPOCH, found.coordinator_epoch)
    return AbortSpec(partition, found.producer_id, found.producer_epoch, epoch)


def terminate(cluster: Cluster, options: Options) -> None:
    id = options.text("transactionalId")
    with Failing(f"Failed to force terminate transactionalId `{id}`"):
        admin_transactions.fence(cluster, id)


ACTIONS: dict[str, Callable[[Cluster, Options], Table | None]] = {
    "list": list_transactions,
    "describe": describe,
    "describe-producers": describe_producers,
    "abort": abort,
    "find-hanging": transactions_hanging.find,
    "forceTerminateTransaction": terminate,
}
