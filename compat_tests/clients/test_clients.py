"""Each stock client creates a topic, produces with every codec and reads from wherever it likes."""

from __future__ import annotations

import base64
import random
import time
from collections.abc import Callable

import pytest

from . import kept
from .face import CODECS, EARLIEST, LATEST, Client, Got, Sent, Start

RECORDS = 120
LARGE_BYTES = 900 * 1024
MANY_RECORDS = 2000

NewTopic = Callable[[str], str]


def text_records() -> list[Sent]:
    """Keys, no keys, tombstones and headers, in a form that every client supports."""
    seen = (("trace", b"0123456789abcdef"), ("attempt", b"1"))
    return [
        Sent(
            key=None if i % 5 == 4 else f"key-{i % 7}".encode(),
            value=None if i % 10 == 3 else f"value {i} ".encode() * (1 + i % 20),
            headers=seen if 40 <= i < 60 else (),
        )
        for i in range(RECORDS)
    ]


def binary_records(null_headers: bool) -> list[Sent]:
    """Only for clients with binary records: empty, any byte, a header twice and without a value."""
    bare = (("null", None),) if null_headers else ()
    every_byte = bytes(range(256))
    return [
        Sent(key=b"", value=b""),
        Sent(key=every_byte, value=every_byte * 40, headers=(("bytes", every_byte),)),
        Sent(key=b"k", value=None, headers=(("empty", b""), *bare, ("twice", b"1"), ("twice", b"2"))),
        Sent(key="ключ".encode(), value="値".encode(), headers=(("größe", "9 µm".encode()),)),
    ]


def records_for(client: Client) -> list[Sent]:
    return text_records() + (binary_records(client.null_headers) if client.binary else [])


def read(client: Client, topic: str, start: Start, count: int) -> list[Got]:
    reader = client.reader(topic, start)
    try:
        return reader.read(count)
    finally:
        reader.close()


def assert_same(got: list[Got], sent: list[Sent], first_offset: int = 0) -> None:
    assert [record.content for record in got] == [(s.key, s.value, s.headers) for s in sent]
    assert [record.offset for record in got] == list(range(first_offset, first_offset + len(sent)))


def numbered(first: int, count: int) -> list[Sent]:
    return [Sent(key=b"n", value=f"{i}".encode()) for i in range(first, first + count)]


def test_creates_a_topic(client: Client, new_topic: NewTopic) -> None:
    topic = new_topic("created")
    partitions = 3 if client.creates_partitions else 1
    client.create_topic(topic, partitions)
    assert client.partition_count(topic) == partitions


def test_creating_a_topic_again_is_refused(client: Client, new_topic: NewTopic) -> None:
    topic = new_topic("twice")
    client.create_topic(topic)
    if client.creates_partitions:
        with pytest.raises(Exception, match=r"(?i)already.?exists|\[36\]|, 36, "):
            client.create_topic(topic)
    assert client.partition_count(topic) == 1


@pytest.mark.parametrize("codec", CODECS)
def test_reads_back_what_it_produced(client: Client, bootstrap: str, new_topic: NewTopic, codec: str) -> None:
    topic = new_topic(codec)
    client.create_topic(topic)
    sent = records_for(client)
    client.produce(topic, sent, codec=codec)
    assert_same(read(client, topic, EARLIEST, len(sent)), sent)
    codecs = {batch.codec for batch in kept.batches(bootstrap, topic)}
    assert codec in codecs
    # Clients leave a batch as it is that would not get smaller, as that of a single small record.
    assert codecs <= {codec, "none"}


