"""Listeners: binding them, admitting connections, closing those that idle.

Owns the counts of connections (in all, per listener, per address) and what follows from `max.connections`,
`listener.name.NAME.max.connections`, `max.connections.per.ip`, `max.connections.per.ip.overrides` and
`connections.max.idle.ms`. As in Kafka: at max.connections, new connections wait in the backlog until one
closes; the inter-broker listener goes on accepting where there are others, and of theirs the one that is idle
longest gives way. What comes from an address beyond its share is accepted and closed. (KIP-308, KIP-402)
"""

from __future__ import annotations

import socket
from typing import TYPE_CHECKING, Any

from pykafkad.config import BROKER_KEYS
from pykafkad.config_listeners import Endpoint
from pykafkad.errors import StartupError
from pykafkad.logs import logger

if TYPE_CHECKING:
    from collections.abc import Callable

    from pykafkad.config import BrokerConfig
    from pykafkad.hot.reactor import Connection, Reactor
    from pykafkad.hot.reactor import Listener as ReactorListener

    Submit = Callable[[Callable[[], Any], Callable[[Any], None]], None]

IDLE_SWEEP_PAUSE_MS = 1_000  # between two looks at who has been idle for too long, at least
IDLE_SWEEPS = 20  # looks in connections.max.idle.ms: how much longer than that a connection may idle
NO_BOUND = 2**31 - 1
AS_THE_SYSTEM_SAYS = -1  # of socket.send.buffer.bytes and socket.receive.buffer.bytes

log = logger("net")


class Listener:
    """One endpoint: its socket, and how many connections it has and may have."""

    __slots__ = ("accepting", "count", "endpoint", "max_connections", "name", "sock")

    def __init__(self, endpoint: Endpoint, max_connections: int) -> None:
        self.name = endpoint.name
        self.endpoint = endpoint
        self.max_connections = max_connections
        self.count = 0
        self.sock: socket.socket | None = None
        self.accepting: ReactorListener | None = None

    def bind(self, backlog_of: BrokerConfig) -> None:
        """Takes the port; nobody can connect before listen()."""
        try:
            self.sock = _bound_socket(self.endpoint, backlog_of)
        except OSError as error:
            self.close()
            raise StartupError(f"Listener {self.endpoint} cannot be bound: {_why(error)}") from None
        host = self.endpoint.host
        self.endpoint = Endpoint(self.name, self.endpoint.protocol, host, self.sock.getsockname()[1])

    def close(self) -> None:
        if self.accepting is not None:
            self.accepting.close()
            self.accepting = None
        elif self.sock is not None:
            self.sock.close()
        self.sock = None


