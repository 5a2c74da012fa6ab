"""What a cluster on one machine is like now: who runs, who is the controller, who leads what, who is behind.

Asked of the brokers by Kafka's protocol, and of ZooKeeper for the epochs, which no answer holds; whoever does not answer
is left out (null in JSON). Of the brokers that answer, the controller's word counts, or else that of the first.
"""

from __future__ import annotations

import logging

from pykafkad.errors import KafkaError
from pykafkad.messages import DescribeLogDirsRequest
from pykafkad.net.client import Cluster as Client
from pykafkad.net.reaching import Unreachable
from pykafkad.tools.status import table

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any

    from pykafkad.local_cluster.home import BrokerHome, Home
    from pykafkad.local_cluster.process import Process

    Row = dict[str, Any]
    Lags = dict[tuple[str, int], dict[int, int]]  # topic and partition -> broker -> records

ANSWER_MS = 2000
UNTOLD = "-"

BROKER_COLUMNS = (
    ("BROKER", "id"),
    ("ADDRESS", "address"),
    ("STATE", "state"),
    ("PID", "pid"),
    ("EPOCH", "epoch"),
    ("LEADS", "leads"),
)
PARTITION_COLUMNS = (
    ("TOPIC", "topic"),
    ("PARTITION", "partition"),
    ("LEADER", "leader"),
    ("EPOCH", "leader_epoch"),
    ("REPLICAS", "replicas"),
    ("ISR", "isr"),
    ("LAG", "lag"),
)


def gather(home: Home) -> Row:
    """All of it, as --json shows it."""
    # Who is cut off knows less than the others.
    brokers = sorted(home.brokers.values(), key=lambda broker: broker.process.is_isolated)
    answers = {broker.id: _ask(broker) for broker in brokers}
    told = {id: answer for id, answer in answers.items() if answer is not None}
    view = next(
        (told[answer[0].controller_id] for answer in told.values() if answer[0].controller_id in told), None
    )
    view = view or next(iter(told.values()), None)
    metadata = view[0] if view else None
    epochs = _epochs(home)
    partitions = _partitions(metadata, _lags(told)) if metadata else []
    return {
        "cluster_id": metadata.cluster_id if metadata else None,
        "bootstrap.servers": home.bootstrap_servers,
        "zookeeper": {
            "connect": home.zookeeper_connect,
            "pid": home.zookeeper.process.pid if home.zookeeper else None,
            "state": _state(home.zookeeper.process) if home.zookeeper else None,
        },
        "controller": metadata.controller_id if metadata else None,
        "controller_epoch": epochs.get("controller"),
        "brokers": [_broker(broker, epochs, partitions) for broker in home.brokers.values()],
        "partitions": partitions,
        "offline": sum(row["leader"] < 0 for row in partitions),
        "under_replicated": sum(len(row["isr"]) < len(row["replicas"]) for row in partitions),
    }


def _ask(broker: BrokerHome) -> tuple[Any, Any] | None:
    """Metadata and log directories; None: it does not run, or does not answer."""
    process = broker.process
    if not process.is_running or process.is_paused:
        return None
    client = Client(
        broker.address, request_timeout_ms=ANSWER_MS, api_timeout_ms=ANSWER_MS, setup_timeout_ms=ANSWER_MS
    )
    try:
        connection = client.any_broker()
        metadata = client.metadata(None)
        return metadata, client.call(connection, DescribeLogDirsRequest(topics=None))
    except (OSError, KafkaError, Unreachable, ValueError):
        return None
    finally:
        client.close()


def _lags(told: dict[int, tuple[Any, Any]]) -> Lags:
    lags: Lags = {}
    for id, (_, directories) in told.items():
        for directory in directories.results:
            for topic in directory.topics:
                for each in topic.partitions:
                    if not each.is_future_key:
                        lags.setdefault((topic.name, each.partition_index), {})[id] = each.offset_lag
    return lags


