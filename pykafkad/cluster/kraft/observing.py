"""Follows the controllers' metadata log: asks what its machine (pure/kraft/observer.py) says, keeps what comes in the
copy, and applies what is committed to the image, whose changes are published.

One request is under way at a time; the leader lets it wait while there is nothing new. Invariants: only what is
committed is applied; the image does not change while publishers act upon a change before. What cannot be understood of
what is committed ends the broker: it would serve another cluster than the one that there is.
"""

from __future__ import annotations

from functools import partial

from pykafkad import errors
from pykafkad.cluster.metadata_records import MetadataError
from pykafkad.cluster.metadata_upkeep import CHECK_INTERVAL_MS, Upkeep
from pykafkad.cluster.topic_names import CLUSTER_METADATA
from pykafkad.logs import logger
from pykafkad.messages import FetchRequest, FetchSnapshotRequest
from pykafkad.net.peers import Purpose
from pykafkad.pure.kraft.observer import (
    Append,
    AskLog,
    BeginSnapshot,
    Commit,
    Cut,
    Follow,
    Piece,
    Refused,
    endpoints_in,
)
from pykafkad.slices import GO_ON
from pykafkad.uuids import METADATA_TOPIC_ID

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, Protocol

    from pykafkad.clock import Clock
    from pykafkad.cluster.kraft.controllers import Controllers
    from pykafkad.cluster.kraft.metadata_copy import MetadataCopy
    from pykafkad.cluster.publishing import Publishers
    from pykafkad.pure.kraft.observer import Act, Ask, AskSnapshot, Observer
    from pykafkad.quiet import Quiet
    from pykafkad.slices import Run, Work
    from pykafkad.workers import Submit

    class Loop(Protocol):
        def call_later(self, delay_ms: int, callback: Callable[..., Any], *arguments: Any) -> Any: ...
        def call_soon(self, callback: Callable[..., Any], *arguments: Any) -> Any: ...


FETCH, FETCH_NEWEST, FETCH_OLDEST = 1, 18, 12
FETCH_SNAPSHOT, FETCH_SNAPSHOT_NEWEST = 59, 1
REPLICA_STATE_SINCE = 15
WAIT_MS = 500
BYTES_MAX = 8 << 20

log = logger("metadata")


