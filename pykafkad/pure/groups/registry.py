"""The groups of one partition of `__consumer_offsets`: finds the one an operation is about, and replays records.

What is asked of the two kinds of groups (classic.ClassicGroup, consumer.ConsumerGroup):

    ClassicGroup(groups, group_id, now_ms)          a new one, Empty; not yet in `groups.by_id`
    classic.replay(groups, key, value)              the GroupMetadata record of a load builds the group anew
    consumer.heartbeat(groups, request, caller, now_ms) -> Effects     finds, makes or converts the group itself
    consumer.replay(groups, key, value)             any other record of a group; makes the group, and takes it away
    TYPE, state_name, protocol_type, is_empty
    join, sync, heartbeat, leave(request, caller, now_ms) -> Effects
    check_offset_commit(member_id, group_instance_id, generation_or_epoch, is_transactional, api_version)
    check_offset_fetch(member_id, member_epoch); check_offset_delete(); check_delete()      raise KafkaError
    on_offset_commit(member_id, now_ms) -> Effects | None        a classic member's commit is a sign of life
    new_group_record() -> Record                                 classic only: that the group is there
    dissolve(error_code) -> Effects                              classic only: refuses whoever waits
    is_subscribed_to(topic); tombstones() -> list[Record]
    offset_expiry_base_ms(commit_ms) -> int | None     from when retention counts for an offset; None: it is kept
    on_timer(key, now_ms), on_loaded(now_ms), on_unloaded() -> Effects

Invariants: a KafkaError leaves everything as it was; consumer groups and offsets change only in replay(), classic
groups in their operations (replay of their records while running changes nothing, except that a tombstone removes
the group). `by_id` holds every group that has members or offsets. KIP-848, KIP-496 (OffsetDelete), KIP-229.
"""

from __future__ import annotations

from typing import Any

from pykafkad import errors
from pykafkad.errors import KafkaError
from pykafkad.pure.groups import group_requests, offset_requests
from pykafkad.pure.groups.effects import Caller, Effects, TimerKey
from pykafkad.pure.groups.offsets import Held, Offsets, still_held, tombstone
from pykafkad.pure.groups.settings import GroupSettings

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Iterable
    from typing import TypeAlias

    from pykafkad.pure.groups.classic import ClassicGroup
    from pykafkad.pure.groups.consumer import ConsumerGroup

    Group: TypeAlias = ClassicGroup | ConsumerGroup

CLASSIC, CONSUMER = "classic", "consumer"
LEGACY_OFFSET_COMMIT, OFFSET_COMMIT, GROUP_METADATA = 0, 1, 2


