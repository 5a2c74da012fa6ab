"""Random lives of classic groups: members that join, lag, crash, come back and leave, and brokers that restart.

Members do what a consumer does, each at its own pace and some of them wrongly; messages get lost; time passes in random
steps. What must hold at all times is in `check`; that a group becomes stable without further disturbances is in
`settle`. SEED=n replays one life, RUNS=n makes more of them; a failure prints its seed.
"""

from __future__ import annotations

import os
import random
from collections import Counter
from typing import Any

import pytest

from pykafkad import errors
from pykafkad.pure.groups.classic_state import COMPLETING, EMPTY, PREPARING, PREVIOUS, STABLE
from pykafkad.slices import finish
from tests.group_kit import GROUP, Asked, Room

RUNS = int(os.environ.get("RUNS", "600"))
STEPS = 150
PARTITIONS = 7
SEEDS = [20_261_118 + run for run in range(RUNS)]
if "SEED" in os.environ:
    SEEDS = [int(os.environ["SEED"])]
A_RUN = 50  # lives in one test
CHUNKS = [SEEDS[at : at + A_RUN] for at in range(0, len(SEEDS), A_RUN)]
SESSION_MS, REBALANCE_MS = 10_000, 30_000


class Player:
    """A client: what it knows of the group, and what it waits for."""

    def __init__(self, number: int, chance: random.Random) -> None:
        self.client_id = f"p{number}"
        self.version = chance.choice([0, 3, 4, 5, 8, 9])
        is_static = self.version >= 5 and chance.random() < 0.4
        self.instance = f"desk{number % 3}" if is_static else None
        self.protocols = chance.choice([("range", "sticky"), ("sticky", "range"), ("range",)])
        self.forget()

    def forget(self) -> None:
        """It forgets everything, as a new process."""
        self.member_id = ""
        self.generation = -1
        self.assignment: bytes | None = None
        self.joining: Asked | None = None
        self.syncing: Asked | None = None
        self.to_assign: list[str] | None = None
        self.protocol = ""

    @property
    def is_waiting(self) -> bool:
        return self.joining is not None or self.syncing is not None


