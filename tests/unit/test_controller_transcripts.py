"""What Apache Kafka 3.9.2's controller did in scenarios a to h of three brokers, and ours in the same ones.

tests/golden/controller/*.txt are transcripts of recordings of real brokers, to be read from the top:

    # what the experimenter did      do ...      what happened to the controller: broker N came (start), its session ended
    write ...     what it wrote                  (end), a topic was written, a leader asked for an ISR (alter)
    0 -> 2 ...    what it sent, and to whom      unrecorded ...  what had been done before, of which nothing was kept

Each `do` is done to ours, one after the other. Compared are, in order, all writes to each znode and all requests to each
broker; the order among partitions and among brokers is whatever a hash table has, in Kafka. A broker that goes down may
take less than it was sent.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from pykafkad.pure.controller import events
from pykafkad.pure.controller.facts import Leadership, Partition
from pykafkad.zookeeper import client as zk
from pykafkad.zookeeper import znodes
from tests.controller_kit import World

GOLDEN = Path(__file__).parents[1] / "golden" / "controller"
SCENARIOS = sorted(path.stem for path in GOLDEN.glob("*.txt"))
QUIET_MS = 400
Lines = dict[str, list[str]]


class Replay:
    """One cluster that goes through all scenarios, as the real one did."""

    def __init__(self) -> None:
        self.world = World(3)

    def play(self, name: str) -> tuple[list[str], list[str]]:
        """What Kafka did, and what we do."""
        lines = (GOLDEN / f"{name}.txt").read_text().splitlines()
        expected: list[str] = []
        for number, line in enumerate(lines):
            if line.startswith("do end "):
                self.let_win(next(each[0] for each in lines[number:] if each[1:4] == " ->"))
            if line.startswith("unrecorded create "):
                self.create(*line.split()[2:])
                self.world.run(QUIET_MS)
                self.world.log.clear()
            elif line.startswith("do "):
                self.do(line[3:])
                self.world.run(QUIET_MS)
            if not line.startswith(("unrecorded", "#")):
                expected.append(line)
        actual, self.world.log = self.world.log, []
        return expected, actual

    def let_win(self, broker_id: str) -> None:
        """The others hear of the end later than the one that becomes, or stays, the controller."""
        for node in self.world.nodes.values():
            if node.life is not None and node.id != int(broker_id):
                node.life.zookeeper.disconnect()
                node.life.later(QUIET_MS // 4, node.life.zookeeper.reconnect)

    def do(self, what: str) -> None:
        verb, _, rest = what.partition(" ")
        if verb not in ("start", "end"):
            self.world.say(f"do {what}")
        getattr(self, verb)(*([rest] if verb == "alter" else rest.split()))

    def start(self, broker_id: str) -> None:
        self.world.say(f"do start {broker_id}")
        self.world.nodes[int(broker_id)].start()

    def end(self, broker_id: str) -> None:
        self.world.say(f"do end {broker_id}")
        self.world.nodes[int(broker_id)].stop()

    def create(self, name: str, *words: str) -> None:
        replicas = [list(map(int, word.partition(":")[2].split(","))) for word in words if ":" in word]
        self.world.create_topic(name, replicas, **dict(word.split("=") for word in words if "=" in word))

    def write(self, *words: str) -> None:
        """A topic, or the wish to delete one."""
        if words[0] == "create":
            self.world.zookeeper.do(zk.Create(words[1]))
            return
        name = words[0].rpartition("/")[2]
        if name not in self.world.zookeeper.nodes[znodes.TOPICS].children:
            self.create(name, *words[1:])
        else:
            known = len(self.world.assignment(name).partitions)
            self.world.grow(
                name, *(list(map(int, word.partition(":")[2].split(","))) for word in words[known + 1 :])
            )

    def alter(self, text: str) -> None:
        """AlterPartition: `1: t13-7 epoch 1 isr 1,0,2 version 1; ...`."""
        broker, _, changes = text.partition(": ")
        life = self.world.nodes[int(broker)].life
        assert life is not None
        wanted: dict[Partition, Leadership] = {}
        for change in changes.split("; "):
            name, _, epoch, _, isr, _, version = change.split()
            replicas = tuple(map(int, isr.split(",")))
            wanted[partition_of(name)] = Leadership(
                life.id, int(epoch), replicas, partition_epoch=int(version)
            )
        answers = self.world.ask(events.AlterPartition, life.id, life.broker_epoch, wanted, 107)
        self.world.run(QUIET_MS)
        assert all(isinstance(outcome, Leadership) for outcome in answers[0].values()), answers

    def shutdown(self, broker: str) -> None:
        life = self.world.nodes[int(broker)].life
        assert life is not None
        self.world.ask(events.ControlledShutdown, life.id, life.broker_epoch)

    def elect(self, *names: str) -> None:
        self.world.ask(events.ElectLeaders, [partition_of(name) for name in names], False)

    def reassign(self, name: str, target: str) -> None:
        replicas = None if target == "cancel" else list(map(int, target.split(",")))
        self.world.ask(events.AlterReassignments, {partition_of(name): replicas})


def partition_of(name: str) -> Partition:
    topic, _, index = name.rpartition("-")
    return topic, int(index)


def by_znode(lines: list[str]) -> Lines:
    """Topics, states and deletions."""
    found: Lines = {}
    for line in lines:
        if line.startswith("write "):
            for what in line[len("write ") :].split(" and "):
                name = what.removeprefix("create ").removeprefix("delete ").partition(" ")[0]
                if not name.startswith(("/brokers/ids/", znodes.CONTROLLER)):
                    found.setdefault(name, []).append(what)
    return found


def by_broker(lines: list[str]) -> dict[str, list[list[str]]]:
    """Of each of its lives."""
    found: dict[str, list[list[str]]] = {}
    for line in lines:
        words = line.split(" ", 4)
        if words[0] == "do" and words[1] == "end":
            found.setdefault(words[2], [[]]).append([])
        elif words[1] == "->":
            found.setdefault(words[2], [[]])[-1].append(line)
    return found


@pytest.fixture(scope="module")
def replays() -> dict[str, tuple[list[str], list[str]]]:
    replay = Replay()
    return {name: replay.play(name) for name in SCENARIOS}


@pytest.mark.parametrize("name", SCENARIOS)
def test_the_writes_are_kafkas(name: str, replays: dict[str, tuple[list[str], list[str]]]) -> None:
    expected, actual = replays[name]
    assert by_znode(actual) == by_znode(expected)


@pytest.mark.parametrize("name", SCENARIOS)
def test_each_broker_is_told_what_kafka_tells_it(
    name: str, replays: dict[str, tuple[list[str], list[str]]]
) -> None:
    expected, actual = map(by_broker, replays[name])
    assert actual.keys() == expected.keys()
    for broker, lives in expected.items():
        for number, life in enumerate(lives):
            ours = actual[broker][number]
            assert (ours if number == len(lives) - 1 else ours[: len(life)]) == life, f"to {broker}"
