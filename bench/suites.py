"""A test suite as users of confluent-kafka write it: each test makes a topic and a group of its own, and sends ten
records through them. Brokers have their default configs here, group.initial.rebalance.delay.ms too.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from bench.measures import run_client
from bench.sides import Kafka
from bench.starts import broker_of, rounds_of

if TYPE_CHECKING:
    from bench.measures import Numbers, Sizes
    from bench.sides import Side

BY_DEFAULT = "3000"


def suite(side: Side, sizes: Sizes) -> Numbers:
    """All tests on one broker, and what they would take if each had started its own. The time of a broker that is
    shared is compared with that of a Kafka for each test, too."""
    config = {"group_initial_rebalance_delay_ms": BY_DEFAULT} if isinstance(side, Kafka) else {}
    shared, each = _shared(side, sizes.tests, config), _each(side, sizes, config)
    return {"seconds": shared, "each_seconds": each, "least_seconds": each if config else shared}


def suite_without_delay(side: Side, sizes: Sizes) -> Numbers:
    """The same where Kafka does not wait for members either."""
    return {"seconds": _shared(side, sizes.tests, {})}


def _shared(side: Side, tests: int, config: dict[str, str]) -> float:
    with broker_of(side, **config) as broker:
        return run_client("suite", broker, "suite", tests, 0)["seconds"]


def _each(side: Side, sizes: Sizes, config: dict[str, str]) -> float:
    """From a few of them."""
    took = 0.0
    for _ in range(rounds_of(sizes)):
        began = time.perf_counter()
        with broker_of(side, **config) as broker:
            started = time.perf_counter() - began
            took += started + run_client("suite", broker, "suite", 1, 0)["seconds"]
    return took / rounds_of(sizes) * sizes.tests
