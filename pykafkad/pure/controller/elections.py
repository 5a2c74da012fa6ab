"""Who leads a partition next, by the reason of the election. No side effects.

Each rule is given the leadership as ZooKeeper has it, and returns the next one, or None where nobody may lead, and whom
to tell.
"""

from __future__ import annotations

from typing import NamedTuple

from pykafkad.pure.controller.facts import RECOVERING

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from pykafkad.pure.controller.context import Context
    from pykafkad.pure.controller.facts import Leadership, Partition


class Elected(NamedTuple):
    leadership: Leadership | None
    recipients: tuple[int, ...]


def offline(context: Context, partition: Partition, old: Leadership, *, unclean: bool) -> Elected:
    """The first replica that is alive and in sync; if there is none and it is allowed, the first that is alive, which
    then recovers: nobody else is in sync with it, whatever was acknowledged before."""
    replicas = context.assignment(partition).replicas
    alive = tuple(each for each in replicas if context.is_online(each, partition))
    leader = first(alive, old.isr)
    if leader is not None:
        isr = tuple(each for each in old.isr if context.is_online(each, partition))
        return Elected(old.led_by(leader, isr), alive)
    if unclean and alive:
        return Elected(old.led_by(alive[0], alive[:1], RECOVERING), alive)
    return Elected(None, alive)


def reassigned(context: Context, partition: Partition, old: Leadership) -> Elected:
    """The first of the target that is alive and in sync."""
    target = context.assignment(partition).target
    leader = first((each for each in target if context.is_online(each, partition)), old.isr)
    return Elected(None if leader is None else old.led_by(leader), target)


def preferred(context: Context, partition: Partition, old: Leadership) -> Elected:
    """The first replica, if it is alive and in sync."""
    replicas = context.assignment(partition).replicas
    leader = first((each for each in replicas[:1] if context.is_online(each, partition)), old.isr)
    return Elected(None if leader is None else old.led_by(leader), replicas)


def shut_down(context: Context, partition: Partition, old: Leadership) -> Elected:
    """The first replica that is in sync, alive and stays so; who is shutting down is told, and no longer in sync."""
    replicas = context.assignment(partition).replicas
    alive = tuple(each for each in replicas if context.is_online(each, partition, or_shutting_down=True))
    staying = tuple(each for each in old.isr if each not in context.shutting_down)
    leader = first(alive, staying)
    return Elected(None if leader is None else old.led_by(leader, staying), alive)


def first(candidates: Iterable[int], among: tuple[int, ...]) -> int | None:
    return next((each for each in candidates if each in among), None)
