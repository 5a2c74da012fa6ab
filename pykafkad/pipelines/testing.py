"""Pipelines tested without a broker: statements and input records in, output records out.

Records are those of ksql-test-runner's files: topic, key, value, timestamp, window, headers, keys and values as the JSON
that stands for them in the topic's format.
"""

from __future__ import annotations

import base64
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from pykafkad.pipelines.analysis.session import Session
from pykafkad.pipelines.analysis.sources import DataSource
from pykafkad.pipelines.catalog import Catalog
from pykafkad.pipelines.errors import StatementError
from pykafkad.pipelines.formats import Format
from pykafkad.pipelines.hosts.local import LocalHost
from pykafkad.pipelines.plan.ends import Record, WindowedKey
from pykafkad.pipelines.plan.topology import Plan
from pykafkad.pipelines.running.inserting import inserted
from pykafkad.pipelines.syntax.ast import InsertValues
from pykafkad.pipelines.syntax.parser import parse_script


def run_case(
    statements: Sequence[str],
    inputs: Sequence[dict[str, Any]],
    properties: dict[str, Any] | None = None,
    host: str = "spark",
) -> list[dict[str, Any]]:
    """The records that the statements' queries write for the inputs, in order. StatementError where one is refused.

    `host` is local, a plain loop in this process, or spark, for which one session serves all calls.
    """
    return run_cases([prepared(statements, inputs, properties)], host)[0]


def run_cases(cases: Sequence[Case], host: str = "spark") -> list[list[dict[str, Any]]]:
    """The same of many cases, which in Spark are one job."""
    if host == "local":
        return [case.plain(_in_a_loop(case)) for case in cases]
    if host != "spark":
        raise ValueError(f"unknown host {host!r}: local and spark are there")
    from pykafkad.pipelines.hosts.spark import SparkHost, session

    lanes = {str(number): (case.plans, case.records) for number, case in enumerate(cases)}
    written = SparkHost(session()).run(lanes)
    return [case.plain(written[str(number)]) for number, case in enumerate(cases)]


def _in_a_loop(case: Case) -> list[Record]:
    loop = LocalHost()
    for plan in case.plans:
        loop.add(plan)
    return [written for record in case.records for written in loop.feed(record)]


@dataclass(frozen=True, slots=True)
class Case:
    """Plans and records that a host can run, and how to show what they write."""

    plans: list[Plan]
    records: list[Record]
    formats: dict[str, TopicFormats]

    def plain(self, records: Sequence[Record]) -> list[dict[str, Any]]:
        return [self.formats[record.topic].plain(record) for record in records]


def prepared(
    statements: Sequence[str], inputs: Sequence[dict[str, Any]], properties: dict[str, Any] | None = None
) -> Case:
    """A case that is understood. What INSERT INTO ... VALUES says comes before the inputs.

    An input for a topic that no statement names is left out, as nobody reads it.
    """
    session, first = Session(Catalog(properties)), list[Record]()
    for text in statements:
        for parsed in parse_script(text):
            statement = parsed.statement
            if isinstance(statement, InsertValues):
                first.append(inserted(session.target_of(statement), statement, 0))
            else:
                session.execute(statement)
    formats = {source.topic: TopicFormats(source) for source in session.catalog.sources.values()}
    records = [formats[given["topic"]].record(given) for given in inputs if given["topic"] in formats]
    return Case([meaning.plan for meaning in session.meanings.values()], first + records, formats)


class TopicFormats:
    """A topic's records from what a case's files say, and back."""

    def __init__(self, source: DataSource) -> None:
        self.topic: str = source.topic
        self.key: Format = source.make_key()
        self.value: Format = source.make_value()
        self.window: WindowedKey | None = source.window.on_keys if source.window else None
        self.session = source.window is not None and source.window.size is None

    def record(self, given: dict[str, Any]) -> Record:
        key = self.key.from_plain(given.get("key"))
        window = given.get("window")
        if self.window is not None and window is not None and key is not None:
            key = self.window.join(key, (window["start"], window["end"]))
        headers = tuple((one["KEY"], _bytes(one["VALUE"])) for one in given.get("headers") or ())
        return Record(
            self.topic, key, self.value.from_plain(given.get("value")), given.get("timestamp", 0), headers
        )

    def plain(self, record: Record) -> dict[str, Any]:
        key, out = record.key, dict[str, Any](topic=self.topic)
        if self.window is not None and key is not None:
            key, (start, end) = self.window.split(key)
            out["window"] = {"start": start, "end": end, "type": "session" if self.session else "time"}
        out |= {"key": self.key.to_plain(key), "value": self.value.to_plain(record.value)}
        out["timestamp"] = record.time
        out["headers"] = [{"KEY": name, "VALUE": _text(value)} for name, value in record.headers]
        return out


def _bytes(text: str | None) -> bytes | None:
    return None if text is None else base64.b64decode(text)


def _text(value: bytes | None) -> str | None:
    return None if value is None else base64.b64encode(value).decode()


__all__ = ["Case", "StatementError", "prepared", "run_case", "run_cases"]
