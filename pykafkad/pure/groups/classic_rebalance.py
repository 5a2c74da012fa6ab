"""The generations of a classic group: how a rebalance begins, waits for its members, and ends.

    Empty ----------> PreparingRebalance <---------- Stable          (a member joins, leaves, fails or changes)
      ^                  |    |    ^                    ^
      +--- all left -----+    |    |                    |
                              v    |                    |
                         CompletingRebalance -----------+            (the leader's SyncGroup)

Owns the states and the three kinds of timers: ("session", member), ("join",) and ("sync",) after the group's id.
Invariants: in PreparingRebalance there is a join timer; JoinGroup requests wait only there, SyncGroup requests only in
CompletingRebalance; the assignments of the present generation are in memory and, once it is Stable, in the log. The
rebalance of an Empty group is the initial one: it waits group.initial.rebalance.delay.ms for further members, and again
as long as new ones come, but never longer than the longest rebalance timeout (KIP-134).
"""

from __future__ import annotations

from typing import Any

from pykafkad import errors
from pykafkad.pure.effects import Caller, Effects, TimerKey
from pykafkad.pure.groups.classic_answers import JoinMember, join_answer, join_refusal, sync_answer
from pykafkad.pure.groups.classic_member import NO_ASSIGNMENT, Member
from pykafkad.pure.groups.classic_records import metadata_record, read_subscriptions
from pykafkad.pure.groups.classic_roster import Roster
from pykafkad.pure.groups.settings import GroupSettings

EMPTY, PREPARING, COMPLETING, STABLE = "Empty", "PreparingRebalance", "CompletingRebalance", "Stable"

PREVIOUS = {  # state: from where it is reached
    EMPTY: (PREPARING,),
    PREPARING: (STABLE, COMPLETING, EMPTY),
    COMPLETING: (PREPARING,),
    STABLE: (COMPLETING,),
}

SESSION, JOIN, SYNC = "session", "join", "sync"

# A member whose first JoinGroup is not answered within this time is removed; the client would send it again.
NEW_MEMBER_JOIN_TIMEOUT_MS = 300_000
# If no member has joined, the rebalance tries again after the rebalance timeout, which clients may have set to 0.
MIN_RETRY_MS = 10


