"""Several requests sent in one piece: each sees the effects of those before it, and none is begun while one waits."""

from __future__ import annotations

import threading
import time
from typing import Any

import pytest

from compat_tests.differential.pair import Pair, Side
from compat_tests.differential.requests import (
    batch,
    creatable,
    create,
    fetch,
    fetch_partition,
    list_offsets,
    produce,
)
from compat_tests.raw import RawClient, decode_answer
from pykafkad.messages import MetadataRequest

LATER_S = 0.3  # when another client produces
WAIT_MS = 3_000

Asked = tuple[Any, int]  # a request and its version


def ask_all(side: Side, asked: list[Asked], meanwhile: Any = None) -> list[Any]:
    """The answers to requests that are sent in one piece over a connection of their own."""
    with RawClient(side.port) as client:
        resolved = [of_side(side, *each) for each in asked]
        client.send(b"".join(client.frame(request, version) for request, version in resolved))
        thread = threading.Thread(target=meanwhile or (lambda: None))
        thread.start()
        answers = [decode_answer(request, version, client.receive()) for request, version in resolved]
        thread.join()
        return answers


def of_side(side: Side, request: Any, version: int) -> Asked:
    return (request(side) if callable(request) else request), version


def seen(answers: list[Any]) -> list[Any]:
    """The part of the answers that shows the order in which the requests were done."""
    found: list[Any] = []
    for answer in answers:
        name = type(answer).__name__
        if name == "FetchResponse":
            partition = answer.responses[0].partitions[0] if answer.responses else None
            found.append((name, partition and (partition.high_watermark, len(partition.records or b""))))
        elif name == "ListOffsetsResponse":
            found.append((name, answer.topics[0].partitions[0].offset))
        elif name == "ProduceResponse":
            found.append((name, answer.responses[0].partition_responses[0].base_offset))
        else:
            found.append((name, [topic.error_code for topic in answer.topics]))
    return found


def waiting_fetch(topic: str, offset: int = 0) -> Asked:
    return fetch({topic: [fetch_partition(0, offset)]}, max_wait_ms=WAIT_MS, min_bytes=1), 12


def latest(topic: str) -> Asked:
    return list_offsets(topic, (0, -1)), 7


def one(topic: str, value: bytes = b"x") -> Asked:
    return produce(topic, {0: batch(value)}), 9


CASES = {
    "a fetch that waits, and the end of the log": lambda t: [waiting_fetch(t), latest(t)],
    "a fetch that waits, and another": lambda t: [waiting_fetch(t), waiting_fetch(t), latest(t)],
    "a fetch that waits, and what would end its waiting": lambda t: [waiting_fetch(t), one(t), latest(t)],
    "a produce, and the end of the log": lambda t: [one(t), latest(t), one(t), one(t), latest(t)],
    "a produce, and a fetch of it": lambda t: [one(t), waiting_fetch(t), one(t), waiting_fetch(t, 1)],
}


@pytest.mark.parametrize("case", CASES)
def test_requests_of_a_connection_are_done_one_after_the_other(pair: Pair, case: str) -> None:
    topic = pair.topic("pipelined")
    results = []
    for side in pair.sides:

        def produce_later(side: Side = side) -> None:
            time.sleep(LATER_S)
            with RawClient(side.port) as other:
                other.ask(*of_side(side, *one(topic, b"of another client")))

        results.append(seen(ask_all(side, CASES[case](topic), produce_later)))
    assert results[0] == results[1]


def test_metadata_behind_the_creation_of_a_topic_knows_it(pair: Pair) -> None:
    name = pair.new_name("pipelined-creation")
    kind = MetadataRequest
    described = kind(topics=[kind.MetadataRequestTopic(name=name)], allow_auto_topic_creation=False)
    asked = [(create(creatable(name)), 7), (described, 12)]
    ours, theirs = (seen(ask_all(side, asked)) for side in pair.sides)
    assert ours == theirs == [("CreateTopicsResponse", [0]), ("MetadataResponse", [0])]
