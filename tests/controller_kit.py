"""A cluster in one process for tests of the controller: real controllers, a ZooKeeper in memory, brokers that are models.

World has the time, which moves from one thing under way to the next, and the network between brokers, which takes as
long as `delay` says and may lose what it carries. Node is a machine with its disk; Life is one run of a broker on it: it
registers, stands for election, obeys controllers as Kafka's brokers do, and as a leader asks for changes of the ISR.
`log` has what was written to ZooKeeper and what was sent, in order, as lines for people.
"""

from __future__ import annotations

import heapq
import random
from collections.abc import Callable
from itertools import count
from typing import Any

from pykafkad import errors, messages
from pykafkad.clock import ManualClock
from pykafkad.cluster.zookeeper.controller_messages import Forms
from pykafkad.cluster.zookeeper.controlling import Controlling
from pykafkad.pure.controller import events, intents
from pykafkad.pure.controller.facts import Leadership
from pykafkad.slices import Slices
from pykafkad.zookeeper import client as zk
from pykafkad.zookeeper import config_znodes, znodes
from tests.zookeeper_kit import MemoryClient, MemoryZooKeeper

SESSION_MS = 6_000
REQUEST_MS = 3_000  # then a request has failed
Partition = tuple[str, int]
CONFIG = {
    "unclean.leader.election.enable": False,
    "delete.topic.enable": True,
    "auto.leader.rebalance.enable": False,
    "leader.imbalance.check.interval.seconds": 300,
    "leader.imbalance.per.broker.percentage": 10,
}


class World:
    def __init__(self, brokers: int = 3, seed: int | None = None, **config: Any) -> None:
        """Without a seed nothing is lost, and everything takes a millisecond: the order is always the same."""
        self.random = random.Random(seed)
        self.is_rough = seed is not None
        self.config = {**CONFIG, **config}
        self.now_ms = 0
        self.log: list[str] = []
        self.failures: list[str] = []  # what controllers did not understand
        self.lost_per_mille = 0
        self.forgotten: set[tuple[int, bytes, int]] = (
            set()
        )  # logs that a reassignment left on brokers that were down
        self._under_way: list[tuple[int, int, Callable[[], object]]] = []
        self._numbers = count()
        self.zookeeper = MemoryZooKeeper(self.soon, lambda: self.now_ms)
        self.zookeeper.do(*(zk.Create(path) for path in PATHS))
        self._shown = len(self.zookeeper.transactions)
        self.checks: list[Callable[[zk.Write], None]] = []  # called for each write
        self.nodes = {broker_id: Node(self, broker_id) for broker_id in range(brokers)}

    # -- time

    def soon(self, what: Callable[[], object]) -> None:
        self.later(self.random.randrange(4) if self.is_rough else 1, what)

    def later(self, delay_ms: int, what: Callable[[], object]) -> None:
        heapq.heappush(self._under_way, (self.now_ms + delay_ms, next(self._numbers), what))

    def step(self) -> None:
        at_ms, _, what = heapq.heappop(self._under_way)
        self.now_ms = max(self.now_ms, at_ms)
        what()
        self.look()

    def run(self, ms: int) -> None:
        end_ms = self.now_ms + ms
        while self._under_way and self._under_way[0][0] <= end_ms:
            self.step()
        self.now_ms = end_ms

    def look(self) -> None:
        """What was written since the last look is checked, and logged."""
        transactions = self.zookeeper.transactions
        for transaction in transactions[self._shown :]:
            for op in transaction.ops:
                for check in self.checks:
                    check(op)
            self.say(("do " if transaction.session_id == 0 else "") + written(transaction.ops))
        self._shown = len(transactions)

    def say(self, text: str) -> None:
        if text.strip() not in ("", "do"):
            self.log.append(text)

    @property
    def is_lost(self) -> bool:
        return self.random.randrange(1_000) < self.lost_per_mille

    def delay(self) -> int:
        return self.random.randrange(1, 30) if self.is_rough else 1

    # -- what somebody does

    def start(self, *broker_ids: int) -> None:
        for broker_id in broker_ids:
            self.nodes[broker_id].start()

    def state(self, name: str, index: int = 0) -> znodes.PartitionState:
        return znodes.read_state(self.zookeeper.data(znodes.state(name, index)))

    def assignment(self, name: str) -> znodes.Assignment:
        return znodes.read_assignment(self.zookeeper.data(znodes.topic(name)))

    def create_topic(self, name: str, partitions: list[list[int]], **configs: str) -> None:
        """As whoever serves CreateTopics writes it."""
        topic_id = self.random.randbytes(16)
        replicas = {index: znodes.Replicas(each) for index, each in enumerate(partitions)}
        node = znodes.write_assignment(znodes.Assignment(topic_id, replicas))
        self.zookeeper.do(
            zk.Create(config_znodes.config("topics", name), config_znodes.write_config(configs)),
            zk.Create(znodes.topic(name), node),
        )
        self.look()

    def grow(self, name: str, *added: list[int]) -> None:
        path = znodes.topic(name)
        before = self.assignment(name)
        partitions = dict(before.partitions)
        for replicas in added:
            partitions[len(partitions)] = znodes.Replicas(replicas)
        after = znodes.write_assignment(before._replace(partitions=partitions))
        self.zookeeper.do(zk.SetData(path, after))
        self.look()

    def delete_topic(self, name: str) -> None:
        self.zookeeper.do(zk.Create(znodes.delete_topic(name)))
        self.look()

    @property
    def controller(self) -> Life | None:
        """Whoever believes to be it, and is the one of ZooKeeper."""
        node = self.zookeeper.nodes.get(znodes.CONTROLLER)
        if node is None:
            return None
        life = self.nodes[znodes.read_controller(node.data).broker_id].life
        return life if life is not None and life.controlling.is_active else None

    def ask(self, make: Callable[..., events.Event], *facts: Any) -> list[Any]:
        """Of the controller; the answer will be in the list."""
        answers: list[Any] = []
        assert self.controller is not None
        self.controller.controlling.ask(make, answers.append, *facts)
        return answers


