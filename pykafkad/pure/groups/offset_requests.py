"""OffsetCommit, OffsetFetch and OffsetDelete of one group: who may, and what is answered.

Topics are named here and known to exist: the handlers see to that. KIP-98 and 447 (stable offsets), 496 (delete),
848 (member epochs), KIP-1094's topic ids: an offset that was committed for another topic of the same name is none.
"""

from __future__ import annotations

from typing import Any

from pykafkad import errors
from pykafkad.errors import NONE, OFFSET_METADATA_TOO_LARGE, KafkaError
from pykafkad.messages import (
    OffsetCommitKey,
    OffsetCommitResponse,
    OffsetCommitValue,
    OffsetDeleteResponse,
    OffsetFetchResponse,
)
from pykafkad.pure.groups.effects import Caller, CheckPartition, Effects, answered
from pykafkad.pure.groups.offsets import Offset, tombstone

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pykafkad.pure.groups.registry import Group, Groups

CommittedTopic = OffsetCommitResponse.OffsetCommitResponseTopic
CommittedPartition = OffsetCommitResponse.OffsetCommitResponsePartition
FetchedGroup = OffsetFetchResponse.OffsetFetchResponseGroup
FetchedTopic = OffsetFetchResponse.OffsetFetchResponseTopics
FetchedPartition = OffsetFetchResponse.OffsetFetchResponsePartitions
DeletedTopic = OffsetDeleteResponse.OffsetDeleteResponseTopic
DeletedPartition = OffsetDeleteResponse.OffsetDeleteResponsePartition

DEFAULT_RETENTION = -1
NEW_ERRORS_SINCE = 9  # the version of OffsetCommit that knows GROUP_ID_NOT_FOUND
NO_OFFSET = -1
NO_TOPIC_ID = bytes(16)


# -- commit


def commit(groups: Groups, request: Any, caller: Caller, now_ms: int) -> Effects:
    group_id = request.group_id
    is_new = group_id not in groups.by_id
    group, check = group_of_commit(groups, request, caller.version, now_ms)
    effects = group.on_offset_commit(request.member_id, now_ms) or Effects()
    if is_new:
        effects.on_refused = lambda code: forget_group(groups, group_id, code)
    retention_ms = request.retention_time_ms
    expire_ms = -1 if retention_ms == DEFAULT_RETENTION else as_int64(now_ms + retention_ms)
    longest = groups.settings.offset_metadata_max_bytes
    records = effects.records
    topics = []
    for topic in request.topics:
        name, topic_id = topic.name, topic.topic_id
        answers = []
        for item in topic.partitions:
            index = item.partition_index
            metadata = item.committed_metadata or ""
            if metadata and is_longer(metadata, longest):
                answers.append(
                    CommittedPartition(partition_index=index, error_code=OFFSET_METADATA_TOO_LARGE)
                )
                continue
            if check is not None:
                check(name, topic_id, index)
            answers.append(CommittedPartition(partition_index=index))
            value = OffsetCommitValue(
                offset=item.committed_offset,
                leader_epoch=item.committed_leader_epoch,
                metadata=metadata,
                commit_timestamp=now_ms,
                expire_timestamp=expire_ms,
                topic_id=topic_id,
            )
            records.append((OffsetCommitKey(group=group_id, topic=name, partition=index), value))
        topics.append(CommittedTopic(name=name, topic_id=topic_id, partitions=answers))
    effects.replies.append((caller, OffsetCommitResponse(topics=topics)))
    return effects


def group_of_commit(
    groups: Groups, request: Any, version: int, now_ms: int
) -> tuple[Group, CheckPartition | None]:
    """The group, if this member may commit now, and what limits that to some partitions. Who is in no group makes one
    by committing, as a tool does."""
    epoch = request.generation_id_or_member_epoch
    group = groups.by_id.get(request.group_id)
    if group is None:
        if epoch >= 0:
            new = version >= NEW_ERRORS_SINCE
            raise KafkaError(errors.GROUP_ID_NOT_FOUND if new else errors.ILLEGAL_GENERATION)
        group = groups.new_classic(request.group_id, now_ms)
    check = group.check_offset_commit(request.member_id, request.group_instance_id, epoch, False, version)
    return group, check


