"""An observer of the controllers' quorum: whom it asks for the metadata log, and what follows from the answers (KIP-595,
KIP-630 for snapshots).

It never votes. A leader that it knows is asked for what comes after the end of its copy; while it knows none, or the
one it knows does not answer, the nodes it was configured with and the voters are asked in turn, and whoever is asked
says who leads. What an answer makes necessary comes out as acts, in order; whoever drives the machine does them before
it asks for the next request, and tells it where the copy ends (`log_is`).

Invariants: the epoch never goes back, and an epoch has one leader; the high watermark never goes back, and never beyond
the end of the copy; records are only taken from an answer in the epoch that they were asked in.
"""

from __future__ import annotations

from typing import NamedTuple

from pykafkad import errors

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from typing import Any

NOBODY = -1
UNKNOWN = -1

Address = tuple[str, int]
SnapshotId = tuple[int, int]  # end offset, epoch


class AskLog(NamedTuple):
    """Fetch what comes at this offset, behind records of `last_epoch`."""

    node: int
    epoch: int
    offset: int
    last_epoch: int
    high_watermark: int


class AskSnapshot(NamedTuple):
    node: int
    epoch: int
    id: SnapshotId
    position: int


class Append(NamedTuple):
    """Batches that continue the copy."""

    data: bytes


class Cut(NamedTuple):
    """The leader's log parts from the copy: the largest epoch that it knows up to ours ended there."""

    epoch: int
    end_offset: int


class Commit(NamedTuple):
    """Everything below counts, as far as the copy has it."""

    high_watermark: int


class Follow(NamedTuple):
    """Another epoch, or the leader of this one is known now."""

    epoch: int
    leader: int


class BeginSnapshot(NamedTuple):
    id: SnapshotId


class Piece(NamedTuple):
    """Bytes of the snapshot, from `position` on."""

    id: SnapshotId
    position: int
    data: bytes
    is_last: bool


class Refused(NamedTuple):
    """With this error; final: waiting does not mend it."""

    code: int
    is_final: bool


Ask = AskLog | AskSnapshot
Act = Append | Cut | Commit | Follow | BeginSnapshot | Piece | Refused

ANOTHER_LEADS = (
    errors.NOT_LEADER_OR_FOLLOWER,
    errors.FENCED_LEADER_EPOCH,
    errors.UNKNOWN_LEADER_EPOCH,
    errors.BROKER_NOT_AVAILABLE,
    errors.NOT_CONTROLLER,
)
FINAL = (errors.INCONSISTENT_CLUSTER_ID, errors.CLUSTER_AUTHORIZATION_FAILED, errors.UNSUPPORTED_VERSION)


