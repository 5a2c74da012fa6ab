"""What statements have made: streams and tables, types, variables, properties, and the queries that run.

A catalog holds no data and knows no broker. Statements change it through its methods, each of which refuses
(StatementError) before it changes anything; `copy` is for trying what a statement would do.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from pykafkad.pipelines import settings
from pykafkad.pipelines.analysis.sources import DataSource
from pykafkad.pipelines.errors import NOWHERE, Position, StatementError, did_you_mean
from pykafkad.pipelines.syntax.ast import (
    AlterSource,
    ColumnDefinition,
    CreateType,
    DefineVariable,
    DropSource,
    DropType,
    Kind,
    SetProperty,
)
from pykafkad.pipelines.types import SqlType, resolve

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any
    from typing import Literal as OneOf


@dataclass(frozen=True, slots=True)
class PersistentQuery:
    """A query that writes to a stream or table: CSAS_X_3, CTAS_X_3 or INSERTQUERY_3."""

    id: str
    text: str
    sources: tuple[str, ...]
    sink: str
    state: OneOf["RUNNING", "PAUSED", "ERROR"] = "RUNNING"
    problem: str = ""
    """Of a query in ERROR: why."""


class Catalog:
    def __init__(self, properties: Mapping[str, Any] | None = None) -> None:
        self.sources: dict[str, DataSource] = {}
        self.types: dict[str, SqlType] = {}
        self.variables: dict[str, str] = {}
        """By name in upper case, as the reader replaces them."""
        self.properties: dict[str, str] = settings.by_own_names(properties or {})
        self.queries: dict[str, PersistentQuery] = {}
        self._made = 0

    def copy(self) -> Catalog:
        made = Catalog(self.properties)
        made.sources, made.types = dict(self.sources), dict(self.types)
        made.variables, made.queries, made._made = dict(self.variables), dict(self.queries), self._made
        return made

    # --- streams and tables

    def source(self, name: str, at: Position = NOWHERE) -> DataSource:
        found = self.sources.get(name)
        if found is None:
            raise StatementError(f"{name} does not exist.{did_you_mean(name, self.sources)}", at)
        return found

    def refuse_name(self, kind: Kind, name: str, or_replace: bool, if_not_exists: bool, at: Position) -> bool:
        """Whether nothing is to be made, since it is there. StatementError where that is in the way."""
        known = self.sources.get(name)
        if known is None or (if_not_exists and known.kind is kind):
            return known is not None
        what, has = kind.value.lower(), known.kind.value.lower()
        if or_replace and known.read_only:
            raise StatementError(
                f"Cannot add {what} '{name}': CREATE OR REPLACE is not supported on source {has}s.", at
            )
        if not or_replace or known.kind is not kind:
            article = f"{'an ' if has[0] in 'aeiou' else 'a '}{has}"
            raise StatementError(
                f"Cannot add {what} '{name}': {article.capitalize()} with the same name already exists", at
            )
        return False

    def add(self, source: DataSource) -> None:
        self.sources[source.name] = source
        self._made += 1

    def drop(self, statement: DropSource) -> DataSource | None:
        """What was dropped; its own query ends with it. None where nothing was there and IF EXISTS allows that."""
        name, kind = statement.name, statement.kind
        if name not in self.sources and statement.if_exists:
            return None
        found = self.source(name, statement.at)
        if found.kind is not kind:
            raise StatementError(
                f"{name} is a {found.kind.value}: DROP {found.kind.value} drops it", statement.at
            )
        self._refuse_drop(found, statement)
        for query in list(self.queries.values()):
            if query.sink == name:
                del self.queries[query.id]
        del self.sources[name]
        return found

    def _refuse_drop(self, source: DataSource, statement: DropSource) -> None:
        readers = [query.id for query in self.queries.values() if source.name in query.sources]
        writers = [
            query.id
            for query in self.queries.values()
            if query.sink == source.name and query.id.startswith("INSERTQUERY")
        ]
        if readers or writers:
            raise StatementError(
                f"Cannot drop {source.name}.\nThe following queries read from this source: [{', '.join(readers)}].\n"
                f"The following queries write into this source: [{', '.join(writers)}].\n"
                f"You need to terminate them before dropping {source.name}.",
                statement.at,
            )
        if statement.delete_topic and source.read_only:
            raise StatementError(f"Cannot delete topic of read-only source: {source.name}", statement.at)

    def alter(self, statement: AlterSource) -> DataSource:
        """The source with columns more."""
        found = self.source(statement.name, statement.at)
        if found.kind is not statement.kind:
            raise StatementError(
                f"{found.name} is a {found.kind.value}: ALTER {found.kind.value} alters it", statement.at
            )
        if found.made_by_query or found.read_only:
            why = "was made by a query" if found.made_by_query else "is read-only"
            raise StatementError(f"ALTER is not supported on {found.name}, which {why}", statement.at)
        known = {column.name for column in found.columns}
        for column in statement.columns:
            if column.name in known:
                raise StatementError(f"{found.name} has a column {column.name} already", column.at)
            known.add(column.name)
        altered = replace(found, columns=(*found.columns, *self.resolved(statement.columns))).check()
        self.sources[found.name] = altered
        return altered

    # --- types

    def resolved(self, columns: tuple[ColumnDefinition, ...]) -> tuple[ColumnDefinition, ...]:
        """The columns with every name of a type replaced by what it stands for."""
        return tuple(replace(column, type=self.resolve(column.type, column.at)) for column in columns)

    def resolve(self, of: SqlType, at: Position = NOWHERE) -> SqlType:
        def named(name: str) -> SqlType:
            if name not in self.types:
                raise StatementError(f"Cannot resolve unknown type: {name}.{self._nearest_type(name)}", at)
            return self.types[name]

        return resolve(of, named)

    def _nearest_type(self, name: str) -> str:
        from pykafkad.pipelines.types import PRIMITIVES

        return did_you_mean(name, {*self.types, *PRIMITIVES, "DECIMAL", "ARRAY", "MAP", "STRUCT"})

    def create_type(self, statement: CreateType) -> bool:
        """Whether it was made: with IF NOT EXISTS one that is there stays."""
        if statement.name in self.types:
            if statement.if_not_exists:
                return False
            raise StatementError(
                f"Cannot register custom type '{statement.name}' since it is already registered", statement.at
            )
        self.types[statement.name] = self.resolve(statement.type, statement.at)
        return True

    def drop_type(self, statement: DropType) -> bool:
        if statement.name not in self.types and not statement.if_exists:
            hint = did_you_mean(statement.name, self.types)
            raise StatementError(f"Type {statement.name} does not exist.{hint}", statement.at)
        return self.types.pop(statement.name, None) is not None

    # --- variables and properties

    def define(self, statement: DefineVariable) -> None:
        if not statement.name.isidentifier() or not statement.name.isascii():
            raise StatementError(
                f"{statement.name} is no name for a variable: letters, digits and _ are allowed", statement.at
            )
        self.variables[statement.name.upper()] = statement.value

    def undefine(self, name: str, at: Position = NOWHERE) -> None:
        if self.variables.pop(name.upper(), None) is None:
            raise StatementError(
                f"The variable {name} is not defined.{did_you_mean(name, self.variables)}", at
            )

    def set(self, statement: SetProperty) -> str | None:
        """Why that changes nothing, if so."""
        name, without_effect = settings.checked(statement.name, statement.value, statement.at)
        self.properties[name] = statement.value
        return without_effect

    def unset(self, name: str, at: Position = NOWHERE) -> None:
        known = settings.own_name(name)
        if self.properties.pop(known, None) is None:
            raise StatementError(f"{name} is not set.{did_you_mean(known, self.properties)}", at)

    def setting(self, name: str) -> str:
        """What a property is now."""
        return self.properties.get(name, settings.SETTINGS[name].default)

    # --- queries

    def query_id(self, prefix: str, sink: str = "") -> str:
        """The next query's name: of CSAS, CTAS (with the sink) or INSERTQUERY."""
        return "_".join(part for part in (prefix, sink, str(self._made)) if part)

    def add_query(self, query: PersistentQuery) -> None:
        self.queries[query.id] = query
        self._made += 1

    def query(self, query_id: str, at: Position = NOWHERE) -> PersistentQuery:
        for known in (query_id, query_id.upper()):
            if known in self.queries:
                return self.queries[known]
        raise StatementError(f"There is no query {query_id}.{did_you_mean(query_id, self.queries)}", at)

    def change_query(
        self, query_id: str, state: OneOf["RUNNING", "PAUSED", "ERROR"], problem: str = ""
    ) -> None:
        self.queries[query_id] = replace(self.queries[query_id], state=state, problem=problem)

    def end_query(self, query_id: str) -> None:
        del self.queries[query_id]