def forget_group(groups: Groups, group_id: str, code: int) -> Effects:
    """The log does not take its first offsets: there is no such group."""
    del groups.by_id[group_id]
    raise KafkaError(code)


def as_int64(number: int) -> int:
    """A time so far away that it does not fit is in the past, as in Kafka."""
    return (number + (1 << 63)) % (1 << 64) - (1 << 63)


def is_longer(text: str, characters: int) -> bool:
    """Whether a text has more UTF-16 code units than that, which is what Kafka counts."""
    length = len(text)
    if length * 2 <= characters:
        return False
    return length > characters or len(text.encode("utf-16-le", "surrogatepass")) // 2 > characters


# -- fetch


def fetch(groups: Groups, request: Any, require_stable: bool) -> Any:
    """A group that is not there has no offsets, which is no error."""
    group_id = request.group_id
    group = groups.by_id.get(group_id)
    if group is not None:
        group.check_offset_fetch(request.member_id, request.member_epoch)
    offsets = groups.offsets
    known = offsets.by_group.get(group_id, {}) if group is not None else {}
    topics = []
    if request.topics is None:
        asked: list[tuple[str, bytes, Any]] = [(name, NO_TOPIC_ID, rows) for name, rows in known.items()]
    else:
        asked = [(topic.name, topic.topic_id, topic.partition_indexes) for topic in request.topics]
    for name, topic_id, indexes in asked:
        committed = known.get(name, {})
        answers = []
        for index in indexes:
            if require_stable and offsets.is_pending(group_id, name, index):
                answers.append(unstable(index))
            else:
                answers.append(fetched(index, committed.get(index), topic_id))
        topics.append(FetchedTopic(name=name, topic_id=topic_id, partitions=answers))
    return FetchedGroup(group_id=group_id, topics=topics)


def fetched(index: int, offset: Offset | None, topic_id: bytes) -> Any:
    if offset is None or (offset.topic_id != topic_id and NO_TOPIC_ID not in (offset.topic_id, topic_id)):
        return FetchedPartition(partition_index=index, committed_offset=NO_OFFSET, metadata="")
    return FetchedPartition(
        partition_index=index,
        committed_offset=offset.offset,
        committed_leader_epoch=offset.leader_epoch,
        metadata=offset.metadata,
    )


def unstable(index: int) -> Any:
    return FetchedPartition(
        partition_index=index,
        committed_offset=NO_OFFSET,
        metadata="",
        error_code=errors.UNSTABLE_OFFSET_COMMIT,
    )


# -- delete


def delete(groups: Groups, request: Any, caller: Caller) -> Effects:
    group = groups.group(request.group_id)
    group.check_offset_delete()
    effects = Effects()
    topics = []
    for topic in request.topics:
        subscribed = group.is_subscribed_to(topic.name)
        code = errors.GROUP_SUBSCRIBED_TO_TOPIC if subscribed else NONE
        answers = []
        for item in topic.partitions:
            answers.append(DeletedPartition(partition_index=item.partition_index, error_code=code))
            if not subscribed and exists(groups, request.group_id, topic.name, item.partition_index):
                effects.write(*tombstone(request.group_id, topic.name, item.partition_index))
        topics.append(DeletedTopic(name=topic.name, partitions=answers))
    effects.add(answered(caller, OffsetDeleteResponse(topics=topics)))
    return effects


def exists(groups: Groups, group_id: str, topic: str, partition: int) -> bool:
    offsets = groups.offsets
    return offsets.get(group_id, topic, partition) is not None or offsets.is_pending(
        group_id, topic, partition
    )
