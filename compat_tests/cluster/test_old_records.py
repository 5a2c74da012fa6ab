"""Records of formats 0 and 1, in a cluster on ZooKeeper: Produce to version 2 and Fetch to version 3, of a real 3.9.2
and of ours.

Each broker leads topics of its own, called the same in what is compared; both are given the same bytes. What is
compressed is compared as what is in it, since no two libraries compress alike; everything else byte for byte.
"""

from __future__ import annotations

import contextlib
import itertools
import json
import struct
import time
import zlib
from collections.abc import Iterator
from typing import Any

import pytest
from kazoo.client import KazooClient
from kazoo.exceptions import NoNodeError

from compat_tests.cluster.brokers import DEADLINE_S, KAFKA, OURS, MixedCluster
from pykafkad import compression, errors, messages
from pykafkad.hot import records
from pykafkad.testing.client import Client

REAL, OUR = 0, 1
BOTH = (REAL, OUR)
MIB = 1 << 20
NOW = 1_700_000_000_000
CONFIG = {"log.segment.bytes": str(16 * MIB), "log.retention.ms": "-1"}
CODECS = ("none", "gzip", "snappy", "lz4", "zstd")
numbers = itertools.count()


class Pair(MixedCluster):
    """A cluster of one real broker, and one of ours."""

    def ask(self, id: int, request: Any, version: int) -> Any:
        broker = self.home.brokers[id]
        with Client(broker.host, broker.port) as client:
            return client.call(request, version)

    def create(self, **configs: str) -> str:
        """The end of the names of two topics, one on each."""
        request = messages.CreateTopicsRequest
        name = f"-{next(numbers)}"
        topics = []
        for id in BOTH:
            topic = request.CreatableTopic(name=f"{id}{name}", num_partitions=-1, replication_factor=-1)
            topic.assignments = [request.CreatableReplicaAssignment(partition_index=0, broker_ids=[id])]
            topic.configs = [
                request.CreatableTopicConfig(name=key.replace("_", "."), value=configs[key])
                for key in configs
            ]
            topics.append(topic)
        controller = self.ask(OUR, messages.MetadataRequest(topics=[]), 9).controller_id
        answer = self.ask(controller, request(topics=topics, timeout_ms=30_000), 5)
        assert [each.error_code for each in answer.topics] == [0, 0], answer
        for id in BOTH:
            self.until_served(id, name)
        return name

    def until_served(self, id: int, name: str) -> None:
        deadline = time.monotonic() + DEADLINE_S
        while self.get(id, name, 11, max_wait_ms=0).error_code:
            assert time.monotonic() < deadline, f"broker {id} does not lead"
            time.sleep(0.01)

    def put(self, id: int, name: str, data: bytes | None, version: int, acks: int = -1) -> Any:
        request = messages.ProduceRequest
        item = request.PartitionProduceData(index=0, records=data)
        topic = request.TopicProduceData(name=f"{id}{name}", partition_data=[item])
        answer = self.ask(id, request(acks=acks, timeout_ms=30_000, topic_data=[topic]), version)
        return answer.responses[0].partition_responses[0]

    def get(self, id: int, name: str, version: int, offset: int = 0, **fields: Any) -> Any:
        request = messages.FetchRequest
        most = fields.pop("partition_max_bytes", MIB)
        item = request.FetchPartition(partition=0, fetch_offset=offset, partition_max_bytes=most)
        topic = request.FetchTopic(topic=f"{id}{name}", partitions=[item])
        fields = {"max_wait_ms": 100, "min_bytes": 1, "max_bytes": MIB, **fields}
        return self.ask(id, request(topics=[topic], **fields), version).responses[0].partitions[0]


@pytest.fixture(scope="module")
def pair() -> Iterator[Pair]:
    with Pair([KAFKA, OURS], config=CONFIG) as started:
        yield started


# -- messages


