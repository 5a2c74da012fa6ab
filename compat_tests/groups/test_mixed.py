"""Groups of several clients, groups on their way from one protocol to the other, and subscriptions that grow."""

from __future__ import annotations

import uuid

import pytest

from .flavours import BY_NAME, FLAVOURS
from .member import Member
from .stage import LONG_CALM_SECONDS, Stage, until

# Without kafka-go, which as the leader fails on subscriptions written by librdkafka (0.4.51, with Kafka too).
RANGE = [
    one
    for one in FLAVOURS
    if one.protocol == "classic" and one.assignor == "range" and one.client != "kafka-go"
]
GROWING = [f"{client}-{kind}" for client in ("confluent-kafka", "java") for kind in ("classic", "consumer")]


def test_clients_of_all_makes_share_a_group(stage: Stage) -> None:
    partitions = stage.new_topic(2 * len(RANGE))
    topic = partitions[0].topic
    members = [stage.member(one, topic) for one in RANGE]
    for member in members:
        member.join()
    stage.settled(members, partitions)
    stage.delivered(stage.produce(partitions, 2), members)
    for leader in range(3):  # whichever client led, or leads now, another one assigns next
        crashed = members.pop(0)
        crashed.crash() if leader % 2 else crashed.leave()
        stage.settled(members, partitions)
        stage.delivered(stage.produce(partitions), members)


@pytest.mark.parametrize("name", ["kafka-python-classic", "confluent-kafka-classic", "java-classic"])
def test_a_member_with_no_assignor_in_common_is_refused_and_the_group_goes_on(
    name: str, stage: Stage
) -> None:
    partitions = stage.new_topic()
    topic = partitions[0].topic
    first = stage.member(BY_NAME["aiokafka-classic"], topic)
    stranger = stage.member(BY_NAME[name], topic, assignor="cooperative-sticky")
    first.join()
    stage.settled([first], partitions)
    told = len(first.rebalances)
    stranger.join()
    until("the stranger gives up", lambda: stranger.gave_up, lambda: stranger)
    assert "inconsistent" in stranger.gave_up[0].lower(), stranger.gave_up
    stage.delivered(stage.produce(partitions), [first])
    assert len(first.rebalances) == told


@pytest.mark.parametrize(
    ("classic", "consumer"),
    [
        ("java-classic", "java-consumer"),
        ("confluent-kafka-classic", "confluent-kafka-consumer"),
        ("kafka-python-classic", "franz-go-consumer"),
        ("sarama-classic", "confluent-kafka-consumer"),
    ],
)
def test_a_group_moves_to_the_consumer_protocol_and_back(classic: str, consumer: str, stage: Stage) -> None:
    partitions = stage.new_topic(6)
    topic = partitions[0].topic
    old = stage.members(BY_NAME[classic], topic, *[""] * 3)
    new = stage.members(BY_NAME[consumer], topic, *[""] * 2)

    def settled(members: list[Member], group_type: str) -> None:
        stage.settled(members, partitions, LONG_CALM_SECONDS)
        assert stage.group_type() == group_type
        stage.delivered(stage.produce(partitions, 2), members)
        for member in members:
            member.ask("commit")

    old[0].join()
    old[1].join()
    settled(old[:2], "Classic")
    new[0].join()
    settled([*old[:2], new[0]], "Consumer")
    old[0].leave()
    new[1].join()
    settled([old[1], *new], "Consumer")
    old[1].leave()
    settled(new, "Consumer")
    old[2].join()
    settled([old[2], *new], "Consumer")
    for member in new:
        member.leave()
    settled([old[2]], "Classic")
    assert all(old[2].committed(partition) == 12 for partition in partitions)


@pytest.mark.parametrize("name", GROWING)
def test_new_partitions_and_new_topics_that_match_are_shared_out(name: str, stage: Stage) -> None:
    prefix = f"grow-{uuid.uuid4().hex[:8]}"
    partitions = stage.new_topic(2, f"{prefix}-a")
    stage.new_topic(2, f"other-{prefix}")
    members = stage.members(BY_NAME[name], f"^{prefix}-.*", "", "")
    for member in members:
        member.join()
    stage.settled(members, partitions)
    partitions = stage.add_partitions(partitions[0].topic, 4)
    stage.settled(members, partitions)
    partitions += stage.new_topic(4, f"{prefix}-b")
    stage.settled(members, partitions)
    stage.delivered(stage.produce(partitions), members)


def test_a_pattern_that_is_none_is_refused(stage: Stage) -> None:
    member = stage.member(BY_NAME["java-consumer"], "^unclosed(")  # librdkafka refuses it itself
    member.join()
    until("it gives up", lambda: member.gave_up, lambda: member)
    assert "regular" in member.gave_up[0].lower(), member.gave_up
