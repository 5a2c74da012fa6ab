"""A group of the consumer protocol: its state as the log has it, and what other APIs ask of it. KIP-848.

    Empty -> Assigning (the target assignment is older than the group) -> Reconciling (members are on their way to it)
    -> Stable

Epochs: the group's goes up with every change of members, subscriptions or topics; that of the target assignment is the
group epoch for which it was computed; a member's is that of the target assignment it has reached. An operation only
makes records (consumer_update and its users), which take effect in replay() here. Invariants: `owners` names one member
for each partition that a member owns or has not revoked yet; the counts are the sums over all members. Not in the log,
and determined anew after a load: `checked_changes`, `checked_epoch`, `resolution`, `upcoming`, `late`.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Iterator, Mapping
from typing import TypeVar

from pykafkad import errors
from pykafkad.errors import KafkaError
from pykafkad.pure.effects import Caller, Effects, Record, TimerKey
from pykafkad.pure.groups import consumer_records as records
from pykafkad.pure.groups.assignors import Share
from pykafkad.pure.groups.classic_answers import describe_missing
from pykafkad.pure.groups.consumer_member import GONE, UNREVOKED, Epochs, Member
from pykafkad.pure.sharing import NONE, own, without
from pykafkad.uuids import ZERO

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from pykafkad import messages
    from pykafkad.messages import (
        ConsumerGroupHeartbeatRequest,
        DescribeGroupsResponse,
        HeartbeatRequest,
        JoinGroupRequest,
        LeaveGroupRequest,
        SyncGroupRequest,
    )
    from pykafkad.pure.groups.consumer_target import Upcoming
    from pykafkad.pure.groups.regex_resolution import Resolution, Resolved
    from pykafkad.pure.groups.table import CheckPartition, GroupTable

SESSION, REBALANCE, JOIN, SYNC = "session", "rebalance", "join", "sync"
REGEX, TARGET = "regex", "target"

FIRST_EPOCH = 1
NO_TARGET = -1
UNKNOWN_EPOCH = -1
CONSUMER_COMMITS_SINCE = 9  # version of OffsetCommit
NO_SHARE: Share = {}
NO_STEPS: Iterator[None] = iter(())
T = TypeVar("T")


class ConsumerGroup:
    TYPE = "consumer"
    protocol_type = "consumer"

    __slots__ = (
        "assignor_counts",
        "checked_changes",
        "checked_epoch",
        "classic_count",
        "epoch",
        "group_id",
        "groups",
        "has_topics_record",
        "instances",
        "late",
        "members",
        "metadata_hash",
        "most",
        "owners",
        "protocol_counts",
        "regex_counts",
        "regexes",
        "resolution",
        "shares",
        "subscriptions",
        "target_epoch",
        "target_ms",
        "upcoming",
    )

    def __init__(self, groups: GroupTable, group_id: str) -> None:
        self.groups = groups
        self.group_id = group_id
        self.epoch = self.target_epoch = FIRST_EPOCH
        self.target_ms = 0
        self.metadata_hash = 0
        self.members: dict[str, Member] = {}
        self.most = 0  # the largest number of members there ever was
        self.shares: dict[str, Share] = {}  # the target assignment, by member
        self.instances: dict[str, str] = NONE  # group.instance.id -> member id
        self.owners: dict[bytes, dict[int, str]] = {}  # topic id -> partition -> member id
        self.regexes: dict[str, Resolved] = NONE
        self.has_topics_record = False  # from before Kafka 4.1; deleted with the next change
        self.subscriptions: dict[frozenset[str], int] = NONE  # how many members subscribe to just these names
        self.regex_counts: dict[str, int] = NONE
        self.assignor_counts: dict[str, int] = NONE
        self.protocol_counts: dict[str, int] = NONE  # of members that use the classic protocol
        self.classic_count = 0
        self.checked_changes = -1  # the change of topics for which metadata_hash was last compared,
        self.checked_epoch = 0  # and the group epoch that resulted from it
        self.resolution: Resolution | None = None
        self.upcoming: Upcoming | None = None  # the target assignment that is being computed
        self.late: dict[str, None] = NONE  # members of the classic protocol that were told to join again

    # -- properties

    @property
    def is_empty(self) -> bool:
        return not self.members

    @property
    def state_name(self) -> str:
        if not self.members:
            return "Empty"
        if self.epoch > self.target_epoch:
            return "Assigning"
        epoch = self.target_epoch
        reconciled = all(member.is_reconciled_to(epoch) for member in self.members.values())
        return "Stable" if reconciled else "Reconciling"

    def member(self, member_id: str) -> Member:
        member = self.members.get(member_id)
        if member is None:
            raise KafkaError(
                errors.UNKNOWN_MEMBER_ID, f"Member {member_id} is not a member of group {self.group_id}."
            )
        return member

    def static_member(self, instance_id: str | None) -> Member | None:
        member_id = self.instances.get(instance_id) if instance_id is not None else None
        return self.members.get(member_id) if member_id is not None else None

    def share_of(self, member_id: str, instance_id: str | None) -> Share:
        """The target assignment of a member. A static member takes over that of its predecessor."""
        if instance_id is not None:
            member_id = self.instances.get(instance_id, "")
        return self.shares.get(member_id, NO_SHARE)

    def owners_of(self, topic_id: bytes) -> Mapping[int, str]:
        """Which members own partitions of the topic, or have not revoked them yet."""
        return self.owners.get(topic_id, {})

    def is_subscribed_to(self, topic: str) -> bool:
        by_name = any(topic in names for names in self.subscriptions)
        return by_name or any(topic in each.topics for each in self.regexes.values())

    def config(self, name: str, least: int, most: int, default: int) -> int:
        """The group's own config, limited by those of the broker, or else the broker's default."""
        value = self.groups.settings.group_config(self.group_id).get(f"consumer.{name}.ms")
        return default if value is None else min(max(int(value), least), most)

    @property
    def session_timeout_ms(self) -> int:
        of = self.groups.settings
        least, most = of.consumer_min_session_timeout_ms, of.consumer_max_session_timeout_ms
        return self.config("session.timeout", least, most, of.consumer_session_timeout_ms)

    @property
    def heartbeat_interval_ms(self) -> int:
        of = self.groups.settings
        least, most = of.consumer_min_heartbeat_interval_ms, of.consumer_max_heartbeat_interval_ms
        return self.config("heartbeat.interval", least, most, of.consumer_heartbeat_interval_ms)

    @property
    def assignment_interval_ms(self) -> int:
        of = self.groups.settings
        least, most = of.consumer_min_assignment_interval_ms, of.consumer_max_assignment_interval_ms
        return self.config("assignment.interval", least, most, of.consumer_assignment_interval_ms)

    # -- changes of members (in replay only)

    def put(self, member: Member) -> None:
        for _ in self.putting(member):
            pass

    def putting(self, member: Member) -> Iterator[None]:
        """The same in steps, since a record may have very many partitions."""
        old = self.members.get(member.member_id)
        self.members[member.member_id] = member
        self.most = max(self.most, len(self.members))
        if old is None or not old.tells_the_same(member):
            if old is not None:
                self._tally(old, -1)
            self._tally(member, 1)
        if old is not None:
            yield from self._disowning(old)
        for epochs in (member.assigned, member.revoking):
            for topic_id, partitions in epochs.items():
                owners = self.owners.setdefault(topic_id, {})
                for some in some_of(partitions):
                    owners.update(dict.fromkeys(some, member.member_id))
                    yield
        if member.instance_id is not None:
            self.instances = own(self.instances)
            self.instances[member.instance_id] = member.member_id

    def remove(self, member_id: str) -> None:
        for _ in self.removing(member_id):
            pass

    def removing(self, member_id: str) -> Iterator[None]:
        member = self.members.pop(member_id, None)
        if member is None:
            return
        self._tally(member, -1)
        yield from self._disowning(member)
        self.late = without(self.late, member_id)
        if member.instance_id is not None and self.instances.get(member.instance_id) == member_id:
            del self.instances[member.instance_id]

    def _disowning(self, member: Member) -> Iterator[None]:
        for epochs in (member.assigned, member.revoking):
            for topic_id, partitions in epochs.items():
                owners = self.owners.get(topic_id, {})
                for some in some_of(partitions):
                    for partition in some:
                        if owners.get(partition) == member.member_id:
                            del owners[partition]
                    yield
                if not owners:
                    self.owners.pop(topic_id, None)

    def _tally(self, member: Member, by: int) -> None:
        self.subscriptions = count(self.subscriptions, (member.topic_names,), by)
        if member.regex:
            self.regex_counts = count(self.regex_counts, (member.regex,), by)
        if member.assignor is not None:
            self.assignor_counts = count(self.assignor_counts, (member.assignor,), by)
        if member.classic is not None:
            self.classic_count += by
            names = (name for name, _ in member.classic.protocols)
            self.protocol_counts = count(self.protocol_counts, names, by)

    # -- members of the classic protocol

    def join(self, request: JoinGroupRequest, caller: Caller, now_ms: int) -> Effects:
        from pykafkad.pure.groups import consumer_classic

        return consumer_classic.join(self, request, caller, now_ms)

    def sync(self, request: SyncGroupRequest, caller: Caller, now_ms: int) -> Effects:
        from pykafkad.pure.groups import consumer_classic

        return consumer_classic.sync(self, request, caller)

    def heartbeat(self, request: HeartbeatRequest, caller: Caller, now_ms: int) -> Effects:
        from pykafkad.pure.groups import consumer_classic

        return consumer_classic.heartbeat(self, request, caller, now_ms)

    def leave(self, request: LeaveGroupRequest, caller: Caller, now_ms: int) -> Effects:
        from pykafkad.pure.groups import consumer_classic

        return consumer_classic.leave(self, request, caller, now_ms)

    def describe(self, version: int) -> Generator[None, None, DescribeGroupsResponse.DescribedGroup]:
        yield
        return describe_missing(self.group_id, version, f"Group {self.group_id} is not a classic group.")

    # -- offsets

    def check_offset_commit(
        self,
        member_id: str,
        group_instance_id: str | None,
        epoch: int,
        is_transactional: bool,
        api_version: int,
    ) -> CheckPartition | None:
        """Returns what is to be checked for each partition, if anything. KIP-1251: a commit with an earlier epoch is
        accepted for partitions that the member has had since then."""
        if epoch < 0 and not self.members:
            return None
        if is_transactional and epoch == UNKNOWN_EPOCH and not member_id and group_instance_id is None:
            return None
        member = self.member(member_id)
        if not is_transactional and member.classic is None and api_version < CONSUMER_COMMITS_SINCE:
            raise KafkaError(
                errors.UNSUPPORTED_VERSION,
                "OffsetCommit version 9 or above must be used by members using the consumer group protocol",
            )
        if epoch == member.epoch:
            return None
        if epoch > member.epoch:
            raise stale(
                member,
                f"Received {epoch_name(member)} {epoch} is newer than current member epoch {member.epoch}.",
            )
        return lambda topic, topic_id, partition: self._check_partition(
            member, epoch, topic, topic_id, partition
        )

    def _check_partition(
        self, member: Member, epoch: int, topic: str, topic_id: bytes, partition: int
    ) -> None:
        if topic_id == ZERO:
            there = self.groups.settings.topics.topics.get(topic)
            topic_id = there.id if there is not None else topic_id
        assigned_at = epoch_of(member.assigned, topic_id, partition)
        if assigned_at is None:
            assigned_at = epoch_of(member.revoking, topic_id, partition)
        where = f"{topic}-{partition}"
        if assigned_at is None:
            raise stale(member, f"Partition {where} is not assigned or pending revocation for member.")
        if epoch < assigned_at:
            raise stale(
                member,
                f"Received {epoch_name(member)} {epoch} is older than assignment epoch {assigned_at} for"
                f" partition {where}.",
            )

    def check_offset_fetch(self, member_id: str | None, member_epoch: int) -> None:
        if member_id is None and member_epoch < 0:
            return
        if member_id is None:
            raise KafkaError(errors.UNKNOWN_SERVER_ERROR)  # an epoch without a member: Kafka fails so
        member = self.member(member_id)
        if member_epoch != member.epoch:
            raise stale(
                member,
                f"The received {epoch_name(member)} {member_epoch} does not match the expected member epoch"
                f" {member.epoch}.",
            )

    def check_offset_delete(self) -> None:
        """Always allowed; only topics with subscribers are refused."""

    def has_member(self, member_id: str) -> bool:
        return member_id in self.members

    def check_delete(self) -> None:
        if self.members:
            raise KafkaError(errors.NON_EMPTY_GROUP)

    def on_offset_commit(self, member_id: str, now_ms: int) -> Effects | None:
        """Unlike in a classic group, a commit does not extend the session."""
        return None

    def offset_expiry_base_ms(self, commit_ms: int) -> int | None:
        return commit_ms

    def tombstones(self) -> list[Record]:
        return self.tombstones_of(self.members)

    def tombstones_of(self, member_ids: Iterable[str]) -> list[Record]:
        """The tombstones that delete the group together with these members."""
        ids = list(member_ids)
        group_id = self.group_id
        return [
            *(records.assignment_tombstone(group_id, each) for each in ids),
            *(records.share_tombstone(group_id, each) for each in ids),
            records.target_tombstone(group_id),
            *(records.member_tombstone(group_id, each) for each in ids),
            *(records.regex_tombstone(group_id, pattern) for pattern in self.regexes),
            records.topics_tombstone(group_id),
            records.group_tombstone(group_id),
        ]

    # -- timers, coordinator loaded and unloaded

    def on_timer(self, key: TimerKey, now_ms: int) -> Effects:
        from pykafkad.pure.groups import consumer_timers

        return consumer_timers.on_timer(self, key, now_ms)

    def on_loaded(self, now_ms: int) -> Iterator[Effects]:
        """All members get a new session in which they can show that they are still there."""
        for member in self.members.values():
            effects = Effects()
            effects.after(self.session_timeout_ms, self.group_id, SESSION, member.member_id)
            if member.state == UNREVOKED:
                effects.after(member.rebalance_timeout_ms, self.group_id, REBALANCE, member.member_id)
            yield effects

    def on_unloaded(self) -> Effects:
        """No request ever waits: all are answered at once."""
        return Effects()


def some_of(partitions: Mapping[int, int]) -> Iterator[Iterable[int]]:
    """The partitions of a topic, so many at a time as can be done at once."""
    if len(partitions) <= records.AT_ONCE:
        return iter((partitions,))
    numbers = list(partitions)
    return (numbers[at : at + records.AT_ONCE] for at in range(0, len(numbers), records.AT_ONCE))


def count(counts: dict[T, int], things: Iterable[T], by: int) -> dict[T, int]:
    """The counts as they are then, in the same table if it is one's own."""
    counts = own(counts)
    if by > 0:
        for thing in things:
            counts[thing] = counts.get(thing, 0) + by
        return counts
    for thing in things:
        total = counts.get(thing, 0) + by
        if total:
            counts[thing] = total
        else:
            del counts[thing]
    return counts or NONE