class Generations:
    __slots__ = (
        "generation_id",
        "group_id",
        "initial_delay_ms",
        "initial_remaining_ms",
        "new_member_added",
        "previous_state",
        "protocol_name",
        "roster",
        "settings",
        "state_name",
        "state_since_ms",
        "subscribed_topics",
    )

    def __init__(self, settings: GroupSettings, group_id: str) -> None:
        self.settings = settings
        self.group_id = group_id
        self.state_name = self.previous_state = EMPTY
        self.state_since_ms: int | None = None
        self.generation_id = 0
        self.protocol_name: str | None = None
        self.roster = Roster()
        self.subscribed_topics: frozenset[str] | None = None  # None: it cannot be read from the metadata
        self.new_member_added = False
        self.initial_delay_ms: int | None = None  # of the initial rebalance, while it lasts
        self.initial_remaining_ms = 0

    @property
    def protocol_type(self) -> str | None:
        return self.roster.protocol_type

    @property
    def is_initial_rebalance(self) -> bool:
        return self.state_name == PREPARING and self.previous_state == EMPTY

    def move_to(self, state: str, now_ms: int) -> None:
        assert self.state_name in PREVIOUS[state], (self.group_id, self.state_name, state)
        self.previous_state, self.state_name = self.state_name, state
        self.state_since_ms = now_ms

    # -- a rebalance begins

    def rebalance(self, effects: Effects, reason: str, now_ms: int) -> None:
        """Begin a rebalance, or complete the present one if all members have joined."""
        if self.state_name == PREPARING:
            self.complete_join_if_all_came(effects, now_ms)
        else:
            self.prepare(effects, reason, now_ms)

    def prepare(self, effects: Effects, reason: str, now_ms: int) -> None:
        roster = self.roster
        if self.state_name == COMPLETING:
            self.give_assignments(effects, {}, errors.REBALANCE_IN_PROGRESS)
        roster.unsynced.clear()
        effects.cancel(self.group_id, SYNC)
        is_initial = self.state_name == EMPTY
        if is_initial:
            self.initial_delay_ms = self.settings.initial_rebalance_delay_ms
            self.initial_remaining_ms = max(roster.rebalance_timeout_ms - self.initial_delay_ms, 0)
            self.new_member_added = False
            effects.after(self.initial_delay_ms, self.group_id, JOIN)
        self.move_to(PREPARING, now_ms)
        self.settings.log(
            f"Preparing to rebalance group {self.group_id} in state {PREPARING} with old generation"
            f" {self.generation_id} (reason: {reason})."
        )
        if is_initial:
            return
        if roster.have_all_joined:
            self.complete_join(effects, now_ms)
        else:
            effects.after(roster.rebalance_timeout_ms, self.group_id, JOIN)

    # -- members have joined

    def complete_join_if_all_came(self, effects: Effects, now_ms: int) -> None:
        """The initial rebalance is left out: it waits for members that are not known yet."""
        if self.state_name == PREPARING and self.previous_state != EMPTY and self.roster.have_all_joined:
            self.complete_join(effects, now_ms)

    def on_join_timer(self, effects: Effects, now_ms: int) -> None:
        if self.state_name != PREPARING:
            return
        if self.initial_delay_ms is None or not self.new_member_added or self.initial_remaining_ms == 0:
            self.complete_join(effects, now_ms)
            return
        self.new_member_added = False
        delay_ms = min(self.settings.initial_rebalance_delay_ms, self.initial_remaining_ms)
        self.initial_remaining_ms = max(self.initial_remaining_ms - self.initial_delay_ms, 0)
        self.initial_delay_ms = delay_ms
        effects.after(delay_ms, self.group_id, JOIN)

    def complete_join(self, effects: Effects, now_ms: int) -> None:
        """Continue with the members that have joined. Static members stay until their session ends, whether they have
        joined or not."""
        roster = self.roster
        effects.cancel(self.group_id, JOIN)
        self.initial_delay_ms = None
        self._remove_absent(effects)
        if not roster.members:
            self._become_empty(effects, now_ms)
        elif self._has_leader():
            self._begin_generation(effects, now_ms)
        else:
            self.settings.log(
                f"Group {self.group_id} could not complete rebalance because no members rejoined."
            )
            effects.after(max(roster.rebalance_timeout_ms, MIN_RETRY_MS), self.group_id, JOIN)

    def _remove_absent(self, effects: Effects) -> None:
        members = self.roster.members.values()
        absent = [each.member_id for each in members if each.join_caller is None and each.instance_id is None]
        for member_id in absent:
            self.roster.remove(member_id)
            effects.cancel(self.group_id, SESSION, member_id)
        if absent:
            self.settings.log(
                f"Group {self.group_id} removed dynamic members who haven't joined: {', '.join(absent)}"
            )

    def _has_leader(self) -> bool:
        before = self.roster.leader_id
        elected = self.roster.elect_joined_leader()
        if self.roster.leader_id != before:
            self.settings.log(
                f"Group leader {before} of group {self.group_id} failed to join before the rebalance timeout."
                f" Member {self.roster.leader_id} was elected as the new leader."
            )
        return elected

    def _become_empty(self, effects: Effects, now_ms: int) -> None:
        self._next_generation(None, EMPTY, now_ms)
        self.settings.log(f"Group {self.group_id} with generation {self.generation_id} is now empty.")
        effects.write(*metadata_record(self))
        refused = Effects()
        refused.replies, refused.timers = effects.replies, effects.timers

        def on_refused(error_code: int) -> Effects:
            # Nothing to undo: a restart would load the last generation in the log, whose members would then time out.
            self.settings.log(
                f"Failed to write empty metadata for group {self.group_id}: {errors.NAMES.get(error_code)}"
            )
            return refused

        effects.on_refused = on_refused

    def _begin_generation(self, effects: Effects, now_ms: int) -> None:
        roster = self.roster
        self._next_generation(roster.select_protocol(), COMPLETING, now_ms)
        self.settings.log(
            f"Stabilized group {self.group_id} generation {self.generation_id} with {len(roster.members)} members."
        )
        for member in roster.members.values():
            caller = member.join_caller
            if caller is not None:
                self.answer_join(effects, member, self.joined(caller, member))
            self.restart_session(effects, member)
            member.is_new = False
            roster.unsynced[member.member_id] = None
        effects.after(roster.rebalance_timeout_ms, self.group_id, SYNC)

    def _next_generation(self, protocol_name: str | None, state: str, now_ms: int) -> None:
        self.generation_id += 1
        self.protocol_name = protocol_name
        self.subscribed_topics = read_subscriptions(self)
        self.move_to(state, now_ms)
        self.roster.unsynced.clear()

    # -- members have synced

    def give_assignments(self, effects: Effects, assignments: dict[str, bytes], error_code: int = 0) -> None:
        """Give each member its assignment (or none), and answer the SyncGroup requests that wait, with an error if
        there is one."""
        for member in self.roster.members.values():
            member.assignment = assignments.get(member.member_id, NO_ASSIGNMENT)
            if member.sync_caller is not None:
                self.answer_sync(effects, member, error_code)
                # If its session timed out while it was waiting, it was excused and has no timer now.
                self.restart_session(effects, member)

    def synced(self, effects: Effects, member: Member) -> None:
        unsynced = self.roster.unsynced
        unsynced.pop(member.member_id, None)
        if not unsynced:
            effects.cancel(self.group_id, SYNC)

    def on_sync_timer(self, effects: Effects, now_ms: int) -> None:
        """Remove members that have joined and have not asked for their assignment since."""
        late = list(self.roster.unsynced)
        if self.state_name not in (COMPLETING, STABLE) or not late:
            return
        for member_id in late:
            self.remove(effects, member_id)
        self.prepare(effects, f"Removing {', '.join(late)} on pending sync request expiration", now_ms)

    # -- members leave

    def remove(self, effects: Effects, member_id: str, error_code: int = errors.UNKNOWN_MEMBER_ID) -> None:
        """Remove a member, or a pending id that has not joined yet; its requests that wait are answered."""
        member = self.roster.members.get(member_id)
        if member is not None:
            self.refuse_join(effects, member, error_code)
            if member.sync_caller is not None:
                self.answer_sync(effects, member, error_code)
        self.roster.remove(member_id)
        effects.cancel(self.group_id, SESSION, member_id)

    def on_session_timer(self, effects: Effects, member_id: str, now_ms: int) -> None:
        member = self.roster.members.get(member_id)
        if member is not None and member.is_excused:
            return  # it gets a new session with the answer
        if member is None and member_id not in self.roster.pending:
            return
        self.remove(effects, member_id)
        if member is None:
            self.settings.log(
                f"Pending member {member_id} in group {self.group_id} has been removed after session timeout"
                " expiration."
            )
        else:
            self.settings.log(
                f"Member {member_id} in group {self.group_id} has failed, removing it from the group."
            )
        if self.state_name == PREPARING:
            if self.roster.have_all_joined:
                self.complete_join(effects, now_ms)
        elif member is not None:
            self.prepare(effects, f"removing member {member_id} on heartbeat expiration.", now_ms)

    def on_timer(self, key: TimerKey, now_ms: int) -> Effects:
        effects = Effects()
        if key[1] == SESSION:
            self.on_session_timer(effects, key[2], now_ms)
        elif key[1] == JOIN:
            self.on_join_timer(effects, now_ms)
        elif key[1] == SYNC:
            self.on_sync_timer(effects, now_ms)
        return effects

    def restart_session(self, effects: Effects, member: Member) -> None:
        effects.timers.append(((self.group_id, SESSION, member.member_id), member.session_timeout_ms))

    # -- answers

    def joined(self, caller: Caller, member: Member) -> Any:
        """JoinGroup's answer for the present generation. The leader's has all members, so that it can assign
        partitions."""
        members = []
        if self.roster.leader_id == member.member_id:
            members = [
                JoinMember(
                    member_id=each.member_id,
                    group_instance_id=each.instance_id,
                    metadata=each.metadata(self.protocol_name),
                )
                for each in self.roster.members.values()
            ]
        return join_answer(
            caller,
            member.member_id,
            self.generation_id,
            self.protocol_type,
            self.protocol_name,
            self.roster.leader_id,
            members,
        )

    def answer_join(self, effects: Effects, member: Member, response: Any) -> None:
        assert member.join_caller is not None
        effects.reply(member.join_caller, response)
        self.roster.wait_for_join(member, None)

    def refuse_join(
        self, effects: Effects, member: Member, error_code: int, told_member_id: str = ""
    ) -> None:
        caller = member.join_caller
        if caller is not None:
            self.answer_join(effects, member, join_refusal(caller.version, error_code, told_member_id))

    def answer_sync(self, effects: Effects, member: Member, error_code: int) -> None:
        assert member.sync_caller is not None
        if error_code:
            response = sync_answer(member.assignment)
            response.error_code = error_code
        else:
            response = sync_answer(member.assignment, self.protocol_type, self.protocol_name)
        effects.reply(member.sync_caller, response)
        member.sync_caller = None
