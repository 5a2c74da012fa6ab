"""The hash of a group's topics: XXH3 as others compute it, and what it depends on."""

from __future__ import annotations

import pytest

from pykafkad.pure.groups.topic_watch import TopicWatch, signed
from pykafkad.pure.groups.xxh3 import xxh3_64
from tests.consumer_kit import Broker, Topics


@pytest.mark.parametrize(
    ("size", "value"),
    [
        (0, 0x2D06800538D394C2),
        (1, 0xC44BDFF4074EECDB),
        (8, 0x3A1C2D7C85AF88F8),
        (16, 0x8355E3A6F61770DB),
        (31, 0x4F36DB8E4DF378FD),
        (128, 0x85C6174C7FF4C46B),
        (200, 0xF42A8864FEAF0703),
        (500, 0xC12FD3E43FFDD5A1),
        (3_000, 0xECDAADFF79528333),
    ],
)
def test_xxh3(size: int, value: int) -> None:
    """Values of the reference implementation (xxhash 3) for 0, 1, 2..."""
    assert xxh3_64(bytes(index & 255 for index in range(size))) == value


def test_no_topics_are_0() -> None:
    assert TopicWatch(Topics()).hash_of(["nothing"]) == 0


def test_numbers_are_signed_as_in_java() -> None:
    assert (signed(1), signed(1 << 63), signed((1 << 64) - 1)) == (1, -(1 << 63), -1)


def test_what_the_hash_hangs_on() -> None:
    topics = Topics()
    watch = TopicWatch(topics)
    topics.create("t", 2)
    topics.create("u", 1)
    seen = {watch.hash_of(["t"]), watch.hash_of(["u"]), watch.hash_of(["t", "u"])}
    assert watch.hash_of(["u", "t"]) in seen
    topics.grow("t", 3)
    seen.add(watch.hash_of(["t"]))
    topics.delete("t")
    topics.create("t", 3)
    seen.add(watch.hash_of(["t"]))
    assert len(seen) == 5
    topics.brokers[1] = Broker("rack")
    assert TopicWatch(topics).hash_of(["t"]) not in seen


def test_only_new_topics_make_a_new_version() -> None:
    topics = Topics()
    topics.create("t")
    watch = TopicWatch(topics)
    first = watch.newest_version()
    topics.grow("t", 9)
    assert watch.newest_version() == first
    topics.delete("t")
    assert watch.newest_version() == first
    topics.create("t")
    assert watch.newest_version() == topics.offset > first
