"""A ZooKeeper and one Kafka 3.9.2 on it, for the whole session."""

from __future__ import annotations

import os
import socket
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from compat_tests.reference import SCRIPT, START_SECONDS, free_ports, missing

VERSION = "3.9.2"
CHROOT = "/kafka"
SMALL_HEAP = "-Xmx256M"
QUICK = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"  # both are small, and live for a minute

ZOOKEEPER = "org.apache.zookeeper.server.quorum.QuorumPeerMain"
SASL_PROVIDER = "org.apache.zookeeper.server.auth.SASLAuthenticationProvider"
USER, PASSWORD = "kafka", "secret"
JAAS = """
Server {{
    org.apache.zookeeper.server.auth.DigestLoginModule required
    user_{user}="{password}";
}};
"""


class Kafka:
    def __init__(self, zookeeper: str, bootstrap: str) -> None:
        self.zookeeper = zookeeper  # HOST:PORT/CHROOT
        self.bootstrap = bootstrap


def write(path: Path, keys: dict[str, object]) -> Path:
    path.write_text("".join(f"{key}={value}\n" for key, value in keys.items()))
    return path


def spawn(log: Path, main: str, config: Path, options: str) -> subprocess.Popen[bytes]:
    environment = {
        **os.environ,
        "KAFKA_VERSION": VERSION,
        "KAFKA_HEAP_OPTS": SMALL_HEAP,
        "KAFKA_JVM_OPTS": f"{QUICK} {options}",
    }
    with log.open("wb") as out:
        return subprocess.Popen(
            [str(SCRIPT), "class", main, str(config)],
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=subprocess.STDOUT,
        )


def wait_for(port: int, process: subprocess.Popen[bytes], log: Path) -> None:
    deadline = time.monotonic() + START_SECONDS
    while time.monotonic() < deadline:
        assert process.poll() is None, log.read_text(errors="replace")[-2000:]
        try:
            socket.create_connection(("127.0.0.1", port), 1).close()
            return
        except OSError:
            time.sleep(0.05)
    raise AssertionError(f"nothing serves on port {port}:\n{log.read_text(errors='replace')[-2000:]}")


@pytest.fixture(scope="session")
def kafka(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Kafka]:
    if lack := missing():
        pytest.skip(lack)
    install()
    directory = tmp_path_factory.mktemp("kafka")
    ports = free_ports()
    zookeeper, broker = ports, ports + 1
    zoo = {
        "tickTime": 2000,
        "dataDir": directory / "zookeeper",
        "clientPortAddress": "127.0.0.1",
        "clientPort": zookeeper,
        "admin.enableServer": "false",
    }
    server = {
        "broker.id": 0,
        "broker.rack": "a",
        "zookeeper.connect": f"127.0.0.1:{zookeeper}{CHROOT}",
        "listeners": f"PLAINTEXT://127.0.0.1:{broker}",
        "log.dirs": directory / "data",
    }
    jaas = directory / "jaas.conf"
    jaas.write_text(JAAS.format(user=USER, password=PASSWORD))
    logins = f"-Djava.security.auth.login.config={jaas} -Dzookeeper.authProvider.sasl={SASL_PROVIDER}"
    processes = []
    try:
        for port, main, config, options in (
            (zookeeper, ZOOKEEPER, write(directory / "zoo.cfg", zoo), logins),
            (broker, "kafka.Kafka", write(directory / "server.properties", server), ""),
        ):
            log = directory / f"{port}.log"
            processes.append(spawn(log, main, config, options))
            wait_for(port, processes[-1], log)
        yield Kafka(f"127.0.0.1:{zookeeper}{CHROOT}", f"127.0.0.1:{broker}")
    finally:
        for process in reversed(processes):
            process.kill()
            process.wait()


def install() -> None:
    """Before anything is waited for: Maven may have to bring it first."""
    environment = {**os.environ, "KAFKA_VERSION": VERSION}
    subprocess.run([str(SCRIPT), "install"], env=environment, check=True, stdout=subprocess.DEVNULL)
