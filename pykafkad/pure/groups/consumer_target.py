"""The target assignment of a consumer group: which partitions each member should have.

In a small group, the request that needs a new target assignment computes it. In a large one that would hold the loop:
so it is computed in pieces, and until it is complete the group continues with the present one, as it does while that is
younger than group.consumer.assignment.interval.ms. The group may change in the meantime; members that are gone then get
nothing, and other changes are left to the next target assignment.

Invariant: a group computes one target assignment at a time; one that cannot be written is tried again RETRY_MS later.
"""

from __future__ import annotations

from functools import partial
from itertools import chain

from pykafkad.pure.effects import Effects, Record, Work
from pykafkad.pure.groups import consumer_records as records
from pykafkad.pure.groups.assignors import ASSIGNORS, Share, Shares, Steps, Subscriber, assign
from pykafkad.pure.groups.classic_member import most_voted
from pykafkad.pure.groups.records import encode
from pykafkad.pure.groups.topic_watch import existing

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from pykafkad.pure.groups.consumer import ConsumerGroup
    from pykafkad.pure.groups.consumer_member import Member
    from pykafkad.pure.groups.regex_resolution import Resolved
    from pykafkad.pure.groups.settings import GroupSettings

    Rows = Mapping[str, tuple[Member, Share]]  # members by id, with their previous assignments
    Changed = tuple[Member, Share, Record, tuple[bytes, bytes | None]]

A_TIME = 64  # members between two yields
MEMBERS_MAX, PARTITIONS_MAX = 2_000, 20_000  # of a small group
NO_SHARE: Share = {}
RETRY_MS = 10_000

CLASS_NAMES = {
    "org.apache.kafka.coordinator.group.assignor.UniformAssignor": "uniform",
    "org.apache.kafka.coordinator.group.assignor.RangeAssignor": "range",
}


def assignor_names(configured: Iterable[str]) -> list[str]:
    """The names of the assignors in group.consumer.assignors, which may name Kafka's classes."""
    return [CLASS_NAMES.get(name, name) for name in configured]


def assignor_of(settings: GroupSettings, votes: Mapping[str, int]) -> str:
    """The assignor that most members ask for; the broker's first one if none of them asks for any."""
    if votes:
        name = most_voted(name for name, count in votes.items() for _ in range(count))
        if name in ASSIGNORS:
            return name
    return assignor_names(settings.consumer_assignors)[0]


def wanted_topics(
    group: ConsumerGroup, subscriptions: Iterable[frozenset[str]], resolved: Mapping[str, Resolved]
) -> set[str]:
    """The topics that members subscribe to and that exist."""
    topics = group.groups.settings.topics.topics
    named = chain(subscriptions, (each.topics for each in resolved.values()))
    return set[str]().union(*(existing(topics, names) for names in named))


def topic_ids(group: ConsumerGroup, member: Member) -> frozenset[bytes]:
    """The topics that the member subscribes to and that exist. A regular expression that was not resolved yet matches
    none."""
    topics = group.groups.settings.topics.topics
    names = existing(topics, member.topic_names)
    resolved = group.regexes.get(member.regex)
    if resolved is not None:
        names |= existing(topics, resolved.topics)
    return frozenset([topics[name].id for name in names])


def have_same_topics(
    subscriptions: Mapping[frozenset[str], int],
    regexes: Mapping[str, int],
    resolved: Mapping[str, Resolved],
    members: int,
) -> bool:
    """Whether all members subscribe to the same topics: to the same names, or by the same regular expression and no
    names."""
    if not regexes:
        return len(subscriptions) <= 1
    if next(iter(regexes.values())) != members or any(subscriptions):
        return False
    return len(resolved) <= 1


def work_out(group: ConsumerGroup, rows: Rows, assignor: str, same_topics: bool) -> Steps[Shares]:
    """The new assignments of these members."""
    subscribers: dict[str, Subscriber] = {}
    counts: dict[bytes, int] = {}
    wanted: dict[tuple[frozenset[str], str], frozenset[bytes]] = {}
    for number, (member_id, (member, share)) in enumerate(rows.items(), 1):
        if not number % A_TIME:
            yield
        key = member.topic_names, member.regex
        if key not in wanted:
            wanted[key] = topic_ids(group, member)
            by_id = group.groups.settings.topics.topics_by_id
            counts |= {each: len(by_id[each].partitions) for each in wanted[key] if each not in counts}
        subscribers[member_id] = Subscriber(wanted[key], share, member.instance_id)
    return (yield from assign(assignor, subscribers, counts, same_topics))


