"""The work of a stock client (confluent-kafka, where no other is named) in a process of its own, so that its threads
disturb no other measurement.

    python -m bench.clients WORK PORT TOPIC COUNT SIZE BROKER_PID

WORK: produce, consume, sequential, subscribe-classic, subscribe-consumer, suite, transact, transact_aiokafka,
transact_kafka_python, copy. Prints one JSON line.
The broker's CPU seconds are read around the work alone, without the client's start.
"""

from __future__ import annotations

import json
import statistics
import sys
import time
import uuid
from typing import Any

from confluent_kafka import Consumer, KafkaError, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from bench.client_transactions import copy, transact
from bench.python_transactions import transact_aiokafka, transact_kafka_python
from bench.sides import cpu_seconds

IDLE_SECONDS = 30
DRAIN_SECONDS = 120
CHUNK = 10_000
TEST_RECORDS = 10


def producer(port: int, **more: Any) -> Producer:
    config = {
        "bootstrap.servers": f"127.0.0.1:{port}",
        "acks": "all",
        "queue.buffering.max.messages": 2_000_000,
    }
    return Producer({**config, "queue.buffering.max.kbytes": 2_000_000, **more})


def produce(port: int, topic: str, count: int, size: int, pid: int) -> dict[str, float]:
    client = producer(port)
    client.list_topics(topic, timeout=IDLE_SECONDS)
    value = b"x" * size
    cpu, began = cpu_seconds(pid), time.perf_counter()
    for at in range(0, count, CHUNK):
        for _ in range(min(CHUNK, count - at)):
            client.produce(topic, value, partition=0)
        client.poll(0)
    left = client.flush(DRAIN_SECONDS)
    result = {"seconds": time.perf_counter() - began, "cpu": cpu_seconds(pid) - cpu}
    check_stored(port, topic, count, left)
    return result


def check_stored(port: int, topic: str, count: int, left: int) -> None:
    consumer = Consumer({"bootstrap.servers": f"127.0.0.1:{port}", "group.id": "bench"})
    _, end = consumer.get_watermark_offsets(TopicPartition(topic, 0), timeout=IDLE_SECONDS)
    consumer.close()
    if left or end != count:
        raise RuntimeError(f"{count} produced, {left} left in the client, {end} in the log")


def consume(port: int, topic: str, count: int, size: int, pid: int) -> dict[str, float]:
    servers = f"127.0.0.1:{port}"
    client = Consumer({"bootstrap.servers": servers, "group.id": "bench", "enable.auto.commit": False})
    client.list_topics(topic, timeout=IDLE_SECONDS)
    cpu, began = cpu_seconds(pid), time.perf_counter()
    client.assign([TopicPartition(topic, 0, 0)])
    seen, last = 0, began
    while seen < count:
        messages = client.consume(min(CHUNK, count - seen), timeout=1)
        if any(message.error() for message in messages):
            raise RuntimeError(str(next(m.error() for m in messages if m.error())))
        seen += len(messages)
        now = time.perf_counter()
        last = now if messages else last
        if now - last > IDLE_SECONDS:
            raise RuntimeError(f"{seen} of {count} consumed, then nothing for {IDLE_SECONDS} s")
    result = {"seconds": last - began, "cpu": cpu_seconds(pid) - cpu}
    if len(messages[-1].value() or b"") != size:
        raise RuntimeError("the last record is not what was produced")
    client.close()
    return result


