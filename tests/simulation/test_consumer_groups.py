"""Random lives of consumer groups: members of both protocols that join, lag, crash, come back and leave, topics that
are created, grow and are deleted, requests and answers that get lost, coordinators that restart.

What must hold at all times is in `Life.check`: no partition has two owners, neither in the coordinator's state nor
among the clients that it knows; epochs do not go back; the state is that of the log. In `Life.settle`: without further
disturbances the group becomes Stable and every subscribed partition has an owner. SEED=n replays one life, RUNS=n makes
more of them; a failure prints its seed.
"""

from __future__ import annotations

import os
import random
from typing import Any

import pytest

from pykafkad import errors
from pykafkad.messages import ConsumerProtocolSubscription
from pykafkad.pure.groups import assignors, consumer_target, uniform_assignor
from tests.consumer_kit import ConsumerRoom, assigned, assignment, subscription
from tests.group_kit import GROUP, Asked

RUNS = int(os.environ.get("RUNS", "600"))
STEPS = 120
SEEDS = [20_261_118 + run for run in range(RUNS)]
if "SEED" in os.environ:
    SEEDS = [int(os.environ["SEED"])]
A_RUN = 50  # lives in one test
CHUNKS = [SEEDS[at : at + A_RUN] for at in range(0, len(SEEDS), A_RUN)]
PEACE_ROUNDS = 60
TOPICS = ("red-1", "red-2", "blue-1", "blue-2")
PATTERNS = ("red-.*", ".*", "blue-[0-9]", "none")
FENCED = (
    errors.FENCED_MEMBER_EPOCH,
    errors.UNKNOWN_MEMBER_ID,
    errors.FENCED_INSTANCE_ID,
    errors.GROUP_ID_NOT_FOUND,
)
SESSION_MS, CLASSIC_SESSION_MS, REBALANCE_MS = 45_000, 10_000, 20_000

Owned = dict[str, set[int]]


def listed(owned: Owned) -> dict[str, list[int]]:
    return {name: sorted(partitions) for name, partitions in owned.items() if partitions}


class Player:
    """What both kinds of clients have in common."""

    def __init__(self, life: Life, name: str) -> None:
        self.life, self.room, self.chance = life, life.room, life.chance
        self.name = name
        self.lives = 0
        self.instance = f"desk-{name}" if self.chance.random() < 0.3 else None
        self.member_id = ""
        self.epoch = -1
        self.owned: Owned = {}
        self.is_in = False
        self.wanted = self.choose()

    def choose(self) -> list[str]:
        return [name for name in TOPICS if self.chance.random() < 0.6] or [TOPICS[0]]

    def crash(self) -> None:
        """The process ends, and begins anew as another member."""
        self.is_in = False
        self.member_id, self.epoch, self.owned = "", -1, {}

    def is_known(self) -> bool:
        """Whether the coordinator knows it as the member that it believes to be."""
        group: Any = self.room.groups.by_id.get(GROUP)
        if group is None or not self.is_in:
            return False
        if group.TYPE == "classic":
            return self.member_id in group.roster.members and self.epoch == group.generation_id
        member = group.members.get(self.member_id)
        return member is not None and self.epoch in (member.epoch, member.previous_epoch)


