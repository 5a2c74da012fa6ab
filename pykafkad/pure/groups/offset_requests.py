"""OffsetCommit, OffsetFetch and OffsetDelete of one group: who is allowed to, and the answers.

The handlers make sure that topics have names and exist. KIP-98 and 447 (stable offsets), 496 (delete), 848 (member
epochs), KIP-1094's topic ids: an offset that was committed for another topic of the same name is ignored.
"""

from __future__ import annotations

from itertools import starmap

from pykafkad import errors
from pykafkad.errors import NONE, OFFSET_METADATA_TOO_LARGE, KafkaError
from pykafkad.hot.wire import WireError
from pykafkad.messages import (
    OffsetCommitKey,
    OffsetCommitResponse,
    OffsetCommitValue,
    OffsetDeleteResponse,
    OffsetFetchResponse,
)
from pykafkad.pure.effects import Caller, Effects, Record, answered
from pykafkad.pure.groups.offsets import Offset, tombstone
from pykafkad.pure.groups.records import encode as encode_record
from pykafkad.uuids import ZERO as NO_TOPIC_ID

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from pykafkad.messages import (
        OffsetCommitRequest,
        OffsetDeleteRequest,
        OffsetFetchRequest,
        TxnOffsetCommitRequest,
        TxnOffsetCommitResponse,
    )
    from pykafkad.pure.groups.offsets import Offsets, Table
    from pykafkad.pure.groups.table import CheckPartition, Group, GroupTable

    AskedPartition = (
        OffsetCommitRequest.OffsetCommitRequestPartition
        | TxnOffsetCommitRequest.TxnOffsetCommitRequestPartition
    )
    AskedGroup = OffsetFetchRequest.OffsetFetchRequestGroup

CommittedTopic = OffsetCommitResponse.OffsetCommitResponseTopic
CommittedPartition = OffsetCommitResponse.OffsetCommitResponsePartition
FetchedGroup = OffsetFetchResponse.OffsetFetchResponseGroup
FetchedTopic = OffsetFetchResponse.OffsetFetchResponseTopics
FetchedPartition = OffsetFetchResponse.OffsetFetchResponsePartitions
DeletedTopic = OffsetDeleteResponse.OffsetDeleteResponseTopic
DeletedPartition = OffsetDeleteResponse.OffsetDeleteResponsePartition

DEFAULT_RETENTION = -1
NOW = -1  # as the time of a commit
NEW_ERRORS_SINCE = 9  # the first version of OffsetCommit that has GROUP_ID_NOT_FOUND
NO_OFFSET = -1
TOMBSTONES_AT_ONCE = 1_000  # of a topic that was deleted


# -- commit


def commit_offsets(groups: GroupTable, request: OffsetCommitRequest, caller: Caller, now_ms: int) -> Effects:
    """A commit of few partitions."""
    longest = groups.settings.offset_metadata_max_bytes
    topics: list[CommittedTopic] = []
    records: list[Record] = []
    for topic in request.topics:
        name, topic_id = topic.name, topic.topic_id
        answers = committed(request, name, topic_id, topic.partitions, longest, now_ms, records)
        topics.append(CommittedTopic(name=name, topic_id=topic_id, partitions=answers))
    return commit(groups, request, caller, now_ms, records, OffsetCommitResponse(topics=topics))


class Commit:
    """A commit of many partitions, which is prepared in slices: its answers and its encoded records."""

    __slots__ = ("answers", "encoded", "longest", "now_ms", "records", "request")

    def __init__(self, request: OffsetCommitRequest, longest: int, now_ms: int) -> None:
        self.request = request
        self.longest = longest  # metadata, in characters
        self.now_ms = now_ms
        self.answers: list[CommittedTopic] = []  # one for each topic of the request
        self.records: list[Record] = []
        self.encoded: list[tuple[bytes, bytes | None]] | None = []

    def begin_topic(self, name: str, topic_id: bytes) -> None:
        self.answers.append(CommittedTopic(name=name, topic_id=topic_id, partitions=[]))

    def add(self, items: Iterable[AskedPartition]) -> None:
        """Add partitions of the topic that was begun last."""
        topic = self.answers[-1]
        records: list[Record] = []
        topic.partitions += committed(
            self.request, topic.name, topic.topic_id, items, self.longest, self.now_ms, records
        )
        self.records += records
        if self.encoded is not None:
            try:
                self.encoded += starmap(encode_record, records)
            except WireError:
                self.encoded = None  # that a record cannot be written is noticed when it is to be written

    def refuse(self, code: int) -> None:
        """Nothing of the commit is stored."""
        for topic in self.answers:
            for row in topic.partitions:
                row.error_code = code

    def take_effect(
        self, groups: GroupTable, caller: Caller, response: OffsetCommitResponse | TxnOffsetCommitResponse
    ) -> Effects:
        effects = commit(groups, self.request, caller, self.now_ms, self.records, response)
        effects.encoded = self.encoded
        return effects


