"""The broker under test, one for the whole run of a directory's tests."""

from __future__ import annotations

import os
import uuid
from collections.abc import Callable, Generator, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import pytest

LOG_LINES_SHOWN = 40
_running: list[Any] = []  # the broker whose log is shown with a failure


def _chosen(config: Mapping[str, str], chosen: str) -> Any:
    if chosen == "pykafkad":
        from pykafkad.testing import Broker

        return Broker(config=config, single_node=False)  # as Kafka would answer
    if chosen != "kafka":
        raise pytest.UsageError(f"BROKER={chosen}: pykafkad or kafka")
    from compat_tests.reference import ReferenceKafka, missing

    if lack := missing():
        pytest.skip(lack)
    return ReferenceKafka(config=dict(config))


@contextmanager
def running_broker(config: Mapping[str, str], chosen: str | None = None) -> Iterator[Any]:
    """The broker that is chosen, else that of the environment: bootstrap_servers, stop(), kill(), start(). Its log is
    shown with a failure."""
    with _chosen(config, chosen or os.environ.get("BROKER", "pykafkad")) as broker:
        _running.append(broker)
        try:
            yield broker
        finally:
            _running.remove(broker)


@pytest.fixture(scope="session")
def bootstrap() -> Iterator[str]:
    """HOST:PORT of the broker under test."""
    if given := os.environ.get("BOOTSTRAP"):
        yield given
        return
    with running_broker({}) as broker:
        yield broker.bootstrap_servers


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
