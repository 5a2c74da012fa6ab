"""A well-behaved client beside the storm: a process of its own that sends one request after the other and measures.

`python -m tests.storm.neighbour HOST PORT PID` sends ApiVersions, Produce, Fetch and Metadata for its own topic again
and again. A line on its standard input makes it print its measurements since the last one, as JSON. Besides the time of
an answer it measures how long the broker's own thread ran in that time (running.py): on a machine with other work only
that distinguishes a broker that was held up from one that did not get a processor.

Time runs from the moment at which the whole request is handed to the kernel until the kernel has the answer for us, which
it notes: on a busy machine the broker goes on with other work long before this process gets to look. Where it may, this
process therefore runs before all others (SCHED_FIFO): what the broker ran can only be read when we run.
"""

from __future__ import annotations

import contextlib
import json
import os
import select
import socket
import struct
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from pykafkad.hot import records
from pykafkad.messages import ApiVersionsRequest, FetchRequest, MetadataRequest, ProduceRequest
from pykafkad.testing import Client
from tests.storm import running
from tests.storm.names import NEIGHBOUR

PAUSE_SECONDS = 0.002
REPORT_SECONDS = 90.0
SO_TIMESTAMPNS = 35
TIMESTAMP = struct.Struct("qq")


@dataclass
class Report:
    """Since the last report: the number of answers and their times in ms; what went wrong."""

    count: int
    took: list[float]  # of each answer, sorted
    ran: list[float]  # the broker's thread in that time
    faults: list[str]
    exact: bool = True  # what it ran

    @property
    def worst(self) -> float:
        return self.ran[-1] if self.ran else 0.0


def percentile(values: list[float], share: float = 0.99) -> float:
    """Of sorted values."""
    return values[min(len(values) - 1, int(len(values) * share))] if values else 0.0


class Neighbour:
    """The neighbour's process, from the outside."""

    def __init__(self, host: str, port: int, pid: int) -> None:
        command = [sys.executable, "-m", "tests.storm.neighbour", host, str(port), str(pid)]
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def report(self) -> Report:
        assert self._process.stdin is not None and self._process.stdout is not None
        try:
            self._process.stdin.write("\n")
            self._process.stdin.flush()
        except OSError:
            return Report(0, [], [], ["the neighbour has ended"])
        if not select.select([self._process.stdout], [], [], REPORT_SECONDS)[0]:
            return Report(0, [], [], [f"the neighbour has had no answer for {REPORT_SECONDS:.0f} s"])
        line = self._process.stdout.readline()
        return Report(**json.loads(line)) if line else Report(0, [], [], ["the neighbour has ended"])

    def close(self) -> None:
        self._process.kill()
        self._process.communicate()


class Watched:
    """A client's socket that notes what the last request took, in nanoseconds: until the kernel had its answer, and until
    that was read; and how long the broker ran until then."""

    def __init__(self, sock: socket.socket, clock: Callable[[], int]) -> None:
        sock.setsockopt(socket.SOL_SOCKET, SO_TIMESTAMPNS, 1)
        self._socket, self._clock = sock, clock
        self.close = sock.close
        self.waited = self.took = self.ran = 0

    def sendall(self, data: bytes) -> None:
        self._ran, self._began, self._sent = self._clock(), time.monotonic_ns(), time.time_ns()
        self._socket.sendall(data)

    def recv(self, size: int) -> bytes:
        part, notes, _, _ = self._socket.recvmsg(size, socket.CMSG_SPACE(TIMESTAMP.size))
        self.ran = self._clock() - self._ran
        self.waited = self.took = time.monotonic_ns() - self._began
        for level, kind, note in notes:
            if (level, kind) == (socket.SOL_SOCKET, SO_TIMESTAMPNS):
                seconds, nanoseconds = TIMESTAMP.unpack(note)
                came = seconds * 1_000_000_000 + nanoseconds
                self.waited = min(self.took, max(0, came - self._sent))
        return part


class Asking:
    """The neighbour's process, from the inside."""

    def __init__(self, host: str, port: int, pid: int) -> None:
        self.address = host, port
        self.clock, self.exact = running.clock(pid)
        self.batch = records.build([(b"k", b"v" * 100, [], 1_795_000_000_000)])
        self.took: list[float] = []
        self.ran: list[float] = []
        self.faults: list[str] = []
        self.offset = 0
        self.client: Client | None = None

    def run(self) -> None:
        while True:
            self.round()
            if select.select([sys.stdin], [], [], PAUSE_SECONDS)[0]:
                if not sys.stdin.readline():
                    return
                self.say()

    def say(self) -> None:
        found = {
            "count": len(self.took),
            "took": sorted(self.took),
            "ran": sorted(self.ran),
            "faults": self.faults,
            "exact": self.exact,
        }
        print(json.dumps(found), flush=True)
        self.took, self.ran, self.faults = [], [], []

    def round(self) -> None:
        try:
            if self.client is None:
                self.client = Client(*self.address, client_id="neighbour")
                self.watched = Watched(self.client._socket, self.clock)
                self.client._socket = self.watched  # type: ignore[assignment]
            self.ask(ApiVersionsRequest(client_software_name="neighbour", client_software_version="1"), 3)
            produced = self.ask(self.produce(), 9)
            self.offset = max(produced.responses[0].partition_responses[0].base_offset, 0)
            self.ask(self.fetch(), 11)
            self.ask(MetadataRequest(topics=[MetadataRequest.MetadataRequestTopic(name=NEIGHBOUR)]), 9)
        except (OSError, ValueError) as problem:
            self.faults.append(f"{type(problem).__name__}: {problem}")
            if self.client is not None:
                self.client.close()
                self.client = None
            time.sleep(0.05)

    def ask(self, request: Any, version: int) -> Any:
        assert self.client is not None
        answer = self.client.call(request, version)
        watched = self.watched
        self.took.append(round(watched.took / 1e6, 3))
        self.ran.append(round(min(watched.ran, watched.waited) / 1e6, 3))
        return answer

    def produce(self) -> Any:
        topic = ProduceRequest.TopicProduceData(
            name=NEIGHBOUR, partition_data=[ProduceRequest.PartitionProduceData(index=0, records=self.batch)]
        )
        return ProduceRequest(acks=1, timeout_ms=1000, topic_data=[topic])

    def fetch(self) -> Any:
        row = FetchRequest.FetchPartition(partition=0, fetch_offset=self.offset, partition_max_bytes=10_000)
        topic = FetchRequest.FetchTopic(topic=NEIGHBOUR, partitions=[row])
        return FetchRequest(max_wait_ms=0, min_bytes=0, max_bytes=10_000, topics=[topic])


def go_before_others() -> None:
    with contextlib.suppress(OSError, AttributeError):  # it may not be allowed, and is not known everywhere
        os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(1))


if __name__ == "__main__":
    go_before_others()
    Asking(sys.argv[1], int(sys.argv[2]), int(sys.argv[3])).run()