@pytest.mark.parametrize("codec", CODECS)
def test_carries_a_large_message(client: Client, new_topic: NewTopic, codec: str) -> None:
    topic = new_topic("large")
    client.create_topic(topic)
    dense = base64.b64encode(random.Random(7).randbytes(LARGE_BYTES * 3 // 4))
    sent = [Sent(b"before", b"small"), Sent(b"large", dense), Sent(b"after", b"small")]
    client.produce(topic, sent, codec=codec)
    assert_same(read(client, topic, EARLIEST, 3), sent)


@pytest.mark.parametrize("codec", ["none", "zstd"])
def test_produces_without_idempotence(
    client: Client, bootstrap: str, new_topic: NewTopic, codec: str
) -> None:
    topic = new_topic("plain")
    client.create_topic(topic)
    sent = numbered(0, 50)
    client.produce(topic, sent, codec=codec, idempotent=False)
    assert_same(read(client, topic, EARLIEST, 50), sent)
    assert {batch.producer_id for batch in kept.batches(bootstrap, topic)} == {-1}


def test_an_idempotent_producer_keeps_many_batches_in_order(
    client: Client, bootstrap: str, new_topic: NewTopic
) -> None:
    topic = new_topic("many")
    client.create_topic(topic)
    sent = [Sent(key=None, value=f"{i}".encode() + b"." * 200) for i in range(MANY_RECORDS)]
    client.produce(topic, sent, idempotent=True)
    assert_same(read(client, topic, EARLIEST, MANY_RECORDS), sent)
    found = kept.batches(bootstrap, topic)
    assert sum(batch.count for batch in found) == MANY_RECORDS
    (producer_id,) = {batch.producer_id for batch in found}
    assert producer_id >= 0


def test_reads_from_an_offset(client: Client, new_topic: NewTopic) -> None:
    topic = new_topic("offset")
    client.create_topic(topic)
    sent = numbered(0, 30)
    client.produce(topic, sent[:10])
    client.produce(topic, sent[10:])
    for offset in (0, 7, 10, 29):  # first, inside a batch, at the start of one, last
        assert_same(read(client, topic, Start("offset", offset), 30 - offset), sent[offset:], offset)


def test_reads_from_latest_only_what_comes_after(client: Client, new_topic: NewTopic) -> None:
    topic = new_topic("latest")
    client.create_topic(topic)
    client.produce(topic, numbered(0, 5))
    reader = client.reader(topic, LATEST)
    try:
        client.produce(topic, numbered(5, 5))
        assert_same(reader.read(5), numbered(5, 5), 5)
        client.produce(topic, numbered(10, 1))  # and continues to wait for more
        assert_same(reader.read(1), numbered(10, 1), 10)
    finally:
        reader.close()


def test_reads_from_a_timestamp(client: Client, new_topic: NewTopic) -> None:
    topic = new_topic("timestamp")
    client.create_topic(topic)
    client.produce(topic, numbered(0, 5))
    time.sleep(0.01)  # the clients' own clocks stamp the records: those of the second part must be later
    client.produce(topic, numbered(5, 5))
    stamps = [record.timestamp_ms for record in read(client, topic, EARLIEST, 10)]
    assert stamps[4] < stamps[5]
    assert_same(read(client, topic, Start("timestamp", stamps[5]), 5), numbered(5, 5), 5)
    assert_same(read(client, topic, Start("timestamp", stamps[4] + 1), 5), numbered(5, 5), 5)
    assert_same(read(client, topic, Start("timestamp", 0), 10), numbered(0, 10))


def test_keeps_the_timestamps_it_is_given(client: Client, new_topic: NewTopic) -> None:
    topic = new_topic("stamped")
    client.create_topic(topic)
    now_ms = int(time.time() * 1000)
    stamps = [now_ms - 3_600_000, now_ms - 50, now_ms - 100, now_ms] if client.sets_timestamps else [None] * 4
    client.produce(topic, [Sent(b"k", b"v", (), stamp) for stamp in stamps])
    got = [record.timestamp_ms for record in read(client, topic, EARLIEST, 4)]
    if client.sets_timestamps:
        assert got == stamps
        # The first record at or after the timestamp.
        assert read(client, topic, Start("timestamp", now_ms - 99), 1)[0].offset == 1
    else:
        assert all(now_ms - 1000 <= stamp <= now_ms + 60_000 for stamp in got)