PATHS = sorted({parent for path in znodes.PERSISTENT for parent in znodes.parents(path)})


class Node:
    def __init__(self, world: World, broker_id: int) -> None:
        self.world, self.id = world, broker_id
        self.disk: dict[Partition, bytes] = {}  # the logs there are, by the topic's id
        self.bad_logs: set[Partition] = set()  # in a log directory that failed
        self.life: Life | None = None

    def start(self) -> None:
        assert self.life is None
        self.life = Life(self)

    def crash(self) -> None:
        """Nothing of it goes on; ZooKeeper ends the session later."""
        life, self.life = self.life, None
        if life is not None:
            life.end()
            self.world.later(SESSION_MS, lambda: self.world.zookeeper.end_session(life.session_id))

    def stop(self) -> None:
        """As a broker stops: the session ends at once."""
        life, self.life = self.life, None
        if life is not None:
            life.end()
            self.world.zookeeper.end_session(life.session_id)


class Role:
    """What a broker is for a partition."""

    def __init__(self, state: Any, topic_id: bytes) -> None:
        self.leader, self.leader_epoch = state.leader, state.leader_epoch
        self.isr, self.partition_epoch = list(state.isr), state.partition_epoch
        self.replicas, self.topic_id = list(state.replicas), topic_id
        self.is_asking = False


