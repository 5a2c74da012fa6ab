"""The znodes of brokers, topics, partitions and the controller, as Kafka 3.9.2 writes them: paths, and data as tuples.

    /brokers/ids/N                                    Registration (ephemeral)
    /brokers/topics/T                                 Assignment: the topic's id, and the replicas of every partition
    /brokers/topics/T/partitions/P/state              PartitionState
    /controller                                       ControllerNode (ephemeral)    /controller_epoch   a number
    /cluster/id                                       the cluster's id              /feature            Features
    /admin/delete_topics/T                            the wish that a topic goes; data are of no account
    /admin/preferred_replica_election, /admin/reassign_partitions   wishes of old tools
    /isr_change_notification/isr_change_0000000000    partitions whose leaders wrote their states themselves
    /log_dir_event_notification/log_dir_event_...     the broker that lost a log directory
    /latest_producer_id_block                         ProducerIdBlock
Configs, ACLs and tokens are in config_znodes.py. What cannot be read is a MalformedZnode. Fields that are not known are
ignored, as Kafka does; those that older versions do not write have the defaults that Kafka takes then.
"""

from __future__ import annotations

import json
from typing import NamedTuple

from pykafkad.uuids import ZERO, from_text, to_text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence
    from typing import Any, TypeVar

    T = TypeVar("T")

BROKER_IDS = "/brokers/ids"
TOPICS = "/brokers/topics"
CONTROLLER = "/controller"
CONTROLLER_EPOCH = "/controller_epoch"
CLUSTER = "/cluster"
CLUSTER_ID = "/cluster/id"
FEATURE = "/feature"
DELETE_TOPICS = "/admin/delete_topics"
PREFERRED_ELECTION = "/admin/preferred_replica_election"
REASSIGN_PARTITIONS = "/admin/reassign_partitions"
ISR_CHANGES = "/isr_change_notification"
LOG_DIR_EVENTS = "/log_dir_event_notification"
PRODUCER_ID_BLOCK = "/latest_producer_id_block"
PORT_MAX = 65535
SHOWN = 200  # characters of what cannot be read

MIGRATION = "/migration"  # KRaft's; a ZooKeeper cluster that is not migrated has none

NO_CONTROLLER_EPOCH = 0
CONFIG_TYPES = ("topics", "clients", "users", "brokers", "ips")

# Every broker makes these at its start, with all that is above them, in this order; they have no data.
PERSISTENT = (
    "/consumers",
    BROKER_IDS,
    TOPICS,
    "/config/changes",
    DELETE_TOPICS,
    "/brokers/seqid",
    ISR_CHANGES,
    PRODUCER_ID_BLOCK,
    LOG_DIR_EVENTS,
    *(f"/config/{kind}" for kind in CONFIG_TYPES),
)

SECURITY_PROTOCOLS = ("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL")


class MalformedZnode(ValueError):
    """The data of a znode are not what Kafka writes there."""


class Endpoint(NamedTuple):
    listener: str
    host: str
    port: int
    security_protocol: str  # its name


class Registration(NamedTuple):
    endpoints: Sequence[Endpoint]
    rack: str | None = None
    timestamp_ms: int = -1
    jmx_port: int = -1
    features: Mapping[str, Mapping[str, int]] = {}  # name -> min_version, max_version
    version: int = 5

    def listener(self, name: str) -> Endpoint | None:
        return next((each for each in self.endpoints if each.listener == name), None)


class Replicas(NamedTuple):
    """Of one partition. While it is reassigned, `replicas` are the target and those that are to go."""

    replicas: Sequence[int]
    adding: Sequence[int] = ()
    removing: Sequence[int] = ()

    @property
    def is_reassigned(self) -> bool:
        return bool(self.adding or self.removing)

    @property
    def target(self) -> list[int]:
        return [each for each in self.replicas if each not in self.removing]

    @property
    def origin(self) -> list[int]:
        """Before the reassignment; in which order is not known any more."""
        return [each for each in self.replicas if each not in self.adding]


class Assignment(NamedTuple):
    topic_id: bytes  # ZERO: it was made by a broker that knew no ids
    partitions: Mapping[int, Replicas]


