"""The tables of configuration keys, as Markdown: for README.md and docs/configuration.md (readme.py)."""

from __future__ import annotations

from collections.abc import Iterable

from pykafkad import config_docs
from pykafkad.cluster.dynamic_config import without_effect
from pykafkad.config_def import Key, to_text
from pykafkad.config_entities import TOPIC_HONOURED, TOPIC_HONOURED_IN_CLUSTER
from pykafkad.config_keys import BROKER_KEYS, OF_3_9, OF_4_3, OWN_KEYS, TOPIC_KEYS
from pykafkad.config_table import HONOURED, IN_PART

# What our own keys are for; those of Kafka are in config_docs.
ABOUT_OWN = {
    "pykafkad.cluster.id": "The id of a new cluster, else a random one. A directory of another cluster is refused.",
    "pykafkad.create.topics": "Topics made at the start: NAME:PARTITIONS:REPLICAS[:CLEANUP.POLICY], with commas between.",
    "pykafkad.single.node": "As `--single-node`: replication factors and in-sync replicas above 1 count as 1. False: they"
    " are refused, as a single Kafka does.",
    "pykafkad.scrub.max.bytes.per.second": "How fast the logs are read over and over in the background, to find damaged"
    " batches, which are named in the log. 0: not at all.",
}
# Those of Kafka 3.9 that a broker in a cluster on ZooKeeper has.
ABOUT_ZOOKEEPER = {
    "zookeeper.connect": "HOST:PORT of ZooKeeper's servers, with commas between, and perhaps a /CHROOT: this broker is"
    " one of that cluster. Nothing: a single node.",
    "zookeeper.session.timeout.ms": "After how long without a word ZooKeeper takes the broker for dead.",
    "zookeeper.connection.timeout.ms": "How long a start waits for ZooKeeper; nothing: zookeeper.session.timeout.ms.",
    "zookeeper.max.in.flight.requests": "Requests that are sent to ZooKeeper before the first of them is answered.",
    "zookeeper.set.acl": "Only this broker's login may change what it makes in ZooKeeper.",
    "zookeeper.ssl.client.enable": "ZooKeeper is reached through TLS.",
    "zookeeper.ssl.keystore.location": "A PEM or JKS file with this broker's key and certificate.",
    "zookeeper.ssl.keystore.password": "Of the key in it, and of a JKS store.",
    "zookeeper.ssl.keystore.type": "PEM or JKS; nothing: as the file's name ends.",
    "zookeeper.ssl.truststore.location": "A PEM or JKS file with the authorities that ZooKeeper's certificate may be of.",
    "zookeeper.ssl.truststore.password": "Of a JKS store: it proves what is in it.",
    "zookeeper.ssl.truststore.type": "PEM or JKS; nothing: as the file's name ends.",
    "zookeeper.ssl.endpoint.identification.algorithm": "HTTPS: the certificate must name the host. Empty: it need not.",
    "zookeeper.ssl.cipher.suites": "Refused.",
    "zookeeper.ssl.enabled.protocols": "Refused.",
    "zookeeper.ssl.crl.enable": "True is refused.",
    "zookeeper.ssl.ocsp.enable": "True is refused.",
    "control.plane.listener.name": "The listener through which the controller reaches the brokers; nothing:"
    " inter.broker.listener.name.",
    "controlled.shutdown.max.retries": "How often a controller that could not move everything is asked again.",
    "controlled.shutdown.retry.backoff.ms": "The pause before that.",
    "leader.imbalance.per.broker.percentage": "From how many partitions on, of those it should lead, that others lead,"
    " a broker gets them back.",
    "inter.broker.protocol.version": "Of the oldest broker in the cluster: 2.8 to 3.9.",
    "log.message.timestamp.difference.max.ms": "How far before or after the broker's clock a record's timestamp may be,"
    " where log.message.timestamp.before.max.ms or log.message.timestamp.after.max.ms sets no bound.",
    "log.message.format.version": "Checked, and without effect: records have one format.",
    "log.message.downconversion.enable": "Without effect: no Fetch that wants an older format is served.",
}
# Those of Kafka's authorizers.
ABOUT_AUTHORIZER = {
    "super.users": "Who may do everything: TYPE:NAME, with semicolons between. Without TLS and SASL everybody is"
    " User:ANONYMOUS.",
    "allow.everyone.if.no.acl.found": "Whether everybody may do what no ACL is about.",
}
HEAD = "| key | default | allowed | what it is for |\n|---|---|---|---|\n"


