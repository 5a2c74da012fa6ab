"""The interface that all clients under test have, so that the same tests run with each of them.

A client creates a topic, produces records and reads a partition that it assigns itself; no groups. What a client does
not support is a flag here, never worked around in a test.
"""

from __future__ import annotations

from typing import NamedTuple, Protocol

CODECS = ("none", "gzip", "snappy", "lz4", "zstd")
READ_TIMEOUT_S = 30.0

Headers = tuple[tuple[str, bytes | None], ...]


class Sent(NamedTuple):
    key: bytes | None
    value: bytes | None
    headers: Headers = ()
    timestamp_ms: int | None = None


class Got(NamedTuple):
    offset: int
    timestamp_ms: int
    key: bytes | None
    value: bytes | None
    headers: Headers

    @property
    def content(self) -> tuple[bytes | None, bytes | None, Headers]:
        return self.key, self.value, self.headers


class Start(NamedTuple):
    """Where a reader begins: `kind` is earliest, latest, offset or timestamp; the last two have a `value`."""

    kind: str
    value: int = -1


EARLIEST = Start("earliest")
LATEST = Start("latest")


class Reader(Protocol):
    """Its position is fixed when it is returned: records that are produced later are read, also from LATEST."""

    def read(self, count: int) -> list[Got]:
        """The next `count` records; fewer only if READ_TIMEOUT_S have passed."""

    def close(self) -> None: ...


class Client(Protocol):
    sets_timestamps: bool  # records carry a timestamp of the caller's
    binary: bool  # keys, values and headers may be any bytes, or empty
    null_headers: bool  # a header may have no value
    creates_partitions: bool  # a topic is created by a request, not by its first use

    def create_topic(self, topic: str, partitions: int = 1) -> None: ...

    def partition_count(self, topic: str) -> int: ...

    def produce(
        self, topic: str, records: list[Sent], *, codec: str = "none", idempotent: bool = True
    ) -> None:
        """Send to partition 0; returns when all are acknowledged with acks=all."""

    def reader(self, topic: str, start: Start) -> Reader: ...

    def close(self) -> None: ...
