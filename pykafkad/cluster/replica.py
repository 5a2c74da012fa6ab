"""One partition's replica on this node: whether it leads or follows, in which epoch, how far its log may be read, and
who waits for more.

Handlers ask the replica and nothing below it. The bytes are the log's (pykafkad/storage), the rules of who is in sync
are pure/replication.py; here both come together. Invariants: the high watermark never goes back, except where the log
itself is cut below it; a leader raises it when its log is written or a follower fetches, a follower when its leader says
so, and never beyond its own end. Who waits is told when it moves, when the epoch changes, and when the replica is gone.
"""

from __future__ import annotations

from functools import partial

from pykafkad import errors
from pykafkad.cluster.topic_names import INTERNAL
from pykafkad.errors import KafkaError
from pykafkad.pure.replication import NOWHERE, UNKNOWN, Leadership

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Container, Generator, Sequence
    from typing import Any, Protocol

    from _typeshed import ReadableBuffer

    from pykafkad.hot.records import Rules
    from pykafkad.hot.segment import Appended, FileRange
    from pykafkad.pure.fetch_session import Followed, Session
    from pykafkad.pure.producer_state import ProducerState
    from pykafkad.pure.replication import Members
    from pykafkad.storage.directories import LogDirectory
    from pykafkad.storage.log.context import Done
    from pykafkad.storage.log.log import Log
    from pykafkad.storage.log.lookups import Finding

    class Surroundings(Protocol):
        """What a replica needs from outside (replicas.Replicas has it)."""

        node_id: int
        max_lag_ms: int

        def now_ms(self) -> int: ...
        def advanced(self, replica: Replica | Tail | Session) -> None: ...
        def alter_isr(self, replica: Replica, isr: frozenset[int]) -> None: ...
        def resigned(self, replica: Replica) -> None: ...
        def may_be_in_sync(self, broker_id: int, broker_epoch: int) -> bool: ...


# At most partitions nobody waits: they share this, which stays empty (see waiting.py).
NOBODY_WAITS: dict[Any, None] = {}


class Tail:
    """The end of a leader's log, for the followers that wait there: what is written wakes them, whether or not it may be
    read by others. Where a follower has everything, and was told everything, the partition rests in its session: its
    fetches do not come here, and whatever could be news to it stirs the partition."""

    __slots__ = ("name", "resting", "waiters")

    def __init__(self, name: str) -> None:
        self.name = name  # of the partition, for those who want to know
        self.waiters = NOBODY_WAITS
        self.resting: dict[int, tuple[Session, Followed]] = {}  # by the follower

    def rouse(self, follower: int) -> None:
        """It asks for the partition by name, or in another session."""
        if follower in self.resting:
            session, followed = self.resting.pop(follower)
            session.stir(followed)


