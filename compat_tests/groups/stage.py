"""The setting of a scenario: a topic, a group, its members, and the stock tool that shows and changes them."""

from __future__ import annotations

import itertools
import time
import uuid
from collections.abc import Callable, Iterable

from confluent_kafka import KafkaError, Message, Producer
from confluent_kafka.admin import AdminClient, NewPartitions, NewTopic

from compat_tests.groups.flavours import Flavour
from compat_tests.groups.member import WAIT_SECONDS, Member, Partition
from compat_tests.tools.toolbox import Printed, Toolbox

PARTITIONS = 4
SESSION_MS = 4000  # also the brokers' group.consumer.session.timeout.ms
HEARTBEAT_MS = 500
LONG_CALM_SECONDS = 1.0  # of a group whose last rebalance may change nothing
LONG_SESSION_MS = 30_000
CALM_SECONDS = 0.3
POLL_SECONDS = 0.05


def until(what: str, predicate: Callable[[], object], shown: Callable[[], object] = lambda: "") -> None:
    deadline = time.monotonic() + WAIT_SECONDS
    while not predicate():
        assert time.monotonic() < deadline, f"not within {WAIT_SECONDS} s: {what}; {shown()}"
        time.sleep(POLL_SECONDS)


class Stage:
    def __init__(self, bootstrap: str, toolbox: Toolbox) -> None:
        self.bootstrap = bootstrap
        self.group = f"group-{uuid.uuid4().hex[:8]}"
        self._members: list[Member] = []
        self._toolbox = toolbox
        self._numbers = itertools.count()
        self._admin = AdminClient({"bootstrap.servers": bootstrap})
        self._producer = Producer({"bootstrap.servers": bootstrap, "linger.ms": 0})

    def new_topic(self, partitions: int = PARTITIONS, name: str = "") -> list[Partition]:
        name = name or f"topic-{uuid.uuid4().hex[:8]}"
        self._admin.create_topics([NewTopic(name, partitions, 1)])[name].result(WAIT_SECONDS)
        until("the new topic is known", lambda: name in self._admin.list_topics(timeout=WAIT_SECONDS).topics)
        return [Partition(name, number) for number in range(partitions)]

    def produce(self, partitions: Iterable[Partition], count: int = 1) -> dict[Partition, list[str]]:
        """Send `count` records to each partition, with unique values; returns when they are acknowledged."""
        failures: list[KafkaError] = []

        def on_delivery(error: KafkaError | None, _message: Message) -> None:
            if error is not None:
                failures.append(error)

        sent: dict[Partition, list[str]] = {}
        for partition in partitions:
            sent[partition] = [f"v{next(self._numbers)}" for _ in range(count)]
            for value in sent[partition]:
                self._producer.produce(
                    partition.topic, value.encode(), partition=partition.number, on_delivery=on_delivery
                )
        assert self._producer.flush(WAIT_SECONDS) == 0 and not failures, failures
        return sent

    def members(
        self, flavour: Flavour, topics: str, *instances: str, assignor: str = "", session_ms: int = SESSION_MS
    ) -> list[Member]:
        """Members that are ready and have not joined yet: one for each of `instances`, which may be empty."""
        made = []
        for instance in instances:
            name = f"{flavour.client}-{len(self._members)}"
            given = {
                "bootstrap": self.bootstrap,
                "group": self.group,
                "client_id": name,
                "topics": topics,
                "protocol": flavour.protocol,
                "assignor": assignor or flavour.assignor,
                "instance": instance,
                "session_ms": str(session_ms),
                "heartbeat_ms": str(HEARTBEAT_MS),
            }
            made.append(Member(name, flavour.command(), given))
            self._members.append(made[-1])
        for member in made:
            member.await_ready()
        return made

    def member(self, flavour: Flavour, topics: str, assignor: str = "") -> Member:
        (made,) = self.members(flavour, topics, "", assignor=assignor)
        return made

    def settled(
        self, members: Iterable[Member], partitions: Iterable[Partition], calm_seconds: float = CALM_SECONDS
    ) -> None:
        """Every partition is owned, by one member each, evenly, and for a moment there was no rebalance."""
        among, wanted = list(members), sorted(partitions)
        fewest = len(wanted) // len(among)

        def even() -> bool:
            held = sorted(partition for member in among for partition in member.owned)
            return held == wanted and all(fewest <= len(m.owned) <= fewest + 1 for m in among)

        def calm() -> bool:
            told = [len(member.rebalances) for member in among]
            if not even():
                return False
            time.sleep(calm_seconds)
            return [len(member.rebalances) for member in among] == told

        until(f"{len(among)} members settle on {len(wanted)} partitions", calm, lambda: among)

    def delivered(self, sent: dict[Partition, list[str]], members: Iterable[Member]) -> None:
        """Every record is read once, by the owner of its partition, in order."""
        among = list(members)
        values = {value for many in sent.values() for value in many}

        def read() -> list[list[str]]:
            return [[one.value for one in member.values(values)] for member in among]

        until(
            "everything sent is read", lambda: sum(map(len, read())) >= len(values), lambda: (among, read())
        )
        for member in among:
            for partition in {one.partition for one in member.values(values)}:
                got = [one.value for one in member.values(values) if one.partition == partition]
                assert partition in member.owned and got == sent[partition], (member, partition, got)
        assert sum(map(len, read())) == len(values), read()

    def tool(self, *arguments: str) -> Printed:
        """kafka-consumer-groups for this group."""
        return self._toolbox.run(
            "consumer-groups", "--bootstrap-server", self.bootstrap, "--group", self.group, *arguments
        )

    def described(self, *arguments: str) -> list[dict[str, str]]:
        """The table of `--describe`: a dictionary a row."""
        printed = self.tool("--describe", *arguments)
        lines = [line.split() for line in printed.out.splitlines() if line.strip()]
        heads = next((i for i, line in enumerate(lines) if line[0] == "GROUP"), None)
        assert heads is not None, printed
        return [dict(zip(lines[heads], line, strict=False)) for line in lines[heads + 1 :]]

    def state(self) -> str:
        """From `--describe --state`, whose column titles contain blanks; the state is the last column but one."""
        printed = self.tool("--describe", "--state")
        words = [line.split() for line in printed.out.splitlines() if line.startswith(self.group)]
        assert len(words) == 1, printed
        return words[0][-2]

    def add_partitions(self, topic: str, count: int) -> list[Partition]:
        """Add partitions to the topic, which has `count` from now on."""
        self._admin.create_partitions([NewPartitions(topic, count)])[topic].result(WAIT_SECONDS)
        return [Partition(topic, number) for number in range(count)]

    def group_type(self) -> str:
        printed = self._toolbox.run("groups", "--bootstrap-server", self.bootstrap, "--list")
        words = [line.split() for line in printed.out.splitlines() if line.startswith(self.group)]
        assert len(words) == 1, printed
        return words[0][1]

    def close(self) -> None:
        for member in self._members:
            member.close()
