"""The broker under test, one for the whole run of a directory's tests."""

from __future__ import annotations

import os
import uuid
from collections.abc import Callable, Iterator

import pytest


@pytest.fixture(scope="session")
def bootstrap() -> Iterator[str]:
    """HOST:PORT of the broker under test."""
    chosen = os.environ.get("BROKER", "pykafkad")
    if given := os.environ.get("BOOTSTRAP"):
        yield given
    elif chosen == "pykafkad":
        from pykafkad.testing import Broker

        with Broker() as broker:
            yield broker.bootstrap_servers
    elif chosen == "kafka":
        from compat_tests.reference import ReferenceKafka, missing

        if lack := missing():
            pytest.skip(lack)
        with ReferenceKafka() as kafka:
            yield kafka.bootstrap_servers
    else:
        raise pytest.UsageError(f"BROKER={chosen}: pykafkad or kafka")


@pytest.fixture
def new_topic() -> Callable[[str], str]:
    """A topic name that no other test has."""
    return lambda what: f"{what}-{uuid.uuid4().hex[:8]}"