def message(
    magic: int = 1,
    key: bytes | None = b"k",
    value: bytes | None = b"v",
    timestamp: int = NOW,
    attributes: int = 0,
    offset: int = 0,
    crc: int = 0,
) -> bytes:
    body = bytes((magic, attributes)) + (struct.pack(">q", timestamp) if magic else b"")
    for part in (key, value):
        body += struct.pack(">i", -1) if part is None else struct.pack(">i", len(part)) + part
    return struct.pack(">qiI", offset, len(body) + 4, zlib.crc32(body) ^ crc) + body


def wrapper(
    magic: int, codec: str, inside: bytes, offset: int = 0, timestamp: int = NOW, more: int = 0
) -> bytes:
    number = CODECS.index(codec)
    compressor = compression.compressor(number)
    value = bytearray(compressor.compress(inside) + compressor.flush())
    if codec == "lz4" and magic == 0:
        value[6] = records.xxhash32(bytes(value[:6])) >> 8 & 0xFF
    return message(magic, None, bytes(value), timestamp, number | more, offset)


def parsed(data: bytes) -> tuple[list[Any], bytes]:
    """The messages, and what follows the last whole one; of what is compressed, what is in it."""
    found = []
    while len(data) >= 12 and len(data) >= 12 + (size := struct.unpack_from(">qi", data)[1]):
        one, data = data[: 12 + size], data[12 + size :]
        offset, _, crc, magic, attributes = struct.unpack_from(">qiIbb", one)
        assert zlib.crc32(one[16:]) == crc
        at = 26 if magic else 18
        timestamp = struct.unpack_from(">q", one, 18)[0] if magic else None
        parts: list[Any] = []
        for _ in range(2):
            (length,) = struct.unpack_from(">i", one, at)
            parts.append(None if length < 0 else one[at + 4 : at + 4 + length])
            at += 4 + max(0, length)
        if attributes & 7:
            pieces = compression.pieces(attributes & 7, memoryview(parts[1]), magic)
            if attributes & 7 == 3:
                checked = parts[1][:6] if magic == 0 else parts[1][4:6]
                assert records.xxhash32(checked) >> 8 & 0xFF == parts[1][6]
            parts[1] = parsed(b"".join(pieces))
        found.append((offset, magic, attributes, timestamp, *parts))
    return found, data


# -- Fetch


def batch(codec: str = "none", count: int = 3, size: int = 20, **fields: Any) -> bytes:
    rows = [
        (None if index == 1 else b"key%d" % index, None if index == 2 else b"%0*d" % (size, index),
         [("header", b"dropped")], NOW + 10 * (index if index != 1 else 5))
        for index in range(count)
    ]  # fmt: skip
    return records.build(rows, codec=codec, **fields)


def filled(pair: Pair, batches: list[bytes], **configs: str) -> str:
    name = pair.create(**configs)
    for each in batches:
        answers = [pair.put(id, name, each, 9) for id in BOTH]
        assert [answer.error_code for answer in answers] == [0, 0]
    return name


def compare_fetches(
    pair: Pair, name: str, offsets: Any, sizes: Any, *, compressed: bool = False
) -> list[Any]:
    found = []
    for version, offset, size in itertools.product(range(4), offsets, sizes):
        real, ours = (pair.get(id, name, version, offset, partition_max_bytes=size) for id in BOTH)
        case = version, offset, size
        said = [(each.error_code, each.high_watermark) for each in (real, ours)]
        assert said[0] == said[1], case
        (of_real, rest), (of_ours, our_rest) = parsed(real.records or b""), parsed(ours.records or b"")
        once = forward(of_real)
        assert of_ours == once, case
        if compressed or once != of_real:
            assert bool(our_rest) == bool(rest) or once != of_real, case
        else:
            assert ours.records == real.records, case
        found.append((real.error_code, of_real, rest))
    return found


def forward(found: list[Any]) -> list[Any]:
    """Kafka forgets how many batches it left out before the first that it converts, and converts some again."""
    ends = [at for at in range(1, len(found)) if found[at][0] <= found[at - 1][0]]
    return found[: ends[0]] if ends else found


