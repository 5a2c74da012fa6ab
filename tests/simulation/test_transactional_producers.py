"""Random lives of transactional producers: they crash, lag, repeat what they asked, and take too long; coordinators die.

Producers of both transaction versions share a few transactional ids, as zombies of one another. Requests are done late,
or twice, or their answers are lost; markers come to partitions late, or not at once; the coordinator is killed between
any two passes, and the next one has what was committed. What must hold:

- Atomicity: the partitions of a transaction have the same marker, which is what its producer was told; a transaction
  that was told to be committed has all that was acknowledged. (A producer of version 1 whose request was repeated late is
  told of the end of another transaction: that weakness is Kafka's, so there the transactions are not compared.)
- No marker is lost: at the end nothing is open. None is doubled, but where a coordinator died in between.
- The last stable offset of a partition never goes back.
- No transaction stays open beyond its timeout, and the interval in which that is looked at.

SEED=n replays one life, RUNS=n makes more of them (RUNS=10000); a failure prints its seed.
"""

from __future__ import annotations

import os
import random
from typing import Any

import pytest

from pykafkad import errors
from pykafkad.errors import KafkaError
from pykafkad.pure.producer_state import ProducerError, ProducerState
from pykafkad.pure.transactions.transaction import ONGOING, Partition, Transaction
from tests.transactions_kit import Asked, Producer, Room

RUNS = int(os.environ.get("RUNS", "500"))
SEEDS = [int(os.environ["SEED"])] if "SEED" in os.environ else [20_261_119 + run for run in range(RUNS)]
A_RUN = 50  # lives in one test
CHUNKS = [SEEDS[at : at + A_RUN] for at in range(0, len(SEEDS), A_RUN)]
STEPS = 700
TIMEOUTS_MS = (1_000, 5_000)
INTERVAL_MS = 500  # between two looks for transactions that take too long
PARTITIONS: list[Partition] = [("a", 0), ("a", 1), ("b", 0)]


class Batch:
    """One record of a producer, as a partition looks at it."""

    is_transactional = True
    max_timestamp = 0

    def __init__(self, producer: Producer, sequence: int) -> None:
        self.producer_id, self.producer_epoch = producer
        self.base_sequence = self.last_sequence = sequence


class Log:
    """A partition: what is of producers, and who may append, is decided by the real ProducerState."""

    def __init__(self) -> None:
        self.producers = ProducerState()
        self.rows: list[tuple[int, bool | None]] = []  # producer id; a marker's outcome, None for data
        self.stable_offset = 0

    def append(self, producer: Producer) -> int:
        offset = len(self.rows)
        entry = self.producers.producers.get(producer[0])
        sequence = entry.last_sequence + 1 if entry is not None and entry.epoch == producer[1] else 0
        batch = Batch(producer, sequence)
        assert self.producers.check(batch, offset, verify=False) is None
        self.producers.append(batch, offset, offset, 0)
        self.rows.append((producer[0], None))
        return offset

    def mark(self, prepared: Transaction, coordinator_epoch: int, committed: bool) -> int:
        offset = len(self.rows)
        producer_id, epoch, version = prepared.producer_id, prepared.epoch, prepared.client_version
        try:
            self.producers.check_marker(producer_id, epoch, coordinator_epoch, offset, version)
        except ProducerError as error:
            return error.code
        done = self.producers.append_marker(producer_id, epoch, coordinator_epoch, int(committed), offset, 0)
        if done is not None:
            self.producers.complete(done)
        self.rows.append((producer_id, committed))
        return errors.NONE

    def check(self) -> None:
        stable = min(self.producers.ongoing, default=len(self.rows))
        assert stable >= self.stable_offset, "the last stable offset went back"
        self.stable_offset = stable

    def outcome(self, offset: int) -> bool | None:
        """Of the record at this offset: committed, aborted, or still open."""
        producer_id = self.rows[offset][0]
        for each, committed in self.rows[offset:]:
            if each == producer_id and committed is not None:
                return committed
        return None


class Sent:
    """A transaction as its producer sees it."""

    def __init__(self) -> None:
        self.rows: list[tuple[Partition, int]] = []
        self.told: bool | None = None


