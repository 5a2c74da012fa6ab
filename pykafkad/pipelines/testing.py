"""Pipelines tested without a broker: statements and input records in, output records out.

Records are those of ksql-test-runner's files: topic, key, value, timestamp, window, headers, keys and values as the JSON
that stands for them in the topic's format.
"""

from __future__ import annotations

import base64
from collections.abc import Sequence
from typing import Any

from pykafkad.pipelines.analysis.session import Session
from pykafkad.pipelines.analysis.sources import DataSource
from pykafkad.pipelines.catalog import Catalog
from pykafkad.pipelines.errors import StatementError
from pykafkad.pipelines.formats import Format
from pykafkad.pipelines.hosts.local import LocalHost
from pykafkad.pipelines.plan.ends import Record, WindowedKey
from pykafkad.pipelines.syntax.parser import parse_script


def run_case(
    statements: Sequence[str],
    inputs: Sequence[dict[str, Any]],
    properties: dict[str, Any] | None = None,
    host: str = "local",
) -> list[dict[str, Any]]:
    """The records that the statements' queries write for the inputs, in order. StatementError where one is refused."""
    session = Session(Catalog(properties))
    for text in statements:
        for parsed in parse_script(text):
            session.execute(parsed.statement)
    if host != "local":
        raise ValueError(f"unknown host {host!r}: local is there")
    formats = {source.topic: TopicFormats(source) for source in session.catalog.sources.values()}
    loop = LocalHost()
    for meaning in session.meanings.values():
        loop.add(meaning.plan)
    outputs = []
    for given in inputs:
        topic = formats.get(given["topic"])
        if topic is not None:
            outputs += [formats[out.topic].plain(out) for out in loop.feed(topic.record(given))]
    return outputs


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


__all__ = ["StatementError", "run_case"]