class Groups:
    __slots__ = ("by_id", "is_loading", "offsets", "settings")

    def __init__(self, settings: GroupSettings) -> None:
        self.settings = settings
        self.by_id: dict[str, Group] = {}
        self.offsets = Offsets()
        self.is_loading = True

    def group(self, group_id: str) -> Group:
        group = self.by_id.get(group_id)
        if group is None:
            raise KafkaError(errors.GROUP_ID_NOT_FOUND, f"Group {group_id} not found.")
        return group

    def of_member(self, group_id: str) -> Group:
        """The group for an operation of a member of it; where there is no group there is no such member."""
        group = self.by_id.get(group_id)
        if group is None:
            raise KafkaError(errors.UNKNOWN_MEMBER_ID)
        return group

    # -- the classic protocol, which members of consumer groups may speak too

    def join(self, request: Any, caller: Caller, now_ms: int) -> Effects:
        group = self.by_id.get(request.group_id)
        if group is not None and (group.TYPE == CLASSIC or not group.is_empty):
            return group.join(request, caller, now_ms)
        if request.member_id:
            raise KafkaError(errors.UNKNOWN_MEMBER_ID)
        return self._join_new(group, request, caller, now_ms)

    def _join_new(self, empty: Group | None, request: Any, caller: Caller, now_ms: int) -> Effects:
        """The first member of a group that was not there, or that was an empty consumer group."""
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
        """The log does not take the new group: it was never there."""
        if empty is None:
            del self.by_id[group.group_id]
        else:
            self.by_id[group.group_id] = empty
        effects = group.dissolve(error_code)
        if not effects.replies:
            raise KafkaError(error_code)
        return effects

    def new_classic(self, group_id: str, now_ms: int) -> ClassicGroup:
        from pykafkad.pure.groups.classic import ClassicGroup

        group = self.by_id[group_id] = ClassicGroup(self, group_id, now_ms)
        return group

    def sync(self, request: Any, caller: Caller, now_ms: int) -> Effects:
        return self.of_member(request.group_id).sync(request, caller, now_ms)

    def heartbeat(self, request: Any, caller: Caller, now_ms: int) -> Effects:
        return self.of_member(request.group_id).heartbeat(request, caller, now_ms)

    def leave(self, request: Any, caller: Caller, now_ms: int) -> Effects:
        return self.of_member(request.group_id).leave(request, caller, now_ms)

    # -- the consumer protocol

    def consumer_heartbeat(self, request: Any, caller: Caller, now_ms: int) -> Effects:
        from pykafkad.pure.groups import consumer

        return consumer.heartbeat(self, request, caller, now_ms)

    # -- offsets

    def commit_offsets(self, request: Any, caller: Caller, now_ms: int) -> Effects:
        return offset_requests.commit(self, request, caller, now_ms)

    def fetch_offsets(self, request: Any, require_stable: bool) -> Any:
        """Of one group: a request's OffsetFetchRequestGroup to an answer's OffsetFetchResponseGroup."""
        return offset_requests.fetch(self, request, require_stable)

    def delete_offsets(self, request: Any, caller: Caller) -> Effects:
        return offset_requests.delete(self, request, caller)

    def forget(self, doomed: Iterable[Held]) -> Effects:
        """Delete offsets (of topics that are no more), as far as they are what they were."""
        effects = Effects()
        effects.is_atomic = False
        effects.records += [tombstone(*held[1:4]) for held in doomed if still_held(held)]
        return effects

    # -- groups

    def list_groups(self, states: Collection[str], types: Collection[str]) -> list[Any]:
        return group_requests.listed(self, states, types)

    def delete_groups(self, group_ids: Iterable[str], effects: Effects) -> dict[str, int]:
        """What goes is added to the effects; the error code of each."""
        return group_requests.delete(self, group_ids, effects)

    def expire(self, group_ids: Iterable[str], now_ms: int) -> Effects:
        """Offsets whose retention is over, and empty groups that have none left."""
        return group_requests.expire(self, group_ids, now_ms)

    # -- what the log says

    def replay(self, key: Any, value: Any, offset: int = -1, producer_id: int = -1) -> None:
        """A record that was written just now, or long ago and is loaded, and where it lies."""
        record_type = key.api_key
        if record_type in (OFFSET_COMMIT, LEGACY_OFFSET_COMMIT):
            if value is not None and key.group not in self.by_id:
                self.new_classic(key.group, value.commit_timestamp)  # as in Kafka, it has no members
            self.offsets.replay(key, value, offset, producer_id)
        elif record_type == GROUP_METADATA:
            self._replay_classic(key, value)
        else:
            from pykafkad.pure.groups import consumer

            consumer.replay(self, key, value)

    def _replay_classic(self, key: Any, value: Any) -> None:
        group = self.by_id.get(key.group)
        if value is None:
            if group is not None and group.TYPE == CLASSIC:
                del self.by_id[key.group]
        elif self.is_loading or group is None or group.TYPE != CLASSIC:
            from pykafkad.pure.groups import classic

            classic.replay(self, key, value)

    # -- time and life

    def on_timer(self, key: TimerKey, now_ms: int) -> Effects:
        group = self.by_id.get(key[0])
        return Effects() if group is None else group.on_timer(key, now_ms)

    def on_loaded(self, now_ms: int) -> Effects:
        self.is_loading = False
        effects = Effects()
        for group in list(self.by_id.values()):
            effects.add(group.on_loaded(now_ms))
        return effects

    def on_unloaded(self) -> Effects:
        effects = Effects()
        for group in self.by_id.values():
            effects.add(group.on_unloaded())
        return effects
