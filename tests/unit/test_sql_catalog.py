"""What statements have made, and the statements that only change or show it."""

from __future__ import annotations

from dataclasses import replace

import pytest

from pykafkad.pipelines import StatementError
from pykafkad.pipelines.analysis.sources import declared_source
from pykafkad.pipelines.answers import Message
from pykafkad.pipelines.catalog import Catalog, PersistentQuery
from pykafkad.pipelines.obeying import obey
from pykafkad.pipelines.syntax import ast
from pykafkad.pipelines.syntax.parser import parse, parse_type


def with_sources(*statements: str) -> Catalog:
    catalog = Catalog()
    for statement in statements:
        parsed = parse(statement)
        assert isinstance(parsed, ast.CreateSource)
        catalog.add(
            declared_source(replace(parsed, columns=catalog.resolved(parsed.columns)), catalog.properties)
        )
    return catalog


RIDES = "CREATE STREAM RIDES (ID INT KEY, V STRING) WITH (KAFKA_TOPIC='rides', VALUE_FORMAT='JSON')"
TAXIS = "CREATE SOURCE TABLE TAXIS (ID INT PRIMARY KEY, V STRING) WITH (KAFKA_TOPIC='t', FORMAT='JSON')"


def answer(catalog: Catalog, statement: str) -> str:
    answers = obey(catalog, parse(statement))
    assert answers is not None, f"{statement} is not the catalog's"
    shown = []
    for one in answers:
        if isinstance(one, Message):
            shown.append(one.text)
        else:
            shown += [one.title, *(" | ".join(row) for row in one.rows), one.note]
    return "\n".join(line for line in shown if line)


def refusal(catalog: Catalog, statement: str) -> str:
    with pytest.raises(StatementError) as caught:
        obey(catalog, parse(statement))
    return caught.value.reason


def test_an_unknown_name_names_the_nearest() -> None:
    catalog = with_sources(RIDES, TAXIS)
    assert catalog.source("RIDES").topic == "rides"
    with pytest.raises(StatementError, match=r"RIDE does not exist. Did you mean RIDES\?"):
        catalog.source("RIDE")


@pytest.mark.parametrize(
    ("kind", "name", "or_replace", "if_not_exists", "outcome"),
    [
        (ast.Kind.STREAM, "NEW", False, False, False),
        (ast.Kind.STREAM, "RIDES", False, True, True),
        (ast.Kind.STREAM, "RIDES", True, False, False),
        (
            ast.Kind.STREAM,
            "RIDES",
            False,
            False,
            "Cannot add stream 'RIDES': A stream with the same name already exists",
        ),
        (
            ast.Kind.TABLE,
            "RIDES",
            True,
            False,
            "Cannot add table 'RIDES': A stream with the same name already exists",
        ),
        (ast.Kind.TABLE, "TAXIS", True, False, "CREATE OR REPLACE is not supported on source tables"),
    ],
)
def test_a_name_that_is_taken(
    kind: ast.Kind, name: str, or_replace: bool, if_not_exists: bool, outcome: bool | str
) -> None:
    catalog, at = with_sources(RIDES, TAXIS), parse(RIDES).at
    if isinstance(outcome, bool):
        assert catalog.refuse_name(kind, name, or_replace, if_not_exists, at) is outcome
        return
    with pytest.raises(StatementError) as caught:
        catalog.refuse_name(kind, name, or_replace, if_not_exists, at)
    assert outcome in caught.value.reason


def drop(catalog: Catalog, statement: str) -> bool:
    parsed = parse(statement)
    assert isinstance(parsed, ast.DropSource)
    return catalog.drop(parsed) is not None


def test_what_is_read_is_not_dropped_and_what_is_dropped_takes_its_own_query_with_it() -> None:
    catalog = with_sources(RIDES, RIDES.replace("RIDES", "COPY"))
    catalog.add_query(PersistentQuery("CSAS_COPY_2", "…", ("RIDES",), "COPY"))
    with pytest.raises(
        StatementError, match=r"(?s)Cannot drop RIDES.*read from this source: \[CSAS_COPY_2\]"
    ):
        drop(catalog, "DROP STREAM RIDES")
    with pytest.raises(StatementError, match="COPY is a STREAM: DROP STREAM drops it"):
        drop(catalog, "DROP TABLE COPY")
    assert drop(catalog, "DROP STREAM COPY") and not catalog.queries
    assert drop(catalog, "DROP STREAM RIDES")
    assert not drop(catalog, "DROP STREAM IF EXISTS RIDES")


def test_what_others_insert_into_is_not_dropped() -> None:
    catalog = with_sources(RIDES, TAXIS)
    catalog.add_query(PersistentQuery("INSERTQUERY_2", "…", ("TAXIS",), "RIDES"))
    with pytest.raises(StatementError, match=r"write into this source: \[INSERTQUERY_2\]"):
        drop(catalog, "DROP STREAM RIDES")
    with pytest.raises(StatementError, match=r"read from this source: \[INSERTQUERY_2\]"):
        drop(catalog, "DROP TABLE TAXIS")


