"""ASSERT TOPIC, ASSERT SCHEMA: wait until it is there (or gone), with what it must have."""

from __future__ import annotations

import time
from collections.abc import Callable

from pykafkad.pipelines.answers import Message
from pykafkad.pipelines.errors import StatementError
from pykafkad.pipelines.formats.registry import REGISTRY_URL, Registry, registry_at
from pykafkad.pipelines.running.broker import Broker
from pykafkad.pipelines.syntax.ast import AssertSchema, AssertTopic, IntegerLiteral

DEFAULT_MS = 1000
PAUSE_S = 0.05


def topic(broker: Broker, statement: AssertTopic) -> Message:
    needed = wanted(statement)
    _wait(statement, lambda: _problem(broker, statement, needed))
    return _said(f"Topic {statement.topic}", statement.exists)


def schema(url: str | None, statement: AssertSchema) -> Message:
    if not url:
        raise StatementError(
            f"There is no schema registry to ask: SET '{REGISTRY_URL}' = 'http://...' names one", statement.at
        )
    registry = registry_at(url)
    _wait(statement, lambda: _schema_problem(registry, statement))
    return _said(_named(statement), statement.exists)


def _wait(statement: AssertTopic | AssertSchema, problem: Callable[[], str | None]) -> None:
    """Until there is no problem, for as long as the statement allows."""
    timeout_ms = statement.timeout.milliseconds if statement.timeout else DEFAULT_MS
    deadline = time.monotonic() + timeout_ms / 1000
    while (found := problem()) is not None:
        if time.monotonic() + PAUSE_S > deadline:
            raise StatementError(found, statement.at)
        time.sleep(PAUSE_S)


def _said(what: str, exists: bool) -> Message:
    return Message(f"{what} exists." if exists else f"{what} does not exist, as it should.")


def _named(statement: AssertSchema) -> str:
    subject = f" of subject {statement.subject}" if statement.subject is not None else ""
    return "Schema" + (f" {statement.schema_id}" if statement.schema_id is not None else "") + subject


def _schema_problem(registry: Registry, statement: AssertSchema) -> str | None:
    """Of a subject with an id the newest schema must be the one of that id."""
    found = [
        registry.latest(statement.subject) if statement.subject is not None else None,
        registry.by_id(statement.schema_id) if statement.schema_id is not None else None,
    ]
    if statement.subject is not None and statement.schema_id is not None:
        is_there = found[0] is not None and found[0] == found[1]
    else:
        is_there = any(found)
    if is_there == statement.exists:
        return None
    return f"{_named(statement)} {'exists' if is_there else 'does not exist'}"


def wanted(statement: AssertTopic) -> dict[str, int]:
    wanted = {}
    for one in statement.properties:
        if one.name not in ("PARTITIONS", "REPLICAS"):
            raise StatementError(f"Cannot assert {one.name}: PARTITIONS and REPLICAS can be", one.at)
        if not isinstance(one.value, IntegerLiteral):
            raise StatementError(f"{one.name} is a number", one.at)
        wanted[one.name] = one.value.value
    return wanted


def _problem(broker: Broker, statement: AssertTopic, wanted: dict[str, int]) -> str | None:
    found = broker.topic(statement.topic)
    if (found is not None) != statement.exists:
        return f"Topic {statement.topic} {'exists' if found else 'does not exist'}"
    if found is None:
        return None
    has = {"PARTITIONS": len(found.partitions), "REPLICAS": len(found.partitions[0].replicas)}
    for name, count in wanted.items():
        if has[name] != count:
            return f"Mismatched configuration for topic {statement.topic}: {name} is {has[name]}, not {count}"
    return None
