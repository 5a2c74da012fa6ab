"""confluent-kafka as a member, of either protocol: `python -m compat_tests.groups.drivers.confluent NAME=VALUE ...`."""

from __future__ import annotations

from typing import Any

from confluent_kafka import OFFSET_INVALID, Consumer, KafkaException, TopicPartition

from compat_tests.groups.drivers import line
from compat_tests.groups.drivers.line import Partition

ANSWER_SECONDS = 20.0


def config(given: dict[str, str]) -> dict[str, Any]:
    made: dict[str, Any] = {
        "bootstrap.servers": given["bootstrap"],
        "group.id": given["group"],
        "client.id": given["client_id"],
        "group.protocol": given["protocol"],
        "auto.offset.reset": "earliest",
        "enable.auto.commit": False,
        "topic.metadata.refresh.interval.ms": 1000,
    }
    if given["protocol"] == "consumer":
        made["group.remote.assignor"] = given["assignor"]
    else:
        made["partition.assignment.strategy"] = given["assignor"]
        made["session.timeout.ms"] = int(given["session_ms"])
        made["heartbeat.interval.ms"] = int(given["heartbeat_ms"])
    if given["instance"]:
        made["group.instance.id"] = given["instance"]
    return made


class Member:
    def __init__(self, given: dict[str, str]) -> None:
        self._topics = given["topics"].split(",")
        self._owned = line.Owned()
        self._consumer = Consumer(config(given))
        self._consumer.list_topics(timeout=ANSWER_SECONDS)

    def join(self) -> None:
        self._consumer.subscribe(
            self._topics, on_assign=self._assigned, on_revoke=self._revoked, on_lost=self._revoked
        )

    def _assigned(self, _consumer: Consumer, partitions: list[TopicPartition]) -> None:
        self._owned.add((p.topic, p.partition) for p in partitions)

    def _revoked(self, _consumer: Consumer, partitions: list[TopicPartition]) -> None:
        self._owned.remove((p.topic, p.partition) for p in partitions)

    def poll(self) -> None:
        for message in self._consumer.consume(100, timeout=line.POLL_SECONDS):
            if (error := message.error()) is not None:
                raise KafkaException(error)
            topic, partition, offset, value = (
                message.topic(),
                message.partition(),
                message.offset(),
                message.value(),
            )
            assert topic is not None and partition is not None and offset is not None and value is not None
            line.record(topic, partition, offset, value)

    def commit(self, offsets: dict[Partition, int] | None) -> None:
        if offsets is None:
            done = self._consumer.commit(asynchronous=False)
        else:
            wanted = [TopicPartition(*p, offset) for p, offset in offsets.items()]
            done = self._consumer.commit(offsets=wanted, asynchronous=False)
        for partition in done or ():
            if partition.error is not None:
                raise KafkaException(partition.error)

    def committed(self, partition: Partition) -> int | None:
        (found,) = self._consumer.committed([TopicPartition(*partition)], timeout=ANSWER_SECONDS)
        if found.error is not None:
            raise KafkaException(found.error)
        return None if found.offset == OFFSET_INVALID else int(found.offset)

    def seek(self, partition: Partition, offset: int) -> None:
        self._consumer.seek(TopicPartition(*partition, offset))

    def pause(self, partition: Partition) -> None:
        self._consumer.pause([TopicPartition(*partition)])

    def resume(self, partition: Partition) -> None:
        self._consumer.resume([TopicPartition(*partition)])

    def leave(self) -> None:
        self._consumer.close()


if __name__ == "__main__":
    line.serve(Member(line.arguments()))
