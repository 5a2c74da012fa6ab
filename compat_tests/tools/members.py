"""Live members of a group for the tools to show: librdkafka's consumers, one on each broker."""

from __future__ import annotations

import threading
import time
from types import TracebackType
from typing import Any

from confluent_kafka import Consumer

from compat_tests.tools.both import Both, Side

JOIN_SECONDS = 30
POLL_SECONDS = 0.05


class Member:
    """A consumer that polls in a thread of its own; `partitions` once it has been assigned some."""

    def __init__(self, side: Side, group: str, topics: list[str], protocol: str, **more: Any) -> None:
        config = {
            "bootstrap.servers": side.bootstrap,
            "group.id": group,
            "group.protocol": protocol,
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
            **{key.replace("_", "."): value for key, value in more.items()},
        }
        self.partitions: list[tuple[str, int]] = []
        self._consumer = Consumer(config)
        self._stopping = threading.Event()
        self._consumer.subscribe(topics, on_assign=self._assigned)
        self._thread = threading.Thread(target=self._poll)
        self._thread.start()

    def _assigned(self, consumer: Consumer, partitions: list[Any]) -> None:
        self.partitions += [(partition.topic, partition.partition) for partition in partitions]

    def _poll(self) -> None:
        while not self._stopping.is_set():
            self._consumer.poll(POLL_SECONDS)
        self._consumer.close()

    def close(self) -> None:
        self._stopping.set()
        self._thread.join()


class Members:
    """`with Members(both, group, topics, "classic"):` the same member on both, owning partitions."""

    def __init__(self, both: Both, group: str, topics: list[str], protocol: str, **more: Any) -> None:
        self._make = [(side, group, topics, protocol) for side in both.sides]
        self._more = more
        self._members: list[Member] = []

    def __enter__(self) -> Members:
        try:
            self._members = [Member(*arguments, **self._more) for arguments in self._make]
            deadline = time.monotonic() + JOIN_SECONDS
            for member, (side, *_) in zip(self._members, self._make, strict=True):
                while not member.partitions:
                    assert time.monotonic() < deadline, f"no partitions on {side.name} in {JOIN_SECONDS} s"
                    time.sleep(POLL_SECONDS)
        except BaseException:
            self.__exit__(None, None, None)
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for member in self._members:
            member.close()
