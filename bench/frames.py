"""Requests built once, as bytes, for the load client, and the position of the error code in their answers."""

from __future__ import annotations

import os
import time
from typing import Any

from pykafkad.hot import records, wire
from pykafkad.messages import FetchRequest, ProduceRequest

PRODUCE_VERSION = 9
FETCH_VERSION = 12
CLIENT_ID = "bench"


def batch(count: int, size: int) -> bytes:
    """A batch of `count` records with values of `size` bytes that cannot be compressed."""
    now_ms = int(time.time() * 1000)  # the present time, or retention deletes it
    return bytes(records.build([(None, os.urandom(size), [], now_ms) for _ in range(count)]))


def framed(message: Any, version: int) -> bytes:
    frame = wire.request(message, version, 0, CLIENT_ID)
    assert isinstance(frame, bytes)
    return frame


def produce_message(topic: str, partition: int, data: bytes) -> ProduceRequest:
    part = ProduceRequest.PartitionProduceData(index=partition, records=data)
    entry = ProduceRequest.TopicProduceData(name=topic, partition_data=[part])
    return ProduceRequest(acks=-1, timeout_ms=30_000, topic_data=[entry])


def produce(topic: str, partition: int, data: bytes) -> bytes:
    return framed(produce_message(topic, partition, data), PRODUCE_VERSION)


def produce_error_at(topic: str) -> int:
    # correlation id, header tags, topic count, name, partition count, index
    return 4 + 1 + 1 + 1 + len(topic) + 1 + 4


def fetch(topic: str, offset: int, max_bytes: int) -> bytes:
    part = FetchRequest.FetchPartition(partition=0, fetch_offset=offset, partition_max_bytes=max_bytes)
    entry = FetchRequest.FetchTopic(topic=topic, partitions=[part])
    message = FetchRequest(max_wait_ms=500, min_bytes=1, max_bytes=max_bytes, topics=[entry])
    return framed(message, FETCH_VERSION)


def fetch_error_at(topic: str) -> int:
    # correlation id, header tags, throttle, error, session, topic count, name, partition count, index
    return 4 + 1 + 4 + 2 + 4 + 1 + 1 + len(topic) + 1 + 4