class Life:
    """One run of a broker."""

    def __init__(self, node: Node) -> None:
        self.node, self.world, self.id = node, node.world, node.id
        self.is_alive = True
        self.broker_epoch = -1
        self.session_id = 0
        self.controller_id = self.controller_epoch = -1
        self.live: set[int] = set()
        self.told: dict[Partition, Any] = {}  # by UpdateMetadata
        self.roles: dict[Partition, Role] = {}
        self.zookeeper: MemoryClient = self.world.zookeeper.client(self.soon)
        self.controlling = Watched(
            self.world,
            self.id,
            self.zookeeper,
            self.world.config,
            Forms(),
            lambda endpoint_of: Wires(self),
            self.later,
            Slices(self.soon, ManualClock()).run,
            lambda: self.world.now_ms,
        )
        self.zookeeper.on_state(self._on_state)
        self.zookeeper.start()

    def soon(self, what: Callable[..., object], *args: Any) -> None:
        self.world.soon(lambda: self.is_alive and what(*args))

    def later(self, delay_ms: int, what: Callable[[], object]) -> None:
        self.world.later(delay_ms, lambda: self.is_alive and what())

    def end(self) -> None:
        self.is_alive = False
        self.zookeeper.is_connected = False

    # -- the session

    def _on_state(self, state: zk.State) -> None:
        if state is zk.State.NEW_SESSION:
            self.session_id = self.zookeeper.session_id
            self.register()
        elif state is zk.State.EXPIRED:
            self.broker_epoch = -1
            self.controlling.resign()

    def register(self) -> None:
        endpoint = znodes.Endpoint("PLAINTEXT", f"host{self.id}", 9092, "PLAINTEXT")
        data = znodes.write_registration(znodes.Registration([endpoint], rack=f"rack-{self.id}"))
        session_id = self.zookeeper.session_id

        def done(results: list[zk.Result]) -> None:
            if session_id != self.zookeeper.session_id:
                return
            if results[0].error == zk.NODE_EXISTS and results[1].owner != session_id:
                self.later(500, self.register)  # of an older life
            elif results[1].error == zk.OK:
                self.broker_epoch = results[1].czxid
                self.controlling.begin()

        create = zk.Create(znodes.broker(self.id), data, ephemeral=True)
        self.zookeeper.submit([create, zk.Exists(znodes.broker(self.id))], done)

    # -- what controllers ask

    def obey(self, request: Any) -> Any:
        name = type(request).__name__.removesuffix("Request")
        answer = getattr(messages, f"{name}Response")()
        answer.error_code = self._fenced(request)
        if answer.error_code:
            return answer
        self.controller_epoch = request.controller_epoch
        {"LeaderAndIsr": self._lead_and_follow, "UpdateMetadata": self._update, "StopReplica": self._stop}[
            name
        ](request, answer)
        return answer

    def _fenced(self, request: Any) -> int:
        if request.broker_epoch != -1 and request.broker_epoch < self.broker_epoch:
            return errors.STALE_BROKER_EPOCH
        return (
            errors.STALE_CONTROLLER_EPOCH if request.controller_epoch < self.controller_epoch else errors.NONE
        )

    def _lead_and_follow(self, request: Any, answer: Any) -> None:
        for topic in request.topic_states:
            outcomes = messages.LeaderAndIsrResponse.LeaderAndIsrTopicError(
                topic_id=topic.topic_id, partition_errors=[]
            )
            for state in topic.partition_states:
                code = self._take_role((topic.topic_name, state.partition_index), topic.topic_id, state)
                outcomes.partition_errors.append(
                    messages.LeaderAndIsrResponse.LeaderAndIsrPartitionError(
                        partition_index=state.partition_index, error_code=code
                    )
                )
            answer.topics.append(outcomes)

    def _take_role(self, partition: Partition, topic_id: bytes, state: Any) -> int:
        if self.node.disk.get(partition, topic_id) != topic_id:
            if (self.id, self.node.disk[partition], partition[1]) not in self.world.forgotten:
                return errors.INCONSISTENT_TOPIC_ID
            del self.node.disk[partition]  # as somebody has to do by hand in Kafka
            self.roles.pop(partition, None)
        role = self.roles.get(partition)
        if role is not None and state.leader_epoch <= role.leader_epoch:
            return errors.STALE_CONTROLLER_EPOCH
        if self.id not in state.replicas:
            return errors.UNKNOWN_TOPIC_OR_PARTITION
        if partition in self.node.bad_logs:
            return errors.KAFKA_STORAGE_ERROR
        self.node.disk[partition] = topic_id
        if state.leader == self.id or state.leader in self.live:
            self.roles[partition] = Role(state, topic_id)
        return errors.NONE

    def _update(self, request: Any, answer: Any) -> None:
        self.controller_id = request.controller_id
        self.live = {broker.id for broker in request.live_brokers}
        for topic in request.topic_states:
            for state in topic.partition_states:
                self.told[topic.topic_name, state.partition_index] = state

    def _stop(self, request: Any, answer: Any) -> None:
        for topic in request.topic_states:
            for state in topic.partition_states:
                partition = topic.topic_name, state.partition_index
                role = self.roles.get(partition)
                code = errors.NONE
                if role is not None and -1 < state.leader_epoch < role.leader_epoch:
                    code = errors.FENCED_LEADER_EPOCH
                else:
                    self.roles.pop(partition, None)
                    if state.delete_partition:
                        self.node.disk.pop(partition, None)
                answer.partition_errors.append(
                    messages.StopReplicaResponse.StopReplicaPartitionError(
                        topic_name=topic.topic_name, partition_index=state.partition_index, error_code=code
                    )
                )

    # -- what a leader asks

    def in_sync(self, partition: Partition, role: Role) -> list[int]:
        """Itself and those who follow it, old ones first."""
        nodes, result = self.world.nodes, list(role.isr)
        for each in role.replicas:
            life = nodes[each].life
            other = None if life is None else life.roles.get(partition)
            is_near = (
                other is not None and other.leader_epoch == role.leader_epoch and other.leader == self.id
            )
            if each != self.id and each in result and not is_near:
                result.remove(each)
            elif each not in result and is_near:
                result.append(each)
        return result

    def tend(self) -> None:
        """Asks for the ISRs that should be, as leaders do from time to time."""
        for partition, role in list(self.roles.items()):
            wanted = self.in_sync(partition, role) if role.leader == self.id else role.isr
            if wanted != role.isr and not role.is_asking:
                self.ask_isr(partition, wanted)

    def ask_isr(self, partition: Partition, isr: list[int]) -> None:
        """AlterPartition, again and again until there is an answer."""
        role = self.roles[partition]
        role.is_asking = True
        change = Leadership(self.id, role.leader_epoch, tuple(isr), partition_epoch=role.partition_epoch)
        if self.controller_id == -1 or self.broker_epoch == -1:
            self.later(100, lambda: self.ask_again(partition, role, isr))
            return

        def answered(answer: Any) -> None:
            self.world.say(f"{self.id}: asked for {partition} isr {isr}, got {answer}")
            if self.roles.get(partition) is not role:
                return
            outcome = answer if isinstance(answer, int | OSError) else answer[partition]
            if isinstance(outcome, Leadership):
                role.is_asking = False
                if (
                    outcome.leader_epoch == role.leader_epoch
                    and outcome.partition_epoch >= role.partition_epoch
                ):
                    role.isr, role.partition_epoch = list(outcome.isr), outcome.partition_epoch
            elif isinstance(outcome, OSError) or outcome in (
                errors.NOT_CONTROLLER,
                errors.STALE_BROKER_EPOCH,
            ):
                self.later(50, lambda: self.ask_again(partition, role, isr))
            elif outcome == errors.INELIGIBLE_REPLICA:
                role.is_asking = False

        self.call(
            self.controller_id,
            lambda life, done: life.controlling.ask(
                events.AlterPartition,
                done,
                self.id,
                self.broker_epoch,
                {partition: change},
                errors.INELIGIBLE_REPLICA,
            ),
            answered,
        )

    def ask_again(self, partition: Partition, role: Role, isr: list[int]) -> None:
        if self.roles.get(partition) is role:
            self.ask_isr(partition, isr)

    # -- the network

    def call(
        self,
        broker_id: int,
        what: Callable[[Life, Callable[[Any], None]], None],
        done: Callable[[Any], object],
    ) -> None:
        """`what` is done by that broker; `done` is given its answer, or an OSError."""
        world = self.world
        life = world.nodes[broker_id].life
        is_lost, answer_is_lost = world.is_lost, world.is_lost
        ended: list[Any] = []

        def end(result: Any) -> None:
            if not ended:
                ended.append(result)
                done(result)

        def fail() -> None:
            self.later(world.delay(), lambda: end(ConnectionError("lost")))

        def arrive() -> None:
            if life is None or not life.is_alive or is_lost:
                fail()
            else:
                what(life, answer)

        def answer(result: Any) -> None:
            if answer_is_lost:
                fail()
            else:
                self.later(world.delay(), lambda: end(result))

        self.later(REQUEST_MS, lambda: end(ConnectionError("no answer")))
        world.later(world.delay(), arrive)


