"""A transactional producer over a raw client, by either protocol, which does one step at a time and nothing else.

Owns: its id and epoch, its sequences, and the waiting while a broker loads or still ends the transaction before.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from compat_tests.raw import RawClient
from pykafkad import errors
from pykafkad.hot import records
from pykafkad.messages import (
    AddOffsetsToTxnRequest,
    AddPartitionsToTxnRequest,
    EndTxnRequest,
    FindCoordinatorRequest,
    InitProducerIdRequest,
    ProduceRequest,
    TxnOffsetCommitRequest,
)

TRANSACTION = 1
NOT_READY = {
    errors.COORDINATOR_LOAD_IN_PROGRESS,
    errors.COORDINATOR_NOT_AVAILABLE,
    errors.NOT_COORDINATOR,
    errors.CONCURRENT_TRANSACTIONS,
    errors.NOT_LEADER_OR_FOLLOWER,
    errors.UNKNOWN_TOPIC_OR_PARTITION,
    errors.OPERATION_NOT_ATTEMPTED,
}
READY_SECONDS = 60
TIMEOUT_MS = 600_000


class RawProducer:
    """`new`: by the second part of KIP-890, where partitions are added by being written to, and each transaction has an
    epoch of its own."""

    def __init__(self, client: RawClient, id: str, producer_id: int = -1, *, new: bool = False) -> None:
        self.client = client
        self.id = id
        self.new = new
        self.producer_id, self.epoch = producer_id, 0
        self._sequences: dict[tuple[str, int], int] = {}

    def begin(self) -> RawProducer:
        find = FindCoordinatorRequest(key_type=TRANSACTION, coordinator_keys=[self.id])
        init = InitProducerIdRequest(
            transactional_id=self.id, transaction_timeout_ms=TIMEOUT_MS, producer_id=-1, producer_epoch=-1
        )
        self._ask(find, 4, lambda answer: [answer.coordinators[0].error_code])  # makes the topic, at first
        self._become(self._ask(init, 4, lambda answer: [answer.error_code]))
        return self

    def _become(self, answer: Any) -> None:
        if (answer.producer_id, answer.producer_epoch) != (self.producer_id, self.epoch):
            self.producer_id, self.epoch = answer.producer_id, answer.producer_epoch
            self._sequences.clear()

    def add(self, topic: str, *partitions: int) -> RawProducer:
        row = AddPartitionsToTxnRequest.AddPartitionsToTxnTopic(name=topic, partitions=list(partitions))
        request = AddPartitionsToTxnRequest(
            v3_and_below_transactional_id=self.id,
            v3_and_below_producer_id=self.producer_id,
            v3_and_below_producer_epoch=self.epoch,
            v3_and_below_topics=[row],
        )
        self._ask(
            request,
            3,
            lambda answer: [
                row.partition_error_code
                for topic in answer.results_by_topic_v3_and_below
                for row in topic.results_by_partition
            ],
        )
        return self

    def produce(
        self, topic: str, partition: int, value: bytes = b"v", at_ms: int | None = None
    ) -> RawProducer:
        """A record; the older protocol needs add() before."""
        sequence = self._sequences.get((topic, partition), 0)
        batch = records.build(
            [(b"k", value, [], int(time.time() * 1000) if at_ms is None else at_ms)],
            producer_id=self.producer_id,
            producer_epoch=self.epoch,
            base_sequence=sequence,
            transactional=True,
        )
        row = ProduceRequest.TopicProduceData(
            name=topic, partition_data=[ProduceRequest.PartitionProduceData(index=partition, records=batch)]
        )
        request = ProduceRequest(transactional_id=self.id, acks=-1, timeout_ms=30_000, topic_data=[row])
        self._ask(
            request,
            12 if self.new else 11,
            lambda answer: [answer.responses[0].partition_responses[0].error_code],
        )
        self._sequences[topic, partition] = sequence + 1
        return self

    def commit_offset(self, group_id: str, topic: str, partition: int, offset: int) -> RawProducer:
        own: dict[str, Any] = {
            "transactional_id": self.id,
            "producer_id": self.producer_id,
            "producer_epoch": self.epoch,
            "group_id": group_id,
        }
        if not self.new:
            self._ask(AddOffsetsToTxnRequest(**own), 3, lambda answer: [answer.error_code])
        kind = TxnOffsetCommitRequest
        part = kind.TxnOffsetCommitRequestPartition(partition_index=partition, committed_offset=offset)
        topics = [kind.TxnOffsetCommitRequestTopic(name=topic, partitions=[part])]
        self._ask(
            kind(topics=topics, **own),
            5 if self.new else 4,
            lambda answer: [row.error_code for topic in answer.topics for row in topic.partitions],
        )
        return self

    def end(self, committed: bool) -> None:
        """The second answer comes when the markers are written."""
        request = EndTxnRequest(
            transactional_id=self.id,
            producer_id=self.producer_id,
            producer_epoch=self.epoch,
            committed=committed,
        )
        for _ in range(2):
            answer = self._ask(request, 5 if self.new else 4, lambda answer: [answer.error_code])
        if self.new:
            self._become(answer)

    def _ask(self, request: Any, version: int, codes: Callable[[Any], list[int]]) -> Any:
        """Ask until the coordinator and the partitions are ready; nothing may be refused for another reason."""
        deadline = time.monotonic() + READY_SECONDS
        while True:
            answer = self.client.ask(request, version)
            left = [code for code in codes(answer) if code]
            if not left:
                return answer
            assert NOT_READY.issuperset(left), (request, answer)
            assert time.monotonic() < deadline, (request, answer)
            time.sleep(0.1)
