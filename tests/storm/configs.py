"""Each config that can be altered while the broker runs, at each extreme: set, and then the broker must serve everybody
as before and its timers must expire; deleted, and again. Whether the value should be allowed is not checked here.
"""

from __future__ import annotations

import random
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass

from pykafkad import messages
from pykafkad.config_def import Key
from pykafkad.hot import records
from pykafkad.testing import Client
from tests.storm import values
from tests.storm.campaign import say
from tests.storm.judge import CLOSES, LATE, NEIGHBOUR, Fault, judge
from tests.storm.sane import BROKER, GROUP, KEYS, METRICS, SHUTTING, TOPIC
from tests.storm.world import World

SET, DELETE = 0, 1
WAIT_MS = 20  # of the fetch that tells whether timers go
TIMER_SECONDS = 5.0
BUSY_SHARE, BUSY_SECONDS, LOOK_SECONDS = 0.6, 0.5, 0.02
NAMED = {
    "broker": (BROKER, ("1",)),
    "brokers": (BROKER, ("",)),
    "topic": (TOPIC, ("storm-2", "storm-6")),
    "group": (GROUP, ("group-1",)),
    "metrics": (METRICS, ("metrics-1",)),
}
SHOWN = 60
BATCH = records.build([(b"k", b"v" * 100, [], 1_795_000_000_000)])


@dataclass(frozen=True)
class Setting:
    """One value of one key of one resource; `index` selects it on a command line."""

    kind: str
    name: str
    key: str
    index: int
    value: str

    def __str__(self) -> str:
        return f"{self.kind} {self.key} #{self.index}"

    @property
    def shown(self) -> str:
        text = self.value if len(self.value) <= SHOWN else f"{self.value[:SHOWN]}… of {len(self.value)}"
        return f"{self.name or 'all'}: {self.key}={text!r}"


def all_of_them() -> Iterator[Setting]:
    for kind, (resource_type, names) in NAMED.items():
        for key in KEYS[resource_type].values():
            for index, value in enumerate(values_of(key)):
                for name in names:
                    yield Setting(kind, name, key.name, index, value)


def values_of(key: Key) -> list[str]:
    return [value for value in values.config_values(key) if values.NO_TEXT not in value]


def chosen(match: str | None, seed: int, count: int | None) -> list[Setting]:
    every = list(all_of_them())
    if match is not None:
        return [each for each in every if all(word in str(each).split() for word in match.split())]
    if count is None or count >= len(every):
        return every
    return random.Random(seed).sample(every, count)


