"""A directory goes from one program to the other with transactions open, prepared and ended, by both protocols.

A transaction that is prepared is made from one that has ended: the directory is that of a killed program, and its last
batches are taken away, which are the end marker in the partition, and in `__transaction_state` that all markers are
written. That is what a crash leaves in between.

Kafka loses some of these: a transaction that it finds prepared before it knows who leads the partition is taken for
complete, as if the partition had been deleted, and hangs there (TransactionMarkerChannelManager). Where that happens the
missing marker is written as an administrator would do it.
"""

from __future__ import annotations

import itertools
import time
from pathlib import Path
from typing import Any

import pytest

from compat_tests.exchange.home import FEW_PARTITIONS, KAFKA, PYKAFKAD, READY_SECONDS, Home
from compat_tests.exchange.members import read_committed
from compat_tests.raw_producer import RawProducer
from pykafkad.coordinator.runtime.runtime import partition_for
from pykafkad.hot import records
from pykafkad.messages import (
    CreateTopicsRequest,
    DescribeProducersRequest,
    DescribeTransactionsRequest,
    OffsetFetchRequest,
    WriteTxnMarkersRequest,
)
from pykafkad.pure.transactions.records import decode
from pykafkad.pure.transactions.transaction import COMPLETE_ABORT, COMPLETE_COMMIT

STATE_PARTITIONS = 50
OPEN, PREPARED, ENDED = "open", "prepared", "ended"
CONFIG = {"transaction.state.log.num.partitions": str(STATE_PARTITIONS)}


class Book:
    """A producer that writes into a topic of its own, of that name, and how its transactions are to stand at the end of
    a turn."""

    def __init__(self, stands: str, committed: bool, new: bool, taken: set[int]) -> None:
        self.stands = stands
        self.committed = committed
        stem = f"{stands}-{'commit' if committed else 'abort'}-{'new' if new else 'old'}"
        names = (f"{stem}-{number}" for number in itertools.count())
        self.name = next(name for name in names if partition_for(name, STATE_PARTITIONS) not in taken)
        self.state_partition = partition_for(self.name, STATE_PARTITIONS)
        taken.add(self.state_partition)
        self.producer = RawProducer(None, self.name, new=new)  # type: ignore[arg-type]
        self.values: list[bytes] = []  # committed
        self.offset = -1  # committed for the group of that name
        self.under_way: list[bytes] = []

    def write(self, what: str) -> None:
        value = f"{what} of {self.name}".encode()
        if not self.producer.new and not self.under_way:
            self.producer.add(self.name, 0)
        self.producer.produce(self.name, 0, value)
        self.under_way.append(value)
        offset = len(self.values) + len(self.under_way)
        self.producer.commit_offset(self.name, self.name, 0, offset)

    def end(self) -> None:
        self.producer.end(self.committed)
        self.ended()

    def ended(self) -> None:
        if self.committed:
            self.offset = len(self.values) + len(self.under_way)
            self.values += self.under_way
        self.under_way = []


