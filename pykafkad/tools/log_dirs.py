"""`pykafkad log-dirs`: what kafka-log-dirs does."""

from __future__ import annotations

from pykafkad.messages import DescribeLogDirsRequest
from pykafkad.net.client import check
from pykafkad.tools import admin, failures, output
from pykafkad.tools.java import hash_order, partition_hash
from pykafkad.tools.options import Option, Options, bootstrap, flag, json_flag, run, value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from typing import Any

    from pykafkad.net.client import Cluster

ABOUT = "This tool helps to query log directory usage on the specified brokers."

OPTIONS: tuple[Option, ...] = (
    bootstrap(),
    value("command-config", "Admin client property file", "Configs of the client."),
    flag("describe", "Show the log directories: needed."),
    value("topic-list", "Topic list", "Only these topics, with commas; by default all.", default=""),
    value("broker-list", "Broker list", "Only these brokers, with commas; by default all.", default=""),
    json_flag("describe"),
)
JSON_EXAMPLE = """\
{"brokers": [{"broker": 1, "logDirs": [{"partitions": [{"partition": "orders-0", "size": 71, "offsetLag": 0,
  "isFuture": false}], "error": null, "logDir": "/data"}]}], "version": 1}
"""
JSON_NOTE = "This is the JSON of Kafka's tool, without the two lines around it."


class Terse(Exception):
    """An error whose message is printed without the exception's name."""


def main(arguments: Sequence[str]) -> int:
    return run(OPTIONS, arguments, ABOUT, body, as_json=as_json)


def body(options: Options) -> int:
    options.require("describe")
    cluster = admin.connect(options, client_id="log-dirs-tool")
    try:
        chosen = _chosen(cluster, options)
        output.line("Querying brokers for log directories information")
        output.flush()
        found = _found(cluster, options, chosen)
        output.line(f"Received log directory information from brokers {_listed(chosen)}")
        output.line(to_json(found))
        return 0
    except Terse as problem:
        output.error(f"ERROR: {problem}")
        return 1
    finally:
        cluster.close()


def as_json(options: Options) -> object:
    cluster = admin.connect(options, client_id="log-dirs-tool")
    try:
        return _found(cluster, options, _chosen(cluster, options))
    finally:
        cluster.close()


def _chosen(cluster: Cluster, options: Options) -> list[int]:
    wanted = _brokers(options.text("broker-list"))
    known = {row.broker_id for row in cluster.describe_cluster().brokers}
    missing = wanted - known
    if missing:
        raise Terse(
            f"The given brokers do not exist from --broker-list: {_listed(_by_hash(missing))}. "
            f"Current existent brokers: {_listed(_by_hash(known))}"
        )
    return _by_hash(wanted or known)


def _brokers(text: str) -> set[int]:
    try:
        return {int(part) for part in text.split(",") if part}
    except ValueError:
        raise ValueError(f"--broker-list takes the ids of brokers, with commas: {text}") from None


def _by_hash(ids: Iterable[int]) -> list[int]:
    return hash_order(sorted(ids), lambda id: id)


def _listed(ids: Iterable[int]) -> str:
    return ",".join(map(str, ids))


def _ask(cluster: Cluster, broker: int) -> list[Any]:
    request = DescribeLogDirsRequest(topics=None)
    response = cluster.attempt("describeLogDirs", lambda: cluster.call(cluster.broker(broker), request))
    check(response.error_code)
    results: list[Any] = response.results
    return results


def _found(cluster: Cluster, options: Options, chosen: Sequence[int]) -> dict[str, object]:
    topics = {part for part in options.text("topic-list").split(",") if part}
    return fields({broker: _ask(cluster, broker) for broker in chosen}, topics)


def fields(answers: dict[int, list[Any]], topics: set[str]) -> dict[str, object]:
    """The keys are in the order of the maps of Kafka's tool."""
    brokers = [
        {"broker": broker, "logDirs": [_directory(row, topics) for row in _ordered(rows)]}
        for broker, rows in answers.items()
    ]
    return {"brokers": brokers, "version": 1}


def to_json(found: dict[str, object]) -> str:
    """One line of JSON, as Kafka's tool writes it."""
    import json

    return json.dumps(found, separators=(",", ":"), ensure_ascii=False)


def _ordered(rows: list[Any]) -> list[Any]:
    by_path = {row.log_dir: row for row in rows}
    return [by_path[path] for path in hash_order(by_path, capacity=len(by_path))]


def _directory(row: Any, topics: set[str]) -> dict[str, object]:
    replicas = {
        (topic.name, partition.partition_index): partition
        for topic in row.topics
        for partition in topic.partitions
        if not topics or topic.name in topics
    }
    fault = f"{failures.PACKAGE}.{failures.class_name(row.error_code)}" if row.error_code else None
    return {
        "partitions": [
            {
                "partition": f"{key[0]}-{key[1]}",
                "size": replicas[key].partition_size,
                "offsetLag": replicas[key].offset_lag,
                "isFuture": replicas[key].is_future_key,
            }
            for key in hash_order(hash_order(replicas, partition_hash), partition_hash)
        ],
        "error": fault,
        "logDir": row.log_dir,
    }
