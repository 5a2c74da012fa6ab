"""DeleteRecords in a cluster of two: the answer comes when the follower's log starts there as well."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from pykafkad import errors, messages
from tests.net.test_replication_loopback import Town, write
from tests.reactor_kit import LOOP_NAMES, LOOPS
from tests.replication_kit import TOPIC

TIMEOUT_MS = 60_000


@pytest.fixture(params=LOOPS, ids=LOOP_NAMES)
def town(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Town]:
    town = Town(request.param, tmp_path)
    town.tell()
    write(town.leader, *[b"v"] * 5)
    town.until(lambda: town.leader.replica.high_watermark == 5)
    yield town
    town.close()


def ask(town: Town, *parts: tuple[int, int], timeout_ms: int = TIMEOUT_MS) -> Any:
    Request = messages.DeleteRecordsRequest
    asked = [Request.DeleteRecordsPartition(partition_index=index, offset=offset) for index, offset in parts]
    topic = Request.DeleteRecordsTopic(name=TOPIC, partitions=asked)
    given = town.leader.send(Request(topics=[topic], timeout_ms=timeout_ms), 2)
    town.leader.end_pass()
    return given


def said(town: Town, given: Any) -> list[tuple[int, int, int]] | None:
    answer = town.leader.answer_of(given, "DeleteRecordsRequest", 2)
    if answer is None:
        return None
    parts = [part for topic in answer.topics for part in topic.partitions]
    return [(part.partition_index, part.error_code, part.low_watermark) for part in parts]


def test_the_answer_waits_for_the_follower_whose_fetch_ends_for_it(town: Town) -> None:
    """No clock moves here, so no wait is over by itself."""
    given = ask(town, (0, 3))
    assert town.leader.replica.log_start_offset == 3 and said(town, given) is None
    town.until(lambda: said(town, given) is not None)
    assert said(town, given) == [(0, errors.NONE, 3)]
    assert town.follower.replica.log_start_offset == 3


def test_what_is_deleted_everywhere_is_answered_at_once(town: Town) -> None:
    given = ask(town, (0, -1))
    town.until(lambda: said(town, given) is not None)
    assert said(town, given) == [(0, errors.NONE, 5)]
    assert said(town, ask(town, (0, 2))) == [(0, errors.NONE, 5)]


def test_a_follower_that_is_late_is_a_timeout(town: Town) -> None:
    town.follower.replication.stop(town.follower.replica)
    given = ask(town, (0, 2), (7, 2))
    assert said(town, given) is None
    town.leader.advance(TIMEOUT_MS)
    town.leader.end_pass()
    assert said(town, given) == [(0, errors.REQUEST_TIMED_OUT, 0), (7, errors.UNKNOWN_TOPIC_OR_PARTITION, -1)]
    assert said(town, ask(town, (0, 2), timeout_ms=0)) == [(0, errors.REQUEST_TIMED_OUT, 0)]


def test_a_follower_that_does_not_live_is_not_waited_for(town: Town) -> None:
    town.follower.replication.stop(town.follower.replica)
    town.leader.hear(town.live()[:1])
    assert said(town, ask(town, (0, 2))) == [(0, errors.NONE, 2)]


def test_who_leads_no_longer_says_so(town: Town) -> None:
    town.follower.replication.stop(town.follower.replica)
    given = ask(town, (0, 2))
    town.state.elect(1, [1])
    town.tell(0)
    town.leader.end_pass()
    assert said(town, given) == [(0, errors.NOT_LEADER_OR_FOLLOWER, -1)]
    assert said(town, ask(town, (0, 2))) == [(0, errors.NOT_LEADER_OR_FOLLOWER, -1)]
