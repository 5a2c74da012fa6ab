"""Measurements of transactions: a stock client's commits and copies, the requests alone on a raw socket, memory."""

from __future__ import annotations

import statistics
import time
import uuid
from typing import Any

from bench.measures import Numbers, Sizes, Topic, run_client
from bench.sides import Side
from compat_tests.raw import RawClient
from pykafkad import errors
from pykafkad.hot import records
from pykafkad.messages import (
    AddPartitionsToTxnRequest,
    EndTxnRequest,
    FindCoordinatorRequest,
    InitProducerIdRequest,
    ProduceRequest,
)

FIND_COORDINATOR_VERSION = 6
TRANSACTION_KEY = 1
INIT_VERSION = 5
ADD_VERSION = 3  # the last of clients; later ones are of brokers
END_VERSION = 5
PRODUCE_VERSION = 12  # adds the partition to the transaction
TIMEOUT_MS = 900_000
READY_SECONDS = 30
PAUSE_S = 0.0005
AGAIN = {
    errors.CONCURRENT_TRANSACTIONS,
    errors.COORDINATOR_LOAD_IN_PROGRESS,
    errors.COORDINATOR_NOT_AVAILABLE,
    errors.NOT_COORDINATOR,
}

Owner = tuple[str, int, int]  # transactional id, producer id, epoch


def client_transactions(side: Side, sizes: Sizes) -> Numbers:
    """A stock client: init_transactions(), commits of one record, transactions of 1,000."""
    with Topic(side) as topic:
        return run_client("transact", side, topic, sizes.transacted, 100)


def python_transactions(side: Side, sizes: Sizes) -> Numbers:
    """Clients in Python: transactions of one record, one after the other."""
    result = {}
    for client in ("aiokafka", "kafka_python"):
        with Topic(side) as topic:
            result[client] = run_client(f"transact_{client}", side, topic, 1, 100)["one_ms"]
    return result


def client_copy(side: Side, sizes: Sizes) -> Numbers:
    """A stock client that reads, writes and commits offsets in transactions of 1,000 records."""
    with Topic(side, 2) as topic:
        return run_client("copy", side, topic, sizes.transacted, 100)


def raw_transactions(side: Side, sizes: Sizes) -> Numbers:
    """One record in each transaction, on one raw socket: Produce, which adds the partition, and EndTxn. The pause of a
    client that is told CONCURRENT_TRANSACTIONS, while the markers are written, is half a millisecond."""
    with Topic(side) as topic, side.client() as client:
        inits = []
        for _ in range(sizes.transactions // 10):
            began = time.perf_counter()
            owner = begin(client)
            inits.append(time.perf_counter() - began)
        ends, wholes = [], []
        for _ in range(sizes.transactions):
            began = time.perf_counter()
            _produce(client, topic, owner)
            ending = time.perf_counter()
            owner = _end(client, owner)
            ended = time.perf_counter()
            ends.append(ended - ending)
            wholes.append(ended - began)
    return {
        "init_us": statistics.median(inits) * 1e6,
        "end_us": statistics.median(ends) * 1e6,
        "whole_us": statistics.median(wholes) * 1e6,
    }


def open_transactions(side: Side, sizes: Sizes) -> Numbers:
    """Transactional ids, each with a transaction in which there is a partition."""
    with Topic(side) as topic, side.client() as client:
        owners = [begin(client)]
        _add(client, topic, owners[0])
        before = side.resident()
        for _ in range(sizes.transactional_ids):
            owners.append(begin(client))
            _add(client, topic, owners[-1])
        size = max(side.resident() - before, 0)
        for owner in owners:
            _end(client, owner)
    return {"bytes": size}


def begin(client: RawClient) -> Owner:
    name = f"bench-{uuid.uuid4()}"
    found = FindCoordinatorRequest(key_type=TRANSACTION_KEY, coordinator_keys=[name])
    _asked(client, found, FIND_COORDINATOR_VERSION, lambda answer: answer.coordinators[0].error_code)
    request = InitProducerIdRequest(
        transactional_id=name, transaction_timeout_ms=TIMEOUT_MS, producer_id=-1, producer_epoch=-1
    )
    answer = _asked(client, request, INIT_VERSION, lambda answer: answer.error_code)
    return name, answer.producer_id, answer.producer_epoch


def _add(client: RawClient, topic: str, owner: Owner) -> None:
    wanted = AddPartitionsToTxnRequest.AddPartitionsToTxnTopic(name=topic, partitions=[0])
    request = AddPartitionsToTxnRequest(
        v3_and_below_transactional_id=owner[0],
        v3_and_below_producer_id=owner[1],
        v3_and_below_producer_epoch=owner[2],
        v3_and_below_topics=[wanted],
    )
    _asked(client, request, ADD_VERSION, lambda answer: _result(answer).partition_error_code)


def _result(answer: Any) -> Any:
    return answer.results_by_topic_v3_and_below[0].results_by_partition[0]


def _produce(client: RawClient, topic: str, owner: Owner) -> None:
    row = (None, bytes(100), (), int(time.time() * 1000))
    data = records.build(
        [row], producer_id=owner[1], producer_epoch=owner[2], base_sequence=0, transactional=True
    )
    part = ProduceRequest.PartitionProduceData(index=0, records=bytes(data))
    entry = ProduceRequest.TopicProduceData(name=topic, partition_data=[part])
    request = ProduceRequest(transactional_id=owner[0], acks=-1, timeout_ms=30_000, topic_data=[entry])
    _asked(
        client, request, PRODUCE_VERSION, lambda answer: answer.responses[0].partition_responses[0].error_code
    )


def _end(client: RawClient, owner: Owner) -> Owner:
    request = EndTxnRequest(
        transactional_id=owner[0], producer_id=owner[1], producer_epoch=owner[2], committed=True
    )
    answer = _asked(client, request, END_VERSION, lambda answer: answer.error_code)
    return owner[0], answer.producer_id, answer.producer_epoch


def _asked(client: RawClient, request: Any, version: int, code_of: Any) -> Any:
    """The answer, once the coordinator is there and has ended the transaction before."""
    deadline = time.monotonic() + READY_SECONDS
    while True:
        answer = client.ask(request, version)
        code = code_of(answer)
        if not code:
            return answer
        if code not in AGAIN or time.monotonic() > deadline:
            raise RuntimeError(f"{type(request).__name__}: {errors.NAMES[code]}")
        time.sleep(PAUSE_S)
