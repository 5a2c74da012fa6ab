"""`pykafkad topics --describe` and `--list`: which topics are meant, and what is shown of them, as lines or as JSON."""

from __future__ import annotations

from pykafkad import uuids
from pykafkad.tools import admin, output
from pykafkad.tools.java import hash_order
from pykafkad.tools.options import Options
from pykafkad.tools.topic_filter import TopicFilter

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    from pykafkad.net.client import Cluster

REPORTS = (
    "under-replicated-partitions",
    "under-min-isr-partitions",
    "at-min-isr-partitions",
    "unavailable-partitions",
)
DEFAULT_CONFIG = 5  # the source of a config that nobody has set


def names(cluster: Cluster, options: Options) -> list[str]:
    """The topics that --topic and --exclude-internal select."""
    expression = options.value("topic")
    chosen = TopicFilter(".*" if expression is None else expression)
    exclude = options.has("exclude-internal")
    known = sorted(topic.name for topic in admin.list_topics(cluster))
    return [name for name in known if chosen.allows(name, exclude)]


def matching(cluster: Cluster, options: Options) -> list[str]:
    """The same, but it is an error if --topic names topics and none is found."""
    found = names(cluster, options)
    if options.value("topic") and not found and not options.has("if-exists"):
        raise ValueError(f"Topic '{options.value('topic')}' does not exist as expected")
    return found


# -- describing


def describe(cluster: Cluster, options: Options) -> None:
    topics = _to_describe(cluster, options)
    configs, moves = _details(cluster, topics)
    for topic in topics:
        _describe_one(cluster, options, topic, configs[topic.name], moves)


def _details(
    cluster: Cluster, topics: list[admin.TopicDescription]
) -> tuple[dict[str, list[Any]], dict[admin.Partition, Any]]:
    """The configs of each topic, and the moves under way of partitions."""
    resources = [(admin.TOPIC, topic.name) for topic in topics]
    configs = admin.describe_configs(cluster, resources) if topics else {}
    cluster.describe_cluster()
    partitions = [(topic.name, row.index) for topic in topics for row in topic.partitions]
    moves = admin.list_reassignments(cluster, partitions) if partitions else {}
    return {name: entries for (_, name), entries in configs.items()}, moves


