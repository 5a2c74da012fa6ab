"""An EndTxn that comes late: with TV2 it never ends the transaction that is open by then. TRIES=1000 for more of them."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from compat_tests.history.anomalies import G1A
from compat_tests.history.brokers import Victim
from compat_tests.history.checker import check
from compat_tests.history.consuming import read_all
from compat_tests.history.delayed import Tried, delayer
from compat_tests.history.events import COMMITTED, UNCOMMITTED, Event
from compat_tests.history.raw_producer import TV1, TV2, Versions
from compat_tests.history.recorder import Recorder
from compat_tests.history.workload import create_topics, read
from pykafkad import errors

TRIES = int(os.environ.get("TRIES", "50"))
KEY = "one:0"
FENCED = {errors.PRODUCER_FENCED, errors.INVALID_PRODUCER_EPOCH}


@pytest.fixture
def victim() -> Iterator[Victim]:
    with Victim() as running:
        create_topics(running.bootstrap_servers, {"one": 1})
        yield running


def made(
    victim: Victim, directory: Path, versions: Versions, tries: list[bool]
) -> tuple[list[Tried], list[Event]]:
    """What became of the old requests, which would commit or abort, and the history with all that can be read."""
    with (
        Recorder("raw", str(directory / "raw.jsonl")) as recorder,
        delayer((victim.host, victim.port), versions, KEY, recorder) as late,
    ):
        results = [late.try_once(committed) for committed in tries]
    for isolation in (UNCOMMITTED, COMMITTED):
        with Recorder(f"last {isolation}", str(directory / f"{isolation}.jsonl")) as recorder:
            read_all(isolation, victim.bootstrap_servers, [KEY], recorder)
    return results, read(directory)


def test_with_tv2_an_old_request_never_ends_the_new_transaction(victim: Victim, tmp_path: Path) -> None:
    results, events = made(victim, tmp_path, TV2, [number % 2 == 0 for number in range(TRIES)])
    assert not any(tried.ended for tried in results)
    assert {tried.code for tried in results} <= FENCED
    assert check(events) == []
    assert sum(event.op == "commit" and event.type == "ok" for event in events) == TRIES


def test_with_tv1_it_does_which_is_a_known_weakness_of_the_protocol(victim: Victim, tmp_path: Path) -> None:
    """The client has asked nobody to commit its second transaction, and yet its record can be read as committed."""
    results, events = made(victim, tmp_path, TV1, [True])
    assert results == [Tried(errors.NONE, ended=True)]
    assert {anomaly.kind for anomaly in check(events)} == {G1A}
