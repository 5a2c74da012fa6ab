"""What all tests share: where the golden data is."""

from __future__ import annotations

from pathlib import Path

import pytest


@pytest.fixture(scope="session")
def golden() -> Path:
    """The directory of data that Apache Kafka made."""
    return Path(__file__).parent / "golden"
