"""Producer ids of a broker in a cluster: blocks of a thousand, which the controller writes down before it gives one
(AllocateProducerIds, KIP-730).

Invariant: an id is handed out once. The next block is asked for before the last id is gone; a controller that does not
answer is asked again, and whoever waits too long is refused.
"""

from __future__ import annotations

from collections import deque

from pykafkad import errors
from pykafkad.cluster.turns import tell
from pykafkad.errors import KafkaError
from pykafkad.logs import logger
from pykafkad.messages import AllocateProducerIdsRequest
from pykafkad.net.peers import Purpose

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, Protocol

    from pykafkad.messages import AllocateProducerIdsResponse
    from pykafkad.net.peers import Connections
    from pykafkad.quiet import Quiet

    class Asking(Protocol):
        """What is asked of the cluster."""

        @property
        def broker_epoch(self) -> int: ...
        @property
        def controller_id(self) -> int: ...

    Done = Callable[[int | KafkaError], None]

ALLOCATE_PRODUCER_IDS, NEWEST = 67, 0
ASK_AHEAD = 100  # ids left when the next block is asked for
AGAIN_MS = 50
ATTEMPTS = 20  # before those who wait are told to come again

log = logger("transactions")


class ProducerIds:
    def __init__(
        self,
        node_id: int,
        cluster: Asking,
        connections: Connections,
        call_later: Callable[..., Any],
        quiet: Quiet,
    ) -> None:
        self._node_id, self._cluster, self._connections = node_id, cluster, connections
        self._call_later, self._quiet = call_later, quiet
        # Kafka has a connection of its own for it, beside that for the ISRs.
        self._purpose = Purpose(str(node_id), asks_versions=True, under_way_max=1)
        self._ids: deque[int] = deque()
        self._waiting: deque[Done] = deque()
        self._is_asking = False
        self._failures = 0  # since those who wait were told something
        self._closed = False

    def take(self, done: Done) -> None:
        """Calls `done` with a new id, at once if there is one in hand."""
        self._waiting.append(done)
        self._serve()

    def close(self) -> None:
        self._closed = True
        self._refuse()

    def _serve(self) -> None:
        while self._waiting and self._ids:
            tell(self._waiting.popleft(), self._ids.popleft())
        if len(self._ids) < ASK_AHEAD and not self._is_asking:
            self._is_asking = True
            self._ask()

    def _ask(self) -> None:
        if self._closed:
            self._refuse()
            return
        controller_id = self._cluster.controller_id
        if controller_id < 0:
            self._failed("nobody is known to be the controller")
            return
        link = self._connections.to(controller_id, self._purpose)
        link.ask_built(ALLOCATE_PRODUCER_IDS, NEWEST, self._request, self._answered)

    def _request(self, version: int) -> AllocateProducerIdsRequest:
        return AllocateProducerIdsRequest(broker_id=self._node_id, broker_epoch=self._cluster.broker_epoch)

    def _answered(self, answer: AllocateProducerIdsResponse | OSError) -> None:
        if isinstance(answer, OSError):
            self._failed(str(answer))
        elif answer.error_code:
            self._failed(errors.NAMES.get(answer.error_code, str(answer.error_code)))
        else:
            self._is_asking, self._failures = False, 0
            start = answer.producer_id_start
            self._ids.extend(range(start, start + answer.producer_id_len))
            self._serve()

    def _failed(self, why: str) -> None:
        if self._quiet.allows(log, "producer ids that the controller did not give", why):
            log.warn(f"the controller gave no producer ids: {why}; it is asked again")
        self._failures += 1
        if self._failures >= ATTEMPTS:
            self._failures = 0
            self._refuse()
        self._call_later(AGAIN_MS, self._ask_again)

    def _ask_again(self) -> None:
        if self._waiting:
            self._ask()
        else:
            self._is_asking = False  # whoever comes next asks

    def _refuse(self) -> None:
        waiting, self._waiting = self._waiting, deque()
        for done in waiting:
            tell(done, KafkaError(errors.COORDINATOR_LOAD_IN_PROGRESS))
