"""The oracle: a real Apache Kafka 4.3.1 broker as a process of ours, for comparisons and for the bench.

Owns: the launcher script `kafka` beside this file, the ports it uses, the life of the process it starts. It needs Java
17 and, for a first run, Maven; `missing()` says what is not there.
"""

from __future__ import annotations

import os
import random
import shutil
import socket
import subprocess
import tempfile
import time
from pathlib import Path
from types import TracebackType

SCRIPT = Path(__file__).with_name("kafka")
START_SECONDS = 60
STOP_SECONDS = 60
# For a broker that is killed and started again: it is registered anew as soon as its old session is over.
SHORT_SESSION = {"broker.session.timeout.ms": "3000", "broker.heartbeat.interval.ms": "500"}
PORTS = range(20000, 31998)  # below the ephemeral ports, which the kernel gives to others at random


def jars_home() -> Path:
    cache = os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
    home = os.environ.get("KAFKA_HOME") or f"{cache}/reference-kafka"
    return Path(home) / os.environ.get("KAFKA_VERSION", "4.3.1")


def missing() -> str | None:
    """What prevents the reference from running here, or None."""
    if not shutil.which("java"):
        return "no java on the PATH"
    if not (jars_home() / ".complete").exists() and not shutil.which("mvn"):
        return "Kafka's jars are not cached and there is no mvn on the PATH"
    return None


def is_free(port: int) -> bool:
    with socket.socket() as probe:
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
    return True


def free_ports() -> int:
    """A port that is free together with the next one (on which the controller listens)."""
    for _ in range(1000):
        port = random.choice(PORTS)
        if is_free(port) and is_free(port + 1):
            return port
    raise RuntimeError("no two free ports next to each other")


class ReferenceKafka:
    """One broker: `with ReferenceKafka() as kafka: kafka.port`; without `directory` its files are removed with it."""

    def __init__(
        self, *, config: dict[str, str] | None = None, directory: str | Path | None = None, port: int = 0
    ) -> None:
        self.config = config or {}
        self.port = port or free_ports()
        self._temporary = directory is None
        self.directory = Path(directory or tempfile.mkdtemp(prefix="reference-kafka-")).resolve()
        self.process: subprocess.Popen[bytes] | None = None

    @property
    def data(self) -> Path:
        return self.directory / "data"

    @property
    def pid(self) -> int:
        assert self.process is not None
        return self.process.pid

    @property
    def bootstrap_servers(self) -> str:
        return f"127.0.0.1:{self.port}"

    def log_text(self) -> str:
        return (self.directory / "server.log").read_text(errors="replace")

    def format(self) -> None:
        """Format the data directory, so that a start can be measured alone."""
        subprocess.run(self._command("format"), check=True)

    def spawn(self) -> None:
        """Start the process without waiting for it."""
        self.process = subprocess.Popen(self._command("run"), stdin=subprocess.DEVNULL)

    def start(self) -> None:
        self.spawn()
        self._wait_until_it_accepts()

    def stop(self) -> None:
        if self.process is not None:
            self.process.terminate()
            try:
                self.process.wait(STOP_SECONDS)
            except subprocess.TimeoutExpired:
                self.kill()
            self.process = None

    def kill(self) -> None:
        if self.process is not None:
            self.process.kill()
            self.process.wait()
            self.process = None

    def __enter__(self) -> ReferenceKafka:
        try:
            self.start()
        except BaseException:
            self.__exit__(None, None, None)
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if not self._temporary:
            self.stop()
        else:
            self.kill()  # to stop thousands of partitions in order takes a minute, for nothing
            shutil.rmtree(self.directory, ignore_errors=True)

    def _command(self, command: str) -> list[str]:
        pairs = [f"{key}={value}" for key, value in self.config.items()]
        return [str(SCRIPT), command, str(self.directory), str(self.port), *pairs]

    def _wait_until_it_accepts(self) -> None:
        deadline = time.monotonic() + START_SECONDS
        while time.monotonic() < deadline:
            assert self.process is not None
            if self.process.poll() is not None:
                raise RuntimeError(f"Kafka did not start:\n{self.log_text()[-2000:]}")
            try:
                socket.create_connection(("127.0.0.1", self.port), 1).close()
                return
            except OSError:
                time.sleep(0.02)
        raise RuntimeError(f"Kafka does not accept connections after {START_SECONDS} s")