def _to_describe(cluster: Cluster, options: Options) -> list[admin.TopicDescription]:
    text = options.value("topic-id")
    if text is not None and uuids.from_text(text) != uuids.ZERO:
        topic_id = uuids.from_text(text)
        exclude = options.has("exclude-internal")
        known = {topic.id for topic in admin.list_topics(cluster) if not (exclude and topic.is_internal)}
        if topic_id in known:
            return [admin.describe_topic_id(cluster, topic_id)]
        if not options.has("if-exists"):
            raise ValueError(f"TopicId '{text}' does not exist as expected")
        return []
    chosen = matching(cluster, options)
    limit = options.number("partition-size-limit-per-response") or admin.PARTITIONS_IN_ANSWER
    found = admin.described(admin.describe_topics(cluster, chosen, at_a_time=limit))
    count = len(chosen)  # the admin client has them in a map, which is copied into a second and a third map
    copied = hash_order(hash_order(chosen, capacity=count), capacity=count * 4 // 3 + 1)
    return [found[name] for name in hash_order(copied, capacity=count)]


def _describe_one(
    cluster: Cluster,
    options: Options,
    topic: admin.TopicDescription,
    configs: list[Any],
    moves: dict[admin.Partition, Any],
) -> None:
    own = _own(configs)
    if not options.has_any(REPORTS) and (own or not options.has("topics-with-overrides")):
        _print_topic(topic, own, moves)
    if options.has("topics-with-overrides"):
        return
    for row in _wanted_partitions(cluster, options, topic, configs, moves):
        _print_partition(topic.name, row, moves.get((topic.name, row.index)))


def _own(configs: list[Any]) -> list[Any]:
    return [entry for entry in configs if entry.config_source != DEFAULT_CONFIG]


def _wanted_partitions(
    cluster: Cluster,
    options: Options,
    topic: admin.TopicDescription,
    configs: list[Any],
    moves: dict[admin.Partition, Any],
) -> Iterator[admin.PartitionDescription]:
    """The partitions with the faults that are asked for; without a report, all."""
    reports = [report for report in REPORTS if options.has(report)]
    minimum = next((int(entry.value) for entry in configs if entry.name == "min.insync.replicas"), 1)
    for row in topic.partitions:
        move = moves.get((topic.name, row.index))
        faults = {
            "under-replicated-partitions": _replication_factor(row, move) > len(row.isr),
            "under-min-isr-partitions": row.leader is None or len(row.isr) < minimum,
            "at-min-isr-partitions": len(row.isr) == minimum,
            "unavailable-partitions": row.leader is None or row.leader not in cluster.brokers,
        }
        if not reports or any(faults[report] for report in reports):
            yield row


def _replication_factor(row: admin.PartitionDescription, move: Any) -> int:
    if move is not None and set(row.replicas) & {*move.removing_replicas, *move.adding_replicas}:
        return len(move.replicas) - len(move.adding_replicas)
    return len(row.replicas)


def _print_topic(topic: admin.TopicDescription, own: list[Any], moves: dict[admin.Partition, Any]) -> None:
    first = topic.partitions[0]
    fields = [f"Topic: {topic.name}"]
    if topic.id != uuids.ZERO:
        fields.append(f"TopicId: {uuids.to_text(topic.id)}")
    fields += [
        f"PartitionCount: {len(topic.partitions)}",
        f"ReplicationFactor: {_replication_factor(first, moves.get((topic.name, first.index)))}",
        "Configs: " + ",".join(f"{entry.name}={shown(entry.value)}" for entry in own),
    ]
    output.line("\t".join(fields))


def _print_partition(name: str, row: admin.PartitionDescription, move: Any) -> None:
    fields = [
        f"\tTopic: {name}",
        f"Partition: {row.index}",
        f"Leader: {'none' if row.leader is None else row.leader}",
        f"Replicas: {_joined(row.replicas)}",
        f"Isr: {_joined(row.isr)}",
    ]
    if move is not None:
        fields += [
            f"Adding Replicas: {_joined(move.adding_replicas)}",
            f"Removing Replicas: {_joined(move.removing_replicas)}",
        ]
    fields += [
        f"Elr: {'N/A' if row.eligible is None else _joined(row.eligible)}",
        f"LastKnownElr: {'N/A' if row.last_known is None else _joined(row.last_known)}",
    ]
    output.line("\t".join(fields))


# -- as JSON


def listed_fields(cluster: Cluster, options: Options) -> list[dict[str, object]]:
    chosen = set(names(cluster, options))
    topics = sorted(admin.list_topics(cluster), key=lambda topic: topic.name)
    return [_topic_fields(topic, {}) for topic in topics if topic.name in chosen]


def described_fields(cluster: Cluster, options: Options) -> list[dict[str, object]]:
    topics = sorted(_to_describe(cluster, options), key=lambda topic: topic.name)
    configs, moves = _details(cluster, topics)
    found = []
    for topic in topics:
        entries = configs[topic.name]
        rows = list(_wanted_partitions(cluster, options, topic, entries, moves))
        own = _own(entries)
        if (options.has("topics-with-overrides") and not own) or (options.has_any(REPORTS) and not rows):
            continue
        found.append(
            _topic_fields(topic, moves)
            | {
                "configs": {entry.name: entry.value for entry in own},
                "partitions": [_partition_fields(row, moves.get((topic.name, row.index))) for row in rows],
            }
        )
    return found


def _topic_fields(topic: admin.TopicDescription, moves: dict[admin.Partition, Any]) -> dict[str, object]:
    first = topic.partitions[0] if topic.partitions else None
    return {
        "topic": topic.name,
        "topic_id": uuids.to_text(topic.id) if topic.id != uuids.ZERO else None,
        "internal": topic.is_internal,
        "partition_count": len(topic.partitions),
        "replication_factor": _replication_factor(first, moves.get((topic.name, first.index)))
        if first
        else 0,
    }


def _partition_fields(row: admin.PartitionDescription, move: Any) -> dict[str, object]:
    return {
        "partition": row.index,
        "leader": row.leader,
        "replicas": row.replicas,
        "isr": row.isr,
        "eligible_leader_replicas": row.eligible,
        "last_known_eligible_leader_replicas": row.last_known,
        "adding_replicas": move.adding_replicas if move is not None else [],
        "removing_replicas": move.removing_replicas if move is not None else [],
    }


def _joined(ids: list[int]) -> str:
    return ",".join(map(str, ids))


def shown(text: str | None) -> str:
    """A value as Java prints it."""
    return "null" if text is None else text
