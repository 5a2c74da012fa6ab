"""DescribeQuorum, UnregisterBroker, AddRaftVoter, RemoveRaftVoter: a cluster of one node."""

from __future__ import annotations

from typing import Any

import pytest

from compat_tests.differential.pair import Each, Pair, Side
from compat_tests.differential.versions import at_every_version
from pykafkad.messages import (
    AddRaftVoterRequest,
    DescribeClusterRequest,
    DescribeQuorumRequest,
    RemoveRaftVoterRequest,
    UnregisterBrokerRequest,
)

METADATA = "__cluster_metadata"
SOME_ID = bytes(range(16))
LISTENERS = [AddRaftVoterRequest.Listener(name="CONTROLLER", host="127.0.0.1", port=9999)]


def describe(*topics: tuple[str, list[int]]) -> Any:
    kind = DescribeQuorumRequest
    return kind(
        topics=[
            kind.TopicData(
                topic_name=name, partitions=[kind.PartitionData(partition_index=index) for index in parts]
            )
            for name, parts in topics
        ]
    )


@at_every_version("DescribeQuorum")
def test_the_quorum(pair: Pair, version: int) -> None:
    pair.same(describe((METADATA, [0])), version)


@at_every_version("DescribeQuorum")
@pytest.mark.parametrize(
    "topics",
    [
        [],
        [(METADATA, [])],
        [(METADATA, [1])],
        [(METADATA, [-1])],
        [(METADATA, [0, 1])],
        [(METADATA, [0, 0])],
        [(METADATA, [0]), (METADATA, [0])],
        [(METADATA, [0]), ("other", [0])],
        [(METADATA, [0]), ("other", [])],
        [("other", [0])],
        [("", [0])],
    ],
    ids=str,
)
def test_anything_else(pair: Pair, version: int, topics: list[tuple[str, list[int]]]) -> None:
    pair.same(describe(*topics), version)


@pytest.mark.parametrize("broker_id", [0, 2, -1, 2**31 - 1])
def test_brokers_that_are_not_registered(pair: Pair, broker_id: int) -> None:
    pair.same(UnregisterBrokerRequest(broker_id=broker_id), 0)


def cluster_id(side: Side) -> str:
    found: str = side.demand(DescribeClusterRequest(), 1).cluster_id
    return found


@at_every_version("AddRaftVoter")
@pytest.mark.parametrize("voter_id", [1, 2, -1])
@pytest.mark.parametrize("listeners", [[], LISTENERS], ids=["without", "with"])
@pytest.mark.parametrize("directory_id", [SOME_ID, bytes(16)], ids=["some", "zero"])
@pytest.mark.parametrize("timeout_ms", [0, 1000])
def test_voters_to_add(
    pair: Pair, version: int, voter_id: int, listeners: list[Any], directory_id: bytes, timeout_ms: int
) -> None:
    def build(known: bool) -> Each:
        return lambda side: AddRaftVoterRequest(
            cluster_id=cluster_id(side) if known else None,
            voter_id=voter_id,
            voter_directory_id=directory_id,
            listeners=listeners,
            timeout_ms=timeout_ms,
        )

    pair.same(build(True), version)
    pair.same(build(False), version)


@pytest.mark.parametrize("voter_id", [1, 2, -1])
@pytest.mark.parametrize("directory_id", [SOME_ID, bytes(16)], ids=["some", "zero"])
def test_voters_to_remove(pair: Pair, voter_id: int, directory_id: bytes) -> None:
    for known in (True, False):
        pair.same(
            lambda side: RemoveRaftVoterRequest(
                cluster_id=cluster_id(side) if known else None,  # noqa: B023
                voter_id=voter_id,
                voter_directory_id=directory_id,
            ),
            0,
        )


def test_voters_of_another_cluster(pair: Pair) -> None:
    for kind, version in ((AddRaftVoterRequest, 0), (AddRaftVoterRequest, 1), (RemoveRaftVoterRequest, 0)):
        ours, theirs = pair.ours, pair.theirs
        for asked in ("other", ""):
            answers = [
                side.demand(kind(cluster_id=asked, voter_id=2, voter_directory_id=SOME_ID), version)
                for side in (ours, theirs)
            ]
            mine, other = (
                (answer.error_code, answer.error_message.replace(cluster_id(side), "ITS OWN"))
                for answer, side in zip(answers, (ours, theirs), strict=True)
            )
            assert mine == other


def test_a_text_that_no_answer_can_carry(pair: Pair) -> None:
    listeners = [AddRaftVoterRequest.Listener(name=f"L{at}", host="h" * 1_000, port=1) for at in range(100)]
    asked = AddRaftVoterRequest(cluster_id=None, voter_id=2, voter_directory_id=SOME_ID, listeners=listeners)
    pair.same(asked, 0)
