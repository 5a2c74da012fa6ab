"""What time does to a consumer group: members that are silent or too slow are fenced, regular expressions are resolved.

Timers, after the group's id: ("session", member) since its last heartbeat; ("rebalance", member) while it has
partitions to revoke; ("join", member) and ("sync", member) while a member of the classic protocol has to send that
request; ("regex",) to resolve the regular expressions; ("target",) to compute the target of a large group.
"""

from __future__ import annotations

from functools import partial

from pykafkad.pure.effects import Effects, TimerKey, Work
from pykafkad.pure.groups import consumer_records as records
from pykafkad.pure.groups.consumer import JOIN, REBALANCE, REGEX, SESSION, SYNC, TARGET, ConsumerGroup
from pykafkad.pure.groups.consumer_leaving import fence
from pykafkad.pure.groups.consumer_member import LEFT_FOR_A_WHILE, UNREVOKED
from pykafkad.pure.groups.consumer_target import begin
from pykafkad.pure.groups.consumer_update import Update
from pykafkad.pure.groups.regex_resolution import Resolution, Resolved

SHOWN = 1_000  # characters of regular expressions in a line of the log

REASONS = {
    SESSION: "the member session expired",
    JOIN: "the classic member failed to join within the rebalance timeout",
    SYNC: "the member failed to sync within timeout",
}


def on_timer(group: ConsumerGroup, key: TimerKey, now_ms: int) -> Effects:
    if key[1] == TARGET:
        return begin(group, now_ms)
    effects = Effects()
    update = Update(group, effects, now_ms)
    if key[1] == REGEX:
        resolve(update)
    elif len(key) == 3:  # timers that are left from a classic group have no member
        expire(update, key[1], key[2])
    return effects


def expire(update: Update, timer: str, member_id: str) -> None:
    member = update.group.members.get(member_id)
    if member is None or (timer in (JOIN, SYNC) and member.classic is None):
        return  # the member is gone, or no longer has to join and sync
    if timer == REBALANCE:
        if member.state != UNREVOKED or member.epoch == LEFT_FOR_A_WHILE:
            return
        reason = f"it failed to transition from epoch {member.epoch} within {max(member.rebalance_timeout_ms, 0)}ms"
    else:
        reason = REASONS[timer]
    update.log(f"Member {member_id} fenced from the group because {reason}.")
    fence(update, [member])


def resolve(update: Update) -> None:
    """Begin to look for the topics that match the regular expressions; the group continues meanwhile."""
    group = update.group
    settings = group.groups.settings
    is_kept_back = group.resolution is not None and group.resolution.keeps_others_back(update.now_ms)
    if is_kept_back or not group.regex_counts:
        return
    may_describe = group.groups.may_describe.pop(group.group_id, None)
    resolution = group.resolution = Resolution(group.regex_counts, settings, update.now_ms, may_describe)
    update.effects.work = Work(resolution.run(), partial(resolved, group, resolution))


def resolved(
    group: ConsumerGroup, resolution: Resolution, results: dict[str, Resolved], now_ms: int
) -> Effects:
    effects = Effects()
    if group.groups.by_id.get(group.group_id) is not group or group.resolution is not resolution:
        return effects
    update = Update(group, effects, now_ms)
    update.log(
        f"Scanned {len(resolution.names)} topics to refresh regular expressions {shortened(list(results))} in"
        f" {now_ms - resolution.start_ms}ms."
    )
    if resolution.given_up:
        update.log(f"Regular expressions that take too long: {shortened(resolution.given_up)}.")
    save_resolved(update, results)
    group.resolution = None
    effects.on_refused = partial(not_written, group, resolution)
    return effects


def not_written(group: ConsumerGroup, resolution: Resolution, error_code: int) -> Effects:
    """The result could not be written, so it does not count. The next attempt waits as long as after a success."""
    group.resolution = resolution
    group.groups.settings.log(
        f"[GroupId {group.group_id}] The topics of regular expressions are not written: error {error_code}."
    )
    return Effects()


def shortened(patterns: list[str]) -> str:
    """The list as text, cut to what one line of the log should have."""
    text = str([pattern[:SHOWN] for pattern in patterns[:SHOWN]])
    return text if len(text) <= SHOWN else f"{text[:SHOWN]}..."


def leaves_something(group: ConsumerGroup, pattern: str) -> bool:
    """Whether a member's target assignment has topics that only its previous regular expression matched. If the new one
    matches no topic Kafka sees no change, and their partitions stay unassigned until something else changes."""
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
            continue  # no member uses it any more
        known = group.regexes.get(pattern)
        if known is None and not each.topics:
            bump |= leaves_something(group, pattern)
        else:
            bump |= known is None or each.topics != known.topics
        resolved[pattern] = each
        update.effects.write(
            *records.regex_record(group.group_id, pattern, each.topics, each.version, each.time_ms)
        )
    update.bump_epoch(group.subscriptions, resolved, bump)
