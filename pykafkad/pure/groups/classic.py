"""A group of the classic protocol: what JoinGroup, SyncGroup, Heartbeat and LeaveGroup do to it.

Here is who may do what and when; the rules of JoinGroup are in classic_join, generations and timers in
classic_rebalance, what they change in classic_state and classic_roster. Invariants: an operation that raises KafkaError
has changed nothing; every request is answered once, also if its member was removed or replaced or has sent another one
meanwhile (Kafka leaves such requests without an answer). KIP-345 (batches of LeaveGroup), KIP-559 (SyncGroup names the
protocol), KIP-800 (reasons).
"""

from __future__ import annotations

from operator import itemgetter

from pykafkad import errors
from pykafkad.errors import KafkaError
from pykafkad.messages import DescribeGroupsResponse, HeartbeatResponse
from pykafkad.pure.effects import Caller, Effects, Record, TimerKey, answered
from pykafkad.pure.groups import classic_join, classic_rebalance
from pykafkad.pure.groups.classic_answers import LeftMember, leave_answer, left, sync_answer
from pykafkad.pure.groups.classic_join import check_member, client_reason, log_fenced
from pykafkad.pure.groups.classic_member import Member
from pykafkad.pure.groups.classic_records import (
    CONSUMER_PROTOCOL,
    NO_TIME,
    metadata_record,
    new_group_record,
    subscriptions,
    tombstone,
)
from pykafkad.pure.groups.classic_state import COMPLETING, EMPTY, PREPARING, STABLE, ClassicState
from pykafkad.pure.java import place_of, table_for
from pykafkad.pure.refusals import told_as

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Generator, Iterator

    from pykafkad.messages import (
        GroupMetadataKey,
        GroupMetadataValue,
        HeartbeatRequest,
        JoinGroupRequest,
        LeaveGroupRequest,
        SyncGroupRequest,
    )
    from pykafkad.pure.groups.table import CheckPartition, GroupTable

DescribedGroup = DescribeGroupsResponse.DescribedGroup
SESSIONS_AT_ONCE = 16  # that begin


