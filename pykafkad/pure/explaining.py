"""Why is nothing arriving? Rules that find reasons in facts.

Facts are what control/facts.py tells of a broker, and what its asker found out about the way there. Each rule
is a function from the facts to findings; RULES is their table, in the order in which they are told. Invariants: a
finding says only what the facts say, and what was seen of it; a rule about a thing that is not there finds nothing.
"""

from __future__ import annotations

from pykafkad.pure.explaining_facts import (
    CAUSE,
    LIKELY,
    Facts,
    Finding,
    at,
    by_topic,
    of_group,
    of_member,
)
from pykafkad.pure.explaining_words import SHOWN, are, are_near, listed, name_of, plural, who

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from typing import Any

    Row = dict[str, Any]
    Rule = Callable[["Facts"], Iterable["Finding"]]

REBALANCING = ("PreparingRebalance", "CompletingRebalance", "Assigning", "Reconciling")
DOES = {  # what a member is to do, as Facts have it -> what it has not done
    "rejoin": "has not joined again",
    "assign": "is the leader and has not said who gets which partitions",
    "sync": "has joined and not asked for its partitions",
    "revoke": "has not given up partitions that others are to get",
    "reconcile": "has not taken over its new assignment",
}
QUIET_MS = 5_000  # consumers fetch more often than that, whether or not there is something


def explain(facts: Facts) -> list[Finding]:
    """The findings, the surest first."""
    found = [finding for rule in RULES for finding in rule(facts)]
    return sorted(found, key=lambda finding: finding.certainty != CAUSE)


# -- the way to the broker


def unreachable_listener(facts: Facts) -> Iterator[Finding]:
    for address, problem in facts.listeners:
        if problem is not None:
            yield Finding(
                "unreachable-listener",
                CAUSE,
                f"clients are told to connect to {address}, and from here that fails: {problem}",
                "set advertised.listeners to an address that clients reach",
            )


# -- the topic


def no_topic(facts: Facts) -> Iterator[Finding]:
    for topic in facts.topics:
        if not topic["exists"]:
            name = topic["name"]
            near = [other for other in topic["others"] if are_near(name, other)][:SHOWN]
            also = f"; there is {listed(near)}" if near else ""
            yield Finding(
                "no-topic", CAUSE, f"topic {name} does not exist{also}", "create it, or correct its name"
            )


def offline_partitions(facts: Facts) -> Iterator[Finding]:
    for topic, rows in by_topic(facts.partitions):
        offline = [row["index"] for row in rows if not row["leads"]]
        if offline:
            yield Finding(
                "offline",
                CAUSE,
                f"{plural(len(offline), 'partition')} of {topic} {are(len(offline))} not served by this broker:"
                f" {listed(offline)}",
                "see the broker's log for the log directory that failed, or ask the broker that leads them",
            )


def empty_topic(facts: Facts) -> Iterator[Finding]:
    for topic, rows in by_topic(facts.partitions):
        served = [row for row in rows if row["leads"]]
        if served and all(row["end"] == 0 for row in served):
            yield Finding("empty-topic", CAUSE, f"nobody has ever written to {topic}", "look at the producer")
        elif served and all(row["start"] == row["high_watermark"] for row in served):
            yield Finding(
                "no-records",
                CAUSE,
                f"{topic} has no records any more: what was written has been deleted",
                "see its retention.ms and retention.bytes",
            )


def open_transaction(facts: Facts) -> Iterator[Finding]:
    for row in facts.partitions:
        if row["leads"] and row["last_stable"] < row["high_watermark"] and row["transaction"] is not None:
            transaction = row["transaction"]
            where = f"{row['topic']}-{row['index']}"
            held = row["high_watermark"] - row["last_stable"]
            readers = [each for each in facts.fetches if at(each) == (row["topic"], row["index"])]
            stuck = [
                each for each in readers if each["offset"] >= row["last_stable"] and each["committed_only"]
            ]
            yield Finding(
                "open-transaction",
                CAUSE if stuck else LIKELY,
                f"the last {held} records of {where} are behind the transaction of producer id"
                f" {transaction['producer_id']}, open since offset {transaction['first_offset']}: with"
                " isolation.level=read_committed nobody gets them",
                "commit or abort it; `pykafkad status` shows whether its producer is still connected",
            )


