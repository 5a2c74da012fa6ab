"""What bench.clients does with transactions: transactions of one record and of many, and a copy from topic to topic."""

from __future__ import annotations

import statistics
import time
import uuid
from typing import Any

from confluent_kafka import Consumer, Message, Producer, TopicPartition

IDLE_SECONDS = 60
MANY = 1_000  # records of a large transaction
CHUNK = 10_000
SHORT = 100  # transactions of one record


def transactional(port: int) -> Producer:
    config = {
        "bootstrap.servers": f"127.0.0.1:{port}",
        "transactional.id": f"bench-{uuid.uuid4()}",
        "linger.ms": 0,
        "queue.buffering.max.messages": 2_000_000,
    }
    producer = Producer(config)
    producer.init_transactions(IDLE_SECONDS)
    return producer


def transact(port: int, topic: str, count: int, size: int, pid: int) -> dict[str, float]:
    """init_transactions() of a new producer; transactions of one record, one after the other: their whole time, since a
    broker may answer the commit before it has written the markers, and let the next transaction wait for that; then
    `count` records in transactions of MANY."""
    transactional(port)  # creates __transaction_state
    began = time.perf_counter()
    producer = transactional(port)
    result = {"init_ms": (time.perf_counter() - began) * 1e3}
    value = b"x" * size
    times = [_transaction(producer, topic, value, 1) for _ in range(SHORT)]
    result["one_ms"] = statistics.median(times[SHORT // 10 :]) * 1e3
    many = sum(_transaction(producer, topic, value, MANY) for _ in range(count // MANY))
    result["rate"] = count // MANY * MANY / many
    return result


def _transaction(producer: Producer, topic: str, value: bytes, count: int) -> float:
    began = time.perf_counter()
    producer.begin_transaction()
    for _ in range(count):
        producer.produce(topic, value, partition=0)
    producer.commit_transaction(IDLE_SECONDS)
    return time.perf_counter() - began


def copy(port: int, topic: str, count: int, size: int, pid: int) -> dict[str, float]:
    """Read `count` records from partition 0 and write them to partition 1, MANY in each transaction, with the offsets."""
    _fill(port, topic, count, size)
    group = f"bench-{uuid.uuid4()}"
    reader = _consumer(port, group)
    producer = transactional(port)
    reader.assign([TopicPartition(topic, 0, 0)])
    copied, began = 0, time.perf_counter()
    while copied < count:
        messages = _some(reader, min(MANY, count - copied))
        producer.begin_transaction()
        for message in messages:
            producer.produce(topic, message.value(), partition=1)
        positions = reader.position([TopicPartition(topic, 0)])
        producer.send_offsets_to_transaction(positions, reader.consumer_group_metadata(), IDLE_SECONDS)
        producer.commit_transaction(IDLE_SECONDS)
        copied += len(messages)
    seconds = time.perf_counter() - began
    (committed,) = reader.committed([TopicPartition(topic, 0)], IDLE_SECONDS)
    reader.close()
    _check_copied(port, topic, count, committed.offset)
    return {"rate": count / seconds}


def _fill(port: int, topic: str, count: int, size: int) -> None:
    config = {"bootstrap.servers": f"127.0.0.1:{port}", "queue.buffering.max.messages": 2_000_000}
    producer = Producer(config)
    for at in range(0, count, CHUNK):
        for _ in range(min(CHUNK, count - at)):
            producer.produce(topic, b"x" * size, partition=0)
        producer.poll(0)
    if producer.flush(IDLE_SECONDS):
        raise RuntimeError("the records to be copied are not acknowledged")


def _consumer(port: int, group: str) -> Consumer:
    config: dict[str, Any] = {"bootstrap.servers": f"127.0.0.1:{port}", "group.id": group}
    return Consumer({**config, "enable.auto.commit": False, "isolation.level": "read_committed"})


def _some(reader: Consumer, most: int) -> list[Message]:
    messages = reader.consume(most, IDLE_SECONDS)
    if not messages:
        raise RuntimeError(f"nothing to copy for {IDLE_SECONDS} s")
    if error := next((message.error() for message in messages if message.error()), None):
        raise RuntimeError(str(error))
    return messages


def _check_copied(port: int, topic: str, count: int, committed: int) -> None:
    reader = _consumer(port, "bench-check")
    reader.assign([TopicPartition(topic, 1, 0)])
    seen = 0
    while seen < count:
        seen += len(_some(reader, count - seen))
    extra = reader.consume(1, 0.1)
    reader.close()
    if extra or committed != count:
        raise RuntimeError(f"{count} to copy, {seen + len(extra)} copied, offset {committed} committed")
