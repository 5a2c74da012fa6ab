"""How ZooKeeper is reached, from the broker's keys and Java's login file; what cannot be honoured is refused."""

from __future__ import annotations

from typing import Any

import pytest

from pykafkad.errors import StartupError
from pykafkad.zookeeper.settings import Login, Settings, Tls, settings_of

DEFAULTS: dict[str, Any] = {
    "zookeeper.connect": "a:2181,[::1]:2182/kafka",
    "zookeeper.session.timeout.ms": 18000,
    "zookeeper.max.in.flight.requests": 10,
    "zookeeper.set.acl": False,
    "zookeeper.ssl.client.enable": False,
    "zookeeper.ssl.cipher.suites": None,
    "zookeeper.ssl.crl.enable": False,
    "zookeeper.ssl.enabled.protocols": None,
    "zookeeper.ssl.ocsp.enable": False,
    "zookeeper.ssl.endpoint.identification.algorithm": "HTTPS",
    "zookeeper.ssl.keystore.location": None,
    "zookeeper.ssl.keystore.password": None,
    "zookeeper.ssl.keystore.type": None,
    "zookeeper.ssl.truststore.location": None,
    "zookeeper.ssl.truststore.password": None,
    "zookeeper.ssl.truststore.type": None,
}
OPTS = "-Xmx1G -Djava.security.auth.login.config=/etc/jaas.conf -Dother"
JAAS = """
// Client { nothing };
KafkaServer { org.apache.kafka.common.security.plain.PlainLoginModule required username="k" password="no"; };
/* Client { of; } */
Client {
    org.apache.zookeeper.server.auth.DigestLoginModule required
    username="kafka"
    password=secret;
};
Other { org.apache.zookeeper.server.auth.DigestLoginModule required username="o" password="p w"; };
Kerberos { com.sun.security.auth.module.Krb5LoginModule required useKeyTab=true; };
Empty { org.apache.zookeeper.server.auth.DigestLoginModule required username="x"; };
"""


def settings(opts: str = "", **keys: Any) -> Settings:
    changed = {f"zookeeper.{key.replace('_', '.')}": value for key, value in keys.items()}
    return settings_of({**DEFAULTS, **changed}, {"KAFKA_OPTS": opts}, lambda path: JAAS)


def test_what_is_set() -> None:
    found = settings(session_timeout_ms=6000, max_in_flight_requests=3, set_acl=True)
    assert found == Settings("a:2181,[::1]:2182/kafka", 6000, 3, True)


@pytest.mark.parametrize(
    "connect", ["", "a:b", "a:0", "a:2181,", ":2181", "a:2181//x", "a:70000", "a:2181/x//y"]
)
def test_addresses_that_cannot_be(connect: str) -> None:
    with pytest.raises(StartupError, match=r"zookeeper\.connect"):
        settings(connect=connect)


def test_a_host_alone_has_the_usual_port() -> None:
    assert settings(connect="zk").connect == "zk"


def test_tls() -> None:
    keys: dict[str, Any] = {
        "ssl_client_enable": True,
        "ssl_keystore_location": "/k.pem",
        "ssl_keystore_password": "p",
    }
    assert settings(**keys).tls == Tls("/k.pem", "/k.pem", "p", None, True)
    others: dict[str, Any] = {"ssl_truststore_location": "/t", "ssl_truststore_type": "PEM"}
    found = settings(**keys, **others, ssl_endpoint_identification_algorithm="").tls
    assert found == Tls("/k.pem", "/k.pem", "p", "/t", False)
    assert settings(ssl_keystore_location="/k.jks").tls is None  # TLS is not wanted


@pytest.mark.parametrize(
    "keys",
    [
        {"ssl_keystore_location": "/k.jks"},
        {"ssl_truststore_location": "/t.pem", "ssl_truststore_type": "JKS"},
        {"ssl_truststore_location": "/t.p12"},
        {"ssl_truststore_location": "/t.pem", "ssl_truststore_type": "PKCS12"},
        {"ssl_cipher_suites": ["X"]},
        {"ssl_enabled_protocols": ["TLSv1.1"]},
        {"ssl_crl_enable": True},
        {"ssl_ocsp_enable": True},
    ],
)
def test_tls_that_cannot_be_honoured(keys: dict[str, Any]) -> None:
    with pytest.raises(StartupError):
        settings(ssl_client_enable=True, **keys)


def test_logins() -> None:
    assert settings("").login is None
    assert settings(OPTS).login == Login("sasl", "kafka", "secret")
    assert settings(f"{OPTS} -Dzookeeper.sasl.clientconfig=Other").login == Login("sasl", "o", "p w")
    assert settings(f"{OPTS} -Dzookeeper.sasl.client=false").login is None
    assert settings(f"{OPTS} -Dzookeeper.sasl.clientconfig=None").login is None


@pytest.mark.parametrize("section", ["Kerberos", "Empty"])
def test_logins_that_cannot_be(section: str) -> None:
    with pytest.raises(StartupError, match=section):
        settings(f"{OPTS} -Dzookeeper.sasl.clientconfig={section}")


def test_a_login_file_that_is_not_there() -> None:
    def missing(path: str) -> str:
        raise FileNotFoundError(2, "No such file or directory", path)

    with pytest.raises(StartupError, match=r"/etc/jaas\.conf: No such file"):
        settings_of(DEFAULTS, {"KAFKA_OPTS": OPTS}, missing)
