"""The two brokers as processes: start, stop, ports, CPU seconds and resident memory.

Both are started the same way (a given port, polled from outside until a Metadata answer names a broker), each with its
own default configs. CPU is the kernel's account of the whole process, ended threads included: utime + stime of
/proc/PID/stat, read in nanoseconds instead of ticks.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
import time
from abc import ABC, abstractmethod
from pathlib import Path

from compat_tests.raw import Closed, RawClient
from compat_tests.reference import ReferenceKafka, free_ports
from pykafkad.messages import MetadataRequest

ANSWER_SECONDS = 60
POLL_SECONDS = 0.002
STOP_SECONDS = 60
METADATA_VERSION = 12
OVERRIDES = ["--override", "group.initial.rebalance.delay.ms=0"]  # like the reference's


def cpu_seconds(pid: int) -> float:
    return time.clock_gettime((~pid << 3) | 2)  # clock_getcpuclockid(3)


def resident_bytes(pid: int) -> int:
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmRSS:"):
            return int(line.split()[1]) * 1024
    raise RuntimeError(f"process {pid} is gone")


class Side(ABC):
    """One broker under measurement."""

    name: str
    port: int
    pid: int

    @abstractmethod
    def __init__(self, config: dict[str, str] | None = None) -> None: ...

    @property
    @abstractmethod
    def data(self) -> Path: ...

    @abstractmethod
    def spawn(self) -> None: ...

    @abstractmethod
    def stop(self) -> None: ...

    @abstractmethod
    def kill(self) -> None:
        """As in a power failure of the process: the next start has to recover everything."""

    @abstractmethod
    def remove(self) -> None: ...

    def start(self) -> float:
        """Start it; returns the seconds from the start of the process to the first answer to Metadata."""
        began = time.perf_counter()
        self.spawn()
        deadline = time.monotonic() + ANSWER_SECONDS
        while time.monotonic() < deadline:
            try:
                with RawClient(self.port) as client:
                    while time.monotonic() < deadline:
                        if client.ask(MetadataRequest(topics=[]), METADATA_VERSION).brokers:
                            return time.perf_counter() - began
                        time.sleep(POLL_SECONDS)
            except (OSError, Closed):
                time.sleep(POLL_SECONDS)
        raise RuntimeError(f"{self.name} gives no Metadata answer in {ANSWER_SECONDS} s")

    def stop_in_order(self) -> None:
        """So that the next start has nothing to recover."""
        self.stop()

    def client(self) -> RawClient:
        return RawClient(self.port, client_id="bench")

    def cpu(self) -> float:
        return cpu_seconds(self.pid)

    def resident(self) -> int:
        return resident_bytes(self.pid)


class Kafka(Side):
    name = "kafka"

    def __init__(self, config: dict[str, str] | None = None) -> None:
        self.broker = ReferenceKafka(directory=tempfile.mkdtemp(prefix="bench-kafka-"), config=config)
        self.broker.format()
        self.port = self.broker.port

    @property
    def data(self) -> Path:
        return self.broker.data

    def spawn(self) -> None:
        self.broker.spawn()
        self.pid = self.broker.pid

    def stop(self) -> None:
        self.broker.kill()  # its files are deleted

    def kill(self) -> None:
        self.broker.kill()

    def stop_in_order(self) -> None:
        self.broker.stop()

    def remove(self) -> None:
        shutil.rmtree(self.broker.directory, ignore_errors=True)


class Pykafkad(Side):
    name = "pykafkad"
    python = sys.executable
    checkout = Path(__file__).parents[1]

    def __init__(self, config: dict[str, str] | None = None) -> None:
        self.directory = Path(tempfile.mkdtemp(prefix="bench-pykafkad-"))
        self.overrides = [word for pair in (config or {}).items() for word in ("--override", "=".join(pair))]
        self.port = free_ports()
        self.process: subprocess.Popen[bytes] | None = None

    @property
    def data(self) -> Path:
        return self.directory / "data"

    def spawn(self) -> None:
        command = [self.python, "-m", "pykafkad", "start", "--port", str(self.port)]
        with (self.directory / "server.log").open("ab") as log:
            self.process = subprocess.Popen(
                [*command, "--data", str(self.data), *OVERRIDES, *self.overrides],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                cwd=self.checkout,
            )
        self.pid = self.process.pid

    def stop(self) -> None:
        if self.process is not None:
            self.process.terminate()
            try:
                self.process.wait(STOP_SECONDS)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()
                raise RuntimeError("pykafkad does not stop on SIGTERM") from None
            finally:
                self.process = None

    def kill(self) -> None:
        if self.process is not None:
            self.process.kill()
            self.process.wait()
            self.process = None

    def remove(self) -> None:
        shutil.rmtree(self.directory, ignore_errors=True)


def pykafkad_of(checkout: Path) -> type[Pykafkad]:
    """The broker of another checkout, run by the Python of its own environment."""

    class Before(Pykafkad):
        name = "before"
        python = str(checkout / ".venv" / "bin" / "python")

    Before.checkout = checkout
    return Before
