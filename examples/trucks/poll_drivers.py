"""Drivers from an SQLite database into the topic `drivers`: those that are new or changed, until it is stopped.

usage: python poll_drivers.py DATABASE HOST:PORT [--offsets FILE] [--once]
"""

from __future__ import annotations

import argparse
import sqlite3
import sys
import time
from pathlib import Path

from pykafkad.errors import KafkaError
from pykafkad.pipelines.running.broker import Broker
from pykafkad.pipelines.table_polling import OffsetFile, TablePolling

PERIOD_S = 1.0
TOPIC, PARTITIONS = "drivers", 4
TABLE = """
CREATE TABLE IF NOT EXISTS driver (
  id INTEGER PRIMARY KEY, first_name TEXT, last_name TEXT, updated_ms INTEGER NOT NULL
)
"""


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("database")
    parser.add_argument("bootstrap_server")
    parser.add_argument("--offsets", type=Path, default=Path("drivers.offset"), help="keeps how far it is")
    parser.add_argument("--once", action="store_true", help="one poll, and end")
    given = parser.parse_args()
    try:
        run(given.database, Broker(given.bootstrap_server), OffsetFile(given.offsets), given.once)
    except KeyboardInterrupt:
        return 0
    except (OSError, KafkaError, ValueError, sqlite3.Error) as error:
        print(error, file=sys.stderr)
        return 1
    return 0


def run(database: str, broker: Broker, offsets: OffsetFile, once: bool) -> None:
    connection = sqlite3.connect(database)
    connection.execute(TABLE)
    if broker.topic(TOPIC) is None:
        broker.create(TOPIC, PARTITIONS, None, {"cleanup.policy": "compact"})
    polling = TablePolling(connection, "driver", "id", "updated_ms", TOPIC, offsets.read())
    while True:
        poll(polling, broker, offsets)
        if once:
            return
        time.sleep(PERIOD_S)


def poll(polling: TablePolling, broker: Broker, offsets: OffsetFile) -> None:
    """How far it is counts only when the brokers have everything: what a broken poll had sent is sent again."""
    records, refused = polling.records(time.time_ns() // 1_000_000), list[Exception]()
    for record in records:
        broker.send(record, lambda error: refused.append(error) if error is not None else None)
    broker.flush()
    if refused:
        raise refused[0]
    if records:
        polling.since = records[-1].time
        offsets.write(polling.since)
        print(f"{len(records)} drivers", flush=True)


if __name__ == "__main__":
    sys.exit(main())
