"""A signal while the broker loads its logs: it ends at once with a message, and leaves no clean-shutdown marker."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from pykafkad.config import BrokerConfig
from pykafkad.server import Broker
from pykafkad.storage.manager import LogManager

SIGNALS = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)


@pytest.fixture(autouse=True)
def handlers() -> Iterator[None]:
    """Restore the handlers of the test run."""
    before = [signal.getsignal(number) for number in SIGNALS]
    yield
    for number, handler in zip(SIGNALS, before, strict=True):
        signal.signal(number, handler)


@pytest.mark.parametrize("number", SIGNALS, ids=lambda number: number.name)
def test_a_start_is_given_up(
    number: signal.Signals,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    def interrupted(self: LogManager, *arguments: Any) -> None:
        os.kill(os.getpid(), number)
        raise AssertionError("the signal came too late")

    monkeypatch.setattr(LogManager, "open_all", interrupted)
    config = BrokerConfig.from_sources(overrides={"log.dirs": str(tmp_path)}, port=0)
    with pytest.raises(SystemExit) as ended:
        Broker(config).start()
    assert ended.value.code == 128 + number
    assert f"{number.name}: stopping before everything is loaded" in capsys.readouterr().err
    assert not (tmp_path / ".kafka_cleanshutdown").exists()
    again = Broker(config)
    LogManager(config, again.clock, replicas=again.replicas).close(clean=False)  # the lock is free
