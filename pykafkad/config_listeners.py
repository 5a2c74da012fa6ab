"""Listeners and what they advertise, from their config texts.

Owns the parsing of `listeners`, `advertised.listeners`, `listener.security.protocol.map` and
`max.connections.per.ip.overrides`, with Kafka's rules and messages. Controller listeners are recognised and left out:
this broker is its own controller and opens no port for it. Only protocols in SERVED are accepted, so that nothing that
should be encrypted or authenticated is ever served in the clear.
"""

from __future__ import annotations

from pykafkad.config_def import BLANKS_BESIDE_COMMAS, JAVA_BLANKS, ConfigError, show
from pykafkad.pure import java

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pykafkad.config_def import Value

SECURITY_PROTOCOLS = ("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL")
SERVED = ("PLAINTEXT",)
LISTENER_FORM = "NAME://HOST:PORT, several of them separated by commas"
MAX_PORT = 65535
WILDCARDS = ("", "0.0.0.0", "::")
_HOST_CHARACTERS = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-%._:")


class Endpoint:
    """One listener: its name, its security protocol, and the address that it listens on or advertises.

    An empty host means every interface, port 0 any free one.
    """

    __slots__ = ("host", "name", "port", "protocol")

    def __init__(self, name: str, protocol: str, host: str, port: int) -> None:
        self.name = name
        self.protocol = protocol
        self.host = host
        self.port = port

    def __repr__(self) -> str:
        return f"{self.name}://{host_port(self.host, self.port)}"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Endpoint) and self.key() == other.key()

    def __hash__(self) -> int:
        return hash(self.key())

    def key(self) -> tuple[str, str, str, int]:
        return self.name, self.protocol, self.host, self.port

    @property
    def is_wildcard(self) -> bool:
        """Whether it listens on every interface."""
        return self.host in WILDCARDS


def host_port(host: str, port: int) -> str:
    """`host:port`, with brackets around an IPv6 address."""
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def listener_name(text: str) -> str:
    """The name at the beginning of a listener's text, in capitals as Kafka compares them."""
    name, separator, _ = text.partition(":")
    if not separator or not name:
        raise ConfigError("listeners", text, f"Unable to parse a listener name from {text}", LISTENER_FORM)
    return name.upper()


def parse_protocol_map(text: str) -> dict[str, str]:
    """`NAME:PROTOCOL,...` as a dict, in its order."""
    key = "listener.security.protocol.map"
    found: dict[str, str] = {}
    for entry in _csv(text):
        name, colon, protocol = entry.rpartition(":")
        if not colon:
            allowed = "NAME:PROTOCOL, several of them separated by commas"
            raise _without_colon(key, text, entry, allowed)
        protocol = protocol.strip(JAVA_BLANKS)
        if protocol.upper() not in SECURITY_PROTOCOLS:
            message = f"Invalid security protocol `{protocol}` defined in {key}"
            raise ConfigError(key, text, message, f"one of {', '.join(SECURITY_PROTOCOLS)}")
        found[name.strip(JAVA_BLANKS).upper()] = protocol.upper()
    return found


def parse_overrides(text: str) -> dict[str, int]:
    """`max.connections.per.ip.overrides`: host or address -> number of connections."""
    key = "max.connections.per.ip.overrides"
    allowed = "HOST:COUNT, several of them separated by commas"
    texts: dict[str, str] = {}
    for entry in _csv(text):
        host, colon, count = entry.rpartition(":")
        if not colon:
            raise _without_colon(key, text, entry, allowed)
        texts[host.strip(JAVA_BLANKS)] = count.strip(JAVA_BLANKS)
    found: dict[str, int] = {}
    for host in java.set_order(texts):  # of several mistakes Kafka reports the first one in the map
        try:
            found[host] = java.parse_int(texts[host])
        except ValueError:
            raise ConfigError(key, text, f'For input string: "{texts[host]}"', allowed) from None
    return found


def _without_colon(key: str, text: str, entry: str, allowed: str) -> ConfigError:
    said = f"Error parsing configuration property '{key}': "
    told = f"{said}begin 0, end -1, length {len(entry)}"  # clients see the message of Java's parser
    return ConfigError(key, text, f"{said}{entry} has no colon", allowed, told)


def _csv(text: str) -> list[str]:
    """Split as Kafka splits its maps: empty entries count, except at the end."""
    entries = [entry.strip(BLANKS_BESIDE_COMMAS) for entry in text.split(",")]
    while entries and not entries[-1]:
        entries.pop()
    return entries


