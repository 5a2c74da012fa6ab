"""One Spark session for all tests, and of the broker that they run against two kinds: what is in BOTH runs against ours
and against the real Kafka, unless BROKER or BOOTSTRAP says which.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

from compat_tests.conftest import running_broker

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


BOTH = ("test_batches", "test_streams")
OURS_ALONE = ("test_a_million_rows_there_and_back", "test_real_time_mode")
"""What would take too long twice."""


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "bootstrap" not in metafunc.fixturenames or os.environ.get("BROKER") or os.environ.get("BOOTSTRAP"):
        return
    module = metafunc.module.__name__.rpartition(".")[2]
    if module in BOTH and metafunc.function.__name__ not in OURS_ALONE:
        metafunc.parametrize("bootstrap", ["pykafkad", "kafka"], indirect=True, scope="session")


@pytest.fixture(scope="session")
def bootstrap(request: pytest.FixtureRequest) -> Iterator[str]:
    """HOST:PORT of the broker under test."""
    if given := os.environ.get("BOOTSTRAP"):
        yield given
        return
    with running_broker({}, getattr(request, "param", None)) as broker:
        yield broker.bootstrap_servers


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    pytest.importorskip("pyspark", reason="no pyspark here; to have it: pip install pyspark==4.2.0")
    from compat_tests.spark import session

    made = session.make(tmp_path_factory.mktemp("warehouse"))
    yield made
    made.stop()