def summary() -> str:
    """How many keys work, for the README."""
    return (
        f"Of Kafka's {len(BROKER_KEYS)} broker keys {len(HONOURED)} are honoured. The other"
        f" {len(BROKER_KEYS) - len(HONOURED)} are known and checked, and change nothing:\nwhere one is set, the broker"
        " says so in one line at start.\n"
    )


def honoured() -> str:
    in_part = {name: f" In part: {how}." for name, how in IN_PART.items()}
    rows = [
        row(BROKER_KEYS[name], config_docs.BROKER[name] + in_part.get(name, ""), OF_4_3.defaults[name])
        for name in sorted(HONOURED)
    ]
    known = OF_3_9.broker | OWN_KEYS
    own, zookeeper, authorizer = (
        "".join(row(known[name], text, known[name].default) for name, text in about.items())
        for about in (ABOUT_OWN, ABOUT_ZOOKEEPER, ABOUT_AUTHORIZER)
    )
    return (
        f"{summary()}\n{HEAD}{''.join(rows)}\nKeys of pykafkad's own:\n\n{HEAD}{own}"
        f"\nKeys of Kafka's authorizers:\n\n{HEAD}{authorizer}"
        f"\nKeys of Kafka 3.9, for a cluster on ZooKeeper:\n\n{HEAD}{zookeeper}"
    )


def topics() -> str:
    rows = [
        row(TOPIC_KEYS[name], config_docs.TOPIC.get(name, ""), TOPIC_KEYS[name].default)
        for name in sorted(TOPIC_HONOURED)
        if not TOPIC_KEYS[name].internal
    ]
    others = [
        f"`{name}`"
        for name in sorted(TOPIC_KEYS.keys() - TOPIC_HONOURED - TOPIC_HONOURED_IN_CLUSTER)
        if not TOPIC_KEYS[name].internal
    ]
    return (
        f"{HEAD}{''.join(rows)}\nKept and shown, and without effect: {', '.join(others)}.\n"
        f"\nOf effect in a cluster on ZooKeeper alone: {listed(TOPIC_HONOURED_IN_CLUSTER)}"
        "\nA topic of a cluster on ZooKeeper has the keys of Kafka 3.9, whose `segment.bytes` is 14 or more. Kept and"
        f" shown there, and without effect: {listed(OF_3_9.topic.keys() - TOPIC_KEYS.keys() - TOPIC_HONOURED_IN_CLUSTER)}"
    )


def row(key: Key, about: str, default: object) -> str:
    shown = to_text(default)  # type: ignore[arg-type]  # a parsed value
    cells = [f"`{key.name}`", f"`{shown}`" if shown else "", key.allowed(), about]
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |\n"


def without_effect_while_running() -> str:
    alone, in_cluster = (
        {name for name in OF_3_9.dynamic if without_effect(name, is_clustered=is_clustered)}
        for is_clustered in (False, True)
    )
    silent = alone & in_cluster
    return (
        f"These {len(silent)} are stored and shown: {listed(silent)}\n"
        f"These {len(alone - silent)} count in a cluster on ZooKeeper alone: {listed(alone - silent)}"
        f"Of Kafka 3.9's these are stored and shown there, too: {listed(in_cluster - alone)}"
    )


def listed(names: Iterable[str]) -> str:
    return ", ".join(f"`{name}`" for name in sorted(names)) + ".\n"
