"""The clients under test: one of each for the run, made when a test first needs it."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from compat_tests import needs

from .face import Client


def _kafka_python(bootstrap: str) -> Client:
    from .kafka_python import KafkaPython

    return KafkaPython(bootstrap)


def _confluent(bootstrap: str) -> Client:
    from .confluent import Confluent

    return Confluent(bootstrap)


def _aiokafka(bootstrap: str) -> Client:
    from .aio import AioKafka

    return AioKafka(bootstrap)


def _java(bootstrap: str) -> Client:
    from .java import JavaClient

    return JavaClient(bootstrap, needs.jars("java"))


def _kcat(bootstrap: str) -> Client:
    from .kcat import Kcat

    needs.program("kcat")
    return Kcat(bootstrap)


CLIENTS: dict[str, Callable[[str], Client]] = {
    "kafka-python": _kafka_python,
    "confluent-kafka": _confluent,
    "aiokafka": _aiokafka,
    "java": _java,
    "kcat": _kcat,
}


@pytest.fixture(scope="session", params=CLIENTS)
def client(request: pytest.FixtureRequest, bootstrap: str) -> Iterator[Client]:
    made = CLIENTS[request.param](bootstrap)
    yield made
    made.close()