# -- the group


def no_group(facts: Facts) -> Iterator[Finding]:
    if facts.group is None:
        return
    if facts.group_facts is None and facts.is_loading:
        yield Finding(
            "loading",
            LIKELY,
            f"the coordinator of group {facts.group} is still reading its records, and answers nobody yet",
            "ask again in a moment",
        )
    elif facts.group_facts is None:
        yield Finding(
            "no-group",
            CAUSE,
            f"group {facts.group} does not exist: no consumer with this group.id has joined or committed",
            "compare group.id; a consumer with assign() that never commits is in no group",
        )
    elif not facts.group_facts["members"]:
        yield Finding(
            "no-members",
            CAUSE,
            f"group {facts.group} has no members: nobody consumes with this group.id now",
            "start the consumer, and see that it calls poll(); one that has left or timed out is in the broker's log",
        )


def rebalancing(facts: Facts) -> Iterator[Finding]:
    group = facts.group_facts
    if group is None or group["state"] not in REBALANCING:
        return
    said = f"group {group['id']} is rebalancing ({group['state']}, generation {group['generation']})"
    if group["is_initial"]:
        yield Finding(
            "initial-rebalance",
            CAUSE,
            f"{said}: it is new, and waits for more members",
            "set group.initial.rebalance.delay.ms=0 for tests",
        )
        return
    for act, what in DOES.items():
        late = [member for member in facts.members if member["behind"] == act]
        if late:
            yield Finding(
                "rebalancing",
                CAUSE,
                f"{said}: {listed([who(member) for member in late])} {what}",
                "it does not call poll(), or is gone without leaving; the group goes on without it at the end of its"
                " max.poll.interval.ms or session.timeout.ms",
            )


def not_subscribed(facts: Facts) -> Iterator[Finding]:
    known = [member for member in facts.members if member["topics"] is not None]
    if facts.topic is None or not known:
        return
    if not any(facts.topic in member["topics"] for member in known):
        others = sorted({topic for member in known for topic in member["topics"]})
        yield Finding(
            "not-subscribed",
            CAUSE,
            f"no member of group {facts.group} has subscribed to {facts.topic}, but to {listed(others) or 'nothing'}",
            "correct the topic in subscribe()",
        )


def assigned_to_others(facts: Facts) -> Iterator[Finding]:
    for member in facts.members:
        if member["assigned"] != {} or member["behind"] is not None:
            continue
        topics = [
            topic for topic in member["topics"] or () if topic in {row["topic"] for row in facts.partitions}
        ]
        owners = [
            each for each in facts.members if any(topic in (each["assigned"] or {}) for topic in topics)
        ]
        if topics and owners:
            count = sum(1 for row in facts.partitions if row["topic"] in topics)
            yield Finding(
                "assigned-to-others",
                CAUSE,
                f"{who(member)} has no partition: the {plural(count, 'partition')} of {listed(topics)}"
                f" {are(count)} assigned to {listed([who(each) for each in owners])}",
                "more members than partitions get nothing: add partitions, or end the other consumers",
            )


# -- offsets


def out_of_range(facts: Facts) -> Iterator[Finding]:
    where = {(row["topic"], row["index"]): row for row in facts.partitions if row["leads"]}
    for committed in facts.committed:
        row = where.get(at(committed))
        if row is None or row["start"] <= committed["offset"] <= row["high_watermark"]:
            continue
        beyond = committed["offset"] > row["high_watermark"]
        limit = f"beyond its end {row['high_watermark']}" if beyond else f"before its start {row['start']}"
        yield Finding(
            "out-of-range",
            CAUSE,
            f"group {facts.group} has committed offset {committed['offset']} of {name_of(committed)}, which is"
            f" {limit}: the consumer goes where auto.offset.reset says, by default to the end",
            "set auto.offset.reset=earliest, or reset the offsets (pykafkad groups --reset-offsets)",
        )


