"""What a query in Spark writes: a batch's records of one of Spark's partitions, each batch once.

Exactly once stands on transactions: the records of a batch and the number of the next batch, an offset of a group that
has no members, are committed together, by a transactional id of the query and the partition. Who begins with that id
ends and fences whoever had it before; then the group's offset says which batch is the next, and a batch that Spark
repeats is left out. It is atomic for each partition, and Spark must repeat a batch as it was: the same rows in the same
partition, which its checkpoints see to.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from itertools import chain

from pykafkad.errors import KafkaError
from pykafkad.hot.records import Columns
from pykafkad.net.client import ClientError
from pykafkad.tools import admin_groups
from pykafkad.tools.batching import Row
from pykafkad.tools.producer import Producer

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import TypeAlias

TRANSACTION_TIMEOUT_MS = 900_000
BATCH_BYTES = 256 << 10

Chunk: TypeAlias = tuple[str, list[Row] | Columns]
"""Records for one topic."""


@dataclass(frozen=True, slots=True)
class BatchSink:
    name: str
    """The query's, by which it finds again what it has written."""
    topic: str
    bootstrap: str
    configs: Mapping[str, str] = field(default_factory=dict)
    exactly_once: bool = False

    def write(self, partition: int, batch: int, chunks: Iterator[Chunk]) -> int:
        """How many records were written: none of a batch that was written before."""
        first = next(chunks, None)
        if first is None:
            return 0
        identity = f"{self.name}-{partition}"
        producer = Producer(self.bootstrap, self._settings(identity))
        try:
            if self.exactly_once:
                producer.init_transactions()
                if batch < self._next_batch(producer, identity):
                    return 0
            count = _sent(producer, chain([first], chunks))
            if self.exactly_once and count:
                assert producer.transaction is not None
                producer.transaction.add_offsets(identity, {(self.topic, 0): batch + 1})
                producer.commit()
            return count
        except Exception:
            if self.exactly_once:
                _abandon(producer)
            raise
        finally:
            producer.close()

    def _settings(self, identity: str) -> dict[str, str]:
        settings = {"acks": "all", "linger.ms": "5", "batch.size": str(BATCH_BYTES), **self.configs}
        if self.exactly_once:
            settings |= {
                "transactional.id": identity,
                "transaction.timeout.ms": str(TRANSACTION_TIMEOUT_MS),
            }
        return settings

    def _next_batch(self, producer: Producer, group: str) -> int:
        marker = self.topic, 0
        found = admin_groups.committed_offsets(producer.cluster, group, [marker])
        return found[marker].offset if marker in found else 0


def _abandon(producer: Producer) -> None:
    """Ends the transaction of a batch that has failed: open, it would keep its partitions' readers waiting. What cannot
    be ended (by another now, or for want of a broker) the coordinator ends, at the latest when its time is up."""
    try:
        producer.abort()
    except (KafkaError, ClientError, OSError):
        return


def _sent(producer: Producer, chunks: Iterable[Chunk]) -> int:
    """Sends all and waits for them; the first that is refused is raised."""
    refused: list[Exception] = []

    def done(topic: str, row: Row, error: Exception | None) -> None:
        if error is not None:
            error.add_note(f"the record of key {row[0]!r} and time {row[3]} for {topic}")
            refused.append(error)

    count = 0
    for topic, rows in chunks:
        if refused:
            break
        if isinstance(rows, Columns):
            producer.send_columns(topic, rows, partial(done, topic))
            count += rows.count
        else:
            producer.send_rows(topic, rows, partial(done, topic))
            count += len(rows)
    producer.flush()
    if refused:
        raise refused[0]
    return count
