"""What bench.clients does with transactions of clients written in Python, of one record, one after the other.

Before the markers of a transaction are written Kafka answers whoever begins the next one with CONCURRENT_TRANSACTIONS;
these clients then sleep, as the Java client has long done. So their whole time is measured, from begin to committed.
Each client is imported where it works: the others' work is not to wait for it.
"""

from __future__ import annotations

import asyncio
import statistics
import time
import uuid

TRANSACTIONS = 60
WARM = 10  # of which these do not count


def transact_kafka_python(port: int, topic: str, count: int, size: int, pid: int) -> dict[str, float]:
    from kafka import KafkaProducer

    producer = KafkaProducer(bootstrap_servers=f"127.0.0.1:{port}", transactional_id=_name())
    producer.init_transactions()
    times = []
    for _ in range(TRANSACTIONS):
        began = time.perf_counter()
        producer.begin_transaction()
        producer.send(topic, bytes(size), partition=0)
        producer.commit_transaction()
        times.append(time.perf_counter() - began)
    producer.close()
    return {"one_ms": _middle_ms(times)}


def transact_aiokafka(port: int, topic: str, count: int, size: int, pid: int) -> dict[str, float]:
    return asyncio.run(_transact_aiokafka(port, topic, size))


async def _transact_aiokafka(port: int, topic: str, size: int) -> dict[str, float]:
    from aiokafka import AIOKafkaProducer

    producer = AIOKafkaProducer(bootstrap_servers=f"127.0.0.1:{port}", transactional_id=_name())
    await producer.start()
    times = []
    for _ in range(TRANSACTIONS):
        began = time.perf_counter()
        await producer.begin_transaction()
        await producer.send(topic, bytes(size), partition=0)
        await producer.commit_transaction()
        times.append(time.perf_counter() - began)
    await producer.stop()
    return {"one_ms": _middle_ms(times)}


def _name() -> str:
    return f"bench-{uuid.uuid4()}"


def _middle_ms(times: list[float]) -> float:
    return statistics.median(times[WARM:]) * 1e3