class Library:
    def __init__(self, home: Home) -> None:
        home.kafka_config.update(CONFIG)
        home.pykafkad_config.update(CONFIG)
        self.home = home
        self.turns = 0
        taken: set[int] = set()
        self.books = [
            Book(stands, committed, new, taken)
            for stands in (OPEN, PREPARED, ENDED)
            for committed in (True, False)
            for new in (False, True)
        ]

    def turn(self, side: str, *, kill: bool) -> None:
        client = self.home.run(side)
        if not self.turns:
            self.create()
        self.turns += 1
        for book in self.books:
            book.producer.client = client
        self.check()
        for book in self.books:
            if book.under_way:
                book.write(f"turn {self.turns}, before the end")
                book.end()
        self.check()
        for book in self.books:
            book.write(f"turn {self.turns}")
            if book.stands == ENDED or (book.stands == PREPARED and kill):
                book.end()
        self.check()
        self.home.end(kill=kill)
        if kill:
            for book in self.books:
                if book.stands == PREPARED:
                    self.prepare(book)

    def create(self) -> None:
        kind = CreateTopicsRequest
        topics = [
            kind.CreatableTopic(name=book.name, num_partitions=1, replication_factor=1) for book in self.books
        ]
        answer = self.home.client.ask(kind(topics=topics, timeout_ms=30_000), 7)
        assert {row.error_code for row in answer.topics} == {0}
        for book in self.books:
            book.producer.client = self.home.client
            book.producer.begin()

    def prepare(self, book: Book) -> None:
        """Take away that it is complete, and its marker."""
        state = cut(self.home.data / f"__transaction_state-{book.state_partition}")
        (record,) = records.batch_records(state)
        name, transaction = decode(record.key, record.value)
        assert name == book.name and transaction is not None
        assert transaction.state == (COMPLETE_COMMIT if book.committed else COMPLETE_ABORT)
        (marker,) = records.scan(cut(self.home.data / f"{book.name}-0"))
        assert marker.is_control

    # -- comparisons

    def check(self) -> None:
        described = self.described()
        if self.home.side == KAFKA:
            self.mend()
        for book in self.books:
            row = described[book.name]
            if book.under_way:
                assert row.transaction_state == "Ongoing"
                assert (book.name, [0]) in [(topic.topic, topic.partitions) for topic in row.topics]
                assert "__consumer_offsets" in [topic.topic for topic in row.topics]
            elif self.turns > 1:
                assert row.transaction_state == ("CompleteCommit" if book.committed else "CompleteAbort")
        found = read_committed(self.home.bootstrap, *[book.name for book in self.books])
        assert found == {book.name: book.values for book in self.books}
        for book in self.books:
            assert self.offset(book.name) == (book.offset, bool(book.under_way)), book.name

    def mend(self) -> None:
        """Write the end markers that Kafka has lost."""
        offsets = int(FEW_PARTITIONS["offsets.topic.num.partitions"])
        for book in self.books:
            if book.stands == PREPARED and not book.under_way:
                for topic, index in (
                    (book.name, 0),
                    ("__consumer_offsets", partition_for(book.name, offsets)),
                ):
                    self.mark_if_open(book, topic, index)

    def mark_if_open(self, book: Book, topic: str, index: int) -> None:
        kind = DescribeProducersRequest
        asked = kind(topics=[kind.TopicRequest(name=topic, partition_indexes=[index])])
        for row in self.home.client.ask(asked, 0).topics[0].partitions[0].active_producers:
            if row.producer_id == book.producer.producer_id and row.current_txn_start_offset >= 0:
                written = WriteTxnMarkersRequest
                marker = written.WritableTxnMarker(
                    producer_id=row.producer_id,
                    producer_epoch=row.producer_epoch,
                    coordinator_epoch=max(0, row.coordinator_epoch),
                    transaction_result=book.committed,
                    topics=[written.WritableTxnMarkerTopic(name=topic, partition_indexes=[index])],
                )
                answer = self.home.client.ask(written(markers=[marker]), 1)
                assert answer.markers[0].topics[0].partitions[0].error_code == 0

    def described(self) -> dict[str, Any]:
        """Once the markers of what is prepared are written."""
        request = DescribeTransactionsRequest(transactional_ids=[book.name for book in self.books])
        deadline = time.monotonic() + READY_SECONDS
        while True:
            rows = self.home.client.ask(request, 0).transaction_states
            if not any(row.error_code or row.transaction_state.startswith("Prepare") for row in rows):
                return {row.transactional_id: row for row in rows}
            assert time.monotonic() < deadline, rows
            time.sleep(0.05)

    def offset(self, group_id: str) -> tuple[int, bool]:
        """What is committed, and whether a transaction may change it."""
        kind = OffsetFetchRequest
        self.home.wait_for_coordinator(group_id)
        topics = [kind.OffsetFetchRequestTopics(name=group_id, partition_indexes=[0])]
        group = kind.OffsetFetchRequestGroup(group_id=group_id, topics=topics)
        deadline = time.monotonic() + READY_SECONDS
        while True:
            groups = [
                self.home.client.ask(kind(groups=[group], require_stable=stable), 8).groups[0]
                for stable in (False, True)
            ]
            if not any(one.error_code for one in groups):
                plain, stable = (one.topics[0].partitions[0] for one in groups)
                return plain.committed_offset, bool(stable.error_code)
            assert time.monotonic() < deadline, groups
            time.sleep(0.05)


def cut(partition: Path) -> bytes:
    """Take the last batch of the log away."""
    log = max(partition.glob("*.log"))
    data = log.read_bytes()
    last = records.scan(data)[-1]
    log.write_bytes(data[: last.position])
    return data[last.position :]


@pytest.fixture
def library(home: Home) -> Library:
    return Library(home)


@pytest.mark.parametrize("first", [PYKAFKAD, KAFKA])
def test_transactions_go_on_and_end_with_the_other_program(library: Library, first: str) -> None:
    second = KAFKA if first == PYKAFKAD else PYKAFKAD
    library.turn(first, kill=True)
    library.turn(second, kill=False)
    library.home.run(first)
    library.check()
