"""What a member's request does to its group, computed step by step before any of it takes effect.

The steps are those of every request that may change a member: find it, save its fields, see whether the topics changed,
compute a new target assignment, take the member's next step towards it. Each adds its records to the effects.
Invariant: only fields of the group that are not in the log are changed here (see consumer).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from pykafkad import errors
from pykafkad.errors import KafkaError
from pykafkad.pure.effects import Caller, Effects
from pykafkad.pure.groups import consumer_records as records
from pykafkad.pure.groups.assignors import Share, at_once
from pykafkad.pure.groups.consumer import NO_SHARE, REBALANCE, REGEX, SESSION, TARGET, ConsumerGroup, count
from pykafkad.pure.groups.consumer_member import LEFT_FOR_A_WHILE, UNREVOKED, Member, has_only
from pykafkad.pure.groups.consumer_reconciliation import Goal, Owned, reconcile
from pykafkad.pure.groups.consumer_target import (
    assignor_of,
    have_same_topics,
    is_large,
    say_computed,
    topic_ids,
    wanted_topics,
    work_out,
)
from pykafkad.pure.groups.regex_resolution import MIN_INTERVAL_MS, Resolved
from pykafkad.pure.groups.topic_watch import watch_of

REGEX_KEPT, REGEX_CHANGED, REGEX_CHANGED_AND_KNOWN = range(3)

JOINING_EPOCH = 0


class Update:
    __slots__ = ("_wanted", "effects", "group", "group_epoch", "now_ms", "same_topics")

    def __init__(self, group: ConsumerGroup, effects: Effects, now_ms: int) -> None:
        self.group = group
        self.effects = effects
        self.now_ms = now_ms
        self.group_epoch = group.epoch  # with this update
        self.same_topics: bool | None = None  # all members want the same topics; None: not looked at
        self._wanted: set[str] | None = None  # the topics that they want

    def log(self, text: str) -> None:
        self.group.groups.settings.log(f"[GroupId {self.group.group_id}] {text}")

    # -- the member

    def check_room(self, member_id: str) -> None:
        most = self.group.groups.settings.consumer_max_size
        if len(self.group.members) >= most and member_id not in self.group.members:
            raise KafkaError(
                errors.GROUP_MAX_SIZE_REACHED,
                f"The consumer group has reached its maximum capacity of {most} members.",
            )

    def dynamic_member(self, member_id: str, epoch: int, owned: Owned, joins: bool, classic: bool) -> Member:
        member = self.group.members.get(member_id)
        if member is None:
            member = Member(member_id) if joins else self.group.member(member_id)
        if not classic:
            check_epoch(member, epoch, owned)
        if joins:
            self.log(f"Member {member_id} joins the consumer group using the {protocol(classic)} protocol.")
        return member

    def static_member(
        self, member_id: str, epoch: int, instance_id: str, owned: Owned, joins: bool, classic: bool
    ) -> Member:
        """KIP-345: the instance id stays, while the member id may change."""
        there = self.group.static_member(instance_id)
        if not joins:
            there = self.known_static(there, instance_id, member_id)
            if not classic:
                check_epoch(there, epoch, owned)
            return there
        who = f"Static member {member_id} with instance id {instance_id}"
        if there is None:
            self.log(f"{who} joins the consumer group using the {protocol(classic)} protocol.")
            return self.group.members.get(member_id) or Member(member_id)
        if not classic and there.classic is None and there.epoch != LEFT_FOR_A_WHILE:
            raise KafkaError(
                errors.UNRELEASED_INSTANCE_ID,
                f"{who} cannot join the group because the instance id is owned by {there.member_id} member.",
            )
        member = there.but(member_id=member_id, epoch=0, previous_epoch=0)
        self._replace(there, member)
        self.log(
            f"Static member with instance id {instance_id} re-joins the consumer group using the {protocol(classic)}"
            f" protocol. Created a new member {member_id} to replace the existing member {there.member_id}."
        )
        return member

    def known_static(self, there: Member | None, instance_id: str, member_id: str) -> Member:
        if there is None:
            raise KafkaError(errors.UNKNOWN_MEMBER_ID, f"Instance id {instance_id} is unknown.")
        if there.member_id != member_id:
            raise KafkaError(
                errors.FENCED_INSTANCE_ID,
                f"Static member {member_id} with instance id {instance_id} was fenced by member {there.member_id}.",
            )
        return there

    def _replace(self, old: Member, new: Member) -> None:
        group_id = self.group.group_id
        share = self.group.shares.get(old.member_id, {})
        self.effects.records += records.member_tombstones(group_id, old.member_id)
        self.effects.write(*records.member_record(group_id, new))
        self.effects.write(*records.share_record(group_id, new.member_id, share))
        self.effects.write(*records.assignment_record(group_id, new))

    def save(self, old: Member, new: Member, names: Sequence[str] | None = None) -> bool:
        """Write the member's record if it changed; whether it subscribes to other topic names now. `names` are the new
        ones in the order of the request."""
        if new.is_like(old):
            return False
        self.effects.write(*records.member_record(self.group.group_id, new, names))
        return new.topic_names != old.topic_names

    # -- regular expressions

    def save_regex(self, old: Member, new: Member, caller: Caller) -> int:
        group = self.group
        change = REGEX_KEPT
        is_new = False
        if old.regex != new.regex:
            change = REGEX_CHANGED
            if old.regex and group.regex_counts.get(old.regex) == 1:
                self.effects.write(*records.regex_tombstone(group.group_id, old.regex))
            is_new = bool(new.regex) and new.regex not in group.regex_counts
            if is_new:
                check_regex(new.regex)
            elif not new.regex or new.regex in group.regexes:
                change = REGEX_CHANGED_AND_KNOWN
        if self._must_resolve(old, new, is_new):
            if caller.may_describe is not None:
                group.groups.may_describe[group.group_id] = caller.may_describe
            self.effects.after(0, group.group_id, REGEX)
        return change

    def _must_resolve(self, old: Member, new: Member, is_new: bool) -> bool:
        group = self.group
        if not is_new and not group.regex_counts:
            return False
        if group.resolution is not None and group.resolution.keeps_others_back(self.now_ms):
            return False
        first = next(iter(group.regexes.values()), None)  # all are always resolved together
        if first is not None and self.now_ms <= first.time_ms + MIN_INTERVAL_MS:
            return False
        subscribed = self.regexes_with(old, new)
        if not subscribed:
            return False
        if is_new or first is None or len(subscribed) != len(group.regexes):
            return True
        settings = group.groups.settings
        if first.version < watch_of(settings).newest_version():
            return True
        return self.now_ms > first.time_ms + settings.consumer_regex_refresh_interval_ms

    def regexes_with(self, old: Member, new: Member) -> dict[str, int]:
        """How many members subscribe by each regular expression after this change."""
        counts = dict(self.group.regex_counts)
        if old.regex in counts:
            count(counts, (old.regex,), -1)
        if new.regex:
            count(counts, (new.regex,), 1)
        return counts

    # -- topics

    def has_stale_topics(self) -> bool:
        """Whether topics (of this group or not) have changed since the group last looked, or a new epoch was not
        written."""
        group = self.group
        is_new = group.checked_changes != group.groups.settings.topics.topic_changes
        return is_new or group.epoch < group.checked_epoch

    def refresh_topics(self, bump: bool, old: Member, new: Member) -> None:
        """Compare the hash of the group's topics, after this change, with the one in the log; a new epoch if it
        differs."""
        group = self.group
        is_new = self.is_new(new)
        subscriptions = dict(group.subscriptions)
        count(subscriptions, (new.topic_names,), 1)
        if not is_new:
            count(subscriptions, (old.topic_names,), -1)
        regexes = self.regexes_with(old, new) if old.regex != new.regex else group.regex_counts
        gone = old.regex if old.regex and old.regex not in regexes else None
        resolved = {pattern: each for pattern, each in group.regexes.items() if pattern != gone}
        self.same_topics = have_same_topics(subscriptions, regexes, resolved, len(group.members) + is_new)
        self.bump_epoch(subscriptions, resolved, bump)
        if group.has_topics_record:
            self.effects.write(*records.topics_tombstone(group.group_id))

    def is_new(self, member: Member) -> bool:
        """It is not counted yet, nor is one whose place it takes."""
        group = self.group
        return member.member_id not in group.members and member.instance_id not in group.instances

    def bump_epoch(
        self, subscriptions: Iterable[frozenset[str]], resolved: Mapping[str, Resolved], bump: bool
    ) -> None:
        group = self.group
        topics = group.groups.settings.topics
        wanted = self._wanted = wanted_topics(group, subscriptions, resolved)
        metadata_hash = watch_of(group.groups.settings).hash_of(wanted)
        if bump or metadata_hash != group.metadata_hash:
            self.group_epoch = group.epoch + 1
            group.checked_epoch = self.group_epoch
            self.effects.write(*records.group_record(group.group_id, self.group_epoch, metadata_hash))
            self.log(f"Bumped group epoch to {self.group_epoch} with metadata hash {metadata_hash}.")
        group.checked_changes = topics.topic_changes

    # -- the target assignment

    def target(self, old: Member, new: Member) -> tuple[int, Share]:
        """The epoch of the target assignment, and the member's part of it. It is computed anew if the group epoch is
        ahead of it and the assignment interval is over."""
        group = self.group
        if group.target_epoch >= self.group_epoch or not self.may_assign():
            return group.target_epoch, group.share_of(new.member_id, new.instance_id)
        if self._wanted is None:
            self._wanted = wanted_topics(group, group.subscriptions, group.regexes)
        if is_large(group, self._wanted):
            self.effects.after(0, group.group_id, TARGET)
            return group.target_epoch, group.share_of(new.member_id, new.instance_id)
        rows = self._rows(new)
        name = assignor_of(group.groups.settings, self._votes(old, new))
        shares = at_once(work_out(group, rows, name, self._have_same_topics()))
        for member_id in rows:
            share = shares.get(member_id, {})
            if group.shares.get(member_id) != share:
                self.effects.write(*records.share_record(group.group_id, member_id, share))
        self.effects.write(*records.target_record(group.group_id, self.group_epoch, self.now_ms))
        say_computed(group, self.group_epoch, name)
        return self.group_epoch, shares.get(new.member_id, {})

    def may_assign(self) -> bool:
        group = self.group
        if group.upcoming is not None and group.upcoming.keeps_others_back(self.now_ms):
            return False
        interval_ms = group.assignment_interval_ms
        last_ms = group.target_ms
        return last_ms == 0 or interval_ms == 0 or self.now_ms >= last_ms + interval_ms

    def _have_same_topics(self) -> bool:
        group = self.group
        if self.same_topics is not None:
            return self.same_topics
        return have_same_topics(group.subscriptions, group.regex_counts, group.regexes, len(group.members))

    def _rows(self, new: Member) -> dict[str, tuple[Member, Share]]:
        """The members with this one, which takes the place of the one before it if it is static."""
        group = self.group
        shares = group.shares
        replaced = group.instances.get(new.instance_id) if new.instance_id is not None else None
        rows = {
            member_id: (member, shares.get(member_id, NO_SHARE))
            for member_id, member in group.members.items()
            if member_id != replaced or member_id == new.member_id
        }
        rows[new.member_id] = (new, shares.get(replaced or new.member_id, NO_SHARE))
        return rows

    def _votes(self, old: Member, new: Member) -> dict[str, int]:
        """How many members ask for which assignor."""
        counts = dict(self.group.assignor_counts)
        if old.assignor in counts:
            count(counts, (old.assignor,), -1)
        if new.assignor is not None:
            count(counts, (new.assignor,), 1)
        return counts

    # -- the member's steps towards the target assignment

    def reconcile(
        self, member: Member, target_epoch: int, share: Share, owned: Owned, subscription_changed: bool
    ) -> Member:
        if not subscription_changed and member.is_reconciled_to(target_epoch):
            return member
        group = self.group
        goal = Goal(
            target_epoch, share, topic_ids(group, member), owned, group.owners_of, subscription_changed
        )
        moved = reconcile(member, goal)
        if moved is member or moved.is_like(member):
            return member
        self.effects.write(*records.assignment_record(group.group_id, moved))
        if moved.classic is None:
            if moved.state == UNREVOKED:
                self.effects.after(
                    max(moved.rebalance_timeout_ms, 0), group.group_id, REBALANCE, moved.member_id
                )
            else:
                self.effects.cancel(group.group_id, REBALANCE, moved.member_id)
        return moved

    def restart_session(self, member: Member) -> None:
        classic = member.classic
        timeout_ms = self.group.session_timeout_ms if classic is None else classic.session_timeout_ms
        self.effects.after(timeout_ms, self.group.group_id, SESSION, member.member_id)


def protocol(classic: bool) -> str:
    return "classic" if classic else "consumer"


def check_epoch(member: Member, epoch: int, owned: Owned) -> None:
    """The member's epoch must be right; 0 joins again. The previous epoch is accepted as well, since the answer with
    the new one may have been lost."""
    if epoch == JOINING_EPOCH or epoch == member.epoch:
        return
    is_greater = epoch > member.epoch
    if not is_greater and epoch == member.previous_epoch and has_only(owned, member.assigned):
        return
    raise KafkaError(
        errors.FENCED_MEMBER_EPOCH,
        f"The consumer group member has a {'greater' if is_greater else 'smaller'} member epoch ({epoch}) than the"
        f" one known by the group coordinator ({member.epoch}). The member must abandon all its partitions and"
        " rejoin.",
    )


def check_regex(pattern: str) -> None:
    from pykafkad.pure.regex.parsing import InvalidPattern, parse

    try:
        parse(pattern)
    except InvalidPattern as problem:
        raise KafkaError(
            errors.INVALID_REGULAR_EXPRESSION,
            f"SubscribedTopicRegex `{pattern}` is not a valid regular expression: {problem}.",
        ) from None
