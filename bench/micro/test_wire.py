"""The codec's speed: hot messages by pytest-benchmark, every golden message beside kafka-python 3's codec.

`pytest bench/micro/test_wire.py`. The bounds are the project's own, with a margin for a busy machine.
"""

from __future__ import annotations

import gzip
import importlib
import json
import pkgutil
import statistics
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from pykafkad import messages
from pykafkad.hot import wire
from pykafkad.messages import FetchRequest, FetchResponse, ProduceRequest, ProduceResponse

GOLDEN = Path(__file__).parents[2] / "tests" / "golden" / "messages.jsonl.gz"
MICROSECOND = 1e-6
TIMES_FASTER = 3


class FileRange:
    __slots__ = ("size",)

    def __init__(self, size: int) -> None:
        self.size = size


def produce_request() -> Any:
    data = ProduceRequest.PartitionProduceData(index=0, records=b"x" * 200)
    topic = ProduceRequest.TopicProduceData(name="orders", partition_data=[data])
    return ProduceRequest(acks=-1, timeout_ms=30000, topic_data=[topic])


def fetch_response() -> Any:
    partition = FetchResponse.PartitionData(
        partition_index=0, high_watermark=100, last_stable_offset=100, records=FileRange(1000)
    )
    topic = FetchResponse.FetchableTopicResponse(topic="orders", partitions=[partition])
    return FetchResponse(responses=[topic])


def test_decode_produce_request_v9(benchmark: Any) -> None:
    data = bytearray(produce_request().encode(9))
    benchmark(ProduceRequest.decode, data, 9, 0, len(data))
    assert benchmark.stats.stats.median <= 2 * MICROSECOND


def test_encode_fetch_response_v12_without_its_records(benchmark: Any) -> None:
    benchmark(wire.frame, fetch_response(), 12, 7, True)
    assert benchmark.stats.stats.median <= 2 * MICROSECOND


def test_make_and_encode_produce_response_v9(benchmark: Any) -> None:
    topic, partition = ProduceResponse.TopicProduceResponse, ProduceResponse.PartitionProduceResponse

    def answer() -> Any:
        partitions = [partition(index=0, base_offset=5, log_start_offset=0)]
        made = ProduceResponse(responses=[topic(name="orders", partition_responses=partitions)])
        return wire.frame(made, 9, 7, True)

    benchmark(answer)


def test_decode_fetch_request_v12(benchmark: Any) -> None:
    partition = FetchRequest.FetchPartition(partition=0, fetch_offset=5)
    topic = FetchRequest.FetchTopic(topic="orders", partitions=[partition])
    data = FetchRequest(max_wait_ms=500, topics=[topic]).encode(12)
    benchmark(FetchRequest.decode, data, 12)


def test_read_a_request(benchmark: Any) -> None:
    data = wire.request(produce_request(), 9, 7, "producer-1")
    assert isinstance(data, bytes)
    benchmark(
        wire.RequestReader({0: wire.Route(ProduceRequest, (0, 13), None)}.get).read, None, data, 4, len(data)
    )


def kafka_python_classes() -> dict[str, Any]:
    """kafka-python's message classes by name."""
    package = pytest.importorskip("kafka.protocol")
    from kafka.protocol.api_message import ApiMessage

    for module in pkgutil.walk_packages(package.__path__, package.__name__ + "."):
        if ".old" not in module.name and "generate" not in module.name:
            importlib.import_module(module.name)
    return {cls.__name__: cls for cls in ApiMessage.__subclasses__()}


def seconds(act: Callable[[], object]) -> float:
    """The least time of several runs, each long enough for the clock."""
    begin = time.perf_counter()
    act()
    rounds = max(1, int(2e-4 / (time.perf_counter() - begin + 1e-9)))
    best = float("inf")
    for _ in range(3):
        begin = time.perf_counter()
        for _ in range(rounds):
            act()
        best = min(best, (time.perf_counter() - begin) / rounds)
    return best


def vectors_of(theirs: dict[str, Any]) -> dict[str, list[tuple[int, bytes]]]:
    found: dict[str, list[tuple[int, bytes]]] = {}
    with gzip.open(GOLDEN, "rt", encoding="utf-8") as file:
        for vector in map(json.loads, file):
            name, version = vector["message"], vector["version"]
            if name in theirs and version <= theirs[name].max_version:
                found.setdefault(name, []).append((version, bytes.fromhex(vector["hex"])))
    return found


def ratios(mine: Any, theirs: Any, version: int, data: bytes) -> tuple[float, float] | None:
    """How many times faster we decode and encode; None if kafka-python cannot."""
    try:
        their_object = theirs.decode(data, version=version)
        their_object._header = None  # its encoder needs it, and its decoder does not set it
        if bytes(their_object.encode(version=version)) != data:
            return None
    except Exception:
        return None
    my_object = mine.decode(data, version)
    return (
        seconds(lambda: theirs.decode(data, version=version)) / seconds(lambda: mine.decode(data, version)),
        seconds(lambda: their_object.encode(version=version)) / seconds(lambda: my_object.encode(version)),
    )


def test_every_message_is_faster_than_in_kafka_python() -> None:
    theirs = kafka_python_classes()
    medians = {}
    for name, vectors in vectors_of(theirs).items():
        measured = [ratios(getattr(messages, name), theirs[name], *vector) for vector in vectors]
        both = [pair for pair in measured if pair]
        if both:
            medians[name] = [statistics.median(side) for side in zip(*both, strict=True)]
    slow = {name: pair for name, pair in medians.items() if min(pair) < TIMES_FASTER}
    for side, what in enumerate(("decode", "encode")):
        values = sorted((pair[side], name) for name, pair in medians.items())
        middle = statistics.median(value for value, _ in values)
        print(f"{what}: {len(values)} messages, least {values[0]}, median {middle:.1f}, most {values[-1]}")
    assert len(medians) > 50
    assert not slow
