"""Makes a history: a crowd of clients, a broker, and a nemesis for both; then everything is read, and checked.

What is done follows from the seed, when it hits does not. The directory keeps a file for each client.
"""

from __future__ import annotations

import random
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic

from compat_tests.history.anomalies import Anomaly
from compat_tests.history.brokers import Victim
from compat_tests.history.checker import check, faults, minimal
from compat_tests.history.consuming import NotAll, read_all
from compat_tests.history.crowd import Crowd, Part
from compat_tests.history.events import COMMITTED, UNCOMMITTED, Event, merged
from compat_tests.history.librdkafka import basis
from compat_tests.history.producing import patiently
from compat_tests.history.recorder import Recorder

TOPICS = {"one": 1, "three": 3, "sink": 2}
KEYS = {topic: [f"{topic}:{number}" for number in range(count)] for topic, count in TOPICS.items()}
ALL = [key for keys in KEYS.values() for key in keys]
TRANSACTIONAL_IDS = ["transactions-1", "transform-1", "transform-2", "raw-1", "raw-2"]  # of these roles
CLIENT = "compat_tests.history.client"
CREATE_S = 60.0
TEND_S = 0.2
SHOWN, SHOWN_EVENTS = 5, 40
MOST_DOWN_S, MOST_PAUSE_S = 1.0, 4.0
ACTIONS = ("kill", "pause", "clock", "crash")
WEIGHTS = (3, 2, 2, 3)


def parts(bootstrap: str, transactions: bool = True) -> list[Part]:
    """Who works."""
    sources = KEYS["one"] + KEYS["three"]
    found = [
        ("plain", "", sources),
        ("idempotent", "", sources),
        ("committed", "", ALL),
        ("uncommitted", "", ALL),
        ("member", "group", ALL),
        ("member", "group", ALL),
    ]
    if transactions:
        found += [(name.rpartition("-")[0], name, ALL) for name in TRANSACTIONAL_IDS]
    return [
        Part(role, CLIENT, {"role": role, "name": name, "keys": ",".join(keys), "bootstrap": bootstrap})
        for role, name, keys in found
    ]


@dataclass
class Report:
    seed: int
    events: list[Event]
    anomalies: list[Anomaly]
    problems: list[str]  # besides anomalies
    done: Counter[str] = field(default_factory=Counter)

    @property
    def faults(self) -> list[Anomaly]:
        return faults(self.anomalies)

    def text(self) -> str:
        kinds = Counter(anomaly.kind for anomaly in self.anomalies)
        lines = [f"SEED={self.seed}: {len(self.events)} events, {dict(self.done)}, anomalies {dict(kinds)}"]
        for problem in self.problems:
            lines.append(f"problem: {problem}")
        for anomaly in self.faults[:SHOWN]:
            lines.append(f"{anomaly.kind}: {anomaly.what}")
            lines += [f"    {event.line()}" for event in minimal(self.events, anomaly)[:SHOWN_EVENTS]]
        return "\n".join(lines)


class Nemesis:
    """One action after the other. It ends with the broker running and its clock right."""

    def __init__(self, victim: Victim, crowd: Crowd, seed: int, wait_s: float) -> None:
        self._victim, self._crowd = victim, crowd
        self._chance = random.Random(f"{seed} nemesis")
        self._wait_s = wait_s
        self.done: Counter[str] = Counter()

    def run(self, seconds: float) -> None:
        deadline = time.monotonic() + seconds
        todo = list(ACTIONS)  # each at least once
        while time.monotonic() < deadline:
            self._wait(self._chance.uniform(0.3, 1) * self._wait_s)
            (action,) = [todo.pop(0)] if todo else self._chance.choices(ACTIONS, WEIGHTS)
            getattr(self, f"_{action}")()
            self.done[action] += 1
        self._victim.set_clock_ms(0)
        self._wait(self._wait_s)

    def _wait(self, seconds: float) -> None:
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            self._crowd.tend()
            time.sleep(TEND_S)

    def _kill(self) -> None:
        self._victim.kill()
        self._wait(self._chance.uniform(0, MOST_DOWN_S))
        self._victim.start()

    def _pause(self) -> None:
        self._victim.pause()
        self._wait(self._chance.uniform(0.2, MOST_PAUSE_S))
        self._victim.resume()

    def _clock(self) -> None:
        most = self._victim.most_clock_ms
        self._victim.set_clock_ms(self._chance.randint(-most, most))

    def _crash(self) -> None:
        self._crowd.crash(self._chance)


def make_history(
    victim: Victim,
    directory: Path,
    seed: int,
    seconds: float,
    *,
    wait_s: float = 3.0,
    transactions: bool = True,
) -> Report:
    """Make one with a running broker, and check it."""
    create_topics(victim.bootstrap_servers, TOPICS)
    crowd = Crowd(parts(victim.bootstrap_servers, transactions), directory, seed)
    nemesis = Nemesis(victim, crowd, seed, wait_s)
    try:
        nemesis.run(seconds)
    finally:
        crowd.end()
    abort_what_is_open(victim.bootstrap_servers, TRANSACTIONAL_IDS if transactions else [])
    problems = read_everything(victim.bootstrap_servers, directory)
    events = read(directory)
    done = nemesis.done + Counter(what(event) for event in events)
    done["client gave up"] = crowd.gave_up
    return Report(seed, events, check(events), problems, done)


def what(event: Event) -> str:
    """As it is counted."""
    return f"{event.op} {event.type}" if event.op in ("send", "commit", "abort") else event.op


def create_topics(bootstrap: str, topics: dict[str, int], replicas: int = 1) -> None:
    admin = AdminClient(basis(bootstrap))
    wanted = [
        NewTopic(topic, num_partitions=count, replication_factor=replicas) for topic, count in topics.items()
    ]
    for future in admin.create_topics(wanted).values():
        future.result(CREATE_S)


def abort_what_is_open(bootstrap: str, names: list[str]) -> None:
    """As a successor of each client would: what was begun before the clock was moved back is open for longer than its
    timeout, as it is with Kafka."""
    for name in names:
        config = {**basis(bootstrap), "transactional.id": name}
        patiently(Producer(config).init_transactions)


def read_everything(bootstrap: str, directory: Path) -> list[str]:
    problems = []
    for isolation in (UNCOMMITTED, COMMITTED):
        process = f"last-{isolation}"
        with Recorder(process, str(directory / f"{process}.jsonl")) as recorder:
            try:
                read_all(isolation, bootstrap, ALL, recorder)
            except NotAll as problem:
                problems.append(str(problem))
    return problems


def read(directory: Path) -> list[Event]:
    """A history out of its files."""
    return merged(path.read_text().splitlines(keepends=True) for path in sorted(directory.glob("*.jsonl")))
