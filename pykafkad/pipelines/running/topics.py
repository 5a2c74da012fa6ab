"""The topics that statements need: those that are read must be there, those that are written are made."""

from __future__ import annotations

from pykafkad.pipelines.analysis.properties import OF_SINKS, OF_SOURCES, Properties
from pykafkad.pipelines.analysis.sources import DataSource
from pykafkad.pipelines.errors import StatementError
from pykafkad.pipelines.plan.bad_records import LOG
from pykafkad.pipelines.plan.topology import Plan
from pykafkad.pipelines.running.broker import Broker
from pykafkad.pipelines.syntax.ast import CreateAsSelect, CreateSource, Kind


def prepare(
    broker: Broker, source: DataSource, statement: CreateSource | CreateAsSelect, reads: str | None
) -> None:
    """Makes the source's topic if it is not there and may be made. A query's has the partitions of the topic that it
    reads first (`reads`), unless the statement says how many."""
    topic = broker.topic(source.topic)
    if topic is not None:
        if source.partitions is not None and source.partitions != len(topic.partitions):
            raise StatementError(
                f"A Kafka topic with the name '{source.topic}' already exists, with different partition/replica "
                f"configuration than required: it has {len(topic.partitions)} partitions, not {source.partitions}",
                statement.at,
            )
        return
    count = source.partitions or (len(broker.partitions([reads])) if reads is not None else None)
    if count is None:
        raise StatementError(
            f"Topic '{source.topic}' does not exist. If you want to create a new topic for the "
            f"{source.kind.value.lower()} please re-run the statement providing the required 'PARTITIONS' configuration "
            "in the WITH clause (and optionally 'REPLICAS').",
            statement.at,
        )
    broker.create(source.topic, count, source.replicas, _configs(source, statement))


def prepare_bad_records(broker: Broker, plan: Plan) -> None:
    """Makes the topics for a query's bad records where they are not there: dead letters in as many partitions as the
    topic has that it reads first, the log in one."""
    for name, topic in plan.bad_records.topics.items():
        if broker.topic(topic) is None:
            count = 1 if name == LOG else len(broker.partitions(plan.topics()[:1]))
            broker.create(topic, count, None, {})


def _configs(source: DataSource, statement: CreateSource | CreateAsSelect) -> dict[str, str]:
    of_query = isinstance(statement, CreateAsSelect)
    properties = Properties(statement.properties, OF_SINKS if of_query else OF_SOURCES)
    configs = {}
    if source.kind is Kind.TABLE:
        configs["cleanup.policy"] = "compact" if source.window is None else "compact,delete"
    if properties.get("CLEANUP_POLICY") is not None:
        configs["cleanup.policy"] = properties.get("CLEANUP_POLICY")
    if properties.get("RETENTION_MS") is not None:
        configs["retention.ms"] = str(properties.get("RETENTION_MS"))
    return configs