def is_large(group: ConsumerGroup, wanted: Iterable[str]) -> bool:
    """Whether the target assignment has to be computed in pieces. `wanted` are the group's topics."""
    topics = group.groups.settings.topics.topics
    return (
        len(group.members) > MEMBERS_MAX
        or sum(len(topics[name].partitions) for name in wanted) > PARTITIONS_MAX
    )


# -- for a large group


class Upcoming:
    """A target assignment in progress, for the group as it was when that began."""

    __slots__ = ("assignor", "epoch", "group", "is_done", "start_ms")

    def __init__(self, group: ConsumerGroup, now_ms: int) -> None:
        self.group = group
        self.epoch = group.epoch
        self.assignor = ""
        self.start_ms = now_ms
        self.is_done = False

    def keeps_others_back(self, now_ms: int) -> bool:
        """Whether no other one may begin: this one is in progress, or has just failed."""
        return not self.is_done or now_ms <= self.start_ms + RETRY_MS

    def run(self) -> Steps[list[Changed]]:
        try:
            return (yield from self._run())
        finally:
            self.is_done = True

    def _run(self) -> Steps[list[Changed]]:
        group = self.group
        self.epoch = group.epoch
        same = have_same_topics(group.subscriptions, group.regex_counts, group.regexes, len(group.members))
        rows = {each: (member, group.shares.get(each, NO_SHARE)) for each, member in group.members.items()}
        self.assignor = assignor_of(group.groups.settings, group.assignor_counts)
        shares = yield from work_out(group, rows, self.assignor, same)
        changed: list[Changed] = []
        for number, (member_id, (member, _)) in enumerate(rows.items(), 1):
            share = shares.get(member_id, {})
            if group.shares.get(member_id) != share:
                record = records.share_record(group.group_id, member_id, share)
                changed.append((member, share, record, encode(*record)))
            if not number % A_TIME:
                yield
        return changed


def begin(group: ConsumerGroup, now_ms: int) -> Effects:
    """Begin to compute the target assignment that the group lacks."""
    effects = Effects()
    is_kept_back = group.upcoming is not None and group.upcoming.keeps_others_back(now_ms)
    if group.target_epoch < group.epoch and not is_kept_back:
        upcoming = group.upcoming = Upcoming(group, now_ms)
        effects.work = Work(upcoming.run(), partial(worked_out, group, upcoming))
    return effects


def worked_out(group: ConsumerGroup, upcoming: Upcoming, changed: list[Changed], now_ms: int) -> Effects:
    effects = Effects()
    if group.groups.by_id.get(group.group_id) is not group or group.upcoming is not upcoming:
        return effects
    encoded = []
    for member, share, record, data in changed:
        if member.member_id not in group.members:
            successor = group.static_member(member.instance_id)
            if successor is None:
                continue
            record = records.share_record(group.group_id, successor.member_id, share)
            data = encode(*record)
        effects.records.append(record)
        encoded.append(data)
    last = records.target_record(group.group_id, upcoming.epoch, now_ms)
    effects.records.append(last)
    effects.encoded = [*encoded, encode(*last)]
    group.upcoming = None
    effects.on_refused = partial(not_written, group, upcoming)
    say_computed(group, upcoming.epoch, upcoming.assignor)
    return effects


def not_written(group: ConsumerGroup, upcoming: Upcoming, error_code: int) -> Effects:
    group.upcoming = upcoming
    group.groups.settings.log(
        f"[GroupId {group.group_id}] The target assignment for epoch {upcoming.epoch} is not written: error"
        f" {error_code}."
    )
    return Effects()


def say_computed(group: ConsumerGroup, epoch: int, assignor: str) -> None:
    group.groups.settings.log(
        f"[GroupId {group.group_id}] Computed a new target assignment for epoch {epoch} with '{assignor}' assignor."
    )