def committed(
    request: OffsetCommitRequest,
    name: str,
    topic_id: bytes,
    items: Iterable[AskedPartition],
    longest: int,
    now_ms: int,
    records: list[Record],
) -> list[CommittedPartition]:
    """The answers for partitions of a topic, whose records are added to `records`."""
    group_id, retention_ms = request.group_id, request.retention_time_ms
    expire_ms = -1 if retention_ms == DEFAULT_RETENTION else as_int64(now_ms + retention_ms)
    answers: list[CommittedPartition] = []
    for item in items:
        index = item.partition_index
        metadata = item.committed_metadata or ""
        if metadata and is_longer(metadata, longest):
            answers.append(CommittedPartition(partition_index=index, error_code=OFFSET_METADATA_TOO_LARGE))
            continue
        answers.append(CommittedPartition(partition_index=index))
        said_ms = getattr(item, "commit_timestamp", NOW)  # in version 1 alone
        value = OffsetCommitValue(
            offset=item.committed_offset,
            leader_epoch=item.committed_leader_epoch,
            metadata=metadata,
            commit_timestamp=now_ms if said_ms == NOW else said_ms,
            expire_timestamp=expire_ms,
            topic_id=topic_id,
        )
        records.append((OffsetCommitKey(group=group_id, topic=name, partition=index), value))
    return answers


def commit(
    groups: GroupTable,
    request: OffsetCommitRequest,
    caller: Caller,
    now_ms: int,
    records: list[Record],
    response: OffsetCommitResponse | TxnOffsetCommitResponse,
) -> Effects:
    group_id = request.group_id
    is_new = group_id not in groups.by_id
    group, check = group_of_commit(groups, request, caller.version, now_ms)
    if check is not None:
        for key, value in records:
            check(key.topic, value.topic_id, key.partition)
    effects = group.on_offset_commit(request.member_id, now_ms) or Effects()
    if is_new:
        effects.on_refused = lambda code: forget_group(groups, group_id, code)
    effects.records += records
    effects.replies.append((caller, response))
    return effects


def commit_in_transaction(
    groups: GroupTable,
    made: Commit,
    caller: Caller,
    producer: tuple[int, int],
    response: OffsetCommitResponse | TxnOffsetCommitResponse,
) -> Effects:
    """Offsets that count when the producer's transaction is committed. Only a member of the present generation or epoch
    may commit them (KIP-447)."""
    request, records = made.request, made.records
    group_id, now_ms = request.group_id, made.now_ms
    effects = Effects()
    if group_id not in groups.by_id:
        effects.on_refused = lambda code: forget_group(groups, group_id, code)
    try:
        _, check = group_of_commit(groups, request, caller.version, now_ms, is_transactional=True)
        if check is not None:
            for key, value in records:
                check(key.topic, value.topic_id, key.partition)
    except KafkaError as error:
        if error.code != errors.STALE_MEMBER_EPOCH:
            raise
        raise KafkaError(errors.ILLEGAL_GENERATION) from None
    effects.producer = producer
    effects.records = records
    effects.encoded = made.encoded
    effects.replies.append((caller, response))
    return effects


def group_of_commit(
    groups: GroupTable,
    request: OffsetCommitRequest,
    version: int,
    now_ms: int,
    is_transactional: bool = False,
) -> tuple[Group, CheckPartition | None]:
    """The group, if this member may commit now, and a check for each partition, if only some are allowed. A commit
    without a member creates the group, as tools do."""
    epoch = request.generation_id_or_member_epoch
    group = groups.by_id.get(request.group_id)
    if group is None:
        if epoch >= 0:
            new = version >= NEW_ERRORS_SINCE and not is_transactional
            raise KafkaError(errors.GROUP_ID_NOT_FOUND if new else errors.ILLEGAL_GENERATION)
        group = groups.new_classic(request.group_id, now_ms)
    check = group.check_offset_commit(
        request.member_id, request.group_instance_id, epoch, is_transactional, version
    )
    return group, check


def forget_group(groups: GroupTable, group_id: str, code: int) -> Effects:
    """The group's first offsets could not be written, so there is no such group."""
    groups.remove(group_id)
    raise KafkaError(code)


