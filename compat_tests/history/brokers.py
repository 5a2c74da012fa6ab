"""The broker that a history is made with, as its nemesis treats it: killed, started again, stopped for a while, its clock
moved. BROKER chooses it: pykafkad, or kafka, whose histories prove the tests.
"""

from __future__ import annotations

import os
import signal
import subprocess
from types import TracebackType
from typing import Protocol

import pytest

from compat_tests.history.clock import MovedClock
from compat_tests.reference import SHORT_SESSION, ReferenceKafka, missing
from pykafkad.testing import Broker
from pykafkad.testing.broker import wake_when_alone

CONFIG = {
    "offsets.topic.num.partitions": "3",
    "transaction.state.log.num.partitions": "3",
    "transaction.abort.timed.out.transaction.cleanup.interval.ms": "500",
    "group.initial.rebalance.delay.ms": "0",
    "auto.create.topics.enable": "false",
}
KAFKA_HEAP = {"KAFKA_HEAP_OPTS": "-Xmx512M", "KAFKA_JVM_OPTS": "-XX:+UseSerialGC -XX:TieredStopAtLevel=1"}


# How far the clock is moved. Less than message.timestamp.after.max.ms: what is refused as too new proves nothing. Kafka's
# own client for end markers waits by the wall clock, so one that is moved back stops its transactions for as long.
MOST_CLOCK_MS = 30 * 60 * 1000
KAFKA_CLOCK_MS = 1000


class Process(Protocol):
    """What both have."""

    @property
    def bootstrap_servers(self) -> str: ...
    @property
    def pid(self) -> int: ...
    def start(self) -> None: ...
    def kill(self) -> None: ...
    def log_text(self) -> str: ...


class Victim:
    """A broker with its data directory, through all its lives; stopped and removed at the end."""

    def __init__(self, config: dict[str, str] | None = None) -> None:
        chosen = os.environ.get("BROKER", "pykafkad")
        given = {**CONFIG, **(config or {})}
        self._clock = MovedClock()
        self._waker: subprocess.Popen[bytes] | None = None
        self.process: Process
        if chosen == "kafka":
            if lack := missing():
                pytest.skip(lack)
            os.environ.update(KAFKA_HEAP)
            self._kafka = ReferenceKafka(config={**given, **SHORT_SESSION})
            self.process = self._kafka
        elif chosen == "pykafkad":
            self._ours = Broker(config=given, single_node=False, start=False)
            self.process = self._ours
        else:
            raise pytest.UsageError(f"BROKER={chosen}: pykafkad or kafka")
        self.is_kafka = chosen == "kafka"
        self.most_clock_ms = KAFKA_CLOCK_MS if self.is_kafka else MOST_CLOCK_MS

    @property
    def bootstrap_servers(self) -> str:
        return self.process.bootstrap_servers

    @property
    def host(self) -> str:
        return self.bootstrap_servers.rpartition(":")[0]

    @property
    def port(self) -> int:
        return int(self.bootstrap_servers.rpartition(":")[2])

    def log_text(self) -> str:
        return self.process.log_text()

    def start(self) -> None:
        with self._clock.worn():
            self.process.start()

    def kill(self) -> None:
        self.resume()
        self.process.kill()

    def pause(self) -> None:
        self._waker = wake_when_alone(self.process.pid)
        os.kill(self.process.pid, signal.SIGSTOP)

    def resume(self) -> None:
        if self._waker is not None:
            os.kill(self.process.pid, signal.SIGCONT)
            self._waker.kill()
            self._waker.communicate()
            self._waker = None

    def set_clock_ms(self, offset_ms: int) -> None:
        self._clock.set_ms(offset_ms)

    def __enter__(self) -> Victim:
        try:
            self.start()
        except BaseException:
            self.__exit__(None, None, None)
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.resume()
        if self.is_kafka:
            self._kafka.__exit__(kind, error, trace)
        else:
            self._ours.__exit__(kind, error, trace)
        self._clock.close()
