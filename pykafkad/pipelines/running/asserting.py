"""ASSERT TOPIC: waits until a topic is there (or gone), with what it must have."""

from __future__ import annotations

import time

from pykafkad.pipelines.answers import Message
from pykafkad.pipelines.errors import StatementError
from pykafkad.pipelines.running.broker import Broker
from pykafkad.pipelines.syntax.ast import AssertTopic, IntegerLiteral

DEFAULT_MS = 1000
PAUSE_S = 0.05


def topic(broker: Broker, statement: AssertTopic) -> Message:
    needed = wanted(statement)
    timeout_ms = statement.timeout.milliseconds if statement.timeout else DEFAULT_MS
    deadline = time.monotonic() + timeout_ms / 1000
    while True:
        problem = _problem(broker, statement, needed)
        if problem is None:
            gone = "" if statement.exists else " does not exist, as it should"
            return Message(f"Topic {statement.topic}{gone or ' exists'}.")
        if time.monotonic() + PAUSE_S > deadline:
            raise StatementError(problem, statement.at)
        time.sleep(PAUSE_S)


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