def sequential(port: int, topic: str, count: int, size: int, pid: int) -> dict[str, float]:
    """One record at a time, waiting for each."""
    client = producer(port, **{"linger.ms": 0})
    client.list_topics(topic, timeout=IDLE_SECONDS)
    value, times = b"x" * size, []
    warmup = count // 5
    for _ in range(count + warmup):
        began = time.perf_counter()
        client.produce(topic, value, partition=0)
        if client.flush(IDLE_SECONDS):
            raise RuntimeError(f"a record is not acknowledged in {IDLE_SECONDS} s")
        times.append(time.perf_counter() - began)
    times = sorted(times[warmup:])
    return {"p50_us": times[count // 2] * 1e6, "p99_us": times[count * 99 // 100] * 1e6}


def subscribe(protocol: str, port: int, topic: str, count: int) -> dict[str, float]:
    """From subscribe() to the first record, by members that come back to a group with committed offsets.

    A group without offsets would measure librdkafka: it waits 100 ms before it asks for the first one.
    """
    times = [_first_record(protocol, port, topic) for _ in range(count + 1)]
    return {"p50_ms": statistics.median(times[1:]) * 1e3}


def _commit_start(consumer: Consumer, topic: str) -> None:
    """Kafka first loads the partitions of a new __consumer_offsets, and librdkafka does not ask again."""
    deadline = time.monotonic() + IDLE_SECONDS
    while True:
        try:
            consumer.commit(offsets=[TopicPartition(topic, 0, 0)], asynchronous=False)
            break
        except KafkaException as error:
            if time.monotonic() > deadline or error.args[0].code() != KafkaError.COORDINATOR_LOAD_IN_PROGRESS:
                raise
            time.sleep(0.05)
    consumer.close()


def _first_record(protocol: str, port: int, topic: str) -> float:
    config = {"bootstrap.servers": f"127.0.0.1:{port}", "group.id": f"bench-{uuid.uuid4()}"}
    _commit_start(Consumer(config), topic)
    client = Consumer({**config, "group.protocol": protocol})
    client.list_topics(topic, timeout=IDLE_SECONDS)
    began = time.perf_counter()
    client.subscribe([topic])
    message = client.poll(IDLE_SECONDS)
    seconds = time.perf_counter() - began
    client.close()
    if message is None or message.error():
        raise RuntimeError(f"{message and message.error()} instead of a record")
    return seconds


def suite(port: int, topic: str, count: int, size: int, pid: int) -> dict[str, float]:
    """Tests, one after the other; the topic's name is where theirs begin."""
    began = time.perf_counter()
    for number in range(count):
        _test(f"127.0.0.1:{port}", f"{topic}-{number}")
    return {"seconds": time.perf_counter() - began}


def _test(servers: str, topic: str) -> None:
    admin = AdminClient({"bootstrap.servers": servers})
    admin.create_topics([NewTopic(topic, 1, 1)])[topic].result()
    sender = Producer({"bootstrap.servers": servers})
    sent = {b"value %d" % number for number in range(TEST_RECORDS)}
    for value in sorted(sent):
        sender.produce(topic, value)
    if sender.flush(IDLE_SECONDS):
        raise RuntimeError(f"records are not acknowledged in {IDLE_SECONDS} s")
    receiver = Consumer({"bootstrap.servers": servers, "group.id": topic, "auto.offset.reset": "earliest"})
    receiver.subscribe([topic])
    seen: set[bytes | None] = set()
    deadline = time.monotonic() + IDLE_SECONDS
    while len(seen) < TEST_RECORDS and time.monotonic() < deadline:
        seen |= {message.value() for message in receiver.consume(TEST_RECORDS - len(seen), timeout=1)}
    receiver.close()
    if seen != sent:
        raise RuntimeError(f"{len(seen)} records instead of {TEST_RECORDS}: {sorted(map(str, seen))}")


WORKS = {
    "produce": produce,
    "consume": consume,
    "sequential": sequential,
    "suite": suite,
    "transact": transact,
    "transact_aiokafka": transact_aiokafka,
    "transact_kafka_python": transact_kafka_python,
    "copy": copy,
}


def main(arguments: list[str]) -> None:
    port, topic, count, size, pid = arguments[1:]
    kind, _, protocol = arguments[0].partition("-")
    if kind == "subscribe":
        print(json.dumps(subscribe(protocol, int(port), topic, int(count))))
        return
    print(json.dumps(WORKS[kind](int(port), topic, int(count), int(size), int(pid))))


if __name__ == "__main__":
    main(sys.argv[1:])
