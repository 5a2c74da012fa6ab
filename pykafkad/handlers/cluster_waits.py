"""Waiting for topics that a request has created, in a cluster: for a while, and then the client is to ask again.

They are created with ZooKeeper, which may be away for long, and whatever else a client has asked for on its connection,
fetches for example, is answered only after this request.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from pykafkad.handlers.broker import Broker

WAIT_MS = 1000


def in_time(broker: Broker, done: Callable[..., None], *late: Any) -> Callable[..., None]:
    """`done`, which is told the outcome, or `late` if there is none by then, and nothing after that."""
    is_told = False

    def tell(*outcome: Any) -> None:
        nonlocal is_told
        if not is_told:
            is_told = True
            done(*outcome)

    broker.coordinator_loop.call_later(WAIT_MS, lambda: tell(*late))
    return tell
