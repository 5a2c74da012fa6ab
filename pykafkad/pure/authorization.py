"""What must be allowed for a request: operations on resources, as in Kafka's ACLs.

Each handler's module declares it as `needs`; handlers/authorized.py asks an Authorizer for all of them before the
handler is called. Invariant: a name that a request leaves out (null, or a topic given by an unknown id) needs nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Protocol

from pykafkad import errors

READ, WRITE, CREATE, DELETE, ALTER, DESCRIBE, CLUSTER_ACTION = 3, 4, 5, 6, 7, 8, 9
DESCRIBE_CONFIGS, ALTER_CONFIGS, IDEMPOTENT_WRITE = 10, 11, 12

TOPIC, GROUP, CLUSTER, TRANSACTIONAL_ID = 2, 3, 4, 5
THE_CLUSTER = "kafka-cluster"  # the only name of that resource
DENIED = {
    TOPIC: errors.TOPIC_AUTHORIZATION_FAILED,
    GROUP: errors.GROUP_AUTHORIZATION_FAILED,
    CLUSTER: errors.CLUSTER_AUTHORIZATION_FAILED,
    TRANSACTIONAL_ID: errors.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
}

# Types of resources with configs; those of all others belong to the cluster.
CONFIGS_OF_A_TOPIC, CONFIGS_OF_A_GROUP = 2, 32

Test = Callable[[Any], bool]
TopicName = Callable[[bytes], str | None]


class Principal:
    """The sender of the requests of a connection."""

    __slots__ = ("name", "type")

    def __init__(self, type: str, name: str) -> None:
        self.type = type
        self.name = name

    def __str__(self) -> str:
        return f"{self.type}:{self.name}"


ANONYMOUS = Principal("User", "ANONYMOUS")


class Authorizer(Protocol):
    def allows(self, principal: Principal, host: str, operation: int, resource: int, name: str) -> bool: ...
    def allows_some(self, principal: Principal, host: str, operation: int, resource: int) -> bool:
        """Whether the operation is allowed on any name at all."""


class Need:
    """One operation on every resource that a request names at a path of fields, such as "topics.name"; without a path
    on the cluster.

    `or_on_cluster` is an operation on the cluster that suffices instead, `or_on_some_topic` one on any topic. `when`
    selects requests, `of` elements of the path's last array. `by_handler`: the handler checks it, since it leaves out
    of its answer what is not allowed, or only finds out later whether it is needed.
    """

    __slots__ = (
        "by_handler",
        "of",
        "operation",
        "or_on_cluster",
        "or_on_some_topic",
        "path",
        "resource",
        "when",
    )

    def __init__(
        self,
        operation: int,
        resource: int,
        path: str = "",
        *,
        or_on_cluster: int | None = None,
        or_on_some_topic: int | None = None,
        when: Test | None = None,
        of: Test | None = None,
        by_handler: bool = False,
    ) -> None:
        self.operation = operation
        self.resource = resource
        self.path = tuple(path.split(".")) if path else ()
        self.or_on_cluster = or_on_cluster
        self.or_on_some_topic = or_on_some_topic
        self.when = when
        self.of = of
        self.by_handler = by_handler

    def names(self, request: Any, topic_name: TopicName) -> Iterator[str]:
        """The names of the resources of this request on which it is needed."""
        if self.when is not None and not self.when(request):
            return
        if not self.path:
            yield THE_CLUSTER
            return
        *arrays, last = self.path
        for element in elements(request, arrays):
            if self.of is None or self.of(element):
                yield from named(element, last, self.resource, topic_name)


def elements(request: Any, arrays: list[str]) -> Iterator[Any]:
    """The values at the end of this path of arrays."""
    if not arrays:
        yield request
        return
    for element in getattr(request, arrays[0]) or ():
        yield from elements(element, arrays[1:])


def named(element: Any, field: str, resource: int, topic_name: TopicName) -> Iterator[str]:
    value = getattr(element, field)
    if isinstance(value, list):
        yield from value
    elif value:
        yield value
    elif resource == TOPIC and hasattr(element, "topic_id"):
        name = topic_name(element.topic_id)
        if name is not None:
            yield name


def on_configs(operation: int) -> tuple[Need, ...]:
    """The needs of requests about the configs of topics, groups, brokers and client metrics."""
    of_their_own = (CONFIGS_OF_A_TOPIC, CONFIGS_OF_A_GROUP)
    name = "resources.resource_name"
    return (
        Need(operation, TOPIC, name, of=lambda asked: asked.resource_type == CONFIGS_OF_A_TOPIC),
        Need(operation, GROUP, name, of=lambda asked: asked.resource_type == CONFIGS_OF_A_GROUP),
        Need(
            operation,
            CLUSTER,
            when=lambda request: any(asked.resource_type not in of_their_own for asked in request.resources),
        ),
    )
