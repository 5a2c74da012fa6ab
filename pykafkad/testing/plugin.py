"""The pytest plugin: the fixture `kafka`, a broker for the whole test run.

Owns the fixture, and adds the end of the broker's log to the report of a failed test that used it. Nothing of the
broker is imported before a test asks for one, so installing pykafkad costs other test runs next to nothing.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from pykafkad.testing.broker import Broker


@pytest.fixture(scope="session")
def kafka() -> Iterator[Broker]:
    """A running broker, at `kafka.bootstrap_servers`."""
    from pykafkad.testing.broker import Broker

    with Broker() as broker:
        yield broker


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, Any, Any]:
    report = yield
    broker = getattr(item, "funcargs", {}).get("kafka")
    if report.failed and broker is not None and hasattr(broker, "log_tail"):
        report.sections.append(("the broker's log", broker.log_tail()))
    return report
