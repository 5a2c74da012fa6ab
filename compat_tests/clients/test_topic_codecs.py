"""A topic's own compression.type: records of any codec are stored in that of the topic, and read back the same."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from . import kept
from .confluent import Confluent
from .face import CODECS, EARLIEST
from .test_clients import NewTopic, assert_same, read, text_records


@pytest.fixture(scope="module")
def confluent(bootstrap: str) -> Iterator[Confluent]:
    client = Confluent(bootstrap)
    yield client
    client.close()


@pytest.mark.parametrize("sent_codec", CODECS)
@pytest.mark.parametrize("topic_codec", ["uncompressed", "gzip", "snappy", "lz4", "zstd", "producer"])
def test_a_topic_recompresses(
    confluent: Confluent, bootstrap: str, new_topic: NewTopic, topic_codec: str, sent_codec: str
) -> None:
    topic = new_topic(f"{topic_codec}-from-{sent_codec}")
    confluent.create_topic(topic, config={"compression.type": topic_codec})
    sent = text_records()
    confluent.produce(topic, sent, codec=sent_codec)
    assert_same(read(confluent, topic, EARLIEST, len(sent)), sent)
    codec = {"uncompressed": "none", "producer": sent_codec}.get(topic_codec, topic_codec)
    assert {batch.codec for batch in kept.batches(bootstrap, topic)} == {codec}
