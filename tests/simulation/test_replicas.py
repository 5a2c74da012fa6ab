"""Three replicas of one partition under random appends, fetches, leader changes, crashes and lags, against what Kafka's
replication promises.

The logs and the replicas are real, the network and the controller are this file: answers come late or never, of an ISR
that is asked for the controller decides when it comes to it. Elections are clean. What must hold:

    what lies below a high watermark anywhere is the same everywhere, and never lost; acknowledged records lie there
    a produce is answered when acks allows it: with acks=1 at the end of its pass, with acks=-1 below the high watermark
    no replica's high watermark goes back while it runs, and nobody cuts below it
    nobody leads in an epoch that another one led in, and the ISR holds nobody who lacks what is acknowledged
    in the end, when all have caught up, the logs are the same bytes, with the same producers, epochs and transactions

SEED=n replays one run, RUNS=n makes more of them; a failure prints its seed.
"""

from __future__ import annotations

import os
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from pykafkad import errors
from pykafkad.clock import ManualClock
from pykafkad.cluster.replica import Replica
from pykafkad.cluster.replicas import Replicas
from pykafkad.errors import KafkaError
from pykafkad.hot import records
from pykafkad.promises import Promises
from pykafkad.storage.manager import LogManager
from tests.storage_kit import NOW_MS, TOPIC_ID, broker_config, marker, topic_config

RUNS = int(os.environ.get("RUNS", "40"))
STEPS = 400
AFTERWARDS = 20  # produces when nothing fails any more
SEEDS = [20_261_119 + run for run in range(RUNS)]
if "SEED" in os.environ:
    SEEDS = [int(os.environ["SEED"])]
NODES = (1, 2, 3)
LAG_MS = 10_000
NOBODY = -1
CONFIG = topic_config(
    segment_bytes=3000,
    index_interval_bytes=300,
    segment_index_bytes=600,
    min_insync_replicas=2,
    file_delete_delay_ms=0,
)

Messages = list[Callable[[], None]]


class Produced:
    """A produce in progress: the answer is given at the end of its pass, unless it is held."""

    def __init__(self, cluster: Cluster, acks: int, offsets: range) -> None:
        self.cluster = cluster
        self.acks = acks
        self.offsets = offsets
        self.error = errors.NONE

    def hold(self) -> None:
        assert self.acks == -1, "the leader alone has it at once"
        self.cluster.held.append(self)

    def release(self) -> None:
        self.cluster.held.remove(self)
        self.cluster.answered.append(self)

    @staticmethod
    def refused(part: Produced, produced: Any, code: int) -> None:
        assert code in (errors.NOT_ENOUGH_REPLICAS_AFTER_APPEND, errors.NOT_LEADER_OR_FOLLOWER)
        part.error = code


def never(*_: Any) -> Any:
    raise AssertionError("these requests wait for as long as it takes")


class Node:
    """A broker with one replica, which may be down."""

    def __init__(self, node_id: int, path: Path, cluster: Cluster) -> None:
        self.node_id = node_id
        self.path = path
        self.cluster = cluster
        self.config = broker_config(path, **{"node.id": node_id, "replica.lag.time.max.ms": LAG_MS})
        self.is_up = False
        self.is_busy = False  # a fetch is on its way, or the log is being cut
        self.life = 0
        self.seen = 0  # the high watermark, in this life

    def start(self) -> None:
        self.is_up, self.is_busy, self.seen = True, False, 0
        self.life += 1
        self.promises = Promises(never)
        replicas = Replicas(
            self.config,
            self.cluster.clock,
            lambda replica: None,
            self.cluster.asked,
            resigned=self.promises.fail,
        )
        self.logs = LogManager(self.config, self.cluster.clock, self.cluster.submit(self), replicas=replicas)
        self.logs.open_all({("orders", 0): TOPIC_ID}, lambda topic: CONFIG)
        if self.logs.get("orders", 0) is None:
            self.logs.create("orders", 0, TOPIC_ID, CONFIG, 0)
        self.replica = replicas.table["orders", 0]
        self.replica.become_follower(self.cluster.epoch, NOBODY)

    def stop(self, clean: bool) -> None:
        self.is_up = False
        self.logs.close(clean=clean)

    def later(self, action: Callable[[], None]) -> None:
        """Comes to pass if this node still lives the same life then."""
        life = self.life
        self.cluster.messages.append(lambda: action() if self.is_up and self.life == life else None)

    def commit(self) -> None:
        assert self.logs.commit() == []
        self.promises.settle()
        self.logs.deletions.unlink_due()


