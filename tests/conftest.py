"""Fixtures for all tests: the golden data, and the lines of the log."""

from __future__ import annotations

import io
from collections.abc import Iterator
from pathlib import Path

import pytest

from pykafkad import logs


@pytest.fixture(scope="session")
def golden() -> Path:
    """The directory of data that Apache Kafka made."""
    return Path(__file__).parent / "golden"


@pytest.fixture
def said() -> Iterator[io.StringIO]:
    """The lines of the log."""
    stream = io.StringIO()
    logs.set_stream(stream)
    yield stream
    logs.set_stream(None)
