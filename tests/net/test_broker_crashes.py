"""kill -9 in the middle of a stream: acknowledged records are there, once, and the producer continues where it was."""

from __future__ import annotations

import threading
from typing import Any

import pytest

from pykafkad.hot import records
from pykafkad.messages import FetchRequest, InitProducerIdRequest, ProduceRequest
from pykafkad.testing import Broker

SMALL_SEGMENTS = {"internal.segment.bytes": 4096, "index.interval.bytes": 256}
BATCHES = 4000


def new_producer(client: Any) -> int:
    answer = client.call(InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=1000), 4)
    assert answer.error_code == 0
    return int(answer.producer_id)


def produce(client: Any, producer_id: int, sequence: int) -> Any:
    batch = records.build(
        [(None, b"%d" % sequence, [], 1_700_000_000_000)],
        producer_id=producer_id,
        producer_epoch=0,
        base_sequence=sequence,
    )
    item = ProduceRequest.PartitionProduceData(index=0, records=batch)
    topics = [ProduceRequest.TopicProduceData(name="t", partition_data=[item])]
    answer = client.call(ProduceRequest(acks=-1, timeout_ms=1000, topic_data=topics), 9)
    return answer.responses[0].partition_responses[0]


def everything(broker: Broker) -> list[int]:
    """The values in the log, from its start to its end; the value at each offset is the number of the offset."""
    values: list[int] = []
    with broker.client() as client:
        while True:
            item = FetchRequest.FetchPartition(
                partition=0, fetch_offset=len(values), partition_max_bytes=1 << 20
            )
            topics = [FetchRequest.FetchTopic(topic="t", partitions=[item])]
            request = FetchRequest(max_wait_ms=0, min_bytes=0, max_bytes=1 << 20, topics=topics)
            answer = client.call(request, 12).responses[0].partitions[0]
            assert answer.error_code == 0
            if len(values) >= answer.high_watermark:
                return values
            for record in records.read(answer.records):
                if record.offset >= len(values):
                    values.append(int(record.value or b""))


def stream_until_killed(broker: Broker, producer_id: int, start: int, enough: int) -> int:
    """Produce one record after the other; once `enough` are acknowledged the broker is killed. Returns how many were."""
    acknowledged = start
    killer = None
    with broker.client() as client:
        try:
            for sequence in range(start, BATCHES):
                answer = produce(client, producer_id, sequence)
                assert (answer.error_code, answer.base_offset) == (0, sequence)
                acknowledged = sequence + 1
                if acknowledged == start + enough:
                    killer = threading.Thread(target=broker.kill)
                    killer.start()
        except ConnectionError:
            pass
    assert killer is not None
    killer.join()
    return acknowledged


def test_nothing_acknowledged_is_lost_and_nothing_is_there_twice() -> None:
    with Broker() as broker:
        broker.create_topic("t", 1, SMALL_SEGMENTS)
        with broker.client() as client:
            producer_id = new_producer(client)
        acknowledged = 0
        for enough in (150, 1, 40):
            acknowledged = stream_until_killed(broker, producer_id, acknowledged, enough)
            broker.restart()
            found = everything(broker)
            assert found == list(range(len(found))), "a record is missing, or there twice"
            assert acknowledged <= len(found) <= acknowledged + 1
            if len(found) > acknowledged:  # stored, but the answer was lost: the producer repeats it
                with broker.client() as client:
                    again = produce(client, producer_id, acknowledged)
                assert (again.error_code, again.base_offset) == (0, acknowledged)
                assert everything(broker) == found
            acknowledged = len(found)


@pytest.mark.parametrize("way", ["stop", "kill"])
def test_producer_ids_are_never_given_twice(way: str) -> None:
    with Broker() as broker:
        seen = set()
        for _ in range(3):
            with broker.client() as client:
                for _ in range(3):
                    given = new_producer(client)
                    assert given not in seen
                    seen.add(given)
            getattr(broker, way)()
            broker.restart()
