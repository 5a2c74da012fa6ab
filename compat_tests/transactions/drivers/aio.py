"""aiokafka: `python -m compat_tests.transactions.drivers.aio bootstrap=HOST:PORT`; its loop runs in a thread."""

from __future__ import annotations

import asyncio
import sys
import threading
from collections.abc import Coroutine
from typing import Any, TypeVar

from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, TopicPartition

from compat_tests.transactions.drivers import line
from compat_tests.transactions.drivers.line import Group, Place

T = TypeVar("T")
ANSWER_SECONDS = 30.0

loop = asyncio.new_event_loop()


def run(work: Coroutine[Any, Any, T]) -> T:
    return asyncio.run_coroutine_threadsafe(asyncio.wait_for(work, ANSWER_SECONDS), loop).result()


async def values(consumer: AIOKafkaConsumer) -> list[str]:
    polled = await consumer.getmany(timeout_ms=int(line.POLL_SECONDS * 1000))
    return [record.value.decode() for records in polled.values() for record in records]


class Transactional:
    def __init__(self, bootstrap: str, transactional_id: str, timeout_ms: int, group: Group | None) -> None:
        self._group = group
        self._consumer: AIOKafkaConsumer = None
        run(self._start(bootstrap, transactional_id, timeout_ms))

    async def _start(self, bootstrap: str, transactional_id: str, timeout_ms: int) -> None:
        self._producer = AIOKafkaProducer(
            bootstrap_servers=bootstrap,
            transactional_id=transactional_id,
            transaction_timeout_ms=timeout_ms,
        )
        await self._producer.start()
        if self._group is not None:
            self._consumer = AIOKafkaConsumer(
                self._group.topic,
                bootstrap_servers=bootstrap,
                group_id=self._group.name,
                isolation_level="read_committed",
                auto_offset_reset="earliest",
                enable_auto_commit=False,
            )
            await self._consumer.start()

    def begin(self) -> None:
        run(self._producer.begin_transaction())

    def send(self, place: Place, values: list[str]) -> None:
        async def work() -> None:
            sent = [
                await self._producer.send(place[0], value.encode(), partition=place[1]) for value in values
            ]
            await asyncio.gather(*sent)

        run(work())

    def commit(self) -> None:
        run(self._producer.commit_transaction())

    def abort(self) -> None:
        run(self._producer.abort_transaction())

    def consume(self) -> list[str]:
        return run(values(self._consumer))

    def send_offsets(self) -> None:
        assert self._group is not None
        group = self._group.name

        async def work() -> None:
            offsets = {p: await self._consumer.position(p) for p in self._consumer.assignment()}
            await self._producer.send_offsets_to_transaction(offsets, group)

        run(work())

    def close(self) -> None:
        if self._consumer is not None:
            run(self._consumer.stop())
        run(self._producer.stop())


class Reader:
    def __init__(self, bootstrap: str, isolation: str, place: Place) -> None:
        run(self._start(bootstrap, isolation, TopicPartition(*place)))

    async def _start(self, bootstrap: str, isolation: str, partition: TopicPartition) -> None:
        self._consumer = AIOKafkaConsumer(
            bootstrap_servers=bootstrap, group_id=None, isolation_level=isolation, fetch_max_wait_ms=100
        )
        await self._consumer.start()
        self._consumer.assign([partition])
        self._consumer.seek(partition, 0)

    def poll(self) -> list[str]:
        return run(values(self._consumer))

    def close(self) -> None:
        run(self._consumer.stop())


producer = Transactional
reader = Reader

if __name__ == "__main__":
    threading.Thread(target=loop.run_forever, daemon=True).start()
    line.serve(sys.modules[__name__])
