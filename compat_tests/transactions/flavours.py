"""The clients under test, and what each cannot do: the scenarios that need it do not run with this client."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable
from dataclasses import dataclass

import pytest
from _pytest.mark.structures import ParameterSet

from compat_tests import needs

QUICK_JVM = ("-Xmx192m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1")
BOTH = ("classic", "consumer")
JVM = "jvm"  # what has one runs in the same worker, one after the other


@dataclass(frozen=True)
class Flavour:
    name: str
    command: Callable[[], list[str]]
    worker: str
    protocols: tuple[str, ...] = ("classic",)  # of groups
    # A transaction with a group's offsets outlives the broker: franz-go's session gives it up when it missed heartbeats.
    keeps_offsets: bool = True
    # It asks for the end again while the coordinator is loading; kafkajs fails for good.
    ends_again: bool = True


def _python(module: str) -> Callable[[], list[str]]:
    return lambda: [sys.executable, "-m", f"compat_tests.transactions.drivers.{module}"]


def _java() -> list[str]:
    quiet = "-Dorg.slf4j.simpleLogger.defaultLogLevel=warn"
    return [needs.program("java"), *QUICK_JVM, quiet, "-cp", needs.classes("java"), "pykafkad.Transactional"]


def _go(client: str) -> Callable[[], list[str]]:
    return lambda: [str(needs.go_program()), client]


def _kafkajs() -> list[str]:
    return [needs.program("node"), str(needs.node_project() / "kafkajs_transactions.js")]


def _rdkafka() -> list[str]:
    return [needs.program("node"), str(needs.rdkafka_project() / "transactions.js")]


FLAVOURS = (
    Flavour("java", _java, JVM, BOTH),
    Flavour("confluent-kafka", _python("confluent"), "confluent-kafka", BOTH),
    Flavour("kafka-python", _python("kafka_python"), "kafka-python"),
    Flavour("aiokafka", _python("aio"), "aiokafka"),
    Flavour("franz-go", _go("franz-transactions"), "franz-go", BOTH, keeps_offsets=False),
    Flavour("sarama", _go("sarama-transactions"), "sarama"),
    Flavour("kafkajs", _kafkajs, "kafkajs", ends_again=False),
    Flavour("node-rdkafka", _rdkafka, "node-rdkafka", BOTH),
)


def each(flavours: Iterable[Flavour]) -> list[ParameterSet]:
    return [pytest.param(one, id=one.name, marks=pytest.mark.xdist_group(one.worker)) for one in flavours]


def each_in_each_protocol(flavours: Iterable[Flavour]) -> list[ParameterSet]:
    return [
        pytest.param(one, protocol, id=f"{one.name}-{protocol}", marks=pytest.mark.xdist_group(one.worker))
        for one in flavours
        for protocol in one.protocols
    ]
