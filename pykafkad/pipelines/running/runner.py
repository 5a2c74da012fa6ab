"""Statements obeyed one after another, against a cluster.

A statement is done whole or refused: its meaning is found on a copy of the catalog, its topics are made, and then the
catalog is what the copy is. Which queries run follows from the catalog: what is in it runs, what is not is stopped.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

from pykafkad.pipelines import obeying
from pykafkad.pipelines.analysis.query import Meaning
from pykafkad.pipelines.analysis.session import Session
from pykafkad.pipelines.answers import Answer, Grid, Message
from pykafkad.pipelines.catalog import Catalog
from pykafkad.pipelines.errors import StatementError
from pykafkad.pipelines.formats.registry import REGISTRY_URL
from pykafkad.pipelines.functions.registry import FUNCTIONS
from pykafkad.pipelines.plan.topology import States
from pykafkad.pipelines.running import asserting, topics
from pykafkad.pipelines.running.broker import Broker
from pykafkad.pipelines.running.checkpoints import Checkpoint, Checkpoints
from pykafkad.pipelines.running.engine import Engine
from pykafkad.pipelines.running.explaining import explained
from pykafkad.pipelines.running.hosting import QueryEngine
from pykafkad.pipelines.running.inserting import inserted
from pykafkad.pipelines.running.selecting import Selection, printed, selection, shown
from pykafkad.pipelines.settings import EXACTLY_ONCE
from pykafkad.pipelines.showing import described_function, functions, query
from pykafkad.pipelines.syntax import ast
from pykafkad.pipelines.syntax.parser import Parsed, parse_script
from pykafkad.tools.admin import Partition

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

MAX_SCRIPTS = 16
"""How deep RUN SCRIPT may call scripts that call scripts."""


class Beginning(NamedTuple):
    """From where a query reads, and with what state."""

    starts: dict[Partition, int]
    states: States | None = None


class Runner:
    """`told` hears what queries have to say that nobody asked. Queries go on from `checkpoints` where these have them."""

    def __init__(
        self,
        broker: Broker,
        told: Callable[[str], object],
        checkpoints: Checkpoints | None = None,
        engine: QueryEngine | None = None,
    ) -> None:
        self.broker = broker
        self._checkpoints, self._told = checkpoints, told
        self.session = Session(Catalog())
        self.engine: QueryEngine = engine or Engine(broker, told)
        self._scripts = 0

    @property
    def catalog(self) -> Catalog:
        return self.session.catalog

    @property
    def variables(self) -> Mapping[str, str]:
        """As they are whenever they are looked at."""
        return _Live(self)

    def close(self) -> None:
        self.engine.close()
        self.broker.close()

    def script(self, text: str) -> list[Answer]:
        """Every statement of a script; the first that is refused ends it."""
        return [answer for statement in parse_script(text, self.variables) for answer in self.obey(statement)]

    def obey(self, parsed: Parsed) -> list[Answer]:
        """What the statement answers. SELECT and PRINT, which go on, are for `select` and `printed`."""
        statement = parsed.statement
        answers = obeying.obey(self.catalog, statement)
        if answers is not None:
            return answers
        how = HOW.get(type(statement))
        if how is None:
            raise StatementError(
                "SELECT and PRINT show rows to somebody who looks: they are for the shell", statement.at
            )
        return how(self, statement)

    # --- streams and tables

    def define(self, statement: ast.Statement) -> list[Answer]:
        """CREATE, INSERT INTO ... SELECT, DROP."""
        tried = Session(self.catalog.copy())
        tried.meanings = dict(self.session.meanings)
        tried.execute(statement)
        self._promise(tried, statement)
        self._make_topics(tried, statement)
        begins = self._begins(tried)
        for query_id in begins:
            topics.prepare_bad_records(self.broker, tried.meanings[query_id].plan)
        gone = self._gone(tried, statement)
        self.session = tried
        self._run_what_is_there(begins)
        if gone is not None:
            self.broker.delete(gone)
        return [Message(_done(statement))]

    def _exactly_once(self, session: Session) -> bool:
        return session.catalog.setting("processing.guarantee").lower() == EXACTLY_ONCE

    def _promise(self, tried: Session, statement: ast.Statement) -> None:
        """No query begins whose guarantee would not be kept."""
        begins = tried.catalog.queries.keys() - self.catalog.queries.keys()
        if begins and self._exactly_once(tried) and not self.engine.exactly_once:
            raise StatementError(
                f"processing.guarantee={EXACTLY_ONCE} is kept where Spark runs the queries (sql run --host spark); "
                "here they write at least once",
                statement.at,
            )

    def _make_topics(self, tried: Session, statement: ast.Statement) -> None:
        if not isinstance(statement, ast.CreateSource | ast.CreateAsSelect):
            return
        source = tried.catalog.sources[statement.name]
        if source is self.catalog.sources.get(statement.name):
            return  # IF NOT EXISTS
        reads = None
        if isinstance(statement, ast.CreateAsSelect):
            new = [query_id for query_id in tried.catalog.queries if query_id not in self.catalog.queries]
            reads = tried.meanings[new[0]].plan.topics()[0]
        topics.prepare(self.broker, source, statement, reads)

    def _begins(self, tried: Session) -> dict[str, Beginning]:
        """How each new query begins: where its checkpoint is, where the one stood that it replaces, else as
        auto.offset.reset says."""
        before = {
            query.sink: query.id
            for query in self.catalog.queries.values()
            if not query.id.startswith("INSERT")
        }
        found = {}
        for query_id, persistent in tried.catalog.queries.items():
            if query_id not in self.engine.tasks:
                kept = self._checkpoints.found(tried, query_id) if self._checkpoints else None
                if kept is not None:
                    found[query_id] = self._going_on(tried.meanings[query_id], kept)
                    continue
                starts = self.beginning(tried.meanings[query_id])
                task = self.engine.tasks.get(before.get(persistent.sink, ""))
                if task is not None and not query_id.startswith("INSERT"):
                    stood = task.stands
                    starts |= {key: stood[key] for key in starts if key in stood}
                found[query_id] = Beginning(starts)
        return found

    def _going_on(self, meaning: Meaning, kept: Checkpoint) -> Beginning:
        """What a checkpoint says; partitions that were added since are read from where they begin."""
        partitions = self.broker.partitions(meaning.plan.topics())
        new = [partition for partition in partitions if partition not in kept.positions]
        starts = {partition: kept.positions[partition] for partition in partitions if partition not in new}
        return Beginning(starts | (self.broker.begins(new) if new else {}), kept.states)

    def beginning(self, meaning: Meaning) -> dict[Partition, int]:
        """Where a query begins to read: tables where they begin, streams as auto.offset.reset says."""
        partitions = self.broker.partitions(meaning.plan.topics())
        if self.catalog.setting("auto.offset.reset").lower() == "earliest":
            return self.broker.begins(partitions)
        sources = (self.catalog.sources[name] for name in meaning.sources)
        tables = {source.topic for source in sources if source.kind is ast.Kind.TABLE}
        whole = [partition for partition in partitions if partition[0] in tables]
        return self.broker.ends(partitions) | (self.broker.begins(whole) if whole else {})

    def select(self, statement: ast.SelectStatement) -> Selection:
        query = statement.query
        meaning = self.session.analysed(query)
        if query.emit is None:
            starts = self.broker.begins(self.broker.partitions(meaning.plan.topics()))
        else:
            starts = self.beginning(meaning)
            rows = self.engine.pushed(meaning.plan, starts)
            if rows is not None:
                return shown(query, meaning, rows)
        return selection(self._another_broker(), query, meaning, starts, self._told)

    def printed(self, statement: ast.PrintTopic) -> Iterator[str | None]:
        return printed(self._another_broker(), statement)

    def _another_broker(self) -> Broker:
        """The same cluster on connections of their own, for whoever reads beside the engine."""
        return Broker(self.broker.bootstrap, self.broker.configs)

    def _gone(self, tried: Session, statement: ast.Statement) -> str | None:
        """The topic that DROP ... DELETE TOPIC deletes."""
        if not isinstance(statement, ast.DropSource) or not statement.delete_topic:
            return None
        source = self.catalog.sources.get(statement.name)
        if source is None:
            return None
        if any(other.topic == source.topic for other in tried.catalog.sources.values()):
            raise StatementError(f"Cannot delete topic {source.topic}: others are on it, too", statement.at)
        return source.topic

    def _run_what_is_there(self, begins: Mapping[str, Beginning]) -> None:
        for query_id in list(self.engine.tasks):
            if query_id not in self.catalog.queries:
                self.engine.stop(query_id)
        for query_id, beginning in begins.items():
            plan, exactly_once = self.session.meanings[query_id].plan, self._exactly_once(self.session)
            self.engine.start(query_id, plan, beginning.starts, beginning.states, exactly_once)

    def insert(self, statement: ast.InsertValues) -> list[Answer]:
        target = self.session.target_of(statement)
        refused: list[Exception] = []
        self.broker.send(
            inserted(target, statement, time.time_ns() // 1_000_000),
            lambda error: refused.append(error) if error is not None else None,
        )
        self.broker.flush()
        if refused:
            raise refused[0]
        return []

    # --- queries

    def control(self, statement: ast.ControlQuery) -> list[Answer]:
        catalog = self.catalog
        ids = (
            list(catalog.queries)
            if statement.query_id is None
            else [catalog.query(statement.query_id, statement.at).id]
        )
        for query_id in ids:
            if statement.action == "TERMINATE":
                self.engine.stop(query_id)
                catalog.end_query(query_id)
                del self.session.meanings[query_id]
            else:
                paused = statement.action == "PAUSE"
                self.engine.tasks[query_id].is_paused = paused
                if self.engine.tasks[query_id].problem is None:
                    catalog.change_query(query_id, "PAUSED" if paused else "RUNNING")
        done = {"TERMINATE": "terminated", "PAUSE": "paused", "RESUME": "resumed"}[statement.action]
        return [Message(f"Query {done}: {query_id}") for query_id in ids] or [Message("There are no queries")]

    def keep(self, now: bool = False) -> None:
        """Has checkpoints written, when that is due. Between two steps of the engine."""
        if self._checkpoints is not None and isinstance(self.engine, Engine):
            self._checkpoints.keep(self.session, self.engine.tasks, now)

    def note_failures(self) -> None:
        """Queries that have stopped are so in the catalog, too."""
        for query_id, task in self.engine.tasks.items():
            if task.problem is not None and self.catalog.queries[query_id].state != "ERROR":
                self.catalog.change_query(query_id, "ERROR", task.problem)

    # --- what there is

    def show(self, statement: ast.Show) -> list[Answer]:
        if statement.what == "FUNCTIONS":
            return [functions(FUNCTIONS)]
        rows = [
            (
                topic.name,
                str(len(topic.partitions)),
                ", ".join(str(len(p.replicas)) for p in topic.partitions[:1]),
            )
            for topic in self.broker.topics()
            if statement.every or not (topic.is_internal or topic.name.startswith("_"))
        ]
        return [Grid(("Kafka Topic", "Partitions", "Replicas"), rows)]

    def describe_function(self, statement: ast.DescribeFunction) -> list[Answer]:
        try:
            return described_function(FUNCTIONS.find(statement.name))
        except StatementError as error:
            raise StatementError(error.reason, statement.at) from None

    def explain(self, statement: ast.Explain) -> list[Answer]:
        if statement.query_id is not None:
            found = self.catalog.query(statement.query_id, statement.at)
            return [*query(self.catalog, found.id), *explained(self.session.meanings[found.id])]
        assert statement.statement is not None
        return explain_statement(self.session, statement.statement)

    def assert_topic(self, statement: ast.AssertTopic) -> list[Answer]:
        return [asserting.topic(self.broker, statement)]

    def assert_schema(self, statement: ast.AssertSchema) -> list[Answer]:
        return [asserting.schema(self.catalog.properties.get(REGISTRY_URL), statement)]

    def run_script(self, statement: ast.RunScript) -> list[Answer]:
        try:
            text = Path(statement.path).read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise StatementError(f"Cannot read {statement.path}: {error}", statement.at) from None
        if self._scripts >= MAX_SCRIPTS:
            raise StatementError(f"Scripts run one another more than {MAX_SCRIPTS} deep", statement.at)
        self._scripts += 1
        try:
            return self.script(text)
        except StatementError as error:
            raise StatementError(f"{statement.path}: {error}", statement.at) from None
        finally:
            self._scripts -= 1


class _Live(Mapping[str, str]):
    def __init__(self, runner: Runner) -> None:
        self._runner = runner

    def __getitem__(self, name: str) -> str:
        return self._runner.catalog.variables[name]

    def __iter__(self) -> Any:
        return iter(self._runner.catalog.variables)

    def __len__(self) -> int:
        return len(self._runner.catalog.variables)


def explain_statement(session: Session, statement: ast.Statement) -> list[Answer]:
    """What a statement would run."""
    if isinstance(statement, ast.SelectStatement):
        return explained(session.analysed(statement.query))
    if not isinstance(statement, ast.CreateAsSelect | ast.InsertSelect):
        raise StatementError(
            "EXPLAIN explains queries: SELECT, CREATE ... AS SELECT, INSERT INTO ... SELECT", statement.at
        )
    tried = Session(session.catalog.copy())
    tried.execute(statement)
    return [answer for meaning in tried.meanings.values() for answer in explained(meaning)]


def _done(statement: ast.Statement) -> str:
    match statement:
        case ast.CreateSource():
            return f"{statement.kind.value.capitalize()} {statement.name} created"
        case ast.CreateAsSelect():
            return f"{statement.kind.value.capitalize()} {statement.name} created, and its query runs"
        case ast.DropSource():
            return f"{statement.kind.value.capitalize()} {statement.name} dropped"
    return "The query runs"


HOW: dict[type[ast.Statement], Callable[[Runner, Any], list[Answer]]] = {
    ast.CreateSource: Runner.define,
    ast.CreateAsSelect: Runner.define,
    ast.InsertSelect: Runner.define,
    ast.DropSource: Runner.define,
    ast.InsertValues: Runner.insert,
    ast.ControlQuery: Runner.control,
    ast.Show: Runner.show,
    ast.DescribeFunction: Runner.describe_function,
    ast.Explain: Runner.explain,
    ast.AssertTopic: Runner.assert_topic,
    ast.AssertSchema: Runner.assert_schema,
    ast.RunScript: Runner.run_script,
}
