"""What can be done with the groups of one partition of `__consumer_offsets`: finds the group, and replays records.

Invariants: a KafkaError leaves everything as it was; consumer groups and offsets change only in replay(), classic
groups in their operations (replay of their records while running changes nothing, except that a tombstone removes the
group). KIP-848, KIP-496 (OffsetDelete), KIP-229.
"""

from __future__ import annotations

from pykafkad import errors
from pykafkad.errors import KafkaError
from pykafkad.pure.effects import Caller, Effects, TimerKey
from pykafkad.pure.groups import group_requests, offset_requests
from pykafkad.pure.groups.records import GROUP_METADATA, MEMBER_RECORDS, OFFSET_COMMITS
from pykafkad.pure.groups.table import GroupTable

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Generator, Iterable, Iterator, Mapping
    from typing import Any

    from pykafkad.messages import (
        ConsumerGroupHeartbeatRequest,
        GroupMetadataKey,
        GroupMetadataValue,
        HeartbeatRequest,
        JoinGroupRequest,
        LeaveGroupRequest,
        OffsetCommitRequest,
        OffsetDeleteRequest,
        OffsetFetchRequest,
        SyncGroupRequest,
    )
    from pykafkad.pure.groups.classic import ClassicGroup
    from pykafkad.pure.groups.table import Group

CLASSIC, CONSUMER = "classic", "consumer"


