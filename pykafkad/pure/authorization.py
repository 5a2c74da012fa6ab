"""What must be allowed for a request: operations on resources, as in Kafka's ACLs.

Each handler's module declares it as `needs`; handlers/authorized.py asks an Authorizer for those that are not left to the
handler before that is called. Invariant: a name that a request leaves out (null, or a topic given by an unknown id) needs
nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from pykafkad import errors

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Final, Protocol

    Test = Callable[[Any], bool]
    TopicName = Callable[[bytes], str | None]

    class Authorizer(Protocol):
        def allows(
            self, principal: Principal, host: str, operation: int, resource: int, name: str
        ) -> bool: ...
        def allows_some(self, principal: Principal, host: str, operation: int, resource: int) -> bool:
            """Whether the operation is allowed on any name at all."""

        def note_denied(
            self, principal: Principal, host: str, operation: int, resource: int, name: str
        ) -> None:
            """Told of what a client has asked for, and may not have."""


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

# What becomes of a request that names something that is denied: it is refused as a whole; or each such element by itself,
# before the answers of the others, behind them, or where it was asked for.
ALL: Final = 0
FIRST: Final = 1
LAST: Final = 2
IN_PLACE: Final = 3
NEWEST = 32767

# Types of resources with configs; those of all others belong to the cluster.
CONFIGS_OF_A_TOPIC, CONFIGS_OF_A_GROUP = 2, 32


class Principal:
    """The sender of the requests of a connection."""

    __slots__ = ("name", "type")

    def __init__(self, type: str, name: str) -> None:
        self.type = type
        self.name = name

    def __str__(self) -> str:
        return f"{self.type}:{self.name}"


ANONYMOUS = Principal("User", "ANONYMOUS")


class Need:
    """One operation on every resource that a request names at a path of fields, such as "topics.name"; without a path
    on the cluster.

    `or_on_cluster` is an operation on the cluster that suffices instead, `or_on_some_topic` one on any topic. `when`
    selects requests, `since` and `until` their versions, `of` elements of the path's array. `denied` says what becomes of
    the request. From version `ids_since` on its topics are named by their ids. `by_handler`: the handler checks it, since
    it leaves out of its answer what is not allowed, or only finds out later whether it is needed.
    """

    __slots__ = (
        "by_handler",
        "denied",
        "ids_since",
        "of",
        "operation",
        "or_on_cluster",
        "or_on_some_topic",
        "path",
        "resource",
        "since",
        "until",
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
        since: int = 0,
        until: int = NEWEST,
        of: Test | None = None,
        denied: int = ALL,
        ids_since: int = NEWEST,
        by_handler: bool = False,
    ) -> None:
        self.operation = operation
        self.resource = resource
        self.path = tuple(path.split(".")) if path else ()
        self.or_on_cluster = or_on_cluster
        self.or_on_some_topic = or_on_some_topic
        self.when = when
        self.since = since
        self.until = until
        self.of = of
        self.denied = denied
        self.ids_since = ids_since
        self.by_handler = by_handler

    def is_asked(self, request: Any, version: int) -> bool:
        return self.since <= version <= self.until and (self.when is None or self.when(request))

    def names(self, request: Any) -> Iterator[str]:
        """The names of the resources of the whole request on which it is needed."""
        if not self.path:
            yield THE_CLUSTER
            return
        value = getattr(request, self.path[0])
        if isinstance(value, list):
            yield from value
        elif value is not None:
            yield value

    def elements(self, request: Any) -> list[Any]:
        """What it is needed for one by one."""
        return getattr(request, self.path[0]) or []

    def name_in(self, element: Any, version: int, topic_name: TopicName) -> str | None:
        """The name of the resource of one element; None: nothing is needed for it."""
        if self.of is not None and not self.of(element):
            return None
        if self.resource == CLUSTER:
            return THE_CLUSTER
        if version >= self.ids_since:
            return topic_name(element.topic_id)
        name: str | None = getattr(element, self.path[1]) if len(self.path) > 1 else element
        return name


def on_configs(operation: int, denied: int = ALL, *, by_handler: bool = False) -> tuple[Need, ...]:
    """The needs of requests about the configs of topics, groups, brokers and client metrics."""
    of_their_own = (CONFIGS_OF_A_TOPIC, CONFIGS_OF_A_GROUP)

    def need(resource: int, of: Test) -> Need:
        name = "resources.resource_name"
        return Need(operation, resource, name, of=of, denied=denied, by_handler=by_handler)

    return (
        need(TOPIC, lambda asked: asked.resource_type == CONFIGS_OF_A_TOPIC),
        need(GROUP, lambda asked: asked.resource_type == CONFIGS_OF_A_GROUP),
        need(CLUSTER, lambda asked: asked.resource_type not in of_their_own),
    )
