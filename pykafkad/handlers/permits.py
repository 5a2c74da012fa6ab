"""What the sender of a request may do: the authorizer's decisions for one request, each of them asked for once.

A handler that leaves out what is not allowed, or only finds out later what a request needs, makes the Permits of its
context if the broker has an authorizer; what every request of an API needs handlers/authorized.py has asked for before.
Who asks for something and may not have it is noted in the log; what is only left out of an answer is not.
"""

from __future__ import annotations

from functools import partial

from pykafkad.pure.authorization import (
    ALTER,
    ALTER_CONFIGS,
    CLUSTER,
    CLUSTER_ACTION,
    CREATE,
    DELETE,
    DESCRIBE,
    DESCRIBE_CONFIGS,
    GROUP,
    IDEMPOTENT_WRITE,
    READ,
    THE_CLUSTER,
    TOPIC,
    WRITE,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from typing import TypeVar

    from pykafkad.context import Context
    from pykafkad.handlers.broker import Broker
    from pykafkad.pure.authorization import Authorizer, Need
    from pykafkad.slices import Work

    Element = TypeVar("Element")

AT_ONCE = 64  # decisions between two looks at the clock
OPERATIONS = {
    TOPIC: (READ, WRITE, CREATE, DELETE, ALTER, DESCRIBE, DESCRIBE_CONFIGS, ALTER_CONFIGS),
    GROUP: (READ, DELETE, DESCRIBE, DESCRIBE_CONFIGS, ALTER_CONFIGS),
    CLUSTER: (CREATE, ALTER, DESCRIBE, CLUSTER_ACTION, DESCRIBE_CONFIGS, ALTER_CONFIGS, IDEMPOTENT_WRITE),
}


def topics_shown(broker: Broker, context: Context) -> Callable[[str], bool] | None:
    """Tells of a topic whether the client may describe it; None: there is no authorizer."""
    if broker.authorizer is None:
        return None
    return partial(Permits(broker.authorizer, context).show, DESCRIBE, TOPIC)


class Permits:
    """Those of the principal that sent a request, from where it did. It keeps nothing of the request."""

    __slots__ = ("_authorizer", "_known", "_who")

    def __init__(self, authorizer: Authorizer, context: Context) -> None:
        self._authorizer = authorizer
        self._who = context.principal, context.connection.peer[0]
        self._known: dict[tuple[int, int, str], bool] = {}

    def allow(self, operation: int, resource: int, name: str = THE_CLUSTER) -> bool:
        """Of what the client has asked for."""
        return self.show(operation, resource, name) or self._deny(operation, resource, name)

    def _deny(self, operation: int, resource: int, name: str) -> bool:
        self._authorizer.note_denied(*self._who, operation, resource, name)
        return False

    def show(self, operation: int, resource: int, name: str = THE_CLUSTER) -> bool:
        """Of what there is, or where something else would do."""
        asked = operation, resource, name
        known = self._known.get(asked)
        if known is None:
            principal, host = self._who
            known = self._authorizer.allows(principal, host, operation, resource, name)
            self._known[asked] = known
        return known

    def satisfy(self, need: Need, name: str) -> bool:
        if self.show(need.operation, need.resource, name):
            return True
        if need.or_on_cluster is not None and self.show(need.or_on_cluster, CLUSTER):
            return True
        some = need.or_on_some_topic
        if some is not None and self._authorizer.allows_some(*self._who, some, TOPIC):
            return True
        return self._deny(need.operation, need.resource, name)

    def operations(self, resource: int, name: str = THE_CLUSTER) -> int:
        """All that is allowed on this resource: bit N stands for ACL operation N."""
        return sum(1 << each for each in OPERATIONS[resource] if self.show(each, resource, name))

    def cluster_operations(self) -> int:
        """The same of the cluster, for those who may describe it."""
        return self.operations(CLUSTER) if self.show(DESCRIBE, CLUSTER) else 0

    def split(
        self,
        operation: int,
        resource: int,
        elements: Iterable[Element],
        name_of: Callable[[Element], str],
        *,
        asked: bool = True,
    ) -> Work[tuple[list[Element], list[Element]]]:
        """The elements whose operation is allowed, and the others. `asked`: they are the request's."""
        may = self.allow if asked else self.show
        allowed: list[Element] = []
        denied: list[Element] = []
        for place, element in enumerate(elements, 1):
            is_allowed = may(operation, resource, name_of(element))
            (allowed if is_allowed else denied).append(element)
            if not place % AT_ONCE:
                yield
        return allowed, denied

    def only(
        self,
        operation: int,
        resource: int,
        elements: Iterable[Element],
        name_of: Callable[[Element], str],
    ) -> Work[list[Element]]:
        """Of an answer."""
        allowed, _denied = yield from self.split(operation, resource, elements, name_of, asked=False)
        return allowed
