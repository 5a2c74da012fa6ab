"""`pykafkad topics`: what kafka-topics does. How topics are chosen and described is in topics_describe."""

from __future__ import annotations

from pykafkad import errors
from pykafkad.tools import admin, failures, output, topics_describe
from pykafkad.tools.options import (
    INTEGER,
    Option,
    OptionError,
    Options,
    Usage,
    bootstrap,
    flag,
    json_flag,
    run,
    value,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from pykafkad.net.client import Cluster

ABOUT = "This tool helps to create, delete, describe, or change a topic."
ACTIONS = ("list", "describe", "create", "alter", "delete")
USE_CONFIGS = " (To alter topic configurations, the kafka-configs tool can be used.)"
MAX_REPLICATION = 32767

OPTIONS: tuple[Option, ...] = (
    bootstrap(),
    value("command-config", "properties file", "Configs of the client."),
    flag("list", "List the topics."),
    flag("create", "Create a topic."),
    flag("delete", "Delete topics."),
    flag("alter", "Give topics more partitions. (Configs are changed with `configs`.)"),
    flag("describe", "Show topics, their configs and where their partitions are."),
    value("topic", "topic", "The topic; except for --create, a regular expression."),
    value("topic-id", "topic-id", "The id of a topic to describe."),
    value(
        "config",
        "name=value",
        "A config of the new topic, with --create; may be given again. "
        "`configs --describe --all --topic T` lists the names.",
    ),
    value("delete-config", "name", "No longer supported, as in Kafka since 4.0."),
    value(
        "partitions",
        "# of partitions",
        "How many partitions the topic has or, with --alter, will have in all. "
        "More partitions change which one a key goes to.",
        kind=INTEGER,
    ),
    value(
        "replication-factor",
        "replication factor",
        "Replicas of each partition of a new topic; by default the cluster's.",
        kind=INTEGER,
    ),
    value(
        "replica-assignment",
        "broker_id:broker_id,…",
        "The brokers of each partition: a comma between partitions, a colon between replicas.",
    ),
    flag("under-replicated-partitions", "Describe only partitions with replicas that are behind."),
    flag("unavailable-partitions", "Describe only partitions whose leader is not there."),
    flag(
        "under-min-isr-partitions", "Describe only partitions with fewer in-sync replicas than the minimum."
    ),
    flag("at-min-isr-partitions", "Describe only partitions with just the minimum of in-sync replicas."),
    flag("topics-with-overrides", "Describe only topics that have configs of their own."),
    flag("if-exists", "With --alter, --delete or --describe: a topic that is not there is no fault."),
    flag("if-not-exists", "With --create: a topic that is there already is no fault."),
    flag("exclude-internal", "List or describe without the internal topics."),
    value(
        "partition-size-limit-per-response",
        "maximum number of partitions per response",
        "How many partitions one answer may describe.",
        kind=INTEGER,
    ),
    json_flag("list", "describe"),
)
JSON_EXAMPLE = """\
{"topics": [{"topic": "orders", "topic_id": "n6ZqGYlRRdSQnQiUo6NGkg", "internal": false, "partition_count": 1,
  "replication_factor": 1, "configs": {"retention.ms": "5000"},
  "partitions": [{"partition": 0, "leader": 1, "replicas": [1], "isr": [1], "eligible_leader_replicas": [],
    "last_known_eligible_leader_replicas": [], "adding_replicas": [], "removing_replicas": []}]}]}
"""
JSON_NOTE = (
    "A partition without a leader has null there; so have eligible replicas where the broker does not tell them. "
    "configs are those that were set. --list has no configs and no partitions."
)


def main(arguments: Sequence[str]) -> int:
    return run(OPTIONS, arguments, ABOUT, body, as_json=as_json)


def body(options: Options) -> int:
    _check(options)
    cluster = admin.connect(options)
    try:
        for action, do in (
            ("create", create),
            ("alter", alter),
            ("list", list_topics),
            ("describe", topics_describe.describe),
            ("delete", delete),
        ):
            if options.has(action):
                do(cluster, options)
        return 0
    except (errors.KafkaError, OptionError, ValueError, OSError) as problem:
        output.line(f"Error while executing topic command : {failures.message_of(problem)}")
        return 1
    finally:
        cluster.close()


def as_json(options: Options) -> object:
    _check(options)
    cluster = admin.connect(options)
    try:
        fields = topics_describe.listed_fields if options.has("list") else topics_describe.described_fields
        return {"topics": fields(cluster, options)}
    finally:
        cluster.close()


def _check(options: Options) -> None:
    if sum(options.has(action) for action in ACTIONS) != 1:
        raise Usage(
            "Command must include exactly one action: --list, --describe, --create, --alter or --delete"
        )
    if options.has("delete-config"):
        output.error(
            "delete-config option is no longer supported and deprecated since version 4.0. "
            "The config will be fully removed in future releases."
        )
    if options.has("describe") and options.has("if-exists"):
        if not options.has_any(("topic", "topic-id")):
            raise Usage("--topic or --topic-id is required to describe a topic")
        if options.has("topic") and options.has("topic-id"):
            output.line(
                "Only topic id will be used when both --topic and --topic-id are specified and topicId is "
                "not Uuid.ZERO_UUID"
            )
    if not options.has("list") and not options.has("describe"):
        options.require("topic")
    if options.has("alter"):
        if options.has("config"):
            raise Usage(
                'Option combination "[[bootstrap-server], [config]]" can\'t be used with option "[alter]"'
                + USE_CONFIGS
            )
        options.require("partitions")
    _check_pairs(options)


def _check_pairs(options: Options) -> None:
    """Which options can be used with which actions."""

    def only(name: str, *actions: str, also_not: Sequence[str] = ()) -> None:
        options.exclude(name, [*(other for other in ACTIONS if other not in actions), *also_not])

    only("config", "alter", "create")
    only("partitions", "alter", "create")
    only("replication-factor", "create")
    only("replica-assignment", "alter", "create")
    if options.has("create"):
        options.exclude("replica-assignment", ("partitions", "replication-factor"))
    for report in topics_describe.REPORTS:
        only(report, "describe", also_not=("topics-with-overrides",))
    only("topics-with-overrides", "describe", also_not=topics_describe.REPORTS)
    only("if-exists", "alter", "delete", "describe")
    only("if-not-exists", "create")
    only("exclude-internal", "list", "describe")


# -- actions


def create(cluster: Cluster, options: Options) -> None:
    name = options.text("topic")
    assignment, configs = _wanted(options)
    if "." in name or "_" in name:
        output.line(
            "WARNING: Due to limitations in metric names, topics with a period ('.') or underscore ('_') "
            "could collide. To avoid issues it is best to use either, but not both."
        )
    partitions, replication_factor = options.number("partitions"), options.number("replication-factor")
    if replication_factor is not None and not 1 <= replication_factor <= MAX_REPLICATION:
        raise ValueError("The replication factor must be between 1 and 32767 inclusive")
    if partitions is not None and partitions < 1:
        raise ValueError("The partitions must be greater than 0")
    try:
        admin.create_topic(
            cluster,
            name,
            partitions=partitions,
            replication_factor=replication_factor,
            assignment=assignment,
            configs=configs,
        )
    except errors.KafkaError as problem:
        if problem.code != errors.TOPIC_ALREADY_EXISTS or not options.has("if-not-exists"):
            raise
    else:
        output.line(f"Created topic {name}.")


def alter(cluster: Cluster, options: Options) -> None:
    assignment, _ = _wanted(options)
    count = options.integer("partitions")
    names = topics_describe.matching(cluster, options)
    if not names:
        return
    wanted: dict[str, tuple[int, list[list[int]] | None]] = {}
    for name, topic in admin.described(admin.describe_topics(cluster, names)).items():
        places = list(assignment.values())[len(topic.partitions) :] if assignment else None
        wanted[name] = (count, places)
    admin.create_partitions(cluster, wanted)


def list_topics(cluster: Cluster, options: Options) -> None:
    output.line("\n".join(topics_describe.names(cluster, options)))


def delete(cluster: Cluster, options: Options) -> None:
    names = topics_describe.matching(cluster, options)
    if names:
        admin.delete_topics(cluster, names)


def _wanted(options: Options) -> tuple[dict[int, list[int]], dict[str, str]]:
    """The values of --replica-assignment and --config, checked."""
    from pykafkad.config import ConfigError

    text = options.value("replica-assignment") or ""
    assignment = parse_assignment(text) if text else {}
    configs = {}
    for pair in options.values("config"):
        parts = [part.strip() for part in pair.split("=")]
        while parts and not parts[-1]:
            parts.pop()
        if len(parts) != 2:
            raise ValueError(
                "requirement failed: Invalid topic config: all configs to be added must be in the format "
                '"key=val".'
            )
        configs[parts[0]] = parts[1]
    for key, text in configs.items():
        try:
            _check_config(key, text)
        except ConfigError as problem:
            raise ValueError(str(problem)) from problem
    return assignment, configs


def _check_config(key: str, text: str) -> None:
    """Refuses what no broker takes. What only those on ZooKeeper take, the broker says itself if it does not."""
    from pykafkad.config import ConfigError
    from pykafkad.config_keys import OF_3_9, OF_4_3

    try:
        OF_4_3.check_topic(key, text)
    except ConfigError:
        try:
            OF_3_9.check_topic(key, text)
        except ConfigError:
            failures.hint(key, OF_4_3.topic)
        else:
            return
        raise


def parse_assignment(text: str) -> dict[int, list[int]]:
    """`1:2,2:3`: the brokers of each partition."""
    found: dict[int, list[int]] = {}
    for index, entry in enumerate(text.split(",")):
        brokers = []
        for part in entry.split(":"):
            try:
                brokers.append(int(part))
            except ValueError:
                raise ValueError(f'For input string: "{part.strip()}"') from None
        twice = sorted({broker for broker in brokers if brokers.count(broker) > 1})
        if twice:
            raise ValueError(
                "Partition replica lists may not contain duplicate entries: " + ",".join(map(str, twice))
            )
        found[index] = brokers
        if len(brokers) != len(found[0]):
            raise ValueError(f"Partition {index} has different replication factor: {brokers}")
    return found