def _partitions(metadata: Any, lags: Lags) -> list[Row]:
    rows = []
    for topic in sorted(metadata.topics, key=lambda topic: str(topic.name)):
        for each in sorted(topic.partitions, key=lambda each: int(each.partition_index)):
            known = lags.get((topic.name, each.partition_index), {})
            rows.append(
                {
                    "topic": topic.name,
                    "partition": each.partition_index,
                    "leader": each.leader_id,
                    "leader_epoch": each.leader_epoch,
                    "replicas": list(each.replica_nodes),
                    "isr": list(each.isr_nodes),
                    "lag": {str(id): known.get(id) for id in each.replica_nodes if id != each.leader_id},
                }
            )
    return rows


def _broker(broker: BrokerHome, epochs: dict[str, int], partitions: list[Row]) -> Row:
    process = broker.process
    return {
        "id": broker.id,
        "address": broker.address,
        "state": _state(process),
        "pid": process.pid,
        "epoch": epochs.get(str(broker.id)),
        "leads": sum(row["leader"] == broker.id for row in partitions),
    }


def _state(process: Process) -> str:
    if not process.is_running:
        return "stopped"
    return "paused" if process.is_paused else "isolated" if process.is_isolated else "running"


def _epochs(home: Home) -> dict[str, int]:
    """Of the controller, and of the brokers that are registered, by ZooKeeper; nothing, if it does not answer."""
    if home.zookeeper is not None and not home.zookeeper.process.is_running:
        return {}
    from kazoo.client import KazooClient
    from kazoo.exceptions import KazooException

    quiet = logging.Logger("kazoo")  # that it does not answer is said by what is missing
    quiet.addHandler(logging.NullHandler())
    client = KazooClient(home.zookeeper_connect, timeout=ANSWER_MS / 1000, read_only=True, logger=quiet)
    found: dict[str, int] = {}
    try:
        client.start(ANSWER_MS / 1000)
        for id in client.get_children("/brokers/ids"):
            found[id] = client.get(f"/brokers/ids/{id}")[1].czxid
        found["controller"] = int(client.get("/controller_epoch")[0])
    except (KazooException, client.handler.timeout_exception, ValueError, OSError):
        return found
    finally:
        client.stop()
        client.close()
    return found


def lines(found: Row) -> Iterable[str]:
    """The same for a reader."""
    epoch = "" if found["controller_epoch"] is None else f" in epoch {found['controller_epoch']}"
    controller = "none" if found["controller"] in (None, -1) else f"{found['controller']}{epoch}"
    state = f" ({found['zookeeper']['state']})" if found["zookeeper"]["state"] else ""
    yield f"cluster {found['cluster_id'] or UNTOLD}"
    yield f"  bootstrap.servers  {found['bootstrap.servers']}"
    yield f"  ZooKeeper          {found['zookeeper']['connect']}{state}"
    yield f"  controller         {controller}"
    yield f"  partitions         {_summary(found)}"
    yield ""
    yield from table(BROKER_COLUMNS, [_cells(row) for row in found["brokers"]])
    if found["partitions"]:
        yield ""
        yield from table(PARTITION_COLUMNS, [_cells(row) for row in found["partitions"]])


def _summary(found: Row) -> str:
    parts = [str(len(found["partitions"]))]
    parts += [
        f"{found[key]} {text}"
        for key, text in (("offline", "offline"), ("under_replicated", "under-replicated"))
    ]
    return ", ".join(parts)


def _cells(row: Row) -> Row:
    return {key: _cell(value) for key, value in row.items()}


def _cell(value: Any) -> str:
    if isinstance(value, dict):
        return " ".join(f"{id}:{UNTOLD if lag is None else lag}" for id, lag in value.items()) or UNTOLD
    if isinstance(value, list):
        return ",".join(map(str, value)) or UNTOLD
    return UNTOLD if value is None else str(value)