def epoch_of(epochs: Epochs, topic_id: bytes, partition: int) -> int | None:
    return epochs.get(topic_id, {}).get(partition)


def epoch_name(member: Member) -> str:
    return "member epoch" if member.classic is None else "generation id"


def stale(member: Member, text: str) -> KafkaError:
    code = errors.STALE_MEMBER_EPOCH if member.classic is None else errors.ILLEGAL_GENERATION
    return KafkaError(code, text)


# -- functions of the group type, for the registry


def heartbeat(
    groups: GroupTable, request: ConsumerGroupHeartbeatRequest, caller: Caller, now_ms: int
) -> Effects:
    from pykafkad.pure.groups import consumer_heartbeat

    return consumer_heartbeat.heartbeat(groups, request, caller, now_ms)


def replay(groups: GroupTable, key: Any, value: Any) -> None:
    """Replay a record of a consumer group. A tombstone of what does not exist, which compaction may leave, is ignored."""
    for _ in load(groups, key, value):
        pass


def load(groups: GroupTable, key: Any, value: Any) -> Iterator[None]:
    """The same in steps."""
    found = groups.by_id.get(key.group_id)
    group = found if isinstance(found, ConsumerGroup) else None
    if group is None:
        if value is None or (found is not None and not found.is_empty and not groups.is_loading):
            return  # the group is being converted to a classic one, which has taken its place already
        # Otherwise only a classic group without members can be here, which was created by an offset commit.
        group = groups.by_id[key.group_id] = ConsumerGroup(groups, key.group_id)
    yield from apply(group, key, value)
    if value is None and key.api_key == records.GROUP:
        groups.remove(key.group_id)


