"""A follower's side of an incremental fetch session (KIP-227): what the leader knows that we want.

The first request names all partitions, and the leader may give the session an id; from then on a request names those
that changed, and those that are to be forgotten. Invariant: `told` is what the leader would read if we named nothing.
"""

from __future__ import annotations

from typing import NamedTuple

from pykafkad import errors

NO_SESSION = 0
INITIAL_EPOCH = 0
MAX_EPOCH = 0x7FFFFFFF

Key = tuple[str, int]


class Wanted(NamedTuple):
    """One partition of a fetch."""

    topic: str
    partition: int
    topic_id: bytes
    leader_epoch: int
    offset: int
    last_epoch: int
    log_start_offset: int


class Gone(NamedTuple):
    """One that the leader is to forget."""

    topic: str
    partition: int
    topic_id: bytes


class Named(NamedTuple):
    """What a request says."""

    session_id: int
    session_epoch: int
    wanted: list[Wanted]
    forgotten: list[Gone]
    uses_topic_ids: bool = True


class FollowerSession:
    def __init__(self) -> None:
        self.id = NO_SESSION
        self.epoch = INITIAL_EPOCH
        self.told: dict[Key, Wanted] = {}
        self._uses_topic_ids = True

    def name(self, changed: dict[Key, Wanted | None], uses_topic_ids: bool) -> Named | None:
        """The next request: `changed` are partitions that may be wanted in another way than before, None: not now.
        None where there is nothing to ask for. A request that names none of a session's partitions asks for all."""
        if uses_topic_ids != self._uses_topic_ids:
            self._uses_topic_ids = uses_topic_ids
            self.epoch = INITIAL_EPOCH
        wanted: list[Wanted] = []
        forgotten: list[Gone] = []
        for key, each in changed.items():
            known = self.told.get(key)
            if known is not None and (each is None or each.topic_id != known.topic_id):
                forgotten.append(Gone(known.topic, known.partition, known.topic_id))
                del self.told[key]
            if each is not None and each != known:
                self.told[key] = each
                wanted.append(each)
        if self.epoch == INITIAL_EPOCH:
            wanted, forgotten = list(self.told.values()), []
        if not self.told and not forgotten:
            return None
        return Named(self.id, self.epoch, wanted, forgotten, uses_topic_ids)

    def answered(self, error_code: int, session_id: int) -> None:
        """The leader has answered: it may have made a session, gone on with it, or have none for us."""
        if error_code == errors.FETCH_SESSION_ID_NOT_FOUND:
            self.id, self.epoch = NO_SESSION, INITIAL_EPOCH
        elif error_code:
            self.epoch = INITIAL_EPOCH  # our id with it closes what there is
        elif session_id == NO_SESSION:
            self.id, self.epoch = NO_SESSION, INITIAL_EPOCH
        else:
            self.id = session_id
            self.epoch = 1 if self.epoch == MAX_EPOCH else self.epoch + 1

    def lost(self) -> None:
        """Whether the request came there nobody knows: the next one begins anew."""
        self.epoch = INITIAL_EPOCH
