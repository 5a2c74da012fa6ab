"""A producer on the blocking client: what kafka-console-producer and kafka-producer-perf-test need of one.

Owns the batches in flight. `send` returns at once while there is space; `poll` sends what is ready and takes the
answers that are there; `flush` waits for all. Invariants: with idempotence (KIP-98, the default) batches of a partition
keep their sequence numbers over retries and are sent in order again after a failure; at most
`max.in.flight.requests.per.connection` requests are in flight on a connection; a batch is completed once, with an error
or without. Transactions are begun and ended around flushes.
"""

from __future__ import annotations

import sys
import time
from collections import deque
from functools import partial

from pykafkad import errors
from pykafkad.messages import InitProducerIdRequest, ProduceRequest
from pykafkad.net.client import RETRIABLE, TRANSACTION, Cluster, api_timeouts, check
from pykafkad.tools import settings
from pykafkad.tools.batching import (
    BATCH_OVERHEAD,
    RECORD_OVERHEAD,
    Batch,
    ColumnBatch,
    Sticky,
    partition_of_key,
    pieces,
    size_of,
)
from pykafkad.tools.producer_settings import ProducerSettings
from pykafkad.tools.producer_transaction import Transaction

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from typing import Any

    from pykafkad.hot.records import Columns, Headers
    from pykafkad.net.connection import Connection
    from pykafkad.tools.batching import Done, Row

PRODUCE_BY_NAME = 12  # later versions have topic ids instead of names
SEQUENCES = 2**31
WARN_AFTER_S = 1.0  # a topic that is created by asking for it is there earlier
OUT_OF_ORDER_AFTER_FAILURE = frozenset({errors.OUT_OF_ORDER_SEQUENCE_NUMBER})


class Topic:
    """The state of a topic: the leader of each partition, and the partition for records without a key."""

    __slots__ = ("available", "fetched", "leaders", "missing", "sticky")

    def __init__(self, batch_bytes: int) -> None:
        self.leaders: dict[int, int] = {}
        self.available: list[int] = []
        self.missing = False  # it was waited for in vain
        self.fetched = 0.0
        self.sticky = Sticky(batch_bytes)

    def learn(self, leaders: dict[int, int]) -> None:
        self.leaders = dict(sorted(leaders.items()))
        self.available = [index for index, leader in self.leaders.items() if leader >= 0]
        self.missing = False
        self.fetched = time.monotonic()