class Life:
    def __init__(self, seed: int) -> None:
        self.chance = random.Random(seed)
        self.room = Room(
            initial_rebalance_delay_ms=self.chance.choice([0, 500, 3_000]),
            max_size=self.chance.choice([2, 3, 1_000, 1_000, 1_000]),
        )
        self.players = [Player(number, self.chance) for number in range(self.chance.randint(1, 6))]
        self.asked: list[Asked] = []
        self.generation = 0

    # -- what players do

    def step(self) -> None:
        player = self.chance.choice(self.players)
        action = self.chance.random()
        if action < 0.55:
            self.proceed(player)
        elif action < 0.75:
            self.room.advance(self.chance.choice([0, 10, 500, 3_000, 9_000]))
        elif action < 0.82:
            player.forget()  # a crash, or a lost connection: the group does not notice it
        elif action < 0.88:
            self.leave(player)
        elif action < 0.93:
            self.misbehave(player)
        elif action < 0.95:
            self.refuse()
        elif action < 0.97:
            self.room.reload()  # back to the state in the log
            self.generation = 0
        else:
            self.room.advance(self.chance.choice([30_000, 60_000, 400_000]))
        self.check()

    def proceed(self, player: Player) -> None:
        """Do the next thing that a consumer does."""
        if player.joining is not None:
            self.hear_join(player)
        elif player.syncing is not None:
            self.hear_sync(player)
        elif player.generation < 0:
            self.join(player)
        elif player.assignment is None:
            self.sync(player)
        else:
            code = self.room.heartbeat(player.member_id, player.generation, instance=player.instance)
            if code == errors.REBALANCE_IN_PROGRESS:
                self.join(player)
            elif code:
                assert code in (
                    errors.UNKNOWN_MEMBER_ID,
                    errors.ILLEGAL_GENERATION,
                    errors.FENCED_INSTANCE_ID,
                )
                player.forget()

    def join(self, player: Player) -> None:
        changed = b"!" if self.chance.random() < 0.1 else b""
        player.joining = self.room.join(
            player.member_id,
            version=player.version,
            protocols=[(name, name.encode() + changed) for name in player.protocols],
            session_ms=SESSION_MS,
            rebalance_ms=REBALANCE_MS if player.version else -1,
            instance=player.instance,
            client_id=player.client_id,
        )
        player.assignment = None
        self.asked.append(player.joining)
        if self.chance.random() < 0.7:
            self.hear_join(player)

    def hear_join(self, player: Player) -> None:
        assert player.joining is not None
        if player.joining.waits:
            return
        answer, player.joining = player.joining.answer, None
        if answer.error_code == errors.MEMBER_ID_REQUIRED:
            player.member_id = answer.member_id
        elif answer.error_code:
            player.forget()
        else:
            self.check_members(answer)
            player.member_id, player.generation = answer.member_id, answer.generation_id
            player.protocol = answer.protocol_name
            leads = answer.leader == answer.member_id and not answer.skip_assignment
            player.to_assign = [each.member_id for each in answer.members] if leads else None

    def check_members(self, answer: Any) -> None:
        """A leader gets all members, itself included."""
        ids = [each.member_id for each in answer.members]
        assert len(set(ids)) == len(ids)
        assert (answer.member_id in ids) == (answer.leader == answer.member_id)

    def sync(self, player: Player) -> None:
        given: dict[str, bytes] = {}
        if player.to_assign:
            for partition in range(PARTITIONS):
                owner = player.to_assign[partition % len(player.to_assign)]
                given[owner] = given.get(owner, b"") + bytes([partition])
            if self.chance.random() < 0.1:
                given["nobody"] = b"\0"
        player.syncing = self.room.sync(
            player.member_id, player.generation, given, instance=player.instance, protocol=player.protocol
        )
        self.asked.append(player.syncing)
        self.hear_sync(player)

    def hear_sync(self, player: Player) -> None:
        assert player.syncing is not None
        if player.syncing.waits:
            return
        answer, player.syncing = player.syncing.answer, None
        if answer.error_code == errors.REBALANCE_IN_PROGRESS:
            player.generation = -1
        elif answer.error_code:
            player.forget()
        else:
            player.assignment = answer.assignment

    def leave(self, player: Player) -> None:
        if player.member_id:
            self.room.leave((player.member_id, player.instance))
        elif player.instance and self.chance.random() < 0.5:
            self.room.leave(("", player.instance))  # by an administrator
        player.forget()

    def misbehave(self, player: Player) -> None:
        """With another member's generation, or an unknown one: refused without any change."""
        group: Any = self.room.groups.by_id.get(GROUP)
        before = (
            None if group is None else (group.state_name, group.generation_id, list(group.roster.members))
        )
        current = 0 if group is None else group.generation_id
        wrong = self.chance.choice(
            [
                lambda: self.room.heartbeat("nobody", 1),
                lambda: self.room.heartbeat(player.member_id or "nobody", current + 1),
                lambda: self.room.sync("nobody", current, {"nobody": b"all"}).code,
                lambda: self.room.sync(player.member_id or "nobody", current + 7).code,
                lambda: self.room.join("nobody", protocols=(("range", b""),)).code,
                lambda: left(self.room, "nobody", None),
                lambda: left(self.room, "nobody", "desk0"),
            ]
        )
        assert wrong() != 0  # type: ignore[no-untyped-call]
        group = self.room.groups.by_id.get(GROUP)
        after = None if group is None else (group.state_name, group.generation_id, list(group.roster.members))
        assert before == after

    def refuse(self) -> None:
        """The log cannot be written during one request."""
        self.room.refuse_with = errors.MESSAGE_TOO_LARGE
        self.proceed(self.chance.choice(self.players))
        self.room.refuse_with = None

    # -- what must hold

    def check(self) -> None:
        group: Any = self.room.groups.by_id.get(GROUP)
        if group is None:
            assert not any(each.waits for each in self.asked)
            return
        roster, state = group.roster, group.state_name
        members = roster.members
        assert state in PREVIOUS
        assert group.generation_id >= self.generation
        self.generation = group.generation_id
        assert (state == EMPTY) <= (not members)
        assert (not members) <= (state in (EMPTY, PREPARING))
        assert (roster.leader_id in members) if members else roster.leader_id is None
        assert roster.joining == sum(each.join_caller is not None for each in members.values())
        assert roster.joining == 0 or state == PREPARING
        assert all(each.sync_caller is None or state == COMPLETING for each in members.values())
        assert not roster.pending.keys() & members.keys()
        assert roster.unsynced.keys() <= members.keys()
        assert sorted(roster.instances.values()) == sorted(
            each.member_id for each in members.values() if each.instance_id is not None
        )
        told = Counter(tuple(name for name, _ in each.protocols) for each in members.values())
        assert roster.protocol_names == told
        self.check_timers(group)
        self.check_asked(group)
        self.check_assignments(group)

    def check_timers(self, group: Any) -> None:
        """No member is forgotten: it has a timer, or waits for something that has one."""
        timers = self.room.timers
        assert (group.state_name == PREPARING) == ((GROUP, "join") in timers)
        if group.roster.unsynced:
            assert (GROUP, "sync") in timers
        for member in group.roster.members.values():
            assert (GROUP, "session", member.member_id) in timers or member.is_excused
        for member_id in group.roster.pending:
            assert (GROUP, "session", member_id) in timers
        known = group.roster.members.keys() | group.roster.pending.keys()
        assert {key[2] for key in timers if key[1] == "session"} <= known

    def check_asked(self, group: Any) -> None:
        """Requests that wait are known to wait."""
        self.asked = [each for each in self.asked if each.waits]
        waiting = [each.join_caller or each.sync_caller for each in group.roster.members.values()]
        assert {id(each) for each in self.asked} == {id(each) for each in waiting if each is not None}

    def check_assignments(self, group: Any) -> None:
        """A partition is owned once in a generation, as its leader has assigned it."""
        if group.state_name != STABLE:
            return
        owned = b"".join(each.assignment for each in group.roster.members.values())
        assert len(set(owned)) == len(owned)
        for player in self.players:
            member = group.roster.members.get(player.member_id)
            if (
                member is not None
                and player.generation == group.generation_id
                and player.assignment is not None
            ):
                assert player.assignment == member.assignment

    # -- without disturbances

    def settle(self) -> None:
        """Without further disturbances the group is soon stable, and each partition has one owner."""
        self.room.settings.max_size = 1_000
        names: set[str] = set()
        for player in self.players:  # no two members have the same instance id, and a restart changes nothing
            if len(player.protocols) == 1:
                player.protocols = ("range", "sticky")
            if player.instance in names:
                player.instance = None
                player.forget()
            elif player.instance is not None:
                names.add(player.instance)
        for _ in range(200):
            for player in self.players:
                for _ in range(4):
                    self.proceed(player)
            self.check()
            if self.is_settled():
                return
            self.room.advance(2_000)
        raise AssertionError(f"the group does not settle: {finish(self.room.group().describe(6))}")

    def is_settled(self) -> bool:
        group: Any = self.room.groups.by_id.get(GROUP)
        if group is None or group.state_name != STABLE or len(group.roster.members) != len(self.players):
            return False
        owned = sorted(b"".join(player.assignment or b"" for player in self.players))
        current = {player.generation for player in self.players} == {group.generation_id}
        if current and all(player.assignment is not None for player in self.players):
            assert owned == list(range(PARTITIONS))
            return True
        return False


def left(room: Room, member_id: str, instance: str | None) -> int:
    """The error of leaving; if the group does not exist, that of the whole answer."""
    answer = room.leave((member_id, instance))
    return int(answer.error_code or answer.members[0].error_code)


def live(seed: int) -> None:
    life = Life(seed)
    for _ in range(STEPS):
        life.step()
    life.settle()
    before = finish(life.room.group().describe(6))
    life.room.reload()
    assert finish(life.room.group().describe(6)) == before
    life.room.advance(SESSION_MS)  # all clients crash at once
    life.check()
    life.room.advance(REBALANCE_MS)
    life.check()
    assert life.room.group().is_empty


@pytest.mark.parametrize("seeds", CHUNKS, ids=lambda seeds: f"{seeds[0]}-{seeds[-1]}")
def test_a_group_holds_together_and_settles(seeds: list[int]) -> None:
    for seed in seeds:
        try:
            live(seed)
        except BaseException:
            print(f"replay with SEED={seed}")
            raise
