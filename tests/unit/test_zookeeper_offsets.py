"""OffsetCommit and OffsetFetch 0: offsets in ZooKeeper; and OffsetCommit 1, which says when an offset was committed."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from pykafkad import errors
from pykafkad.handlers import offset_commit, offset_fetch, zookeeper_offsets
from pykafkad.messages import OffsetCommitRequest, OffsetCommitValue, OffsetFetchRequest
from pykafkad.pure.authorization import DESCRIBE, GROUP, READ, TOPIC
from pykafkad.pure.groups.offset_requests import committed
from pykafkad.slices import is_work
from pykafkad.zookeeper import client as zk
from tests.unit.metadata_fakes import FakeContext
from tests.zookeeper_kit import MemoryZooKeeper

PATH = "/consumers/g/offsets/t/1"


class Desk:
    """What the handlers need of a broker that knows the topic `t` with three partitions."""

    def __init__(self) -> None:
        self.zookeeper = MemoryZooKeeper()
        client = self.zookeeper.client()
        client.start()
        self.zookeeper.settle()
        self.zookeeper.do(zk.Create("/consumers"))
        self.broker: Any = SimpleNamespace(
            authorizer=None,
            config={"offset.metadata.max.bytes": 4},
            image=SimpleNamespace(topics={"t": SimpleNamespace(partitions=[0, 1, 2])}),
            cluster=SimpleNamespace(zookeeper=client),
        )

    def run(self, work: Any) -> Any:
        if not is_work(work):
            return work
        for _ in range(100):
            self.zookeeper.settle()
            try:
                next(work)
            except StopIteration as end:
                return end.value
        raise AssertionError("it does not end")

    def commit(self, *rows: tuple[int, int, str | None], group: str = "g", topic: str = "t") -> list[int]:
        """The error codes."""
        request = OffsetCommitRequest(group_id=group)
        partitions = [
            OffsetCommitRequest.OffsetCommitRequestPartition(
                partition_index=index, committed_offset=offset, committed_metadata=metadata
            )
            for index, offset, metadata in rows
        ]
        request.topics = [OffsetCommitRequest.OffsetCommitRequestTopic(name=topic, partitions=partitions)]
        answer = self.run(offset_commit.handle(self.broker, request, FakeContext(0)))  # type: ignore[arg-type]
        return [row.error_code for row in answer.topics[0].partitions]

    def fetch(self, *indexes: int, group: str = "g", topic: str = "t") -> list[tuple[int, str, int]]:
        named = OffsetFetchRequest.OffsetFetchRequestTopic(name=topic, partition_indexes=list(indexes))
        request = OffsetFetchRequest(group_id=group, topics=[named])
        answer = self.run(offset_fetch.handle(self.broker, request, FakeContext(0)))  # type: ignore[arg-type]
        return [(row.committed_offset, row.metadata, row.error_code) for row in answer.topics[0].partitions]


@pytest.fixture
def desk() -> Desk:
    return Desk()


def test_an_offset_is_a_znode_whose_parents_are_made_with_it(desk: Desk) -> None:
    assert desk.commit((1, 42, "lost")) == [errors.NONE]
    assert desk.zookeeper.data(PATH) == b"42"
    assert desk.commit((1, -7, None), (0, 5, None)) == [errors.NONE] * 2
    assert (desk.zookeeper.data(PATH), desk.zookeeper.data(PATH[:-1] + "0")) == (b"-7", b"5")
    assert desk.fetch(1, 0, 2) == [
        (-7, "", errors.NONE),
        (5, "", errors.NONE),
        (-1, "", errors.UNKNOWN_TOPIC_OR_PARTITION),
    ]


def test_the_last_of_a_partition_that_is_named_twice_counts(desk: Desk) -> None:
    assert desk.commit((1, 1, None), (1, 2, None)) == [errors.NONE] * 2
    assert desk.fetch(1, 1) == [(2, "", errors.NONE)] * 2


def test_what_is_wrong_with_one_partition_is_not_with_the_others(desk: Desk) -> None:
    codes = desk.commit((3, 1, None), (-1, 1, None), (0, 1, "12345"), (1, 1, "1234"))
    unknown = errors.UNKNOWN_TOPIC_OR_PARTITION
    assert codes == [unknown, unknown, errors.OFFSET_METADATA_TOO_LARGE, errors.NONE]
    assert desk.commit((0, 1, None), topic="nobody's") == [unknown]
    assert desk.fetch(0, topic="nobody's") == [(-1, "", unknown)]


@pytest.mark.parametrize("group", ["", ".", "..", "a//b", "a/../../b", "/a", "a/", "a\0b"])
def test_a_group_that_can_be_no_path_leaves_nothing(desk: Desk, group: str) -> None:
    before = desk.zookeeper.tree()
    assert desk.commit((0, 1, None), group=group) == [errors.UNKNOWN_SERVER_ERROR]
    assert desk.fetch(0, group=group) == [(-1, "", errors.UNKNOWN_SERVER_ERROR)]
    assert desk.zookeeper.tree() == before


@pytest.mark.parametrize("data", [b"", b"x", b"1.5", b" 1", b"1_0", b"9" * 19, b"9" * 5000])
def test_what_is_no_number_is_an_error(desk: Desk, data: bytes) -> None:
    desk.commit((1, 1, None))
    desk.zookeeper.do(zk.SetData(PATH, data))
    assert desk.fetch(1) == [(-1, "", errors.UNKNOWN_SERVER_ERROR)]


def test_a_session_that_ends_is_an_error_and_the_next_one_has_none(desk: Desk) -> None:
    desk.commit((0, 1, None))
    work = zookeeper_offsets.read(desk.broker, "g", "t", [0])
    next(work)
    desk.broker.cluster.zookeeper.expire()
    (row,) = desk.run(work)
    assert row.error_code == errors.UNKNOWN_SERVER_ERROR
    assert desk.fetch(0) == [(1, "", errors.NONE)]


def test_what_is_denied_is_neither_written_nor_read(desk: Desk) -> None:
    assert desk.commit((1, 42, "")) == [errors.NONE]
    denied: set[tuple[int, int, str]] = set()
    desk.broker.authorizer = SimpleNamespace(
        allows=lambda principal, host, *asked: asked not in denied, note_denied=lambda *asked: None
    )
    assert desk.commit((1, 43, "")) == [errors.NONE]
    no_topic, no_group = errors.TOPIC_AUTHORIZATION_FAILED, errors.GROUP_AUTHORIZATION_FAILED
    denied.add((READ, TOPIC, "t"))
    assert desk.commit((1, 44, ""), (9, 1, "")) == [no_topic] * 2
    assert desk.fetch(1) == [(43, "", errors.NONE)]
    denied.add((DESCRIBE, TOPIC, "t"))
    assert desk.fetch(1, 9) == [(-1, "", no_topic)] * 2
    denied.add((DESCRIBE, GROUP, "g"))
    assert desk.fetch(1) == [(-1, "", no_group)]


@pytest.mark.parametrize(("said_ms", "expected"), [(-1, 1_000), (7, 7), (0, 0)])
def test_version_1_says_when_an_offset_was_committed(said_ms: int, expected: int) -> None:
    item = OffsetCommitRequest.OffsetCommitRequestPartition(commit_timestamp=said_ms)
    records: list[Any] = []
    committed(OffsetCommitRequest(group_id="g"), "t", bytes(16), [item], 100, 1_000, records)
    ((_, value),) = records
    assert isinstance(value, OffsetCommitValue) and value.commit_timestamp == expected
