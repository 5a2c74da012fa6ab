"""A producer with a transactional id at both brokers, each of which gave it an id of its own."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

from compat_tests.differential.pair import Each, Pair, Side
from compat_tests.differential.requests import batch, list_offsets, produce
from pykafkad.messages import (
    AddOffsetsToTxnRequest,
    AddPartitionsToTxnRequest,
    EndTxnRequest,
    FindCoordinatorRequest,
    InitProducerIdRequest,
    TxnOffsetCommitRequest,
)

READY_SECONDS = 60
CONCURRENT_TRANSACTIONS = 51
TRANSACTIONS = 1  # the type of a coordinator's key


class Producer:
    def __init__(self, pair: Pair, stem: str = "producer") -> None:
        self.pair = pair
        self.name = pair.new_name(stem)
        self.given: dict[str, tuple[int, int]] = {}  # id and epoch, by the side's name
        for side in pair.sides:
            self._init(side)

    def _init(self, side: Side) -> None:
        deadline = time.monotonic() + READY_SECONDS
        while True:
            found = side.demand(
                FindCoordinatorRequest(key_type=TRANSACTIONS, coordinator_keys=[self.name]), 4
            )
            request = InitProducerIdRequest(transactional_id=self.name, transaction_timeout_ms=60_000)
            if not found.coordinators[0].error_code:
                answer = side.demand(request, 4)
                if not answer.error_code:
                    self.given[side.name] = answer.producer_id, answer.producer_epoch
                    return
            assert time.monotonic() < deadline, f"{side.name} gives {self.name} no producer id"
            time.sleep(0.05)

    def _of(self, side: Side, epoch: int | None) -> dict[str, Any]:
        producer_id, given = self.given[side.name]
        return {"producer_id": producer_id, "producer_epoch": given if epoch is None else epoch}

    # -- requests

    def produce(
        self,
        topic: str,
        *indexes: int,
        sequence: int = 0,
        epoch: int | None = None,
        name: str | None = None,
        **fields: Any,
    ) -> Each:
        """A batch of the transaction in each of these partitions (0)."""

        def build(side: Side) -> Any:
            who = self._of(side, epoch)
            data = batch(b"x", b"y", base_sequence=sequence, transactional=True, **who)
            parts = dict.fromkeys(indexes or (0,), data)
            return produce(topic, parts, transactional_id=self.name if name is None else name, **fields)(side)

        return build

    def add(self, topic: str, *indexes: int) -> Each:
        def build(side: Side) -> Any:
            kind = AddPartitionsToTxnRequest
            producer_id, epoch = self.given[side.name]
            return kind(
                v3_and_below_transactional_id=self.name,
                v3_and_below_producer_id=producer_id,
                v3_and_below_producer_epoch=epoch,
                v3_and_below_topics=[
                    kind.AddPartitionsToTxnTopic(name=topic, partitions=list(indexes or (0,)))
                ],
            )

        return build

    def add_offsets(self, group_id: str) -> Each:
        return lambda side: AddOffsetsToTxnRequest(
            transactional_id=self.name, group_id=group_id, **self._of(side, None)
        )

    def commit(
        self, group_id: str, topic: str, *rows: Sequence[Any], epoch: int | None = None, **fields: Any
    ) -> Each:
        def build(side: Side) -> Any:
            kind = TxnOffsetCommitRequest
            parts = [
                kind.TxnOffsetCommitRequestPartition(
                    partition_index=index, committed_offset=offset, committed_metadata="m"
                )
                for index, offset in rows
            ]
            topics = [kind.TxnOffsetCommitRequestTopic(name=topic, partitions=parts)]
            given = {"transactional_id": self.name, **self._of(side, epoch), **fields}
            return kind(group_id=group_id, topics=topics, **given)

        return build

    # -- steps

    def begin(self, topic: str, *indexes: int) -> None:
        """As older clients do."""
        self.settled(self.add(topic, *indexes), 3)

    def end(self, topic: str, committed: bool = True, version: int = 4) -> None:
        """End the transaction, and wait until its marker is in the topic's first partition. From version 5 on each end
        gives a new epoch."""
        for side in self.pair.sides:
            request = EndTxnRequest(transactional_id=self.name, committed=committed, **self._of(side, None))
            answer = side.demand(request, version)
            assert not answer.error_code, f"{side.name} does not end the transaction: {answer}"
            if version >= 5:
                self.given[side.name] = answer.producer_id, answer.producer_epoch
            wait_until_stable(side, topic)

    def settled(self, request: Each, version: int) -> None:
        """The same answer of both, once Kafka's coordinator has ended the transaction before."""
        deadline = time.monotonic() + READY_SECONDS
        for side in self.pair.sides:
            while is_concurrent(side.demand(request(side), version)):
                assert time.monotonic() < deadline, f"{side.name} never ends a transaction"
                time.sleep(0.02)
        self.pair.same(request, version)


def is_concurrent(answer: Any) -> bool:
    rows = [row for topic in answer.results_by_topic_v3_and_below for row in topic.results_by_partition]
    return any(row.partition_error_code == CONCURRENT_TRANSACTIONS for row in rows)


def wait_until_stable(side: Side, topic: str) -> None:
    deadline = time.monotonic() + READY_SECONDS
    while True:
        ends = [
            side.demand(list_offsets(topic, (0, -1), isolation_level=level), 7).topics[0].partitions[0].offset
            for level in (0, 1)
        ]
        if ends[0] == ends[1]:
            return
        assert time.monotonic() < deadline, f"{side.name} writes no marker into {topic}"
        time.sleep(0.02)
