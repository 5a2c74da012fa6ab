"""OffsetForLeaderEpoch on logs with one epoch."""

from __future__ import annotations

import pytest

from compat_tests.differential.pair import Pair
from compat_tests.differential.requests import batch, leader_epochs, produce
from compat_tests.differential.versions import at_every_version
from pykafkad.messages import OffsetForLeaderEpochRequest

EPOCHS = [-2, -1, 0, 1, 5, 2**31 - 1]


@pytest.fixture(scope="module")
def topic(pair: Pair) -> str:
    name = pair.topic("epochs", 2)
    pair.same(produce(name, {0: batch(b"a", b"b", b"c")}), 9)
    return name


@at_every_version("OffsetForLeaderEpoch")
@pytest.mark.parametrize("current", EPOCHS)
@pytest.mark.parametrize("epoch", EPOCHS)
def test_epochs(pair: Pair, topic: str, version: int, current: int, epoch: int) -> None:
    pair.same(leader_epochs(topic, (0, current, epoch)), version)
    pair.same(leader_epochs(topic, (1, current, epoch)), version)


@at_every_version("OffsetForLeaderEpoch")
def test_what_is_not_there(pair: Pair, topic: str, version: int) -> None:
    pair.same(leader_epochs(topic, (2, -1, 0), (-1, -1, 0), (0, -1, 0)), version)
    pair.same(leader_epochs("never-made", (0, -1, 0)), version)
    pair.same(leader_epochs("", (0, 0, 0)), version)
    pair.same(leader_epochs("a b", (0, 0, 0)), version)
    pair.same(leader_epochs(topic), version)
    pair.same(OffsetForLeaderEpochRequest(replica_id=-1, topics=[]), version)


@at_every_version("OffsetForLeaderEpoch")
def test_one_partition_twice(pair: Pair, topic: str, version: int) -> None:
    pair.same(leader_epochs(topic, (0, -1, 0), (0, -1, 1)), version)
    topics = [leader_epochs(topic, (index, -1, 0)).topics[0] for index in (0, 1, 0)]
    pair.same(OffsetForLeaderEpochRequest(replica_id=-1, topics=topics), version)


@at_every_version("OffsetForLeaderEpoch", since=3)
@pytest.mark.parametrize("replica_id", [-2, -1, 0, 1, 5])
def test_replica_ids(pair: Pair, topic: str, version: int, replica_id: int) -> None:
    pair.same(leader_epochs(topic, (0, -1, 0), (1, 0, 0), replica_id=replica_id), version)
