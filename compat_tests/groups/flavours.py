"""The clients under test, each with each protocol that it supports, and the features that each has.

A missing feature of a client is a flag here: the tests of that feature do not run with this client.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass

from compat_tests import needs

RETURNS = ("leaves", "crashes")
QUICK_JVM = ("-Xmx128m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1")


@dataclass(frozen=True)
class Flavour:
    client: str
    command: Callable[[], list[str]]
    protocol: str = "classic"
    assignor: str = "range"
    cooperative: str | None = None  # the assignor that moves as few partitions as possible
    static: tuple[str, ...] = RETURNS  # how a static member may end, to return without a rebalance
    seeks: bool = True
    pauses: bool = True  # one partition

    @property
    def name(self) -> str:
        return f"{self.client}-{self.protocol}"


def _python(module: str) -> Callable[[], list[str]]:
    return lambda: [sys.executable, "-m", f"compat_tests.groups.drivers.{module}"]


def _java() -> list[str]:
    quiet = "-Dorg.slf4j.simpleLogger.defaultLogLevel=warn"
    return [needs.program("java"), *QUICK_JVM, quiet, "-cp", needs.classes("java"), "pykafkad.Member"]


def _go(client: str) -> Callable[[], list[str]]:
    return lambda: [str(needs.go_program()), client]


def _node(client: str) -> Callable[[], list[str]]:
    return lambda: [needs.program("node"), str(needs.node_project() / f"{client}.js")]


def _consumer(
    client: str,
    command: Callable[[], list[str]],
    *,
    static: tuple[str, ...] = ("leaves",),  # a crashed one keeps them until its session times out
    seeks: bool = True,
    pauses: bool = True,
) -> Flavour:
    return Flavour(client, command, "consumer", "uniform", "uniform", static, seeks, pauses)


FLAVOURS = (
    Flavour("kafka-python", _python("kafka_python"), cooperative="cooperative-sticky"),
    Flavour("confluent-kafka", _python("confluent"), cooperative="cooperative-sticky"),
    _consumer("confluent-kafka", _python("confluent")),
    Flavour("aiokafka", _python("aio")),
    Flavour("java", _java, cooperative="cooperative-sticky"),
    _consumer("java", _java),
    Flavour("franz-go", _go("franz"), cooperative="cooperative-sticky"),
    # Its leave request for a static member (1.22.2) does not name the instance, which Kafka refuses: the member stays.
    _consumer("franz-go", _go("franz"), static=()),
    Flavour("sarama", _go("sarama"), seeks=False),
    Flavour("kafka-go", _go("segmentio"), static=(), pauses=False),
    Flavour("kafkajs", _node("kafkajs"), assignor="RoundRobinAssigner", static=()),
    # Its leave is final, for static members too.
    Flavour("platformatic", _node("platformatic"), "classic", "roundrobin", None, RETURNS[1:], False, False),
    _consumer("platformatic", _node("platformatic"), static=(), seeks=False, pauses=False),
)
BY_NAME = {flavour.name: flavour for flavour in FLAVOURS}
