"""The state of a classic group: its members, its generation, and where it is in a rebalance.

    Empty ----------> PreparingRebalance <---------- Stable          (a member joins, leaves, fails or changes)
      ^                  |    |    ^                    ^
      +--- all left -----+    |    |                    |
                              v    |                    |
                         CompletingRebalance -----------+            (the leader's SyncGroup)

What happens to it is in classic_rebalance, classic_join and classic.
"""

from __future__ import annotations

from pykafkad.pure.groups.classic_roster import Roster

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pykafkad.pure.groups.settings import GroupSettings

EMPTY, PREPARING, COMPLETING, STABLE = "Empty", "PreparingRebalance", "CompletingRebalance", "Stable"

PREVIOUS = {  # state: from where it is reached
    EMPTY: (PREPARING,),
    PREPARING: (STABLE, COMPLETING, EMPTY),
    COMPLETING: (PREPARING,),
    STABLE: (COMPLETING,),
}


class ClassicState:
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