class Player:
    """A producer: what it knows, and what it waits for."""

    def __init__(self, name: str, version: int, chance: random.Random) -> None:
        self.name = name
        self.version = version
        self.timeout_ms = chance.choice(TIMEOUTS_MS)
        self.crash()

    def crash(self) -> None:
        self.producer: Producer | None = None
        self.expected: Producer | None = None
        self.transaction: Sent | None = None
        self.ending: bool | None = None  # how it asked for the end
        self.partition: Partition | None = None  # that it adds
        self.asked: Asked | None = None


class Life:
    def __init__(self, seed: int) -> None:
        self.chance = random.Random(seed)
        self.room = Room(self.chance.choice((0, 1, 2, 2)))
        self.logs = {each: Log() for each in PARTITIONS}
        versions = (0, 2) if self.room.transaction_version == 2 else (0,)
        self.players = [
            Player(self.chance.choice("xy"), self.chance.choice(versions), self.chance)
            for _ in range(self.chance.randint(1, 4))
        ]
        self.late: list[Any] = []  # requests that are still on their way
        self.sent: list[Sent] = []
        self.epoch = 0  # of the coordinator
        self.marked: dict[int, tuple[Transaction, set[Partition]]] = {}  # what was told to be marked
        self.looked_ms = self.room.now_ms
        self.is_calm = False

    # -- producers

    def act(self, player: Player) -> None:
        if player.asked is not None:
            if player.asked.answer is not None:
                self.take_answer(player, player.asked)
            elif self.chance.random() < 0.1:
                player.asked = None  # it waited long enough, and asks again
        elif self.chance.random() < 0.02:
            player.crash()
        elif player.producer is None:
            self.send(player, lambda: self.room.init(player.name, player.timeout_ms, player.expected))
        elif player.ending is None and (player.transaction is None or self.chance.random() < 0.6):
            self.add(player, player.partition or self.chance.choice(PARTITIONS))
        else:
            self.end(player, self.chance.random() < 0.7 if player.ending is None else player.ending)

    def send(self, player: Player, request: Any, *, may_be_late: bool = True) -> None:
        arrives = self.chance.random()
        if may_be_late and arrives < 0.08:
            self.late.append(request)
        if not may_be_late or arrives > 0.04:  # else it comes only later, and nobody waits for its answer
            player.asked = request()

    def add(self, player: Player, partition: Partition) -> None:
        name, producer, version = player.name, player.producer, player.version
        assert producer is not None
        player.partition = partition
        self.send(player, lambda: self.room.add(producer, partition, name=name, version=version))

    def end(self, player: Player, committed: bool) -> None:
        name, producer, version = player.name, player.producer, player.version
        assert producer is not None
        player.ending = committed
        self.send(
            player,
            lambda: self.room.end(producer, committed, name=name, version=version),
            may_be_late=version == 2,  # with version 1 it would end the next transaction
        )

    def take_answer(self, player: Player, asked: Asked) -> None:
        player.asked = None
        if asked.code in (errors.CONCURRENT_TRANSACTIONS, errors.NOT_COORDINATOR):
            return
        if asked.code != errors.NONE:
            self.refused(player)
        elif player.producer is None:
            player.producer = asked.producer
        elif player.ending is None:
            self.produce(player)
        else:
            assert player.transaction is not None
            player.transaction.told = player.ending
            player.transaction = player.ending = None
            if player.version == 2:
                player.producer = asked.producer

    def refused(self, player: Player) -> None:
        """It begins anew; or goes on with what it was (KIP-360)."""
        was = player.producer
        player.crash()
        if self.chance.random() < 0.3:
            player.expected = was

    def produce(self, player: Player) -> None:
        """The partition takes part, or so it was said."""
        partition, player.partition = player.partition, None
        assert partition is not None
        assert player.producer is not None
        try:
            if player.version == 0:
                known = self.room.machine.taking_part(player.name, player.producer)
                if partition not in known:
                    raise KafkaError(errors.TRANSACTION_ABORTABLE)
            offset = self.logs[partition].append(player.producer)
        except KafkaError:
            self.refused(player)
            return
        if player.transaction is None:
            player.transaction = Sent()
            self.sent.append(player.transaction)
        player.transaction.rows.append((partition, offset))

    # -- markers, time, and the coordinator

    def mark_some(self) -> None:
        """One request for markers is done, as far as its partitions let it; now and then nobody is told."""
        if not self.room.marks:
            return
        name, prepared, partitions = self.room.marks.pop(self.chance.randrange(len(self.room.marks)))
        _, before = self.marked.setdefault(id(prepared), (prepared, set()))
        assert not before & partitions, "a marker is asked for again"
        codes = {each: self.mark(prepared, each) for each in sorted(partitions)}
        if not self.is_calm and self.chance.random() < 0.03:
            self.kill()
            return
        before.update(each for each, code in codes.items() if code == errors.NONE)
        self.room.marked(name, prepared, codes)

    def mark(self, prepared: Transaction, partition: Partition) -> int:
        chance = 1.0 if self.is_calm else self.chance.random()
        if chance < 0.05:
            return errors.KAFKA_STORAGE_ERROR
        code = self.logs[partition].mark(prepared, self.epoch, prepared.state_name == "PrepareCommit")
        return errors.REQUEST_TIMED_OUT if chance < 0.1 else code

    def kill(self) -> None:
        """The pass that was not finished is lost."""
        self.epoch += 1
        self.room.load()
        self.room.advance(0)

    def pass_time(self, delta_ms: int) -> None:
        self.room.advance(delta_ms)
        if self.room.now_ms >= self.looked_ms + INTERVAL_MS:
            self.looked_ms = self.room.now_ms
            self.room.abort_overdue()
            open_ones = [each for each in self.room.machine.by_id.values() if each.state == ONGOING]
            assert all(each.start_ms + each.timeout_ms >= self.room.now_ms for each in open_ones)

    def step(self) -> None:
        action = self.chance.random()
        if action < 0.5:
            self.act(self.chance.choice(self.players))
        elif action < 0.75:
            self.room.end_pass()
        elif action < 0.87:
            self.mark_some()
        elif action < 0.9 and self.late:
            self.late.pop(self.chance.randrange(len(self.late)))()
        elif action < 0.904:
            self.kill()
        elif action < 0.98:
            self.pass_time(self.chance.choice((1, 20, 100, 600)))
        for log in self.logs.values():
            log.check()

    def settle(self) -> None:
        """What is on its way arrives, everybody stops, and what is open takes too long."""
        self.is_calm = True
        for request in self.late:
            request()
            self.room.end_pass()
        for delay_ms in (INTERVAL_MS, max(TIMEOUTS_MS) + 1, INTERVAL_MS, INTERVAL_MS, INTERVAL_MS):
            self.pass_time(delay_ms)
            for _ in range(100):
                self.room.end_pass()
                self.mark_some()
        assert not self.room.marks
        assert all(not each.is_prepared for each in self.room.machine.by_id.values())

    # -- what must hold

    def check(self) -> None:
        for partition, log in self.logs.items():
            assert not log.producers.ongoing, f"{partition} has a transaction that is open for ever"
        for sent in self.sent:
            outcomes = {self.logs[partition].outcome(offset) for partition, offset in sent.rows}
            assert len(outcomes) == 1, "half of a transaction is visible"
            assert sent.told is None or outcomes == {sent.told}, "it did not end as was told"


def live(seed: int) -> Life:
    life = Life(seed)
    for _ in range(STEPS):
        life.step()
    life.settle()
    life.check()
    return life


@pytest.mark.parametrize("seeds", CHUNKS, ids=lambda seeds: str(seeds[0]))
def test_lives_of_transactions(seeds: list[int]) -> None:
    lives = []
    for seed in seeds:
        try:
            lives.append(live(seed))
        except Exception as problem:
            problem.add_note(f"SEED={seed}")
            raise
    if len(seeds) == A_RUN:  # all of it happens
        assert sum(sent.told is True for life in lives for sent in life.sent) > A_RUN
        assert sum(sent.told is False for life in lives for sent in life.sent) > A_RUN
        assert sum(life.epoch for life in lives) > A_RUN
