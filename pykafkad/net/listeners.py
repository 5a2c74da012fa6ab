"""Listeners: binding them, and admitting connections.

Owns the counts of connections (in all, per listener, per address) and what follows from `max.connections`,
`listener.name.NAME.max.connections`, `max.connections.per.ip` and `max.connections.per.ip.overrides`. As in Kafka:
at max.connections, new connections wait in the backlog until one closes; the inter-broker listener goes on accepting
where there are others, and of theirs the one that is idle longest gives way. What comes from an address beyond its
share is accepted and closed. (KIP-308, KIP-402)
"""

from __future__ import annotations

import _socket  # the module socket takes half a megabyte, and a sixth of a start
from errno import EADDRINUSE

from pykafkad.config import BROKER_KEYS
from pykafkad.config_listeners import Endpoint
from pykafkad.errors import StartupError
from pykafkad.logs import logger
from pykafkad.net.hosts import is_a_name

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from pykafkad.config import BrokerConfig
    from pykafkad.hot.reactor import Connection, Reactor, Transport
    from pykafkad.hot.reactor import Listener as ReactorListener
    from pykafkad.logs import Logger
    from pykafkad.net.hosts import Found, LookUp

NO_BOUND = 2**31 - 1
UNKNOWN_HOST = "Name or service not known"
AS_THE_SYSTEM_SAYS = -1  # of socket.send.buffer.bytes and socket.receive.buffer.bytes

log = logger("net")


class Listener:
    """One endpoint: its socket, and how many connections it has and may have."""

    __slots__ = ("accepting", "count", "endpoint", "is_cut", "max_connections", "name", "sock")

    def __init__(self, endpoint: Endpoint, max_connections: int) -> None:
        self.name = endpoint.name
        self.endpoint = endpoint
        self.max_connections = max_connections
        self.count = 0
        self.is_cut = False  # whoever connects is turned away
        self.sock: _socket.socket | None = None
        self.accepting: ReactorListener | None = None

    def bind(self, config: BrokerConfig, address: str) -> None:
        """Takes the port; nobody can connect before listen()."""
        try:
            self.sock = _bound_socket(self.endpoint, address, config)
        except OSError as error:
            raise StartupError(
                f"Listener {self.endpoint} cannot be bound: {_why(error)}{_advice(error)}"
            ) from None
        host = self.endpoint.host
        self.endpoint = Endpoint(self.name, self.endpoint.protocol, host, self.sock.getsockname()[1])

    def close(self) -> None:
        if self.accepting is not None:
            self.accepting.close()
        elif self.sock is not None:
            self.sock.close()


