"""kill -9 while groups commit: acknowledged offsets are there, no offset is there that was not sent, members continue."""

from __future__ import annotations

import random
import threading
import time
from typing import Any

from pykafkad.messages import (
    ConsumerGroupDescribeRequest,
    ConsumerGroupHeartbeatRequest,
    DescribeGroupsRequest,
    FindCoordinatorRequest,
    HeartbeatRequest,
    JoinGroupRequest,
    ListGroupsRequest,
    OffsetCommitRequest,
    OffsetFetchRequest,
    SyncGroupRequest,
)
from pykafkad.testing import Broker

LOAD_IN_PROGRESS = 14
MEMBER_ID_REQUIRED = 79
GROUPS = 4
PARTITIONS = 3
READY_SECONDS = 30.0
SMALL = {"offsets.topic.num.partitions": 3, "offsets.load.buffer.size": 4096}


class Committer:
    """One client that commits for one group, a higher number each time, until its broker is gone."""

    def __init__(self, group_id: str) -> None:
        self.group_id = group_id
        self.sent = 0
        self.acknowledged = 0

    def run(self, broker: Broker) -> None:
        try:
            with broker.client() as client:
                while True:
                    self.sent += 1
                    answer = client.call(commit(self.group_id, self.sent), 8)
                    assert [row.error_code for row in answer.topics[0].partitions] == [0] * PARTITIONS
                    self.acknowledged = self.sent
        except ConnectionError:
            pass


def commit(group_id: str, offset: int, **fields: Any) -> Any:
    kind = OffsetCommitRequest
    rows = [
        kind.OffsetCommitRequestPartition(
            partition_index=index, committed_offset=offset, committed_metadata="m"
        )
        for index in range(PARTITIONS)
    ]
    return kind(
        group_id=group_id, topics=[kind.OffsetCommitRequestTopic(name="t", partitions=rows)], **fields
    )


def committed(client: Any, group_id: str) -> set[int]:
    """The committed offsets, once the group is loaded."""
    kind = OffsetFetchRequest
    request = kind(groups=[kind.OffsetFetchRequestGroup(group_id=group_id, topics=None)])
    deadline = time.monotonic() + READY_SECONDS
    while True:
        answer = client.call(request, 8).groups[0]
        if answer.error_code != LOAD_IN_PROGRESS:
            break
        assert time.monotonic() < deadline
        time.sleep(0.01)
    assert answer.error_code == 0
    return {row.committed_offset for topic in answer.topics for row in topic.partitions}


def find_coordinator(broker: Broker) -> None:
    with broker.client() as client:
        answer = client.call(FindCoordinatorRequest(coordinator_keys=["g"]), 4)
        assert answer.coordinators[0].error_code == 0


def test_no_acknowledged_commit_is_lost() -> None:
    chance = random.Random(20261118)
    committers = [Committer(f"group-{index}") for index in range(GROUPS)]
    with Broker({"t": PARTITIONS}, SMALL) as broker:
        find_coordinator(broker)
        for _ in range(5):
            threads = [threading.Thread(target=each.run, args=(broker,)) for each in committers]
            for thread in threads:
                thread.start()
            time.sleep(chance.uniform(0.05, 0.25))
            broker.kill()
            for thread in threads:
                thread.join()
            broker.port = 0
            broker.restart()
            with broker.client() as client:
                for each in committers:
                    # the rows of a commit are one batch, so all of them are there or none
                    (offset,) = committed(client, each.group_id)
                    assert each.acknowledged <= offset <= each.sent
                    each.sent = each.acknowledged = offset
                listed = client.call(ListGroupsRequest(), 5)
                assert {group.group_id for group in listed.groups} == {each.group_id for each in committers}
        assert min(each.acknowledged for each in committers) > 100


