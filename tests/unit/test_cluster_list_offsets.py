"""ListOffsets in a cluster: what a leader says of its log, to consumers and to followers, also while it catches up."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from pykafkad import errors, messages
from tests.unit.cluster_kit import state
from tests.unit.data_kit import NOW_MS, batch, produce
from tests.unit.test_cluster_fetching import FOLLOWED, LED, Node

LATEST, EARLIEST, LARGEST = -1, -2, -3
CONSUMER, TOOL, FOLLOWER = -1, -2, 1
NONE = errors.NONE, -1


@pytest.fixture
def node(tmp_path: Path) -> Node:
    """Of three records only the first is committed."""
    node = Node(tmp_path)
    for number in range(3):
        request = produce("orders", LED, batch(b"x", timestamp=NOW_MS + number))
        request.acks = 1
        node.ask(request, 9)
    for follower in (1, 2):
        node.row(LED, asked={"fetch_offset": 1}, **node.by(follower))
    return node


def asked(
    node: Node, timestamp: int, version: int = 7, replica: int = CONSUMER, partition: int = LED, **fields: Any
) -> tuple[int, int]:
    kind = messages.ListOffsetsRequest
    row = kind.ListOffsetsPartition(partition_index=partition, timestamp=timestamp, **fields)
    topics = [kind.ListOffsetsTopic(name="orders", partitions=[row])]
    given = node.send(kind(replica_id=replica, topics=topics), version)
    for _ in range(5):
        node.end_pass()
        node.advance(0)
    answer = node.answer_of(given, "ListOffsetsRequest", version)
    ((found,),) = (topic.partitions for topic in answer.topics)
    return found.error_code, found.offset


def lead_anew(node: Node) -> None:
    """In another epoch, in which the high watermark is not known to be the one that consumers have seen."""
    node.lead_and_follow(state(LED, leader=0, epoch=6, partition_epoch=9, is_new=False))


def test_consumers_are_told_of_what_is_committed_and_others_of_the_log(node: Node) -> None:
    assert asked(node, LATEST) == (0, 1)
    assert asked(node, LATEST, replica=TOOL) == asked(node, LATEST, replica=FOLLOWER) == (0, 3)
    assert asked(node, EARLIEST) == asked(node, EARLIEST, replica=FOLLOWER) == (0, 0)
    assert asked(node, NOW_MS) == (0, 0) and asked(node, NOW_MS + 1) == NONE
    assert asked(node, NOW_MS + 1, replica=FOLLOWER) == (0, 1)
    assert asked(node, LARGEST) == NONE and asked(node, LARGEST, replica=FOLLOWER) == (0, 2)


@pytest.mark.parametrize(
    ("version", "code"), [(4, errors.LEADER_NOT_AVAILABLE), (5, errors.OFFSET_NOT_AVAILABLE)]
)
def test_a_new_leader_says_what_it_knows_and_no_more(node: Node, version: int, code: int) -> None:
    lead_anew(node)
    assert asked(node, LATEST, version) == (code, -1)
    assert asked(node, EARLIEST, version) == (0, 0)
    assert asked(node, NOW_MS, version) == (0, 0)
    assert asked(node, NOW_MS + 1, version) == (code, -1)
    assert asked(node, LATEST, version, replica=FOLLOWER) == (0, 3)
    for follower in (1, 2):
        node.row(LED, asked={"fetch_offset": 3}, **node.by(follower))
    assert asked(node, LATEST, version) == (0, 3)
    assert asked(node, NOW_MS + 3, version) == NONE


def test_only_the_leader_of_the_epoch_is_asked(node: Node) -> None:
    assert asked(node, LATEST, current_leader_epoch=5) == (0, 1)
    assert asked(node, LATEST, current_leader_epoch=4)[0] == errors.FENCED_LEADER_EPOCH
    assert asked(node, LATEST, current_leader_epoch=6)[0] == errors.UNKNOWN_LEADER_EPOCH
    assert asked(node, LATEST, partition=FOLLOWED)[0] == errors.NOT_LEADER_OR_FOLLOWER
    assert asked(node, LATEST, partition=9)[0] == errors.UNKNOWN_TOPIC_OR_PARTITION


@pytest.mark.parametrize(("timestamp", "since"), [(LARGEST, 7), (-4, 8)])
def test_names_of_offsets_are_known_since_a_version(node: Node, timestamp: int, since: int) -> None:
    for version in (since - 1, since):
        code, _ = asked(node, timestamp, version)
        assert code == (errors.NONE if version == since else errors.UNSUPPORTED_VERSION)
    assert asked(node, -9)[0] == errors.UNSUPPORTED_VERSION