class PartitionState(NamedTuple):
    """The partition epoch is the version of the znode."""

    leader: int
    leader_epoch: int
    isr: Sequence[int]
    controller_epoch: int
    leader_recovery_state: int = 0  # 1: elected uncleanly, and not recovered yet


class ControllerNode(NamedTuple):
    broker_id: int
    timestamp_ms: int = -1
    kraft_epoch: int = -1  # above 0: a KRaft controller holds the place (migration)


class Features(NamedTuple):
    status: int = 1  # 1: versions are finalized here; 0: the inter.broker.protocol.version is below 2.7
    finalized: Mapping[str, int] = {}  # name -> max_version_level
    version: int = 2


class ProducerIdBlock(NamedTuple):
    broker_id: int
    first: int
    last: int


# -- paths


def broker(broker_id: int) -> str:
    return f"{BROKER_IDS}/{broker_id}"


def topic(name: str) -> str:
    return f"{TOPICS}/{name}"


def partitions(name: str) -> str:
    return f"{TOPICS}/{name}/partitions"


def partition(name: str, index: int) -> str:
    return f"{TOPICS}/{name}/partitions/{index}"


def state(name: str, index: int) -> str:
    return f"{TOPICS}/{name}/partitions/{index}/state"


def delete_topic(name: str) -> str:
    return f"{DELETE_TOPICS}/{name}"


def isr_change(suffix: str = "") -> str:
    return f"{ISR_CHANGES}/isr_change_{suffix}"


def log_dir_event(suffix: str = "") -> str:
    return f"{LOG_DIR_EVENTS}/log_dir_event_{suffix}"


def consumer_offset(group: str, topic: str, index: int) -> str:
    """Where consumers of before 0.8.2 keep an offset."""
    return f"/consumers/{group}/offsets/{topic}/{index}"


def broker_ids(names: Iterable[str]) -> list[int]:
    """Of the children of /brokers/ids; what is no id is nobody's."""
    return sorted(
        int(name)
        for name in names
        if name.isascii() and name.isdigit() and len(name) <= 10 and int(name) < 2**31
    )


def name_in(path: str) -> str:
    return path.rpartition("/")[2]


def parents(path: str) -> list[str]:
    """From the top down; the path itself is the last."""
    parts = path.strip("/").split("/")
    return ["/" + "/".join(parts[:count]) for count in range(1, len(parts) + 1)]


# -- JSON


def to_json(value: Any) -> bytes:
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False).encode()


def reading(what: str, data: bytes | None, read: Callable[[Any], T]) -> T:
    """What `read` makes of the JSON object in `data`."""
    try:
        value = json.loads(data or b"")
        if not isinstance(value, dict):
            raise ValueError("it is no object")
        return read(value)
    except (ValueError, KeyError, TypeError, AttributeError, OverflowError, RecursionError) as error:
        shown = (data or b"")[:SHOWN].decode(errors="replace")
        why = f"{type(error).__name__}: {str(error)[:SHOWN]}"
        raise MalformedZnode(f"the znode of {what} cannot be read ({why}): {shown!r}") from None


def number(value: Any, bits: int = 32) -> int:
    """One that the protocol can carry, too."""
    found = int(value)
    if not -(1 << bits - 1) <= found < 1 << bits - 1:
        raise ValueError(f"a number of more than {bits} bits")
    return found


def natural(value: Any, most: int = 2**31 - 1) -> int:
    """The index of a partition; a port."""
    found = number(value)
    if not 0 <= found <= most:
        raise ValueError(f"not from 0 to {most}: {found}")
    return found


def ids(value: Any) -> list[int]:
    return [number(each) for each in value]


