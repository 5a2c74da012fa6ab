"""The broker under test with short session timeouts for the scenarios, and the JVM with the stock tools.

A broker given by BOOTSTRAP must have been started with CONFIG.
"""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest

from compat_tests.conftest import running_broker
from compat_tests.groups.stage import HEARTBEAT_MS, SESSION_MS, Stage
from compat_tests.tools.toolbox import Toolbox

CONFIG = {
    "group.initial.rebalance.delay.ms": "0",
    "group.min.session.timeout.ms": "1000",
    "group.consumer.min.session.timeout.ms": "1000",
    "group.consumer.session.timeout.ms": str(SESSION_MS),
    "group.consumer.min.heartbeat.interval.ms": "100",
    "group.consumer.heartbeat.interval.ms": str(HEARTBEAT_MS),
    "offsets.topic.num.partitions": "4",
}


@pytest.fixture(scope="session")
def bootstrap() -> Iterator[str]:
    if given := os.environ.get("BOOTSTRAP"):
        yield given
        return
    with running_broker(CONFIG) as broker:
        yield broker.bootstrap_servers


@pytest.fixture(scope="session")
def toolbox() -> Iterator[Toolbox]:
    made = Toolbox()
    yield made
    made.close()


@pytest.fixture
def stage(bootstrap: str, toolbox: Toolbox) -> Iterator[Stage]:
    made = Stage(bootstrap, toolbox)
    yield made
    made.close()
