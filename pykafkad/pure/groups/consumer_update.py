"""What a member's request does to its group, worked out step by step before any of it happens.

The steps are those of every request that may change a member: get it, save what it told, see whether the topics
changed, work out a new target, bring the member a step closer to it. Each adds its records to the effects.
Invariant: nothing of the group changes here but what is soft (see consumer).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from pykafkad import errors
from pykafkad.errors import KafkaError
from pykafkad.pure.groups import consumer_records as records
from pykafkad.pure.groups.assignors import ASSIGNORS, Share, Subscriber, assign
from pykafkad.pure.groups.classic_member import most_voted
from pykafkad.pure.groups.consumer import NO_SHARE, REBALANCE, REGEX, SESSION, ConsumerGroup, count
from pykafkad.pure.groups.consumer_member import LEFT_FOR_A_WHILE, UNREVOKED, Member, has_only
from pykafkad.pure.groups.consumer_reconciliation import Goal, Owned, reconcile
from pykafkad.pure.groups.effects import Effects
from pykafkad.pure.groups.regex_resolution import MIN_INTERVAL_MS, Resolved
from pykafkad.pure.groups.topic_watch import watch_of

REGEX_KEPT, REGEX_CHANGED, REGEX_CHANGED_AND_KNOWN = range(3)

JOINING_EPOCH = 0
CLASS_NAMES = {
    "org.apache.kafka.coordinator.group.assignor.UniformAssignor": "uniform",
    "org.apache.kafka.coordinator.group.assignor.RangeAssignor": "range",
}


def assignor_names(configured: Iterable[str]) -> list[str]:
    """The assignors of group.consumer.assignors, which may be given by Kafka's classes."""
    return [CLASS_NAMES.get(name, name) for name in configured]