class Watched(Controlling):
    """Tells what it gave up its office for."""

    def __init__(self, world: World, *args: Any) -> None:
        self._world = world
        super().__init__(*args)

    def _do(self, intent: Any) -> None:
        if isinstance(intent, intents.Note):
            self._world.say(f"{self.machine._node_id}: {intent.text}")
            if intent.text.startswith("the controller gives up"):
                self._world.failures.append(intent.text)
        super()._do(intent)


class Wires:
    """The controller's connections (net/peers.py)."""

    def __init__(self, life: Life) -> None:
        self._life = life

    def to(self, broker_id: int, purpose: Any) -> Wire:
        return Wire(self._life, broker_id)

    def drop(self, broker_id: int) -> None: ...
    def close(self) -> None: ...


class Wire:
    def __init__(self, life: Life, broker_id: int) -> None:
        self._life, self._broker_id = life, broker_id

    def ask(self, request: Any, version: int, done: Callable[[Any], object], **_: Any) -> None:
        life, broker_id = self._life, self._broker_id
        life.world.say(f"{life.id} -> {broker_id} {told(request)}")

        def obey(other: Life, answer: Callable[[Any], None]) -> None:
            answer(other.obey(request))

        life.call(broker_id, obey, done)

    def close(self) -> None: ...