def text(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError("it is no text")
    value.encode()  # half of a surrogate pair is none either
    return value


# -- brokers


def write_registration(registration: Registration) -> bytes:
    """Host and port are for clients that know no endpoints: of the first that is PLAINTEXT."""
    plain = next((each for each in registration.endpoints if each.security_protocol == "PLAINTEXT"), None)
    value: dict[str, Any] = {}
    if registration.version >= 5:
        value["features"] = {name: dict(levels) for name, levels in registration.features.items()}
    if registration.version >= 4:
        value["listener_security_protocol_map"] = {
            each.listener: each.security_protocol for each in registration.endpoints
        }
    value["endpoints"] = [endpoint_text(each) for each in registration.endpoints]
    if registration.rack is not None:
        value["rack"] = registration.rack
    value["jmx_port"] = registration.jmx_port
    value["port"] = plain.port if plain else -1
    value["host"] = plain.host if plain else None
    value["version"] = registration.version
    value["timestamp"] = str(registration.timestamp_ms)
    return to_json(value)


def endpoint_text(endpoint: Endpoint) -> str:
    host = f"[{endpoint.host}]" if ":" in endpoint.host else endpoint.host
    return f"{endpoint.listener}://{host}:{endpoint.port}"


def read_registration(data: bytes | None) -> Registration:
    def read(value: Any) -> Registration:
        version = number(value["version"])
        if version < 1:
            raise ValueError(f"version {version}")
        return Registration(
            endpoints=endpoints_of(value, version),
            rack=None if value.get("rack") is None else text(value["rack"]),
            timestamp_ms=number(value.get("timestamp", -1), 64),
            jmx_port=number(value["jmx_port"]),
            features=levels_of(value.get("features") or {}),
            version=version,
        )

    return reading("a broker", data, read)


def levels_of(features: Any) -> dict[str, dict[str, int]]:
    return {
        text(name): {text(end): number(level, 16) for end, level in levels.items()}
        for name, levels in features.items()
    }


def endpoints_of(value: Any, version: int) -> list[Endpoint]:
    if version == 1:
        return [Endpoint("PLAINTEXT", text(value["host"]), natural(value["port"], PORT_MAX), "PLAINTEXT")]
    protocols = value.get("listener_security_protocol_map") or {name: name for name in SECURITY_PROTOCOLS}
    found = []
    for each in value["endpoints"]:
        listener, _, address = text(each).partition("://")
        host, _, port = address.rpartition(":")
        protocol = protocols[listener]
        if protocol not in SECURITY_PROTOCOLS:
            raise ValueError(f"no security protocol: {protocol}")
        found.append(Endpoint(listener, host.strip("[]"), natural(port, PORT_MAX), protocol))
    return found


# -- topics and partitions


def write_assignment(assignment: Assignment) -> bytes:
    every = assignment.partitions.items()
    value: dict[str, Any] = {"partitions": {str(index): list(each.replicas) for index, each in every}}
    if assignment.topic_id != ZERO:
        value["topic_id"] = to_text(assignment.topic_id)
    value["adding_replicas"] = {str(index): list(each.adding) for index, each in every if each.adding}
    value["removing_replicas"] = {str(index): list(each.removing) for index, each in every if each.removing}
    value["version"] = 3
    return to_json(value)


def read_assignment(data: bytes | None) -> Assignment:
    def read(value: Any) -> Assignment:
        adding, removing = value.get("adding_replicas") or {}, value.get("removing_replicas") or {}
        topic_id = value.get("topic_id")
        return Assignment(
            ZERO if topic_id is None else from_text(topic_id),
            {
                natural(index): Replicas(
                    ids(replicas), ids(adding.get(index, ())), ids(removing.get(index, ()))
                )
                for index, replicas in sorted(value["partitions"].items(), key=lambda item: int(item[0]))
            },
        )

    return reading("a topic", data, read)


def write_state(state: PartitionState) -> bytes:
    value: dict[str, Any] = {
        "controller_epoch": state.controller_epoch,
        "leader": state.leader,
        "version": 1,
        "leader_epoch": state.leader_epoch,
        "isr": list(state.isr),
    }
    if state.leader_recovery_state:
        value["leader_recovery_state"] = state.leader_recovery_state
    return to_json(value)


def read_state(data: bytes | None) -> PartitionState:
    return reading(
        "a partition's state",
        data,
        lambda value: PartitionState(
            number(value["leader"]),
            number(value["leader_epoch"]),
            ids(value["isr"]),
            number(value["controller_epoch"]),
            number(value.get("leader_recovery_state", 0), 8),
        ),
    )


# -- the controller, the cluster, features


def write_controller(controller: ControllerNode) -> bytes:
    return to_json(
        {
            "version": 2,
            "brokerid": controller.broker_id,
            "timestamp": str(controller.timestamp_ms),
            "kraftControllerEpoch": controller.kraft_epoch,
        }
    )


def read_controller(data: bytes | None) -> ControllerNode:
    return reading(
        "the controller",
        data,
        lambda value: ControllerNode(
            number(value["brokerid"]),
            number(value.get("timestamp", -1), 64),
            number(value.get("kraftControllerEpoch", -1)),
        ),
    )


def write_epoch(epoch: int) -> bytes:
    return str(epoch).encode()


def read_epoch(data: bytes | None) -> int:
    try:
        return number((data or b"").decode())
    except ValueError:
        raise MalformedZnode(f"no epoch of a controller: {(data or b'')[:SHOWN]!r}") from None


def write_cluster_id(cluster_id: str) -> bytes:
    return to_json({"version": "1", "id": cluster_id})


def read_cluster_id(data: bytes | None) -> str:
    return reading("the cluster's id", data, lambda value: text(value["id"]))


def write_features(features: Features) -> bytes:
    levels = {
        name: {"max_version_level": level, "min_version_level": level}
        if features.version == 1
        else {"max_version_level": level}
        for name, level in features.finalized.items()
    }
    return to_json({"features": levels, "version": features.version, "status": features.status})


def read_features(data: bytes | None) -> Features:
    def read(value: Any) -> Features:
        version, status = number(value["version"]), number(value["status"])
        if version not in (1, 2) or status not in (0, 1):
            raise ValueError(f"version {version}, status {status}")
        levels = {
            text(name): number(each["max_version_level"], 16) for name, each in value["features"].items()
        }
        return Features(status, levels, version)

    return reading("the features", data, read)


# -- notifications and wishes


def write_isr_change(changed: Iterable[tuple[str, int]]) -> bytes:
    return to_json({"version": 1, "partitions": partition_list(changed)})


def write_preferred_election(wanted: Iterable[tuple[str, int]]) -> bytes:
    return to_json({"version": 1, "partitions": partition_list(wanted)})


def partition_list(partitions: Iterable[tuple[str, int]]) -> list[dict[str, Any]]:
    return [{"topic": name, "partition": index} for name, index in partitions]


def read_partitions(data: bytes | None) -> list[tuple[str, int]]:
    """Of an ISR change or of the wish for preferred leaders: (topic, partition)."""
    return reading(
        "a list of partitions",
        data,
        lambda value: [(text(each["topic"]), natural(each["partition"])) for each in value["partitions"]],
    )


def write_reassignment(wanted: Mapping[tuple[str, int], Sequence[int]]) -> bytes:
    listed = [
        {"topic": name, "partition": index, "replicas": list(replicas)}
        for (name, index), replicas in wanted.items()
    ]
    return to_json({"version": 1, "partitions": listed})


def read_reassignment(data: bytes | None) -> dict[tuple[str, int], list[int]]:
    return reading(
        "a reassignment",
        data,
        lambda value: {
            (text(each["topic"]), natural(each["partition"])): ids(each["replicas"])
            for each in value["partitions"]
        },
    )


def write_log_dir_event(broker_id: int) -> bytes:
    return to_json({"version": 1, "broker": broker_id, "event": 1})


def read_log_dir_event(data: bytes | None) -> int:
    return reading("a log directory's failure", data, lambda value: number(value["broker"]))


# -- producer ids


def write_producer_ids(block: ProducerIdBlock) -> bytes:
    return to_json(
        {
            "version": 1,
            "broker": block.broker_id,
            "block_start": str(block.first),
            "block_end": str(block.last),
        }
    )


def read_producer_ids(data: bytes | None) -> ProducerIdBlock | None:
    """None: nobody has taken any yet."""
    if not data:
        return None
    return reading(
        "producer ids",
        data,
        lambda value: ProducerIdBlock(
            number(value["broker"]), number(value["block_start"], 64), number(value["block_end"], 64)
        ),
    )