def test_columns_are_added_to_what_was_declared() -> None:
    catalog = with_sources(RIDES, TAXIS)
    assert (
        answer(catalog, "ALTER STREAM RIDES ADD COLUMN W INT, ADD X ARRAY<INT>") == "RIDES has 4 columns now"
    )
    assert [column.name for column in catalog.source("RIDES").columns] == ["ID", "V", "W", "X"]
    assert refusal(catalog, "ALTER STREAM RIDES ADD V INT") == "RIDES has a column V already"
    assert "which is read-only" in refusal(catalog, "ALTER TABLE TAXIS ADD W INT")


def test_types_have_names() -> None:
    catalog = Catalog()
    answer(catalog, "CREATE TYPE POINT AS STRUCT<X INT, Y INT>")
    answer(catalog, "CREATE TYPE LINE AS ARRAY<POINT>")
    assert answer(catalog, "SHOW TYPES") == (
        "LINE | ARRAY<STRUCT<`X` INTEGER, `Y` INTEGER>>\nPOINT | STRUCT<`X` INTEGER, `Y` INTEGER>"
    )
    assert str(catalog.resolve(parse_type("MAP<STRING, LINE>"))).startswith("MAP<STRING, ARRAY<STRUCT<")
    assert "Cannot resolve unknown type: PIONT. Did you mean POINT?" in refusal(
        catalog, "CREATE TYPE T AS ARRAY<PIONT>"
    )
    assert "already registered" in refusal(catalog, "CREATE TYPE POINT AS INT")
    answer(catalog, "DROP TYPE POINT")
    assert "Type POINT does not exist" in refusal(catalog, "DROP TYPE POINT")


def test_properties_are_known_or_refused() -> None:
    catalog = Catalog()
    assert catalog.setting("auto.offset.reset") == "latest"
    answer(catalog, "SET 'ksql.streams.auto.offset.reset' = 'earliest'")
    assert catalog.setting("auto.offset.reset") == "earliest"
    answer(catalog, "UNSET 'auto.offset.reset'")
    assert catalog.setting("auto.offset.reset") == "latest"
    assert "Did you mean auto.offset.reset?" in refusal(catalog, "SET 'auto.offset.rest' = 'earliest'")
    assert "one of earliest, latest is" in refusal(catalog, "SET 'auto.offset.reset' = 'none'")
    answer(catalog, "SET 'ksql.streams.statestore.cache.max.bytes' = '0'")
    assert catalog.setting("cache.max.bytes.buffering") == "0"
    assert "changes nothing here: results are" in answer(catalog, "SET 'commit.interval.ms' = '9'")


def test_variables_have_names_of_any_case() -> None:
    catalog = Catalog()
    answer(catalog, "DEFINE topic = 'rides'")
    assert catalog.variables == {"TOPIC": "rides"}
    answer(catalog, "UNDEFINE Topic")
    assert "The variable Topic is not defined" in refusal(catalog, "UNDEFINE Topic")
    assert "is no name for a variable" in refusal(catalog, "DEFINE `a b` = 'x'")


def test_what_there_is_is_shown() -> None:
    catalog = with_sources(RIDES, TAXIS)
    catalog.add_query(PersistentQuery("INSERTQUERY_2", "INSERT  INTO\nx", ("TAXIS",), "RIDES"))
    assert answer(catalog, "SHOW STREAMS") == "RIDES | rides | KAFKA | JSON | false"
    assert answer(catalog, "LIST TABLES") == "TAXIS | t | JSON | JSON | false"
    assert "INSERTQUERY_2 | PERSISTENT | RUNNING | RIDES | rides | INSERT INTO x" in answer(
        catalog, "SHOW QUERIES"
    )
    assert "ID | INTEGER  (key)\nV | STRING" in answer(catalog, "DESCRIBE rides")
    extended = answer(catalog, "DESCRIBE TABLES EXTENDED")
    assert "ID | INTEGER  (primary key)" in extended and "Type | SOURCE TABLE" in extended
    assert "Queries that read it | INSERTQUERY_2" in extended
    assert "Did you mean RIDES?" in refusal(catalog, "DESCRIBE RIDE")


def test_a_copy_changes_alone() -> None:
    catalog = with_sources(RIDES)
    tried = catalog.copy()
    drop(tried, "DROP STREAM RIDES")
    answer(tried, "DEFINE a = 'b'")
    assert "RIDES" in catalog.sources and not catalog.variables
    assert answer(catalog, "SHOW VARIABLES") == "" and answer(tried, "SHOW VARIABLES") == "A | b"
