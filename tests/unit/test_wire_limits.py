"""The most that a hostile length can cost: nothing is allocated before the bytes that justify it are there."""

from __future__ import annotations

import platform
import sysconfig
import tracemalloc
from typing import Any

import pytest

from pykafkad.hot import wire
from pykafkad.messages import (
    ApiVersionsRequest,
    CreateTopicsRequest,
    DeleteTopicsResponse,
    DescribeGroupsRequest,
    FetchRequest,
    MetadataRequest,
    ProduceRequest,
    SyncGroupRequest,
)

SMALL = 16384  # bytes of memory: an error, its traceback, a few objects


def peak_of(act: Any) -> Any:
    tracemalloc.start()
    try:
        before = tracemalloc.get_traced_memory()[0]
        act()
        return tracemalloc.get_traced_memory()[1] - before
    finally:
        tracemalloc.stop()


def refused(cls: Any, version: Any, data: Any) -> Any:
    """The memory it took to refuse these bytes."""
    with pytest.raises(wire.WireError):
        cls.decode(data, version)

    def act() -> None:
        try:
            cls.decode(data, version)
        except wire.WireError:
            pass

    return peak_of(act)


@pytest.mark.parametrize("count", ["7fffffff", "7ffffffe", "00ffffff", "00000005"])
def test_a_count_beyond_the_bytes_left_costs_nothing(count: Any) -> None:
    data = bytes.fromhex(count) + bytes(8)
    assert refused(MetadataRequest, 0, data) < SMALL
    assert refused(FetchRequest, 4, bytes(17) + data) < SMALL


@pytest.mark.parametrize("count", ["ffffffff07", "8080808008", "ffffff07"])
def test_a_compact_count_beyond_the_bytes_left_costs_nothing(count: Any) -> None:
    assert refused(MetadataRequest, 12, bytes.fromhex(count) + bytes(8)) < SMALL


def test_a_count_is_held_against_the_least_size_of_its_elements() -> None:
    """A partition takes 16 bytes in v4: 50,000 of them cannot be in 500,000 bytes."""
    topic = bytes.fromhex("00000001 0001 74 0000c350")
    data = FetchRequest().encode(4)[:-4] + topic + bytes(500_000)
    assert refused(FetchRequest, 4, data) < SMALL


@pytest.mark.parametrize("size", ["7fffffff", "00010000"])
def test_a_size_beyond_the_bytes_left_costs_nothing(size: Any) -> None:
    data = FetchRequest().encode(4)
    assert refused(DescribeGroupsRequest, 0, bytes.fromhex("00000001 7fff") + bytes(50)) < SMALL
    produce = bytes.fromhex("ffff 0001 00000000 00000001 0001 74 00000001 00000000") + bytes.fromhex(size)
    assert refused(ProduceRequest, 3, produce + data) < SMALL
    member = bytes.fromhex("0001 67 00000001 0001 6d 00000001 0001 6d") + bytes.fromhex(size)
    assert refused(SyncGroupRequest, 0, member + data) < SMALL


def test_unknown_tags_cost_no_more_than_their_bytes() -> None:
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
def test_what_is_decoded_is_in_proportion_to_the_bytes(message: Any, version: int) -> None:
    """Empty elements are the worst case."""
    data = message.encode(version)
    assert peak_of(lambda: type(message).decode(data, version)) < 50 * len(data)


def test_decoding_leaves_no_memory_behind() -> None:
    good = ProduceRequest(topic_data=[ProduceRequest.TopicProduceData(name="t" * 100)]).encode(9)

    def both(times: Any) -> None:
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


@pytest.mark.parametrize("text", ["x" * 40_000, "é" * 20_000, "x" + "日" * 20_000, "xy" + "😀" * 10_000])
def test_an_error_message_is_cut_at_a_whole_character_where_it_is_too_long(text: Any) -> None:
    """It repeats what a client sent; the error itself matters more."""
    kind = DeleteTopicsResponse
    answer = kind(responses=[kind.DeletableTopicResult(name="t", error_code=42, error_message=text)])
    (result,) = kind.decode(answer.encode(6), 6).responses
    assert result.error_code == 42 and text.startswith(result.error_message)
    assert 32_767 - 4 < len(str(result.error_message).encode()) <= 32_767


def test_other_strings_are_never_cut() -> None:
    with pytest.raises(wire.WireError, match="32767 is the most"):
        DescribeGroupsRequest(groups=["x" * 32_768]).encode(5)


def test_what_we_send_ourselves_may_be_large() -> None:
    kind = MetadataRequest
    request = kind(topics=[kind.MetadataRequestTopic(name="x" * 30_000) for _ in range(200)])
    framed = wire.request(request, 12, 1, "c")
    assert isinstance(framed, bytes)
    assert len(request.encode(12)) == len(framed) - 4 - 8 - 3 - 1 > 6_000_000


def anonymous_kib() -> int:
    with open("/proc/self/status", encoding="ascii") as file:
        return next(int(line.split()[1]) for line in file if line.startswith("RssAnon"))


@pytest.mark.skipif(
    platform.libc_ver()[0] != "glibc" or bool(sysconfig.get_config_var("Py_GIL_DISABLED")),
    reason="only the allocator of glibc can be told, and free-threaded Pythons have another",
)
def test_freed_memory_between_what_is_kept_is_given_back() -> None:
    made = [bytes(3000 + size % 5000) for size in range(20_000)]
    kept = made[::50]
    del made
    before = anonymous_kib()
    assert not wire.release_memory(1 << 40)  # so much is not free
    assert anonymous_kib() > before - (20 << 10)
    assert wire.release_memory(1 << 20)
    assert anonymous_kib() < before - (40 << 10)
    assert len(kept) == 400