# -- for people


def written(ops: Any) -> str:
    """The writes of one transaction; checks and what is not the controller's business are left out."""
    lines = [each for each in map(write_text, ops) if each]
    return "write " + " and ".join(lines) if lines else ""


def write_text(op: zk.Write) -> str:
    path = op.path
    if isinstance(op, zk.Check) or path.startswith("/config"):
        return ""
    if isinstance(op, zk.Delete):
        return f"delete {path}"
    data = op.data or b""
    if data and data[:1] != b"{":
        return path  # not what Kafka writes there
    if path.endswith("/state"):
        state = znodes.read_state(data)
        recovering = " recovering" if state.leader_recovery_state else ""
        name, _, index = path[len(znodes.TOPICS) + 1 : -len("/state")].partition("/partitions/")
        isr = ",".join(map(str, state.isr))
        return f"{name}-{index} leader {state.leader} epoch {state.leader_epoch} isr {isr}{recovering}"
    if path.startswith(f"{znodes.TOPICS}/") and "/partitions" not in path:
        node = znodes.read_assignment(data)
        parts = [f"{index}:{assigned(each)}" for index, each in node.partitions.items()]
        return f"{path} {' '.join(parts)}"
    return ("" if isinstance(op, zk.SetData) else "create ") + path


def assigned(replicas: Any) -> str:
    text = ",".join(map(str, replicas.replicas))
    for sign, some in (("+", replicas.adding), ("-", replicas.removing)):
        text += "".join(f"{sign}{each}" for each in some)
    return text


def told(request: Any) -> str:
    kind = type(request).__name__.removesuffix("Request")
    parts = sorted(
        f"{topic.topic_name}-{state.partition_index} {TELLERS[kind](state)}"
        for topic in request.topic_states
        for state in topic.partition_states
    )
    if kind == "UpdateMetadata":
        parts.insert(0, f"brokers {ids(sorted(each.id for each in request.live_brokers))}")
    elif kind == "LeaderAndIsr":
        parts.insert(0, f"leaders {ids(sorted(each.broker_id for each in request.live_leaders))}")
    return f"{kind} {'; '.join(parts)}"


def tell_order(state: Any) -> str:
    replicas = znodes.Replicas(state.replicas, state.adding_replicas, state.removing_replicas)
    text = f"{tell_leader(state)} version {state.partition_epoch} of {assigned(replicas)}"
    return text + " new" * state.is_new + " recovering" * bool(state.leader_recovery_state)


def tell_news(state: Any) -> str:
    text = f"{tell_leader(state)} version {state.zk_version} of {ids(state.replicas)}"
    return f"{text} offline {ids(state.offline_replicas)}" if state.offline_replicas else text


def tell_leader(state: Any) -> str:
    return f"leader {state.leader} epoch {state.leader_epoch} isr {ids(state.isr)}"


def tell_stop(state: Any) -> str:
    return f"epoch {state.leader_epoch}{' delete' * state.delete_partition}"


def ids(some: Any) -> str:
    return ",".join(map(str, some))


TELLERS = {"LeaderAndIsr": tell_order, "UpdateMetadata": tell_news, "StopReplica": tell_stop}