def apply(group: ConsumerGroup, key: Any, value: Any) -> Iterator[None]:
    """In steps, since a record may have very many partitions."""
    return APPLY[key.api_key](group, key, value)


def _apply_group(
    group: ConsumerGroup,
    key: messages.ConsumerGroupMetadataKey,
    value: messages.ConsumerGroupMetadataValue | None,
) -> Iterator[None]:
    if value is not None:
        group.epoch, group.metadata_hash = value.epoch, value.metadata_hash
    return NO_STEPS


def _apply_topics(
    group: ConsumerGroup,
    key: messages.ConsumerGroupPartitionMetadataKey,
    value: messages.ConsumerGroupPartitionMetadataValue | None,
) -> Iterator[None]:
    group.has_topics_record = value is not None
    return NO_STEPS


def _apply_member(
    group: ConsumerGroup,
    key: messages.ConsumerGroupMemberMetadataKey,
    value: messages.ConsumerGroupMemberMetadataValue | None,
) -> Iterator[None]:
    if value is None:
        yield from group.removing(key.member_id)
    else:
        member = group.members.get(key.member_id) or Member(key.member_id)
        changed = yield from records.with_metadata(member, value)
        yield from group.putting(changed)


def _apply_target(
    group: ConsumerGroup,
    key: messages.ConsumerGroupTargetAssignmentMetadataKey,
    value: messages.ConsumerGroupTargetAssignmentMetadataValue | None,
) -> Iterator[None]:
    if value is None:
        group.target_epoch, group.target_ms = NO_TARGET, 0
    else:
        group.target_epoch, group.target_ms = value.assignment_epoch, value.assignment_timestamp
    return NO_STEPS


