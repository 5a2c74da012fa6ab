"""The log after a produce: headers of batches, parsed here and not by the broker's code."""

from __future__ import annotations

import struct
from typing import NamedTuple

from compat_tests.raw import RawClient
from pykafkad.messages import FetchRequest

from .face import CODECS

FETCH_VERSION = 12  # the last version with topic names
FETCH_BYTES = 16 << 20
MAGIC = 2
SIZE_BEFORE_LENGTH = 12
HEADER = struct.Struct(">qiibIhiqqqhii")  # a whole version 2 header, base offset to record count


class Kept(NamedTuple):
    codec: str
    producer_id: int
    count: int  # type: ignore[assignment]  # a tuple's own count, which nobody asks for here


def batches(bootstrap: str, topic: str) -> list[Kept]:
    host, port = bootstrap.rsplit(":", 1)
    wanted = FetchRequest.FetchPartition(partition=0, fetch_offset=0, partition_max_bytes=FETCH_BYTES)
    request = FetchRequest(
        max_bytes=FETCH_BYTES,
        min_bytes=1,
        max_wait_ms=500,
        topics=[FetchRequest.FetchTopic(topic=topic, partitions=[wanted])],
    )
    with RawClient(int(port), host=host) as client:
        answer = client.ask(request, FETCH_VERSION)
        (partition,) = answer.responses[0].partitions
        assert partition.error_code == 0
        return parse(bytes(partition.records))


def parse(data: bytes) -> list[Kept]:
    found: list[Kept] = []
    at = 0
    while at + HEADER.size <= len(data):
        _, length, _, magic, _, attributes, _, _, _, producer_id, _, _, count = HEADER.unpack_from(data, at)
        assert magic == MAGIC
        found.append(Kept(CODECS[attributes & 7], producer_id, count))
        at += SIZE_BEFORE_LENGTH + length
    return found
