"""Pipelines that hosts must agree on: one of each kind of operator, with records in an order that matters."""

from __future__ import annotations

from typing import Any, NamedTuple

SECOND = 1000


class Pipeline(NamedTuple):
    statements: list[str]
    inputs: list[dict[str, Any]]


CLICKS = (
    "CREATE STREAM clicks (who STRING KEY, page STRING, ms INT) WITH (kafka_topic='clicks', format='JSON');"
)
VIEWS = "CREATE STREAM views (page STRING KEY, n INT) WITH (kafka_topic='views', format='JSON');"
PEOPLE = "CREATE TABLE people (id STRING PRIMARY KEY, town STRING, age INT) WITH (kafka_topic='people', format='JSON');"
TOWNS = "CREATE TABLE towns (name STRING PRIMARY KEY, land STRING) WITH (kafka_topic='towns', format='JSON');"


def _record(topic: str, number: int, key: str, value: dict[str, Any] | None) -> dict[str, Any]:
    return {"topic": topic, "key": key, "value": value, "timestamp": number * SECOND}


def _inputs() -> list[dict[str, Any]]:
    """Sixty records over all topics, with updates, deletions and records without a value."""
    names, towns = ["ann", "bob", "cy"], ["Rome", "Bonn"]
    found = []
    for n in range(15):
        name, town = names[n % 3], towns[n // 2 % 2]
        found += [
            _record("people", n, name, None if n % 7 == 6 else {"town": town, "age": n}),
            _record("towns", n, town, None if n == 9 else {"land": f"land {n}"}),
            _record("clicks", n, names[n * 2 % 3], None if n == 5 else {"page": f"p{n % 2}", "ms": n}),
            _record("views", n, f"p{n % 3}", {"n": n}),
        ]
    return found


INPUTS = _inputs()
SOURCES = [CLICKS, VIEWS, PEOPLE, TOWNS]

QUERIES = {
    "a filter and a projection": ["CREATE STREAM o AS SELECT who, ms * 2 AS m FROM clicks WHERE ms > 3;"],
    "another key": ["CREATE STREAM o AS SELECT * FROM clicks PARTITION BY page;"],
    "a table": ["CREATE TABLE o AS SELECT * FROM people WHERE age > 4;"],
    "groups of a stream": ["CREATE TABLE o AS SELECT page, COUNT(*), SUM(ms) FROM clicks GROUP BY page;"],
    "aggregates of some columns": [
        "CREATE TABLE o AS SELECT page, SUM(REDUCE(ARRAY[ms, 1], 0, (s, x) => s + x)), LATEST_BY_OFFSET(who) FROM clicks "
        "GROUP BY page;"
    ],
    "groups of a table": ["CREATE TABLE o AS SELECT town, COUNT(*), SUM(age) FROM people GROUP BY town;"],
    "having": ["CREATE TABLE o AS SELECT town, COUNT(*) FROM people GROUP BY town HAVING COUNT(*) > 1;"],
    "windows": [
        "CREATE TABLE o AS SELECT who, COUNT(*) FROM clicks WINDOW TUMBLING (SIZE 4 SECONDS) GROUP BY who;"
    ],
    "sessions": [
        "CREATE TABLE o AS SELECT who, COUNT(*) FROM clicks WINDOW SESSION (3 SECONDS) GROUP BY who;"
    ],
    "a join of streams": [
        "CREATE STREAM o AS SELECT c.page, n, ms FROM clicks c JOIN views v WITHIN 2 SECONDS ON c.page = v.page;"
    ],
    "a stream with a table": [
        "CREATE STREAM o AS SELECT who, town FROM clicks LEFT JOIN people ON who = id;"
    ],
    "two tables": ["CREATE TABLE o AS SELECT id, land FROM people JOIN towns ON town = name;"],
    "a join, then groups": [
        "CREATE TABLE o AS SELECT town, COUNT(*) FROM clicks JOIN people ON who = id GROUP BY town;"
    ],
    "one query after another": [
        "CREATE STREAM long AS SELECT who, page FROM clicks WHERE ms > 4;",
        "CREATE TABLE o AS SELECT page, COUNT(*) FROM long GROUP BY page;",
    ],
    "two that write one stream": [
        "CREATE STREAM o AS SELECT who, ms FROM clicks WHERE page = 'p1';",
        "INSERT INTO o SELECT page AS who, n AS ms FROM views WHERE n > 9;",
    ],
}

PIPELINES = {name: Pipeline(SOURCES + queries, INPUTS) for name, queries in QUERIES.items()}


def by_key(records: list[dict[str, Any]]) -> dict[str, list[Any]]:
    """Values and times for each topic, key and window, in order: what hosts must agree on."""
    found: dict[str, list[Any]] = {}
    for record in records:
        lane = repr((record["topic"], record["key"], record.get("window")))
        found.setdefault(lane, []).append((record["value"], record["timestamp"]))
    return found
