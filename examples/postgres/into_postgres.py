"""What was booked into PostgreSQL's table `balance`, each payment once, until it is stopped.

usage: python into_postgres.py DSN HOST:PORT [--until-idle]
"""

from __future__ import annotations

import argparse
import json
import sys

import psycopg
from confluent_kafka import Consumer, KafkaException, Message, TopicPartition

TOPIC = "payments.booked"
TABLES = """
CREATE TABLE IF NOT EXISTS balance (customer TEXT PRIMARY KEY, cents BIGINT NOT NULL);
CREATE TABLE IF NOT EXISTS progress (
  partition INT, source_partition INT, next_offset BIGINT NOT NULL, source_offset BIGINT NOT NULL,
  PRIMARY KEY (partition, source_partition)
);
"""
ADD = """
INSERT INTO balance VALUES (%s, %s) ON CONFLICT (customer) DO UPDATE SET cents = balance.cents + excluded.cents
"""
NOTE = """
INSERT INTO progress VALUES (%s, %s, %s, %s) ON CONFLICT (partition, source_partition)
DO UPDATE SET next_offset = excluded.next_offset, source_offset = excluded.source_offset
"""
LOCK = 4_711
BATCH, WAIT_S, IDLE_S = 500, 0.2, 3.0

Progress = dict[tuple[int, int], tuple[int, int]]
"""By partition and source partition: the offset to read next, and the last source offset that counts."""


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("dsn")
    parser.add_argument("bootstrap_server")
    parser.add_argument("--until-idle", action="store_true", help="end when nothing has come for a while")
    given = parser.parse_args()
    try:
        with psycopg.connect(given.dsn, autocommit=True) as connection:
            return run(connection, given.bootstrap_server, given.until_idle)
    except KeyboardInterrupt:
        return 0
    except (psycopg.Error, KafkaException, ValueError) as error:
        print(error, file=sys.stderr)
        return 1


def run(connection: psycopg.Connection, bootstrap: str, until_idle: bool) -> int:
    locked = connection.execute("SELECT pg_try_advisory_lock(%s)", (LOCK,)).fetchone()
    if locked != (True,):
        raise ValueError("another writer is at work in this database")
    connection.execute(TABLES)
    progress: Progress = {
        (partition, source): (next_offset, source_offset)
        for partition, source, next_offset, source_offset in connection.execute("SELECT * FROM progress")
    }
    consumer = Consumer(
        {"bootstrap.servers": bootstrap, "group.id": "unused", "isolation.level": "read_committed"}
        | {"enable.auto.commit": False, "auto.offset.reset": "earliest"}
    )
    consumer.assign(starts(consumer, progress))
    idle = 0.0
    while not (until_idle and idle >= IDLE_S):
        messages = consumer.consume(BATCH, WAIT_S)
        idle = 0.0 if messages else idle + WAIT_S
        book(connection, messages, progress)
    return 0


def starts(consumer: Consumer, progress: Progress) -> list[TopicPartition]:
    """Every partition, from where the database is."""
    known = consumer.list_topics(TOPIC, 10).topics[TOPIC]
    if known.error is not None:
        raise KafkaException(known.error)
    read: dict[int, int] = {}
    for (partition, _), (next_offset, _) in progress.items():
        read[partition] = max(next_offset, read.get(partition, 0))
    return [TopicPartition(TOPIC, partition, read.get(partition, 0)) for partition in known.partitions]


def book(connection: psycopg.Connection, messages: list[Message], progress: Progress) -> None:
    """A batch is one transaction: the sums, and how far they go."""
    touched: Progress = {}
    with connection.transaction():
        for message in messages:
            if message.error() is not None:
                raise KafkaException(message.error())
            paid = json.loads(message.value() or b"")
            place = (message.partition() or 0, paid["SOURCE_PARTITION"])
            _, last = touched.get(place) or progress.get(place) or (0, -1)
            if paid["SOURCE_OFFSET"] > last:
                connection.execute(ADD, ((message.key() or b"").decode(), paid["CENTS"]))
            touched[place] = ((message.offset() or 0) + 1, max(last, paid["SOURCE_OFFSET"]))
        for place, reached in touched.items():
            connection.execute(NOTE, (*place, *reached))
    progress.update(touched)


if __name__ == "__main__":
    sys.exit(main())
