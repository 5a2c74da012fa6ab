"""One connection to one leader: sends what its machine asks for, and does to the logs what that makes of the answers.

The bytes of an answer are appended as they are, in the pass in which they came; the next request goes out at its end,
when they are written (and, where flush.messages wants that, on the disk): a fetch from an offset says that what lies
before is ours. Kafka's fetcher threads, with the same client ids.
"""

from __future__ import annotations

from functools import partial
from typing import NamedTuple

from pykafkad import errors
from pykafkad.cluster.replica import Replica
from pykafkad.errors import KafkaError
from pykafkad.logs import logger
from pykafkad.net.peers import Purpose
from pykafkad.pure.following.fetcher import (
    NEVER_MS,
    PASSING,
    Append,
    AskEpochs,
    AskOffsets,
    Cut,
    CutAt,
    Fetcher,
    Following,
    Refused,
    StartAnew,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from typing import Any, Protocol

    from pykafkad.clock import Clock
    from pykafkad.net.peers import Connections
    from pykafkad.pure.following.fetcher import Act, Request
    from pykafkad.pure.following.session import Key
    from pykafkad.quiet import Quiet
    from pykafkad.replication.quotas import ReplicationQuota
    from pykafkad.replication.requests import Asking

    class Loop(Protocol):
        def call_later(self, delay_ms: int, callback: Callable[..., Any], *arguments: Any) -> Any: ...
        def call_soon(self, callback: Callable[..., Any], *arguments: Any) -> Any: ...


SETTLING_MS = 1  # before another look at what is being synced
# Of a partition alone: what the leader sent was damaged, or does not continue our log.
DAMAGED = (errors.CORRUPT_MESSAGE, errors.INVALID_RECORD, errors.OFFSET_OUT_OF_RANGE)

log = logger("replication")


class Parts(NamedTuple):
    """What all connections to leaders share."""

    node_id: int
    config: Any
    clock: Clock
    loop: Loop
    connections: Connections
    quiet: Quiet
    asking: Asking
    quota: ReplicationQuota
    truncates_on_fetch: bool
    broker_epoch: Callable[[], int]
    when_written: Callable[[Callable[[], None]], None]


class LeaderConnection:
    def __init__(self, parts: Parts, leader_id: int, number: int, emptied: Callable[[], None]) -> None:
        """`emptied` is told when nothing is left to fetch here."""
        self.leader_id = leader_id
        self._parts = parts
        self._emptied = emptied
        self._purpose = Purpose(
            f"broker-{parts.node_id}-fetcher-{number}",
            backoff_ms=0,  # the machine has one
            request_timeout_ms=parts.config["replica.socket.timeout.ms"],
            under_way_max=1,
        )
        self.fetcher = Fetcher(
            backoff_ms=parts.config["replica.fetch.backoff.ms"],
            truncates_on_fetch=parts.truncates_on_fetch,
            throttle=parts.quota,
        )
        self._under_way: object = None  # stands for the request that is not answered yet
        self._is_woken = False
        self._timer: Any = None
        self._unsettled: list[Replica] = []
        self._closed = False

    # -- what it is told

    def follow(self, replica: Replica, leader_epoch: int) -> None:
        followed = Following(replica.topic, replica.index, replica.log.topic_id, leader_epoch, replica)
        act = self.fetcher.follow(followed)
        if act is not None:
            self._do(act)
        self.wake()

    def stop(self, key: Key) -> None:
        self.fetcher.stop(key)
        self.wake()

    def close(self) -> None:
        self._closed = True
        self._under_way = None
        if self._timer is not None:
            self._timer.cancel()
        self._parts.connections.to(self.leader_id, self._purpose).close()

    def wake(self) -> None:
        """There may be something else to ask for: looked at when everything of this pass is told."""
        if not self._is_woken:
            self._is_woken = True
            self._parts.loop.call_soon(self._go_on)

    # -- asking

    def _go_on(self) -> None:
        self._is_woken = False
        if self._closed or self._under_way is not None:
            return
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if not self.fetcher.partitions:
            self._emptied()
            return
        if self._unsettled:
            self._unsettled = [each for each in self._unsettled if each.is_online and not each.is_settled]
            if self._unsettled:
                self._look_again(SETTLING_MS)
                return
        now_ms = self._parts.clock.monotonic_ms()
        request = self.fetcher.next(now_ms)
        if request is not None:
            self._ask(request)
        elif self.fetcher.next_ms != NEVER_MS:
            self._look_again(max(1, self.fetcher.next_ms - now_ms))

    def _look_again(self, delay_ms: int) -> None:
        self._timer = self._parts.loop.call_later(delay_ms, self._go_on)

    def _ask(self, request: Request) -> None:
        message, version = self._parts.asking.message(request, self._parts.broker_epoch())
        under_way = self._under_way = object()
        link = self._parts.connections.to(self.leader_id, self._purpose)
        link.ask(message, version, partial(self._answered, under_way, request))

    def _answered(self, under_way: object, request: Request, answer: Any) -> None:
        if self._under_way is not under_way:
            return  # it was closed meanwhile
        self._under_way = None
        if not self._is_woken:
            self._is_woken = True
            self._parts.when_written(self._go_on)
        now_ms = self._parts.clock.monotonic_ms()
        if isinstance(answer, OSError):
            self._say("connections to leaders", f"broker {self.leader_id} cannot be asked: {answer}")
            self.fetcher.lost(now_ms)
            return
        for act in self._acts(request, answer, now_ms):
            self._do(act)

    def _acts(self, request: Request, answer: Any, now_ms: int) -> Iterable[Act]:
        if isinstance(request, AskOffsets):
            return self.fetcher.offsets_told(request, answer, now_ms)
        if isinstance(request, AskEpochs):
            return self.fetcher.epochs_told(request, answer, now_ms)
        return self.fetcher.fetched(answer, now_ms)

    # -- doing

    def _do(self, act: Act) -> None:
        if isinstance(act, Refused):
            self._refused(act)
            return
        replica = act.partition.log
        assert isinstance(replica, Replica)
        if isinstance(act, Append):
            self._append(replica, act)
            return
        cut = partial(self._was_cut, act.partition)
        if isinstance(act, Cut):
            log.info(
                f"{replica.name}: epoch {act.epoch} ended at {act.end_offset} on broker {self.leader_id}"
            )
            replica.cut(act.epoch, act.end_offset, cut)
        elif isinstance(act, CutAt):
            log.info(f"{replica.name}: cut at {act.offset}, where the log of broker {self.leader_id} ends")
            replica.cut_at(act.offset, cut)
        elif isinstance(act, StartAnew):
            log.info(f"{replica.name}: begins anew at {act.offset}, as on broker {self.leader_id}")
            replica.start_anew(act.offset, cut)

    def _append(self, replica: Replica, act: Append) -> None:
        try:
            replica.append_fetched(
                act.data, act.high_watermark, act.log_start_offset, self._parts.clock.now_ms()
            )
        except KafkaError as error:
            if error.code in DAMAGED:
                self._say("fetched batches that are damaged", f"{replica.name}: {error}")
                self.fetcher.delay(act.partition, self._parts.clock.monotonic_ms())
            else:
                self._failed(act.partition, error)
        except Exception as error:
            self._failed(act.partition, error)
        if not replica.is_settled:
            self._unsettled.append(replica)
        self._parts.quota.record(replica.topic, replica.index, len(act.data))

    def _failed(self, partition: Following, error: Exception) -> None:
        """Kafka leaves such a partition alone as well, until it is told anew to follow."""
        log.exception(f"{partition} cannot be appended to, and is not followed any more", error)
        self.fetcher.stop(partition.key)

    def _was_cut(self, partition: Following, error: KafkaError | None) -> None:
        if error is not None and error.code != errors.NOT_LEADER_OR_FOLLOWER:
            log.error(f"{partition} could not be cut: {error}")
            self.fetcher.delay(partition, self._parts.clock.monotonic_ms())
        self.fetcher.touch(partition.key)
        self.wake()

    def _refused(self, act: Refused) -> None:
        name = errors.NAMES.get(act.error_code, str(act.error_code))
        if act.is_final or act.error_code not in PASSING:
            self._say(f"fetches refused with {name}", f"{act.partition}: broker {self.leader_id} says {name}")
        elif log.debugs:
            log.debug(f"{act.partition}: broker {self.leader_id} says {name}")

    def _say(self, kind: str, text: str) -> None:
        if self._parts.quiet.allows(log, kind, f"broker {self.leader_id}"):
            log.warn(text)
