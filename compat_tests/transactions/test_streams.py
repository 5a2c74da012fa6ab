"""Kafka Streams with exactly_once_v2: it and its broker are killed with -9 while it works, and its output is exact.

Word counts: of each word, one output for each occurrence, which counts up from 1 without a gap or a repetition. Joins:
one output for each pair that is not further apart than the window, in any order.
"""

from __future__ import annotations

import subprocess
import time
import uuid
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaError, Message, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from compat_tests import needs

from .flavours import JVM, QUICK_JVM
from .stage import QUIET

PARTITIONS = 2
LINES = 1500
WORDS = tuple(f"word{number}" for number in range(23))
PAIRS = 800
WINDOW_MS = 5000
OLDEST_MS = 600_000  # young enough for the topics' retention
WAIT_SECONDS = 120.0
STOP_SECONDS = 60.0
TOPICS = ("lines", "counts", "left", "right", "joined")


class Application:
    """A process that runs Streams.java."""

    def __init__(self, bootstrap: str, topics: dict[str, str], application: str, state: Path) -> None:
        given = {
            "bootstrap": bootstrap,
            "application": application,
            "state": state,
            "window_ms": WINDOW_MS,
            **topics,
        }
        quiet = "-Dorg.slf4j.simpleLogger.defaultLogLevel=error"
        self._process = subprocess.Popen(
            [
                *(needs.program("java"), *QUICK_JVM, quiet),
                *("-cp", needs.classes("streams"), "pykafkad.Streams"),
                *(f"{key}={value}" for key, value in given.items()),
            ],
            stdin=subprocess.PIPE,
        )

    def kill(self) -> None:
        self._process.kill()
        self._process.communicate()

    def stop(self) -> None:
        """In order: what it has begun is committed."""
        self._process.communicate(timeout=STOP_SECONDS)
        assert self._process.returncode == 0


class Watch:
    """What read_committed has shown so far of one topic: key and value, in the order of each partition."""

    def __init__(self, bootstrap: str, topic: str) -> None:
        self.seen: list[tuple[str, str]] = []
        self._consumer = Consumer(
            {
                "bootstrap.servers": bootstrap,
                "group.id": f"never joined {uuid.uuid4()}",
                "isolation.level": "read_committed",
                "enable.auto.commit": False,
                "fetch.wait.max.ms": 100,
                **QUIET,
            }
        )
        self._consumer.assign(
            [TopicPartition(topic, number, OFFSET_BEGINNING) for number in range(PARTITIONS)]
        )

    def until(self, count: int) -> None:
        deadline = time.monotonic() + WAIT_SECONDS
        while len(self.seen) < count:
            assert time.monotonic() < deadline, f"only {len(self.seen)} of {count} in {WAIT_SECONDS} s"
            self._poll(0.1)

    def to_the_end(self) -> None:
        """Whatever is there, also if it is too much: a plain record in each partition is behind all of it."""
        ends = Counter[int]()
        self.until(len(self.seen))
        deadline = time.monotonic() + WAIT_SECONDS
        while len(ends) < PARTITIONS:
            assert time.monotonic() < deadline, f"the end did not come in {WAIT_SECONDS} s"
            ends.update(self._poll(0.1))

    def _poll(self, seconds: float) -> list[int]:
        ended: list[int] = []
        for message in self._consumer.consume(500, timeout=seconds):
            if (error := message.error()) is not None:
                assert error.retriable() or error.code() == KafkaError._ALL_BROKERS_DOWN, error
                continue
            key, value, partition = message.key(), message.value(), message.partition()
            assert value is not None and partition is not None
            if value == b"end":
                ended.append(partition)
            else:
                assert key is not None
                self.seen.append((key.decode(), value.decode()))
        return ended

    def close(self) -> None:
        self._consumer.close()


