"""aiokafka behind the common interface: its own event loop runs during each call."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar

from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, TopicPartition
from aiokafka.admin import AIOKafkaAdminClient, NewTopic

from .face import READ_TIMEOUT_S, Got, Sent, Start

T = TypeVar("T")


class AioKafka:
    sets_timestamps = True
    binary = True
    null_headers = True
    creates_partitions = True

    def __init__(self, bootstrap: str) -> None:
        self._bootstrap = bootstrap
        self._loop = asyncio.new_event_loop()

    def _run(self, work: Coroutine[Any, Any, T]) -> T:
        return self._loop.run_until_complete(asyncio.wait_for(work, 2 * READ_TIMEOUT_S))

    def create_topic(self, topic: str, partitions: int = 1) -> None:
        async def work() -> None:
            admin = AIOKafkaAdminClient(bootstrap_servers=self._bootstrap)
            await admin.start()
            try:
                answer = await admin.create_topics([NewTopic(topic, partitions, 1)])
                assert [row[1] for row in answer.topic_errors] == [0], answer
            finally:
                await admin.close()

        self._run(work())

    def partition_count(self, topic: str) -> int:
        async def work() -> int:
            admin = AIOKafkaAdminClient(bootstrap_servers=self._bootstrap)
            await admin.start()
            try:
                (described,) = await admin.describe_topics([topic])
                return len(described["partitions"])
            finally:
                await admin.close()

        return self._run(work())

    def produce(
        self, topic: str, records: list[Sent], *, codec: str = "none", idempotent: bool = True
    ) -> None:
        async def work() -> None:
            producer = AIOKafkaProducer(
                bootstrap_servers=self._bootstrap,
                compression_type=None if codec == "none" else codec,
                enable_idempotence=idempotent,
                acks="all",
                linger_ms=5,
            )
            await producer.start()
            try:
                waiting = [
                    await producer.send(
                        topic,
                        key=record.key,
                        value=record.value,
                        headers=list(record.headers),
                        timestamp_ms=record.timestamp_ms,
                        partition=0,
                    )
                    for record in records
                ]
                await asyncio.gather(*waiting)
            finally:
                await producer.stop()

        self._run(work())

    def reader(self, topic: str, start: Start) -> AioReader:
        return AioReader(self._run, self._bootstrap, TopicPartition(topic, 0), start)

    def close(self) -> None:
        self._loop.close()


class AioReader:
    def __init__(self, run: Any, bootstrap: str, partition: TopicPartition, start: Start) -> None:
        self._run = run
        self._consumer: AIOKafkaConsumer = run(self._start(bootstrap))
        try:
            run(self._position(partition, start))
        except BaseException:
            self.close()
            raise

    async def _start(self, bootstrap: str) -> AIOKafkaConsumer:
        consumer = AIOKafkaConsumer(bootstrap_servers=bootstrap, group_id=None)
        await consumer.start()
        return consumer

    async def _position(self, partition: TopicPartition, start: Start) -> None:
        consumer = self._consumer
        consumer.assign([partition])
        if start.kind == "earliest":
            await consumer.seek_to_beginning(partition)
        elif start.kind == "latest":
            await consumer.seek_to_end(partition)
        elif start.kind == "offset":
            consumer.seek(partition, start.value)
        else:
            found = (await consumer.offsets_for_times({partition: start.value}))[partition]
            consumer.seek(partition, found.offset)
        await consumer.position(partition)

    def read(self, count: int) -> list[Got]:
        return list(self._run(self._read(count)))

    async def _read(self, count: int) -> list[Got]:
        got: list[Got] = []
        deadline = asyncio.get_running_loop().time() + READ_TIMEOUT_S
        while len(got) < count and asyncio.get_running_loop().time() < deadline:
            fetched = await self._consumer.getmany(timeout_ms=500, max_records=count - len(got))
            for records in fetched.values():
                got += [Got(r.offset, r.timestamp, r.key, r.value, tuple(r.headers)) for r in records]
        return got

    def close(self) -> None:
        self._run(self._consumer.stop())
