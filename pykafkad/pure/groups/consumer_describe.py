"""A consumer group as ConsumerGroupDescribe shows it. Partitions that a member has not revoked yet count as its own."""

from __future__ import annotations

from collections.abc import Generator, Iterable, Mapping

from pykafkad.messages import ConsumerGroupDescribeResponse
from pykafkad.pure.groups.classic_member import most_voted
from pykafkad.pure.groups.consumer import ConsumerGroup
from pykafkad.pure.groups.consumer_member import Member
from pykafkad.pure.groups.consumer_target import assignor_names
from pykafkad.pure.timeline import bits_for, in_order, place_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pykafkad.pure.groups.settings import Topics

DescribedGroup = ConsumerGroupDescribeResponse.DescribedGroup
DescribedMember = ConsumerGroupDescribeResponse.Member
Assignment = ConsumerGroupDescribeResponse.Assignment
TopicPartitions = ConsumerGroupDescribeResponse.TopicPartitions

CLASSIC_MEMBER, CONSUMER_MEMBER = 0, 1


def described(group: ConsumerGroup) -> Generator[None, None, DescribedGroup]:
    """A generator that describes one member at a time, in Kafka's order."""
    settings = group.groups.settings
    counts = group.assignor_counts
    if counts:
        assignor = most_voted(name for name, votes in counts.items() for _ in range(votes))
    else:
        assignor = assignor_names(settings.consumer_assignors)[0]
    answer = DescribedGroup(
        group_id=group.group_id,
        group_state=group.state_name,
        group_epoch=group.epoch,
        assignment_epoch=group.target_epoch,
        assignor_name=assignor,
    )
    bits = bits_for(group.most + 1)  # the records of a new member put it into Kafka's map one after the other
    members, places = [], []
    for member in list(group.members.values()):
        members.append(member_of(group, member, settings.topics))
        places.append(place_of(member.member_id, bits))
        yield
    answer.members = in_order(members, places)
    return answer


def member_of(group: ConsumerGroup, member: Member, topics: Topics) -> DescribedMember:
    current: dict[bytes, set[int]] = {}
    for epochs in (member.assigned, member.revoking):
        for topic_id, partitions in epochs.items():
            current.setdefault(topic_id, set()).update(partitions)
    return DescribedMember(
        member_id=member.member_id,
        instance_id=member.instance_id,
        rack_id=member.rack_id,
        member_epoch=member.epoch,
        client_id=member.client_id,
        client_host=member.client_host,
        subscribed_topic_names=sorted(member.topic_names),
        subscribed_topic_regex=member.regex,
        assignment=assignment_of(current, topics),
        target_assignment=assignment_of(group.shares.get(member.member_id, {}), topics),
        member_type=CONSUMER_MEMBER if member.classic is None else CLASSIC_MEMBER,
    )


def assignment_of(partitions: Mapping[bytes, Iterable[int]], topics: Topics) -> Assignment:
    """An assignment by topic names; topics that do not exist any more are left out."""
    there = topics.topics_by_id
    return Assignment(
        topic_partitions=[
            TopicPartitions(
                topic_id=topic_id, topic_name=there[topic_id].name, partitions=sorted(partitions[topic_id])
            )
            for topic_id in sorted(partitions)
            if topic_id in there
        ]
    )