class Replica:
    __slots__ = (
        "__weakref__",
        "_end_offset",
        "_limit",
        "append",
        "index",
        "is_internal",
        "is_ready",
        "leader_epoch",
        "leader_id",
        "leadership",
        "log",
        "may_refuse",
        "name",
        "rules",
        "surroundings",
        "tail",
        "topic",
        "waiters",
    )

    def __init__(self, log: Log, surroundings: Surroundings) -> None:
        self.log = log
        self.topic = log.topic
        self.index = log.index
        self.name = log.name
        self.is_internal = log.topic in INTERNAL
        self.rules: Rules = log.rules
        self.append = log.append_checked  # the hottest call: no step in between
        self.leader_epoch = self.leader_id = -1
        self.leadership: Leadership | None = None  # None: another one leads
        self.may_refuse = True  # a produce: by check_append(), or since the topic is internal
        self.waiters = NOBODY_WAITS  # as a set that keeps its order
        self.tail: Tail | None = None  # made for the first follower that waits
        self.is_ready = True  # while it is cut nothing is fetched
        self._end_offset = 0  # up to which our own log counts
        self._limit = NOWHERE  # beyond which the high watermark does not go, however long the log is
        self.surroundings = surroundings

    def __repr__(self) -> str:
        return f"Replica({self.name}, epoch {self.leader_epoch}, {self.log})"

    # -- who leads

    def lead(self, leader_epoch: int, members: Members | None = None) -> None:
        """This node leads in that epoch; in one in which it leads already the ISR may be another. None: nobody else is
        a replica."""
        is_new = self.leadership is None or self.leader_epoch != leader_epoch
        if members is None:
            alone = (self.surroundings.node_id,)
            if is_new:
                self.become_leader(leader_epoch, alone, alone)
        elif is_new:
            self.become_leader(leader_epoch, members.replicas, members.isr, members.partition_epoch)
        elif self.leadership is not None and members.partition_epoch > self.leadership.partition_epoch:
            self.isr_confirmed(leader_epoch, members.isr, members.partition_epoch)

    def assigned(self, replicas: Sequence[int]) -> None:
        """Of this epoch, in which this node leads, others are replicas."""
        if self.leadership is not None:
            self._stir()
            self.leadership.assigned(replicas, self.surroundings.now_ms())
            self._isr_changed()

    def become_leader(
        self, leader_epoch: int, replicas: Sequence[int], isr: Sequence[int], partition_epoch: int = 0
    ) -> None:
        log, surroundings = self.log, self.surroundings
        self._stir()
        log.begin_epoch(leader_epoch)
        self.leader_epoch = leader_epoch
        self.leader_id = surroundings.node_id
        self.leadership = Leadership(
            surroundings.node_id,
            leader_epoch,
            log.log_end_offset,
            replicas,
            isr,
            partition_epoch=partition_epoch,
            min_insync_replicas=log.settings.min_insync_replicas,
            max_lag_ms=surroundings.max_lag_ms,
            now_ms=surroundings.now_ms(),
        )
        self._role_changed()

    def become_follower(self, leader_epoch: int, leader_id: int) -> None:
        """Another node leads (-1: nobody is known to); its log is what counts from now on."""
        self.leader_epoch = leader_epoch
        self.leader_id = leader_id
        self.leadership = None
        self._limit = NOWHERE
        self.surroundings.resigned(self)
        self._role_changed()

    def _role_changed(self) -> None:
        if not self.log.is_dirty:
            self._end_offset = self.log.log_end_offset
        self._isr_changed()
        self._wake()

    def _isr_changed(self) -> None:
        """Or it may have, or what of it counts."""
        leadership = self.leadership
        self.may_refuse = self.is_internal or leadership is None or leadership.is_under_min_isr
        if leadership is not None:
            self._limit = leadership.limit
        self.written(self._end_offset)

    def _wake(self) -> None:
        if self.waiters:
            self.surroundings.advanced(self)
        if self.tail is not None:
            self._stir()
            self.surroundings.advanced(self.tail)

    # -- the log's news (storage.context.LogListener)

    def written(self, end_offset: int) -> None:
        """The high watermark is what this log has and, of a leader, those in sync have too; of a follower, what its
        leader says. Followers wait at the end of this log, whatever the high watermark does."""
        is_longer, self._end_offset = end_offset > self._end_offset, end_offset
        limit = self._limit
        mark = end_offset if end_offset < limit else limit
        if mark > self.log.high_watermark:
            self.log.advance_high_watermark(mark)
            if self.waiters:
                self.surroundings.advanced(self)
        if is_longer and self.tail is not None:
            self._stir()
            self.surroundings.advanced(self.tail)

    def started(self) -> None:
        """The log's start advanced, which followers are told of."""
        self._stir()

    def reconfigured(self) -> None:
        self.rules = self.log.rules
        if self.leadership is not None:
            self.leadership.reconfigure(self.log.settings.min_insync_replicas, self.surroundings.now_ms())
            self._isr_changed()

    def removed(self) -> None:
        self._end_offset = self.log.log_end_offset  # nobody waits for a write any more
        self._wake()

    # -- produce

    def check_append(self, acks: int) -> None:
        """Whether this node leads, and as many are in sync as acks=-1 wants."""
        if self.leadership is None:
            raise KafkaError(errors.NOT_LEADER_OR_FOLLOWER)
        if acks == -1 and self.leadership.is_under_min_isr:
            raise KafkaError(errors.NOT_ENOUGH_REPLICAS)

    def check_appended(self, end_offset: int, acks: int = -1) -> bool:
        """Whether a produce that was appended below `end_offset` may be answered; KafkaError: with that. With acks=-1
        everybody in sync must have it, and enough must be in sync still; else this log."""
        log = self.log
        if log.log_directory.failure is not None:
            raise KafkaError(errors.KAFKA_STORAGE_ERROR)
        if log.high_watermark >= end_offset and not self.may_refuse:
            return True
        if self.leadership is None:
            raise KafkaError(errors.NOT_LEADER_OR_FOLLOWER)
        if (log.high_watermark if acks == -1 else self._end_offset) < end_offset:
            return False
        if acks == -1 and self.leadership.is_short_after_append:
            raise KafkaError(errors.NOT_ENOUGH_REPLICAS_AFTER_APPEND)
        return True

    @property
    def has_followers(self) -> bool:
        return self.leadership is not None and bool(self.leadership.followers)

    # -- coordinators: their records are appended as they are

    def append_built(self, data: ReadableBuffer, now_ms: int, *, transaction_version: int = 0) -> Appended:
        """See Log.append_built."""
        if self.leadership is None:
            raise KafkaError(errors.NOT_LEADER_OR_FOLLOWER)
        return self.log.append_built(data, now_ms, transaction_version=transaction_version)

    def has_committed(self, end_offset: int) -> bool:
        """Whether everything below this offset is below the high watermark. KafkaError: it never will be."""
        log = self.log
        if log.log_directory.failure is not None:
            raise KafkaError(errors.KAFKA_STORAGE_ERROR)
        return log.high_watermark >= end_offset

    @property
    def is_writable(self) -> bool:
        log = self.log
        return self.leadership is not None and log.is_served and log.log_directory.failure is None

    @property
    def batch_bytes_max(self) -> int:
        """What the topic's configs allow."""
        return min(self.rules.max_message_bytes, self.log.settings.segment_bytes)

    def fail(self, error: OSError) -> None:
        """Its log cannot be read, so its log directory is offline."""
        self.log.fail(error)

    # -- leading: what followers do, and what the controller says of the ISR

    def divergence(self, last_epoch: int, offset: int) -> tuple[int, int] | None:
        """Where the log of somebody who comes to `offset`, after records of `last_epoch`, parts from this one, if it
        does: the largest epoch up to that one, and its end here (KIP-595). KafkaError: OFFSET_OUT_OF_RANGE."""
        log = self.log
        if last_epoch == log.epochs.latest and log.log_start_offset <= offset <= log.log_end_offset:
            return None  # nearly always
        epoch, end_offset = log.end_offset_for_epoch(last_epoch)
        if epoch < 0 or end_offset < 0 or offset < log.log_start_offset:
            raise KafkaError(errors.OFFSET_OUT_OF_RANGE)
        return (epoch, end_offset) if epoch < last_epoch or end_offset < offset else None

    def follower_fetched(
        self, replica: int, end_offset: int, start_offset: int, broker_epoch: int = UNKNOWN
    ) -> None:
        """That replica asks for what comes after `end_offset`, in this epoch, and its log does not part from ours below.
        KeyError: it is none of the partition's."""
        leadership = self.leadership
        assert leadership is not None
        mark, start = self.log.high_watermark, leadership.followers[replica].start_offset
        leadership.followers[replica].broker_epoch = broker_epoch
        if self.tail is not None:
            self.tail.rouse(replica)
        leadership.fetched(
            replica, end_offset, start_offset, self.log.log_end_offset, self.surroundings.now_ms()
        )
        self._isr_changed()
        if self.waiters and start_offset != start and self.log.high_watermark == mark:
            self.surroundings.advanced(self)  # who deletes records may wait for that
        if leadership.may_join(replica, self.log.high_watermark) and self.surroundings.may_be_in_sync(
            replica, broker_epoch
        ):
            self._ask_for(leadership, leadership.isr | {replica})

    def let_rest(self, replica: int, session: Session, followed: Followed) -> None:
        """That follower in the ISR was answered: where it has everything, and knows it, its fetches need not come here
        until something stirs the partition. Each of them counts as if it had (`_look_at_resting`)."""
        log, leadership = self.log, self.leadership
        if leadership is None or replica not in leadership.isr or leadership.asked_for is not None:
            return
        end = followed.fetch_offset
        has_all = end == log.log_end_offset == self._end_offset == log.high_watermark
        knows_all = followed.high_watermark == end and followed.log_start_offset == log.log_start_offset
        is_of_now = followed.current_leader_epoch in (UNKNOWN, self.leader_epoch)
        if has_all and knows_all and is_of_now and session.rest(followed):
            tail = self.tail = self.tail or Tail(self.name)
            tail.rouse(replica)
            tail.resting[replica] = session, followed

    def _look_at_resting(self, leadership: Leadership) -> None:
        """When they have fetched last."""
        if self.tail is not None:
            for replica, (session, followed) in self.tail.resting.items():
                if replica in leadership.followers and session.rests(followed):
                    leadership.followers[replica].fetched_again(session.last_used_ms)

    def _stir(self) -> None:
        """There may be something that a follower was not told."""
        tail = self.tail
        if tail is None or not tail.resting:
            return
        if self.leadership is not None:
            self._look_at_resting(self.leadership)
        resting, tail.resting = tail.resting, {}
        for session, followed in resting.values():
            session.stir(followed)
            if session.waiters:
                self.surroundings.advanced(session)

    def check_isr(self) -> None:
        """Every replica.lag.time.max.ms / 2: who is behind for too long is out."""
        leadership = self.leadership
        if leadership is None:
            return
        self._look_at_resting(leadership)
        now_ms = self.surroundings.now_ms()
        behind = leadership.out_of_sync(self.log.log_end_offset, now_ms)
        if behind:
            self._ask_for(leadership, leadership.isr - behind)
        leadership.look_again(now_ms)
        self._isr_changed()

    def _ask_for(self, leadership: Leadership, isr: frozenset[int]) -> None:
        self._stir()
        leadership.ask_for(isr, self.surroundings.now_ms())
        self._isr_changed()
        self.surroundings.alter_isr(self, isr)

    def isr_confirmed(self, leader_epoch: int, isr: Sequence[int], partition_epoch: int) -> None:
        """The controller's answer; one to an earlier leadership says nothing."""
        leadership = self.leadership
        if leadership is not None and leadership.epoch == leader_epoch:
            leadership.confirmed(isr, partition_epoch, self.surroundings.now_ms())
            self._isr_changed()
            self._wake()  # of those who wait some may have to be told that too few are in sync

    def isr_refused(self, leader_epoch: int) -> None:
        leadership = self.leadership
        if leadership is not None and leadership.epoch == leader_epoch:
            self._stir()
            leadership.refused(self.surroundings.now_ms())
            self._isr_changed()

    # -- following

    @property
    def is_settled(self) -> bool:
        """Whether all that was fetched counts: it is written, and on the disk where flush.messages wants that."""
        return self._end_offset >= self.log.log_end_offset

    @property
    def next_fetch(self) -> tuple[int, int]:
        """The offset that comes next, and the epoch of what is before it: -1 when there is nothing."""
        return self.log.log_end_offset, self.log.epochs.latest

    def append_fetched(
        self, data: ReadableBuffer, high_watermark: int, start_offset: int, now_ms: int
    ) -> None:
        """What the leader answered to `next_fetch`, where it found that the two logs do not part."""
        assert self.leadership is None
        self.log.append_as_follower(data, self.leader_epoch, now_ms)
        self._limit = high_watermark
        if not self.log.is_dirty:
            self.written(self.log.log_end_offset)
        self.log.advance_log_start(min(start_offset, self.log.high_watermark))

    def cut(self, epoch: int, end_offset: int, done: Done) -> None:
        """The leader's log parts from this one: the largest epoch that it knows up to ours ended there (DivergingEpoch,
        or OffsetForLeaderEpoch; -1: it knows none). Where they have no epoch in common the next fetch shows it."""
        log = self.log
        if end_offset < 0:
            offset = min(log.high_watermark, log.log_end_offset)
        else:
            offset, _ = log.epochs.truncation(epoch, end_offset, log.log_end_offset)
        self.cut_at(offset, done)

    def cut_at(self, offset: int, done: Done) -> None:
        """The leader's log ends at `offset`, before this one."""
        self.is_ready = False
        self.log.truncate(offset, self._still_follows(), partial(self._was_cut, done))

    def start_anew(self, offset: int, done: Done) -> None:
        """The leader's log begins behind the end of this one, or ends before its start."""
        self.is_ready = False
        self.log.start_anew(offset, self._still_follows(), partial(self._was_cut, done))

    def _still_follows(self) -> Callable[[], bool]:
        """Asked when the log is about to be cut, which takes its time: only of a follower in the same epoch it may be."""
        epoch = self.leader_epoch
        return lambda: self.leadership is None and self.leader_epoch == epoch

    def _was_cut(self, done: Done, error: KafkaError | None) -> None:
        self._end_offset = self.log.log_end_offset
        self.is_ready = True
        done(error)

    # -- what is there

    @property
    def is_online(self) -> bool:
        return self.log.log_directory.failure is None

    @property
    def log_directory(self) -> LogDirectory:
        return self.log.log_directory

    @property
    def log_start_offset(self) -> int:
        return self.log.log_start_offset

    @property
    def log_end_offset(self) -> int:
        return self.log.log_end_offset

    @property
    def written_offset(self) -> int:
        """Up to which followers may read."""
        return self.log.written_offset

    @property
    def high_watermark(self) -> int:
        return self.log.high_watermark

    @property
    def last_stable_offset(self) -> int:
        return self.log.last_stable_offset

    @property
    def producers(self) -> ProducerState:
        return self.log.producers

    def read(self, offset: int, max_bytes: int, *, limit_offset: int, at_least_one: bool) -> FileRange | None:
        return self.log.read(offset, max_bytes, limit_offset=limit_offset, at_least_one=at_least_one)

    def aborted_transactions(self, offset: int, data: FileRange) -> list[tuple[int, int]]:
        return self.log.aborted_transactions(offset, data)

    def offset_for_timestamp(self, timestamp: int) -> Finding:
        return self.log.offset_for_timestamp(timestamp)

    def times_of_segments(self) -> Generator[Any, None, list[tuple[int, int]]]:
        return self.log.times_of_segments()

    def max_timestamp_offset(self) -> Finding:
        return self.log.max_timestamp_offset()

    def end_offset_for_epoch(self, epoch: int) -> tuple[int, int]:
        return self.log.end_offset_for_epoch(epoch)

    def epoch_at(self, offset: int) -> int:
        return self.log.epoch_at(offset)

    def delete_records(self, before: int) -> int:
        """Followers that wait are told of the log's start."""
        start = self.log.delete_records(before)
        if self.tail is not None:
            self.surroundings.advanced(self.tail)
        return start

    def low_watermark(self, live: Container[int]) -> int:
        """Where the logs of this leader and of all its followers that live start, at the lowest; -1: one has not said."""
        starts = [self.log.log_start_offset]
        if self.leadership is not None:
            starts += [each.start_offset for id, each in self.leadership.followers.items() if id in live]
        return min(starts)
