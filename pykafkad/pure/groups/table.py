"""The groups of one partition of `__consumer_offsets` and their offsets: the state that operations change.

The operations are in registry. `Group` is what both types of groups have in common (classic.ClassicGroup,
consumer.ConsumerGroup). Invariant: `by_id` holds every group that has members or offsets.
"""

from __future__ import annotations

from pykafkad import errors
from pykafkad.errors import KafkaError
from pykafkad.pure.groups.offsets import Offsets

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterator
    from typing import Protocol

    from pykafkad.messages import (
        DescribeGroupsResponse,
        HeartbeatRequest,
        JoinGroupRequest,
        LeaveGroupRequest,
        SyncGroupRequest,
    )
    from pykafkad.pure.effects import Caller, Effects, Record, TimerKey
    from pykafkad.pure.groups.classic import ClassicGroup
    from pykafkad.pure.groups.settings import GroupSettings

    # Asked for each partition (topic, its id, index) of a commit that holds for some only; raises KafkaError.
    CheckPartition = Callable[[str, bytes, int], None]

    class Group(Protocol):
        """Operations return Effects, or raise KafkaError, which leaves the group as it was."""

        TYPE: str
        group_id: str

        @property
        def state_name(self) -> str: ...
        @property
        def protocol_type(self) -> str | None: ...
        @property
        def is_empty(self) -> bool: ...
        def has_member(self, member_id: str) -> bool: ...
        def is_subscribed_to(self, topic: str) -> bool: ...

        # The classic protocol, which members of consumer groups may use too.

        def join(self, request: JoinGroupRequest, caller: Caller, now_ms: int) -> Effects: ...
        def sync(self, request: SyncGroupRequest, caller: Caller, now_ms: int) -> Effects: ...
        def heartbeat(self, request: HeartbeatRequest, caller: Caller, now_ms: int) -> Effects: ...
        def leave(self, request: LeaveGroupRequest, caller: Caller, now_ms: int) -> Effects: ...
        def describe(self, version: int) -> Generator[None, None, DescribeGroupsResponse.DescribedGroup]:
            """Describes one member at a time, for DescribeGroups."""

        # Offsets

        def check_offset_commit(
            self,
            member_id: str,
            group_instance_id: str | None,
            generation_id: int,
            is_transactional: bool,
            api_version: int,
        ) -> CheckPartition | None: ...
        def check_offset_fetch(self, member_id: str | None, member_epoch: int) -> None: ...
        def check_offset_delete(self) -> None: ...
        def on_offset_commit(self, member_id: str, now_ms: int) -> Effects | None:
            """Extends the session of a member that uses the classic protocol."""

        def offset_expiry_base_ms(self, commit_ms: int) -> int | None:
            """From when on retention counts for an offset; None: it is kept."""

        # The group as a whole

        def check_delete(self) -> None: ...
        def tombstones(self) -> list[Record]: ...
        def on_timer(self, key: TimerKey, now_ms: int) -> Effects: ...
        def on_loaded(self, now_ms: int) -> Iterator[Effects]: ...
        def on_unloaded(self) -> Effects: ...


class GroupTable:
    __slots__ = ("by_id", "is_loading", "may_describe", "most", "offsets", "settings")

    def __init__(self, settings: GroupSettings) -> None:
        self.settings = settings
        self.by_id: dict[str, Group] = {}
        self.most = 0  # the largest number of groups ever, as far as remove() and list_groups() saw it
        self.offsets = Offsets()
        self.is_loading = True
        # By group, what they may know of whose heartbeats asked for its regular expressions to be resolved; none: all.
        self.may_describe: dict[str, Callable[[str], bool]] = {}

    def group(self, group_id: str) -> Group:
        group = self.by_id.get(group_id)
        if group is None:
            raise KafkaError(errors.GROUP_ID_NOT_FOUND, f"Group {group_id} not found.")
        return group

    def of_member(self, group_id: str) -> Group:
        """The group for an operation of one of its members. If there is no such group, there is no such member."""
        group = self.by_id.get(group_id)
        if group is None:
            raise KafkaError(errors.UNKNOWN_MEMBER_ID)
        return group

    def has_member(self, group_id: str, member_id: str) -> bool:
        group = self.by_id.get(group_id)
        return group is not None and group.has_member(member_id)

    def new_classic(self, group_id: str, now_ms: int) -> ClassicGroup:
        from pykafkad.pure.groups.classic import ClassicGroup

        group = self.by_id[group_id] = ClassicGroup(self, group_id, now_ms)
        return group

    def remove(self, group_id: str) -> None:
        self.most = max(self.most, len(self.by_id))
        del self.by_id[group_id]
