"""Three brokers replicate a partition while their network, their processes and their clocks fail them.

Handlers, logs, fetchers and ISR requests are the real ones; the network and the controller are this file. A request may
be lost, or its answer; it may arrive after its sender has given up, and again, beside another one. Brokers are killed and
come back, stop for a while and go on as if nothing had been, and their clocks go at different speeds. Elections are
clean. What must hold:

    a record that was acknowledged with acks=all is in the log of whoever leads afterwards, and in all logs at the end
    what lies below a high watermark anywhere is the same everywhere; no high watermark goes back in a broker's life
    one broker leads in an epoch; the controller takes nobody into the ISR who lacks what was acknowledged
    at the end all logs are the same bytes

SEED=n replays one run, RUNS=n makes more of them; a failure prints its seed.
"""

from __future__ import annotations

import os
import random
from collections import deque
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from pykafkad import errors
from pykafkad.hot import records, wire
from pykafkad.net.peers import Purpose
from pykafkad.storage.manager import LogManager
from pykafkad.zookeeper.client import BAD_VERSION, GetData, Result, SetData
from pykafkad.zookeeper.znodes import PartitionState, read_state, write_state
from tests.replication_kit import CONTROLLER, TOPIC, ReplicatingDesk, State
from tests.simulation.test_replicas import batches_of
from tests.storage_kit import topic_config
from tests.unit.cluster_kit import TOPIC_ID, live_broker
from tests.unit.data_kit import Connection, batch, produce

RUNS = int(os.environ.get("RUNS", "100"))
SEEDS = [20_261_119 + run for run in range(RUNS)]
if "SEED" in os.environ:
    SEEDS = [int(os.environ["SEED"])]
STEPS = 250
SETTLING_MAX = 4_000
NODES = (0, 1, 2)
LAG_MS = 4_000
CONFIG = topic_config(
    segment_bytes=3000,
    index_interval_bytes=300,
    segment_index_bytes=600,
    min_insync_replicas=2,
    file_delete_delay_ms=0,
)
PROTOCOLS = ["3.9", "3.9", "3.0", "2.6"]

Message = Callable[[], object]


class KnownLogs(LogManager):
    """Loads the log of the partition that there is."""

    def open_all(self, known: Any, config_of: Any, placement: Any = None) -> Any:
        there = {(TOPIC, 0): TOPIC_ID} if os.path.exists(f"{self.directories[0].path}/{TOPIC}-0") else {}
        return super().open_all(there, lambda topic: CONFIG, placement)


class Desk(ReplicatingDesk):
    def open_storage(self) -> None:
        self.storage = KnownLogs(self.config, self.clock, replicas=self.replicas, call_soon=self.call_soon)


class Link:
    """A broker's connection to another one, for one purpose (net.peers.Asking)."""

    def __init__(self, network: Network, sender: Node, target: int, purpose: Purpose) -> None:
        self.network, self.sender, self.target, self.purpose = network, sender, target, purpose
        self.connection = Connection()
        self.life = 0

    def ask(self, request: Any, version: int, done: Callable[[Any], object], **_: Any) -> None:
        self.network.carry(self, request, version, done)

    def ask_built(
        self, api_key: int, newest: int, build: Callable[[int], Any], done: Callable[[Any], object], **_: Any
    ) -> None:
        self.ask(build(newest), newest, done)

    def close(self) -> None:
        """Whatever is under way is still carried, and its answer goes to nobody."""
        self.life += 1


