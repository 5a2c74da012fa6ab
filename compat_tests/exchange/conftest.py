"""A directory that goes from one to the other; skipped with a message if there is no Kafka."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from compat_tests.exchange.home import Home
from compat_tests.reference import missing


@pytest.fixture
def home(tmp_path: Path) -> Iterator[Home]:
    if why := missing():
        pytest.skip(f"NOT EXCHANGED WITH KAFKA: {why}")
    made = Home(tmp_path)
    yield made
    made.end(kill=True)
