"""One connection to one leader: which request is the next one, and what its answer means for each partition.

    FETCHING     is asked for with its log's end; the leader finds out where the two logs part (DivergingEpoch)
    TRUNCATING   below inter.broker.protocol.version 2.7 the follower asks first (OffsetForLeaderEpoch), and cuts
    LATEST       the leader has nothing at our end: does its log end before it?
    EARLIEST     or does it begin behind it?

A partition that met an error is left alone for replica.fetch.backoff.ms; one whose epoch is too old, or whose log does
not take what the leader has, until the controller says something new. One request is under way at a time.

What must be done to a log is an act, a NamedTuple that the caller carries out before it asks for the next request.
Invariant: an answer counts for a partition only if that is followed as it was when it was asked for, to that leader epoch
and with the log as long as it was.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple, Protocol

from pykafkad import errors
from pykafkad.pure.following.session import FollowerSession, Key, Named, Wanted

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from pykafkad.messages import FetchResponse, ListOffsetsResponse, OffsetForLeaderEpochResponse

FETCHING, TRUNCATING, LATEST, EARLIEST = range(4)
LATEST_TIMESTAMP, EARLIEST_TIMESTAMP = -1, -2
NO_EPOCH = -1
NO_ID = bytes(16)
NEVER_MS = 1 << 62
NEVER_OFFSET = 1 << 63

SESSION_ERRORS = (errors.NONE, errors.FETCH_SESSION_ID_NOT_FOUND, errors.INVALID_FETCH_SESSION_EPOCH)
# The leader does not know of it yet, or not any more: the controller will tell it, or us.
PASSING = frozenset({
    errors.NOT_LEADER_OR_FOLLOWER,
    errors.UNKNOWN_LEADER_EPOCH,
    errors.UNKNOWN_TOPIC_OR_PARTITION,
    errors.UNKNOWN_TOPIC_ID,
    errors.INCONSISTENT_TOPIC_ID,
})  # fmt: skip


class Throttle(Protocol):
    """The quota for replication that a follower keeps to."""

    @property
    def is_exceeded(self) -> bool: ...
    def covers(self, topic: str, index: int) -> bool: ...


class FollowedLog(Protocol):
    """What is asked of the log of a partition that is followed."""

    @property
    def next_fetch(self) -> tuple[int, int]:
        """Its end, and the leader epoch of what lies before; -1: nothing does."""

    @property
    def log_start_offset(self) -> int: ...
    @property
    def high_watermark(self) -> int: ...
    @property
    def is_ready(self) -> bool:
        """Whether it may be appended to: it is not being cut."""


class Following:
    """One partition, followed in one leader epoch."""

    __slots__ = ("due_ms", "index", "key", "leader_epoch", "leader_mark", "log", "state", "topic", "topic_id")

    def __init__(
        self,
        topic: str,
        index: int,
        topic_id: bytes,
        leader_epoch: int,
        log: FollowedLog,
        state: int = FETCHING,
    ) -> None:
        self.topic, self.index, self.topic_id = topic, index, topic_id
        self.key: Key = topic, index
        self.leader_epoch = leader_epoch
        self.log = log
        self.state = state
        self.due_ms = 0  # it is left alone until then
        self.leader_mark = NEVER_OFFSET  # the leader's high watermark, as of its last answer

    @property
    def is_in_sync(self) -> bool:
        return self.log.next_fetch[0] >= self.leader_mark

    def __repr__(self) -> str:
        return f"{self.topic}-{self.index}"


# -- what to ask


class AskOffsets(NamedTuple):
    """ListOffsets, of the leader's log's end or start."""

    timestamp: int
    partitions: list[Following]


class AskEpochs(NamedTuple):
    """OffsetForLeaderEpoch, with the epoch that each one asks for."""

    partitions: list[tuple[Following, int]]


Request = Named | AskOffsets | AskEpochs


# -- what to do


class Append(NamedTuple):
    """What the leader has behind our log's end, perhaps nothing, and how far it may be read."""

    partition: Following
    data: Any
    high_watermark: int
    log_start_offset: int


class Cut(NamedTuple):
    """The largest epoch that the leader knows up to ours ended there (-1: it knows none)."""

    partition: Following
    epoch: int
    end_offset: int


class CutAt(NamedTuple):
    partition: Following
    offset: int


class StartAnew(NamedTuple):
    partition: Following
    offset: int


class Refused(NamedTuple):
    """The leader answered that; whether the partition is left until the controller says something new."""

    partition: Following
    error_code: int
    is_final: bool


Act = Append | Cut | CutAt | StartAnew | Refused


