"""A broker that is not there, or is none: the tools say so in one line that names the address."""

from __future__ import annotations

import json
import socket
import ssl
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

import pytest

from pykafkad.net import reaching
from pykafkad.net.client import Cluster
from pykafkad.net.reaching import Unreachable
from pykafkad.testing import Broker
from pykafkad.testing.ports import lasting_port

SHORT_MS = 600  # to the end of the tries
SECONDS = 60  # against hangs
TOOLS = [
    ["topics", "--list"],
    ["topics", "--list", "--json"],
    ["configs", "--describe", "--topic", "t"],
    ["groups", "--list"],
    ["groups", "--describe", "--group", "g"],
    ["offsets"],
    ["log-dirs", "--describe"],
    ["consume", "--topic", "t"],
    ["consume", "--topic", "t", "--partition", "0"],
    ["produce", "--topic", "t"],
    ["perf-consume", "--topic", "t", "--num-records", "1", "--hide-header"],
    ["perf-produce", "--topic", "t", "--num-records", "1", "--record-size", "1", "--throughput", "1"],
]

Serve = Callable[[socket.socket], None]


@contextmanager
def serving(serve: Serve) -> Iterator[tuple[str, int]]:
    """Something that is no broker."""
    listener = socket.create_server(("127.0.0.1", 0))
    done = threading.Event()

    def accept() -> None:
        with suppress(OSError):
            while True:
                connection, _ = listener.accept()
                threading.Thread(target=one, args=(connection,), daemon=True).start()

    def one(connection: socket.socket) -> None:
        with suppress(OSError), connection:
            serve(connection)
            done.wait(SECONDS)

    threading.Thread(target=accept, daemon=True).start()
    try:
        yield listener.getsockname()
    finally:
        done.set()
        listener.shutdown(socket.SHUT_RDWR)
        listener.close()


def silent(connection: socket.socket) -> None:
    """It accepts, and that is all."""


def closing(connection: socket.socket) -> None:
    connection.shutdown(socket.SHUT_RDWR)


def http(connection: socket.socket) -> None:
    connection.recv(100)
    connection.sendall(b"HTTP/1.1 400 Bad Request\r\n\r\n")


def patient_http(connection: socket.socket) -> None:
    """As most servers it waits for the end of the header."""
    found = b""
    while b"\r\n\r\n" not in found:
        found += connection.recv(100)
    connection.sendall(b"HTTP/1.1 200 OK\r\n\r\n")


def tls_alert(connection: socket.socket) -> None:
    connection.recv(100)
    connection.sendall(b"\x15\x03\x03\x00\x02\x02\x46")


def tls(connection: socket.socket) -> None:
    """It has no certificate, so the handshake fails with an alert."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    with suppress(OSError):
        context.wrap_socket(connection, server_side=True)
    with suppress(OSError):
        connection.shutdown(socket.SHUT_RDWR)


def greeting(connection: socket.socket) -> None:
    connection.sendall(b"SSH-2.0-OpenSSH_9.9\r\n")


def fault(bootstrap: str) -> str:
    cluster = Cluster(bootstrap, setup_timeout_ms=SHORT_MS)
    try:
        with pytest.raises(Unreachable) as found:
            cluster.attempt("listTopics", lambda: cluster.metadata(None))
    finally:
        cluster.close()
    said = str(found.value)
    assert "\n" not in said
    return said


@pytest.mark.parametrize(
    ("serve", "said"),
    [
        (silent, "it accepts connections, but does not answer"),
        (closing, "it accepts connections, but closes them without an answer"),
        (http, "what answers there is HTTP, not Kafka's protocol"),
        (patient_http, "what answers there is HTTP, not Kafka's protocol"),
        (tls_alert, "what answers there is TLS, and this tool connects with PLAINTEXT only"),
        (tls, "what answers there is TLS, and this tool connects with PLAINTEXT only"),
        (greeting, "what answers there is not Kafka's protocol"),
    ],
)
def test_a_port_that_is_no_broker(serve: Serve, said: str) -> None:
    with serving(serve) as address:
        where = reaching.shown(address)
        assert fault(where).startswith(f"No broker answers at {where}: {said}. --bootstrap-server or KAFKA_")


def test_nothing_there_and_several_addresses() -> None:
    with serving(silent) as address:
        where = reaching.shown(address)
        said = fault(f"no-such-host.invalid:9092,{where}")
    assert "no-such-host.invalid:9092: the host name is not known; " in said and where in said
    said = fault(where)  # nobody listens there any more
    assert f"{where}: connection refused (is it running?)" in said


def test_the_one_address_of_many_that_answers_is_found() -> None:
    with serving(silent) as address, Broker() as broker:
        cluster = Cluster(f"{reaching.shown(address)},{broker.bootstrap_servers}", setup_timeout_ms=SHORT_MS)
        cluster.metadata([])
        cluster.close()


def test_a_broker_that_was_there_is_waited_for() -> None:
    """Only what never answered is given up so early."""
    with Broker() as broker:
        cluster = Cluster(broker.bootstrap_servers, setup_timeout_ms=1, api_timeout_ms=60_000)
        cluster.metadata([])
        for connection in list(cluster._connections.values()):
            cluster.drop(connection)
    with pytest.raises(ConnectionRefusedError):
        cluster.metadata([])
    cluster.close()


def test_all_of_it_comes_within_five_seconds() -> None:
    assert reaching.REACH_S + 2 * reaching.PROBE_S < 4.5, "the rest is for starting Python"


def tool(*arguments: str, bootstrap: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "pykafkad", *arguments, "--bootstrap-server", bootstrap]
    return subprocess.run(command, input="x\n", capture_output=True, text=True, timeout=SECONDS, check=False)


@pytest.mark.parametrize("arguments", TOOLS, ids=" ".join)
def test_every_tool_tells_it(arguments: list[str]) -> None:
    with serving(greeting) as address:
        where = reaching.shown(address)
        done = tool(*arguments, bootstrap=where)
    lines = done.stderr.splitlines()
    assert done.returncode == 1 and lines[0].startswith(f"No broker answers at {where}: "), done
    assert lines[1:2] == (
        ["ERROR 1 of 1 records were not stored in topic t: line 1"] * (arguments[0] == "produce")
    )
    if "--json" in arguments:
        assert json.loads(done.stdout) == {"error": {"name": "UNREACHABLE", "message": lines[0]}}
    else:
        assert not done.stdout


@pytest.mark.parametrize("arguments", [["consume", "--topic", "t"], ["produce", "--topic", "t"]])
def test_an_advertised_address_that_leads_nowhere(arguments: list[str]) -> None:
    advertised = "PLAINTEXT://no-such-host.invalid:9999"
    short = ["--command-property", f"socket.connection.setup.timeout.ms={SHORT_MS}"]
    port = lasting_port("127.0.0.1")
    where = f"127.0.0.1:{port}"
    with Broker(port=port, config={"advertised.listeners": advertised}):
        done = tool(*arguments, *short, bootstrap=where)
    assert done.returncode == 1
    assert done.stderr.splitlines()[0] == (
        f"The broker at {where} advertises broker 1 as no-such-host.invalid:9999, which cannot be reached from "
        "here: the host name is not known. Its advertised.listeners must name an address that clients reach."
    )