class Setting:
    def __init__(self, broker: Any) -> None:
        self.bootstrap = broker.bootstrap_servers
        unique = uuid.uuid4().hex[:8]
        self.application = f"application-{unique}"
        self.topics = {what: f"{what}-{unique}" for what in TOPICS}
        admin = AdminClient({"bootstrap.servers": self.bootstrap, **QUIET})
        for made in admin.create_topics(
            [NewTopic(name, PARTITIONS, 1) for name in self.topics.values()]
        ).values():
            made.result(WAIT_SECONDS)
        self._producer = Producer({"bootstrap.servers": self.bootstrap, "linger.ms": 5, **QUIET})
        self._failures: list[KafkaError] = []
        self._first_ms = int(time.time() * 1000) - OLDEST_MS

    def _delivered(self, error: KafkaError | None, _message: Message) -> None:
        if error is not None:
            self._failures.append(error)

    def _flush(self) -> None:
        assert self._producer.flush(WAIT_SECONDS) == 0 and not self._failures, self._failures

    def feed(self, first: int, end: int) -> None:
        """The lines and pairs of a part of the run; every tenth pair is too far apart."""
        for number in range(first * LINES // 3, end * LINES // 3):
            self._producer.produce(self.topics["lines"], line(number).encode(), on_delivery=self._delivered)
        for number in range(first * PAIRS // 3, end * PAIRS // 3):
            at = self._first_ms + number * 10
            apart = WINDOW_MS + 1 if number % 10 == 0 else WINDOW_MS
            for side, timestamp in (("left", at), ("right", at + apart)):
                self._producer.produce(
                    self.topics[side],
                    f"{side}{number}".encode(),
                    key=f"key{number}".encode(),
                    timestamp=timestamp,
                    on_delivery=self._delivered,
                )
        self._flush()

    def end(self, topic: str) -> None:
        for partition in range(PARTITIONS):
            self._producer.produce(topic, b"end", partition=partition, on_delivery=self._delivered)
        self._flush()


def line(number: int) -> str:
    return f"{WORDS[number % len(WORDS)]} {WORDS[number * 7 % 5]}"


@pytest.fixture
def setting(broker: Any) -> Setting:
    return Setting(broker)


@pytest.fixture
def watch(setting: Setting) -> Iterator[Callable[[str], Watch]]:
    made: list[Watch] = []

    def watching(what: str) -> Watch:
        made.append(Watch(setting.bootstrap, setting.topics[what]))
        return made[-1]

    yield watching
    for one in made:
        one.close()


@pytest.fixture
def start(setting: Setting) -> Iterator[Callable[[Path], Application]]:
    made: list[Application] = []

    def starting(state: Path) -> Application:
        made.append(Application(setting.bootstrap, setting.topics, setting.application, state))
        return made[-1]

    yield starting
    for one in made:
        one.kill()


@pytest.mark.xdist_group(JVM)
def test_streams_are_exact_whoever_is_killed(
    setting: Setting,
    watch: Callable[[str], Watch],
    start: Callable[[Path], Application],
    broker: Any,
    tmp_path: Path,
) -> None:
    counts, joined = watch("counts"), watch("joined")
    application = start(tmp_path / "state")
    setting.feed(0, 1)
    counts.until(100)
    application.kill()
    application = start(tmp_path / "state")  # which takes its transactional ids back
    setting.feed(1, 2)
    counts.until(LINES)
    broker.kill()
    broker.start()
    counts.until(LINES + 200)
    application.kill()
    application = start(
        tmp_path / "other"
    )  # with stores made of the changelogs, and the old transactions timing out
    setting.feed(2, 3)
    counts.until(2 * LINES)
    joined.until(PAIRS - PAIRS // 10)
    application.stop()
    for watched, what in ((counts, "counts"), (joined, "joined")):
        setting.end(setting.topics[what])
        watched.to_the_end()
    assert_counted(counts.seen)
    expected = {f"key{n}": f"left{n}+right{n}" for n in range(PAIRS) if n % 10}
    assert sorted(joined.seen) == sorted(expected.items())


def assert_counted(seen: list[tuple[str, str]]) -> None:
    counted: dict[str, list[int]] = defaultdict(list)
    for word, count in seen:
        counted[word].append(int(count))
    occurrences = Counter(word for number in range(LINES) for word in line(number).split())
    assert counted == {word: list(range(1, count + 1)) for word, count in occurrences.items()}
