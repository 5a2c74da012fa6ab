"""The controlled shutdown: before it stops, a broker asks the controller to move what it leads (KIP-143, KIP-380).

A controller that cannot, or does not answer, is asked again controlled.shutdown.max.retries times; then the broker goes
all the same, and its partitions have no leader until the controller notices. A broker that is the controller itself goes
when the others have been told, or have had a second for it: else they would learn it of the next controller only.
"""

from __future__ import annotations

from pykafkad import errors
from pykafkad.logs import logger
from pykafkad.messages import ControlledShutdownRequest
from pykafkad.net.peers import Purpose

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from pykafkad.cluster.zookeeper.producer_ids import Asking
    from pykafkad.messages import ControlledShutdownResponse
    from pykafkad.net.peers import Connections

VERSION = 3
TOLD_MS, LOOK_MS = 1_000, 10  # how long the others may take, and how often it is looked whether they know

log = logger("server")


class Departure:
    def __init__(
        self,
        config: Any,
        node_id: int,
        cluster: Asking,
        connections: Connections,
        call_later: Callable[..., Any],
        untold: Callable[[], int],
        done: Callable[[], None],
    ) -> None:
        """`untold`: how many requests of the controller that this broker is have no answer; 0 where another one is."""
        self._node_id, self._cluster, self._connections = node_id, cluster, connections
        self._call_later, self._untold, self._done = call_later, untold, done
        self._left: int = config["controlled.shutdown.max.retries"]
        self._pause_ms: int = config["controlled.shutdown.retry.backoff.ms"]
        self._purpose = Purpose(
            str(node_id), under_way_max=1, request_timeout_ms=config["controller.socket.timeout.ms"]
        )

    def ask(self) -> None:
        controller_id = self._cluster.controller_id
        if controller_id < 0:
            self._again("nobody is known to be the controller")
            return
        request = ControlledShutdownRequest(broker_id=self._node_id, broker_epoch=self._cluster.broker_epoch)
        self._connections.to(controller_id, self._purpose).ask(request, VERSION, self._answered)

    def _answered(self, answer: ControlledShutdownResponse | OSError) -> None:
        if isinstance(answer, OSError):
            self._again(str(answer))
        elif answer.error_code:
            self._again(errors.NAMES.get(answer.error_code, str(answer.error_code)))
        elif answer.remaining_partitions:
            self._again(f"{len(answer.remaining_partitions)} partitions have nobody else to lead them")
        else:
            log.info("the controller has moved what this broker led")
            self._go(TOLD_MS // LOOK_MS)

    def _go(self, looks: int) -> None:
        if looks and self._untold():
            self._call_later(LOOK_MS, lambda: self._go(looks - 1))
        else:
            self._done()

    def _again(self, why: str) -> None:
        if not self._left:
            log.warn(f"what this broker leads could not be moved: {why}; stopping all the same")
            self._done()
            return
        self._left -= 1
        log.info(f"what this broker leads could not be moved: {why}; asking again in {self._pause_ms} ms")
        self._call_later(self._pause_ms, self.ask)
