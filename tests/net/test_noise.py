"""A broker among hostile clients: it serves the others, logs little, and frees the memory that they took."""

from __future__ import annotations

import os
import socket
import struct
import subprocess
import sys
import time
from collections.abc import Callable

import pytest

from pykafkad.messages import MetadataRequest
from pykafkad.net.connection import Connection
from pykafkad.testing import Broker

SECONDS = 60
CONFIG = {"socket.listen.backlog.size": 4096}  # else connecting may take a second now and then
RESET = struct.pack("ii", 1, 0)


def resident_mib(pid: int) -> float:
    with open(f"/proc/{pid}/statm", encoding="ascii") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE") / (1 << 20)


def knock(port: int) -> socket.socket:
    return socket.create_connection(("127.0.0.1", port), SECONDS)


def answers(port: int) -> bool:
    client = Connection("127.0.0.1", port, "test")
    deadline = time.monotonic() + SECONDS
    client.learn_versions(deadline)
    client.call(MetadataRequest(topics=None), deadline)
    client.close()
    return True


def noise(port: int, times: int) -> None:
    for _ in range(times):
        with knock(port) as client:
            client.sendall(b"\xff\xff\xff\xff")
            client.recv(1)


def half_a_head(port: int) -> socket.socket:
    client = knock(port)
    client.sendall(b"\0\0")
    return client


def most_of_a_frame(port: int) -> socket.socket:
    client = knock(port)
    client.sendall(struct.pack(">i", 60_001) + bytes(60_000))
    return client


def reset_in_the_middle(port: int) -> socket.socket:
    client = most_of_a_frame(port)
    client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET)
    client.close()
    return client


def test_noise_is_one_line_and_then_a_count() -> None:
    with Broker(config=CONFIG) as broker:
        noise(broker.port, 2000)
        lines = [line for line in broker.log_text().splitlines() if "Invalid receive" in line]
        assert len(lines) == 1
        assert answers(broker.port)


@pytest.mark.skipif(not os.path.exists("/proc/self/statm"), reason="no /proc here: it needs Linux")
@pytest.mark.parametrize(
    ("come", "most_mib"), [(knock, 4), (half_a_head, 4), (most_of_a_frame, 90), (reset_in_the_middle, 20)]
)
def test_many_connections_take_little_and_give_it_back(
    come: Callable[[int], socket.socket], most_mib: int
) -> None:
    with Broker(config=CONFIG) as broker:
        assert answers(broker.port)
        before = resident_mib(broker.pid)
        for _ in range(2):
            clients = [come(broker.port) for _ in range(1000)]
            assert answers(broker.port)
            assert resident_mib(broker.pid) - before <= most_mib
            for client in clients:
                client.close()
        time.sleep(0.2)
        assert answers(broker.port)
        assert resident_mib(broker.pid) - before <= 45  # the C library keeps some of it for later


@pytest.mark.skipif(not os.path.exists("/proc/self/statm"), reason="no /proc here: it needs Linux")
def test_twenty_large_frames_that_stay_unfinished_take_what_there_is_for_them() -> None:
    with Broker(config=CONFIG) as broker:
        before = resident_mib(broker.pid)
        clients = [knock(broker.port) for _ in range(20)]
        part = struct.pack(">i", 100 << 20) + bytes(40 << 20)
        for client in clients:
            client.settimeout(0.2)
            try:
                client.sendall(part)
            except TimeoutError:  # nobody reads from it
                pass
        assert resident_mib(broker.pid) - before <= 256 + 100 + 30
        assert answers(broker.port)
        for client in clients:
            client.close()


def start(shell: str, *options: str, **streams: object) -> tuple[subprocess.Popen[bytes], int]:
    """Start the program by a shell's command line, which says where its output goes."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    program = [sys.executable, "-m", "pykafkad", "start", "--port", str(port), "--ephemeral", *options]
    process = subprocess.Popen(["sh", "-c", shell, "sh", *program], **streams)  # type: ignore[call-overload]
    deadline = time.monotonic() + SECONDS
    while time.monotonic() < deadline and process.poll() is None:
        try:
            knock(port).close()
            break
        except ConnectionRefusedError:
            time.sleep(0.05)
    return process, port


def test_a_log_that_nobody_reads_holds_up_nobody() -> None:
    process, port = start(
        'exec "$@"', "--log-level", "debug", stderr=subprocess.PIPE, stdout=subprocess.DEVNULL
    )
    try:
        noise(port, 3000)  # far more than fits into a pipe
        assert answers(port)
        process.terminate()
        lines = process.communicate(timeout=SECONDS)[1].decode()
        assert process.returncode == 0
        assert 100 < lines.count("Invalid receive") < 3000
    finally:
        process.kill()


@pytest.mark.parametrize("closing", ["1>&-", "2>&-", "1>&- 2>&- 0<&-", "1>/dev/full 2>/dev/full"])
def test_without_standard_streams_it_serves(closing: str) -> None:
    process, port = start(f'exec "$@" {closing}')
    try:
        noise(port, 3)
        assert answers(port)
        process.terminate()
        assert process.wait(SECONDS) == 0
    finally:
        process.kill()