def as_int64(number: int) -> int:
    """A time that is too large for an int64 overflows into the past, as in Kafka."""
    return (number + (1 << 63)) % (1 << 64) - (1 << 63)


def is_longer(text: str, characters: int) -> bool:
    """Whether a text has more than `characters` UTF-16 code units, which is what Kafka counts."""
    length = len(text)
    if length * 2 <= characters:
        return False
    return length > characters or len(text.encode("utf-16-le", "surrogatepass")) // 2 > characters


# -- fetch


def fetch(groups: GroupTable, request: AskedGroup, require_stable: bool) -> FetchedGroup:
    check_fetch(groups, request)
    group_id = request.group_id
    topics = [
        FetchedTopic(
            name=name,
            topic_id=topic_id,
            partitions=rows_of(groups, group_id, name, topic_id, indexes, require_stable),
        )
        for name, topic_id, indexes in fetched_topics(groups, request)
    ]
    return FetchedGroup(group_id=group_id, topics=topics)


def check_fetch(groups: GroupTable, request: AskedGroup) -> None:
    """A group that does not exist has no offsets, which is no error."""
    group = groups.by_id.get(request.group_id)
    if group is not None:
        group.check_offset_fetch(request.member_id, request.member_epoch)


def fetched_topics(groups: GroupTable, request: AskedGroup) -> list[tuple[str, bytes, list[int]]]:
    """The topics of a request, by name and id, with their partitions. No topics means all of them."""
    if request.topics is not None:
        return [(topic.name, topic.topic_id, topic.partition_indexes) for topic in request.topics]
    known = groups.offsets.by_group.get(request.group_id, {})
    return [(name, NO_TOPIC_ID, list(rows)) for name, rows in known.items()]


def rows_of(
    groups: GroupTable,
    group_id: str,
    name: str,
    topic_id: bytes,
    indexes: Iterable[int],
    require_stable: bool,
) -> list[FetchedPartition]:
    """The committed offsets of a group for partitions of a topic."""
    offsets = groups.offsets
    committed = offsets.by_group.get(group_id, {}).get(name, {})
    return [
        unstable(index)
        if require_stable and offsets.is_pending(group_id, name, index)
        else fetched(index, committed.get(index), topic_id)
        for index in indexes
    ]


def fetched(index: int, offset: Offset | None, topic_id: bytes) -> FetchedPartition:
    if offset is None or (offset.topic_id != topic_id and NO_TOPIC_ID not in (offset.topic_id, topic_id)):
        return FetchedPartition(partition_index=index, committed_offset=NO_OFFSET, metadata="")
    return FetchedPartition(
        partition_index=index,
        committed_offset=offset.offset,
        committed_leader_epoch=offset.leader_epoch,
        metadata=offset.metadata,
    )


def unstable(index: int) -> FetchedPartition:
    return FetchedPartition(
        partition_index=index,
        committed_offset=NO_OFFSET,
        metadata="",
        error_code=errors.UNSTABLE_OFFSET_COMMIT,
    )


# -- delete


def delete(groups: GroupTable, request: OffsetDeleteRequest, caller: Caller) -> Effects:
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


def exists(groups: GroupTable, group_id: str, topic: str, partition: int) -> bool:
    offsets = groups.offsets
    return offsets.get(group_id, topic, partition) is not None or offsets.is_pending(
        group_id, topic, partition
    )


# -- deleted topics


def forget(offsets: Offsets, topics: Mapping[str, int]) -> Iterator[Effects]:
    """Effects for each group, one at a time; without records for a group that has no offsets of these topics."""
    for table in offsets.tables():
        for group_id in list(table.by_group):
            held = table.by_group.get(group_id, {})
            fewer, more = (topics, held) if len(topics) < len(held) else (held, topics)
            doomed = [name for name in fewer if name in more]
            yield from forget_some(table, group_id, doomed, topics)
            yield Effects()


def forget_some(
    table: Table, group_id: str, doomed: Iterable[str], topics: Mapping[str, int]
) -> Iterator[Effects]:
    for name in doomed:
        indexes = list(table.by_group.get(group_id, {}).get(name, ()))
        for at in range(0, len(indexes), TOMBSTONES_AT_ONCE):
            effects = Effects()
            effects.is_atomic = False
            for index in indexes[at : at + TOMBSTONES_AT_ONCE]:
                held = table.get(group_id, name, index)
                if held is not None and held.record_offset < topics[name]:
                    effects.write(*tombstone(group_id, name, index))
            yield effects
