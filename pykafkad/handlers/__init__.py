"""One module for each API: what it serves is declared there, and everything else derives from the
declarations.

Invariant: a handler's VERSIONS are what Apache Kafka 4.3.1 advertises for that API. ApiVersions, the
dispatcher's routes and the README's table are made from `served()`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from pykafkad.dispatcher import Context
    from pykafkad.server import Broker

MODULES = (
    "produce",
    "fetch",
    "list_offsets",
    "metadata",
    "find_coordinator",
    "api_versions",
    "create_topics",
    "delete_topics",
    "init_producer_id",
    "offset_for_leader_epoch",
    "describe_cluster",
    "describe_topic_partitions",
)


class Unanswerable(Exception):
    """What the client sent cannot be answered: its connection is closed and the text is logged."""


class Handler(Protocol):
    """What a handler module declares."""

    API_KEY: int
    VERSIONS: tuple[int, int]
    REQUEST: str

    def handle(self, broker: Broker, request: Any, context: Context, /) -> Any: ...


_served: dict[int, Handler] = {}


def served() -> dict[int, Handler]:
    """The handlers by API key, in the order of the keys."""
    if not _served:
        modules = [__import__(f"{__name__}.{name}", fromlist=["handle"]) for name in MODULES]
        _served.update(sorted((module.API_KEY, module) for module in modules))
    return _served


def api_versions_refusal(correlation_id: int) -> Any:
    """The whole answer to an ApiVersions request of a version that is not served."""
    from pykafkad.handlers.api_versions import refusal

    return refusal(correlation_id)
