"""Clients that read: consumers of assigned partitions that seek now and then, members of a group, and the last reader of
each isolation level, which reads all that there is.
"""

from __future__ import annotations

import random
import time
from collections.abc import Iterable
from typing import Any

from confluent_kafka import Consumer, KafkaError, KafkaException, Message, TopicPartition

from compat_tests.history.events import UNCOMMITTED, Records
from compat_tests.history.librdkafka import basis
from compat_tests.history.recorder import Recorder

POLL_S = 0.3
BATCH = 100
SEEKS = 0.03
REST = 50  # how much of what is there already a member takes at once
LAST_READ_S = 240.0
SESSION_MS = 6000


def partition(key: str) -> TopicPartition:
    topic, _, number = key.rpartition(":")
    return TopicPartition(topic, int(number))


def consumer_config(bootstrap: str, isolation: str) -> dict[str, Any]:
    return {
        **basis(bootstrap),
        "group.id": "no group",
        "isolation.level": isolation,
        "enable.auto.commit": False,
        "auto.offset.reset": "error",
        "fetch.wait.max.ms": 100,
    }


def record_poll(recorder: Recorder, found: Iterable[Message], isolation: str, txn: str = "") -> Records:
    """What was read, by key; errors, which the client gets over by itself, are left out."""
    records: Records = {}
    for message in found:
        value, offset = message.value(), message.offset()
        if message.error() is None and value is not None and offset is not None:
            key = f"{message.topic()}:{message.partition()}"
            records.setdefault(key, []).append((offset, value.decode()))
    if records:
        recorder.record("ok", "poll", records=records, isolation=isolation, txn=txn)
    return records


class Reader:
    """Reads all partitions from the beginning, and goes back or skips now and then."""

    def __init__(
        self, isolation: str, bootstrap: str, keys: list[str], recorder: Recorder, chance: random.Random
    ) -> None:
        self._isolation = isolation
        self._recorder, self._chance = recorder, chance
        self._next = dict.fromkeys(keys, 0)
        self._consumer = Consumer(consumer_config(bootstrap, isolation))
        self._consumer.assign([TopicPartition(*_named(key), 0) for key in keys])
        recorder.record("ok", "assign", positions=self._next)

    def step(self) -> None:
        found = self._consumer.consume(BATCH, POLL_S)
        for key, records in record_poll(self._recorder, found, self._isolation).items():
            self._next[key] = records[-1][0] + 1
        if self._chance.random() < SEEKS:
            self._seek(self._chance.choice(sorted(self._next)))

    def _seek(self, key: str) -> None:
        to = self._chance.randrange(self._next[key] + 1)
        try:
            self._consumer.seek(TopicPartition(*_named(key), to))
        except KafkaException:  # the broker is away; the position is what it was
            return
        self._next[key] = to
        self._recorder.record("ok", "seek", positions={key: to})


class Member:
    """A member of a group that subscribes. It polls one record at a time, since between two of them it may lose its
    partitions."""

    def __init__(
        self, isolation: str, bootstrap: str, topics: list[str], recorder: Recorder, group: str
    ) -> None:
        self._isolation, self._recorder = isolation, recorder
        config = {
            **consumer_config(bootstrap, isolation),
            "group.id": group,
            "auto.offset.reset": "earliest",
            "session.timeout.ms": SESSION_MS,
        }
        self._found: list[Message] = []
        self._consumer = Consumer(config)
        self._consumer.subscribe(
            topics, on_assign=self._on_assign, on_revoke=self._on_revoke, on_lost=self._on_revoke
        )
        recorder.record("ok", "subscribe")

    def step(self) -> None:
        message = self._consumer.poll(POLL_S)
        while message is not None:
            self._found.append(message)
            message = self._consumer.poll(0) if len(self._found) < REST else None
        if self._flush():
            try:
                self._consumer.commit(asynchronous=False)
            except KafkaException:  # another member will read it again
                pass

    def _flush(self) -> Records:
        found, self._found = self._found, []
        return record_poll(self._recorder, found, self._isolation)

    def _on_assign(self, _consumer: Consumer, given: list[TopicPartition]) -> None:
        self._flush()
        positions = {f"{one.topic}:{one.partition}": None for one in given}
        self._recorder.record("ok", "assign", positions=positions)

    def _on_revoke(self, _consumer: Consumer, _taken: list[TopicPartition]) -> None:
        self._flush()
        self._recorder.record("ok", "subscribe")


class NotAll(Exception):
    """The last reader did not get to the end."""


def read_all(isolation: str, bootstrap: str, keys: list[str], recorder: Recorder) -> None:
    """Read everything up to where the logs end now, which a read_committed consumer can only pass when no transaction
    is open any more."""
    ends = _log_ends(bootstrap, keys)
    consumer = Consumer({**consumer_config(bootstrap, isolation), "enable.partition.eof": True})
    consumer.assign([TopicPartition(*_named(key), 0) for key in keys])
    recorder.record("ok", "assign", positions=dict.fromkeys(keys, 0))
    deadline = time.monotonic() + LAST_READ_S
    reached = dict.fromkeys(keys, 0)
    while left := {key: end for key, end in ends.items() if reached[key] < end}:
        if time.monotonic() > deadline:
            raise NotAll(f"{isolation}: the logs end at {left}, and the consumer came to {reached}")
        found = consumer.consume(BATCH, POLL_S)
        record_poll(recorder, found, isolation)
        for message in found:
            error = message.error()
            if error is not None and error.code() == KafkaError._PARTITION_EOF:
                reached[f"{message.topic()}:{message.partition()}"] = message.offset() or 0
    consumer.close()


def _log_ends(bootstrap: str, keys: list[str]) -> dict[str, int]:
    """Open transactions included, which a read_committed consumer is not told of."""
    consumer = Consumer(consumer_config(bootstrap, UNCOMMITTED))
    ends = {key: consumer.get_watermark_offsets(partition(key), timeout=LAST_READ_S)[1] for key in keys}
    consumer.close()
    return ends


def _named(key: str) -> tuple[str, int]:
    topic, _, number = key.rpartition(":")
    return topic, int(number)