class Listeners:
    """All listeners of the broker: bind(), then listen(), and close()."""

    def __init__(self, config: BrokerConfig) -> None:
        self._config = config
        self.transports: dict[str, Transport] = {}  # by a listener's name; plain bytes where there is none
        self._listeners = [Listener(e, _max_connections(config, e.name)) for e in config.listeners]
        self._protected = _protected_name(config)
        self._max_connections: int = config["max.connections"]
        self._max_per_address: int = config["max.connections.per.ip"]
        self._max_of_address: dict[str, int]  # known when it is bound
        self._count_of_address: dict[str, int] = {}
        self._count = 0
        self._descriptors = NO_BOUND
        self._reactor: Reactor  # since it listens
        self._latest: object = None  # change of the config
        self._allows: Callable[[Logger, str, str], bool] = lambda log, kind, address: True

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

    def limit(self, descriptors: int) -> None:
        """So many connections may be, since each takes a descriptor, and others need some."""
        self._descriptors = descriptors

    def bind(self) -> None:
        """Takes all ports, or none and raises StartupError."""
        try:
            self._max_of_address = _by_address(self._config.connections_per_ip_overrides)
            for listener in self._listeners:
                listener.bind(self._config, _looked_up(listener.endpoint))
        except BaseException:
            self.close()
            raise

    def listen(self, reactor: Reactor, allows: Callable[[Logger, str, str], bool] | None = None) -> None:
        """Lets clients in. `allows` says whether a line about an address is written (Quiet.allows)."""
        self._reactor = reactor
        if allows is not None:
            self._allows = allows
        for listener in self._listeners:
            self._open(listener)
        self._let_in()

    def _open(self, listener: Listener) -> None:
        assert listener.sock is not None
        try:
            listener.sock.listen(self._config["socket.listen.backlog.size"])
        except OSError as error:  # taken since it was bound
            raise StartupError(f"Listener {listener.endpoint} cannot listen: {_why(error)}") from None
        transport = self.transports.get(listener.name)
        listener.accepting = self._reactor.listen(listener.sock, self._on_accept, transport=transport)
        listener.accepting.owner = listener

    def close(self) -> None:
        """Frees the ports; connections stay."""
        for listener in self._listeners:
            listener.close()

    # -- a change of the config while it runs

    def reconfigure(self, look_up: LookUp) -> None:
        """New bounds count for connections to come; listeners come and go, those that come when their hosts are known."""
        config = self._config
        self._max_connections = config["max.connections"]
        self._max_per_address = config["max.connections.per.ip"]
        wanted = {endpoint.name for endpoint in config.listeners}
        for listener in [each for each in self._listeners if each.name not in wanted]:
            self._remove(listener)
        for listener in self._listeners:
            listener.max_connections = _max_connections(config, listener.name)
        self._let_in()
        self._latest = change = object()
        hosts = {*config.connections_per_ip_overrides, *(endpoint.host for endpoint in self._to_add())}
        look_up(hosts, lambda found: self._resolved(found) if change is self._latest else None)

    def _to_add(self) -> list[Endpoint]:
        present = {listener.name for listener in self._listeners}
        return [endpoint for endpoint in self._config.listeners if endpoint.name not in present]

    def _resolved(self, found: Found) -> None:
        overrides = self._config.connections_per_ip_overrides
        unknown = [host for host in overrides if host not in found]
        if unknown:
            log.error(f"max.connections.per.ip.overrides: host {unknown[0]}: {UNKNOWN_HOST}")
        else:
            self._max_of_address = {found[host]: most for host, most in overrides.items()}
        for endpoint in self._to_add():
            if endpoint.is_wildcard or endpoint.host in found:
                self._add(endpoint, found.get(endpoint.host, endpoint.host))
            else:
                log.error(f"Listener {endpoint} cannot be bound: {UNKNOWN_HOST}")
        self._let_in()

    def _remove(self, listener: Listener) -> None:
        self._listeners.remove(listener)
        for connection in list(self._reactor.connections):
            if _is_of(connection, listener):
                connection.close(f"listener {listener.name} was removed")
        listener.close()
        log.info(f"Removed the listener {listener.endpoint}")

    def _add(self, endpoint: Endpoint, address: str) -> None:
        listener = Listener(endpoint, _max_connections(self._config, endpoint.name))
        try:
            listener.bind(self._config, address)
            self._open(listener)
        except StartupError as error:
            listener.close()
            log.error(str(error))
            return
        self._listeners.append(listener)
        log.info(f"Added the listener {listener.endpoint}")

    # -- drills

    def cut(self, name: str) -> None:
        """Whoever has come through that listener is shown out, and whoever comes is turned away, until mend()."""
        for listener in self._listeners:
            if listener.name == name:
                listener.is_cut = True
                for connection in [each for each in self._reactor.connections if _is_of(each, listener)]:
                    connection.close(f"listener {name} is cut off")

    def mend(self) -> None:
        for listener in self._listeners:
            listener.is_cut = False

    # -- admission

    def _on_accept(self, connection: Connection) -> bool:
        assert connection.listener is not None
        listener: Listener = connection.listener.owner
        if listener.is_cut:
            return False
        address = connection.peer[0]
        count = self._count_of_address.get(address, 0)
        most = self._max_of_address.get(address, self._max_per_address)
        if count >= most:
            if self._allows(log, "Rejected connections", address):
                log.info(
                    f"Rejected connection from {address}, address already has the configured maximum of {most}"
                    " connections."
                )
            return False
        self._count_of_address[address] = count + 1
        self._count += 1
        listener.count += 1
        if listener.name == self._protected and self._count > self._most:
            self._make_room()
        if self._is_at_a_bound(listener):
            self._let_in()
        if log.debugs:
            log.debug(f"{address}:{connection.peer[1]} has connected to {listener.endpoint}")
        if self._count == self._descriptors and self._allows(log, "connections without descriptors", "all"):
            log.warn(
                f"There are {self._count} connections, as many as the process has descriptors for (ulimit -n):"
                " new ones wait until one closes."
            )
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

    @property
    def _most(self) -> int:
        return min(self._max_connections, self._descriptors)

    def _is_at_a_bound(self, listener: Listener) -> bool:
        return self._count >= self._most or listener.count >= listener.max_connections

    def _is_full(self, listener: Listener) -> bool:
        if listener.count >= listener.max_connections:
            return True
        return self._count >= self._most and listener.name != self._protected

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
        others = [c for c in self._reactor.connections if _name_of(c) not in (self._protected, None)]
        if others:
            min(others, key=_active_at_ms).close("too many connections, and a broker's comes first")