def _entries(text: str) -> list[str]:
    return [entry for part in text.split(",") if (entry := part.strip(JAVA_BLANKS))]


def parse_endpoints(key: str, texts: Sequence[str], protocols: Mapping[str, str]) -> list[Endpoint]:
    """The listeners of one key, each with its protocol. Names must differ, and so must ports, except for port 0."""
    listed = f"Error creating broker listeners from '{show(list(texts))}': "
    endpoints = []
    for text in texts:
        try:
            parsed = split_endpoint(text)
        except ValueError as error:
            message = f'{listed}For input string: "{error}"'
            raise ConfigError(key, text, message, LISTENER_FORM) from None
        if parsed is None:
            message = f"{listed}Unable to parse {text} to a broker endpoint"
            raise ConfigError(key, text, message, LISTENER_FORM)
        name, host, port = parsed
        if name not in protocols:
            message = f"{listed}No security protocol defined for listener {name}"
            raise ConfigError(key, text, message, f"a name from {', '.join(protocols) or 'the protocol map'}")
        endpoints.append(Endpoint(name, protocols[name], host, port))
    _check_distinct(key, texts, listed, endpoints)
    return endpoints


def split_endpoint(text: str) -> tuple[str, str, int] | None:
    """The parts of NAME://HOST:PORT; None if it has another form, ValueError if its port is not an int for Java."""
    name, separator, address = text.rpartition("://")
    host, colon, port = address.rpartition(":")
    if not separator or not colon or not port.removeprefix("-").isdigit() or not port.isascii():
        return None
    host = host.removeprefix("[").removesuffix("]")
    if not _HOST_CHARACTERS.issuperset(host):
        return None
    return name.upper(), host, java.parse_int(port)


def _check_distinct(key: str, texts: Sequence[str], listed: str, endpoints: list[Endpoint]) -> None:
    shown = ", ".join(texts)
    if len({endpoint.name for endpoint in endpoints}) < len(endpoints):
        message = f"{listed}Each listener must have a different name, listeners: [{shown}]"
        raise ConfigError(key, shown, message, "every name once")
    for endpoint in endpoints:
        if not 0 <= endpoint.port <= MAX_PORT:
            message = f"Invalid value {endpoint} for configuration {key}: the port is out of range"
            raise ConfigError(key, endpoint, message, f"a port from 0 to {MAX_PORT}")
    if key != "listeners":
        return  # advertised listeners may share a port, behind a proxy
    by_port: dict[int, list[Endpoint]] = {}
    for endpoint in endpoints:
        if endpoint.port:
            by_port.setdefault(endpoint.port, []).append(endpoint)
    for same in by_port.values():
        families = {":" in endpoint.host for endpoint in same}
        # one IPv4 and one IPv6 address may share a port number: they are two sockets
        if len(same) > 1 and not (len(same) == len(families) and all(_is_address(e.host) for e in same)):
            message = f"{listed}Each listener must have a different port, listeners: [{shown}]"
            raise ConfigError(key, shown, message, "every port once")


def _is_address(host: str) -> bool:
    return ":" in host or (host.count(".") == 3 and host.replace(".", "").isdigit())


def check_served(endpoints: Sequence[Endpoint]) -> None:
    """Refuse a listener that would need a security protocol this broker does not speak."""
    for endpoint in endpoints:
        if endpoint.protocol not in SERVED:
            message = (
                f"Invalid value {endpoint} for configuration listeners: "
                f"listener {endpoint.name} has the security protocol {endpoint.protocol}"
            )
            raise ConfigError("listeners", endpoint, message, f"listeners with {', '.join(SERVED)}")


class Listeners:
    """The result of `listeners` and `advertised.listeners`: for clients, advertised, and not opened."""

    __slots__ = ("advertised", "clients", "controllers")

    def __init__(self, values: Mapping[str, Value], explicit: Mapping[str, str]) -> None:
        controllers = _texts(values, "controller.listener.names")
        texts = _texts(values, "listeners")
        protocols = _protocols(values, explicit, texts, controllers)
        everything = parse_endpoints("listeners", texts, protocols)
        self.clients = [endpoint for endpoint in everything if endpoint.name not in controllers]
        self.controllers = [endpoint for endpoint in everything if endpoint.name in controllers]
        self.advertised = self.clients
        if values["advertised.listeners"] is not None:
            advertised = parse_endpoints(
                "advertised.listeners", _texts(values, "advertised.listeners"), protocols
            )
            _check_advertised(advertised, [endpoint.name for endpoint in everything])
            self.advertised = [endpoint for endpoint in advertised if endpoint.name not in controllers]
        if not self.advertised:
            message = (
                "There must be at least one broker advertised listener."
                " Perhaps all listeners appear in controller.listener.names?"
            )
            key = "listeners" if values["advertised.listeners"] is None else "advertised.listeners"
            raise ConfigError(key, show(values[key]), message, "at least one listener for clients")
        check_served(self.clients)
        _check_inter_broker(values, explicit, protocols, [endpoint.name for endpoint in self.advertised])


