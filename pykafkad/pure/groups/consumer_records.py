"""The records of a consumer group in `__consumer_offsets`.

    3 group: epoch, hash of its topics      6 target assignment: epoch, time  5 member: its subscription
    4 topics (before Kafka 4.1)             7 target assignment of a member   8 member: epoch, state, partitions
16 a regular expression and the topics that match it

A member is deleted by the tombstones of 8, 7 and 5, in this order. Invariant: lists are sorted, so that the same state
always gives the same bytes.
"""

from __future__ import annotations

from collections.abc import Generator, Sequence

from pykafkad.messages import (
    ConsumerGroupCurrentMemberAssignmentKey,
    ConsumerGroupCurrentMemberAssignmentValue,
    ConsumerGroupMemberMetadataKey,
    ConsumerGroupMemberMetadataValue,
    ConsumerGroupMetadataKey,
    ConsumerGroupMetadataValue,
    ConsumerGroupPartitionMetadataKey,
    ConsumerGroupRegularExpressionKey,
    ConsumerGroupRegularExpressionValue,
    ConsumerGroupTargetAssignmentMemberKey,
    ConsumerGroupTargetAssignmentMemberValue,
    ConsumerGroupTargetAssignmentMetadataKey,
    ConsumerGroupTargetAssignmentMetadataValue,
)
from pykafkad.pure.effects import Record
from pykafkad.pure.groups.assignors import Share
from pykafkad.pure.groups.consumer_member import NO_EPOCHS, STATES, UNKNOWN, Classic, Epochs, Member
from pykafkad.pure.sharing import set_of_numbers, set_of_texts

AT_ONCE = 1_000  # partitions, or names of topics
GROUP, TOPICS, MEMBER, TARGET, TARGET_OF_MEMBER, ASSIGNMENT, REGEX = 3, 4, 5, 6, 7, 8, 16

CurrentTopic = ConsumerGroupCurrentMemberAssignmentValue.TopicPartitions
TargetTopic = ConsumerGroupTargetAssignmentMemberValue.TopicPartition
ClassicMetadata = ConsumerGroupMemberMetadataValue.ClassicMemberMetadata
ClassicProtocol = ConsumerGroupMemberMetadataValue.ClassicProtocol


def group_record(group_id: str, epoch: int, metadata_hash: int) -> Record:
    value = ConsumerGroupMetadataValue(epoch=epoch, metadata_hash=metadata_hash)
    return ConsumerGroupMetadataKey(group_id=group_id), value


def group_tombstone(group_id: str) -> Record:
    return ConsumerGroupMetadataKey(group_id=group_id), None


def topics_tombstone(group_id: str) -> Record:
    return ConsumerGroupPartitionMetadataKey(group_id=group_id), None


def member_record(group_id: str, member: Member, names: Sequence[str] | None = None) -> Record:
    """`names` are the member's topics where somebody has them in order: sorting very many takes long."""
    if names is None or len(names) != len(member.topic_names):
        names = list(member.topic_names)
    value = ConsumerGroupMemberMetadataValue(
        instance_id=member.instance_id,
        rack_id=member.rack_id,
        client_id=member.client_id,
        client_host=member.client_host,
        subscribed_topic_names=sorted(names),
        subscribed_topic_regex=member.regex,
        rebalance_timeout_ms=member.rebalance_timeout_ms,
        server_assignor=member.assignor,
        classic_member_metadata=None if member.classic is None else classic_metadata(member.classic),
    )
    return ConsumerGroupMemberMetadataKey(group_id=group_id, member_id=member.member_id), value


def classic_metadata(classic: Classic) -> ClassicMetadata:
    return ClassicMetadata(
        session_timeout_ms=classic.session_timeout_ms,
        supported_protocols=[ClassicProtocol(name=name, metadata=data) for name, data in classic.protocols],
    )


def member_tombstone(group_id: str, member_id: str) -> Record:
    return ConsumerGroupMemberMetadataKey(group_id=group_id, member_id=member_id), None


def target_record(group_id: str, epoch: int, time_ms: int) -> Record:
    value = ConsumerGroupTargetAssignmentMetadataValue(assignment_epoch=epoch, assignment_timestamp=time_ms)
    return ConsumerGroupTargetAssignmentMetadataKey(group_id=group_id), value


def target_tombstone(group_id: str) -> Record:
    return ConsumerGroupTargetAssignmentMetadataKey(group_id=group_id), None


def share_record(group_id: str, member_id: str, share: Share) -> Record:
    topics = [TargetTopic(topic_id=each, partitions=sorted(share[each])) for each in sorted(share)]
    value = ConsumerGroupTargetAssignmentMemberValue(topic_partitions=topics)
    return ConsumerGroupTargetAssignmentMemberKey(group_id=group_id, member_id=member_id), value