class Cluster:
    """The nodes, what is between them, and the controller."""

    def __init__(self, path: Path, seed: int) -> None:
        self.chance = random.Random(seed)
        self.clock = ManualClock(NOW_MS)
        self.messages: Messages = []
        self.committed: dict[int, bytes] = {}  # by offset: what was below a high watermark
        self.held: list[Produced] = []
        self.answered: list[Produced] = []  # since the last look at it
        self.told: dict[tuple[int, int], int] = {}  # how many produces were answered, by acks and error
        self.acknowledged = 0  # up to here records were acknowledged with acks=-1
        self.epoch, self.partition_epoch = 0, 0
        self.leader = 1
        self.isr: tuple[int, ...] = NODES
        self.led: dict[int, int] = {}  # by epoch
        self.sequences: dict[int, int] = {}
        self.serial = 0
        self.deletes = self.chance.random() < 0.5  # records, at the start of the log
        self.nodes = {node_id: Node(node_id, path / str(node_id), self) for node_id in NODES}
        for node in self.nodes.values():
            node.path.mkdir()
            node.start()
        self.tell_all()

    def submit(self, node: Node) -> Any:
        """Threads of a node: their work is done at some time, unless it dies before."""

        def submit(work: Callable[[], Any], done: Callable[[Any], None]) -> None:
            def both() -> None:
                work()
                done(None)

            node.later(both)

        return submit

    # -- the controller

    def tell_all(self) -> None:
        """Leader and ISR to all that are up; each hears of it when it does."""
        for node in self.nodes.values():
            if node.is_up:
                self.tell(node)

    def tell(self, node: Node) -> None:
        epoch, leader, isr, partition_epoch = self.epoch, self.leader, self.isr, self.partition_epoch

        def told() -> None:
            known = node.replica.leader_epoch
            if epoch < known or (epoch == known and node.replica.leader_id != NOBODY):
                return
            node.is_busy = False
            if leader == node.node_id:
                assert self.led.setdefault(epoch, leader) == leader
                node.replica.become_leader(epoch, NODES, isr, partition_epoch)
            else:
                node.replica.become_follower(epoch, leader)

        node.later(told)

    def asked(self, replica: Replica, isr: frozenset[int]) -> None:
        """AlterPartition: the answer comes for sure while that leader leads, but not soon."""
        node = self.nodes[replica.surroundings.node_id]
        leadership = replica.leadership
        assert leadership is not None
        epoch, partition_epoch = leadership.epoch, leadership.partition_epoch

        def decide() -> None:
            if (epoch, partition_epoch) != (self.epoch, self.partition_epoch):
                return  # the leader hears of another epoch
            if any(not self.nodes[each].is_up for each in isr):
                node.later(lambda: replica.isr_refused(epoch))
                return
            self.isr = tuple(sorted(isr))
            self.partition_epoch += 1
            confirmed = self.isr, self.partition_epoch
            node.later(lambda: replica.isr_confirmed(epoch, *confirmed))

        self.messages.append(decide)

    def elect(self, without: int | None = None) -> None:
        """A clean election, after a failure or for no reason at all."""
        left = tuple(each for each in self.isr if each != without)
        candidates = [each for each in left or self.isr if self.nodes[each].is_up]
        self.isr = left or self.isr  # the last one stays, up or not
        if self.leader not in candidates or without is None:
            self.leader = self.chance.choice(candidates) if candidates else NOBODY
        self.epoch += 1
        self.partition_epoch += 1
        self.tell_all()

    # -- what happens

    def step(self) -> None:
        action = self.chance.random()
        node = self.nodes[self.chance.choice(NODES)]
        if action < 0.30:
            self.produce()
        elif action < 0.65:
            self.fetch(node)
        elif action < 0.90:
            self.deliver()
        elif action < 0.94:
            self.clock.advance(self.chance.randrange(LAG_MS))
            for each in self.nodes.values():
                if each.is_up:
                    each.replica.check_isr()
        elif action < 0.955 and self.leader != NOBODY:
            self.elect()
        elif action < 0.965:
            self.upkeep(node)
        elif action < 0.985 and node.is_up:
            self.crash(node)
        elif not node.is_up:
            self.start(node)
        self.check()

    def deliver(self) -> None:
        """One of the next messages: nearly in order, but another connection may be faster."""
        for _ in range(self.chance.randint(1, 4)):
            if self.messages:
                self.messages.pop(min(self.chance.choice([0, 0, 0, 1, 2]), len(self.messages) - 1))()

    def crash(self, node: Node) -> None:
        node.stop(clean=self.chance.random() < 0.3)
        if node.node_id == self.leader or node.node_id in self.isr:
            self.elect(without=node.node_id)

    def start(self, node: Node) -> None:
        node.start()
        if self.leader == NOBODY and node.node_id in self.isr:
            self.elect()
        else:
            self.tell(node)

    def upkeep(self, node: Node) -> None:
        if node.is_up:
            node.logs.checkpoint_high_watermarks()
            node.logs.checkpoint_recovery_points()
            if self.deletes and node.replica.leadership is not None and self.chance.random() < 0.3:
                node.replica.delete_records(self.chance.randint(0, node.replica.high_watermark))

    def produce(self) -> None:
        """To whoever believes to lead: there may be two who do."""
        leaders = [each for each in self.nodes.values() if each.is_up and each.replica.leadership is not None]
        if not leaders:
            return
        node = self.chance.choice(leaders)
        replica = node.replica
        start = replica.log_end_offset
        acks = self.chance.choice([-1, -1, 1])
        try:
            replica.check_append(acks)
            for _ in range(self.chance.randint(1, 3)):
                self.append(replica)
        except KafkaError as error:
            expect(error, errors.NOT_ENOUGH_REPLICAS, errors.OUT_OF_ORDER_SEQUENCE_NUMBER)
        produced = Produced(self, acks, range(start, replica.log_end_offset))
        if produced.offsets:
            node.promises.made.append((replica, acks, None, produced, Produced.refused, produced))  # type: ignore[arg-type]
        node.commit()
        if produced.offsets and produced not in self.held:
            self.answered.append(produced)

    def append(self, replica: Replica) -> None:
        kind, log = self.chance.random(), replica.log
        rows: list[Any] = [(b"k", self.value(), [], NOW_MS) for _ in range(self.chance.randint(1, 4))]
        producer = self.chance.choice([7, 8])
        entry = log.producers.producers.get(producer)
        if kind < 0.6:
            log.append(bytearray(records.build(rows)), NOW_MS)
        elif kind < 0.8 or entry is None:
            sequence = 0 if entry is None else entry.last_sequence + 1
            batch = records.build(
                rows, producer_id=producer, producer_epoch=0, base_sequence=sequence, transactional=True
            )
            log.append(bytearray(batch), NOW_MS, verified=True)
        else:
            log.append_built(marker(producer, 0, self.chance.random() < 0.5), NOW_MS)

    def value(self) -> bytes:
        self.serial += 1
        return b"%d " % self.serial + b"x" * self.chance.choice([0, 5, 50, 300])

    # -- fetching

    def fetch(self, node: Node) -> None:
        """The follower's request: both ways may take long, and meanwhile it asks for nothing else."""
        replica = node.replica if node.is_up else None
        if replica is None or node.is_busy or replica.leader_id in (NOBODY, node.node_id):
            return
        leader, epoch, life = self.nodes[replica.leader_id], replica.leader_epoch, node.life
        offset, last_epoch = replica.next_fetch
        node.is_busy = True

        def answered(answer: Callable[[], None]) -> None:
            def arrived() -> None:
                if (node.life, replica.leader_epoch) == (life, epoch):
                    node.is_busy = False
                    answer()

            node.later(arrived)

        def asked() -> None:
            serving = leader.replica
            if not leader.is_up or serving.leadership is None or serving.leader_epoch != epoch:
                answered(lambda: None)
                return
            try:
                answered(self.serve(node, serving, offset, last_epoch, replica.log_start_offset))
            except KafkaError as error:
                expect(error, errors.OFFSET_OUT_OF_RANGE)
                start, end = serving.log_start_offset, serving.log_end_offset
                if offset > end:
                    answered(lambda: self.cutting(node, lambda done: replica.cut_at(end, done)))
                else:
                    answered(lambda: self.cutting(node, lambda done: replica.start_anew(start, done)))

        if self.chance.random() < 0.05:
            answered(lambda: None)  # the connection is lost
        else:
            self.messages.append(asked)

    def serve(
        self, node: Node, serving: Replica, offset: int, last_epoch: int, start_offset: int
    ) -> Callable[[], None]:
        """What the leader answers, as an act of the follower."""
        follower = node.replica
        if last_epoch >= 0:
            parting = serving.divergence(last_epoch, offset)
            if parting is not None:
                return lambda: self.cutting(node, lambda done: follower.cut(*parting, done))
        size = self.chance.choice([1, 200, 1000, 5000])
        found = serving.read(offset, size, limit_offset=serving.written_offset, at_least_one=True)
        data = found.read() if found is not None else b""
        high_watermark, start = serving.high_watermark, serving.log_start_offset
        serving.follower_fetched(node.node_id, offset, start_offset)

        def take() -> None:
            follower.append_fetched(data, high_watermark, start, NOW_MS)
            node.commit()

        return take

    def cutting(self, node: Node, cut: Callable[[Any], None]) -> None:
        before, life, epoch = node.replica.high_watermark, node.life, node.replica.leader_epoch
        node.is_busy = True

        def done(error: KafkaError | None) -> None:
            if node.life == life and node.replica.leader_epoch == epoch:
                node.is_busy = False
                assert node.replica.high_watermark >= before, "cut below the high watermark"

        cut(done)

    # -- what must hold

    def check(self) -> None:
        for node in self.nodes.values():
            if node.is_up:
                self.check_node(node)
                node.promises.settle()
        answered, self.answered = self.answered, []
        for each in answered:
            self.told[each.acks, each.error] = self.told.get((each.acks, each.error), 0) + 1
            if each.acks == -1 and not each.error:
                missing = [offset for offset in each.offsets if offset not in self.committed]
                assert not missing, f"acknowledged and not below any high watermark: {missing}"
                self.acknowledged = max(self.acknowledged, each.offsets.stop)
        if self.leader != NOBODY and self.nodes[self.leader].is_up:
            leading = self.nodes[self.leader].replica
            if leading.leader_epoch == self.epoch:
                assert leading.log_end_offset >= self.acknowledged

    def check_node(self, node: Node) -> None:
        log = node.replica.log
        assert log.log_start_offset <= log.last_stable_offset <= log.high_watermark <= log.log_end_offset
        assert log.high_watermark >= node.seen, "the high watermark went back"
        if log.high_watermark > node.seen:
            for offset, data in batches_of(node.replica, max(node.seen, log.log_start_offset)):
                assert self.committed.setdefault(offset, data) == data, f"{node.node_id} differs at {offset}"
        node.seen = log.high_watermark

    def settle(self) -> None:
        """Nothing fails any more: all catch up."""
        for node in self.nodes.values():
            if not node.is_up:
                self.start(node)
        for _ in range(3000):
            self.deliver()
            for node in self.nodes.values():
                self.fetch(node)
            if self.chance.random() < 0.01:
                self.clock.advance(LAG_MS)
                for node in self.nodes.values():
                    node.replica.check_isr()
            self.check()
            if self.is_settled():
                return
        raise AssertionError("they never came to agree")

    def is_settled(self) -> bool:
        if self.isr != NODES or self.leader == NOBODY:
            return False
        leading = self.nodes[self.leader].replica
        return leading.leader_epoch == self.epoch and all(
            each.replica.log_end_offset == each.replica.high_watermark == leading.log_end_offset
            for each in self.nodes.values()
        )


