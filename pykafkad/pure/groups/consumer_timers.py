"""What happens to a consumer group with time: members that are silent or too slow go, expressions are resolved.

Timers, after the group's id: ("session", member) since its last heartbeat; ("rebalance", member) while it has to give
up partitions; ("join", member) and ("sync", member) of one that uses the classic protocol, while it should do that;
("regex",) to resolve the regular expressions.
"""

from __future__ import annotations

from pykafkad.pure.groups import consumer_records as records
from pykafkad.pure.groups.consumer import JOIN, REBALANCE, REGEX, SESSION, SYNC, ConsumerGroup
from pykafkad.pure.groups.consumer_leaving import fence
from pykafkad.pure.groups.consumer_member import LEFT_FOR_A_WHILE, UNREVOKED
from pykafkad.pure.groups.consumer_update import Update
from pykafkad.pure.groups.effects import Effects, TimerKey
from pykafkad.pure.groups.regex_resolution import Resolution, Resolved
from pykafkad.pure.groups.topic_watch import watch_of

REASONS = {
    SESSION: "the member session expired",
    JOIN: "the classic member failed to join within the rebalance timeout",
    SYNC: "the member failed to sync within timeout",
}


def on_timer(group: ConsumerGroup, key: TimerKey, now_ms: int) -> Effects:
    effects = Effects()
    update = Update(group, effects, now_ms)
    if key[1] == REGEX:
        resolve(update)
    elif len(key) == 3:  # what is left of a classic group's timers has no member
        expire(update, key[1], key[2])
    return effects


def expire(update: Update, timer: str, member_id: str) -> None:
    member = update.group.members.get(member_id)
    if member is None or (timer in (JOIN, SYNC) and member.classic is None):
        return  # it is gone, or need not join and sync any more
    if timer == REBALANCE:
        if member.state != UNREVOKED or member.epoch == LEFT_FOR_A_WHILE:
            return
        reason = f"it failed to transition from epoch {member.epoch} within {max(member.rebalance_timeout_ms, 0)}ms"
    else:
        reason = REASONS[timer]
    update.log(f"Member {member_id} fenced from the group because {reason}.")
    fence(update, [member])


def resolve(update: Update) -> None:
    """A slice of the topics; the result when all were looked at."""
    group = update.group
    topics = group.groups.settings.topics
    if group.resolution is None:
        if not group.regex_counts:
            return
        watch_of(group.groups.settings).newest_version()  # what is new from here on is not looked at
        group.resolution = Resolution(group.regex_counts, topics.topics, topics.offset, update.now_ms)
    if not group.resolution.go_on():
        update.effects.after(0, group.group_id, REGEX)
        return
    results = group.resolution.results()
    update.log(
        f"Scanned {len(topics.topics)} topics to refresh regular expressions {list(results)} in"
        f" {update.now_ms - group.resolution.start_ms}ms."
    )
    group.resolution = None
    save_resolved(update, results)


def leaves_something(group: ConsumerGroup, pattern: str) -> bool:
    """Whether a subscriber's share has topics of an expression it had before. When the new one stands for none Kafka
    sees no change, and nobody gets what is in that share until something else happens."""
    by_id = group.groups.settings.topics.topics_by_id
    for member in group.members.values():
        if member.regex == pattern:
            share = group.shares.get(member.member_id, {})
            if any(each in by_id and by_id[each].name not in member.topic_names for each in share):
                return True
    return False


def save_resolved(update: Update, results: dict[str, Resolved]) -> None:
    group = update.group
    resolved = dict(group.regexes)
    bump = False
    for pattern, each in results.items():
        if pattern not in group.regex_counts:
            continue  # nobody is subscribed to it any more
        known = group.regexes.get(pattern)
        if known is None and not each.topics:
            bump |= leaves_something(group, pattern)
        else:
            bump |= known is None or each.topics != known.topics
        resolved[pattern] = each
        update.effects.write(
            *records.regex_record(group.group_id, pattern, each.topics, each.version, each.time_ms)
        )
    update.bump_epoch(group.topic_counts, resolved, bump)
