"""What becomes of records that a query leaves out, as `SET` says: said, noted in a topic's log, or kept as they were.

An entry of the log is one of ksqlDB's processing log, in JSON: a deserializationError where a record could not be read, a
serializationError where what followed from it could not be written, a recordProcessingError where an expression is null
because it failed. A dead letter is the record itself, with the headers that Kafka Streams gives it (KIP-1034).
"""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator, Mapping
from dataclasses import fields, is_dataclass
from typing import NamedTuple

from pykafkad.pipelines.expressions.compiling import Compiled
from pykafkad.pipelines.expressions.texts import utf8
from pykafkad.pipelines.formats import BadRecord
from pykafkad.pipelines.functions.aggregating import Aggregate
from pykafkad.pipelines.plan.ends import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

LOG, ROWS_INCLUDED = "processing.log", "processing.log.rows.include"
DEAD_LETTERS = "errors.dead.letter.queue.topic.name"
STDERR, NONE = "stderr", "none"
HEADER = "__streams.errors."
DESERIALIZATION, PROCESSING, _PRODUCTION, SERIALIZATION = range(4)
"""Types of the log's messages."""


class BadRecords(NamedTuple):
    log: str = STDERR
    """stderr, none, or the topic of the log."""
    dead_letters: str = ""
    """The topic for the records as they were; "" if there is none."""
    rows_included: bool = False
    """Whether the log has the records."""

    @classmethod
    def of(cls, properties: Mapping[str, Any]) -> BadRecords:
        log = str(properties.get(LOG, STDERR))
        return cls(
            log.lower() if log.lower() in (STDERR, NONE) else log,
            str(properties.get(DEAD_LETTERS, "")),
            str(properties.get(ROWS_INCLUDED, "")).lower() == "true",
        )

    def for_a_person(self) -> BadRecords:
        """Of a query that somebody looks at: it writes nothing."""
        return BadRecords(self.log if self.log_topic is None else STDERR)

    @property
    def is_said(self) -> bool:
        return self.log == STDERR

    @property
    def log_topic(self) -> str | None:
        return None if self.log in (STDERR, NONE) else self.log

    @property
    def topics(self) -> dict[str, str]:
        """Those that are written, by the properties that name them."""
        found = {LOG: self.log_topic, DEAD_LETTERS: self.dead_letters}
        return {name: topic for name, topic in found.items() if topic}

    def left_out(self, query_id: str, record: Record, error: BadRecord, now_ms: int) -> list[Record]:
        """What is written of a record that was left out."""
        found = []
        if self.dead_letters:
            found.append(dead_letter(self.dead_letters, record, error))
        if self.log_topic is not None:
            found.append(self._entry(query_id, _what_failed(record, error, self.rows_included), now_ms))
        return found

    def nulled(self, query_id: str, record: Record | None, reason: str, now_ms: int) -> Record:
        """The log's entry of an expression that failed and is null."""
        included = self.rows_included and record is not None
        said: dict[str, Any] = {
            "errorMessage": reason,
            "record": _shown(record) if included else None,
            "cause": [],
        }
        return self._entry(query_id, (PROCESSING, "recordProcessingError", said), now_ms)

    def _entry(self, query_id: str, message: tuple[int, str, dict[str, Any]], now_ms: int) -> Record:
        number, kind, said = message
        entry = {
            "level": "ERROR",
            "logger": f"processing.{query_id}.{LOGGERS[number]}",
            "time": now_ms,
            "message": {"type": number, kind: said},
        }
        assert self.log_topic is not None
        return Record(self.log_topic, None, utf8(json.dumps(entry, ensure_ascii=False)), now_ms)


SAID_ONLY = BadRecords()

LOGGERS = {DESERIALIZATION: "deserializer", PROCESSING: "processor", SERIALIZATION: "serializer"}


def _what_failed(record: Record, error: BadRecord, rows_included: bool) -> tuple[int, str, dict[str, Any]]:
    common = {"target": error.target, "errorMessage": str(error), "cause": [], "topic": record.topic}
    if error.written_to is None:
        part = record.key if error.target == "key" else record.value
        return DESERIALIZATION, "deserializationError", {**common, "recordB64": _base64(part, rows_included)}
    said = {**common, "topic": error.written_to, "record": _shown(record) if rows_included else None}
    return SERIALIZATION, "serializationError", said


def _base64(data: bytes | None, included: bool) -> str | None:
    return base64.b64encode(data).decode() if included and data is not None else None


def _shown(record: Record | None) -> str | None:
    """The record that was read, with key and value in base 64."""
    if record is None:
        return None
    facts = {"topic": record.topic, "partition": record.partition, "offset": record.offset}
    return json.dumps({**facts, "key": _base64(record.key, True), "value": _base64(record.value, True)})


def dead_letter(topic: str, record: Record, error: BadRecord) -> Record:
    """The record with its own headers and what was wrong with it."""
    facts = {
        "exception": f"{type(error).__name__}: {error}",
        "message": str(error),
        "topic": record.topic,
        "partition": str(record.partition),
        "offset": str(record.offset),
    }
    headers = tuple((HEADER + name, utf8(value)) for name, value in facts.items())
    return Record(topic, record.key, record.value, record.time, (*record.headers, *headers))


def expressions_of(part: Any) -> Iterator[Compiled]:
    """Every expression of a plan, or of a part of one."""
    if isinstance(part, Compiled):
        yield part
    elif isinstance(part, Aggregate):
        yield from part.arguments
    elif is_dataclass(part):
        for one in fields(part):
            yield from expressions_of(getattr(part, one.name))
    elif isinstance(part, tuple | list):
        for item in part:
            yield from expressions_of(item)
    elif isinstance(part, dict):
        yield from expressions_of(list(part.values()))