def expect(error: KafkaError, *codes: int) -> None:
    if error.code not in codes:
        raise error


def batches_of(replica: Replica, start: int) -> list[tuple[int, bytes]]:
    """The bytes of the batches up to the high watermark, by each of their offsets."""
    found: list[Any] = []
    offset = start
    while True:
        part = replica.read(offset, 1 << 20, limit_offset=replica.high_watermark, at_least_one=True)
        if part is None:
            return found
        data = part.read()
        for batch in records.scan(data):
            whole = data[batch.position : batch.position + batch.size]
            found += [(each, whole) for each in range(batch.base_offset, batch.last_offset + 1)]
            offset = batch.last_offset + 1


def state_of(replica: Replica, log_start: int, deletes: bool) -> tuple[Any, ...]:
    """All that must be the same everywhere, from that offset on: where a log starts a crash may have forgotten. Of what
    was deleted a follower may never have heard, nor of the producers and transactions that are there alone."""
    log = replica.log
    content = batches_of(replica, log_start)
    epochs = {log.epoch_at(offset) for offset in range(log_start, log.log_end_offset)}
    if deletes:
        return content, epochs
    producers = sorted(
        (each.producer_id, each.epoch, each.last_sequence, each.last_offset, each.transaction_start)
        for each in log.producers
    )
    aborted = set()
    for base in log.bases:
        part = log.read(base, 1 << 20, limit_offset=log.high_watermark, at_least_one=True)
        if part is not None:
            aborted |= set(log.aborted_transactions(base, part))
    return content, epochs, producers, aborted, log.last_stable_offset


@pytest.mark.parametrize("seed", SEEDS)
def test_what_is_acknowledged_stays_and_all_come_to_agree(
    seed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    print(f"replay with SEED={seed}")
    monkeypatch.setattr(os, "fsync", lambda fd: None)
    monkeypatch.setattr(os, "fdatasync", lambda fd: None)
    cluster = Cluster(tmp_path, seed)
    for _ in range(STEPS):
        cluster.step()
    cluster.settle()
    for _ in range(AFTERWARDS):
        cluster.produce()
    cluster.settle()
    log_start = max(node.replica.log_start_offset for node in cluster.nodes.values())
    one, two, three = (state_of(node.replica, log_start, cluster.deletes) for node in cluster.nodes.values())
    assert one == two == three
    assert one[0], "nothing was written, so nothing was shown"
    assert cluster.told.get((-1, errors.NONE)) and cluster.told.get((1, errors.NONE)), cluster.told
    assert all(node.promises.held_count == 0 for node in cluster.nodes.values()), "somebody waits for ever"
    for node in cluster.nodes.values():
        node.stop(clean=True)
