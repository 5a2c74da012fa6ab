"""Statements one after another: each changes the catalog, and a query that is to run gets its plan.

A Session runs nothing: its plans are for a host. A statement is done whole or refused with StatementError.
"""

from __future__ import annotations

from dataclasses import replace

from pykafkad.pipelines.analysis.query import Meaning, analysed
from pykafkad.pipelines.analysis.sinks import inserted, made
from pykafkad.pipelines.analysis.sources import DataSource, declared_source
from pykafkad.pipelines.catalog import Catalog, PersistentQuery
from pykafkad.pipelines.errors import StatementError, did_you_mean
from pykafkad.pipelines.plan.bad_records import BadRecords
from pykafkad.pipelines.plan.topology import Plan
from pykafkad.pipelines.settings import CACHE
from pykafkad.pipelines.syntax import ast
from pykafkad.pipelines.syntax.formatting import text


class Session:
    def __init__(self, catalog: Catalog) -> None:
        self.catalog = catalog
        self.meanings: dict[str, Meaning] = {}
        """Of the catalog's queries, by their ids."""

    def execute(self, statement: ast.Statement) -> None:
        """Does a statement that makes, fills, changes or drops streams, tables and types, or sets properties."""
        catalog = self.catalog
        match statement:
            case ast.CreateSource():
                self._create(statement)
            case ast.CreateAsSelect():
                self._create_as(statement)
            case ast.InsertSelect():
                self._insert(statement)
            case ast.DropSource():
                catalog.drop(statement)
                self._forget()
            case ast.AlterSource():
                catalog.alter(statement)
            case ast.CreateType():
                catalog.create_type(statement)
            case ast.DropType():
                catalog.drop_type(statement)
            case ast.SetProperty():
                catalog.set(statement)
            case ast.UnsetProperty(name):
                catalog.unset(name, statement.at)
            case _:
                raise StatementError(
                    f"{type(statement).__name__} is no statement of a pipeline.", statement.at
                )

    def analysed(self, query: ast.Query, sink: str | None = None) -> Meaning:
        """What a query means here; without a sink it is one that a person looks at."""

        def find(source: ast.Source) -> DataSource:
            return self.catalog.source(source.name, source.at)

        meaning = analysed(self._with_types(query), find, self.catalog.properties, sink)
        bad_records = BadRecords.of(self.catalog.properties)
        if sink is None:
            bad_records = bad_records.for_a_person()
        else:
            _refuse_endless(bad_records, meaning.plan, query)
        meaning.plan.bad_records = bad_records
        meaning.plan.every_change = int(self.catalog.setting(CACHE)) == 0
        return meaning

    def target_of(self, statement: ast.InsertValues) -> DataSource:
        """The stream or table that INSERT INTO ... VALUES writes to."""
        target = self.catalog.sources.get(statement.target)
        if target is None:
            upper = statement.target.upper()
            hint = (
                f"\nDid you mean {upper}? Hint: try removing double quotes from the source name."
                if upper in self.catalog.sources
                else did_you_mean(statement.target, self.catalog.sources)
            )
            raise StatementError(
                f"Cannot insert values into an unknown stream/table: `{statement.target}`{hint}", statement.at
            )
        if target.read_only:
            raise StatementError(
                f"Cannot insert values into read-only {target.kind.value.lower()}: {target.name}",
                statement.at,
            )
        return target

    def _create(self, statement: ast.CreateSource) -> None:
        if statement.or_replace and statement.read_only:
            kind = statement.kind.value.lower()
            raise StatementError(
                f"Cannot add {kind} '{statement.name}': CREATE OR REPLACE is not supported on source {kind}s.",
                statement.at,
            )
        if not self._is_there(statement):
            resolved = replace(statement, columns=self.catalog.resolved(statement.columns))
            self.catalog.add(declared_source(resolved, self.catalog.properties))

    def _create_as(self, statement: ast.CreateAsSelect) -> None:
        if self._is_there(statement):
            return
        meaning = self.analysed(statement.query, statement.name)
        source = made(statement, meaning, self.catalog.properties)
        replaced = [query.id for query in self.catalog.queries.values() if query.sink == statement.name]
        for query_id in replaced:
            self.catalog.end_query(query_id)
        prefix = "CTAS" if statement.kind is ast.Kind.TABLE else "CSAS"
        query_id = self.catalog.query_id(prefix, statement.name)
        self.catalog.add(replace(source, read_only=False))
        self._add(query_id, statement, statement.name, meaning)

    def _insert(self, statement: ast.InsertSelect) -> None:
        target = self.catalog.sources.get(statement.target)
        if target is None:
            raise StatementError(
                f"Source `{statement.target}` does not exist.{did_you_mean(statement.target, self.catalog.sources)}",
                statement.at,
            )
        meaning = self.analysed(statement.query, statement.target)
        inserted(target, meaning, self.catalog.properties)
        self._add(self.catalog.query_id("INSERTQUERY"), statement, statement.target, meaning)

    def _add(self, query_id: str, statement: ast.Statement, sink: str, meaning: Meaning) -> None:
        self.catalog.add_query(PersistentQuery(query_id, text(statement), meaning.sources, sink))
        self.meanings[query_id] = meaning
        self._forget()

    def _forget(self) -> None:
        """Meanings of queries that are no more."""
        self.meanings = {
            query_id: meaning
            for query_id, meaning in self.meanings.items()
            if query_id in self.catalog.queries
        }

    def _is_there(self, statement: ast.CreateSource | ast.CreateAsSelect) -> bool:
        return self.catalog.refuse_name(
            statement.kind, statement.name, statement.or_replace, statement.if_not_exists, statement.at
        )

    def _with_types(self, query: ast.Query) -> ast.Query:
        """The query with the types that CREATE TYPE named replaced by what they are."""

        def change(expression: ast.Expression) -> ast.Expression:
            if isinstance(expression, ast.Cast):
                return replace(expression, type=self.catalog.resolve(expression.type, expression.at))
            return expression

        select = tuple(
            replace(item, expression=ast.rewrite(item.expression, change))
            if isinstance(item, ast.SelectColumn)
            else item
            for item in query.select
        )
        where = None if query.where is None else ast.rewrite(query.where, change)
        group_by = tuple(ast.rewrite(part, change) for part in query.group_by)
        partition_by = tuple(ast.rewrite(part, change) for part in query.partition_by)
        return replace(query, select=select, where=where, group_by=group_by, partition_by=partition_by)


def _refuse_endless(bad_records: BadRecords, plan: Plan, query: ast.Query) -> None:
    """A query may not read what becomes of its own bad records: each would lead to one more, without end."""
    topics = bad_records.topics
    for name, topic in topics.items():
        if topic in plan.topics():
            raise StatementError(
                f"The query reads topic {topic}, to which {name} sends what it cannot read: UNSET '{name}' first",
                query.at,
            )
    if len(set(topics.values())) < len(topics):
        raise StatementError(f"{' and '.join(topics)} are the same topic", query.at)
