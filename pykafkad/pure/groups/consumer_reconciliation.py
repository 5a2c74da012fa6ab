"""How a member gets from what it has to what it should have: one step for each heartbeat.

    Stable ------> Unrevoked (gives up what is not its own any more, in its old epoch) ----+
      ^   \\                                                                                v
      |    +-----> Unreleased (in the new epoch, waits for what others still have) <--- next epoch
      +------------------------------------------------------------------------------------+

A partition is given to a member only when nobody else has it. Pure functions: nothing changes here. KIP-848.
"""

from __future__ import annotations

from collections.abc import Callable, Collection

from pykafkad import errors
from pykafkad.errors import KafkaError
from pykafkad.pure.groups.assignors import Share
from pykafkad.pure.groups.consumer_member import STABLE, UNRELEASED, UNREVOKED, Epochs, Member

Owned = dict[bytes, set[int]] | None  # what the member says that it has; None: it does not say
IsTaken = Callable[[bytes, int], bool]  # whether somebody has the partition


class Goal:
    """Where the member should get to, and what stands in the way."""

    __slots__ = ("epoch", "is_taken", "owned", "share", "subscription_changed", "topic_ids")

    def __init__(
        self,
        epoch: int,
        share: Share,
        topic_ids: Collection[bytes],
        owned: Owned,
        is_taken: IsTaken,
        subscription_changed: bool = False,
    ) -> None:
        self.epoch = epoch
        self.share = share
        self.topic_ids = topic_ids  # that it is subscribed to
        self.owned = owned
        self.is_taken = is_taken
        self.subscription_changed = subscription_changed


def reconcile(member: Member, goal: Goal) -> Member:
    """The member after the step; the same object when there is none."""
    if member.state == STABLE:
        if member.epoch != goal.epoch:
            return next_assignment(member, goal, member.epoch)
        return without_unsubscribed(member, goal) if goal.subscription_changed else member
    if member.state == UNREVOKED:
        if still_has(member.revoking, goal.owned):
            return without_unsubscribed(member, goal) if goal.subscription_changed else member
        return next_assignment(member, goal, member.epoch)
    if member.state == UNRELEASED:
        return next_assignment(member, goal, member.epoch)
    # A newer Kafka wrote a state that is not known here: start from nothing.
    if goal.owned is None or goal.owned:
        raise KafkaError(
            errors.FENCED_MEMBER_EPOCH,
            "The consumer group member is in a unknown state. The member must abandon all its partitions and rejoin.",
        )
    return next_assignment(member, goal, goal.epoch)


def still_has(revoking: Epochs, owned: Owned) -> bool:
    """Whether the member has, or may have, something that it should give up."""
    if owned is None:
        return True
    return any(
        not partitions.isdisjoint(revoking.get(topic_id, ())) for topic_id, partitions in owned.items()
    )


def without_unsubscribed(member: Member, goal: Goal) -> Member:
    """Topics that the member is not subscribed to any more are taken from it at once, before the next target."""
    gone = [topic_id for topic_id in member.assigned if topic_id not in goal.topic_ids]
    if not gone:
        return member
    assigned = {topic_id: each for topic_id, each in member.assigned.items() if topic_id not in gone}
    revoking = dict(member.revoking)
    for topic_id in gone:
        revoking[topic_id] = {**revoking.get(topic_id, {}), **member.assigned[topic_id]}
    if still_has(revoking, goal.owned):
        return member.at_epoch(member.epoch, state=UNREVOKED, assigned=assigned, revoking=revoking)
    return member.at_epoch(member.epoch, assigned=assigned)


def next_assignment(member: Member, goal: Goal, epoch: int) -> Member:
    """`epoch`: what the member stays in while there is something to give up."""
    assigned, revoking, pending, waits = compare(member, goal)
    if revoking and still_has(revoking, goal.owned):
        return member.at_epoch(epoch, state=UNREVOKED, assigned=assigned, revoking=revoking)
    for topic_id, partitions in pending.items():
        kept = assigned.setdefault(topic_id, {})
        for partition in partitions:
            kept[partition] = goal.epoch
    return member.at_epoch(goal.epoch, state=UNRELEASED if waits else STABLE, assigned=assigned, revoking={})


def compare(member: Member, goal: Goal) -> tuple[Epochs, Epochs, dict[bytes, list[int]], bool]:
    """What stays, what must go, what can come, and whether something else should come that others have."""
    assigned: Epochs = {}
    revoking: Epochs = {}
    pending: dict[bytes, list[int]] = {}
    waits = False
    for topic_id in goal.share.keys() | member.assigned.keys():
        target = goal.share.get(topic_id, frozenset()) if topic_id in goal.topic_ids else frozenset[int]()
        current = member.assigned.get(topic_id, {})
        stays = {partition: epoch for partition, epoch in current.items() if partition in target}
        goes = {partition: epoch for partition, epoch in current.items() if partition not in target}
        own = member.revoking.get(topic_id, {})  # what the member itself was asked to give up is not taken
        comes = []
        for partition in target - stays.keys():
            if goal.is_taken(topic_id, partition) and partition not in own:
                waits = True
            else:
                comes.append(partition)
        for found, into in ((stays, assigned), (goes, revoking)):
            if found:
                into[topic_id] = found
        if comes:
            pending[topic_id] = comes
    return assigned, revoking, pending, waits