@pytest.mark.parametrize("codec", ["none", "gzip", "snappy", "lz4"])
def test_batches_become_messages(pair: Pair, codec: str) -> None:
    name = filled(pair, [batch(codec), batch(codec, 1), batch("none", 2), batch(codec, 4, 3000)])
    sizes = [MIB, 1, 70, 160, 161, 200, 300, 400, 4000]
    found = compare_fetches(pair, name, range(-1, 13), sizes, compressed=codec != "none")
    assert len({each[0] for each in found}) == 2  # and OFFSET_OUT_OF_RANGE
    assert max(len(each[1]) for each in found) >= 4


def test_times_that_the_log_gave(pair: Pair) -> None:
    name = filled(pair, [batch("gzip"), batch("none")], message_timestamp_type="LogAppendTime")
    for version in (0, 1, 2, 3):
        of_both = []
        for id in BOTH:
            found, rest = parsed(pair.get(id, name, version).records)
            times = {each[3] for each in found} | {each[3] for each in found[0][5][0]}
            assert times == {None} if version < 2 else all(time > NOW for time in times)
            untimed = [
                (*each[:3], each[4], *([row[:3] for row in part[0]] if isinstance(part, tuple) else [part]))
                for each in found
                for part in each[5:]
            ]
            of_both.append((untimed, rest[:8]))
        assert of_both[0] == of_both[1]


def test_a_codec_that_cannot_be_converted(pair: Pair) -> None:
    name = filled(pair, [batch(), batch("gzip"), batch("zstd"), batch()])
    found = compare_fetches(pair, name, [0, 3, 6, 9], [MIB, 300], compressed=True)
    assert {each[0] for each in found} == {errors.NONE, errors.UNSUPPORTED_COMPRESSION_TYPE}


def test_control_batches_are_left_out(pair: Pair) -> None:
    name = filled(pair, [batch(producer_id=4711, producer_epoch=0, base_sequence=0)])
    request = messages.WriteTxnMarkersRequest
    for id in BOTH:
        topic = request.WritableTxnMarkerTopic(name=f"{id}{name}", partition_indexes=[0])
        marker = request.WritableTxnMarker(
            producer_id=4711, producer_epoch=0, transaction_result=True, topics=[topic], coordinator_epoch=0
        )
        answer = pair.ask(id, request(markers=[marker]), 1)
        assert answer.markers[0].topics[0].partitions[0].error_code == 0
    offsets, sizes = [0, 1, 2, 3, 4], [MIB, 1, 40, 78, 200]
    found = compare_fetches(pair, name, offsets, sizes)
    assert any(not each[1] and each[2] for each in found), (
        "nothing was left, and yet no message was announced"
    )
    for id in BOTH:
        assert pair.put(id, name, batch(), 9).error_code == 0
    compare_fetches(pair, name, offsets, sizes)


@pytest.mark.parametrize(
    "configs",
    [{"message_downconversion_enable": "false"}, {"compression_type": "zstd"}, {"compression_type": "gzip"}],
    ids=str,
)
def test_topics_that_say_what_may_be_converted(pair: Pair, configs: dict[str, str]) -> None:
    name = filled(pair, [batch(), batch("lz4")], **configs)
    compare_fetches(pair, name, [0, 5, 6, 7], [MIB], compressed=True)


@pytest.mark.parametrize("version", range(4))
def test_who_does_not_have_it_says_so(pair: Pair, version: int) -> None:
    name = pair.create()
    said = []
    for id in BOTH:
        broker = 1 - id
        request = messages.FetchRequest
        topics = [
            request.FetchTopic(topic=each, partitions=[request.FetchPartition(partition=index)])
            for each, index in ((f"{id}{name}", 0), (f"{id}{name}", 7), ("nobody's", 0))
        ]
        answer = pair.ask(broker, request(topics=topics, max_wait_ms=0, min_bytes=0), version)
        said.append(
            sorted(
                (
                    topic.topic.removeprefix(str(id)),
                    row.partition_index,
                    row.error_code,
                    row.high_watermark,
                    row.records,
                )
                for topic in answer.responses
                for row in topic.partitions
            )
        )
    assert said[0] == said[1]


