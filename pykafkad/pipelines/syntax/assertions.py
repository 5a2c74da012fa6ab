"""ASSERT: that a topic or schema is there, or not; and in tests written in SQL, what a stream or table is and holds."""

from __future__ import annotations

from pykafkad.pipelines.errors import Position
from pykafkad.pipelines.syntax import definitions
from pykafkad.pipelines.syntax.ast import (
    AssertSchema,
    AssertSource,
    AssertTopic,
    AssertValues,
    Duration,
    Statement,
)
from pykafkad.pipelines.syntax.queries import duration
from pykafkad.pipelines.syntax.reader import Reader


def assertion(r: Reader) -> Statement:
    at = r.place(r.advance())
    exists = not r.accept_all("NOT", "EXISTS")
    if r.accept("TOPIC"):
        topic = r.written_name("a topic")
        return AssertTopic(topic, definitions.with_properties(r), _timeout(r), exists, at=at)
    if r.accept("SCHEMA"):
        return _schema(r, exists, at)
    if not exists:
        r.fail()
    return _of_tests(r, at)


def _timeout(r: Reader) -> Duration | None:
    return duration(r) if r.accept("TIMEOUT") else None


def _schema(r: Reader, exists: bool, at: Position) -> Statement:
    subject = r.written_name("a subject") if r.accept("SUBJECT") else None
    schema_id = r.whole() if r.accept("ID") else None
    if subject is None and schema_id is None:
        r.fail()
    return AssertSchema(subject, schema_id, _timeout(r), exists, at=at)


def _of_tests(r: Reader, at: Position) -> Statement:
    if r.accept("VALUES"):
        return AssertValues(r.name("a stream or table"), *definitions.values(r), at=at)
    if r.accept_all("NULL", "VALUES"):
        target = r.name("a stream or table")
        return AssertValues(target, *definitions.values(r, "KEY"), tombstone=True, at=at)
    kind = definitions.kind(r)
    name = r.name(f"a {kind.value.lower()}")
    columns = definitions.columns(r) if r.is_next("(") else ()
    return AssertSource(kind, name, columns, definitions.with_properties(r), at=at)
