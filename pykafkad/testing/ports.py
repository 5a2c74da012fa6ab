"""A port that a broker can come back to.

The ports that a system gives to clients are no good for that: while the broker is away, a client that tries to connect
to it can be given the very port as its own, and then it talks to itself and the broker cannot have it back.
"""

from __future__ import annotations

import random
import socket

CLIENT_PORTS = "/proc/sys/net/ipv4/ip_local_port_range"
USUAL_FIRST_CLIENT_PORT = 32768
FIRST_PORT = 10_000  # below are those that other programs are known by
TRIES = 100


def lasting_port(host: str) -> int:
    """A free port that no client is given, or 0 where there is none."""
    last = first_client_port() - 1
    for _ in range(TRIES if last > FIRST_PORT else 0):
        port = random.randint(FIRST_PORT, last)
        if is_free(host, port):
            return port
    return 0


def first_client_port() -> int:
    try:
        with open(CLIENT_PORTS, encoding="ascii") as file:
            return int(file.read().split()[0])
    except (OSError, ValueError):
        return USUAL_FIRST_CLIENT_PORT


def is_free(host: str, port: int) -> bool:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.socket(family) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((host, port))
        except OSError:
            return False
        return True
