"""aiokafka as a member: `python -m compat_tests.groups.drivers.aio NAME=VALUE ...`; its loop runs while it polls."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar

from aiokafka import AIOKafkaConsumer, ConsumerRebalanceListener, TopicPartition
from aiokafka.coordinator.assignors.range import RangePartitionAssignor

from compat_tests.groups.drivers import line
from compat_tests.groups.drivers.line import Partition

T = TypeVar("T")
ASSIGNORS = {RangePartitionAssignor.name: RangePartitionAssignor}


class Listener(ConsumerRebalanceListener):  # type: ignore[misc]
    def __init__(self) -> None:
        self._owned = line.Owned()

    async def on_partitions_assigned(self, assigned: Any) -> None:
        self._owned.add((p.topic, p.partition) for p in assigned)

    async def on_partitions_revoked(self, revoked: Any) -> None:
        self._owned.remove((p.topic, p.partition) for p in revoked)


class Member:
    def __init__(self, given: dict[str, str]) -> None:
        self._topics = given["topics"].split(",")
        self._loop = asyncio.new_event_loop()
        self._consumer: AIOKafkaConsumer = self._run(self._start(given))

    def _run(self, work: Coroutine[Any, Any, T]) -> T:
        return self._loop.run_until_complete(work)

    async def _start(self, given: dict[str, str]) -> AIOKafkaConsumer:
        consumer = AIOKafkaConsumer(
            bootstrap_servers=given["bootstrap"],
            group_id=given["group"],
            client_id=given["client_id"],
            group_instance_id=given["instance"] or None,
            partition_assignment_strategy=[ASSIGNORS[given["assignor"]]],
            session_timeout_ms=int(given["session_ms"]),
            heartbeat_interval_ms=int(given["heartbeat_ms"]),
            auto_offset_reset="earliest",
            enable_auto_commit=False,
        )
        await consumer.start()
        return consumer

    def join(self) -> None:
        async def work() -> None:
            self._consumer.subscribe(self._topics, listener=Listener())

        self._run(work())

    def poll(self) -> None:
        fetched = self._run(self._consumer.getmany(timeout_ms=int(line.POLL_SECONDS * 1000)))
        for records in fetched.values():
            for r in records:
                line.record(r.topic, r.partition, r.offset, r.value)

    def commit(self, offsets: dict[Partition, int] | None) -> None:
        given = None if offsets is None else {TopicPartition(*p): offset for p, offset in offsets.items()}
        self._run(self._consumer.commit(given))

    def committed(self, partition: Partition) -> int | None:
        offset: int | None = self._run(self._consumer.committed(TopicPartition(*partition)))
        return offset

    def seek(self, partition: Partition, offset: int) -> None:
        async def work() -> None:
            self._consumer.seek(TopicPartition(*partition), offset)

        self._run(work())

    def pause(self, partition: Partition) -> None:
        async def work() -> None:
            self._consumer.pause(TopicPartition(*partition))

        self._run(work())

    def resume(self, partition: Partition) -> None:
        async def work() -> None:
            self._consumer.resume(TopicPartition(*partition))

        self._run(work())

    def leave(self) -> None:
        self._run(self._consumer.stop())


if __name__ == "__main__":
    line.serve(Member(line.arguments()))