class Configs:
    def __init__(self) -> None:
        self.faults: list[tuple[Setting, Fault]] = []
        self.accepted = 0
        self.world = World()
        self.waiting = Client(*self.world.address, client_id="timers")

    def run(self, wanted: Sequence[Setting]) -> list[tuple[Setting, Fault]]:
        began = time.monotonic()
        for setting in wanted:
            try:
                self.one(setting)
            except (OSError, AssertionError, ValueError) as problem:
                if setting.key not in SHUTTING:
                    self.tell(setting, Fault(CLOSES, setting.key, f"{type(problem).__name__}: {problem}"))
                self.anew()
        self.close()
        say(
            f"configs: {len(wanted)} values, {self.accepted} of them allowed, {len(self.faults)} faults, "
            f"{time.monotonic() - began:.0f} s"
        )
        return self.faults

    def one(self, setting: Setting) -> None:
        if self.alter(setting, SET):
            self.accepted += 1
            self.look(setting)
            if self.alter(setting, DELETE):
                self.look(setting, deleted=True)
            else:
                self.anew()  # Kafka also refuses some: cluster-wide min.insync.replicas, threads that more than double
        elif self.accepted % 20 == 0:
            self.look(setting)

    def alter(self, setting: Setting, operation: int) -> bool:
        """Whether it is allowed."""
        request = messages.IncrementalAlterConfigsRequest
        value = setting.value if operation == SET else None
        change = request.AlterableConfig(name=setting.key, config_operation=operation, value=value)
        resource_type = NAMED[setting.kind][0]
        resource = request.AlterConfigsResource(
            resource_type=resource_type, resource_name=setting.name, configs=[change]
        )
        return bool(self.world.call(request(resources=[resource]), 1).responses[0].error_code == 0)

    # -- whether all is well

    def look(self, setting: Setting, *, deleted: bool = False) -> None:
        world = self.world
        faults = []
        if world.lives:
            if setting.kind == "topic":
                self.use(setting.name)
            if (late := self.timers_are_late()) is not None:
                faults.append(Fault(LATE, "timers", late))
            if (share := self.busy()) > BUSY_SHARE:
                faults.append(
                    Fault("busy", setting.key, f"it takes {share:.0%} of a processor with nothing to do")
                )
            if deleted and setting.key in SHUTTING:
                Client(*world.address).close()
        assert world.neighbour is not None
        report = world.neighbour.report()
        if setting.key in SHUTTING:
            report.faults.clear()  # they may close connections
        elif not report.count and not report.faults and world.neighbour.report().count == 0:
            faults.append(Fault(NEIGHBOUR, setting.key, "the neighbour gets no answers"))
        for fault in [*faults, *judge(world, [], report)]:
            self.tell(setting, fault, "after it was deleted" if deleted else "")
        if not world.lives or any(fault.kind == LATE for fault in faults):
            self.anew()

    def timers_are_late(self) -> str | None:
        """A fetch that finds nothing is answered when its time is up, which takes a timer of the loop."""
        request = messages.FetchRequest(max_wait_ms=WAIT_MS, min_bytes=1, max_bytes=1000, topics=[])
        began = time.monotonic()
        for last in (False, True):
            try:
                self.waiting._socket.settimeout(TIMER_SECONDS)
                self.waiting.call(request, 6)
                break
            except TimeoutError:
                return f"a fetch of {WAIT_MS} ms was not answered in {TIMER_SECONDS:.0f} s"
            except OSError:
                if last:
                    raise
                self.waiting.close()
                self.waiting = Client(*self.world.address, client_id="timers")
        took = time.monotonic() - began
        return None if took < TIMER_SECONDS else f"a fetch of {WAIT_MS} ms took {took:.1f} s"

    def busy(self) -> float:
        """How much of a processor the broker uses, besides for the neighbour; measured longer if that is much."""
        share = self.share(LOOK_SECONDS)
        return share if share <= BUSY_SHARE else self.share(BUSY_SECONDS)

    def share(self, seconds: float) -> float:
        ran, began = self.world.ran_ms(), time.monotonic()
        time.sleep(seconds)
        return (self.world.ran_ms() - ran) / 1000 / (time.monotonic() - began)

    def use(self, topic: str) -> None:
        """Write to the topic with this config, and read from it; refusals are fine."""
        request = messages.ProduceRequest
        row = request.PartitionProduceData(index=0, records=BATCH)
        self.world.call(
            request(
                acks=1,
                timeout_ms=1000,
                topic_data=[request.TopicProduceData(name=topic, partition_data=[row])],
            ),
            9,
        )
        fetch = messages.FetchRequest
        part = fetch.FetchPartition(partition=0, fetch_offset=0, partition_max_bytes=10_000)
        self.world.call(
            fetch(max_wait_ms=0, max_bytes=10_000, topics=[fetch.FetchTopic(topic=topic, partitions=[part])]),
            11,
        )

    # -- ends

    def tell(self, setting: Setting, fault: Fault, when: str = "") -> None:
        self.faults.append((setting, fault))
        say(
            f"FAULT: {fault}\n  {setting.shown} {when}\n  again: python -m tests.storm configs --match '{setting}'"
        )

    def anew(self) -> None:
        self.close()
        self.world = World()
        self.waiting = Client(*self.world.address, client_id="timers")

    def close(self) -> None:
        with suppress(OSError):
            self.waiting.close()
        self.world.close()
