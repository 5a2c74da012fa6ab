"""Records of `__transaction_state`: a transactional id, and its Transaction.

Key: int16 0, then TransactionLogKey. Value: int16 version, then TransactionLogValue; version 1 is written from
transaction version 1 on, and has the producer ids before and after a rotation besides.
"""

from __future__ import annotations

from pykafkad.hot.wire import WireError
from pykafkad.messages import TransactionLogKey, TransactionLogValue
from pykafkad.pure.effects import LARGE_VALUE, UnknownRecord
from pykafkad.pure.transactions.transaction import EMPTY, STATE_NAMES, Transaction

PartitionsSchema = TransactionLogValue.PartitionsSchema
KEY_VERSION = 0
LATEST_VERSION = 1
FLEXIBLE_SINCE = 1  # transaction version
PARTITIONS_MAX = (
    50_000  # that take part, where a record is read; more would hold the loop, and nobody has them
)


def encode_key(transactional_id: str) -> bytes:
    return KEY_VERSION.to_bytes(2) + TransactionLogKey(transactional_id=transactional_id).encode(KEY_VERSION)


def encode_value(transaction: Transaction, transaction_version: int) -> bytes:
    version = LATEST_VERSION if transaction_version >= FLEXIBLE_SINCE else 0
    value = TransactionLogValue(
        producer_id=transaction.producer_id,
        producer_epoch=transaction.epoch,
        transaction_timeout_ms=transaction.timeout_ms,
        transaction_status=transaction.state,
        transaction_partitions=None if transaction.state == EMPTY else by_topic(transaction),
        transaction_last_update_timestamp_ms=transaction.updated_ms,
        transaction_start_timestamp_ms=transaction.start_ms,
    )
    if version:
        value.client_transaction_version = transaction.client_version
        value.previous_producer_id = transaction.previous_producer_id
        value.next_producer_id = transaction.next_producer_id
    return version.to_bytes(2) + value.encode(version)


def by_topic(transaction: Transaction) -> list[PartitionsSchema]:
    indexes: dict[str, list[int]] = {}
    for topic, index in transaction.partitions:
        indexes.setdefault(topic, []).append(index)
    return [PartitionsSchema(topic=topic, partition_ids=found) for topic, found in indexes.items()]


def decode(key: bytes | None, value: bytes | None) -> tuple[str, Transaction | None]:
    """UnknownRecord if this broker does not know its type or version, WireError if it is malformed."""
    if key is None:
        raise UnknownRecord("a record without a key")
    if len(key) < 2:
        raise WireError("a key without its type")
    if (record_type := int.from_bytes(key[:2], signed=True)) != KEY_VERSION:
        raise UnknownRecord(f"a record of type {record_type}")
    transactional_id = TransactionLogKey.decode(key, KEY_VERSION, 2).transactional_id
    return transactional_id, None if value is None else decode_value(value)


def decode_value(value: bytes) -> Transaction:
    if len(value) < 2:
        raise WireError("a value without its version")
    version = int.from_bytes(value[:2], signed=True)
    if not 0 <= version <= LATEST_VERSION:
        raise UnknownRecord(f"a TransactionLogValue of version {version}")
    decode = TransactionLogValue.decode if len(value) < LARGE_VALUE else TransactionLogValue.decode_apart
    read = decode(value, version, 2)
    if not 0 <= read.transaction_status < len(STATE_NAMES):
        raise UnknownRecord(f"a transaction in state {read.transaction_status}")
    listed = read.transaction_partitions or ()
    if (count := sum(len(topic.partition_ids) for topic in listed)) > PARTITIONS_MAX:
        raise UnknownRecord(f"a transaction of {count} partitions")
    transaction = Transaction(
        read.producer_id, read.transaction_timeout_ms, read.transaction_last_update_timestamp_ms
    )
    transaction.previous_producer_id = read.previous_producer_id
    transaction.next_producer_id = read.next_producer_id
    transaction.epoch = read.producer_epoch
    transaction.state = read.transaction_status
    transaction.start_ms = read.transaction_start_timestamp_ms
    transaction.client_version = read.client_transaction_version
    transaction.partitions = frozenset(
        (topic.topic, index) for topic in listed for index in topic.partition_ids
    )
    return transaction