class ClassicGroup(ClassicState):
    TYPE = "classic"

    __slots__ = ()

    def __init__(self, groups: GroupTable, group_id: str, now_ms: int) -> None:
        super().__init__(groups.settings, group_id)
        self.state_since_ms = now_ms

    @property
    def is_empty(self) -> bool:
        return self.state_name == EMPTY

    # -- JoinGroup

    def join(self, request: JoinGroupRequest, caller: Caller, now_ms: int) -> Effects:
        return classic_join.join(self, request, caller, now_ms)

    # -- SyncGroup

    def sync(self, request: SyncGroupRequest, caller: Caller, now_ms: int) -> Effects:
        member = self._check_sync(request)
        effects = Effects()
        if self.state_name == STABLE:
            classic_rebalance.synced(self, effects, member)
            answer = sync_answer(member.assignment, self.protocol_type, self.protocol_name)
            effects.reply(caller, answer)
            return effects
        if member.sync_caller is not None:
            classic_rebalance.answer_sync(self, effects, member, errors.REBALANCE_IN_PROGRESS)
        member.sync_caller = caller
        classic_rebalance.synced(self, effects, member)
        if self.roster.leader_id == member.member_id:
            self._assign(effects, request, now_ms)
        return effects

    def _check_sync(self, request: SyncGroupRequest) -> Member:
        member = check_member(self, request, "sync-group")
        if request.generation_id != self.generation_id:
            raise KafkaError(errors.ILLEGAL_GENERATION)
        if differs(request.protocol_type, self.protocol_type) or differs(
            request.protocol_name, self.protocol_name
        ):
            raise KafkaError(errors.INCONSISTENT_GROUP_PROTOCOL)
        if self.state_name == PREPARING:
            raise KafkaError(errors.REBALANCE_IN_PROGRESS)
        return member

    def _assign(self, effects: Effects, request: SyncGroupRequest, now_ms: int) -> None:
        """Take over the leader's assignments, which hold for this generation once they are in the log."""
        roster = self.roster
        self.settings.log(
            f"Assignment received from leader {roster.leader_id} for group {self.group_id} for generation"
            f" {self.generation_id}. The group has {len(roster.members)} members, {len(roster.instances)} of which"
            " are static."
        )
        given = {each.member_id: bytes(each.assignment) for each in request.assignments}
        without = [member_id for member_id in roster.members if not given.get(member_id)]
        if without:
            self.settings.log(
                f"Setting empty assignments for members {', '.join(without)} of {self.group_id} for generation"
                f" {self.generation_id}."
            )
        effects.write(*metadata_record(self, given))
        waiting = [
            (each, each.sync_caller) for each in roster.members.values() if each.sync_caller is not None
        ]
        asked_twice = effects.replies[:]
        classic_rebalance.give_assignments(self, effects, given)
        self.move_to(STABLE, now_ms)

        def on_refused(error_code: int) -> Effects:
            undone = Effects()
            undone.replies = asked_twice
            for member, sync_caller in waiting:
                member.sync_caller = sync_caller
            told = told_as(error_code)
            classic_rebalance.give_assignments(self, undone, {}, told)
            reason = (
                f"Error {errors.NAMES.get(told)} when storing group assignment during SyncGroup (member:"
                f" {roster.leader_id})."
            )
            classic_rebalance.prepare(self, undone, reason, now_ms)
            return undone

        effects.on_refused = on_refused

    # -- Heartbeat

    def heartbeat(self, request: HeartbeatRequest, caller: Caller, now_ms: int) -> Effects:
        member = check_member(self, request, "heartbeat")
        if request.generation_id != self.generation_id:
            raise KafkaError(errors.ILLEGAL_GENERATION)
        is_moving = self.state_name == PREPARING
        code = errors.REBALANCE_IN_PROGRESS if is_moving else errors.NONE
        effects = answered(caller, HeartbeatResponse(error_code=code))
        classic_rebalance.restart_session(self, effects, member)
        return effects

    # -- LeaveGroup

    def leave(self, request: LeaveGroupRequest, caller: Caller, now_ms: int) -> Effects:
        """Remove the members in `request.members`, which every version has here. The request may come from somebody
        else."""
        effects = Effects()
        answers = [self._leave_one(effects, leaving) for leaving in request.members]
        gone = [each.member_id for each in answers if each.error_code == errors.NONE]
        effects.reply(caller, leave_answer(caller.version, answers))
        if gone and self.state_name != EMPTY:
            reason = f"explicit `LeaveGroup` request for ({', '.join(gone)}) members."
            classic_rebalance.rebalance(self, effects, reason, now_ms)
        return effects

    def _leave_one(self, effects: Effects, leaving: LeaveGroupRequest.MemberIdentity) -> LeftMember:
        roster = self.roster
        member_id: str | None = leaving.member_id
        instance_id = leaving.group_instance_id
        if not member_id:  # an administrator names a static member by its instance id alone
            member_id = None if instance_id is None else roster.instances.get(instance_id)
            if member_id is None:
                return left(leaving, errors.UNKNOWN_MEMBER_ID)
        elif member_id not in roster.pending:
            try:
                roster.check_member(member_id, instance_id)
            except KafkaError as error:
                log_fenced(self, error, leaving, "leave-group")
                return left(leaving, error.code)
        who = "Pending member" if member_id in roster.pending else "Member"
        classic_rebalance.remove(self, effects, member_id)
        self.settings.log(
            f"[Group {self.group_id}] {who} {member_id} has left group through explicit `LeaveGroup` request;"
            f" {client_reason(leaving)}"
        )
        return left(leaving)

    # -- what other APIs ask of a group

    def describe(self, version: int) -> Generator[None, None, DescribedGroup]:
        """A generator that describes one member at a time, in Kafka's order."""
        protocol = self.protocol_name if self.state_name == STABLE else None
        described = DescribedGroup(
            group_id=self.group_id,
            group_state=self.state_name,
            protocol_type=self.protocol_type or "",
            protocol_data=protocol or "",
        )
        table = table_for(self.roster.most)
        members = []
        for member in list(self.roster.members.values()):
            if self.state_name != STABLE or self.protocol_name != protocol:
                protocol = None  # another generation has begun meanwhile
            members.append((place_of(member.member_id, table), member.describe(protocol)))
            yield
        members.sort(key=itemgetter(0))
        described.members = [each for _, each in members]
        return described

    def check_offset_commit(
        self,
        member_id: str,
        group_instance_id: str | None,
        generation_id: int,
        is_transactional: bool,
        api_version: int,
    ) -> CheckPartition | None:
        if generation_id < 0 and self.state_name == EMPTY:
            return None  # an administrator, or a consumer that assigns its partitions itself
        if generation_id >= 0 or member_id or group_instance_id is not None:
            self.roster.check_member(member_id, group_instance_id)
            if generation_id != self.generation_id:
                raise KafkaError(errors.ILLEGAL_GENERATION)
        elif not is_transactional:
            raise KafkaError(errors.UNKNOWN_MEMBER_ID)
        if not is_transactional and self.state_name == COMPLETING:
            raise KafkaError(errors.REBALANCE_IN_PROGRESS)
        return None

    def check_offset_fetch(self, member_id: str | None, member_epoch: int) -> None:
        """Everybody may read the offsets of a classic group."""

    def check_offset_delete(self) -> None:
        """Offsets of a group with members can be deleted only if their subscriptions can be read."""
        if self.state_name != EMPTY and self.protocol_type != CONSUMER_PROTOCOL:
            raise KafkaError(errors.NON_EMPTY_GROUP)

    def has_member(self, member_id: str) -> bool:
        return member_id in self.roster.members

    def check_delete(self) -> None:
        if self.state_name != EMPTY:
            raise KafkaError(errors.NON_EMPTY_GROUP)

    def on_offset_commit(self, member_id: str, now_ms: int) -> Effects | None:
        """A commit restarts the member's session, as a heartbeat does."""
        member = self.roster.members.get(member_id)
        if member is None or self.state_name not in (STABLE, PREPARING):
            return None
        effects = Effects()
        classic_rebalance.restart_session(self, effects, member)
        return effects

    def is_subscribed_to(self, topic: str) -> bool:
        """If the subscriptions cannot be read, a group of consumers is taken to be subscribed to every topic."""
        if self.subscribed_topics is None:
            return self.protocol_type == CONSUMER_PROTOCOL
        return topic in self.subscribed_topics

    def offset_expiry_base_ms(self, commit_ms: int) -> int | None:
        """The time from which the retention of an offset counts; None while the group may still need the offset."""
        if self.protocol_type is None:
            return commit_ms  # the group never had a member
        if self.state_name == EMPTY:
            return commit_ms if self.state_since_ms is None else self.state_since_ms
        knows_topics = self.state_name == STABLE and self.subscribed_topics is not None
        return commit_ms if knows_topics else None

    def new_group_record(self) -> Record:
        return new_group_record(self)

    def tombstones(self) -> list[Record]:
        return [tombstone(self.group_id)]

    def on_timer(self, key: TimerKey, now_ms: int) -> Effects:
        return classic_rebalance.on_timer(self, key, now_ms)

    # -- coordinator loaded and unloaded

    def on_loaded(self, now_ms: int) -> Iterator[Effects]:
        """All members get a new session in which they can show that they are still there."""
        members = self.roster.members
        effects = Effects()
        for count, member in enumerate(members.values(), 1):
            classic_rebalance.restart_session(self, effects, member)
            if count % SESSIONS_AT_ONCE == 0:
                yield effects
                effects = Effects()
        if len(members) > self.settings.max_size:
            reason = (
                f"Freshly-loaded group {self.group_id} (size {len(members)}) is over capacity"
                f" {self.settings.max_size}. Rebalancing in order to give a chance for consumers to commit offsets"
            )
            classic_rebalance.prepare(self, effects, reason, now_ms)
        yield effects

    def on_unloaded(self) -> Effects:
        return self.dissolve(errors.NOT_COORDINATOR)

    def dissolve(self, error_code: int) -> Effects:
        """The group is no longer used: all requests that wait are refused."""
        effects = Effects()
        for member in self.roster.members.values():
            classic_rebalance.refuse_join(self, effects, member, told_as(error_code), member.member_id)
            if member.sync_caller is not None:
                classic_rebalance.answer_sync(self, effects, member, told_as(error_code))
        return effects