class Listeners:
    """All listeners of the broker: bind(), then listen(), and close()."""

    def __init__(self, config: BrokerConfig) -> None:
        self._config = config
        self._listeners = [Listener(e, _max_connections(config, e.name)) for e in config.listeners]
        self._protected = _protected_name(config)
        self._max_connections: int = config["max.connections"]
        self._max_per_address: int = config["max.connections.per.ip"]
        self._max_of_address: dict[str, int] = {}
        self._idle_ms: int = config["connections.max.idle.ms"]
        self._count_of_address: dict[str, int] = {}
        self._count = 0
        self._reactor: Reactor | None = None

    @property
    def endpoints(self) -> list[Endpoint]:
        """Where it listens, with the ports that were taken."""
        return [listener.endpoint for listener in self._listeners]

    @property
    def advertised(self) -> list[Endpoint]:
        """Where clients are told to connect: a host and a port left open are those that were bound."""
        bound = {endpoint.name: endpoint for endpoint in self.endpoints}
        return [
            Endpoint(
                e.name, e.protocol, _reachable(e.host or bound[e.name].host), e.port or bound[e.name].port
            )
            for e in self._config.advertised_listeners
        ]

    @property
    def counts(self) -> dict[str, int]:
        """Connections of each listener."""
        return {listener.name: listener.count for listener in self._listeners}

    def bind(self) -> None:
        """Takes all ports, or none and raises StartupError."""
        try:
            self._max_of_address = _by_address(self._config.connections_per_ip_overrides)
            for listener in self._listeners:
                listener.bind(self._config)
        except BaseException:
            self.close()
            raise

    def listen(self, reactor: Reactor) -> None:
        """Lets clients in."""
        self._reactor = reactor
        for listener in self._listeners:
            self._open(listener)
        self._let_in()
        if self._idle_ms >= 0:
            reactor.call_later(self._idle_ms, self._sweep)

    def _open(self, listener: Listener) -> None:
        assert listener.sock is not None and self._reactor is not None
        try:
            listener.sock.listen(self._config["socket.listen.backlog.size"])
        except OSError as error:  # taken since it was bound
            raise StartupError(f"Listener {listener.endpoint} cannot listen: {_why(error)}") from None
        listener.accepting = self._reactor.listen(listener.sock, self._on_accept)
        listener.accepting.owner = listener

    def close(self) -> None:
        """Frees the ports; connections stay."""
        for listener in self._listeners:
            listener.close()

    # -- a change of the config while it runs

    def reconfigure(self, submit: Submit) -> None:
        """New bounds count for connections to come; listeners come and go. Host names are looked up in a thread."""
        config = self._config
        self._max_connections = config["max.connections"]
        self._max_per_address = config["max.connections.per.ip"]
        overrides = config.connections_per_ip_overrides
        if overrides:
            submit(lambda: _by_address(overrides), self._resolved)
        else:
            self._max_of_address = {}
        wanted = {endpoint.name: endpoint for endpoint in config.listeners}
        for listener in [each for each in self._listeners if each.name not in wanted]:
            self._remove(listener)
        for listener in self._listeners:
            listener.max_connections = _max_connections(config, listener.name)
        for name in wanted.keys() - {listener.name for listener in self._listeners}:
            self._add(wanted[name])
        self._let_in()

    def _resolved(self, found: Any) -> None:
        if isinstance(found, StartupError):
            log.error(str(found))
        elif isinstance(found, BaseException):
            raise found
        else:
            self._max_of_address = found

    def _remove(self, listener: Listener) -> None:
        assert self._reactor is not None
        self._listeners.remove(listener)
        for connection in list(self._reactor.connections):
            if connection.listener is not None and connection.listener.owner is listener:
                connection.close(f"listener {listener.name} was removed")
        listener.close()
        log.info(f"Removed the listener {listener.endpoint}")

    def _add(self, endpoint: Endpoint) -> None:
        listener = Listener(endpoint, _max_connections(self._config, endpoint.name))
        try:
            listener.bind(self._config)
            self._open(listener)
        except StartupError as error:
            listener.close()
            log.error(str(error))
            return
        self._listeners.append(listener)
        log.info(f"Added the listener {listener.endpoint}")

    # -- admission

    def _on_accept(self, connection: Connection) -> bool:
        assert connection.listener is not None
        listener: Listener = connection.listener.owner
        address = connection.peer[0]
        count = self._count_of_address.get(address, 0)
        most = self._max_of_address.get(address, self._max_per_address)
        if count >= most:
            log.info(
                f"Rejected connection from {address}, address already has the configured maximum of {most}"
                " connections."
            )
            return False
        self._count_of_address[address] = count + 1
        self._count += 1
        listener.count += 1
        if listener.name == self._protected and self._count > self._max_connections:
            self._make_room()
        if self._is_at_a_bound(listener):
            self._let_in()
        return True

    def closed(self, connection: Connection) -> None:
        """To be told of each connection that was admitted and has ended."""
        if connection.listener is None:
            return
        listener: Listener = connection.listener.owner
        address = connection.peer[0]
        if self._count_of_address[address] == 1:
            del self._count_of_address[address]
        else:
            self._count_of_address[address] -= 1
        was_at_a_bound = self._is_at_a_bound(listener)
        self._count -= 1
        listener.count -= 1
        if was_at_a_bound:
            self._let_in()

    def _is_at_a_bound(self, listener: Listener) -> bool:
        return self._count >= self._max_connections or listener.count >= listener.max_connections

    def _is_full(self, listener: Listener) -> bool:
        if listener.count >= listener.max_connections:
            return True
        return self._count >= self._max_connections and listener.name != self._protected

    def _let_in(self) -> None:
        """Opens and shuts the listeners, as the counts are now."""
        for listener in self._listeners:
            if listener.accepting is not None:
                if self._is_full(listener):
                    listener.accepting.pause()
                else:
                    listener.accepting.resume()

    def _make_room(self) -> None:
        """Closes the connection of another listener that has been idle longest, for one of the brokers'."""
        assert self._reactor is not None
        others = [c for c in self._reactor.connections if _name_of(c) not in (self._protected, None)]
        if others:
            min(others, key=_active_at_ms).close("too many connections, and a broker's comes first")

    # -- idleness

    def _sweep(self) -> None:
        """Closes what has been idle for connections.max.idle.ms, and comes again when the next one may be."""
        assert self._reactor is not None
        now_ms = self._reactor.now_ms
        oldest_ms = now_ms
        for connection in list(self._reactor.connections):
            if connection.received_at_ms + self._idle_ms <= now_ms:
                connection.close(
                    f"idle for {now_ms - connection.received_at_ms} ms (connections.max.idle.ms)"
                )
            else:
                oldest_ms = min(oldest_ms, connection.received_at_ms)
        pause_ms = max(IDLE_SWEEP_PAUSE_MS, self._idle_ms // IDLE_SWEEPS)
        self._reactor.call_later(max(oldest_ms + self._idle_ms - now_ms, pause_ms), self._sweep)


def _active_at_ms(connection: Connection) -> int:
    return connection.received_at_ms


def _name_of(connection: Connection) -> str | None:
    return None if connection.listener is None else connection.listener.owner.name


def _max_connections(config: BrokerConfig, name: str) -> int:
    """The listener's own bound; without one, only that of all listeners together counts."""
    text = config.listener_text(name, "max.connections")
    most: Any = NO_BOUND if text is None else BROKER_KEYS["max.connections"].parse(text)
    return int(most)


def _protected_name(config: BrokerConfig) -> str | None:
    """The inter-broker listener, where it is not the only one."""
    if len(config.listeners) < 2:
        return None
    name = config["inter.broker.listener.name"] or config["security.inter.broker.protocol"]
    return str(name).upper()


def _by_address(overrides: dict[str, int]) -> dict[str, int]:
    """The keys of max.connections.per.ip.overrides as addresses; they may be host names."""
    by_address = {}
    for host, most in overrides.items():
        try:
            found = socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)
        except OSError as error:
            raise StartupError(f"max.connections.per.ip.overrides: host {host}: {_why(error)}") from None
        by_address[str(found[0][4][0])] = most
    return by_address


