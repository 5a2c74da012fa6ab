"""The copy test: all of a topic is copied in transactions while the broker is killed every few seconds and copiers crash;
each partition of the copy is exactly its source, in its order.
"""

from __future__ import annotations

import random
import time
from dataclasses import dataclass, field
from pathlib import Path

from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition

from compat_tests.history.brokers import Victim
from compat_tests.history.consuming import consumer_config, read_all
from compat_tests.history.copier import SINK, SOURCE, changed
from compat_tests.history.crowd import Crowd, Part
from compat_tests.history.events import COMMITTED
from compat_tests.history.librdkafka import basis
from compat_tests.history.recorder import Recorder
from compat_tests.history.workload import create_topics, read

PARTITIONS, COPIERS = 4, 2
GROUP = "copiers"
HELD_BACK = 0.2  # of the records are sent after the last kill, so that none of them comes when all is done
DEADLINE_S = 600.0
TEND_S = 0.2
ASK_S = 5.0


@dataclass(frozen=True)
class Task:
    """The kills are every_s seconds apart, about. `pause_s`: the most that a transaction stays open for nothing."""

    count: int
    kills: int
    every_s: float = 4.0
    pause_s: float = 1.5
    least: int = 100
    most: int = 1000


@dataclass
class Copied:
    """By partition."""

    wanted: dict[int, list[str]] = field(default_factory=dict)
    found: dict[int, list[str]] = field(default_factory=dict)
    crashed: int = 0
    gave_up: int = 0
    seconds: float = 0.0

    def text(self) -> str:
        lines = [f"{self.crashed} copiers crashed, {self.gave_up} gave up, {self.seconds:.1f} s"]
        for partition, wanted in self.wanted.items():
            found = self.found.get(partition, [])
            missing, surplus = len(set(wanted) - set(found)), len(found) - len(set(found))
            lines.append(
                f"partition {partition}: {len(found)} of {len(wanted)}, {missing} missing, {surplus} doubled, "
                f"equal up to {_agreed(wanted, found)}"
            )
        return "\n".join(lines)


def _agreed(wanted: list[str], found: list[str]) -> int:
    pairs = enumerate(zip(wanted, found, strict=False))
    return next((number for number, (one, other) in pairs if one != other), min(len(wanted), len(found)))


def copy(victim: Victim, directory: Path, seed: int, task: Task) -> Copied:
    chance = random.Random(f"{seed} copy")
    bootstrap = victim.bootstrap_servers
    create_topics(bootstrap, {SOURCE: PARTITIONS, SINK: PARTITIONS})
    early = task.count - int(task.count * HELD_BACK) if task.kills else task.count
    _fill(bootstrap, range(early))
    began = time.monotonic()
    crowd = Crowd(_copiers(bootstrap, task), directory, seed)
    try:
        for _ in range(task.kills):
            _wait(crowd, chance.uniform(0.5, 1) * task.every_s)
            victim.kill()
            victim.start()
            _wait(crowd, chance.uniform(0, 0.5) * task.every_s)
            crowd.crash(chance)
        _fill(bootstrap, range(early, task.count))
        _wait_until_all_is_copied(crowd, bootstrap)
    finally:
        crowd.end()
    result = Copied(crashed=crowd.crashed, gave_up=crowd.gave_up, seconds=time.monotonic() - began)
    for number in range(task.count):
        result.wanted.setdefault(number % PARTITIONS, []).append(changed(_value(number)).decode())
    result.found = _found(bootstrap, directory)
    return result


def _copiers(bootstrap: str, task: Task) -> list[Part]:
    given = {
        "bootstrap": bootstrap,
        "group": GROUP,
        "least": str(task.least),
        "most": str(task.most),
        "pause": str(task.pause_s),
    }
    names = [f"copier-{number}" for number in range(COPIERS)]
    return [Part("copier", "compat_tests.history.copier", {**given, "name": name}) for name in names]


def _value(number: int) -> bytes:
    return b"%d" % number


def _fill(bootstrap: str, numbers: range) -> None:
    producer = Producer({**basis(bootstrap), "enable.idempotence": True, "linger.ms": 5})
    failures: list[object] = []
    for number in numbers:
        producer.produce(
            SOURCE,
            _value(number),
            partition=number % PARTITIONS,
            on_delivery=lambda error, _message: failures.append(error) if error is not None else None,
        )
        producer.poll(0)
    assert producer.flush(DEADLINE_S) == 0 and not failures, failures[:3]


def _wait(crowd: Crowd, seconds: float) -> None:
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        crowd.tend()
        time.sleep(TEND_S)


def _wait_until_all_is_copied(crowd: Crowd, bootstrap: str) -> None:
    """The group has committed the ends of all partitions."""
    consumer = Consumer({**consumer_config(bootstrap, COMMITTED), "group.id": GROUP})
    places = [TopicPartition(SOURCE, number) for number in range(PARTITIONS)]
    ends = [consumer.get_watermark_offsets(place, timeout=DEADLINE_S)[1] for place in places]
    deadline = time.monotonic() + DEADLINE_S
    reached: list[int] = []
    while reached != ends:
        assert time.monotonic() < deadline, f"copied up to {reached} of {ends}\n{crowd.said()}"
        _wait(crowd, TEND_S)
        try:
            reached = [place.offset for place in consumer.committed(places, timeout=ASK_S)]
        except KafkaException:  # asked again
            continue
    consumer.close()


def _found(bootstrap: str, directory: Path) -> dict[int, list[str]]:
    keys = [f"{SINK}:{number}" for number in range(PARTITIONS)]
    with Recorder("copy", str(directory / "copy.jsonl")) as recorder:
        read_all(COMMITTED, bootstrap, keys, recorder)
    found: dict[int, list[str]] = {}
    for event in read(directory):
        for key, records in event.records.items():
            found.setdefault(int(key.rpartition(":")[2]), []).extend(value for _, value in records)
    return found
