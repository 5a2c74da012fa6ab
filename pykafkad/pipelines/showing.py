"""SHOW and DESCRIBE, as far as the catalog alone knows the answer."""

from __future__ import annotations

from pykafkad.pipelines import settings
from pykafkad.pipelines.analysis.sources import DataSource
from pykafkad.pipelines.answers import Answer, Grid
from pykafkad.pipelines.catalog import Catalog
from pykafkad.pipelines.functions.registry import Function, Functions
from pykafkad.pipelines.syntax.ast import ColumnDefinition, Describe, DescribeAll, Kind, Role, Show
from pykafkad.pipelines.syntax.formatting import string

MARKS = {Role.KEY: "(key)", Role.PRIMARY_KEY: "(primary key)", Role.HEADERS: "(headers)"}


def show(catalog: Catalog, statement: Show) -> list[Answer]:
    if statement.what in ("STREAMS", "TABLES"):
        return sources(catalog, Kind(statement.what[:-1]), statement.extended)
    if statement.what == "QUERIES" and statement.extended:
        return [described for query_id in catalog.queries for described in query(catalog, query_id)]
    grids = {"QUERIES": queries, "PROPERTIES": properties, "VARIABLES": variables, "TYPES": types}
    return [grids[statement.what](catalog)]


def sources(catalog: Catalog, kind: Kind, extended: bool) -> list[Answer]:
    found = [source for name, source in sorted(catalog.sources.items()) if source.kind is kind]
    if extended:
        return [described for source in found for described in description(catalog, source, True)]
    headers = (f"{kind.value.capitalize()} Name", "Kafka Topic", "Key Format", "Value Format", "Windowed")
    rows = [
        (s.name, s.topic, s.key_format.name, s.value_format.name, "true" if s.window else "false")
        for s in found
    ]
    return [Grid(headers, rows)]


def queries(catalog: Catalog) -> Grid:
    rows = [
        (
            query.id,
            "PERSISTENT",
            query.state,
            query.sink,
            catalog.source(query.sink).topic,
            " ".join(query.text.split()),
        )
        for query in catalog.queries.values()
    ]
    headers = ("Query ID", "Query Type", "Status", "Sink Name", "Sink Kafka Topic", "Query String")
    note = "For detailed information on a query run: EXPLAIN <Query ID>;" if rows else ""
    return Grid(headers, rows, note=note)


def query(catalog: Catalog, query_id: str) -> list[Answer]:
    found = catalog.query(query_id)
    rows = [
        ("ID", found.id),
        ("Status", found.state),
        ("Reads from", ", ".join(found.sources)),
        ("Writes to", f"{found.sink} (Kafka topic: {catalog.source(found.sink).topic})"),
        ("SQL", found.text),
    ]
    if found.problem:
        rows.insert(2, ("Problem", found.problem))
    return [Grid(("", ""), rows)]


def properties(catalog: Catalog) -> Grid:
    rows = [
        (name, catalog.setting(name), "" if name not in catalog.properties else "SET", setting.about)
        for name, setting in settings.SETTINGS.items()
    ]
    rows += [
        (name, value, "SET", f"changes nothing here: {settings.WITHOUT_EFFECT[name]}")
        for name, value in catalog.properties.items()
        if name in settings.WITHOUT_EFFECT
    ]
    return Grid(("Property", "Value", "Set by", "Meaning"), sorted(rows))


def variables(catalog: Catalog) -> Grid:
    return Grid(("Variable Name", "Value"), sorted(catalog.variables.items()))


def types(catalog: Catalog) -> Grid:
    return Grid(("Type Name", "Schema"), sorted((name, str(of)) for name, of in catalog.types.items()))


# --- DESCRIBE


def describe(catalog: Catalog, statement: Describe | DescribeAll) -> list[Answer]:
    if isinstance(statement, DescribeAll):
        names = [name for name, source in sorted(catalog.sources.items()) if source.kind is statement.kind]
    else:
        names = [catalog.source(statement.name, statement.at).name]
    found = [description(catalog, catalog.sources[name], statement.extended) for name in names]
    return [answer for answers in found for answer in answers]


def description(catalog: Catalog, source: DataSource, extended: bool) -> list[Answer]:
    rows = [(column.name, f"{column.type}  {_mark(column)}".rstrip()) for column in source.columns]
    fields = Grid(
        ("Field", "Type"),
        rows,
        title=f"Name : {source.name}" + (f"  (windowed: {source.window.type})" if source.window else ""),
        note="" if extended else f"For more of it run: DESCRIBE {source.name} EXTENDED;",
    )
    return [fields, _more(catalog, source)] if extended else [fields]


def _mark(column: ColumnDefinition) -> str:
    return f"(header({string(column.header)}))" if column.header is not None else MARKS.get(column.role, "")


def _more(catalog: Catalog, source: DataSource) -> Grid:
    timestamp = source.timestamp
    reading = [query.id for query in catalog.queries.values() if source.name in query.sources]
    writing = [query.id for query in catalog.queries.values() if query.sink == source.name]
    rows = [
        ("Type", f"{'SOURCE ' if source.read_only else ''}{source.kind.value}"),
        ("Kafka topic", source.topic),
        ("Key format", source.key_format.name),
        ("Value format", source.value_format.name),
        ("Timestamp field", timestamp.name if timestamp else "the record's own"),
        ("Timestamp format", timestamp.format if timestamp and timestamp.format else ""),
        ("Queries that read it", ", ".join(reading)),
        ("Queries that write it", ", ".join(writing)),
    ]
    return Grid(("", ""), [row for row in rows if row[1]])


# --- functions


def functions(known: Functions) -> Grid:
    rows = [(function.name, function.kind, function.category) for function in known.all()]
    return Grid(
        ("Function Name", "Kind", "Category"), rows, note="For more of one run: DESCRIBE FUNCTION <name>;"
    )


def described_function(function: Function) -> list[Answer]:
    rows = [("Name", function.name), ("Kind", function.kind), ("Category", function.category)]
    if function.description:
        rows.append(("Overview", function.description))
    variants = [(f"{function.name}{variant.signature}",) for variant in function.variants]
    return [Grid(("", ""), rows), Grid(("Variation",), variants)]
