"""The broker under test, one for the whole run of a directory's tests."""

from __future__ import annotations

import os
import uuid
from collections.abc import Callable, Generator, Iterator
from typing import Any

import pytest

LOG_LINES_SHOWN = 40
_running: list[Any] = []  # the broker whose log a failure shows


@pytest.fixture(scope="session")
def bootstrap() -> Iterator[str]:
    """HOST:PORT of the broker under test."""
    chosen = os.environ.get("BROKER", "pykafkad")
    if given := os.environ.get("BOOTSTRAP"):
        yield given
    elif chosen == "pykafkad":
        from pykafkad.testing import Broker

        with Broker() as broker:
            _running.append(broker)
            yield broker.bootstrap_servers
            _running.remove(broker)
    elif chosen == "kafka":
        from compat_tests.reference import ReferenceKafka, missing

        if lack := missing():
            pytest.skip(lack)
        with ReferenceKafka() as kafka:
            _running.append(kafka)
            yield kafka.bootstrap_servers
            _running.remove(kafka)
    else:
        raise pytest.UsageError(f"BROKER={chosen}: pykafkad or kafka")


@pytest.fixture
def new_topic() -> Callable[[str], str]:
    """A topic name that no other test has."""
    return lambda what: f"{what}-{uuid.uuid4().hex[:8]}"


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport() -> Generator[None, Any, Any]:
    report = yield
    if report.failed:
        for broker in _running:
            lines = broker.log_text().splitlines()[-LOG_LINES_SHOWN:]
            report.sections.append(("the broker's log", "\n".join(lines)))
    return report
