"""Our own producer and consumer with a broker whose bytes travel through a null TLS, as programs of their own: what is
read is what was written. A proxy in this process is the clients' side of the transport."""

from __future__ import annotations

import select
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.seam_kit import PeerSocket

SCRIPT = Path(__file__).parents[1] / "seams" / "broker.py"
SECONDS = 60
LINES = [b"%d" % i * (i % 400) + b"." for i in range(4_000)]


class Proxy:
    """Plain bytes on this side, a transport's on the broker's."""

    def __init__(self, kind: str) -> None:
        self.kind = kind
        self.server = socket.create_server(("127.0.0.1", 0))
        self.port = self.server.getsockname()[1]
        self.target = 0

    def start(self) -> None:
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self) -> None:
        while True:
            try:
                client = self.server.accept()[0]
            except OSError:
                return
            threading.Thread(target=self.carry, args=(client,), daemon=True).start()

    def carry(self, client: socket.socket) -> None:
        raw = socket.create_connection(("127.0.0.1", self.target))
        broker: Any = PeerSocket(raw, self.kind, client=True)
        for sock in (client, raw):
            sock.setblocking(False)
        to_broker, to_client = bytearray(), bytearray()
        try:
            while True:
                writes = [raw] if broker.machine.out else []
                if to_client:
                    writes.append(client)
                reads = [raw] if len(to_client) < 1 << 20 else []
                if len(to_broker) < 1 << 20:
                    reads.append(client)
                select.select(reads, writes, [], 0.05)
                if not (pump(client, to_broker, broker) and pump(broker, to_client, client)):
                    return
        finally:
            broker.close()
            client.close()


def pump(source: Any, waiting: bytearray, sink: Any) -> bool:
    """What can be moved now; False at the end."""
    try:
        data = source.recv(65_536) if len(waiting) < 1 << 20 else None
        if data == b"":
            return False
        waiting += data or b""
    except BlockingIOError:
        pass
    except OSError:
        return False
    try:
        while waiting:
            del waiting[: sink.send(bytes(waiting[:65_536]))]
    except BlockingIOError:
        pass
    except OSError:
        return False
    return True


@contextmanager
def broker(kind: str, data: Path, loop: str) -> Iterator[str]:
    """Runs until the with ends; where clients find it."""
    proxy = Proxy(kind)
    command = [sys.executable, str(SCRIPT), kind, str(data), str(proxy.port if kind != "plain" else 0), loop]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None and process.stderr is not None
        proxy.target = int(process.stdout.readline())
        proxy.start()
        try:
            yield f"127.0.0.1:{proxy.target if kind == 'plain' else proxy.port}"
        finally:
            process.terminate()
            said = process.communicate(timeout=SECONDS)[1]
            proxy.server.close()
        assert process.returncode == 0 and "Traceback" not in said and "ERROR" not in said, said


def tool(*arguments: str, data: bytes = b"") -> bytes:
    done = subprocess.run(
        [sys.executable, "-m", "pykafkad", *arguments], input=data, capture_output=True, timeout=SECONDS
    )
    assert done.returncode == 0, done.stderr.decode()
    return done.stdout


@pytest.mark.parametrize("loop", ["compiled", "plain"])
@pytest.mark.parametrize("kind", ["veil", "records"])
def test_what_is_read_is_what_was_written(kind: str, loop: str, tmp_path: Path) -> None:
    if loop == "compiled":
        pytest.importorskip("pykafkad.hot.reactor")
    with broker(kind, tmp_path, loop) as address:
        where = ["--bootstrap-server", address, "--topic", "topic"]
        tool("topics", "--create", *where, "--partitions", "1")
        tool("produce", *where, "--compression-codec", "none", data=b"\n".join(LINES) + b"\n")
        read = tool("consume", *where, "--from-beginning", "--max-messages", str(len(LINES)))
    assert read.splitlines() == LINES