class Update:
    __slots__ = ("effects", "group", "group_epoch", "now_ms", "same_topics")

    def __init__(self, group: ConsumerGroup, effects: Effects, now_ms: int) -> None:
        self.group = group
        self.effects = effects
        self.now_ms = now_ms
        self.group_epoch = group.epoch  # with this update
        self.same_topics: bool | None = None  # all members want the same topics; None: not looked at

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
        """KIP-345: the name stays, the member behind it may be another."""
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

    def save(self, old: Member, new: Member) -> bool:
        """Whether the member names other topics now."""
        if new.is_like(old):
            return False
        self.effects.write(*records.member_record(self.group.group_id, new))
        return new.topic_names != old.topic_names

    # -- regular expressions

    def save_regex(self, old: Member, new: Member) -> int:
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
            self.effects.after(0, group.group_id, REGEX)
        return change

    def _must_resolve(self, old: Member, new: Member, is_new: bool) -> bool:
        group = self.group
        if not is_new and not group.regex_counts:
            return False
        if group.resolution is not None:
            return False
        first = next(iter(group.regexes.values()), None)  # they are always resolved together
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
        """How many members subscribe to which expression after the change."""
        counts = dict(self.group.regex_counts)
        if old.regex in counts:
            count(counts, (old.regex,), -1)
        if new.regex:
            count(counts, (new.regex,), 1)
        return counts

    # -- topics

    def has_stale_topics(self) -> bool:
        """Topics changed since this group last looked, its own or others; or what came of that was not written."""
        group = self.group
        is_new = group.checked_changes != group.groups.settings.topics.topic_changes
        return is_new or group.epoch < group.checked_epoch

    def refresh_topics(self, bump: bool, old: Member, new: Member) -> None:
        """Compare the group's topics, as they are with the change, with what is known; a new epoch if needed."""
        group = self.group
        names = dict(group.topic_counts)
        if old.topic_names != new.topic_names:
            # A blank member that was never counted has no names.
            count(names, old.topic_names, -1)
            count(names, new.topic_names, 1)
        regexes = self.regexes_with(old, new) if old.regex != new.regex else group.regex_counts
        gone = old.regex if old.regex and old.regex not in regexes else None
        resolved = {pattern: each for pattern, each in group.regexes.items() if pattern != gone}
        self.same_topics = have_same_topics(names, regexes, resolved, self.members_with(new))
        self.bump_epoch(names, resolved, bump)
        if group.has_topics_record:
            self.effects.write(*records.topics_tombstone(group.group_id))

    def members_with(self, member: Member) -> int:
        group = self.group
        is_new = member.member_id not in group.members and member.instance_id not in group.instances
        return len(group.members) + is_new

    def bump_epoch(self, names: Iterable[str], resolved: Mapping[str, Resolved], bump: bool) -> None:
        group = self.group
        topics = group.groups.settings.topics
        wanted = set(names).union(*(each.topics for each in resolved.values()))
        metadata_hash = watch_of(group.groups.settings).hash_of(wanted)
        if bump or metadata_hash != group.metadata_hash:
            self.group_epoch = group.epoch + 1
            group.checked_epoch = self.group_epoch
            self.effects.write(*records.group_record(group.group_id, self.group_epoch, metadata_hash))
            self.log(f"Bumped group epoch to {self.group_epoch} with metadata hash {metadata_hash}.")
        group.checked_changes = topics.topic_changes

    # -- the target

    def target(self, old: Member, new: Member) -> tuple[int, Share]:
        """The target's epoch, and the member's share in it: worked out anew where the group is ahead of it and the
        last time is long enough ago."""
        group = self.group
        if group.target_epoch >= self.group_epoch or not self.may_assign():
            return group.target_epoch, group.share_of(new.member_id, new.instance_id)
        subscribers = self._subscribers(new)
        counts = self._counts(subscribers)
        name = self._assignor(old, new)
        same_topics = self.same_topics
        if same_topics is None:
            same_topics = have_same_topics(
                group.topic_counts, group.regex_counts, group.regexes, len(group.members)
            )
        shares = assign(name, subscribers, counts, same_topics)
        for member_id in subscribers:
            share = shares.get(member_id, {})
            if group.shares.get(member_id) != share:
                self.effects.write(*records.share_record(group.group_id, member_id, share))
        self.effects.write(*records.target_record(group.group_id, self.group_epoch, self.now_ms))
        self.log(f"Computed a new target assignment for epoch {self.group_epoch} with '{name}' assignor.")
        return self.group_epoch, shares.get(new.member_id, {})

    def may_assign(self) -> bool:
        interval_ms = self.group.assignment_interval_ms
        last_ms = self.group.target_ms
        return last_ms == 0 or interval_ms == 0 or self.now_ms >= last_ms + interval_ms

    def _subscribers(self, new: Member) -> dict[str, Subscriber]:
        group = self.group
        shares = group.shares
        replaced = group.instances.get(new.instance_id) if new.instance_id is not None else None
        wanted: dict[tuple[frozenset[str], str], frozenset[bytes]] = {}

        def subscriber(member: Member, share: Share) -> Subscriber:
            key = member.topic_names, member.regex
            topic_ids = wanted.get(key)
            if topic_ids is None:
                topic_ids = wanted[key] = self.topic_ids(member)
            return Subscriber(topic_ids, share, member.instance_id)

        found = {
            member_id: subscriber(member, shares.get(member_id, NO_SHARE))
            for member_id, member in group.members.items()
            if member_id != replaced or member_id == new.member_id
        }
        found[new.member_id] = subscriber(new, shares.get(replaced or new.member_id, NO_SHARE))
        return found

    def topic_ids(self, member: Member) -> frozenset[bytes]:
        """Of the topics that the member is subscribed to, those that exist. An expression whose topics are not known
        yet stands for none."""
        names: Iterable[str] = member.topic_names
        resolved = self.group.regexes.get(member.regex)
        if resolved is not None:
            names = member.topic_names | resolved.topics
        topics = self.group.groups.settings.topics.topics
        return frozenset(topics[name].id for name in names if name in topics)

    def _counts(self, subscribers: Mapping[str, Subscriber]) -> dict[bytes, int]:
        by_id = self.group.groups.settings.topics.topics_by_id
        topic_ids = frozenset[bytes]().union(*{each.topic_ids for each in subscribers.values()})
        return {topic_id: len(by_id[topic_id].partitions) for topic_id in topic_ids}

    def _assignor(self, old: Member, new: Member) -> str:
        """What most members ask for; the broker's first one where nobody asks for any."""
        configured = assignor_names(self.group.groups.settings.consumer_assignors)
        counts = dict(self.group.assignor_counts)
        if old.assignor in counts:
            count(counts, (old.assignor,), -1)
        if new.assignor is not None:
            count(counts, (new.assignor,), 1)
        if counts:
            name = most_voted(name for name, votes in counts.items() for _ in range(votes))
            if name in ASSIGNORS:
                return name
        return configured[0]

    # -- the member's way to the target

    def reconcile(
        self, member: Member, target_epoch: int, share: Share, owned: Owned, subscription_changed: bool
    ) -> Member:
        if not subscription_changed and member.is_reconciled_to(target_epoch):
            return member
        group = self.group
        goal = Goal(target_epoch, share, self.topic_ids(member), owned, group.is_taken, subscription_changed)
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
    """0 joins anew. The epoch before is right too, where the answer with the new one may not have arrived."""
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
    from pykafkad.pure.groups.regular_expressions import InvalidPattern, RegularExpression

    try:
        RegularExpression(pattern)
    except InvalidPattern as problem:
        raise KafkaError(
            errors.INVALID_REGULAR_EXPRESSION,
            f"SubscribedTopicRegex `{pattern}` is not a valid regular expression: {problem}.",
        ) from None


def have_same_topics(
    names: Mapping[str, int], regexes: Mapping[str, int], resolved: Mapping[str, Resolved], members: int
) -> bool:
    """Whether all members want the same topics: all name the same ones, or all use one expression and no names."""
    if not regexes:
        return all(votes == members for votes in names.values())
    if next(iter(regexes.values())) != members or names:
        return False
    return len(resolved) <= 1