class Network:
    """Where requests and answers are while they are under way; also those that wait for something at whom they ask."""

    def __init__(self, town: Town) -> None:
        self.town, self.chance = town, town.chance
        self.messages: list[Message] = []
        self.asked: list[tuple[Node, int, Any, Callable[[Any], None], str, int]] = []

    def carry(self, link: Link, request: Any, version: int, done: Callable[[Any], object]) -> None:
        told: list[Any] = []

        def tell(answer: Any, life: int = link.life, sender_life: int = link.sender.life) -> None:
            """The first one counts: an answer, or that the connection is gone."""
            if not told and link.life == life and link.sender.life == sender_life:
                told.append(answer)
                link.sender.act(lambda: done(answer))

        fate = self.chance.random() if self.town.is_rough else 1.0
        if fate < 0.06:  # the connection is lost, and the request may arrive later, or never
            self.messages.append(lambda: tell(ConnectionError("lost")))
        if fate >= 0.03:
            self.messages.append(lambda: self.arrive(link, request, version, tell))

    def arrive(self, link: Link, request: Any, version: int, tell: Callable[[Any], None]) -> None:
        if link.target == CONTROLLER:
            answer = self.town.alter(request)
            self.messages.append(lambda: tell(answer))
            return
        node = self.town.nodes[link.target]
        if not node.is_up:
            self.messages.append(lambda: tell(ConnectionError("refused")))
        elif node.is_paused:
            self.messages.append(lambda: self.arrive(link, request, version, tell))
        else:
            self.ask(node, request, version, tell, link.connection)

    def ask(
        self, node: Node, request: Any, version: int, tell: Callable[[Any], None], connection: Connection
    ) -> None:
        frame = bytearray(wire.request(request, version, 1, "client"))  # type: ignore[arg-type]
        given = node.desk.dispatcher.on_frame(connection, frame, 4, len(frame))
        node.desk.end_pass()
        self.asked.append((node, node.life, given, tell, type(request).__name__, version))
        self.collect()

    def collect(self) -> None:
        """Answers that have come to be set out, unless their broker was killed meanwhile."""
        left = []
        for entry in self.asked:
            node, life, given, tell, name, version = entry
            if not node.is_up or node.life != life:
                self.messages.append(lambda tell=tell: tell(ConnectionError("reset")))  # type: ignore[misc]
                continue
            answer = node.desk.answer_of(given, name, version)
            if answer is None:
                left.append(entry)
            elif not self.town.is_rough or self.chance.random() > 0.03:
                self.messages.append(lambda tell=tell, answer=answer: tell(answer))  # type: ignore[misc]
            else:
                self.messages.append(lambda tell=tell: tell(TimeoutError("late")))  # type: ignore[misc]
        self.asked = left

    def deliver(self) -> None:
        for _ in range(self.chance.randint(1, 4)):
            if self.messages:
                place = min(self.chance.choice([0, 0, 0, 1, 3]), len(self.messages) - 1)
                self.messages.pop(place)()


class StateZnode:
    """ZooKeeper, as the leaders of an older protocol see it: one znode, and notifications that are not kept."""

    def __init__(self, node: Node) -> None:
        self.node = node

    def submit(self, ops: Any, done: Callable[[Any], object]) -> None:
        (op,) = ops
        town, node, life = self.node.town, self.node, self.node.life

        def carried_out() -> None:
            result = town.carry_out(op)
            town.network.messages.append(lambda: node.life == life and node.act(lambda: done([result])))

        town.network.messages.append(carried_out)


