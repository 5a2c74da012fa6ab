"""Members of a consumer group leave, or are fenced. When the last member that uses the consumer protocol is gone, and
there are others, the group is converted to a classic one if that is allowed (consumer_conversion).
"""

from __future__ import annotations

from collections.abc import Iterable

from pykafkad.pure.effects import Effects
from pykafkad.pure.groups import consumer_records as records
from pykafkad.pure.groups.consumer import JOIN, REBALANCE, SESSION, SYNC, count
from pykafkad.pure.groups.consumer_member import Member
from pykafkad.pure.groups.consumer_update import Update

TIMERS = (SESSION, REBALANCE, JOIN, SYNC)


def fence(update: Update, members: Iterable[Member]) -> None:
    gone = {member.member_id: member for member in members}
    if not gone:
        return
    group = update.group
    from pykafkad.pure.groups import consumer_conversion

    if consumer_conversion.may_downgrade_without(update, gone.values()):
        reason = f"Downgrade group {group.group_id} from consumer to classic for member leaving."
        consumer_conversion.to_classic_group(update, gone, None, reason)
        return
    subscriptions, regexes = dict(group.subscriptions), dict(group.regex_counts)
    for member in gone.values():
        update.effects.records += records.member_tombstones(group.group_id, member.member_id)
        count(subscriptions, (member.topic_names,), -1)
        count(regexes, (member.regex,) if member.regex else (), -1)
    without = [pattern for pattern in group.regex_counts if pattern not in regexes]
    for pattern in without:
        update.effects.write(*records.regex_tombstone(group.group_id, pattern))
    resolved = {pattern: each for pattern, each in group.regexes.items() if pattern not in without}
    update.bump_epoch(subscriptions, resolved, True)
    for member_id in gone:
        cancel_timers(update.effects, group.group_id, member_id)


def cancel_timers(effects: Effects, group_id: str, member_id: str) -> None:
    for timer in TIMERS:
        effects.cancel(group_id, timer, member_id)
