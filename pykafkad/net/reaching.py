"""Why the tools' client cannot reach a broker, in one line for the user.

Owns how long an address that never answered is tried, and the words for what is there instead of a broker: nothing, a
port that is silent, HTTP, TLS, an advertised address that leads nowhere. What is behind a silent port is found out by
asking it in those protocols, once, when the client gives up.
"""

from __future__ import annotations

import socket

REACH_S = 3.5  # with the probes below, a broker that is down is told within five seconds
PROBE_S = 0.4
HEAD_BYTES = 5

Address = tuple[str, int]


class Unreachable(Exception):
    """No broker where one should be. str() is one line that says where, and why not."""

    kind = "UNREACHABLE"  # what --json calls it


class NotKafka(ConnectionError):
    """The answer is none of Kafka's; `head` is how it begins."""

    def __init__(self, head: bytes) -> None:
        super().__init__("what answers does not speak Kafka's protocol")
        self.head = head


class NoAnswer(ConnectionError):
    """The connection was accepted and then nothing came, or its end."""


def shown(address: Address) -> str:
    host, port = address
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def nowhere(problems: dict[Address, OSError]) -> Unreachable:
    """None of the bootstrap addresses leads to a broker."""
    tried = "; ".join(
        f"{shown(address)}: {reason(address, problem)}" for address, problem in problems.items()
    )
    return Unreachable(
        f"No broker answers at {tried}. --bootstrap-server or KAFKA_BOOTSTRAP_SERVERS says where one is."
    )


def misadvertised(by: Address, node_id: int, address: Address, problem: OSError) -> Unreachable:
    """A broker answered, and named an address for itself or another that leads nowhere."""
    return Unreachable(
        f"The broker at {shown(by)} advertises broker {node_id} as {shown(address)}, which cannot be reached "
        f"from here: {reason(address, problem)}. Its advertised.listeners must name an address that clients reach."
    )


def reason(address: Address, problem: OSError) -> str:
    if isinstance(problem, NotKafka):
        return _protocol(problem.head) or "what answers there is not Kafka's protocol"
    if isinstance(problem, NoAnswer):
        return _probed(address) or f"it accepts connections, but {problem}"
    if isinstance(problem, socket.gaierror):
        return "the host name is not known"
    if isinstance(problem, TimeoutError):
        return "no connection in time"
    if isinstance(problem, ConnectionRefusedError):
        return "connection refused (is it running?)"
    return (problem.strerror or str(problem) or type(problem).__name__).lower()


def _protocol(head: bytes) -> str | None:
    if head.startswith(b"HTTP"):
        return "what answers there is HTTP, not Kafka's protocol"
    if head[:2] == b"\x15\x03":  # an alert of TLS, in any of its versions
        return "what answers there is TLS, and this tool connects with PLAINTEXT only"
    return None


def _probed(address: Address) -> str | None:
    """What a port that does not answer Kafka's protocol does answer."""
    probes = ((_tls_head, b""), (_plain_head, b"GET / HTTP/1.0\r\n\r\n"))
    for probe, question in probes:
        try:
            with socket.create_connection(address, PROBE_S) as connection:
                connection.settimeout(PROBE_S)
                found = _protocol(probe(connection, question))
        except OSError:
            continue
        if found is not None:
            return found
    return None


def _plain_head(connection: socket.socket, question: bytes) -> bytes:
    connection.sendall(question)
    return connection.recv(HEAD_BYTES)


def _tls_head(connection: socket.socket, _question: bytes) -> bytes:
    """The head of an alert if TLS is spoken, whether the handshake succeeds or is refused."""
    import ssl

    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    alert = b"\x15\x03"
    try:
        context.wrap_socket(connection).close()
    except ssl.SSLError as problem:
        return alert if "ALERT" in (problem.reason or "") else b""
    return alert