def differs(said: str | None, known: str | None) -> bool:
    """Whether two protocol types or names are both given and differ. Clients may leave them out, and did before version
    5."""
    return said is not None and known is not None and said != known


# -- loading


def load(groups: GroupTable, key: GroupMetadataKey, value: GroupMetadataValue) -> Generator[None, None, None]:
    """Build the group from its record while loading, one member at a time: Stable if it has members, else Empty."""
    group = ClassicGroup(groups, key.group, 0)
    roster = group.roster
    roster.protocol_type = value.protocol_type or None
    group.generation_id = value.generation
    group.protocol_name = value.protocol
    since_ms = value.current_state_timestamp
    group.state_since_ms = None if since_ms == NO_TIME else since_ms
    for each in value.members:
        if each.member_id not in roster.members and each.group_instance_id not in roster.instances:
            roster.add(loaded_member(each, value.protocol or ""))
        yield
    if value.leader in roster.members:
        roster.leader_id = value.leader
    if roster.members:
        group.state_name = STABLE
        group.protocol_name = value.protocol or ""
    group.subscribed_topics = yield from subscriptions(group)
    groups.by_id[key.group] = group


def loaded_member(each: GroupMetadataValue.MemberMetadata, protocol_name: str) -> Member:
    timeout_ms = each.session_timeout if each.rebalance_timeout == -1 else each.rebalance_timeout
    return Member(
        each.member_id,
        each.group_instance_id,
        each.client_id,
        each.client_host,
        timeout_ms,
        each.session_timeout,
        ((protocol_name, bytes(each.subscription)),),
        bytes(each.assignment),
    )
