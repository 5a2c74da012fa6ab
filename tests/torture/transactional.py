"""Transactions under torture: each writes into two topics and commits an offset, and all of it counts or nothing.

A client works as KIP-890 has it (transaction version 2): it begins by writing, each end gives it a new epoch, and after
anything unexpected it asks for its producer id anew, which ends what it left open. The ledger keeps what may be: a
transaction whose end was asked for and not answered may be committed or not, but not by halves; one whose end nobody
asked for is never seen. No transaction stays open once its producer has come back.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Literal

from pykafkad import errors
from pykafkad.hot import records
from pykafkad.messages import (
    EndTxnRequest,
    FetchRequest,
    FindCoordinatorRequest,
    InitProducerIdRequest,
    ListOffsetsRequest,
    ProduceRequest,
    TxnOffsetCommitRequest,
)
from pykafkad.testing.client import Client
from tests.torture.ledger import Fault, payload
from tests.torture.pipeline import Pipeline

TOPICS = ("left", "right")
IDS = ("giver", "taker")
TRANSACTION = 1  # the type of a coordinator's key
COMMITTED = 1  # the isolation level
PRODUCE_VERSION, COMMIT_VERSION, END_VERSION = 12, 5, 5
LEFT_OPEN, ABORTED = 0.15, 0.25  # how many of the transactions
SETTLED_SECONDS = 30.0
PAUSE_SECONDS = 0.005

# Errors of coordinators that have just started, or that end what was left open.
PASSING = frozenset(
    (
        errors.COORDINATOR_LOAD_IN_PROGRESS,
        errors.COORDINATOR_NOT_AVAILABLE,
        errors.NOT_COORDINATOR,
        errors.CONCURRENT_TRANSACTIONS,
        errors.NOT_ENOUGH_REPLICAS,  # as which Produce tells of a coordinator that is not ready
    )
)
State = Literal["open", "ending", "aborted", "committed"]
Passes = Callable[[int, str], bool]


@dataclass
class Transaction:
    """`numbers`: of its records, by topic. The last of them is the offset that it commits."""

    numbers: dict[str, list[int]]
    state: State = "open"

    @property
    def offset(self) -> int:
        return max(number for each in self.numbers.values() for number in each)


@dataclass
class Producer:
    name: str
    producer_id: int = -1  # none, or it is not sure that it still may
    epoch: int = -1
    transactions: list[Transaction] = field(default_factory=list)

    @property
    def group(self) -> str:
        return f"group-of-{self.name}"


def producers() -> dict[str, Producer]:
    return {name: Producer(name) for name in IDS}


# -- what a client does


def find_coordinator(client: Pipeline) -> None:
    """The first request makes the broker create __transaction_state."""
    client.send(FindCoordinatorRequest(key_type=TRANSACTION, coordinator_keys=list(IDS)), 4)
    client.receive()


def transact(
    client: Pipeline,
    producer: Producer,
    chance: random.Random,
    next_number: Callable[[], int],
    passes: Passes,
) -> None:
    """One transaction, or as much of it as the broker allows."""
    if producer.producer_id < 0 and not init(client, producer, passes):
        return
    numbers = {topic: [next_number() for _ in range(chance.randint(1, 4))] for topic in TOPICS}
    transaction = Transaction(numbers)
    producer.transactions.append(transaction)
    client.send(produce(producer, numbers), PRODUCE_VERSION)
    client.send(commit(producer, transaction.offset), COMMIT_VERSION)
    codes = [row.error_code for topic in client.receive().responses for row in topic.partition_responses]
    codes += [row.error_code for topic in client.receive().topics for row in topic.partitions]
    wrong = [code for code in codes if code]
    if wrong or chance.random() < LEFT_OPEN:
        producer.producer_id = -1
        if wrong and wrong[0] not in PASSING:
            passes(wrong[0], f"a transaction of {producer.name}")
        return
    end(client, producer, transaction, chance.random() >= ABORTED, passes)


def init(client: Pipeline, producer: Producer, passes: Passes) -> bool:
    client.send(InitProducerIdRequest(transactional_id=producer.name, transaction_timeout_ms=60_000), 4)
    answer = client.receive()
    if answer.error_code:
        if answer.error_code not in PASSING:
            passes(answer.error_code, f"InitProducerId of {producer.name}")
        return False
    producer.producer_id, producer.epoch = answer.producer_id, answer.producer_epoch
    return True


def end(
    client: Pipeline, producer: Producer, transaction: Transaction, committed: bool, passes: Passes
) -> None:
    transaction.state = "ending" if committed else "aborted"
    request = EndTxnRequest(
        transactional_id=producer.name,
        producer_id=producer.producer_id,
        producer_epoch=producer.epoch,
        committed=committed,
    )
    producer.producer_id = -1
    client.send(request, END_VERSION)
    answer = client.receive()
    if answer.error_code:
        if answer.error_code not in PASSING:
            passes(answer.error_code, f"EndTxn of {producer.name}")
        return
    if committed:
        transaction.state = "committed"
    producer.producer_id, producer.epoch = answer.producer_id, answer.producer_epoch


def produce(producer: Producer, numbers: dict[str, list[int]]) -> Any:
    kind, now_ms = ProduceRequest, int(time.time() * 1000)
    topics = []
    for topic, some in numbers.items():
        data = records.build(
            [(None, payload(number), [("n", b"%d" % number)], now_ms) for number in some],
            producer_id=producer.producer_id,
            producer_epoch=producer.epoch,
            base_sequence=0,  # each transaction has an epoch of its own
            transactional=True,
        )
        item = kind.PartitionProduceData(index=0, records=data)
        topics.append(kind.TopicProduceData(name=topic, partition_data=[item]))
    return kind(transactional_id=producer.name, acks=-1, timeout_ms=5000, topic_data=topics)


def commit(producer: Producer, offset: int) -> Any:
    kind = TxnOffsetCommitRequest
    rows = [kind.TxnOffsetCommitRequestPartition(partition_index=0, committed_offset=offset)]
    return kind(
        transactional_id=producer.name,
        group_id=producer.group,
        producer_id=producer.producer_id,
        producer_epoch=producer.epoch,
        topics=[kind.TxnOffsetCommitRequestTopic(name=TOPICS[0], partitions=rows)],
    )


# -- what must be afterwards


def settle(
    client: Client, known: dict[str, Producer], committed_offset: Callable[[Client, str], int]
) -> None:
    """Each producer comes back; then nothing is open, and what is there is whole."""
    client.call(FindCoordinatorRequest(key_type=TRANSACTION, coordinator_keys=list(IDS)), 4)
    for producer in known.values():
        come_back(client, producer)
    for topic in TOPICS:
        wait_until_stable(client, topic)
    found = {topic: read_committed(client, topic) for topic in TOPICS}
    for topic, numbers in found.items():
        if len(set(numbers)) < len(numbers):
            raise Fault(f"{topic}: records of transactions are there twice: {numbers}")
    seen = {topic: set(numbers) for topic, numbers in found.items()}
    for producer in known.values():
        producer.transactions = [each for each in producer.transactions if is_seen(producer.name, each, seen)]
        check_offset(producer, committed_offset(client, producer.group))
    of_nobody = {topic: numbers for topic, numbers in seen.items() if numbers}
    if of_nobody:
        raise Fault(f"records that no transaction sent, or none that was committed: {of_nobody}")


def is_seen(name: str, transaction: Transaction, seen: dict[str, set[int]]) -> bool:
    """Whether consumers see it; takes its records out of what is seen."""
    parts = []
    for topic, numbers in transaction.numbers.items():
        there = seen[topic] & set(numbers)
        parts += [bool(there), len(there) == len(numbers)]
        seen[topic] -= there
    if len(set(parts)) > 1:
        raise Fault(f"half of a transaction of {name} is seen: {transaction}")
    if parts[0] and transaction.state not in ("committed", "ending"):
        raise Fault(f"a transaction of {name} is seen that was never committed: {transaction}")
    if not parts[0] and transaction.state == "committed":
        raise Fault(f"a transaction of {name} that was committed is not seen: {transaction}")
    if parts[0]:
        transaction.state = "committed"
    return parts[0]


def check_offset(producer: Producer, offset: int) -> None:
    wanted = producer.transactions[-1].offset if producer.transactions else -1
    if offset != wanted:
        raise Fault(f"{producer.group} has committed {offset}, the last transaction of it {wanted}")


def come_back(client: Client, producer: Producer) -> None:
    """It asks for its id anew, until what it left open is over."""
    deadline = time.monotonic() + SETTLED_SECONDS
    producer.producer_id = -1
    while True:
        request = InitProducerIdRequest(transactional_id=producer.name, transaction_timeout_ms=60_000)
        answer = client.call(request, 4)
        if not answer.error_code:
            producer.producer_id, producer.epoch = answer.producer_id, answer.producer_epoch
            return
        if answer.error_code not in PASSING:
            said = errors.NAMES.get(answer.error_code)
            raise Fault(f"InitProducerId of {producer.name} was answered {said}")
        if time.monotonic() > deadline:
            raise Fault(f"{producer.name} gets no producer id: {errors.NAMES[answer.error_code]}")
        time.sleep(PAUSE_SECONDS)


def wait_until_stable(client: Client, topic: str) -> None:
    """A transaction that stays open would hide what follows it for ever."""
    deadline = time.monotonic() + SETTLED_SECONDS
    while (ends := [end_of(client, topic, level) for level in (0, COMMITTED)]) and ends[0] != ends[1]:
        if time.monotonic() > deadline:
            raise Fault(f"a transaction in {topic} is never over: it is stable up to {ends[1]} of {ends[0]}")
        time.sleep(PAUSE_SECONDS)


def end_of(client: Client, topic: str, isolation_level: int) -> int:
    kind = ListOffsetsRequest
    asked = [kind.ListOffsetsPartition(partition_index=0, timestamp=-1)]
    topics = [kind.ListOffsetsTopic(name=topic, partitions=asked)]
    answer = client.call(kind(replica_id=-1, isolation_level=isolation_level, topics=topics), 7)
    row = answer.topics[0].partitions[0]
    if row.error_code:
        raise Fault(f"{topic}: ListOffsets was answered {errors.NAMES.get(row.error_code)}")
    return int(row.offset)


def read_committed(client: Client, topic: str) -> list[int]:
    """The numbers of what a consumer is given: aborted transactions are told to it, and it leaves them out."""
    numbers: list[int] = []
    offset = 0
    while True:
        row = fetch(client, topic, offset)
        batches = records.scan(row.records or b"")
        if not batches:
            return numbers
        aborted = sorted((each.first_offset, each.producer_id) for each in row.aborted_transactions or ())
        hidden: set[int] = set()
        for batch in batches:
            while aborted and aborted[0][0] <= batch.last_offset:
                hidden.add(aborted.pop(0)[1])
            data = row.records[batch.position : batch.position + batch.size]
            if batch.is_control:
                hidden.discard(batch.producer_id)
            elif batch.producer_id not in hidden and batch.base_offset >= offset:
                numbers += [int(record.headers[0][1] or b"-1") for record in records.read(data)]
        offset = batches[-1].last_offset + 1


def fetch(client: Client, topic: str, offset: int) -> Any:
    kind = FetchRequest
    item = kind.FetchPartition(partition=0, fetch_offset=offset, partition_max_bytes=1 << 20)
    topics = [kind.FetchTopic(topic=topic, partitions=[item])]
    request = kind(max_wait_ms=0, min_bytes=0, max_bytes=1 << 20, isolation_level=COMMITTED, topics=topics)
    row = client.call(request, 12).responses[0].partitions[0]
    if row.error_code:
        raise Fault(f"{topic}: Fetch at {offset} was answered {errors.NAMES.get(row.error_code)}")
    return row