class Node:
    """A broker, which may be down, or paused."""

    def __init__(self, node_id: int, town: Town) -> None:
        self.node_id, self.town = node_id, town
        self.path = town.path / str(node_id)
        self.path.mkdir()
        self.is_up = self.is_paused = False
        self.life = self.seen = 0
        self.speed = town.chance.choice([1.0, 1.0, 0.8, 1.3])
        self.links: dict[tuple[int, Purpose], Link] = {}

    def start(self) -> None:
        self.life += 1
        self.is_up, self.is_paused, self.seen = True, False, 0
        self.waiting: deque[Message] = deque()  # what has come while it was paused
        self.links.clear()
        self.desk = Desk(
            self.path,
            self.node_id,
            replica_lag_time_max_ms=str(LAG_MS),
            replica_fetch_max_bytes=str(self.town.chance.choice([400, 2000, 1 << 20])),
        )
        self.desk.connection.listener = SimpleNamespace(owner=SimpleNamespace(name="PLAINTEXT"))  # type: ignore[attr-defined]
        cast(Any, self.desk.parts.control.roles)._config_of = lambda name: CONFIG
        cast(Any, self.desk.parts).zookeeper = StateZnode(self)
        self.desk.replicate(self.desk, self, self.town.protocol)
        self.look_ms = self.desk.clock.monotonic_ms()

    def to(self, broker_id: int, purpose: Purpose) -> Link:
        key = broker_id, purpose
        if key not in self.links:
            self.links[key] = Link(self.town.network, self, broker_id, purpose)
            self.links[key].connection.listener = self.desk.connection.listener  # type: ignore[attr-defined]
        return self.links[key]

    def kill(self) -> None:
        self.is_up = False
        self.life += 1
        self.desk.storage.close(clean=False)

    def act(self, action: Message) -> None:
        """Something comes to this broker: now, or when it goes on."""
        if self.is_up and self.is_paused:
            self.waiting.append(action)
        elif self.is_up:
            action()
            self.run()

    def run(self, delta_ms: int = 0) -> None:
        """Its loop, with what is due."""
        desk = self.desk
        desk.end_pass()
        desk.advance(int(delta_ms * self.speed))
        desk.end_pass()
        while any(not each.cancelled and each.due_ms <= desk.clock.monotonic_ms() for each in desk.timers):
            desk.advance(0)
            desk.end_pass()
        if desk.clock.monotonic_ms() - self.look_ms >= LAG_MS // 2:
            self.look_ms = desk.clock.monotonic_ms()
            for _, job in desk.replication.jobs:
                job()
            desk.end_pass()
        self.town.network.collect()

    def go_on(self) -> None:
        self.is_paused = False
        while self.waiting and self.is_up and not self.is_paused:
            self.waiting.popleft()()
        self.run()

    @property
    def replica(self) -> Any:
        return self.desk.replicas.get((TOPIC, 0)) if self.is_up else None