class ConsumerPlayer(Player):
    """A member of the consumer protocol."""

    def __init__(self, life: Life, name: str) -> None:
        super().__init__(life, name)
        self.given: Owned | None = None  # assigned, and not taken over yet
        self.tells_all = False
        self.regex = self.chance.choice(PATTERNS) if self.chance.random() < 0.3 else ""
        self.assignor = self.chance.choice([None, None, "range", "uniform"])

    def crash(self) -> None:
        super().crash()
        self.given = None

    def work(self) -> None:
        """Revoke partitions that are not its own any more, and take over new ones."""
        if self.given is not None:
            self.owned, self.given = self.given, None

    def beat(self, loses_request: bool = False, loses_answer: bool = False) -> None:
        if loses_request:
            self.tells_all = True
            return
        fields = self.fields()
        asked = self.room.beat(self.member_id, self.epoch, **fields)
        if loses_answer:
            self.tells_all = True
            return
        self.hear(asked)

    def fields(self) -> dict[str, Any]:
        fields: dict[str, Any] = {} if self.instance is None else {"instance_id": self.instance}
        if not self.is_in:
            if not self.member_id:
                self.lives += 1
                self.member_id = f"{self.name}-{self.lives}"
            self.epoch, self.owned, self.given = 0, {}, None
        if not self.is_in or self.tells_all:
            fields |= {"rebalance_timeout_ms": REBALANCE_MS, "regex": self.regex}
            fields["topics"] = [] if self.regex else self.wanted
            if self.assignor is not None:
                fields["server_assignor"] = self.assignor
        if "topics" in fields:
            self.work()
        if self.given is not None:
            return fields  # it does not report partitions while they are about to change
        there = {name: each for name, each in listed(self.owned).items() if name in self.room.topics.topics}
        return {**fields, "owned": there}

    def hear(self, asked: Asked) -> None:
        answer = asked.answer
        if answer.error_code in FENCED:
            self.crash()
            return
        if answer.error_code:
            assert answer.error_code == errors.UNRELEASED_INSTANCE_ID, answer
            return
        assert not self.is_in or answer.member_epoch >= self.epoch, (self.epoch, answer)
        self.is_in, self.tells_all = True, False
        self.epoch = answer.member_epoch
        given = self.room.named(answer)
        if given is not None:
            self.given = {name: set(partitions) for name, partitions in given.items()}

    def change(self) -> None:
        self.wanted = self.choose()
        if self.regex or self.chance.random() < 0.2:
            self.regex = self.chance.choice(["", *PATTERNS])
        self.tells_all = True

    def leave(self) -> None:
        if self.is_in:
            for_a_while = self.instance is not None and self.chance.random() < 0.6
            more: dict[str, Any] = {} if self.instance is None else {"instance_id": self.instance}
            self.room.beat(self.member_id, -2 if for_a_while else -1, **more)
        self.crash()

    def turn(self) -> None:
        if self.chance.random() < 0.7:
            self.work()
        if self.chance.random() < 0.1:
            self.change()
        self.beat(self.chance.random() < 0.05, self.chance.random() < 0.1)


class ClassicPlayer(Player):
    """A member of the classic protocol: an eager consumer, which revokes everything before it joins."""

    def __init__(self, life: Life, name: str) -> None:
        super().__init__(life, name)
        self.joining: Asked | None = None
        self.syncing: Asked | None = None
        self.must_join = False

    def crash(self) -> None:
        super().crash()
        self.joining = self.syncing = None
        self.must_join = False

    @property
    def is_waiting(self) -> bool:
        return any(asked is not None and asked.waits for asked in (self.joining, self.syncing))

    def join(self) -> None:
        self.owned, self.is_in, self.must_join = {}, False, False
        data = subscription(*self.wanted)
        self.joining = self.room.join(
            self.member_id,
            protocols=(("range", data),),
            instance=self.instance,
            session_ms=CLASSIC_SESSION_MS,
            rebalance_ms=REBALANCE_MS,
        )

    def hear(self) -> None:
        if self.joining is not None and not self.joining.waits:
            answer, self.joining = self.joining.answer, None
            self.joined(answer)
        if self.syncing is not None and not self.syncing.waits:
            answer, self.syncing = self.syncing.answer, None
            if answer.error_code == errors.REBALANCE_IN_PROGRESS:
                self.must_join = True
            elif answer.error_code:
                self.crash()
            else:
                self.is_in = True
                self.owned = {name: set(each) for name, each in assigned(answer.assignment).items()}

    def joined(self, answer: Any) -> None:
        if answer.error_code == errors.MEMBER_ID_REQUIRED:
            self.member_id = answer.member_id
            self.join()
        elif answer.error_code == errors.REBALANCE_IN_PROGRESS:
            self.must_join = True
        elif answer.error_code:
            self.crash()
        else:
            self.member_id, self.epoch = answer.member_id, answer.generation_id
            leads = answer.leader == self.member_id
            given = self.life.shares(answer.members) if leads else {}
            self.syncing = self.room.sync(self.member_id, self.epoch, given, instance=self.instance)

    def beat(self) -> None:
        self.hear()
        if self.is_waiting:
            return
        if self.must_join or not self.is_in:
            self.join()
            self.hear()
            return
        code = self.room.heartbeat(self.member_id, self.epoch, instance=self.instance)
        if code == errors.REBALANCE_IN_PROGRESS:
            self.join()
        elif code:
            self.crash()
        self.hear()

    def leave(self) -> None:
        if self.member_id and self.instance is None:
            self.room.leave((self.member_id, None))
        self.crash()

    def turn(self) -> None:
        if self.chance.random() < 0.05 and not self.is_waiting:
            self.wanted = self.choose()
            self.must_join = True
        self.beat()