def at_the_end(facts: Facts) -> Iterator[Finding]:
    """Everything is read, as far as fetches show where their consumers are, or else commits."""
    for topic, rows in by_topic(facts.partitions):
        served = [row for row in rows if row["leads"] and row["start"] < row["high_watermark"]]
        positions = [position_of(facts, row) for row in served]
        known = [
            (row, position) for row, position in zip(served, positions, strict=True) if position is not None
        ]
        if (
            known
            and len(known) == len(served)
            and all(position == row["high_watermark"] for row, position in known)
        ):
            whose = f"group {facts.group}" if facts.group is not None else "who fetches"
            ends = [f"{row['topic']}-{row['index']} at {position}" for row, position in known]
            yield Finding(
                "at-end",
                CAUSE,
                f"{whose} is at the end of {topic} ({listed(ends)}): nothing has been written since",
                "to read again what is there, use another group.id with auto.offset.reset=earliest, or reset the offsets",
            )


def position_of(facts: Facts, row: Row) -> int | None:
    here = row["topic"], row["index"]
    fetched: list[int] = [
        each["offset"] for each in facts.fetches if at(each) == here and of_group(facts, each)
    ]
    if fetched:
        return max(fetched)
    committed: list[int] = [each["offset"] for each in facts.committed if at(each) == here]
    return committed[0] if committed else None


# -- fetching


def large_batch(facts: Facts) -> Iterator[Finding]:
    for fetch in facts.fetches:
        if fetch["next_bytes"] > fetch["max_bytes"] and of_group(facts, fetch):
            yield Finding(
                "large-batch",
                LIKELY,
                f"the batch at offset {fetch['offset']} of {name_of(fetch)} has {fetch['next_bytes']} bytes, and"
                f' client "{fetch["client_id"]}" takes {fetch["max_bytes"]} of a partition: it comes only when it is the'
                " first of an answer, and some clients refuse it",
                "set max.partition.fetch.bytes (or fetch.message.max.bytes) above that",
            )


def not_fetching(facts: Facts) -> Iterator[Finding]:
    """Assigned, and not fetched from: paused, or not polled."""
    if facts.group_facts is None or facts.group_facts["state"] != "Stable":
        return
    served = {(row["topic"], row["index"]) for row in facts.partitions if row["leads"]}
    for member in facts.members:
        assigned = {
            (topic, index) for topic, some in (member["assigned"] or {}).items() for index in some
        } & served
        last_ms = {
            at(each): each["idle_ms"]
            for each in facts.fetches
            if of_member(member, each) and each["connected"]
        }
        missing = sorted(assigned - last_ms.keys())
        late = sorted(each for each in assigned & last_ms.keys() if last_ms[each] > QUIET_MS)
        if missing:
            yield quiet(member, missing, "does not fetch from")
        if late:
            ago_s = min(last_ms[each] for each in late) // 1000
            yield quiet(member, late, f"has fetched {ago_s} s ago for the last time from")


def quiet(member: Row, partitions: list[tuple[str, int]], what: str) -> Finding:
    names = [f"{topic}-{index}" for topic, index in partitions]
    return Finding(
        "not-fetching",
        LIKELY,
        f"{who(member)} is alive and {what} {listed(names)}, which {are(len(names))} assigned to it",
        "it is paused, is busy with what it got before, or its poll() is not called",
    )


def nobody_fetches(facts: Facts) -> Iterator[Finding]:
    if facts.group is None and any(topic["exists"] for topic in facts.topics):
        recent = [each for each in facts.fetches if each["connected"] and each["idle_ms"] <= QUIET_MS]
        if not recent:
            yield Finding(
                "nobody-fetches",
                CAUSE,
                f"nobody fetches from {facts.topic} now",
                "start the consumer; with --group G more is known",
            )


RULES: tuple[Rule, ...] = (
    unreachable_listener,
    no_topic,
    offline_partitions,
    no_group,
    rebalancing,
    not_subscribed,
    assigned_to_others,
    out_of_range,
    empty_topic,
    open_transaction,
    at_the_end,
    large_batch,
    not_fetching,
    nobody_fetches,
)
