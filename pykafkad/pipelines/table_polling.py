"""Rows of a database's table as records: those that are new or changed since the last time.

It is what Kafka Connect's JDBC source does in its timestamp mode. A column says in milliseconds when a row was last
written; a poll takes the rows after the last one's time and before now, the oldest first. So whoever writes a row must
set its time; a row without one is never seen, and neither is a deletion. The rows of one poll are in memory at once.
"""

from __future__ import annotations

import base64
import json
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Protocol

from pykafkad.pipelines.plan.ends import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


class Cursor(Protocol):
    @property
    def description(self) -> Sequence[Sequence[Any]] | Any: ...

    def fetchall(self) -> list[Any]: ...


class Connection(Protocol):
    """What is asked of a connection to a database; sqlite3's is one."""

    def execute(self, sql: str, parameters: Sequence[Any], /) -> Cursor: ...


class TablePolling:
    """`since` is the time of the last row whose record was acknowledged: where the next poll begins."""

    def __init__(
        self, connection: Connection, table: str, key: str, timestamp: str, topic: str, since: int = 0
    ) -> None:
        self._connection, self._table, self._key, self._timestamp = connection, table, key, timestamp
        self._topic = topic
        self.since = since

    def records(self, now_ms: int) -> list[Record]:
        """What has changed; a record's time is its row's. Rows of this very millisecond may get company: they wait."""
        table, timestamp = _quoted(self._table), _quoted(self._timestamp)
        cursor = self._connection.execute(
            f"SELECT * FROM {table} WHERE {table}.{timestamp} > ? AND {table}.{timestamp} < ? "
            f"ORDER BY {table}.{timestamp} ASC",
            (self.since, now_ms),
        )
        names = [column[0] for column in cursor.description]
        if self._key not in names:
            raise ValueError(f"{self._table} has no column {self._key}: {', '.join(names)} are there")
        return [self._record(dict(zip(names, row, strict=True))) for row in cursor.fetchall()]

    def _record(self, row: dict[str, Any]) -> Record:
        key, time = row[self._key], row[self._timestamp]
        if not isinstance(time, int):
            raise ValueError(
                f"{self._table}.{self._timestamp} of {key} is no number of milliseconds: {time!r}"
            )
        value = json.dumps(row, ensure_ascii=False, separators=(",", ":"), default=_text)
        return Record(self._topic, None if key is None else str(key).encode(), value.encode(), time)


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _text(value: bytes) -> str:
    return base64.b64encode(value).decode()


class OffsetFile:
    """How far a poll was, for the next process: written whole beside the old one, which it then replaces."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def read(self) -> int:
        try:
            text = self._path.read_text()
        except FileNotFoundError:
            return 0
        try:
            return int(json.loads(text)["timestamp"])
        except (ValueError, KeyError, TypeError):
            raise ValueError(f"{self._path} is no file of offsets") from None

    def write(self, since: int) -> None:
        beside = self._path.with_name(self._path.name + ".new")
        with beside.open("w") as file:
            json.dump({"timestamp": since}, file)
            file.flush()
            os.fsync(file.fileno())
        beside.replace(self._path)