class Observer:
    def __init__(self, configured: Sequence[int], epoch: int, leader: int, pause_ms: int) -> None:
        """`configured`: the nodes that may be asked who leads. `epoch`, `leader`: as they were known before the start."""
        self._configured = self._around = list(configured)
        self._turn = 0  # of those that are asked around
        self.epoch = max(epoch, 0)
        self.leader = leader
        self.high_watermark = UNKNOWN
        self._pause_ms = pause_ms
        self._doubts = False  # the leader has not answered: another is asked whether it leads still
        self._not_before_ms = 0
        self._end_offset, self._last_epoch = 0, UNKNOWN
        self._snapshot: SnapshotId | None = None  # under way
        self._position = 0

    def voters_are(self, nodes: Iterable[int]) -> None:
        """A quorum that says itself who votes: they are asked as well, since who is configured may have left it."""
        self._around = list(dict.fromkeys([*self._configured, *nodes]))

    # -- asking

    def log_is(self, end_offset: int, last_epoch: int) -> None:
        """Where the copy ends."""
        self._end_offset, self._last_epoch = end_offset, last_epoch

    @property
    def not_before_ms(self) -> int:
        return self._not_before_ms

    def next(self, now_ms: int) -> Ask | None:
        """None: not yet."""
        if now_ms < self._not_before_ms:
            return None
        node = self._node()
        if self._snapshot is not None:
            return AskSnapshot(node, self.epoch, self._snapshot, self._position)
        return AskLog(node, self.epoch, self._end_offset, self._last_epoch, self.high_watermark)

    def _node(self) -> int:
        if self.leader != NOBODY and not self._doubts:
            return self.leader
        return self._around[self._turn % len(self._around)]

    # -- answers

    def lost(self, now_ms: int) -> None:
        """No answer came, or none that could be read."""
        self._snapshot = None
        self._ask_another(now_ms)

    def fetched(self, ask: AskLog, answer: Any, now_ms: int) -> list[Act]:
        row = row_of(answer)
        if answer.error_code or row is None:
            return self._failed(answer.error_code, now_ms)
        acts = self._hear(row.current_leader.leader_id, row.current_leader.leader_epoch)
        if row.error_code in ANOTHER_LEADS:
            return acts + self._sent_on(bool(acts), now_ms)
        if row.error_code:
            return acts + self._failed(row.error_code, now_ms)
        if acts or ask.epoch != self.epoch:
            return acts  # it was asked in an epoch that is over
        self._doubts = False
        return self._told(ask, row)

    def _told(self, ask: AskLog, row: Any) -> list[Act]:
        diverging, snapshot = row.diverging_epoch, row.snapshot_id
        if diverging.epoch >= 0 or diverging.end_offset >= 0:
            return [Cut(diverging.epoch, diverging.end_offset)]
        if snapshot.end_offset >= 0 and snapshot.epoch >= 0:
            self._snapshot, self._position = (snapshot.end_offset, snapshot.epoch), 0
            return [BeginSnapshot(self._snapshot)]
        acts: list[Act] = [Append(bytes(row.records))] if row.records else []
        if row.high_watermark > self.high_watermark:
            acts.append(Commit(row.high_watermark))
        return acts

    def committed(self, offset: int) -> None:
        """A Commit was done: as far as the copy goes."""
        self.high_watermark = max(self.high_watermark, offset)

    def snapshot_fetched(self, ask: AskSnapshot, answer: Any, now_ms: int) -> list[Act]:
        row = row_of_snapshot(answer)
        if answer.error_code or row is None:
            return self._failed(answer.error_code, now_ms)
        acts = self._hear(row.current_leader.leader_id, row.current_leader.leader_epoch)
        if row.error_code or acts or ask.epoch != self.epoch:
            self._snapshot = None  # the next fetch says which it is to be now
            if row.error_code in ANOTHER_LEADS:
                return acts + self._sent_on(bool(acts), now_ms)
            return acts
        if ask.id != self._snapshot or ask.position != self._position or row.position != self._position:
            self._snapshot = None
            return acts
        data = bytes(row.unaligned_records or b"")
        self._position += len(data)
        is_last = self._position >= row.size
        if is_last or not data:
            self._snapshot = None
        return [Piece(ask.id, ask.position, data, is_last)]

    # -- who leads

    def _hear(self, leader: int, epoch: int) -> list[Act]:
        if epoch < self.epoch or (epoch == self.epoch and (leader == NOBODY or self.leader != NOBODY)):
            return []
        self.epoch, self.leader, self._doubts = epoch, leader, False
        self._snapshot = None
        return [Follow(epoch, leader)]

    def _sent_on(self, to_another: bool, now_ms: int) -> list[Act]:
        """Whoever was asked does not lead. Where it named the leader that we know already, that one is asked."""
        if to_another and self.leader != NOBODY:
            return []
        if self._doubts and self.leader != NOBODY:
            self._doubts = False
            self._turn += 1
            self._not_before_ms = now_ms + self._pause_ms
        else:
            self._ask_another(now_ms)
        return []

    def _ask_another(self, now_ms: int) -> None:
        if self.leader == NOBODY or self._doubts:
            self._turn += 1
        self._doubts = True
        self._not_before_ms = now_ms + self._pause_ms

    def _failed(self, code: int, now_ms: int) -> list[Act]:
        self.lost(now_ms)
        return [Refused(code, code in FINAL)] if code else []


def row_of(answer: Any) -> Any:
    return next((row for topic in answer.responses for row in topic.partitions), None)


def row_of_snapshot(answer: Any) -> Any:
    return next((row for topic in answer.topics for row in topic.partitions), None)


def endpoints_in(answer: Any) -> Iterable[tuple[int, Address]]:
    """Where the leader listens, as an answer says."""
    return [(each.node_id, (each.host, each.port)) for each in answer.node_endpoints]