def _apply_share(
    group: ConsumerGroup,
    key: messages.ConsumerGroupTargetAssignmentMemberKey,
    value: messages.ConsumerGroupTargetAssignmentMemberValue | None,
) -> Iterator[None]:
    if value is None:
        group.shares.pop(key.member_id, None)
    else:
        group.shares[key.member_id] = yield from records.share_of(value)


def _apply_assignment(
    group: ConsumerGroup,
    key: messages.ConsumerGroupCurrentMemberAssignmentKey,
    value: messages.ConsumerGroupCurrentMemberAssignmentValue | None,
) -> Iterator[None]:
    member = group.members.get(key.member_id)
    if value is not None:
        changed = yield from records.with_assignment(member or Member(key.member_id), value)
        yield from group.putting(changed)
    elif member is not None:
        yield from group.putting(member.but(epoch=GONE, previous_epoch=GONE, assigned={}, revoking={}))


def _apply_regex(
    group: ConsumerGroup,
    key: messages.ConsumerGroupRegularExpressionKey,
    value: messages.ConsumerGroupRegularExpressionValue | None,
) -> Iterator[None]:
    from pykafkad.pure.groups.regex_resolution import Resolved

    if value is None:
        group.regexes.pop(key.regular_expression, None)
    else:
        topics = yield from records.set_of(value.topics)
        group.regexes = own(group.regexes)
        group.regexes[key.regular_expression] = Resolved(topics, value.version, value.timestamp)


APPLY: dict[int, Callable[[ConsumerGroup, Any, Any], Iterator[None]]] = {
    records.GROUP: _apply_group,
    records.TOPICS: _apply_topics,
    records.MEMBER: _apply_member,
    records.TARGET: _apply_target,
    records.TARGET_OF_MEMBER: _apply_share,
    records.ASSIGNMENT: _apply_assignment,
    records.REGEX: _apply_regex,
}