class Producer:
    def __init__(self, bootstrap: str, configs: Mapping[str, str]) -> None:
        settings.check_security(configs)
        self.settings = ProducerSettings(configs)
        client_id = configs.get("client.id", "producer-1")
        self._cluster = Cluster(bootstrap, client_id=client_id, **api_timeouts(configs))
        self._topics: dict[str, Topic] = {}
        self._open: dict[tuple[str, int], Batch] = {}
        self._ready: deque[Batch] = deque()
        self._connections: dict[int, Connection] = {}  # leader -> the connection for its batches
        self._under_way: dict[Connection, deque[list[Batch]]] = {}
        self._failed: list[Batch] = []
        self._bytes = 0
        self._producer_id = self._epoch = -1
        self._has_gap = False  # a batch with a sequence number was given up
        self._sequences: dict[tuple[str, int], int] = {}
        self.transaction: Transaction | None = None
        if self.settings.transactional_id is not None:
            self.transaction = Transaction(self._cluster, self.settings.transactional_id)

    # -- sending

    def send(
        self,
        topic: str,
        key: bytes | None,
        value: bytes | None,
        headers: Headers = (),
        *,
        timestamp_ms: int,
        done: Done | None = None,
    ) -> None:
        """Take a record. An error of this record alone is passed to `done`, or raised if there is none."""
        try:
            batch_key, size = self._place(topic, key, value, headers)
        except (errors.KafkaError, OSError) as problem:
            if done is None:
                raise
            done(problem)
            return
        batch = self._open.get(batch_key)
        if batch is not None and batch.size + size > self.settings.batch_bytes:
            self._close(batch_key)
            batch = None
        if batch is None:
            batch = Batch(*batch_key, time.monotonic(), self.settings.delivery_timeout_s)
            self._open[batch_key] = batch
        batch.add((key, value, headers, timestamp_ms), size, done)
        self._bytes += size
        if batch.size >= self.settings.batch_bytes:
            self._close(batch_key)
        if self._ready:
            self.poll()
        while self._bytes > self.settings.buffer_bytes:
            self._wait()

    def send_rows(
        self, name: str, rows: Iterable[Row], done: Callable[[Row, Exception | None], object]
    ) -> None:
        """Take many records for one topic, as `send` takes each: `done` hears of every one."""
        settings, opened, partitions = self.settings, self._open, len(self._topic(name).leaders)
        largest, full = settings.max_request_bytes, settings.batch_bytes
        for row in rows:
            key, value, headers, _ = row
            size = size_of(key, value, headers)
            if key is None or settings.ignores_keys or size > largest:
                self.send(name, key, value, headers, timestamp_ms=row[3], done=partial(done, row))
                continue
            at = name, partition_of_key(key, partitions)
            batch = opened.get(at)
            if batch is None or batch.size + size > full:
                if batch is not None:
                    self._close(at)
                    self.poll()
                while self._bytes > settings.buffer_bytes:
                    self._wait()
                batch = opened[at] = Batch(*at, time.monotonic(), settings.delivery_timeout_s)
            batch.add(row, size, partial(done, row))
            self._bytes += size

    def send_columns(
        self, name: str, columns: Columns, done: Callable[[Row, Exception | None], object]
    ) -> None:
        """Take many records for one topic at once: `done` hears of each batch, by its first record."""
        settings, topic = self.settings, self._topic(name)
        if columns.largest + RECORD_OVERHEAD > settings.max_request_bytes:
            self.send_rows(name, map(columns.row, range(columns.count)), done)
            return
        for partition, rows in columns.spread(0 if settings.ignores_keys else len(topic.leaders)):
            for indexes in pieces(columns, rows, settings.batch_bytes):
                said = partial(done, columns.row(indexes[0]))
                batch = ColumnBatch(
                    name, partition, time.monotonic(), settings.delivery_timeout_s, columns, indexes, said
                )
                size = batch.size - BATCH_OVERHEAD
                if partition < 0:
                    batch.partition = topic.sticky.choose(topic.available, size)
                if (name, batch.partition) in self._open:
                    self._close((name, batch.partition))
                while self._bytes > settings.buffer_bytes:
                    self._wait()
                self._ready.append(batch)
                self._bytes += size
        self.poll()

    def _place(
        self, name: str, key: bytes | None, value: bytes | None, headers: Headers
    ) -> tuple[tuple[str, int], int]:
        size = size_of(key, value, headers)
        if size > self.settings.max_request_bytes:
            raise errors.KafkaError(
                errors.MESSAGE_TOO_LARGE,
                f"The message is {size} bytes when serialized which is larger than "
                f"{self.settings.max_request_bytes}, which is the value of the max.request.size configuration.",
            )
        topic = self._topic(name)
        if key is not None and not self.settings.ignores_keys:
            return (name, partition_of_key(key, len(topic.leaders))), size
        return (name, topic.sticky.choose(topic.available, size)), size

    def _topic(self, name: str) -> Topic:
        """The topic, with at least one leader. Asking for it may create it."""
        topic = self._topics.get(name)
        if topic is None:
            topic = self._topics[name] = Topic(self.settings.batch_bytes)
        if not topic.leaders or time.monotonic() - topic.fetched > self.settings.metadata_max_age_s:
            self._fetch_topic(name, topic)
        return topic

    def _fetch_topic(self, name: str, topic: Topic) -> None:
        """Wait for it as long as max.block.ms says; once that was in vain, look only once for each record."""
        begun = time.monotonic()
        limit_s = 0.0 if topic.missing else self.settings.max_block_s
        warned = topic.missing
        while True:
            code = errors.NETWORK_EXCEPTION
            try:
                code = self._look_up(name, topic)
            except OSError:
                pass
            if code == errors.NONE:
                return
            waited_s = time.monotonic() - begun
            if waited_s > WARN_AFTER_S and not warned and code != errors.NETWORK_EXCEPTION:
                warned = True
                sys.stderr.write(f"WARN waiting for topic {name}: {errors.NAMES[code]}\n")
            if waited_s + self.settings.retry_backoff_s > limit_s:
                topic.missing = True
                waited_ms = int(self.settings.max_block_s * 1000)
                raise errors.KafkaError(
                    errors.REQUEST_TIMED_OUT, f"Topic {name} not present in metadata after {waited_ms} ms."
                )
            time.sleep(self.settings.retry_backoff_s)

    def _look_up(self, name: str, topic: Topic) -> int:
        """Learn the leaders of its partitions. Otherwise the code of what may pass; other errors are raised."""
        (row,) = self._cluster.metadata([name], auto_create=True).topics
        leaders = {entry.partition_index: entry.leader_id for entry in row.partitions}
        if row.error_code and row.error_code not in RETRIABLE:
            raise errors.KafkaError(row.error_code, _topic_fault(row.error_code, name))
        if row.error_code or all(leader < 0 for leader in leaders.values()):
            return row.error_code or errors.LEADER_NOT_AVAILABLE
        topic.learn(leaders)
        return errors.NONE

    def _close(self, key: tuple[str, int]) -> None:
        self._ready.append(self._open.pop(key))

    def _close_old(self) -> None:
        """Batches whose linger time is over are ready too."""
        limit = time.monotonic() - self.settings.linger_s
        for key, batch in list(self._open.items()):
            if batch.created <= limit:
                self._close(key)

    def linger_left_s(self) -> float | None:
        """How long until a batch is old enough; None if there is no batch."""
        if not self._open:
            return None
        oldest = min(batch.created for batch in self._open.values())
        return max(0.0, oldest + self.settings.linger_s - time.monotonic())

    # -- requests and answers

    @property
    def answers_from(self) -> list[int]:
        """Descriptors on which answers will arrive."""
        return [connection.fileno() for connection in self._under_way]

    def poll(self) -> None:
        """Send what is ready, take what has come, wait for nothing."""
        self._close_old()
        self._send_ready()
        for connection in list(self._under_way):
            while connection in self._under_way and connection.has_answer:
                self._take_answer(connection)
        self._send_ready()

    def flush(self) -> None:
        """Wait until all records are completed, with an error or without."""
        for key in list(self._open):
            self._close(key)
        while self._ready or self._under_way or self._failed:
            self._wait()

    def _wait(self) -> None:
        """Wait for the next event: an answer, or the end of a pause before a retry."""
        for key in list(self._open):
            self._close(key)
        self._send_ready()
        if self._under_way:
            self._take_answer(next(iter(self._under_way)))
        elif self._failed:
            time.sleep(self.settings.retry_backoff_s)
            self._requeue()
        elif self._ready:
            time.sleep(self.settings.retry_backoff_s)

    def _send_ready(self) -> None:
        if self._failed and not self._under_way:
            self._requeue()
        if not self._ready or self._failed:
            return  # in order: failed batches come first
        if self._has_gap:
            if self._under_way:
                return
            self._begin_anew()
        if self.settings.is_idempotent and self._producer_id < 0:
            self._initialize(min(batch.deadline for batch in self._ready) - time.monotonic())
        while not self._failed and (found := self._by_leader()):
            for leader, batches in found.items():
                if leader < 0:
                    self._failed += batches
                    continue
                try:
                    self._send_to(leader, batches)
                except errors.KafkaError as problem:
                    self._fail(batches, problem)
                except OSError as problem:
                    self._lose(self._connections.get(leader), problem)
                    self._fail(batches, problem)

    def _by_leader(self) -> dict[int, list[Batch]]:
        """Ready batches by leader, as many as may be sent: one of each partition in a request."""
        found: dict[int, list[Batch]] = {}
        taken: set[tuple[str, int]] = set()
        kept: deque[Batch] = deque()
        full = {
            leader
            for leader, connection in self._connections.items()
            if len(self._under_way.get(connection, ())) >= self.settings.max_in_flight
        }
        sizes: dict[int, int] = {}
        for batch in self._ready:
            key = batch.topic, batch.partition
            leader = self._topics[batch.topic].leaders.get(batch.partition, -1)
            too_large = sizes.get(leader, 0) + batch.size > self.settings.max_request_bytes
            if key in taken or leader in full or (too_large and leader in sizes):
                kept.append(batch)
                taken.add(key)
                continue
            taken.add(key)
            sizes[leader] = sizes.get(leader, 0) + batch.size
            found.setdefault(leader, []).append(batch)
        self._ready = kept
        return found

    def _send_to(self, leader: int, batches: list[Batch]) -> None:
        connection = self._connection(leader)
        if self.transaction is not None:
            self.transaction.add([(batch.topic, batch.partition) for batch in batches])
        by_topic: dict[str, list[Any]] = {}
        for batch in batches:
            self._number(batch)
            data = batch.encode(
                self.settings.codec,
                self.settings.level,
                self._producer_id,
                self._epoch,
                self.transaction is not None,
            )
            by_topic.setdefault(batch.topic, []).append(
                ProduceRequest.PartitionProduceData(index=batch.partition, records=data)
            )
        request = ProduceRequest(
            transactional_id=self.settings.transactional_id,
            acks=self.settings.acks,
            timeout_ms=self.settings.request_timeout_ms,
            topic_data=[
                ProduceRequest.TopicProduceData(name=name, partition_data=rows)
                for name, rows in by_topic.items()
            ],
        )
        deadline = time.monotonic() + self.settings.request_timeout_ms / 1000
        is_answered = self.settings.acks != 0
        connection.send(request, deadline, at_most=self._version(), answered=is_answered)
        if is_answered:
            self._under_way.setdefault(connection, deque()).append(batches)
        else:
            for batch in batches:
                self._finish(batch, None)

    def _connection(self, leader: int) -> Connection:
        """A connection of the producer's own, since requests are in flight on it while others are sent and answered."""
        connection = self._connections.get(leader)
        if connection is None:
            if leader not in self._cluster.brokers:
                self._cluster.metadata([])
            connection = self._connections[leader] = self._cluster.fresh(self._cluster.brokers[leader])
        return connection

    def _lose(self, connection: Connection | None, problem: Exception) -> None:
        """The connection cannot be used any more: what was in flight on it is sent again."""
        if connection is None:
            return
        connection.close()
        others = self._connections.items()
        self._connections = {leader: other for leader, other in others if other is not connection}
        for batches in self._under_way.pop(connection, ()):
            self._fail(batches, problem)

    def _version(self) -> int:
        return PRODUCE_BY_NAME if self.transaction is None else Transaction.PRODUCE_VERSION

    def _number(self, batch: Batch) -> None:
        batch.attempts += 1
        if self._producer_id < 0 or batch.sequence >= 0:
            return
        key = batch.topic, batch.partition
        batch.sequence = self._sequences.get(key, 0)
        self._sequences[key] = (batch.sequence + batch.count) % SEQUENCES

    def _take_answer(self, connection: Connection) -> None:
        sent = self._under_way[connection]
        batches = sent[0]
        try:
            response = connection.receive(time.monotonic() + self.settings.request_timeout_ms / 1000)
        except (OSError, ValueError) as problem:
            self._lose(connection, problem)
            return
        sent.popleft()
        if not sent:
            del self._under_way[connection]
        rows = {
            (topic.name, row.index): row for topic in response.responses for row in topic.partition_responses
        }
        for batch in batches:
            row = rows[batch.topic, batch.partition]
            if row.error_code in (errors.NONE, errors.DUPLICATE_SEQUENCE_NUMBER):
                self._finish(batch, None)
            else:
                self._fail([batch], errors.KafkaError(row.error_code, row.error_message))

    def _fail(self, batches: list[Batch], problem: Exception) -> None:
        """Send the batches again if that may help, else give them up."""
        code = problem.code if isinstance(problem, errors.KafkaError) else errors.NETWORK_EXCEPTION
        now = time.monotonic()
        for batch in batches:
            # a batch behind a failed one is out of order until that one succeeds, or its gap is closed
            waits = code in OUT_OF_ORDER_AFTER_FAILURE and (bool(self._failed) or self._has_gap)
            if code == errors.MESSAGE_TOO_LARGE and batch.count > 1:
                self._has_gap = batch.sequence >= 0
                self._failed += batch.halves()
            elif batch.attempts > self.settings.retries or now > batch.deadline:
                self._finish(batch, _timed_out(batch, problem))
            elif code in RETRIABLE or waits:
                self._failed.append(batch)
            else:
                self._finish(batch, problem)

    def _requeue(self) -> None:
        """Put failed batches in front again, in their order, and look up their leaders."""
        failed, self._failed = self._failed, []
        failed.sort(key=lambda batch: batch.created)
        self._ready.extendleft(reversed(failed))
        for name in {batch.topic for batch in failed}:
            try:
                self._look_up(name, self._topics[name])
            except (OSError, errors.KafkaError):
                pass  # the batches' own delivery time-outs end it

    def _finish(self, batch: Batch, problem: Exception | None) -> None:
        self._bytes -= batch.size - BATCH_OVERHEAD
        self._has_gap = self._has_gap or (problem is not None and batch.sequence >= 0)
        batch.finish(problem)

    # -- idempotence and transactions

    def _begin_anew(self) -> None:
        """If a batch with sequence numbers is given up, they leave a gap, which a new producer id does not have. A
        transaction cannot change its producer id: its later batches fail."""
        self._has_gap = False
        if self.transaction is not None:
            return
        self._producer_id = -1
        self._sequences.clear()
        for batch in self._ready:
            batch.sequence = -1

    def _initialize(self, limit_s: float = float("inf")) -> None:
        """Get a producer id: from any broker, or from the coordinator of the transactional id."""
        transactional_id = self.settings.transactional_id

        def call() -> Any:
            request = InitProducerIdRequest(
                transactional_id=transactional_id,
                transaction_timeout_ms=self.settings.transaction_timeout_ms,
            )
            if transactional_id is None:
                connection = self._cluster.any_broker()
            else:
                connection = self._cluster.coordinator(transactional_id, TRANSACTION)
            response = self._cluster.call(connection, request, at_most=4)
            check(response.error_code)
            return response

        timeout_ms = int(max(0.0, min(self.settings.max_block_s, limit_s)) * 1000)
        response = self._cluster.attempt("initProducerId", call, timeout_ms=timeout_ms)
        self._producer_id, self._epoch = response.producer_id, response.producer_epoch
        if self.transaction is not None:
            self.transaction.begin_as(self._producer_id, self._epoch)

    @property
    def cluster(self) -> Cluster:
        return self._cluster

    def init_transactions(self) -> None:
        self._initialize()

    def commit(self) -> None:
        """Commit the transaction: everything in it becomes visible."""
        self.flush()
        assert self.transaction is not None
        self.transaction.end()

    def abort(self) -> None:
        """Abort the transaction: nobody who reads what is committed sees any of it."""
        self.flush()
        assert self.transaction is not None
        self.transaction.end(committed=False)

    def close(self) -> None:
        self.flush()
        for connection in self._connections.values():
            connection.close()
        self._cluster.close()


def _topic_fault(code: int, name: str) -> str | None:
    if code == errors.INVALID_TOPIC_EXCEPTION:
        return f"Invalid topics: [{name}]"
    if code == errors.TOPIC_AUTHORIZATION_FAILED:
        return f"Not authorized to access topics: [{name}]"
    return None


def _timed_out(batch: Batch, problem: Exception) -> Exception:
    if time.monotonic() <= batch.deadline:
        return problem
    waited_ms = int((time.monotonic() - batch.created) * 1000)
    return errors.KafkaError(
        errors.REQUEST_TIMED_OUT,
        f"Expiring {batch.count} record(s) for {batch.topic}-{batch.partition}:{waited_ms} ms has passed "
        "since batch creation",
    )
