"""Lists in the order of Kafka's hash maps: groups over all partitions, members of both types of groups."""

from __future__ import annotations

from itertools import count, islice

import pytest

from compat_tests.differential.offset_requests import commit, group, subscription
from compat_tests.differential.pair import Pair, Side
from compat_tests.raw import RawClient
from pykafkad.coordinator.runtime.runtime import partition_for
from pykafkad.messages import (
    ConsumerGroupDescribeRequest,
    ConsumerGroupHeartbeatRequest,
    DescribeGroupsRequest,
    JoinGroupRequest,
    ListGroupsRequest,
)
from pykafkad.pure.java import map_order

PARTITIONS = 50
MANY = 20


def listed(side: Side, names: set[str]) -> list[str]:
    answer = side.demand(ListGroupsRequest(), 5)
    return [each.group_id for each in answer.groups if each.group_id in names]


def test_groups_of_one_partition_and_of_all(pair: Pair) -> None:
    topic, stem = pair.topic(), group(pair, "order")
    names = (f"{stem}-{number}" for number in count())
    together = list(islice((each for each in names if partition_for(each, PARTITIONS) == 7), MANY))
    apart = [f"{stem}-é{number}" for number in range(2 * MANY)]
    for group_id in (*together, *apart):
        pair.same(commit(group_id, topic, (0, 1)), 8)
    ours, theirs = (listed(side, {*together, *apart}) for side in pair.sides)
    assert ours == theirs and len(theirs) == 3 * MANY


def beat(group_id: str, member_id: str, topic: str, epoch: int = 0) -> ConsumerGroupHeartbeatRequest:
    return ConsumerGroupHeartbeatRequest(
        group_id=group_id,
        member_id=member_id,
        member_epoch=epoch,
        rebalance_timeout_ms=60_000,
        subscribed_topic_names=[topic],
        topic_partitions=[],
    )


def described(side: Side, group_id: str) -> list[str]:
    answer = side.demand(ConsumerGroupDescribeRequest(group_ids=[group_id]), 1)
    return [each.member_id for each in answer.groups[0].members]


def test_members_of_a_consumer_group_as_they_come_and_go(pair: Pair) -> None:
    topic, group_id = pair.topic(), group(pair, "order")
    members = [f"member-{number}" for number in range(MANY)]
    for size, member_id in enumerate(members, 1):
        for side in pair.sides:
            assert side.demand(beat(group_id, member_id, topic), 1).error_code == 0
        ours, theirs = (described(side, group_id) for side in pair.sides)
        assert ours == theirs and len(theirs) == size
    for member_id in members[3:]:
        for side in pair.sides:
            assert side.demand(beat(group_id, member_id, topic, epoch=-1), 1).error_code == 0
        ours, theirs = (described(side, group_id) for side in pair.sides)
        assert ours == theirs


@pytest.mark.parametrize("size", [5, 12, 13, MANY])
def test_members_of_a_classic_group(pair: Pair, size: int) -> None:
    """Their ids are random, so each broker's are compared with the order in which Java returns them."""
    group_id = group(pair, "order")
    request = JoinGroupRequest(
        group_id=group_id,
        session_timeout_ms=60_000,
        rebalance_timeout_ms=60_000,
        protocol_type="consumer",
        protocols=[JoinGroupRequest.JoinGroupRequestProtocol(name="range", metadata=subscription("t"))],
    )
    for side in pair.sides:
        members: list[str] = []
        clients = [RawClient(side.port) for _ in range(size)]
        for number, client in enumerate(clients, 1):
            client.send(client.frame(request, 3))
            while len(found := members_of(side, group_id)) < number:
                pass
            members += [each for each in found if each not in members]
            assert found == map_order(members), side.name
        for client in clients:
            client.socket.close()


def members_of(side: Side, group_id: str) -> list[str]:
    answer = side.demand(DescribeGroupsRequest(groups=[group_id]), 5)
    return [each.member_id for each in answer.groups[0].members]
