"""Members of a consumer group go: they leave, or are fenced. With the last member that uses the consumer protocol the
group becomes a classic one, where that is allowed and there are others (consumer_conversion)."""

from __future__ import annotations

from collections.abc import Iterable

from pykafkad.pure.groups import consumer_records as records
from pykafkad.pure.groups.consumer import JOIN, REBALANCE, SESSION, SYNC
from pykafkad.pure.groups.consumer_member import Member
from pykafkad.pure.groups.consumer_update import Update
from pykafkad.pure.groups.effects import Effects

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
    names, regexes = dict(group.topic_counts), dict(group.regex_counts)
    for member in gone.values():
        update.effects.records += records.member_tombstones(group.group_id, member.member_id)
        leave_counts(names, member.topic_names)
        leave_counts(regexes, (member.regex,) if member.regex else ())
    without = [pattern for pattern in group.regex_counts if pattern not in regexes]
    for pattern in without:
        update.effects.write(*records.regex_tombstone(group.group_id, pattern))
    resolved = {pattern: each for pattern, each in group.regexes.items() if pattern not in without}
    update.bump_epoch(names, resolved, True)
    for member_id in gone:
        cancel_timers(update.effects, group.group_id, member_id)


def leave_counts(counts: dict[str, int], names: Iterable[str]) -> None:
    for name in names:
        counts[name] -= 1
        if not counts[name]:
            del counts[name]


def cancel_timers(effects: Effects, group_id: str, member_id: str) -> None:
    for timer in TIMERS:
        effects.cancel(group_id, timer, member_id)