class Town:
    """The brokers, the controller, the clients."""

    def __init__(self, path: Path, seed: int) -> None:
        self.path = path
        self.chance = random.Random(seed)
        self.is_rough = True
        self.protocol = self.chance.choice(PROTOCOLS)
        self.network = Network(self)
        self.state = State(NODES)
        self.live: set[int] = set()  # whom the controller believes to be there
        self.orders: dict[int, deque[Message]] = {node_id: deque() for node_id in NODES}
        self.nodes = {node_id: Node(node_id, self) for node_id in NODES}
        self.serial = 0
        self.acknowledged: dict[bytes, int] = {}  # by value: its offset
        self.committed: dict[int, bytes] = {}
        self.led: dict[int, int] = {}
        for node in self.nodes.values():
            node.start()
            self.live.add(node.node_id)
        self.tell_all()

    # -- the controller: one request at a time to each broker, in order

    def tell_all(self) -> None:
        for node_id in self.live:
            self.tell(node_id)

    def tell(self, node_id: int) -> None:
        state, metadata = self.state.for_replicas(), self.state.for_metadata()
        brokers = [live_broker(each) for each in sorted(self.live)]
        node, life = self.nodes[node_id], self.nodes[node_id].life

        def told() -> None:
            if node.life == life:
                node.act(lambda: self.obey(node, state, metadata, brokers))

        self.orders[node_id].append(told)

    def obey(self, node: Node, state: Any, metadata: Any, brokers: list[Any]) -> None:
        node.desk.hear(brokers)
        (code,) = node.desk.lead_and_follow(state).values()
        assert code in (errors.NONE, errors.STALE_CONTROLLER_EPOCH), code
        node.desk.hear(brokers, [metadata])
        if node.replica.leadership is not None:
            assert self.led.setdefault(node.replica.leader_epoch, node.node_id) == node.node_id

    def alter(self, request: Any) -> Any:
        answer = self.state.alter(request, sorted(self.live))
        if not answer.topics[0].partitions[0].error_code:
            self.altered()
        return answer

    def carry_out(self, op: Any) -> Result:
        """What a leader of an older protocol reads and writes."""
        state = self.state
        if isinstance(op, GetData):
            data = write_state(PartitionState(state.leader, state.epoch, state.isr, 1))
            return Result(data=data, version=state.partition_epoch)
        if isinstance(op, SetData):
            if op.version != state.partition_epoch:
                return Result(error=BAD_VERSION)
            written = read_state(op.data)
            assert (written.leader, written.leader_epoch) == (state.leader, state.epoch)
            state.isr = list(written.isr)
            state.partition_epoch += 1
            self.altered()
        return Result(version=state.partition_epoch)

    def altered(self) -> None:
        for node_id in self.state.isr:
            self.check_member(self.nodes[node_id])
        for node_id in self.live:
            self.tell(node_id)

    def check_member(self, node: Node) -> None:
        if node.is_up and node.replica is not None:
            needed = max(self.acknowledged.values(), default=-1) + 1
            assert node.replica.log_end_offset >= needed, f"{node.node_id} is in the ISR without it all"

    def lost(self, node_id: int) -> None:
        """Its session has ended."""
        self.live.discard(node_id)
        self.orders[node_id].clear()
        state = self.state
        isr = [each for each in state.isr if each != node_id] or state.isr
        if state.leader == node_id or node_id in state.isr:
            candidates = [each for each in isr if each in self.live]
            leader = state.leader if state.leader in candidates else (candidates or [-1])[0]
            state.elect(leader, isr)
            self.tell_all()

    def found(self, node_id: int) -> None:
        self.live.add(node_id)
        state = self.state
        if state.leader == -1 and node_id in state.isr:
            state.elect(node_id, state.isr)
            self.tell_all()
        else:
            self.tell_all()

    # -- what happens

    def step(self) -> None:
        action = self.chance.random()
        node = self.nodes[self.chance.choice(NODES)]
        if action < 0.22:
            self.produce(node)
        elif action < 0.70:
            self.move()
        elif action < 0.88:
            self.pass_ms(self.chance.choice([1, 50, 500, 600]))
        elif action < 0.90:
            self.pass_ms(self.chance.randrange(LAG_MS))
        elif action < 0.92:
            self.elect()
        elif action < 0.94 and node.is_up:
            self.pause(node)
        elif action < 0.96:
            if node.is_up:
                node.kill()
                self.lost(node.node_id)
        else:
            self.mend(node)
        self.check()

    def move(self) -> None:
        """Messages, and orders of the controller."""
        self.network.deliver()
        node_id = self.chance.choice(NODES)
        if self.orders[node_id] and self.chance.random() < 0.7:
            self.orders[node_id].popleft()()

    def pass_ms(self, delta_ms: int) -> None:
        for node in self.nodes.values():
            if node.is_up and not node.is_paused:
                node.run(delta_ms)

    def elect(self) -> None:
        """For no reason: a preferred election, say."""
        candidates = [each for each in self.state.isr if each in self.live]
        if candidates:
            self.state.elect(self.chance.choice(candidates), self.state.isr)
            self.tell_all()

    def pause(self, node: Node) -> None:
        node.is_paused = True
        if self.chance.random() < 0.5:
            self.lost(node.node_id)

    def mend(self, node: Node) -> None:
        if not node.is_up:
            node.start()
            self.found(node.node_id)
        elif node.is_paused:
            node.go_on()
            if node.node_id not in self.live:
                self.found(node.node_id)

    def produce(self, node: Node, acks: int | None = None) -> None:
        if not node.is_up or node.is_paused or node.replica is None:
            return
        self.serial += 1
        values = [
            b"%d-%d " % (self.serial, row) + b"x" * self.chance.choice([0, 9, 300])
            for row in range(self.chance.randint(1, 3))
        ]
        acks = self.chance.choice([-1, -1, 1]) if acks is None else acks

        def answered(answer: Any) -> None:
            if isinstance(answer, OSError):
                return
            (part,) = answer.responses[0].partition_responses
            if not part.error_code and acks == -1:
                for row, value in enumerate(values):
                    self.acknowledged[value] = part.base_offset + row

        self.network.ask(node, produce(TOPIC, 0, batch(*values), acks), 9, answered, node.desk.connection)

    # -- what must hold

    def check(self) -> None:
        for node in self.nodes.values():
            replica = node.replica
            if replica is None:
                continue
            log = replica.log
            assert log.log_start_offset <= log.high_watermark <= log.log_end_offset
            assert log.high_watermark >= node.seen, f"the high watermark of {node.node_id} went back"
            for offset, data in batches_of(replica, node.seen) if log.high_watermark > node.seen else ():
                assert self.committed.setdefault(offset, data) == data, f"{node.node_id} differs at {offset}"
            node.seen = log.high_watermark
        missing = [value for value, offset in self.acknowledged.items() if offset not in self.committed]
        assert not missing, f"acknowledged, and below no high watermark: {missing}"

    def settle(self) -> None:
        """Nothing fails any more."""
        self.is_rough = False
        for node in self.nodes.values():
            self.mend(node)
        for turn in range(SETTLING_MAX):
            self.move()
            for node_id in NODES:
                if self.orders[node_id]:
                    self.orders[node_id].popleft()()
            if turn % 10 == 0:
                self.pass_ms(200)
            self.check()
            if self.is_settled():
                return
        raise AssertionError(f"they never came to agree: {self.where()}")

    def is_settled(self) -> bool:
        state = self.state
        replicas = [node.replica for node in self.nodes.values()]
        if state.leader == -1 or set(state.isr) != set(NODES) or any(self.orders.values()):
            return False
        end = replicas[state.leader].log_end_offset
        return all(
            each.leader_epoch == state.epoch and each.log_end_offset == each.high_watermark == end
            for each in replicas
        )

    def where(self) -> Any:
        state = self.state
        return (state.leader, state.epoch, state.isr), [
            (each.leader_id, each.leader_epoch, each.high_watermark, each.log_end_offset)
            for each in (node.replica for node in self.nodes.values())
        ]