def _is_of(connection: Connection, listener: Listener) -> bool:
    return connection.listener is not None and connection.listener.owner is listener


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
            found = _socket.getaddrinfo(host, None, type=_socket.SOCK_STREAM)
        except (OSError, UnicodeError) as error:
            raise StartupError(f"max.connections.per.ip.overrides: host {host}: {_why(error)}") from None
        by_address[str(found[0][4][0])] = most
    return by_address


def _looked_up(endpoint: Endpoint) -> str:
    """The address of a listener's host; at a start there is nobody yet who would wait meanwhile."""
    if not is_a_name(endpoint.host):
        return endpoint.host
    try:
        return str(_socket.getaddrinfo(endpoint.host, endpoint.port, type=_socket.SOCK_STREAM)[0][4][0])
    except (OSError, UnicodeError) as error:
        raise StartupError(f"Listener {endpoint} cannot be bound: {_why(error)}{_advice(error)}") from None


def _bound_socket(endpoint: Endpoint, address: str, config: BrokerConfig) -> _socket.socket:
    host, family = address, _socket.AF_INET6 if ":" in address else _socket.AF_INET
    if not host or host == "::":
        from socket import has_dualstack_ipv6

        family, host = (_socket.AF_INET6, "::") if has_dualstack_ipv6() else (_socket.AF_INET, "0.0.0.0")
    sock = _socket.socket(family, _socket.SOCK_STREAM)
    try:
        _set_options(sock, endpoint, config)
        sock.bind((host, endpoint.port))
    except BaseException:
        sock.close()
        raise
    return sock


def _set_options(sock: _socket.socket, endpoint: Endpoint, config: BrokerConfig) -> None:
    """Accepted sockets have them from the listening one."""
    if endpoint.port:  # a port of the system's choice must be nobody else's
        sock.setsockopt(_socket.SOL_SOCKET, _socket.SO_REUSEADDR, True)
    if sock.family == _socket.AF_INET6:
        only_six = endpoint.host not in ("", "::")
        sock.setsockopt(_socket.IPPROTO_IPV6, _socket.IPV6_V6ONLY, only_six)
    sock.setsockopt(_socket.IPPROTO_TCP, _socket.TCP_NODELAY, True)
    sock.setsockopt(_socket.SOL_SOCKET, _socket.SO_KEEPALIVE, True)
    # A send buffer of Kafka's default size doubles what one fetching socket gets on loopback; a receive buffer of
    # that size costs a large produce a fifth, so the kernel sizes that one unless somebody set the key.
    send_bytes, receive_bytes = config["socket.send.buffer.bytes"], config["socket.receive.buffer.bytes"]
    if send_bytes != AS_THE_SYSTEM_SAYS:
        sock.setsockopt(_socket.SOL_SOCKET, _socket.SO_SNDBUF, send_bytes)
    if receive_bytes != AS_THE_SYSTEM_SAYS and config.explicit("socket.receive.buffer.bytes"):
        sock.setsockopt(_socket.SOL_SOCKET, _socket.SO_RCVBUF, receive_bytes)


def _reachable(host: str) -> str:
    """A name for a host that was left open, as Kafka chooses it: this machine's own."""
    if host not in ("", "::", "0.0.0.0"):
        return host
    from socket import getfqdn

    return getfqdn()


def _advice(error: OSError | UnicodeError) -> str:
    if isinstance(error, OSError) and error.errno == EADDRINUSE:
        return ": --port PORT names another port, --port 0 takes any free one"
    return ""


def _why(error: OSError | UnicodeError) -> str:
    return getattr(error, "strerror", None) or str(error)
