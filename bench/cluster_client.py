"""What confluent-kafka does to a cluster, in a process of its own, so that its threads disturb no other measurement.

    python -m bench.cluster_client produce|sequential SERVERS TOPIC PARTITIONS COUNT SIZE BROKER_PIDS

All with acks=all. Prints one JSON line. The brokers' CPU seconds are read around the work alone.
"""

from __future__ import annotations

import json
import sys
import time

from confluent_kafka import Consumer, Producer, TopicPartition

from bench.sides import cpu_seconds

WAIT_S = 30
DRAIN_S = 300
CHUNK = 10_000


def producer(servers: str, **more: object) -> Producer:
    config = {
        "bootstrap.servers": servers,
        "acks": "all",
        "queue.buffering.max.messages": 2_000_000,
        "queue.buffering.max.kbytes": 2_000_000,
    }
    return Producer({**config, **more})


def produce(
    servers: str, topic: str, partitions: int, count: int, size: int, pids: list[int]
) -> dict[str, float]:
    client = producer(servers)
    client.list_topics(topic, timeout=WAIT_S)
    value = b"x" * size
    cpu, began = sum(map(cpu_seconds, pids)), time.perf_counter()
    for at in range(0, count, CHUNK):
        for number in range(at, min(at + CHUNK, count)):
            client.produce(topic, value, partition=number % partitions)
        client.poll(0)
    left = client.flush(DRAIN_S)
    seconds = time.perf_counter() - began
    result = {"seconds": seconds, "rate": count / seconds, "cpu": sum(map(cpu_seconds, pids)) - cpu}
    check_stored(servers, topic, partitions, count, left)
    return result


def check_stored(servers: str, topic: str, partitions: int, count: int, left: int) -> None:
    consumer = Consumer({"bootstrap.servers": servers, "group.id": "bench"})
    places = [TopicPartition(topic, index) for index in range(partitions)]
    end = sum(consumer.get_watermark_offsets(place, timeout=WAIT_S)[1] for place in places)
    consumer.close()
    if left or end != count:
        raise RuntimeError(f"{count} produced, {left} left in the client, {end} in the logs")


def sequential(
    servers: str, topic: str, partitions: int, count: int, size: int, pids: list[int]
) -> dict[str, float]:
    """One record at a time, waiting for each."""
    client = producer(servers, **{"linger.ms": 0})
    client.list_topics(topic, timeout=WAIT_S)
    value, times, warmup = b"x" * size, [], count // 5
    for number in range(count + warmup):
        if number == warmup:
            cpu = sum(map(cpu_seconds, pids))
        began = time.perf_counter()
        client.produce(topic, value, partition=0)
        if client.flush(WAIT_S):
            raise RuntimeError(f"a record is not acknowledged in {WAIT_S} s")
        times.append(time.perf_counter() - began)
    cpu = sum(map(cpu_seconds, pids)) - cpu
    times = sorted(times[warmup:])
    p50, p99 = times[count // 2], times[count * 99 // 100]
    return {"p50_us": p50 * 1e6, "p99_us": p99 * 1e6, "cpu_us": cpu / count * 1e6}


WORKS = {"produce": produce, "sequential": sequential}


def main(arguments: list[str]) -> None:
    work, servers, topic, partitions, count, size, pids = arguments
    numbers = [int(pid) for pid in pids.split(",")]
    print(json.dumps(WORKS[work](servers, topic, int(partitions), int(count), int(size), numbers)))


if __name__ == "__main__":
    main(sys.argv[1:])
