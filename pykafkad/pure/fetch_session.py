"""Incremental fetch sessions (KIP-227): what a client fetches, remembered between its requests.

Owns the sessions and their eviction; knows no partition, no message and no clock. A session lists the partitions
a client follows; an incremental request names only what changed in them, and its answer only what is news.
Invariants: a session's epoch is the one its next request must carry; a session id is never 0; at most `slots`
sessions live.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

NO_SESSION = 0
INITIAL_EPOCH = 0
FINAL_EPOCH = -1
MAX_EPOCH = 0x7FFFFFFF
EVICTION_MS = 120_000

# how a request relates to sessions
SESSIONLESS, FULL, INCREMENTAL, NOT_FOUND, WRONG_EPOCH, TOPIC_ID_MISMATCH = range(6)

Key = tuple[object, int]  # topic id where the session uses ids, else topic name; partition


class Followed:
    """One partition of a session: what the client asked last, and what it was told last."""

    __slots__ = (
        "current_leader_epoch",
        "fetch_offset",
        "high_watermark",
        "index",
        "last_fetched_epoch",
        "log_start_offset",
        "max_bytes",
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
    ) -> None:
        self.topic = topic
        self.index = index
        self.fetch_offset = fetch_offset
        self.max_bytes = max_bytes
        self.current_leader_epoch = current_leader_epoch
        self.last_fetched_epoch = last_fetched_epoch
        self.high_watermark = -1
        self.log_start_offset = -1

    @property
    def key(self) -> Key:
        return self.topic, self.index

    def is_news(self, error_code: int, size: int, high_watermark: int, log_start_offset: int) -> bool:
        """Must the answer name this partition? An error is told each time, and its end is told too."""
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
    __slots__ = ("created_ms", "epoch", "id", "last_used_ms", "partitions", "privileged", "uses_topic_ids")

    def __init__(
        self,
        session_id: int,
        followed: list[Followed],
        *,
        privileged: bool,
        uses_topic_ids: bool,
        now_ms: int,
    ) -> None:
        self.id = session_id
        self.epoch = 1
        self.partitions = {each.key: each for each in followed}
        self.privileged = privileged
        self.uses_topic_ids = uses_topic_ids
        self.created_ms = self.last_used_ms = now_ms

    def update(self, followed: Iterable[Followed], forgotten: Iterable[Key]) -> None:
        for each in followed:
            known = self.partitions.get(each.key)
            if known is None:
                self.partitions[each.key] = each
            else:
                known.fetch_offset = each.fetch_offset
                known.max_bytes = each.max_bytes
                known.current_leader_epoch = each.current_leader_epoch
                known.last_fetched_epoch = each.last_fetched_epoch
        for key in forgotten:
            self.partitions.pop(key, None)

    def served(self, each: Followed) -> None:
        """Data went out for it: it goes to the back, so that the others get their turn first next time."""
        key = each.key
        if self.partitions.pop(key, None) is not None:
            self.partitions[key] = each

    def worth(self) -> tuple[bool, int]:
        return self.privileged, len(self.partitions)


class Decision:
    """What a request turned out to be, and the partitions to read for it."""

    __slots__ = ("followed", "kind", "session")

    def __init__(self, kind: int, followed: list[Followed], session: Session | None = None) -> None:
        self.kind = kind
        self.followed = followed
        self.session = session


class FetchSessions:
    def __init__(self, slots: int, random_id: Callable[[], int]) -> None:
        self._slots = slots
        self._random_id = random_id
        self._sessions: dict[int, Session] = {}

    def __len__(self) -> int:
        return len(self._sessions)

    def decide(
        self,
        session_id: int,
        epoch: int,
        followed: list[Followed],
        forgotten: list[Key],
        *,
        uses_topic_ids: bool,
        now_ms: int,
    ) -> Decision:
        if epoch in (INITIAL_EPOCH, FINAL_EPOCH):
            self._sessions.pop(session_id, None)
            return Decision(SESSIONLESS if epoch == FINAL_EPOCH else FULL, followed)
        session = self._sessions.get(session_id)
        if session is None:
            return Decision(NOT_FOUND, [])
        if session.epoch != epoch:
            return Decision(WRONG_EPOCH, [])
        if session.uses_topic_ids != uses_topic_ids:
            return Decision(TOPIC_ID_MISMATCH, [])
        session.update(followed, forgotten)
        if not session.partitions:
            del self._sessions[session_id]
            return Decision(SESSIONLESS, followed)
        session.last_used_ms = now_ms
        session.epoch = 1 if epoch == MAX_EPOCH else epoch + 1
        return Decision(INCREMENTAL, list(session.partitions.values()), session)

    def create(
        self, followed: list[Followed], *, privileged: bool, uses_topic_ids: bool, now_ms: int
    ) -> Session | None:
        """A session for a full request that was answered, or None where there is no room for it."""
        if len(self._sessions) >= self._slots and not self._evict((privileged, len(followed)), now_ms):
            return None
        session_id = self._random_id()
        while session_id == NO_SESSION or session_id in self._sessions:
            session_id = self._random_id()
        session = Session(
            session_id, followed, privileged=privileged, uses_topic_ids=uses_topic_ids, now_ms=now_ms
        )
        self._sessions[session_id] = session
        return session

    def _evict(self, worth: tuple[bool, int], now_ms: int) -> bool:
        """Room for a session of this worth: the stalest if stale, else the least worthy if less worthy.

        A session that is younger than the eviction time is only given up by a follower's session for a consumer's.
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
            if now_ms - session.created_ms > EVICTION_MS or (worth[0] and not session.privileged)
        ]
        if not candidates:
            return False
        least = min(candidates, key=lambda session: (*session.worth(), session.id))
        if least.worth() > worth:
            return False
        del self._sessions[least.id]
        return True