class Life:
    def __init__(self, seed: int, is_large: bool = False) -> None:
        self.chance = chance = random.Random(seed)
        self.is_large = is_large
        self.room = ConsumerRoom(
            consumer_assignment_interval_ms=chance.choice([0, 0, 1_000]),
            initial_rebalance_delay_ms=chance.choice([0, 3_000]),
            consumer_migration_policy=chance.choice(["bidirectional", "bidirectional", "upgrade"]),
        )
        self.room.works_at_once = not is_large
        self.room.settings.consumer_assignors = chance.choice([("uniform", "range"), ("range", "uniform")])
        for name in TOPICS[: chance.randint(1, len(TOPICS))]:
            self.room.topics.create(name, chance.randint(1, 5))
        classics = chance.choice([0, 0, 1, 2])
        kinds = [ClassicPlayer] * classics + [ConsumerPlayer] * chance.randint(1, 4)
        self.players: list[Any] = [kind(self, f"p{number}") for number, kind in enumerate(kinds)]
        chance.shuffle(self.players)
        self.epoch = 0

    def shares(self, members: list[Any]) -> dict[str, bytes]:
        """The assignments of a classic group's leader: topic by topic, in turns."""
        wanted = {
            each.member_id: ConsumerProtocolSubscription.decode_prefix(bytes(each.metadata), 0, 2)[0].topics
            for each in members
        }
        given: dict[str, dict[str, Any]] = {member_id: {} for member_id in wanted}
        for name, topic in self.room.topics.topics.items():
            who = sorted(member_id for member_id, names in wanted.items() if name in names)
            for partition in range(len(topic.partitions) if who else 0):
                given[who[partition % len(who)]].setdefault(name, []).append(partition)
        return {member_id: assignment(**each) for member_id, each in given.items()}

    # -- what happens

    def step(self) -> None:
        roll = self.chance.random()
        player = self.chance.choice(self.players)
        if roll < 0.7:
            player.turn()
        elif roll < 0.8:
            self.room.advance(self.chance.choice([1, 100, 1_000, 3_000, 10_000, 25_000]))
        elif roll < 0.84:
            player.leave()
        elif roll < 0.88:
            player.crash()
        elif roll < 0.95:
            self.change_topics()
        else:
            self.restart()
        self.room.advance(self.chance.choice([0, 0, 1]))
        for _ in range(self.chance.randint(0, 12) if self.is_large else 0):
            if self.room.work:
                self.room.work_on()

    def change_topics(self) -> None:
        topics = self.room.topics
        name = self.chance.choice(TOPICS)
        if name not in topics.topics:
            topics.create(name, self.chance.randint(1, 5))
        elif self.chance.random() < 0.5:
            topics.grow(name, len(topics.topics[name].partitions) + 1)
        else:
            topics.delete(name)
            for player in self.players:  # the previous owner notices it at once, to keep names apart from ids
                player.owned.pop(name, None)
                if getattr(player, "given", None):
                    player.given.pop(name, None)

    def restart(self) -> None:
        group: Any = self.room.groups.by_id.get(GROUP)
        before = self.known(group)
        self.room.reload()
        after = self.known(self.room.groups.by_id.get(GROUP))
        if before is not None and before[0] == "consumer":
            assert after == before

    def known(self, group: Any) -> Any:
        if group is None or group.TYPE == "classic":
            return None if group is None else ("classic",)
        members = {member.member_id: member.encode(1) for member in self.room.describe().members}
        return group.TYPE, group.epoch, group.target_epoch, group.metadata_hash, members, group.owners

    # -- what must hold

    def check(self) -> None:
        self.check_clients()
        group: Any = self.room.groups.by_id.get(GROUP)
        if group is None or group.TYPE != "consumer":
            self.epoch = 0  # an empty classic group is replaced by a new group
            return
        assert group.epoch >= self.epoch, "the group's epoch went back"
        self.epoch = group.epoch
        assert group.target_epoch <= group.epoch
        owners: dict[tuple[bytes, int], str] = {}
        for member in group.members.values():
            for epochs in (member.assigned, member.revoking):
                for topic_id, partitions in epochs.items():
                    for partition in partitions:
                        assert (topic_id, partition) not in owners, "two members have a partition"
                        owners[topic_id, partition] = member.member_id
        books = {(t, p): owner for t, each in group.owners.items() for p, owner in each.items()}
        assert books == owners
        targets: set[tuple[bytes, int]] = set()
        for member_id, share in group.shares.items():
            assert member_id in group.members
            mine = {(topic_id, partition) for topic_id, each in share.items() for partition in each}
            assert targets.isdisjoint(mine), "two members should have a partition"
            targets |= mine

    def check_clients(self) -> None:
        taken: dict[tuple[str, int], str] = {}
        for player in self.players:
            if not player.is_known():
                continue
            for name, partitions in player.owned.items():
                for partition in partitions:
                    other = taken.setdefault((name, partition), player.name)
                    assert other == player.name, f"{other} and {player.name} both have {name}-{partition}"

    def settle(self) -> None:
        """All clients come back and nothing gets lost: the group must become stable and complete."""
        for _ in range(PEACE_ROUNDS):
            for player in self.players:
                if isinstance(player, ConsumerPlayer):
                    player.work()
                player.beat()
                self.check()
            self.room.advance(1_100)
            self.room.finish_work()
            if self.is_settled():
                return
        raise AssertionError(f"does not settle: {[(p.name, p.epoch, p.owned) for p in self.players]}")

    def is_settled(self) -> bool:
        group = self.room.groups.by_id[GROUP]
        if group.state_name != "Stable" or not all(player.is_known() for player in self.players):
            return False
        wanted = set()
        for player in self.players:
            names = self.names(player)
            wanted |= {
                (name, partition)
                for name in names & self.room.topics.topics.keys()
                for partition in range(len(self.room.topics.topics[name].partitions))
            }
            if any(name not in names and partitions for name, partitions in player.owned.items()):
                return False
        owned = [(n, p) for player in self.players for n, each in player.owned.items() for p in each]
        return len(owned) == len(set(owned)) and set(owned) == wanted

    def names(self, player: Any) -> set[str]:
        pattern = getattr(player, "regex", "")
        if not pattern:
            return set(player.wanted)
        matched = {"red-.*": "red-", ".*": "", "blue-[0-9]": "blue-", "none": "!"}[pattern]
        return {name for name in TOPICS if name.startswith(matched)}


def live(seed: int, is_large: bool = False) -> None:
    life = Life(seed, is_large)
    try:
        for _ in range(STEPS):
            life.step()
            life.check()
        life.settle()
        life.restart()
        life.settle()
    except BaseException:
        print(f"\nSEED={seed}")
        raise


@pytest.mark.parametrize("seeds", CHUNKS, ids=lambda seeds: f"{seeds[0]}-{seeds[-1]}")
def test_a_group_has_each_partition_once_and_settles(seeds: list[int]) -> None:
    for seed in seeds:
        live(seed)


@pytest.mark.parametrize("seeds", CHUNKS, ids=lambda seeds: f"{seeds[0]}-{seeds[-1]}")
def test_so_does_a_large_group_whose_targets_are_worked_out_in_pieces(
    seeds: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(consumer_target, "MEMBERS_MAX", 0)
    for module in (assignors, consumer_target, uniform_assignor):
        monkeypatch.setattr(module, "A_TIME", 1)
    for seed in seeds:
        live(seed, is_large=True)