def test_a_fetch_of_many_waits_and_is_answered_in_time(pair: Pair) -> None:
    """And when something comes."""
    name = pair.create()
    for version in range(4):
        answers = [pair.get(id, name, version, max_wait_ms=300) for id in BOTH]
        assert [(each.error_code, each.records) for each in answers] == [(0, b""), (0, b"")]


# -- Produce

GOOD = {
    "one": message(),
    "several": message() + message(key=None) + message(value=None) + message(timestamp=-1),
    "old": message(0) + message(0, None, None),
    "a torn last one": message() + message()[:-1],
    "relative offsets": wrapper(1, "gzip", message(offset=0) + message(offset=1), 1),
    "absolute offsets": wrapper(1, "gzip", message(offset=5) + message(offset=6), 6),
    "offsets that are all the same": wrapper(1, "gzip", message() + message(), 0),
    "gzip, old": wrapper(0, "gzip", message(0, offset=3) + message(0, None, offset=4), 4),
    "snappy": wrapper(1, "snappy", message() + message(offset=1), 1),
    "snappy, old": wrapper(0, "snappy", message(0) + message(0, offset=1), 1),
    "lz4": wrapper(1, "lz4", message() + message(offset=1), 1),
    "lz4, old": wrapper(0, "lz4", message(0) + message(0, offset=1), 1),
    "large": wrapper(1, "gzip", b"".join(message(value=bytes(1000), offset=n) for n in range(3000)), 2999),
    "times inside": wrapper(1, "gzip", message(timestamp=NOW - 5) + message(timestamp=NOW + 7, offset=1), 1),
    "a batch": batch(),
    "a batch with gzip": batch("gzip"),
    "a batch with zstd": batch("zstd"),
    "nothing": b"",
    "torn": message()[:-1],
    "a torn batch": batch()[:-1],
    "any time": message(timestamp=1 << 60) + message(timestamp=0),
    "the log's time": message(attributes=8),
    "the log's time on a wrapper": wrapper(1, "gzip", message(), more=8),
}
BAD = {
    "a checksum": message(crc=1),
    "the second's checksum": message() + message(crc=1),
    "a checksum inside": wrapper(1, "gzip", message(crc=1)),
    "a format inside": wrapper(1, "gzip", message(0)),
    "an older wrapper": wrapper(0, "gzip", message(1)),
    "compressed twice": wrapper(1, "gzip", wrapper(1, "gzip", message())),
    "two formats": message(0) + message(1),
    "two wrappers": wrapper(1, "gzip", message()) + wrapper(1, "gzip", message()),
    "zstd": wrapper(1, "zstd", message()),
    "nothing inside": wrapper(1, "gzip", b""),
    "no value to decompress": message(1, None, None, attributes=1),
    "no gzip": message(1, None, b"that is not gzip", attributes=1),
    "a codec of nobody's": message(attributes=5),
    "a negative time": message(timestamp=-2),
    "offsets below": wrapper(1, "gzip", message(offset=9), 3),
    "too large": message(value=bytes(MIB)),
    "too large when it is converted": b"".join(message(value=bytes(1000)) for _ in range(1100)),
    "too small": struct.pack(">qi", 0, 5) + bytes(5),
    "a format of the future": message()[:16] + b"\x03" + message()[17:],
    "a batch and a message": batch() + message(),
    "a message and a batch": message() + batch(),
    "two batches": batch() + batch(),
}


def stored(pair: Pair, id: int, name: str, *, times: bool = True) -> Any:
    """All batches in the log, decompressed."""
    data = pair.get(id, name, 11).records or b""
    found = []
    for header in records.scan(data):
        rows = list(records.read(data[header.position : header.position + header.size]))
        facts = (header.base_offset, header.last_offset, header.attributes, header.producer_id, header.magic)
        shown = [(each.offset, each.timestamp if times else 0, each.key, each.value) for each in rows]
        found.append((facts, shown, (header.base_timestamp, header.max_timestamp) if times else None))
    return found


def compare_produces(
    pair: Pair, name: str, data: bytes | None, versions: Any, *, times: bool = True
) -> set[int]:
    codes = set()
    for version in versions:
        said = []
        for id in BOTH:
            answer = pair.put(id, name, data, version)
            if not times and answer.log_append_time_ms > 0:
                answer.log_append_time_ms = 1
            said.append(repr(answer))
        assert said[OUR] == said[REAL], version
        codes.add(answer.error_code)
    assert stored(pair, OUR, name, times=times) == stored(pair, REAL, name, times=times)
    return codes