class Observing:
    def __init__(
        self,
        copy: MetadataCopy,
        machine: Observer,
        controllers: Controllers,
        config: Any,
        clock: Clock,
        loop: Loop,
        run: Run,
        submit: Submit,
        quiet: Quiet,
        failed: Callable[[str], None],
    ) -> None:
        """`failed` is told why this broker cannot go on."""
        self._copy, self._machine, self._controllers = copy, machine, controllers
        self._clock, self._loop, self._run, self._quiet, self._failed = clock, loop, run, quiet, failed
        self._node_id: int = config["node.id"]
        self._piece_bytes: int = config["controller.quorum.fetch.snapshot.max.bytes"]
        self._purpose = Purpose(
            f"raft-client-{self._node_id}",
            asks_versions=True,
            backoff_ms=config["controller.quorum.retry.backoff.ms"],
            request_timeout_ms=config["controller.quorum.request.timeout.ms"],
            under_way_max=1,
        )
        self.cluster_id = ""
        self.directory_id = bytes(16)
        self.publishers: Publishers | None = None  # None: nobody acts upon changes yet
        self.on_applied: list[Callable[[], None]] = []
        self.on_leader: Callable[[], None] = nothing
        self.upkeep = Upkeep(config, Committed(copy), clock, submit, run)  # type: ignore[arg-type]
        self._target = 0  # up to which is committed
        self._voters = b""  # the record that they were learned from
        self._whole: tuple[int, int] | None = None  # a snapshot that was fetched, and is not yet in the image
        self._is_busy = self._is_asking = self._is_woken = self._closed = False
        self._timer: Any = None
        controllers.active = machine.leader

    @property
    def is_caught_up(self) -> bool:
        """With what was committed when the leader was asked last."""
        return self._machine.high_watermark >= 0 and self._copy.applied_offset >= self._target

    @property
    def jobs(self) -> list[tuple[int, Callable[[], None]]]:
        return [(CHECK_INTERVAL_MS, self.upkeep.check)]

    @property
    def idle(self) -> bool:
        return not self._is_busy

    def begin(self, cluster_id: str, directory_id: bytes) -> None:
        self.cluster_id, self.directory_id = cluster_id, directory_id
        self._machine.log_is(self._copy.end_offset, self._copy.last_epoch)
        self._look_for_voters()
        self._wake()

    def close(self) -> None:
        self._closed = True
        if self._timer is not None:
            self._timer.cancel()

    # -- asking

    def _wake(self) -> None:
        if not self._is_woken and not self._closed:
            self._is_woken = True
            self._loop.call_soon(self._go_on)

    def _go_on(self) -> None:
        self._is_woken = False
        if self._closed or self._is_asking or self._whole is not None:
            return
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        now_ms = self._clock.monotonic_ms()
        ask = self._machine.next(now_ms)
        if ask is None:
            delay_ms = max(1, self._machine.not_before_ms - now_ms)
            self._timer = self._loop.call_later(delay_ms, self._go_on)
        else:
            self._ask(ask)

    def _ask(self, ask: Ask) -> None:
        self._is_asking = True
        link = self._controllers.peers.to(ask.node, self._purpose)
        answered = partial(self._answered, ask)
        if isinstance(ask, AskLog):
            build = partial(self._fetch, ask)
            link.ask_built(FETCH, FETCH_NEWEST, build, answered, oldest=FETCH_OLDEST)
        else:
            piece = partial(self._fetch_snapshot, ask)
            link.ask_built(FETCH_SNAPSHOT, FETCH_SNAPSHOT_NEWEST, piece, answered)

    def _fetch(self, ask: AskLog, version: int) -> FetchRequest:
        row = FetchRequest.FetchPartition(
            current_leader_epoch=ask.epoch,
            last_fetched_epoch=max(ask.last_epoch, 0),  # of an empty log it is 0
            fetch_offset=ask.offset,
            replica_directory_id=self.directory_id,
            high_watermark=ask.high_watermark,
        )
        request = FetchRequest(
            cluster_id=self.cluster_id,
            max_wait_ms=WAIT_MS,
            max_bytes=BYTES_MAX,
            topics=[
                FetchRequest.FetchTopic(topic=CLUSTER_METADATA, topic_id=METADATA_TOPIC_ID, partitions=[row])
            ],
        )
        if version >= REPLICA_STATE_SINCE:
            request.replica_state = FetchRequest.ReplicaState(replica_id=self._node_id)
        else:
            request.replica_id = self._node_id
        return request

    def _fetch_snapshot(self, ask: AskSnapshot, version: int) -> FetchSnapshotRequest:
        kind = FetchSnapshotRequest
        row = kind.PartitionSnapshot(
            current_leader_epoch=ask.epoch,
            snapshot_id=kind.SnapshotId(end_offset=ask.id[0], epoch=ask.id[1]),
            position=ask.position,
            replica_directory_id=self.directory_id,
        )
        return kind(
            cluster_id=self.cluster_id,
            replica_id=self._node_id,
            max_bytes=self._piece_bytes,
            topics=[kind.TopicSnapshot(name=CLUSTER_METADATA, partitions=[row])],
        )

    # -- answers

    def _answered(self, ask: Ask, answer: Any) -> None:
        self._is_asking = False
        if self._closed:
            return
        now_ms = self._clock.monotonic_ms()
        if isinstance(answer, OSError):
            self._say(f"controller {ask.node} does not answer: {answer}")
            self._machine.lost(now_ms)
            acts: list[Act] = []
        else:
            self._controllers.learn(endpoints_in(answer))
            if isinstance(ask, AskLog):
                acts = self._machine.fetched(ask, answer, now_ms)
            else:
                acts = self._machine.snapshot_fetched(ask, answer, now_ms)
        try:
            for act in acts:
                self._do(act)
        except (MetadataError, errors.KafkaError, OSError) as error:
            self._end(str(error))
            return
        self._machine.log_is(self._copy.end_offset, self._copy.last_epoch)
        self._look_for_voters()
        self._wake()

    def _look_for_voters(self) -> None:
        record = self._copy.replay.voters
        if record != self._voters:
            self._voters = record
            self._machine.voters_are(self._controllers.voters_are(record))

    def _do(self, act: Act) -> None:
        copy = self._copy
        if isinstance(act, Append):
            copy.append_fetched(act.data)
        elif isinstance(act, Commit):
            self._target = max(self._target, min(act.high_watermark, copy.end_offset))
            self._machine.committed(self._target)
            self._advance()
        elif isinstance(act, Follow):
            copy.follow(act.epoch, act.leader)
            self._controllers.follow(act.leader)
            if act.leader >= 0:
                log.info(f"controller {act.leader} is active, epoch {act.epoch}")
            self.on_leader()
        elif isinstance(act, Cut):
            before = copy.end_offset
            log.info(f"the metadata log is cut from {before} to {copy.cut(act.epoch, act.end_offset)}")
        elif isinstance(act, BeginSnapshot):
            log.info(f"fetching the metadata snapshot at offset {act.id[0]}, epoch {act.id[1]}")
            copy.begin_snapshot(act.id)
        elif isinstance(act, Piece):
            copy.add_piece(act.position, act.data)
            if act.is_last:
                self._whole = act.id
                self._advance()
        elif isinstance(act, Refused):
            name = errors.NAMES.get(act.code, str(act.code))
            said = f"the controllers do not let this broker have the metadata: {name}"
            if act.is_final:
                self._end(said)
            else:
                self._say(said)

    def _say(self, text: str) -> None:
        if self._quiet.allows(log, "controllers that do not answer", "observer"):
            log.warn(text)

    def _end(self, why: str) -> None:
        self.close()
        self._failed(why)

    # -- applying

    def publish_to(self, publishers: Publishers) -> None:
        """From now on; what was applied before, they have."""
        self.publishers = publishers
        self._advance()

    def _advance(self) -> None:
        if not self._is_busy and (self._whole is not None or self._has_committed()):
            self._is_busy = True
            self._run(self._work(), self._advanced)

    def _has_committed(self) -> bool:
        pending = self._copy.pending
        return bool(pending) and pending[0].end_offset <= self._target

    def _work(self) -> Work:
        if self._whole is not None:
            self._copy.end_snapshot(self._whole)
            self._target = max(self._target, self._whole[0])
            self._machine.committed(self._target)
            self._machine.log_is(self._copy.end_offset, self._copy.last_epoch)
            self._whole = None
            self._wake()
        while self._has_committed():
            self._copy.apply(self._copy.pending.popleft())
            yield GO_ON
        if self.publishers is not None:
            delta = self._copy.image.take_delta()
            if not delta.is_empty:
                yield from self.publishers.publish(delta)

    def _advanced(self, result: Any) -> None:
        self._is_busy = False
        if isinstance(result, Exception):
            self._end(str(result))
            return
        for told in list(self.on_applied):
            told()
        if self.publishers is not None:
            self.upkeep.appended()
        self._advance()


class Committed:
    """The copy as snapshots are made of it: up to what is applied."""

    def __init__(self, copy: MetadataCopy) -> None:
        self._copy = copy
        self.image, self.directory = copy.image, copy.directory
        self.forget_below = copy.forget_below
        self.roll_next = False

    @property
    def contents(self) -> Any:
        return self._copy.replay.contents

    @property
    def open_transaction(self) -> bool:
        return self._copy.replay.in_transaction

    @property
    def end_offset(self) -> int:
        return self._copy.applied_offset

    @property
    def last_epoch(self) -> int:
        return self._copy.applied_epoch

    @property
    def last_timestamp(self) -> int:
        return self._copy.applied_timestamp

    @property
    def bytes_appended(self) -> int:
        return self._copy.applied_bytes

    @bytes_appended.setter
    def bytes_appended(self, count: int) -> None:
        self._copy.applied_bytes = count

    @property
    def segments(self) -> list[tuple[int, int]]:
        return self._copy.segments


def nothing() -> None:
    """Nobody wants to know."""
