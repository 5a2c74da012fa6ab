"""Configs from environment variables, by the rules of the images that people have in their compose files.

apache/kafka and confluentinc/cp-kafka make KAFKA_LOG_DIRS log.dirs, with `__` for `_` and `___` for `-`, take the id of
the cluster from CLUSTER_ID, and listen on every interface where only the advertised listeners are said. Bitnami says
KAFKA_CFG_ for KAFKA_, wurstmeister has KAFKA_CREATE_TOPICS and KAFKA_ADVERTISED_HOST_NAME. What is of the JVM, of
ZooKeeper or of an image's scripts changes nothing here, and is said by its name. Owns these rules; the values are
checked like any other.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

PREFIX, BITNAMIS = "KAFKA_", "KAFKA_CFG_"
CLUSTER_ID, CREATE_TOPICS = "pykafkad.cluster.id", "pykafkad.create.topics"
# The first of these that is set; CLUSTER_ID, which others may use as well, only beside variables of Kafka's.
CLUSTER_IDS = ("KAFKA_CLUSTER_ID", "KAFKA_KRAFT_CLUSTER_ID", "CLUSTER_ID")
LOG_LEVEL, DEBUG = "KAFKA_LOG4J_ROOT_LOGLEVEL", "BITNAMI_DEBUG"
LEVELS = {
    "TRACE": "trace",
    "DEBUG": "debug",
    "INFO": "info",
    "WARN": "warn",
    "ERROR": "error",
    "FATAL": "error",
    "OFF": "off",
}
ADVERTISED_HOST, ADVERTISED_PORTS = "KAFKA_ADVERTISED_HOST_NAME", ("KAFKA_ADVERTISED_PORT", "KAFKA_PORT")
SEPARATOR = "KAFKA_CREATE_TOPICS_SEPARATOR"
UNDERSTOOD = frozenset(
    {*CLUSTER_IDS, LOG_LEVEL, ADVERTISED_HOST, *ADVERTISED_PORTS, "KAFKA_CREATE_TOPICS", SEPARATOR}
)
# What clients and tools are given, and what an image says of itself: nothing that somebody could expect to work.
NOT_THE_BROKERS = frozenset(
    {"KAFKA_BOOTSTRAP_SERVER", "KAFKA_BOOTSTRAP_SERVERS", "KAFKA_HOME", "KAFKA_VERSION"}
)
IGNORED = frozenset(
    {
        "ALLOW_ANONYMOUS_LOGIN",
        "ALLOW_PLAINTEXT_LISTENER",
        "BROKER_ID_COMMAND",
        "HOSTNAME_COMMAND",
        "KAFKA_CERTIFICATE_PASSWORD",
        "KAFKA_CLIENT_PASSWORDS",
        "KAFKA_CLIENT_USERS",
        "KAFKA_CONTROLLER_PASSWORD",
        "KAFKA_CONTROLLER_USER",
        "KAFKA_DEBUG",
        "KAFKA_ENABLE_KRAFT",
        "KAFKA_EXTRA_FLAGS",
        "KAFKA_GC_LOG_OPTS",
        "KAFKA_HEAP_OPTS",
        "KAFKA_INITIAL_CONTROLLERS",
        "KAFKA_INTER_BROKER_PASSWORD",
        "KAFKA_INTER_BROKER_USER",
        "KAFKA_JVM_PERFORMANCE_OPTS",
        "KAFKA_OPTS",
        "KAFKA_SKIP_KRAFT_STORAGE_INIT",
    }
)
IGNORED_BEGINNINGS = (
    "CONFLUENT_METRICS_",
    "CONFLUENT_SUPPORT_",
    "KAFKA_CFG_ZOOKEEPER_",
    "KAFKA_CONFLUENT_",
    "KAFKA_JMX_",
    "KAFKA_LOG4J",
    "KAFKA_PORT_",  # this and the next are Kubernetes', of a service that is called kafka
    "KAFKA_SERVICE_",
    "KAFKA_TLS_",
    "KAFKA_TOOLS_LOG4J",
    "KAFKA_ZOOKEEPER_",
)


def properties_from_environment(environment: Mapping[str, str]) -> dict[str, str]:
    """The configs that variables set."""
    found: dict[str, str] = {}
    for variable in sorted(environment, key=lambda name: (name.startswith(BITNAMIS), name)):
        if is_config(variable):
            found[key_of(variable)] = environment[variable]
    found.update(_named_otherwise(environment, found))
    return found


def is_config(variable: str) -> bool:
    return (
        variable.startswith(PREFIX)
        and variable not in UNDERSTOOD
        and variable not in NOT_THE_BROKERS
        and not is_ignored(variable)
    )


def is_ignored(variable: str) -> bool:
    """Whether an image knows it, and nothing comes of it here."""
    return (variable in IGNORED or variable.startswith(IGNORED_BEGINNINGS)) and variable != LOG_LEVEL


def key_of(variable: str) -> str:
    name = variable.removeprefix(BITNAMIS if variable.startswith(BITNAMIS) else PREFIX)
    return name.replace("___", "-").replace("__", "\0").replace("_", ".").replace("\0", "_").lower()


def _named_otherwise(environment: Mapping[str, str], found: Mapping[str, str]) -> dict[str, str]:
    """What has another name in the images than as a config."""
    more: dict[str, str] = {}
    for variable in CLUSTER_IDS:
        if environment.get(variable) and (variable.startswith(PREFIX) or any(map(is_config, environment))):
            more[CLUSTER_ID] = environment[variable].strip()
            break
    if topics := environment.get("KAFKA_CREATE_TOPICS"):
        more[CREATE_TOPICS] = topics.replace(environment.get(SEPARATOR) or ",", ",")
    host = environment.get(ADVERTISED_HOST)
    if host and "advertised.listeners" not in found:
        ports = [port for name in ADVERTISED_PORTS if (port := environment.get(name, "")).isdigit()]
        more["advertised.listeners"] = f"PLAINTEXT://{host}:{ports[0] if ports else '9092'}"
    return more


def listeners_for(advertised: str) -> str:
    """Where to listen, if only the advertised listeners are said: at their ports on every interface."""
    endpoints = []
    for endpoint in advertised.split(","):
        name, separator, address = endpoint.strip().rpartition("://")
        endpoints.append(f"{name}{separator}0.0.0.0:{address.rpartition(':')[2]}")
    return ",".join(endpoints)


def ignored(environment: Mapping[str, str]) -> list[str]:
    """The variables to say that they change nothing."""
    return sorted(filter(is_ignored, environment))


def log_level(environment: Mapping[str, str]) -> str | None:
    if environment.get(DEBUG, "").lower() in ("true", "yes", "1"):
        return "debug"
    return LEVELS.get(environment.get(LOG_LEVEL, "").strip().upper())
