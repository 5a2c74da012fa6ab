"""Incremental fetch sessions (KIP-227): what a client fetches, remembered between its requests.

Owns the sessions and their eviction; knows no storage, no message and no clock. A session has the partitions that a
client follows. An incremental request names only those of them that change, and its answer only those with news.
A follower's session may have partitions that rest: until somebody stirs them they have no news, and need not be read.
Invariants: a session's epoch is the one that its next request must carry; a session id is never 0; there are at most
`slots` sessions; a partition is either among those that are read or rests.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

NO_SESSION = 0
INITIAL_EPOCH = 0
FINAL_EPOCH = -1
MAX_EPOCH = 0x7FFFFFFF
EVICTION_MS = 120_000

# how a request relates to sessions
SESSIONLESS, FULL, INCREMENTAL, NOT_FOUND, WRONG_EPOCH, TOPIC_ID_MISMATCH = range(6)

Key = tuple[object, int]  # topic id where the session uses ids, else topic name; partition


class Followed:
    """One partition of a session: what the client asked for last, and what it was answered last. Of a follower of a
    cluster `start_offset` is where its log starts; -1: it did not say."""

    __slots__ = (
        "current_leader_epoch",
        "fetch_offset",
        "high_watermark",
        "index",
        "last_fetched_epoch",
        "log_start_offset",
        "max_bytes",
        "start_offset",
        "topic",
    )

    def __init__(
        self,
        topic: object,
        index: int,
        fetch_offset: int,
        max_bytes: int,
        current_leader_epoch: int = -1,
        last_fetched_epoch: int = -1,
        start_offset: int = -1,
    ) -> None:
        self.topic = topic
        self.index = index
        self.fetch_offset = fetch_offset
        self.max_bytes = max_bytes
        self.current_leader_epoch = current_leader_epoch
        self.last_fetched_epoch = last_fetched_epoch
        self.start_offset = start_offset
        self.high_watermark = self.log_start_offset = -1

    @property
    def key(self) -> Key:
        return self.topic, self.index

    def is_news(self, error_code: int, size: int, high_watermark: int, log_start_offset: int) -> bool:
        """Whether the answer must name this partition. An error is in every answer, and the first answer without it is
        news as well."""
        return bool(
            size
            or error_code
            or high_watermark != self.high_watermark
            or log_start_offset != self.log_start_offset
        )

    def told(self, error_code: int, high_watermark: int, log_start_offset: int) -> None:
        self.high_watermark = -1 if error_code else high_watermark
        self.log_start_offset = log_start_offset


class Session:
    __slots__ = (
        "client",
        "created_ms",
        "epoch",
        "id",
        "last_used_ms",
        "partitions",
        "privileged",
        "resting",
        "uses_topic_ids",
        "waiters",
    )

    def __init__(
        self,
        session_id: int,
        partitions: dict[Key, Followed],
        *,
        privileged: bool,
        uses_topic_ids: bool,
        now_ms: int,
    ) -> None:
        self.id = session_id
        self.epoch = 1
        self.partitions = partitions  # those that are read
        self.resting: dict[Key, Followed] = {}
        self.waiters: dict[Any, None] = {}  # the fetch that waits until one of those that rest is stirred
        self.privileged = privileged
        self.uses_topic_ids = uses_topic_ids
        self.created_ms = self.last_used_ms = now_ms
        # Its id, its address, and whether it reads committed records only: for those who want to know.
        self.client: tuple[str, str, bool] = ("", "", False)

    def followed(self) -> list[Followed]:
        return [*self.partitions.values(), *self.resting.values()]

    def rests(self, each: Followed) -> bool:
        return self.resting.get(each.key) is each

    def rest(self, each: Followed) -> bool:
        """Whether it does: it may have been forgotten meanwhile."""
        if self.partitions.get(each.key) is not each:
            return False
        self.resting[each.key] = self.partitions.pop(each.key)
        return True

    def stir(self, each: Followed) -> None:
        if self.rests(each):
            self.partitions[each.key] = self.resting.pop(each.key)

    def follow(self, each: Followed) -> None:
        if self.resting:
            self.stir(self.resting.get(each.key, each))
        known = self.partitions.setdefault(each.key, each)
        if known is not each:
            known.fetch_offset = each.fetch_offset
            known.max_bytes = each.max_bytes
            known.current_leader_epoch = each.current_leader_epoch
            known.last_fetched_epoch = each.last_fetched_epoch
            known.start_offset = each.start_offset

    def forget(self, key: Key) -> None:
        self.partitions.pop(key, None)
        self.resting.pop(key, None)

    def served(self, each: Followed) -> None:
        """Records of this partition were sent: it moves to the end of the session, so that the others come first next
        time."""
        key = each.key
        if self.partitions.pop(key, None) is not None:
            self.partitions[key] = each

    def worth(self) -> tuple[bool, int]:
        return self.privileged, len(self.partitions) + len(self.resting)


class Decision:
    """What kind of fetch a request is."""

    __slots__ = ("kind", "session")

    def __init__(self, kind: int, session: Session | None = None) -> None:
        self.kind = kind
        self.session = session


class FetchSessions:
    def __init__(self, slots: int, random_id: Callable[[], int]) -> None:
        self._slots = slots
        self._random_id = random_id
        self._sessions: dict[int, Session] = {}

    def __len__(self) -> int:
        return len(self._sessions)

    def get(self, session_id: int) -> Session | None:
        return self._sessions.get(session_id)

    def __iter__(self) -> Iterator[Session]:
        return iter(list(self._sessions.values()))

    def decide(self, session_id: int, epoch: int, *, uses_topic_ids: bool) -> Decision:
        """Decide what kind of fetch a request is. For an INCREMENTAL one the caller applies its changes to the session,
        and then calls `settle`."""
        if epoch in (INITIAL_EPOCH, FINAL_EPOCH):
            self._sessions.pop(session_id, None)
            return Decision(SESSIONLESS if epoch == FINAL_EPOCH else FULL)
        session = self._sessions.get(session_id)
        if session is None:
            return Decision(NOT_FOUND)
        if session.epoch != epoch:
            return Decision(WRONG_EPOCH)
        if session.uses_topic_ids != uses_topic_ids:
            return Decision(TOPIC_ID_MISMATCH)
        session.epoch = 1 if epoch == MAX_EPOCH else epoch + 1
        return Decision(INCREMENTAL, session)

    def settle(self, decision: Decision, asked: dict[Key, Followed], now_ms: int) -> list[Followed]:
        """The partitions to read. A session that follows no partition any more is closed."""
        session = decision.session
        if session is None:
            return list(asked.values())
        if not session.partitions and not session.resting:
            self._sessions.pop(session.id, None)
            decision.kind, decision.session = SESSIONLESS, None
            return list(asked.values())
        session.last_used_ms = now_ms
        return list(session.partitions.values())

    def create(
        self, partitions: dict[Key, Followed], *, privileged: bool, uses_topic_ids: bool, now_ms: int
    ) -> Session | None:
        """Create a session for a full fetch that was answered; None if there is no room for it."""
        if len(self._sessions) >= self._slots and not self._evict((privileged, len(partitions)), now_ms):
            return None
        session_id = self._random_id()
        while session_id == NO_SESSION or session_id in self._sessions:
            session_id = self._random_id()
        session = Session(
            session_id, partitions, privileged=privileged, uses_topic_ids=uses_topic_ids, now_ms=now_ms
        )
        self._sessions[session_id] = session
        return session

    def _evict(self, worth: tuple[bool, int], now_ms: int) -> bool:
        """Make room for a session of this worth: evict the one that was used longest ago if it is stale, else the one
        of the least worth if that is less.

        A session that was last used less than EVICTION_MS after its creation is only evicted for a follower's session,
        and only if it is a consumer's. As in Kafka's EvictableKey, one of equal worth stays.
        """
        if not self._sessions:
            return False
        stalest = min(self._sessions.values(), key=lambda session: session.last_used_ms)
        if now_ms - stalest.last_used_ms > EVICTION_MS:
            del self._sessions[stalest.id]
            return True
        candidates = [
            session
            for session in self._sessions.values()
            if session.last_used_ms - session.created_ms > EVICTION_MS
            or (worth[0] and not session.privileged)
        ]
        if not candidates:
            return False
        least = min(candidates, key=lambda session: (*session.worth(), session.id))
        if least.worth() >= worth:
            return False
        del self._sessions[least.id]
        return True