def _bound_socket(endpoint: Endpoint, config: BrokerConfig) -> socket.socket:
    host, family = endpoint.host, socket.AF_INET6 if ":" in endpoint.host else socket.AF_INET
    if not host or host == "::":
        family, host = (socket.AF_INET6, "::") if socket.has_dualstack_ipv6() else (socket.AF_INET, "0.0.0.0")
    elif family == socket.AF_INET and not host.replace(".", "").isdigit():
        found = socket.getaddrinfo(host, endpoint.port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
        family, host = socket.AddressFamily(found[0][0]), str(found[0][4][0])
    sock = socket.socket(family, socket.SOCK_STREAM)
    try:
        _set_options(sock, endpoint, config)
        sock.bind((host, endpoint.port))
    except BaseException:
        sock.close()
        raise
    return sock


def _set_options(sock: socket.socket, endpoint: Endpoint, config: BrokerConfig) -> None:
    """Accepted sockets have them from the listening one."""
    if endpoint.port:  # a port of the system's choice must be nobody else's
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    if sock.family == socket.AF_INET6:
        only_six = endpoint.host not in ("", "::")
        sock.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, only_six)
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    # A send buffer of Kafka's default size doubles what one fetching socket gets on loopback; a receive buffer of
    # that size costs a large produce a fifth, so the kernel sizes that one unless somebody set the key.
    send_bytes, receive_bytes = config["socket.send.buffer.bytes"], config["socket.receive.buffer.bytes"]
    if send_bytes != AS_THE_SYSTEM_SAYS:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, send_bytes)
    if receive_bytes != AS_THE_SYSTEM_SAYS and config.explicit("socket.receive.buffer.bytes"):
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_bytes)


def _reachable(host: str) -> str:
    """A name for a host that was left open, as Kafka chooses it: this machine's own."""
    return host if host not in ("", "::", "0.0.0.0") else socket.getfqdn()


def _why(error: OSError) -> str:
    return error.strerror or str(error)
