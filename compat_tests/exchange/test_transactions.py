"""Transactions in a directory that goes from one program to the other: done, open, and prepared, committed and aborted.

What is prepared no client can leave behind at will, so the record that says so is appended to `__transaction_state` while
nobody runs. Each transaction writes to a partition of its own. The next program completes what is prepared, keeps what is
open for its producer to end, and goes on with the epochs.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from compat_tests.exchange.home import KAFKA, PYKAFKAD, READY_SECONDS, Home
from pykafkad import errors
from pykafkad.coordinator.runtime.runtime import partition_for
from pykafkad.hot import records
from pykafkad.messages import (
    AddPartitionsToTxnRequest,
    CreateTopicsRequest,
    EndTxnRequest,
    FetchRequest,
    FindCoordinatorRequest,
    InitProducerIdRequest,
    ProduceRequest,
)
from pykafkad.pure.transactions.records import decode, encode_key, encode_value
from pykafkad.pure.transactions.transaction import PREPARE_ABORT, PREPARE_COMMIT

Producer = tuple[int, int]  # its id and epoch

TOPIC = "transactions"
STATE = "__transaction_state"
STATE_PARTITIONS = 2
# What becomes of each: ended by its producer before or after the change of programs, or prepared in between. Its name
# ends with the transaction version of the producer.
VERSIONS = {"0": 4, "2": 5}  # of EndTxn
BEFORE = {f"{name} {each}": name == "committed" for name in ("committed", "aborted") for each in VERSIONS}
BETWEEN = {
    f"{name} {each}": PREPARE_COMMIT if name == "to commit" else PREPARE_ABORT
    for name in ("to commit", "to abort")
    for each in VERSIONS
}
AFTER = {f"{name} {each}": name == "open" for name in ("open", "unwanted") for each in VERSIONS}
NAMES = [*BEFORE, *BETWEEN, *AFTER]
SHOWN = {name for name in NAMES if name.startswith(("committed", "to commit", "open"))}
RETRIABLE = {
    errors.COORDINATOR_LOAD_IN_PROGRESS,
    errors.COORDINATOR_NOT_AVAILABLE,
    errors.NOT_COORDINATOR,
    errors.CONCURRENT_TRANSACTIONS,
    errors.UNKNOWN_TOPIC_OR_PARTITION,
    errors.NOT_LEADER_OR_FOLLOWER,
}


class Sides:
    """Requests to whichever program runs."""

    def __init__(self, home: Home) -> None:
        self.home = home

    def until_ready(self, request: Any, version: int, code: Callable[[Any], int]) -> Any:
        deadline = time.monotonic() + READY_SECONDS
        while code(answer := self.home.client.ask(request, version)) in RETRIABLE:
            assert time.monotonic() < deadline, answer
            time.sleep(0.02)
        assert code(answer) == errors.NONE, answer
        return answer

    def create(self) -> None:
        kind = CreateTopicsRequest
        topic = kind.CreatableTopic(name=TOPIC, num_partitions=len(NAMES), replication_factor=1)
        self.until_ready(
            kind(timeout_ms=30_000, topics=[topic]), 5, lambda answer: answer.topics[0].error_code
        )

    def find(self, name: str) -> None:
        asked = FindCoordinatorRequest(key_type=1, coordinator_keys=[name])
        self.until_ready(asked, 4, lambda answer: answer.coordinators[0].error_code)

    def init(self, name: str) -> Producer:
        self.find(name)
        asked = InitProducerIdRequest(transactional_id=name, transaction_timeout_ms=600_000)
        answer = self.until_ready(asked, 4, lambda answer: answer.error_code)
        return answer.producer_id, answer.producer_epoch

    def write(self, name: str, producer: Producer) -> None:
        index = NAMES.index(name)
        topic = AddPartitionsToTxnRequest.AddPartitionsToTxnTopic(name=TOPIC, partitions=[index])
        asked = AddPartitionsToTxnRequest(
            v3_and_below_transactional_id=name,
            v3_and_below_producer_id=producer[0],
            v3_and_below_producer_epoch=producer[1],
            v3_and_below_topics=[topic],
        )
        self.until_ready(asked, 3, added)
        kind = ProduceRequest
        data = records.build(
            [(None, name.encode(), [], int(time.time() * 1000))],
            producer_id=producer[0],
            producer_epoch=producer[1],
            base_sequence=0,
            transactional=True,
        )
        item = kind.PartitionProduceData(index=index, records=data)
        rows = [kind.TopicProduceData(name=TOPIC, partition_data=[item])]
        request = kind(transactional_id=name, acks=-1, timeout_ms=30_000, topic_data=rows)
        self.until_ready(request, 9, lambda answer: answer.responses[0].partition_responses[0].error_code)

    def end(self, name: str, producer: Producer, committed: bool) -> None:
        producer_id, epoch = producer
        asked = EndTxnRequest(
            transactional_id=name, producer_id=producer_id, producer_epoch=epoch, committed=committed
        )
        self.find(name)
        self.until_ready(asked, VERSIONS[name[-1]], lambda answer: answer.error_code)

    def shown(self, name: str) -> list[bytes]:
        """What read_committed consumers see of its partition, once nothing is open there."""
        kind = FetchRequest
        index = NAMES.index(name)
        deadline = time.monotonic() + READY_SECONDS
        while True:
            partition = kind.FetchPartition(partition=index, fetch_offset=0, partition_max_bytes=1 << 20)
            topic = kind.FetchTopic(topic=TOPIC, partitions=[partition])
            asked = kind(max_wait_ms=0, min_bytes=0, max_bytes=1 << 20, isolation_level=1, topics=[topic])
            answer = self.home.client.ask(asked, 11).responses[0].partitions[0]
            if answer.last_stable_offset == answer.high_watermark:
                break
            assert time.monotonic() < deadline, f"{name} is open for ever"
            time.sleep(0.02)
        hidden = {each.producer_id for each in answer.aborted_transactions or ()}
        data = bytes(answer.records or b"")
        return [
            row.value or b""
            for batch in records.scan(data)
            if not batch.is_control and batch.producer_id not in hidden
            for row in records.read(data[batch.position : batch.position + batch.size])
        ]


def added(answer: Any) -> int:
    code: int = answer.results_by_topic_v3_and_below[0].results_by_partition[0].partition_error_code
    return code


def prepare(data: Path, name: str, state: int) -> None:
    """The record that the coordinator of an open transaction writes when it is to end."""
    directory = data / f"{STATE}-{partition_for(name, STATE_PARTITIONS)}"
    file = directory / f"{0:020}.log"
    written = file.read_bytes()
    known = dict(decode(row.key, row.value) for row in records.read(written))
    ongoing = known[name]
    assert ongoing is not None
    last = records.scan(written)[-1]
    prepared = ongoing.prepared(state, int(name[-1]), -1, ongoing.updated_ms + 1)
    batch = bytearray(records.build([(encode_key(name), encode_value(prepared, 2), [], prepared.updated_ms)]))
    batch[:8] = (last.last_offset + 1).to_bytes(8)
    batch[12:16] = last.leader_epoch.to_bytes(4)
    file.write_bytes(written + batch)


@pytest.mark.parametrize(("first", "second"), [(PYKAFKAD, KAFKA), (KAFKA, PYKAFKAD)])
def test_transactions_of_one_end_with_the_other(home: Home, first: str, second: str) -> None:
    sides = Sides(home)
    home.run(first)
    sides.create()
    producers = {name: sides.init(name) for name in NAMES}
    for name, producer in producers.items():
        sides.write(name, producer)
    for name, committed in BEFORE.items():
        sides.end(name, producers[name], committed)
    assert {name for name in BEFORE if sides.shown(name)} == SHOWN & BEFORE.keys()
    # After a kill Kafka fences its broker while it starts, takes the partitions that have no leader then for deleted, and
    # completes what is prepared without a marker in them (4.3.1), which leaves the transactions open there for ever.
    home.end(kill=second == PYKAFKAD)
    for name, state in BETWEEN.items():
        prepare(home.data, name, state)
    home.run(second)
    for name, committed in AFTER.items():
        sides.end(name, producers[name], committed)
    assert {name for name in NAMES if sides.shown(name)} == SHOWN
    for name, (producer_id, epoch) in producers.items():
        sides.end(name, producers[name], name in SHOWN)  # once more, as if the answer had been lost
        assert sides.init(name) == (producer_id, epoch + (1 if name.endswith("0") else 2))
    home.end()
    home.run(first)
    assert {name for name in NAMES if sides.shown(name)} == SHOWN
    home.end()