def _texts(values: Mapping[str, Value], key: str) -> list[str]:
    texts = values[key]
    assert isinstance(texts, list)
    return texts


def _protocols(
    values: Mapping[str, Value], explicit: Mapping[str, str], texts: Sequence[str], controllers: Sequence[str]
) -> dict[str, str]:
    """The protocol map; while it is Kafka's default one, controller listeners count as PLAINTEXT."""
    protocols = parse_protocol_map(str(values["listener.security.protocol.map"]))
    if "listener.security.protocol.map" in explicit or set(controllers) & set(SECURITY_PROTOCOLS):
        return protocols
    if all(listener_name(text) not in SECURITY_PROTOCOLS[1:] for text in texts):
        protocols |= dict.fromkeys(controllers, "PLAINTEXT")
    return protocols


def _check_advertised(advertised: Sequence[Endpoint], names: Sequence[str]) -> None:
    found = [endpoint.name for endpoint in advertised]
    key = "advertised.listeners"
    shown = ",".join(map(repr, advertised))
    if not set(found) <= set(names):
        message = (
            f"{key} listener names must be equal to or a subset of the ones defined in listeners."
            f" Found {','.join(found)}. The valid options based on the current configuration are"
            f" {','.join(names)}"
        )
        raise ConfigError(key, shown, message, ", ".join(names))
    if any(endpoint.host == "0.0.0.0" for endpoint in advertised):
        message = f"{key} cannot use the nonroutable meta-address 0.0.0.0. Use a routable IP address."
        raise ConfigError(key, shown, message, "a host that clients can connect to")


def _check_inter_broker(
    values: Mapping[str, Value],
    explicit: Mapping[str, str],
    protocols: Mapping[str, str],
    advertised: Sequence[str],
) -> None:
    """The configs about connections between brokers must be valid, though there are no other brokers."""
    key = "inter.broker.listener.name"
    if key in explicit:
        if "security.inter.broker.protocol" in explicit:
            message = f"Only one of {key} and security.inter.broker.protocol should be set."
            raise ConfigError(key, values[key], message, "one of the two")
        name = str(values[key]).upper()
        if not name:
            raise ConfigError(
                key, "", "The provided listener name is null or empty string", ", ".join(advertised)
            )
        if name not in protocols:
            message = (
                f"Listener with name {name} defined in {key} not found in listener.security.protocol.map."
            )
            raise ConfigError(key, name, message, ", ".join(advertised))
    elif "security.inter.broker.protocol" in explicit:
        name = str(values["security.inter.broker.protocol"])
    else:
        return
    if name not in advertised:
        message = (
            f"{key} must be a listener name defined in advertised.listeners."
            f" The valid options based on currently configured listeners are {','.join(advertised)}"
        )
        raise ConfigError(key, name, message, ", ".join(advertised))


def move(texts: dict[str, str], origins: dict[str, str], host: str | None, port: int | None) -> None:
    """Apply --host and --port to the first client listener. An explicit advertised address does not change: behind a
    proxy it is another one anyway."""
    controllers = _entries(texts.get("controller.listener.names", ""))
    listeners = _entries(texts.get("listeners", "PLAINTEXT://127.0.0.1:9092"))
    for at, text in enumerate(listeners):
        parsed = _parts(text)
        if parsed is not None and parsed[0] not in controllers:
            listeners[at] = _with(parsed, host, port)
            break
    texts["listeners"] = ",".join(listeners)
    origins["listeners"] = "command line"


def _parts(text: str) -> tuple[str, str, int] | None:
    """The parts of a listener's text, or None if it is malformed, which is reported when all listeners are parsed."""
    try:
        return split_endpoint(text)
    except ValueError:
        return None


def _with(parsed: tuple[str, str, int], host: str | None, port: int | None) -> str:
    name, old_host, old_port = parsed
    new_host = old_host if host is None else host
    return f"{name}://{host_port(new_host, old_port if port is None else port)}"
