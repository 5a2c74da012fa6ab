"""Controllers of a cluster under random lives: brokers that crash, sessions that end, messages that are lost or late,
topics that are made, grown, reassigned and deleted meanwhile.

The controllers are real, over a ZooKeeper in memory; brokers are models that obey and ask as Kafka's do (controller_kit).
At every write to ZooKeeper:

    a partition has at most one leader in an epoch, and its epochs never go back
    the ISR is never empty, who comes into it is a replica, and the leader is in it and a replica
    the controller epoch only rises, and nobody writes a state in an older one
In the end, when all are back and nothing is lost any more:
    there is one controller, and nothing waits to be sent
    reassignments and deletions have ended; of deleted topics there is nothing, in ZooKeeper or on a disk
    every partition has its replicas, all in sync, with the leader and epoch that ZooKeeper says

`test_every_crash_of_a_controller` lets the controller die at each of its operations on ZooKeeper, one after the other.
SEED=n replays one run, RUNS=n makes more of them; a failure prints its seed.
"""

from __future__ import annotations

import os
from collections.abc import Callable

import pytest

from pykafkad.logs import set_logger_level
from pykafkad.pure.controller import events
from pykafkad.zookeeper import client as zk
from pykafkad.zookeeper import znodes
from tests.controller_kit import SESSION_MS, Life, Partition, World

RUNS = int(os.environ.get("RUNS", "100"))
SEEDS = [20_261_119 + run for run in range(RUNS)]
if "SEED" in os.environ:
    SEEDS = [int(os.environ["SEED"])]
A_RUN = 20
CHUNKS = [SEEDS[at : at + A_RUN] for at in range(0, len(SEEDS), A_RUN)]
BROKERS = 4
ACTIONS = 40
QUIET_MS = 60_000


