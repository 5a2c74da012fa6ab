"""The records of a classic group in `__consumer_offsets` on both brokers, one by one."""

from __future__ import annotations

import time
from typing import Any

import pytest

from compat_tests.differential.cast import ARRIVE_SECONDS, Cast, metadata
from compat_tests.differential.pair import Side
from compat_tests.differential.tree import differences
from pykafkad.coordinator.runtime.runtime import partition_for
from pykafkad.hot.records import read
from pykafkad.messages import FetchRequest, MetadataRequest
from pykafkad.pure.groups.records import decode

TOPIC = "__consumer_offsets"
NEWEST_FETCH_BY_NAME = 12
WRITTEN_SECONDS = 20.0


def records_of(side: Side, group_id: str) -> list[tuple[bytes, bytes | None]]:
    """All records of a group, oldest first."""
    topics = side.demand(MetadataRequest(topics=[MetadataRequest.MetadataRequestTopic(name=TOPIC)]), 9).topics
    partition = partition_for(group_id, len(topics[0].partitions))
    asked = FetchRequest.FetchPartition(partition=partition, fetch_offset=0, partition_max_bytes=1 << 22)
    topic = FetchRequest.FetchTopic(topic=TOPIC, partitions=[asked])
    request = FetchRequest(max_wait_ms=0, min_bytes=0, max_bytes=1 << 22, topics=[topic])
    answer = side.demand(request, NEWEST_FETCH_BY_NAME).responses[0].partitions[0]
    assert answer.error_code == 0
    found = [(each.key or b"", each.value) for each in read(answer.records or b"")]
    return [(key, value) for key, value in found if getattr(decode(key, None)[0], "group", "") == group_id]


def stored(side: Side, group_id: str, count: int) -> list[tuple[bytes, bytes | None]]:
    """The same, once there are as many: Kafka answers some requests before it writes."""
    deadline = time.monotonic() + WRITTEN_SECONDS
    while len(found := records_of(side, group_id)) < count and time.monotonic() < deadline:
        time.sleep(ARRIVE_SECONDS)
    return found


def compare(cast: Cast, count: int) -> list[Any]:
    """Compare the records: keys must be equal, and values except for ids and times. Returns Kafka's values."""
    ours, theirs = (stored(side, cast.group_id, count) for side in cast.pair.sides)
    assert [key for key, _ in ours] == [key for key, _ in theirs]
    values: list[Any] = []
    for (key, mine), (_, other) in zip(ours, theirs, strict=True):
        assert (mine is None) == (other is None)
        if mine is None or other is None:
            values.append(None)
            continue
        assert mine[:2] == other[:2]  # the version of the value
        decoded = [decode(key, value)[1] for value in (mine, other)]
        cast.pair.report(cast.group_id, 0, differences(cast.pair, *decoded))
        values.append(decoded[1])
    assert len(values) == count
    return values


def test_the_life_of_a_group(cast: Cast) -> None:
    cast.found("one", "two", instances={"two": "desk"})
    generations = [value.generation for value in compare(cast, 3)]
    assert generations == [0, 1, 2]
    cast.join("two", member_id="", group_instance_id="desk", protocols=(("range", metadata(b"new")),))
    compare(cast, 4)
    cast.rejoin("one", "two", instances={"two": "desk"})
    cast.settle(3, "one", "two", instances={"two": "desk"})
    compare(cast, 5)
    cast.leave("one", "two")
    values = compare(cast, 6)
    assert (values[-1].generation, values[-1].protocol_type, values[-1].protocol) == (4, "consumer", None)


@pytest.mark.parametrize("version", [0, 3, 4, 9])
def test_a_group_that_appears(cast: Cast, version: int) -> None:
    cast.join("one", version)
    assert compare(cast, 1)[0].generation == 0


def test_a_group_of_which_nobody_could_be_a_member(cast: Cast) -> None:
    cast.join("one", protocols=())
    assert compare(cast, 1)[0].protocol_type == ""
