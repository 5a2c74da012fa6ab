"""How ZooKeeper is reached: Kafka 3.9's zookeeper.* keys, and the login that Java's brokers are given by JAAS.

Owns what is refused: what cannot be honoured here is a StartupError, not passed over. Key and trust stores are PEM files
or Java's (ZooKeeper's types PEM and JKS; by the end of the file's name where no type is set). A login is the section
`Client` (or what -Dzookeeper.sasl.clientconfig names) of the file that -Djava.security.auth.login.config names in
KAFKA_OPTS, with ZooKeeper's DigestLoginModule.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from pykafkad.errors import StartupError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any

JAAS = "java.security.auth.login.config"
SECTION = "zookeeper.sasl.clientconfig"
SASL = "zookeeper.sasl.client"
MODULE = "org.apache.zookeeper.server.auth.DigestLoginModule"
STORES = {".pem": "PEM", ".jks": "JKS", ".p12": "PKCS12", ".pfx": "PKCS12"}  # by the end of a file's name
NOT_HONOURED = (
    "zookeeper.ssl.cipher.suites",
    "zookeeper.ssl.crl.enable",
    "zookeeper.ssl.enabled.protocols",
    "zookeeper.ssl.ocsp.enable",
)


class Tls(NamedTuple):
    """PEM files; None: none of ours, or the system's authorities."""

    certificate: str | None = None
    key: str | None = None
    key_password: str | None = None
    authorities: str | None = None
    check_host: bool = True


class Login(NamedTuple):
    """`mechanism`: "sasl" (DIGEST-MD5, as Java's brokers log in by JAAS) or "digest" (ZooKeeper's own scheme)."""

    mechanism: str
    user: str
    password: str


class Settings(NamedTuple):
    connect: str  # HOST:PORT,..., and /CHROOT perhaps
    session_timeout_ms: int = 18000
    max_in_flight: int = 10
    secure: bool = False  # only we may change what we create
    login: Login | None = None
    tls: Tls | None = None


def settings_of(
    config: Mapping[str, Any] | Any, environment: Mapping[str, str], read: Callable[[str], str]
) -> Settings:
    """`config[key]`: the broker's; `read(path)`: a file's text."""
    return Settings(
        connect=checked_connect(config["zookeeper.connect"]),
        session_timeout_ms=config["zookeeper.session.timeout.ms"],
        max_in_flight=config["zookeeper.max.in.flight.requests"],
        secure=config["zookeeper.set.acl"],
        login=login_of(environment, read),
        tls=tls_of(config),
    )


def checked_connect(text: str) -> str:
    hosts, slash, chroot = text.partition("/")
    for host in hosts.split(","):
        name, colon, port = host.strip().rpartition(":")
        if colon and not (name and port.isdecimal() and 0 < int(port) < 65536):
            raise StartupError(f"zookeeper.connect={text}: {host.strip()} is no HOST:PORT")
        if not colon and not host.strip():
            raise StartupError(f"zookeeper.connect={text}: a host is missing")
    if slash and "//" in slash + chroot:
        raise StartupError(f"zookeeper.connect={text}: {slash + chroot} is no path of a znode")
    return text


def tls_of(config: Mapping[str, Any] | Any) -> Tls | None:
    if not config["zookeeper.ssl.client.enable"]:
        return None
    for key in NOT_HONOURED:
        if config[key]:
            raise StartupError(f"{key} cannot be honoured: leave it out")
    key_store, password = store_of(config, "keystore")
    trust_store, _ = store_of(config, "truststore")
    check = config["zookeeper.ssl.endpoint.identification.algorithm"] or ""
    return Tls(
        certificate=key_store,
        key=key_store,
        key_password=password,
        authorities=trust_store,
        check_host=check.upper() == "HTTPS",
    )


def store_of(config: Mapping[str, Any] | Any, what: str) -> tuple[str | None, str | None]:
    """The path of a PEM file, and the password of the key in it."""
    key = f"zookeeper.ssl.{what}.location"
    location: str | None = config[key]
    password: str | None = config[f"zookeeper.ssl.{what}.password"]
    if location is None:
        return None, None
    by_name = STORES.get(location[-4:].lower())
    kind = (config[f"zookeeper.ssl.{what}.type"] or by_name or "").upper()
    if kind == "PEM":
        return location, password
    if kind not in ("JKS", "PKCS12"):
        raise StartupError(
            f"{key}={location}: only PEM and JKS files can be read; set its type to one of them"
        )
    return java_store(key, location, password, what), None  # which says what is to be done with PKCS #12


def java_store(key: str, location: str, password: str | None, what: str) -> str:
    """A path at which its contents are PEM."""
    from pykafkad.zookeeper.java_stores import StoreError, in_memory, read_store

    try:
        with open(location, "rb") as file:
            store = read_store(file.read(), password)
    except OSError as error:
        raise StartupError(f"{key}={location}: {error.strerror}") from None
    except StoreError as error:
        raise StartupError(f"{key}={location}: {error}") from None
    text = store.key if what == "keystore" else store.trusted
    if not text:
        raise StartupError(
            f"{key}={location}: there is no {'key' if what == 'keystore' else 'certificate'} in it"
        )
    return in_memory(text)


# -- JAAS


def login_of(environment: Mapping[str, str], read: Callable[[str], str]) -> Login | None:
    options = dict(
        option[2:].partition("=")[::2]
        for option in environment.get("KAFKA_OPTS", "").split()
        if option.startswith("-D")
    )
    path = options.get(JAAS)
    if path is None or options.get(SASL, "true").lower() == "false":
        return None
    try:
        text = read(path)
    except OSError as error:
        raise StartupError(f"-D{JAAS}={path}: {error.strerror}") from None
    return login_in(text, options.get(SECTION, "Client"), path)


def login_in(text: str, section: str, path: str) -> Login | None:
    """None: the file is about other logins."""
    text = re.sub(r"/\*.*?\*/|(?m:^[ \t]*(?://|#)[^\n]*)", "", text, flags=re.S)
    found = re.search(rf"(?:^|\s){re.escape(section)}\s*\{{(.*?)\}}\s*;", text, flags=re.S)
    if found is None:
        return None
    body = found[1].split(None, 2)
    if not body or body[0] != MODULE:
        raise StartupError(f"{path}: section {section}: only {MODULE} is supported")
    values = {
        key: given or bare
        for key, given, bare in re.findall(r'(\w+)\s*=\s*(?:"([^"]*)"|([^\s;"]+))', found[1])
    }
    if not values.get("username") or "password" not in values:
        raise StartupError(f"{path}: section {section} has no username or no password")
    return Login("sasl", values["username"], values["password"])
