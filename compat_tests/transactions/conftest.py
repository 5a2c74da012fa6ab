"""The broker under test, which aborts soon what has timed out, and one program of each client at a time."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from compat_tests.conftest import running_broker

from .flavours import FLAVOURS, Flavour, each
from .program import Program
from .stage import Stage

CONFIG = {
    "group.initial.rebalance.delay.ms": "0",
    "group.min.session.timeout.ms": "1000",
    "offsets.topic.num.partitions": "1",
    "transaction.state.log.num.partitions": "1",
    "transaction.abort.timed.out.transaction.cleanup.interval.ms": "200",
}


@pytest.fixture(scope="session")
def broker() -> Iterator[Any]:
    with running_broker(CONFIG) as made:
        yield made


@pytest.fixture(scope="session", params=each(FLAVOURS))
def program(request: pytest.FixtureRequest, broker: Any) -> Iterator[Program]:
    flavour: Flavour = request.param
    made = Program(flavour, broker.bootstrap_servers)
    yield made
    made.close()


@pytest.fixture
def stage(broker: Any, program: Program) -> Stage:
    return Stage(broker, program)