class Checks:
    """What must hold at every write."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.leaders: dict[tuple[bytes, int, int], int] = {}  # topic id, partition, leader epoch
        self.epochs: dict[tuple[bytes, int], int] = {}
        self.isrs: dict[tuple[bytes, int], set[int]] = {}
        self.controller_epoch = 0
        self.replicas: dict[tuple[bytes, int], znodes.Replicas] = {}
        self.deleted: set[bytes] = set()  # ids of topics
        self.topic_ids: dict[str, bytes] = {}
        world.checks.append(self.check)

    def check(self, op: zk.Write) -> None:
        if op.path == znodes.CONTROLLER_EPOCH and isinstance(op, zk.SetData):
            epoch = znodes.read_epoch(op.data)
            assert epoch > self.controller_epoch
            self.controller_epoch = epoch
        elif op.path.startswith(f"{znodes.TOPICS}/"):
            name, _, rest = op.path[len(znodes.TOPICS) + 1 :].partition("/")
            if not rest:
                self.check_topic(name, op)
            elif rest.endswith("/state") and isinstance(op, zk.Create | zk.SetData):
                self.check_state(name, int(rest.split("/")[1]), znodes.read_state(op.data))

    def check_topic(self, name: str, op: zk.Write) -> None:
        if isinstance(op, zk.Delete):
            self.deleted.add(self.topic_ids.pop(name))
        elif not isinstance(op, zk.Check):
            node = znodes.read_assignment(op.data)
            self.topic_ids[name] = node.topic_id
            for index, replicas in node.partitions.items():
                before = self.replicas.get((node.topic_id, index), replicas)
                self.replicas[node.topic_id, index] = replicas
                for broker_id in set(before.replicas) - set(replicas.replicas):
                    self.world.forgotten.add((broker_id, node.topic_id, index))
                    if broker_id in before.removing:
                        self.check_left(name, index, broker_id)

    def check_left(self, name: str, index: int, broker_id: int) -> None:
        """Who is reassigned away while it is down keeps its log, as in Kafka; who is alive has deleted it."""
        controller, node = self.world.controller, self.world.nodes[broker_id]
        if controller is None or (name, index) not in node.disk:
            return
        term = controller.controlling.machine.term
        known = None if term is None else term.context.brokers.get(broker_id)
        is_known = node.life is not None and known is not None and known.epoch == node.life.broker_epoch
        assert not is_known, f"{name}-{index} is left on {broker_id}"

    def check_state(self, name: str, index: int, state: znodes.PartitionState) -> None:
        what = f"{name}-{index}: {state}"
        topic_id = self.topic_ids[name]
        before = self.epochs.get((topic_id, index), -1)
        assert state.leader_epoch >= before, f"{what} after epoch {before}"
        self.epochs[topic_id, index] = state.leader_epoch
        assert state.isr, what
        assert state.controller_epoch == self.controller_epoch, what
        if state.leader != -1:
            assert state.leader in state.isr, what
            key = topic_id, index, state.leader_epoch
            assert self.leaders.setdefault(key, state.leader) == state.leader, (
                f"{what}, and {self.leaders[key]}"
            )
        replicas = set(self.world.assignment(name).partitions[index].replicas)
        assert set(state.isr) - self.isrs.get((topic_id, index), replicas) <= replicas, (
            f"{what}, of {replicas}"
        )
        self.isrs[topic_id, index] = set(state.isr)


class Run:
    def __init__(self, seed: int) -> None:
        self.world = World(BROKERS, seed)
        self.random = self.world.random
        self.checks = Checks(self.world)
        self.names = 0

    def go(self) -> None:
        world = self.world
        world.start(*world.nodes)
        self.tend()
        world.run(500)
        for _ in range(ACTIONS):
            world.lost_per_mille = self.random.choice((0, 0, 20, 200))
            self.random.choice(ACTIONS_OF_A_RUN)(self)
            world.run(self.random.choice((0, 1, 5, 20, 100, 1_000, 8_000)))
        settle(world, self.checks)

    def tend(self) -> None:
        """Leaders look after their ISRs, now and then."""
        for node in self.world.nodes.values():
            if node.life is not None:
                node.life.tend()
        self.world.later(self.random.randrange(20, 2_000), self.tend)

    # -- what happens

    @property
    def topics(self) -> list[str]:
        found = self.world.zookeeper.nodes[znodes.TOPICS].children
        wished = self.world.zookeeper.nodes[znodes.DELETE_TOPICS].children
        return sorted(found - wished)

    def some_replicas(self) -> list[int]:
        return self.random.sample(range(BROKERS), self.random.randrange(1, BROKERS + 1))

    def create_topic(self) -> None:
        self.names += 1
        # Names come again: a topic may be made anew while brokers still know the old one.
        name = f"t{self.names % 4}"
        if name not in self.world.zookeeper.nodes[znodes.TOPICS].children:
            self.world.create_topic(name, [self.some_replicas() for _ in range(self.random.randrange(1, 4))])

    def grow(self) -> None:
        if self.topics:
            self.world.grow(self.random.choice(self.topics), self.some_replicas())

    def delete_topic(self) -> None:
        if self.topics:
            self.world.delete_topic(self.random.choice(self.topics))

    def reassign(self) -> None:
        partitions = self.partitions()
        if partitions and self.world.controller is not None:
            wanted = self.random.sample(partitions, min(len(partitions), 2))
            targets = {
                each: self.random.choice((None, self.some_replicas(), self.some_replicas()))
                for each in wanted
            }
            self.world.ask(events.AlterReassignments, targets)

    def partitions(self) -> list[Partition]:
        return [(name, index) for name in self.topics for index in self.world.assignment(name).partitions]

    def elect(self) -> None:
        if self.world.controller is not None:
            partitions = self.random.choice((None, self.partitions()))
            self.world.ask(events.ElectLeaders, partitions, False)

    def crash(self) -> None:
        self.random.choice(list(self.world.nodes.values())).crash()

    def crash_controller(self) -> None:
        """At some operation on ZooKeeper that it is about to ask for."""
        life = self.world.controller
        if life is not None:
            die_at(life, self.random.randrange(1, 60))

    def start(self) -> None:
        for node in self.world.nodes.values():
            if node.life is None and self.random.randrange(2):
                node.start()

    def shut_down(self) -> None:
        controller = self.world.controller
        living = [node for node in self.world.nodes.values() if node.life is not None]
        if controller is None or not living:
            return
        node = self.random.choice(living)
        assert node.life is not None
        self.world.ask(events.ControlledShutdown, node.id, node.life.broker_epoch)
        life = node.life
        self.world.later(self.random.randrange(2_000), lambda: node.life is life and node.stop())

    def expire(self) -> None:
        life = self.some_life()
        if life is not None:
            life.zookeeper.expire()

    def disconnect(self) -> None:
        life = self.some_life()
        if life is not None and life.zookeeper.is_connected:
            life.zookeeper.disconnect()
            life.later(self.random.randrange(SESSION_MS), life.zookeeper.reconnect)

    def refuse(self) -> None:
        """The controller finds that a broker, which may live, refuses connections, and takes them again later."""
        life, broker_id = self.world.controller, self.random.randrange(BROKERS)
        if life is None or broker_id == life.id:
            return
        assert life.controlling.machine.term is not None
        known = life.controlling.machine.term.context.brokers.get(broker_id)
        if known is not None:
            told = broker_id, known.epoch
            life.controlling.tell(events.BrokerRefuses(*told))
            later = events.BrokerAnswers(*told)
            life.later(self.random.randrange(2 * SESSION_MS), lambda: life.controlling.tell(later))

    def fail_disk(self) -> None:
        """A log directory fails, and the broker says so."""
        life = self.some_life()
        if life is not None and life.node.disk:
            life.node.bad_logs.add(self.random.choice(sorted(life.node.disk)))
            event = zk.Create(znodes.log_dir_event(), znodes.write_log_dir_event(life.id), sequential=True)
            self.world.zookeeper.do(event)

    def some_life(self) -> Life | None:
        return self.random.choice(list(self.world.nodes.values())).life


ACTIONS_OF_A_RUN: tuple[Callable[[Run], None], ...] = (
    Run.create_topic,
    Run.create_topic,
    Run.grow,
    Run.delete_topic,
    Run.reassign,
    Run.reassign,
    Run.elect,
    Run.crash,
    Run.crash_controller,
    Run.start,
    Run.start,
    Run.shut_down,
    Run.expire,
    Run.disconnect,
    Run.refuse,
    Run.fail_disk,
)


def die_at(life: Life, number: int, *, is_done: bool | None = None) -> None:
    """The broker crashes when ZooKeeper is about to do its `number`-th operation from now on; `is_done`: it still is."""
    ensemble, left = life.world.zookeeper, [number]
    carry_out = ensemble.carry_out
    session_id = life.zookeeper.session_id

    def count(session: int, op: zk.Operation) -> zk.Result:
        if session == session_id and life.is_alive:
            left[0] -= 1
            if left[0] == 0:
                done = life.world.random.randrange(2) if is_done is None else is_done
                life.node.crash()
                if not done:
                    return zk.Result(zk.SESSION_EXPIRED)
        return carry_out(session, op)

    vars(ensemble)["carry_out"] = count


def settle(world: World, checks: Checks) -> None:
    """All come back, nothing is lost: what must be so in the end."""
    world.lost_per_mille = 0
    vars(world.zookeeper).pop("carry_out", None)  # of die_at
    for node in world.nodes.values():
        if node.bad_logs:
            node.stop()  # a disk comes back with its broker only
            node.bad_logs.clear()
    world.run(SESSION_MS + 1_000)
    world.start(*(node.id for node in world.nodes.values() if node.life is None))
    for _ in range(QUIET_MS // 1_000):
        for node in world.nodes.values():
            assert node.life is not None
            node.life.tend()
        world.run(1_000)
    assert not world.failures, world.failures
    controllers = [node.id for node in world.nodes.values() if node.life and node.life.controlling.is_active]
    assert len(controllers) == 1, controllers
    controller = world.controller
    assert controller is not None
    assert controller.controlling.is_idle
    assert controller.controlling.channels.waiting == 0
    assert not world.zookeeper.nodes[znodes.DELETE_TOPICS].children
    for node in world.nodes.values():
        left = {
            partition
            for partition, topic_id in node.disk.items()
            if topic_id in checks.deleted and (node.id, topic_id, partition[1]) not in world.forgotten
        }
        assert not left, f"broker {node.id} still has {left}"
    for name in world.zookeeper.nodes[znodes.TOPICS].children:
        for index, replicas in world.assignment(name).partitions.items():
            settled(world, name, index, replicas)


def settled(world: World, name: str, index: int, replicas: znodes.Replicas) -> None:
    what = f"{name}-{index}"
    assert not replicas.is_reassigned, what
    state = world.state(name, index)
    assert state.leader in state.isr, f"{what}: {state}"
    assert set(state.isr) == set(replicas.replicas), f"{what}: {state}, of {replicas}"
    for node in world.nodes.values():
        assert node.life is not None
        role = node.life.roles.get((name, index))
        if node.id in replicas.replicas:
            assert role is not None, f"{what} on {node.id}"
            assert (role.leader, role.leader_epoch) == (state.leader, state.leader_epoch), (
                f"{what} on {node.id}"
            )
        told = node.life.told[name, index]
        assert (told.leader, told.leader_epoch) == (state.leader, state.leader_epoch), f"{what} on {node.id}"


@pytest.fixture(autouse=True)
def quiet() -> object:
    """What brokers that crash say is of no interest."""
    set_logger_level("controller", "OFF")
    yield
    set_logger_level("controller", None)


@pytest.mark.parametrize("seeds", CHUNKS, ids=lambda seeds: f"{seeds[0]}-{seeds[-1]}")
def test_random_lives(seeds: list[int]) -> None:
    for seed in seeds:
        try:
            Run(seed).go()
        except Exception as error:
            error.add_note(f"SEED={seed} replays it")
            raise


# -- a controller that dies at each of its operations


Begin = Callable[[World], object]


def reassigned(world: World) -> None:
    world.ask(events.AlterReassignments, {("t", 0): [3, 1]})
    tend_for(world, 400)


def cancelled(world: World) -> None:
    world.nodes[3].crash()
    world.ask(events.AlterReassignments, {("t", 0): [3, 1]})
    world.run(100)
    if world.controller is not None:
        world.ask(events.AlterReassignments, {("t", 0): None})


def shut_down(world: World) -> None:
    life = world.nodes[1].life
    assert life is not None
    world.ask(events.ControlledShutdown, 1, life.broker_epoch)
    world.later(300, world.nodes[1].stop)


SCENARIOS: dict[str, Begin] = {
    "a topic is made": lambda world: world.create_topic("new", [[1, 2, 3], [2, 3, 1]]),
    "a topic grows": lambda world: world.grow("t", [2, 3, 1]),
    "a topic is deleted": lambda world: world.delete_topic("t"),
    "a broker dies": lambda world: world.nodes[1].stop(),
    "a broker comes again": lambda world: (world.nodes[1].stop(), world.nodes[1].start()),
    "a reassignment": reassigned,
    "a reassignment is cancelled": cancelled,
    "a controlled shutdown": shut_down,
    "an election": lambda world: world.ask(events.ElectLeaders, None, False),
    "another election of a controller": lambda world: world.zookeeper.do(zk.Delete(znodes.CONTROLLER)),
}


def tend_for(world: World, ms: int) -> None:
    for _ in range(ms // 50):
        for node in world.nodes.values():
            if node.life is not None:
                node.life.tend()
        world.run(50)


def cluster_of_four() -> tuple[World, Checks]:
    """Its controller is broker 0, which has no replicas; broker 1 leads what broker 2 is to lead."""
    world = World(BROKERS)
    checks = Checks(world)
    world.start(0)
    world.run(50)
    world.start(1, 2, 3)
    world.run(100)
    world.create_topic("t", [[1, 2], [2, 1]])
    world.run(100)
    world.nodes[2].stop()
    world.run(100)
    world.nodes[2].start()
    world.run(100)
    tend_for(world, 200)
    return world, checks


@pytest.mark.parametrize("is_done", [False, True], ids=["not done", "done"])
@pytest.mark.parametrize("name", SCENARIOS)
def test_every_crash_of_a_controller(name: str, is_done: bool) -> None:
    """At its first operation, at the second one, and so on, until the scenario is over before it comes to die."""
    for number in range(1, 1_000):
        world, checks = cluster_of_four()
        controller = world.nodes[0].life
        assert controller is world.controller and controller is not None
        die_at(controller, number, is_done=is_done)
        SCENARIOS[name](world)
        tend_for(world, 600)
        has_died = not controller.is_alive
        try:
            settle(world, checks)
        except AssertionError as failure:
            failure.add_note(f"it died at operation {number}")
            raise
        if not has_died:
            assert number > 1, "it asked ZooKeeper for nothing"
            return
    raise AssertionError("it never ends")
