r"""How a member gets from its current assignment to its target assignment: one step with each heartbeat.

    Stable ------> Unrevoked (revokes partitions, in its old epoch) -----------------------+
      ^   \                                                                                v
      |    +-----> Unreleased (in the new epoch, waits for other members' revocations) <-- next epoch
      +------------------------------------------------------------------------------------+

A partition is assigned to a member only when no other member owns it. Pure functions: nothing changes here. KIP-848.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping

from pykafkad import errors
from pykafkad.errors import KafkaError
from pykafkad.pure.groups.assignors import Share
from pykafkad.pure.groups.consumer_member import STABLE, UNRELEASED, UNREVOKED, Epochs, Member

Owned = dict[bytes, set[int]] | None  # the partitions that the member reports to own; None: not reported
OwnersOf = Callable[[bytes], Mapping[int, str]]  # for a topic: which member has which partition


class Goal:
    """The target assignment of a member, and who else owns partitions of it."""

    __slots__ = ("epoch", "owned", "owners_of", "share", "subscription_changed", "topic_ids")

    def __init__(
        self,
        epoch: int,
        share: Share,
        topic_ids: Collection[bytes],
        owned: Owned,
        owners_of: OwnersOf,
        subscription_changed: bool = False,
    ) -> None:
        self.epoch = epoch
        self.share = share
        self.topic_ids = topic_ids  # the topics that the member subscribes to
        self.owned = owned
        self.owners_of = owners_of
        self.subscription_changed = subscription_changed


def reconcile(member: Member, goal: Goal) -> Member:
    """The member after its next step, or the same object if there is none."""
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
    # The state was written by a newer Kafka and is not known here: begin again from the target assignment.
    if goal.owned is None or goal.owned:
        raise KafkaError(
            errors.FENCED_MEMBER_EPOCH,
            "The consumer group member is in a unknown state. The member must abandon all its partitions and rejoin.",
        )
    return next_assignment(member, goal, goal.epoch)


def still_has(revoking: Epochs, owned: Owned) -> bool:
    """Whether the member owns, or may own, partitions that it has to revoke."""
    if owned is None:
        return True
    return any(
        not partitions.isdisjoint(revoking.get(topic_id, ())) for topic_id, partitions in owned.items()
    )


def without_unsubscribed(member: Member, goal: Goal) -> Member:
    """Partitions of topics that the member no longer subscribes to are revoked at once, without waiting for a new
    target."""
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
    """The next assignment of the member; `epoch` is the one that it stays in while it has partitions to revoke."""
    assigned, revoking, pending, waits = compare(member, goal)
    if revoking and still_has(revoking, goal.owned):
        return member.at_epoch(epoch, state=UNREVOKED, assigned=assigned, revoking=revoking)
    for topic_id, partitions in pending.items():
        kept = assigned.setdefault(topic_id, {})
        for partition in partitions:
            kept[partition] = goal.epoch
    return member.at_epoch(goal.epoch, state=UNRELEASED if waits else STABLE, assigned=assigned, revoking={})


def compare(member: Member, goal: Goal) -> tuple[Epochs, Epochs, dict[bytes, list[int]], bool]:
    """Partitions to keep, to revoke, to assign now, and whether others have to be waited for."""
    assigned: Epochs = {}
    revoking: Epochs = {}
    pending: dict[bytes, list[int]] = {}
    waits = False
    for topic_id in goal.share.keys() | member.assigned.keys():
        target = goal.share.get(topic_id, frozenset()) if topic_id in goal.topic_ids else frozenset[int]()
        current = member.assigned.get(topic_id, {})
        stays = {partition: epoch for partition, epoch in current.items() if partition in target}
        goes = {partition: epoch for partition, epoch in current.items() if partition not in target}
        own = member.revoking.get(topic_id, {})  # not those that the member itself is revoking
        wanted = target - stays.keys()
        taken = wanted & goal.owners_of(topic_id).keys() - own.keys()
        comes = list(wanted - taken)
        waits = waits or bool(taken)
        for found, into in ((stays, assigned), (goes, revoking)):
            if found:
                into[topic_id] = found
        if comes:
            pending[topic_id] = comes
    return assigned, revoking, pending, waits