def share_tombstone(group_id: str, member_id: str) -> Record:
    return ConsumerGroupTargetAssignmentMemberKey(group_id=group_id, member_id=member_id), None


def assignment_record(group_id: str, member: Member) -> Record:
    value = ConsumerGroupCurrentMemberAssignmentValue(
        member_epoch=member.epoch,
        previous_member_epoch=member.previous_epoch,
        state=member.state,
        assigned_partitions=current_topics(member.assigned),
        partitions_pending_revocation=current_topics(member.revoking),
    )
    return ConsumerGroupCurrentMemberAssignmentKey(group_id=group_id, member_id=member.member_id), value


def assignment_tombstone(group_id: str, member_id: str) -> Record:
    return ConsumerGroupCurrentMemberAssignmentKey(group_id=group_id, member_id=member_id), None


def current_topics(epochs: Epochs) -> list[CurrentTopic]:
    topics = []
    for topic_id in sorted(epochs):
        partitions = sorted(epochs[topic_id])
        assigned_at = [epochs[topic_id][partition] for partition in partitions]
        topics.append(CurrentTopic(topic_id=topic_id, partitions=partitions, assignment_epochs=assigned_at))
    return topics


def regex_record(group_id: str, pattern: str, topics: frozenset[str], version: int, time_ms: int) -> Record:
    value = ConsumerGroupRegularExpressionValue(topics=sorted(topics), version=version, timestamp=time_ms)
    return ConsumerGroupRegularExpressionKey(group_id=group_id, regular_expression=pattern), value


def regex_tombstone(group_id: str, pattern: str) -> Record:
    return ConsumerGroupRegularExpressionKey(group_id=group_id, regular_expression=pattern), None


def member_tombstones(group_id: str, member_id: str) -> list[Record]:
    return [
        assignment_tombstone(group_id, member_id),
        share_tombstone(group_id, member_id),
        member_tombstone(group_id, member_id),
    ]


# -- reading, in steps where a record may have very many topics and partitions


def with_metadata(member: Member, value: ConsumerGroupMemberMetadataValue) -> Generator[None, None, Member]:
    names = yield from set_of(value.subscribed_topic_names)
    metadata = value.classic_member_metadata
    classic = None
    if metadata is not None:
        protocols = tuple((each.name, bytes(each.metadata)) for each in metadata.supported_protocols)
        classic = Classic(metadata.session_timeout_ms, protocols)
    return member.but(
        instance_id=value.instance_id,
        rack_id=value.rack_id,
        client_id=value.client_id,
        client_host=value.client_host,
        topic_names=names,
        regex=value.subscribed_topic_regex or "",
        rebalance_timeout_ms=value.rebalance_timeout_ms,
        assignor=value.server_assignor,
        classic=classic,
    )


def set_of(texts: Sequence[str]) -> Generator[None, None, frozenset[str]]:
    if len(texts) <= AT_ONCE:
        return set_of_texts(texts)
    found: set[str] = set()
    for start in range(0, len(texts), AT_ONCE):
        found.update(texts[start : start + AT_ONCE])
        yield
    return frozenset(found)


def with_assignment(
    member: Member, value: ConsumerGroupCurrentMemberAssignmentValue
) -> Generator[None, None, Member]:
    assigned = yield from epochs_of(value.assigned_partitions, value.member_epoch)
    revoking = yield from epochs_of(value.partitions_pending_revocation, value.member_epoch)
    return member.but(
        epoch=value.member_epoch,
        previous_epoch=value.previous_member_epoch,
        state=value.state if value.state in STATES else UNKNOWN,
        assigned=assigned,
        revoking=revoking,
    )


def epochs_of(topics: Sequence[CurrentTopic], member_epoch: int) -> Generator[None, None, Epochs]:
    """Before Kafka 4.3 the epochs of assignments were not written: then the member's epoch is used."""
    found: Epochs = {}
    for topic in topics:
        assigned_at = topic.assignment_epochs
        if assigned_at is None or len(assigned_at) != len(topic.partitions):
            assigned_at = [max(member_epoch, 0)] * len(topic.partitions)
        epochs = found[topic.topic_id] = {}
        for start in range(0, len(assigned_at), AT_ONCE):
            end = start + AT_ONCE
            epochs.update(zip(topic.partitions[start:end], assigned_at[start:end], strict=True))
            yield
    return found or NO_EPOCHS


def share_of(value: ConsumerGroupTargetAssignmentMemberValue) -> Generator[None, None, Share]:
    share = {}
    for topic in value.topic_partitions:
        share[topic.topic_id] = set_of_numbers(topic.partitions)
        yield
    return share
