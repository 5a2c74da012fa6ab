"""One pykafkad, one Kafka to compare it with, and one JVM with all tools, for the whole session."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from types import MappingProxyType

import pytest

from compat_tests.reference import ReferenceKafka, missing
from compat_tests.tools.both import Both, Side
from compat_tests.tools.toolbox import Toolbox

CONFIG = {
    "group.initial.rebalance.delay.ms": "0",
    "group.consumer.heartbeat.interval.ms": "5000",
    "group.consumer.min.heartbeat.interval.ms": "5000",
    "offsets.topic.num.partitions": "4",
}


@contextmanager
def kafka(more: Mapping[str, str] = MappingProxyType({})) -> Iterator[Side]:
    with ReferenceKafka(config={**CONFIG, **more}) as broker:
        yield Side("kafka", broker.bootstrap_servers, str(broker.data), lags=True)


@contextmanager
def pykafkad(more: Mapping[str, str] = MappingProxyType({})) -> Iterator[Side]:
    """With the same properties as the other one, so that the outputs of --describe can be compared."""
    from pykafkad.testing import Broker

    reference = ReferenceKafka(config={**CONFIG, **more})
    try:
        reference.format()
        lines = (reference.directory / "server.properties").read_text().splitlines()
        config = dict(line.split("=", 1) for line in lines)
        data = config.pop("log.dirs")
        shutil.rmtree(data)
        with Broker(config=config, port=reference.port, data=data, single_node=False) as broker:
            yield Side("pykafkad", broker.bootstrap_servers, broker.data, lags=False)
    finally:
        shutil.rmtree(reference.directory, ignore_errors=True)


@pytest.fixture(scope="session")
def toolbox() -> Iterator[Toolbox]:
    if why := missing():
        pytest.skip(f"NOT COMPARED WITH KAFKA: {why}")
    toolbox = Toolbox()
    yield toolbox
    toolbox.close()


@pytest.fixture(scope="session")
def both(toolbox: Toolbox) -> Iterator[Both]:
    with made(toolbox, {}) as both:
        yield both


@contextmanager
def made(toolbox: Toolbox, config: Mapping[str, str]) -> Iterator[Both]:
    ours = kafka if os.environ.get("TWIN") else pykafkad
    with ours(config) as our_side, kafka(config) as their_side:
        yield Both(toolbox, our_side, their_side)


@pytest.fixture(scope="module")
def reference(toolbox: Toolbox) -> Iterator[Side]:
    """A Kafka that only the tests of one module change."""
    with kafka() as side:
        yield side