def values_in(replica: Any) -> dict[bytes, int]:
    found = {}
    for offset, data in dict(batches_of(replica, 0)).items():
        for row in records.read(data):
            if row.offset == offset:
                found[row.value or b""] = offset
    return found


def bytes_of(replica: Any) -> bytes:
    log = replica.log
    return b"".join(
        Path(log.directory, name).read_bytes()
        for name in sorted(os.listdir(log.directory))
        if name.endswith(".log")
    )


@pytest.mark.parametrize("seed", SEEDS)
def test_acknowledged_records_stay_and_all_logs_come_to_be_the_same(
    seed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    print(f"replay with SEED={seed}")
    monkeypatch.setattr(os, "fsync", lambda fd: None)
    monkeypatch.setattr(os, "fdatasync", lambda fd: None)
    town = Town(tmp_path, seed)
    for _ in range(STEPS):
        town.step()
    town.settle()
    for _ in range(10):
        town.produce(town.nodes[town.state.leader], acks=-1)
        town.settle()  # which the last of them may not have come to see
    replicas = [node.replica for node in town.nodes.values()]
    one, two, three = (bytes_of(each) for each in replicas)
    assert one == two == three and one
    found = values_in(replicas[0])
    assert {value: found.get(value) for value in town.acknowledged} == town.acknowledged
    assert len(town.acknowledged) >= 5, "hardly anything was acknowledged, so nothing was shown"
    for node in town.nodes.values():
        node.desk.replication.close()
        node.desk.storage.close()
