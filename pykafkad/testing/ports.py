"""A port that a broker can use again after a restart.

The ports that a system gives to outgoing connections are not suited for that: while the broker is down, a client that
tries to connect to it may be given that very port as its own. Then it is connected to itself, and the broker cannot
bind the port.
"""

from __future__ import annotations

import random
import socket

CLIENT_PORTS = "/proc/sys/net/ipv4/ip_local_port_range"
USUAL_FIRST_CLIENT_PORT = 32768
FIRST_PORT = 10_000  # well-known ports of other programs are below
TRIES = 100


def lasting_port(host: str) -> int:
    """A free port that is never given to an outgoing connection, or 0 if there is none."""
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
