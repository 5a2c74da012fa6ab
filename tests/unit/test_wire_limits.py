"""What a hostile length can cost: nothing before the bytes that justify it are there."""

from __future__ import annotations

import tracemalloc

import pytest

from pykafkad.hot import wire
from pykafkad.messages import (
    ApiVersionsRequest,
    CreateTopicsRequest,
    DescribeGroupsRequest,
    FetchRequest,
    MetadataRequest,
    ProduceRequest,
    SyncGroupRequest,
)

SMALL = 16384  # bytes of memory: an error, its traceback, a few objects


def peak_of(act):
    tracemalloc.start()
    try:
        before = tracemalloc.get_traced_memory()[0]
        act()
        return tracemalloc.get_traced_memory()[1] - before
    finally:
        tracemalloc.stop()


def refused(cls, version, data):
    """The memory it took to refuse these bytes."""
    with pytest.raises(wire.WireError):
        cls.decode(data, version)

    def act():
        try:
            cls.decode(data, version)
        except wire.WireError:
            pass

    return peak_of(act)


@pytest.mark.parametrize("count", ["7fffffff", "7ffffffe", "00ffffff", "00000005"])
def test_a_count_beyond_the_bytes_left_costs_nothing(count):
    data = bytes.fromhex(count) + bytes(8)
    assert refused(MetadataRequest, 0, data) < SMALL
    assert refused(FetchRequest, 4, bytes(17) + data) < SMALL


@pytest.mark.parametrize("count", ["ffffffff07", "8080808008", "ffffff07"])
def test_a_compact_count_beyond_the_bytes_left_costs_nothing(count):
    assert refused(MetadataRequest, 12, bytes.fromhex(count) + bytes(8)) < SMALL


def test_a_count_is_held_against_the_least_size_of_its_elements():
    """A partition takes 16 bytes in v4: 50,000 of them cannot be in 500,000 bytes."""
    topic = bytes.fromhex("00000001 0001 74 0000c350")
    data = FetchRequest().encode(4)[:-4] + topic + bytes(500_000)
    assert refused(FetchRequest, 4, data) < SMALL


@pytest.mark.parametrize("size", ["7fffffff", "00010000"])
def test_a_size_beyond_the_bytes_left_costs_nothing(size):
    data = FetchRequest().encode(4)
    assert refused(DescribeGroupsRequest, 0, bytes.fromhex("00000001 7fff") + bytes(50)) < SMALL
    produce = bytes.fromhex("ffff 0001 00000000 00000001 0001 74 00000001 00000000") + bytes.fromhex(size)
    assert refused(ProduceRequest, 3, produce + data) < SMALL
    member = bytes.fromhex("0001 67 00000001 0001 6d 00000001 0001 6d") + bytes.fromhex(size)
    assert refused(SyncGroupRequest, 0, member + data) < SMALL


def test_unknown_tags_cost_no_more_than_their_bytes():
    head = ApiVersionsRequest().encode(3)[:-1]
    assert refused(ApiVersionsRequest, 3, head + bytes.fromhex("ffffffff07")) < SMALL
    assert refused(ApiVersionsRequest, 3, head + bytes.fromhex("01 f403 ffffffff07") + bytes(50)) < SMALL


@pytest.mark.parametrize(
    ("message", "version"),
    [
        (FetchRequest(topics=[FetchRequest.FetchTopic()] * 30000), 12),
        (CreateTopicsRequest(topics=[CreateTopicsRequest.CreatableTopic()] * 30000), 7),
        (DescribeGroupsRequest(groups=[""] * 30000), 5),
    ],
)
def test_what_is_decoded_is_in_proportion_to_the_bytes(message, version):
    """Empty elements are the worst that bytes can do."""
    data = message.encode(version)
    assert peak_of(lambda: type(message).decode(data, version)) < 50 * len(data)


def test_decoding_leaves_no_memory_behind():
    good = ProduceRequest(topic_data=[ProduceRequest.TopicProduceData(name="t" * 100)]).encode(9)

    def both(times):
        for _ in range(times):
            ProduceRequest.decode(good, 9).encode(9)
            try:
                ProduceRequest.decode(good, 9, 0, len(good) - 1)
            except wire.WireError:
                pass

    both(10)
    tracemalloc.start()
    try:
        both(10)
        before = tracemalloc.get_traced_memory()[0]
        both(1000)
        assert tracemalloc.get_traced_memory()[0] - before < SMALL
    finally:
        tracemalloc.stop()