@pytest.mark.parametrize("case", GOOD)
def test_messages_become_batches(pair: Pair, case: str) -> None:
    assert compare_produces(pair, pair.create(), GOOD[case], range(3)) == {errors.NONE}


@pytest.mark.parametrize("case", BAD)
def test_what_is_refused(pair: Pair, case: str) -> None:
    codes = compare_produces(pair, pair.create(), BAD[case], range(3))
    assert errors.NONE not in codes


@pytest.mark.parametrize(
    "data", [message(), wrapper(1, "gzip", message()), message(0)], ids=["one", "in one", "none"]
)
def test_a_topic_has_bounds_for_times(pair: Pair, data: bytes) -> None:
    name = pair.create(message_timestamp_before_max_ms="1000")
    codes = compare_produces(pair, name, data, range(3))
    assert codes == {errors.NONE if data == message(0) else errors.INVALID_TIMESTAMP}


@pytest.mark.parametrize("compression_type", ["uncompressed", "gzip", "zstd", "lz4"])
@pytest.mark.parametrize("case", ["several", "gzip, old", "lz4", "a batch"])
def test_a_topic_has_a_codec(pair: Pair, case: str, compression_type: str) -> None:
    name = pair.create(compression_type=compression_type)
    assert compare_produces(pair, name, GOOD[case], range(3)) == {errors.NONE}


@pytest.mark.parametrize("case", ["several", "gzip, old", "lz4", "the log's time", "a negative time"])
def test_a_topic_whose_log_gives_the_time(pair: Pair, case: str) -> None:
    name = pair.create(message_timestamp_type="LogAppendTime")
    compare_produces(pair, name, {**GOOD, **BAD}[case], range(3), times=False)


@pytest.mark.parametrize(
    "data", [message(key=None), wrapper(1, "gzip", message(key=None))], ids=["one", "in one"]
)
def test_a_compacted_topic_wants_keys(pair: Pair, data: bytes) -> None:
    name = pair.create(cleanup_policy="compact")
    assert compare_produces(pair, name, data, range(3)) == {errors.INVALID_RECORD}


def test_old_and_new_clients_read_what_old_ones_wrote(pair: Pair) -> None:
    name = pair.create()
    for case in ("several", "gzip, old", "snappy", "lz4"):
        compare_produces(pair, name, GOOD[case], [2])
    compare_fetches(pair, name, range(10), [MIB, 100, 200], compressed=True)


# -- ControlledShutdown


def controller_in(zookeeper: KazooClient) -> int:
    """As soon as there is one."""
    deadline = time.monotonic() + DEADLINE_S
    while True:
        assert time.monotonic() < deadline
        with contextlib.suppress(NoNodeError):
            id: int = json.loads(zookeeper.get("/controller")[0])["brokerid"]
            return id
        time.sleep(0.01)


@pytest.mark.parametrize("version", range(4))
def test_a_broker_that_nobody_knows_does_not_stop(pair: Pair, version: int) -> None:
    """Each is asked as the controller, and as another."""
    request = messages.ControlledShutdownRequest(broker_id=77, broker_epoch=-1)
    said: dict[tuple[bool, int], int] = {}
    zookeeper = KazooClient(pair.home.zookeeper_connect)
    zookeeper.start()
    try:
        deadline = time.monotonic() + DEADLINE_S
        while len(said) < 4:
            assert time.monotonic() < deadline, said
            controller = controller_in(zookeeper)
            found = {(id == controller, id): pair.ask(id, request, version).error_code for id in BOTH}
            if controller_in(zookeeper) == controller:
                said |= found
                zookeeper.delete("/controller")
    finally:
        zookeeper.stop()
        zookeeper.close()
    assert said[True, OUR] == said[True, REAL] != errors.NONE
    assert said[False, OUR] == said[False, REAL] != errors.NONE