def join(client: Any, group_id: str) -> tuple[str, int]:
    """A member alone in its group, with an assignment: its id and the generation."""
    protocol = JoinGroupRequest.JoinGroupRequestProtocol(name="range", metadata=b"who knows")
    fields: dict[str, Any] = {
        "group_id": group_id,
        "session_timeout_ms": 30_000,
        "rebalance_timeout_ms": 30_000,
        "protocol_type": "something",
        "protocols": [protocol],
    }
    answer = client.call(JoinGroupRequest(**fields), 7)
    assert answer.error_code == MEMBER_ID_REQUIRED
    answer = client.call(JoinGroupRequest(**fields, member_id=answer.member_id), 7)
    assert answer.error_code == 0
    given = SyncGroupRequest.SyncGroupRequestAssignment(member_id=answer.member_id, assignment=b"all of it")
    sync = SyncGroupRequest(
        group_id=group_id,
        generation_id=answer.generation_id,
        member_id=answer.member_id,
        assignments=[given],
    )
    assert client.call(sync, 4).error_code == 0
    return answer.member_id, answer.generation_id


def described(client: Any, group_id: str) -> Any:
    return client.call(DescribeGroupsRequest(groups=[group_id]), 5).groups[0]


def test_members_go_on_after_a_crash_as_if_nothing_had_been() -> None:
    with Broker({"t": PARTITIONS}, {**SMALL, "group.initial.rebalance.delay.ms": 0}) as broker:
        find_coordinator(broker)
        with broker.client() as client:
            member_id, generation = join(client, "g")
            fields = {"member_id": member_id, "generation_id_or_member_epoch": generation}
            before = described(client, "g")
            assert before.group_state == "Stable"
        for offset in (1, 2):
            with broker.client() as client:
                answer = client.call(commit("g", offset, **fields), 8)
                assert answer.topics[0].partitions[0].error_code == 0
            broker.kill()
            broker.port = 0
            broker.restart()
            with broker.client() as client:
                assert committed(client, "g") == {offset}
                assert described(client, "g") == before
                beat = HeartbeatRequest(group_id="g", generation_id=generation, member_id=member_id)
                assert client.call(beat, 4).error_code == 0


def test_consumers_go_on_after_a_crash_as_if_nothing_had_been() -> None:
    member_id = "A" * 21 + "Q"
    with Broker({"t": PARTITIONS}, SMALL) as broker:
        find_coordinator(broker)
        with broker.client() as client:
            asked: dict[str, Any] = {"group_id": "g", "member_id": member_id}
            first: dict[str, Any] = {
                "rebalance_timeout_ms": 60_000,
                "subscribed_topic_names": ["t"],
                "topic_partitions": [],
            }
            answer = client.call(ConsumerGroupHeartbeatRequest(**asked, **first, member_epoch=0), 1)
            assert answer.error_code == 0
            epoch = answer.member_epoch
            while not answer.assignment or not answer.assignment.topic_partitions:
                answer = client.call(ConsumerGroupHeartbeatRequest(**asked, member_epoch=epoch), 1)
                assert answer.error_code == 0
                epoch = answer.member_epoch
            owned = [
                ConsumerGroupHeartbeatRequest.TopicPartitions(
                    topic_id=each.topic_id, partitions=each.partitions
                )
                for each in answer.assignment.topic_partitions
            ]
            before = described_consumers(client)
            assert before.group_state == "Stable"
        for offset in (1, 2):
            with broker.client() as client:
                fields = {"member_id": member_id, "generation_id_or_member_epoch": epoch}
                answer = client.call(commit("g", offset, **fields), 9)
                assert answer.topics[0].partitions[0].error_code == 0
            broker.kill()
            broker.port = 0
            broker.restart()
            with broker.client() as client:
                assert committed(client, "g") == {offset}
                assert described_consumers(client) == before
                beat = ConsumerGroupHeartbeatRequest(**asked, member_epoch=epoch, topic_partitions=owned)
                answer = client.call(beat, 1)
                assert (answer.error_code, answer.member_epoch) == (0, epoch)


def described_consumers(client: Any) -> Any:
    return client.call(ConsumerGroupDescribeRequest(group_ids=["g"]), 1).groups[0]
