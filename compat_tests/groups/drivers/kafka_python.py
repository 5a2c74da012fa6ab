"""kafka-python as a member: `python -m compat_tests.groups.drivers.kafka_python NAME=VALUE ...`."""

from __future__ import annotations

from typing import Any

from kafka import ConsumerRebalanceListener, KafkaConsumer, TopicPartition
from kafka.coordinator.assignors.cooperative_sticky import CooperativeStickyAssignor
from kafka.coordinator.assignors.range import RangePartitionAssignor
from kafka.structs import OffsetAndMetadata

from compat_tests.groups.drivers import line
from compat_tests.groups.drivers.line import Partition

# 3.0.12 never completes a rejoin for new metadata that takes longer than a poll, and sends no heartbeat after it.
POLL_MS = 1000
ASSIGNORS = {assignor.name: assignor for assignor in (RangePartitionAssignor, CooperativeStickyAssignor)}


class Listener(ConsumerRebalanceListener):  # type: ignore[misc]
    def __init__(self) -> None:
        self._owned = line.Owned()

    def on_partitions_assigned(self, assigned: Any) -> None:
        self._owned.add((p.topic, p.partition) for p in assigned)

    def on_partitions_revoked(self, revoked: Any) -> None:
        self._owned.remove((p.topic, p.partition) for p in revoked)


class Member:
    def __init__(self, given: dict[str, str]) -> None:
        self._topics = given["topics"].split(",")
        self._consumer = KafkaConsumer(
            bootstrap_servers=given["bootstrap"],
            group_id=given["group"],
            client_id=given["client_id"],
            group_instance_id=given["instance"] or None,
            partition_assignment_strategy=[ASSIGNORS[given["assignor"]]],
            session_timeout_ms=int(given["session_ms"]),
            heartbeat_interval_ms=int(given["heartbeat_ms"]),
            reconnect_backoff_max_ms=500,
            auto_offset_reset="earliest",
            enable_auto_commit=False,
        )

    def join(self) -> None:
        self._consumer.subscribe(self._topics, listener=Listener())

    def poll(self) -> None:
        for records in self._consumer.poll(timeout_ms=POLL_MS).values():
            for r in records:
                line.record(r.topic, r.partition, r.offset, r.value)

    def commit(self, offsets: dict[Partition, int] | None) -> None:
        if offsets is None:
            self._consumer.commit()
            return
        self._consumer.commit(
            {TopicPartition(*p): OffsetAndMetadata(offset, "", -1) for p, offset in offsets.items()}
        )

    def committed(self, partition: Partition) -> int | None:
        offset: int | None = self._consumer.committed(TopicPartition(*partition))
        return offset

    def seek(self, partition: Partition, offset: int) -> None:
        self._consumer.seek(TopicPartition(*partition), offset)

    def pause(self, partition: Partition) -> None:
        self._consumer.pause(TopicPartition(*partition))

    def resume(self, partition: Partition) -> None:
        self._consumer.resume(TopicPartition(*partition))

    def leave(self) -> None:
        self._consumer.close()


if __name__ == "__main__":
    line.serve(Member(line.arguments()))
