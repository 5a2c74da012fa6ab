"""Keeps this broker registered with the controllers: sends what its machine (pure/kraft/lifecycle.py) wants, when it
wants it."""

from __future__ import annotations

from functools import partial

from pykafkad import errors
from pykafkad.cluster import features
from pykafkad.cluster.handover import SECURITY_PROTOCOLS
from pykafkad.logs import logger
from pykafkad.messages import BrokerHeartbeatRequest, BrokerRegistrationRequest
from pykafkad.net.peers import Purpose
from pykafkad.pure.kraft.lifecycle import NEVER_MS, State, Want
from pykafkad.uuids import random_uuid

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any

    from pykafkad.clock import Clock
    from pykafkad.cluster.kraft.controllers import Controllers
    from pykafkad.cluster.kraft.observing import Loop
    from pykafkad.config_listeners import Endpoint
    from pykafkad.pure.kraft.lifecycle import Lifecycle
    from pykafkad.quiet import Quiet

REGISTRATION, REGISTRATION_NEWEST = 62, 4
HEARTBEAT, HEARTBEAT_NEWEST = 63, 2
CORDONED_SINCE = 2
NOBODY = -1

log = logger("controllers")


class Registered:
    """What a registration says of this broker."""

    def __init__(
        self,
        node_id: int,
        cluster_id: str,
        endpoints: Sequence[Endpoint],
        directories: Sequence[bytes],
        rack: str | None,
        previous_epoch: int,
    ) -> None:
        self.node_id, self.cluster_id = node_id, cluster_id
        self.incarnation_id = random_uuid()
        self.endpoints, self.directories, self.rack = endpoints, sorted(directories), rack
        self.previous_epoch = previous_epoch  # at the last clean stop; -1: it was none

    def request(self, version: int) -> BrokerRegistrationRequest:
        kind = BrokerRegistrationRequest
        return kind(
            broker_id=self.node_id,
            cluster_id=self.cluster_id,
            incarnation_id=self.incarnation_id,
            listeners=[
                kind.Listener(
                    name=point.name,
                    host=point.host,
                    port=point.port,
                    security_protocol=SECURITY_PROTOCOLS.index(point.protocol),
                )
                for point in self.endpoints
            ],
            features=[
                kind.Feature(name=name, min_supported_version=lowest, max_supported_version=highest)
                for name, (lowest, highest) in features.SUPPORTED.items()
            ],
            rack=self.rack,
            log_dirs=self.directories,
            previous_broker_epoch=self.previous_epoch,
        )


class Presence:
    def __init__(
        self,
        machine: Lifecycle,
        controllers: Controllers,
        clock: Clock,
        loop: Loop,
        quiet: Quiet,
        session_ms: int,
        metadata_offset: Callable[[], int],
        cordoned: Callable[[], list[bytes]],
    ) -> None:
        """`metadata_offset`: of the last record in the image. `cordoned`: log directories that take no new partitions."""
        self.machine = machine
        self.about: Registered
        self.on_gone: Callable[[], None] = log_gone
        self._controllers, self._clock, self._loop, self._quiet = controllers, clock, loop, quiet
        self._metadata_offset, self._cordoned = metadata_offset, cordoned
        self._timer: Any = None
        self._purpose_ms = max(session_ms // 2, 1)
        self._closed = False

    def begin(self, about: Registered) -> None:
        self.about = about
        self._purpose = Purpose(
            f"broker-{about.node_id}-heartbeat",
            asks_versions=True,
            request_timeout_ms=self._purpose_ms,
            under_way_max=1,
        )
        self.look()

    def close(self) -> None:
        self._closed = True
        if self._timer is not None:
            self._timer.cancel()

    # -- what happens here

    def ready(self) -> None:
        self.machine.ready()
        self.look()

    def leave(self) -> None:
        self.machine.leave()
        self.look()

    def controller_changed(self) -> None:
        if self._controllers.active != NOBODY:
            self.machine.controller_changed()
            self.look()

    def directories_failed(self, ids: Sequence[bytes]) -> None:
        self.machine.directories_failed(ids)
        self.look()

    # -- asking

    def look(self) -> None:
        """Whether there is something to ask now, or when."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if self._closed:
            return
        if self.machine.state is State.GONE:
            self.close()
            self.on_gone()
            return
        now_ms = self._clock.monotonic_ms()
        want = self.machine.next(now_ms)
        if want is not None:
            self._ask(want, now_ms)
        elif self.machine.next_ms < NEVER_MS:
            self._timer = self._loop.call_later(max(1, self.machine.next_ms - now_ms), self.look)

    def _ask(self, want: Want, now_ms: int) -> None:
        active = self._controllers.active
        if active == NOBODY:
            self.machine.lost(now_ms)
            self.look()
            return
        link = self._controllers.peers.to(active, self._purpose)
        if want is Want.REGISTER:
            link.ask_built(REGISTRATION, REGISTRATION_NEWEST, self.about.request, self._registered)
        else:
            offline = list(self.machine.offline)
            build = partial(self._heartbeat, offline)
            link.ask_built(HEARTBEAT, HEARTBEAT_NEWEST, build, partial(self._beaten, offline))

    def _heartbeat(self, offline: list[bytes], version: int) -> BrokerHeartbeatRequest:
        request = BrokerHeartbeatRequest(
            broker_id=self.about.node_id,
            broker_epoch=self.machine.broker_epoch,
            current_metadata_offset=self._metadata_offset(),
            want_fence=not self.machine.is_ready,
            want_shut_down=self.machine.state is State.LEAVING,
            offline_log_dirs=offline,
        )
        if version >= CORDONED_SINCE:
            request.cordoned_log_dirs = self._cordoned()
        return request

    # -- answers

    def _registered(self, answer: Any) -> None:
        now_ms = self._clock.monotonic_ms()
        if isinstance(answer, OSError):
            self._lost("the registration", str(answer), now_ms)
        else:
            if answer.error_code:
                self._say("the registration", f"was refused: {name_of(answer.error_code)}")
            else:
                log.info(f"registered with the controllers, broker epoch {answer.broker_epoch}")
            self.machine.registered(answer.error_code, answer.broker_epoch, now_ms)
        self.look()

    def _beaten(self, offline: list[bytes], answer: Any) -> None:
        now_ms = self._clock.monotonic_ms()
        if isinstance(answer, OSError):
            self._lost("a heartbeat", str(answer), now_ms)
        else:
            if answer.error_code:
                self._say("a heartbeat", f"was refused: {name_of(answer.error_code)}")
            was_fenced = self.machine.is_fenced
            self.machine.beaten(answer, offline, now_ms)
            if was_fenced != self.machine.is_fenced:
                log.info(f"this broker is {'fenced' if self.machine.is_fenced else 'unfenced'}")
        self.look()

    def _lost(self, what: str, why: str, now_ms: int) -> None:
        self._say(what, f"was not answered: {why}")
        self.machine.lost(now_ms)

    def _say(self, what: str, text: str) -> None:
        if self._quiet.allows(log, what, "controller"):
            log.warn(f"{what} {text}; it is sent again")


def name_of(code: int) -> str:
    return errors.NAMES.get(code, str(code))


def log_gone() -> None:
    log.info("the controllers have let this broker go")