class Fetcher:
    def __init__(
        self, *, backoff_ms: int, truncates_on_fetch: bool = True, throttle: Throttle | None = None
    ) -> None:
        """`truncates_on_fetch`: the leader tells with the fetch where the logs part."""
        self.backoff_ms = backoff_ms
        self.partitions: dict[Key, Following] = {}
        self._by_id: dict[tuple[bytes, int], Following] = {}
        self._truncates_on_fetch = truncates_on_fetch
        self._throttle = throttle
        self._session = FollowerSession()
        self._touched: dict[Key, None] = {}  # whose next fetch may be another one than the leader knows of
        self._late: set[Following] = set()  # left alone for a while
        self._asking: set[Following] = set()  # those that do not fetch, but ask something else
        self._without_id = 0

    # -- whom to follow

    def follow(self, partition: Following) -> Act | None:
        """From now on, in this leader epoch."""
        self.stop(partition.key)
        self.partitions[partition.key] = partition
        self._by_id[partition.topic_id, partition.index] = partition
        self._without_id += partition.topic_id == NO_ID
        self._touched[partition.key] = None
        end_offset, last_epoch = partition.log.next_fetch
        if last_epoch == NO_EPOCH:
            # Nothing, or records from before there were epochs: what is not known to be everywhere goes.
            if end_offset > partition.log.high_watermark:
                return CutAt(partition, partition.log.high_watermark)
        elif not self._truncates_on_fetch:
            self._becomes(partition, TRUNCATING)
        return None

    def stop(self, key: Key) -> None:
        partition = self.partitions.pop(key, None)
        if partition is not None:
            self._by_id.pop((partition.topic_id, partition.index), None)
            self._without_id -= partition.topic_id == NO_ID
            self._late.discard(partition)
            self._asking.discard(partition)
            self._touched[key] = None

    def touch(self, key: Key) -> None:
        """Its log has changed otherwise than by an answer, or is ready again."""
        self._touched[key] = None

    def touch_all(self) -> None:
        self._touched.update(dict.fromkeys(self.partitions))

    def delay(self, partition: Following, now_ms: int) -> None:
        """Something went wrong with it: it is asked for again after a while."""
        if self._is_followed(partition):
            partition.due_ms = now_ms + self.backoff_ms
            self._late.add(partition)
            self._touched[partition.key] = None

    def _is_followed(self, partition: Following) -> bool:
        return self.partitions.get(partition.key) is partition

    def _becomes(self, partition: Following, state: int) -> None:
        partition.state = state
        self._touched[partition.key] = None
        if state == FETCHING:
            self._asking.discard(partition)
        else:
            self._asking.add(partition)

    # -- what to ask

    def next(self, now_ms: int) -> Request | None:
        """None: there is nothing to ask for until `next_ms`, or until somebody is followed, or touched."""
        if self._late or self._asking:
            for partition in [each for each in self._late if each.due_ms <= now_ms]:
                self._late.discard(partition)
                self._touched[partition.key] = None
            asking = [each for each in self._asking if each.due_ms <= now_ms and each.log.is_ready]
            if asking:
                return question([each for each in asking if each.state == asking[0].state])
        held = self._throttle is not None and self._throttle.is_exceeded
        if held:
            self.touch_all()
        changed = {key: self._wanted(self.partitions.get(key), now_ms, held) for key in self._touched}
        self._touched = {}
        return self._session.name(changed, uses_topic_ids=not self._without_id)

    @property
    def next_ms(self) -> int:
        return min((each.due_ms for each in self._late), default=NEVER_MS)

    def _wanted(self, partition: Following | None, now_ms: int, held: bool) -> Wanted | None:
        if partition is None or partition.state != FETCHING:
            return None
        log = partition.log
        if partition.due_ms > now_ms or not log.is_ready:
            return None
        if held and not partition.is_in_sync:
            assert self._throttle is not None
            if self._throttle.covers(partition.topic, partition.index):
                self.delay(partition, now_ms)
                return None
        offset, last_epoch = log.next_fetch
        return Wanted(
            partition.topic,
            partition.index,
            partition.topic_id,
            partition.leader_epoch,
            offset,
            last_epoch if self._truncates_on_fetch else NO_EPOCH,
            log.log_start_offset,
        )

    # -- what the answers mean

    def lost(self, now_ms: int) -> None:
        """No answer came, or none that could be read."""
        self._session.lost()
        for partition in self.partitions.values():
            self.delay(partition, now_ms)

    def fetched(self, response: FetchResponse, now_ms: int) -> list[Act]:
        self._session.answered(response.error_code, response.session_id)
        if response.error_code not in SESSION_ERRORS:
            self.lost(now_ms)
        return [
            act
            for topic in response.responses
            for row in topic.partitions
            if (partition := self._answered(topic, row)) is not None
            for act in self._act(partition, row, now_ms)
        ]

    def _answered(
        self, topic: FetchResponse.FetchableTopicResponse, row: FetchResponse.PartitionData
    ) -> Following | None:
        """The partition that this row is about, if it is still as it was when it was asked for."""
        partition = (
            self.partitions.get((topic.topic, row.partition_index))
            if topic.topic
            else self._by_id.get((topic.topic_id, row.partition_index))
        )
        told = self._session.told.get(partition.key) if partition is not None else None
        if partition is None or told is None:
            return None
        self._touched[partition.key] = None
        is_as_it_was = (
            partition.state == FETCHING
            and (told.topic_id, told.leader_epoch) == (partition.topic_id, partition.leader_epoch)
            and told.offset == partition.log.next_fetch[0]
            and partition.log.is_ready
        )
        if not is_as_it_was:
            self._session.lost()  # the leader takes us to know what it said here, and would not say it again
            return None
        return partition

    def _act(self, partition: Following, row: FetchResponse.PartitionData, now_ms: int) -> Iterable[Act]:
        code = row.error_code
        if code == errors.OFFSET_OUT_OF_RANGE:
            self._becomes(partition, LATEST)
        elif code:
            yield self._refused(partition, code, now_ms)
        elif row.diverging_epoch.epoch >= 0 and self._truncates_on_fetch:
            self._session.lost()  # its high watermark is not for a log that parts from its own: it is to say it again
            yield Cut(partition, row.diverging_epoch.epoch, row.diverging_epoch.end_offset)
        else:
            partition.leader_mark = row.high_watermark
            yield Append(partition, row.records or b"", row.high_watermark, row.log_start_offset)

    def _refused(self, partition: Following, code: int, now_ms: int) -> Act:
        """Who asks in an old epoch is told so by the controller soon; anything else may pass."""
        is_final = code == errors.FENCED_LEADER_EPOCH
        if is_final:
            self.stop(partition.key)
        else:
            self._becomes(partition, TRUNCATING if partition.state == TRUNCATING else FETCHING)
            self.delay(partition, now_ms)
        return Refused(partition, code, is_final)

    def offsets_told(self, asked: AskOffsets, response: ListOffsetsResponse, now_ms: int) -> list[Act]:
        rows = {
            (topic.name, row.partition_index): row for topic in response.topics for row in topic.partitions
        }
        acts: list[Act] = []
        for partition in asked.partitions:
            row = rows.get(partition.key)
            if not self._is_followed(partition):
                continue
            if row is None:
                self.delay(partition, now_ms)
            elif row.error_code:
                acts.append(self._refused(partition, row.error_code, now_ms))
            else:
                acts += self._reset(partition, row.offset, now_ms)
        return acts

    def _reset(self, partition: Following, offset: int, now_ms: int) -> Iterable[Act]:
        """The leader's log ends there, or (EARLIEST) starts."""
        end_offset, _ = partition.log.next_fetch
        if partition.state == LATEST and offset >= end_offset:
            self._becomes(partition, EARLIEST)
            return
        found_end = partition.state == LATEST
        self._becomes(partition, FETCHING)
        if found_end:
            yield CutAt(partition, offset)
        elif offset > end_offset:
            yield StartAnew(partition, offset)
        else:
            self.delay(partition, now_ms)  # it has our end after all: no hurry to ask for it again

    def epochs_told(self, asked: AskEpochs, response: OffsetForLeaderEpochResponse, now_ms: int) -> list[Act]:
        """Who had to cut asks again, until the two logs agree."""
        rows = {(topic.topic, row.partition): row for topic in response.topics for row in topic.partitions}
        acts: list[Act] = []
        for partition, epoch in asked.partitions:
            row = rows.get(partition.key)
            if not self._is_followed(partition):
                continue
            if row is None:
                self.delay(partition, now_ms)
            elif row.error_code:
                acts.append(self._refused(partition, row.error_code, now_ms))
            else:
                acts += self._parted(partition, epoch, row)
        return acts

    def _parted(
        self, partition: Following, epoch: int, row: OffsetForLeaderEpochResponse.EpochEndOffset
    ) -> Iterable[Act]:
        end_offset, last_epoch = partition.log.next_fetch
        if (row.leader_epoch, last_epoch) == (epoch, epoch) and row.end_offset >= end_offset:
            self._becomes(partition, FETCHING)
            return
        if row.end_offset < 0:
            self._becomes(partition, FETCHING)
        yield Cut(partition, row.leader_epoch, row.end_offset)


def question(asking: list[Following]) -> AskOffsets | AskEpochs:
    """Of partitions that are all in one state."""
    state = asking[0].state
    if state == TRUNCATING:
        return AskEpochs([(each, each.log.next_fetch[1]) for each in asking])
    return AskOffsets(LATEST_TIMESTAMP if state == LATEST else EARLIEST_TIMESTAMP, asking)
