"""The transactions of one producer: partitions are added before they are written to, then the transaction ends.

Uses versions from before KIP-890's second part, which every broker since 2.5 serves, whatever its transaction.version:
AddPartitionsToTxn 3, AddOffsetsToTxn 3, TxnOffsetCommit 3, Produce 11, EndTxn 4.
"""

from __future__ import annotations

from pykafkad import errors
from pykafkad.messages import (
    AddOffsetsToTxnRequest,
    AddPartitionsToTxnRequest,
    EndTxnRequest,
    TxnOffsetCommitRequest,
)
from pykafkad.net.client import TRANSACTION, Cluster, check
from pykafkad.tools.admin import grouped

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any

    from pykafkad.tools.admin import Partition

WAITING = frozenset(
    {
        errors.CONCURRENT_TRANSACTIONS,
        errors.COORDINATOR_LOAD_IN_PROGRESS,
        errors.COORDINATOR_NOT_AVAILABLE,
        errors.NOT_COORDINATOR,
        errors.UNKNOWN_TOPIC_OR_PARTITION,
    }
)


class Transaction:
    PRODUCE_VERSION = 11
    ADD_VERSION = 3
    OFFSETS_VERSION = 3
    END_VERSION = 4

    def __init__(self, cluster: Cluster, transactional_id: str) -> None:
        self._cluster = cluster
        self._id = transactional_id
        self._producer_id = self._epoch = -1
        self._partitions: set[Partition] = set()
        self._has_offsets = False

    def begin_as(self, producer_id: int, epoch: int) -> None:
        self._producer_id, self._epoch = producer_id, epoch

    def add(self, partitions: Iterable[Partition]) -> None:
        """Add these partitions to the transaction, except for those that were added before."""
        new = [key for key in dict.fromkeys(partitions) if key not in self._partitions]
        if not new:
            return
        request = AddPartitionsToTxnRequest(
            v3_and_below_transactional_id=self._id,
            v3_and_below_producer_id=self._producer_id,
            v3_and_below_producer_epoch=self._epoch,
            v3_and_below_topics=[
                AddPartitionsToTxnRequest.AddPartitionsToTxnTopic(name=name, partitions=indexes)
                for name, indexes in grouped(new).items()
            ],
        )

        def read(response: Any) -> None:
            codes = [
                row.partition_error_code
                for topic in response.results_by_topic_v3_and_below
                for row in topic.results_by_partition
            ]
            # of several codes the one that is the cause: the other partitions were not attempted because of it
            for code in sorted(codes, key=lambda code: code == errors.OPERATION_NOT_ATTEMPTED):
                check(code)

        self._ask("addPartitionsToTxn", request, self.ADD_VERSION, read)
        self._partitions.update(new)

    def add_offsets(self, group_id: str, offsets: dict[Partition, int]) -> None:
        """Commit these offsets of a group without members with the transaction."""
        request = AddOffsetsToTxnRequest(
            transactional_id=self._id,
            producer_id=self._producer_id,
            producer_epoch=self._epoch,
            group_id=group_id,
        )
        self._ask(
            "addOffsetsToTxn", request, self.OFFSETS_VERSION, lambda response: check(response.error_code)
        )
        self._has_offsets = True
        commit = TxnOffsetCommitRequest(
            transactional_id=self._id,
            group_id=group_id,
            producer_id=self._producer_id,
            producer_epoch=self._epoch,
            generation_id=-1,
            topics=[_offsets_of(name, indexes, offsets) for name, indexes in grouped(offsets).items()],
        )

        def call() -> None:
            response = self._cluster.call(
                self._cluster.coordinator(group_id), commit, at_most=self.OFFSETS_VERSION
            )
            for topic in response.topics:
                for row in topic.partitions:
                    check(row.error_code)

        self._cluster.attempt("txnOffsetCommit", call, retriable=WAITING.__contains__)

    def end(self, committed: bool = True) -> None:
        """Commit the transaction, or abort it; if no partition and no offset was added there is nothing to end."""
        if not self._partitions and not self._has_offsets:
            return
        request = EndTxnRequest(
            transactional_id=self._id,
            producer_id=self._producer_id,
            producer_epoch=self._epoch,
            committed=committed,
        )
        self._ask("endTxn", request, self.END_VERSION, lambda response: check(response.error_code))
        self._partitions.clear()
        self._has_offsets = False

    def _ask(self, name: str, request: Any, version: int, read: Any) -> None:
        def call() -> None:
            connection = self._cluster.coordinator(self._id, TRANSACTION)
            read(self._cluster.call(connection, request, at_most=version))

        self._cluster.attempt(name, call, retriable=WAITING.__contains__)


def _offsets_of(
    name: str, indexes: Iterable[int], offsets: dict[Partition, int]
) -> TxnOffsetCommitRequest.TxnOffsetCommitRequestTopic:
    return TxnOffsetCommitRequest.TxnOffsetCommitRequestTopic(
        name=name,
        partitions=[
            TxnOffsetCommitRequest.TxnOffsetCommitRequestPartition(
                partition_index=index, committed_offset=offsets[name, index], committed_leader_epoch=-1
            )
            for index in indexes
        ],
    )
