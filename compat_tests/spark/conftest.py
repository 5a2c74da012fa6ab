"""One Spark session for all tests."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    pytest.importorskip("pyspark", reason="no pyspark here; to have it: pip install pyspark==4.2.0")
    from compat_tests.spark import session

    made = session.make(tmp_path_factory.mktemp("warehouse"))
    yield made
    made.stop()