class Groups(GroupTable):
    __slots__ = ()

    # -- the classic protocol, which members of consumer groups may use too

    def join(self, request: JoinGroupRequest, caller: Caller, now_ms: int) -> Effects:
        group = self.by_id.get(request.group_id)
        if group is not None and (group.TYPE == CLASSIC or not group.is_empty):
            return group.join(request, caller, now_ms)
        if request.member_id:
            raise KafkaError(errors.UNKNOWN_MEMBER_ID)
        return self._join_new(group, request, caller, now_ms)

    def _join_new(
        self, empty: Group | None, request: JoinGroupRequest, caller: Caller, now_ms: int
    ) -> Effects:
        """The first member of a group that did not exist, or that was an empty consumer group."""
        effects = Effects()
        if empty is not None:
            effects.records += empty.tombstones()
        group = self.new_classic(request.group_id, now_ms)
        try:
            joined = group.join(request, caller, now_ms)
        except KafkaError as error:
            return self._unmake(group, empty, caller, error.code)
        effects.write(*group.new_group_record())
        effects.add(joined)
        effects.on_refused = lambda error_code: self._unmake(group, empty, caller, error_code)
        return effects

    def _unmake(self, group: ClassicGroup, empty: Group | None, caller: Caller, error_code: int) -> Effects:
        """The new group's record could not be written: there is no such group."""
        if empty is None:
            self.remove(group.group_id)
        else:
            self.by_id[group.group_id] = empty
        effects = group.dissolve(error_code)
        if not effects.replies:
            raise KafkaError(error_code)
        return effects

    def sync(self, request: SyncGroupRequest, caller: Caller, now_ms: int) -> Effects:
        return self.of_member(request.group_id).sync(request, caller, now_ms)

    def heartbeat(self, request: HeartbeatRequest, caller: Caller, now_ms: int) -> Effects:
        return self.of_member(request.group_id).heartbeat(request, caller, now_ms)

    def leave(self, request: LeaveGroupRequest, caller: Caller, now_ms: int) -> Effects:
        return self.of_member(request.group_id).leave(request, caller, now_ms)

    # -- the consumer protocol

    def consumer_heartbeat(
        self, request: ConsumerGroupHeartbeatRequest, caller: Caller, now_ms: int
    ) -> Effects:
        from pykafkad.pure.groups import consumer

        return consumer.heartbeat(self, request, caller, now_ms)

    # -- offsets

    def commit_offsets(self, request: OffsetCommitRequest, caller: Caller, now_ms: int) -> Effects:
        return offset_requests.commit_offsets(self, request, caller, now_ms)

    def fetch_offsets(
        self, request: OffsetFetchRequest.OffsetFetchRequestGroup, require_stable: bool
    ) -> offset_requests.FetchedGroup:
        """The answer for one group."""
        return offset_requests.fetch(self, request, require_stable)

    def delete_offsets(self, request: OffsetDeleteRequest, caller: Caller) -> Effects:
        return offset_requests.delete(self, request, caller)

    def forget(self, topics: Mapping[str, int]) -> Iterator[Effects]:
        """Delete all offsets of deleted topics whose records are before the offset that is given for each topic. This
        is a generator of effects; each must be done before the next is asked for."""
        return offset_requests.forget(self.offsets, topics)

    # -- groups

    def list_groups(
        self, states: Collection[str], types: Collection[str]
    ) -> Generator[None, None, list[group_requests.ListedGroup]]:
        return group_requests.listed(self, states, types)

    def delete_groups(self, group_ids: Iterable[str], effects: Effects) -> dict[str, int]:
        """Add the deletion of these groups to the effects; returns the error code of each."""
        return group_requests.delete(self, group_ids, effects)

    def expire(self, group_id: str, now_ms: int) -> Iterator[Effects]:
        """Delete offsets that have expired, and groups that are empty and have none left. This is a generator of
        effects; each must be done before the next is asked for."""
        return group_requests.expire(self, group_id, now_ms)

    # -- replay

    def replay(
        self, key: Any, value: Any, offset: int = -1, producer_id: int = -1, producer_epoch: int = -1
    ) -> None:
        """Replay a record, which was just written or is being loaded: its offset in the log, and the transaction it is
        part of."""
        record_type = key.api_key
        if record_type in OFFSET_COMMITS:
            if value is not None and key.group not in self.by_id:
                self.new_classic(key.group, value.commit_timestamp)  # as in Kafka: without members
            self.offsets.replay(key, value, offset, producer_id)
        elif record_type == GROUP_METADATA:
            self._replay_classic(key, value)
        else:
            _replay_consumer(self, key, value)

    def load(
        self, key: Any, value: Any, offset: int, producer_id: int, producer_epoch: int
    ) -> Iterator[None] | None:
        """The same while loading. A record may be of very many members or partitions: then it is a generator."""
        record_type = key.api_key
        if record_type == GROUP_METADATA and value is not None:
            from pykafkad.pure.groups import classic

            return classic.load(self, key, value)
        if record_type in MEMBER_RECORDS:
            return _load_member(self, key, value)
        self.replay(key, value, offset, producer_id, producer_epoch)
        return None

    def _replay_classic(self, key: GroupMetadataKey, value: GroupMetadataValue | None) -> None:
        group = self.by_id.get(key.group)
        if value is None:
            if group is not None and group.TYPE == CLASSIC:
                self.remove(key.group)
        elif self.is_loading or group is None or group.TYPE != CLASSIC:
            from pykafkad.pure.groups import classic

            for _ in classic.load(self, key, value):
                pass

    # -- timers, coordinator loaded and unloaded

    def on_timer(self, key: TimerKey, now_ms: int) -> Effects:
        group = self.by_id.get(key[0])
        return Effects() if group is None else group.on_timer(key, now_ms)

    def on_loaded(self, group_id: str, now_ms: int) -> Iterable[Effects]:
        """All groups have been loaded; called for each group before it is used."""
        group = self.by_id.get(group_id)
        return () if group is None else group.on_loaded(now_ms)

    def on_unloaded(self) -> Effects:
        effects = Effects()
        for group in self.by_id.values():
            effects.add(group.on_unloaded())
        return effects


def _load_consumer(groups: Groups, key: Any, value: Any) -> None:
    """Import the module with the first record of a consumer group: an import statement for each takes longer than the
    replay."""
    global _replay_consumer
    from pykafkad.pure.groups import consumer

    _replay_consumer = consumer.replay
    consumer.replay(groups, key, value)


def _load_member_of_consumer(groups: Groups, key: Any, value: Any) -> Iterator[None]:
    global _load_member
    from pykafkad.pure.groups import consumer

    _load_member = consumer.load
    return consumer.load(groups, key, value)


_replay_consumer: Callable[[Groups, Any, Any], None] = _load_consumer
_load_member: Callable[[Groups, Any, Any], Iterator[None]] = _load_member_of_consumer
