"""The storm's shrinking of requests that fail; and the pure parts of its judge and its neighbour."""

from __future__ import annotations

from typing import Any

import pytest

from pykafkad import messages
from tests.storm.asked import Request, from_json, to_json
from tests.storm.judge import CLOSES, HOLD, LATE, LOGGED, Fault, of_fates, of_log, of_neighbour
from tests.storm.lines import Fate
from tests.storm.names import Names
from tests.storm.neighbour import Report, percentile
from tests.storm.shrinking import OutOfTime, fewest, smallest


@pytest.mark.parametrize("guilty", [{0}, {99}, {50}, {3, 97}, {10, 11, 12}])
def test_fewest_finds_the_guilty(guilty: set[int]) -> None:
    asked = []

    def fails(items: list[int]) -> bool:
        asked.append(items)
        return guilty <= set(items)

    assert fewest(range(100), fails) == sorted(guilty)
    assert len(asked) < 80


def test_fewest_keeps_the_order() -> None:
    assert fewest(
        [3, 1, 2], lambda items: items.index(1) > items.index(3) if {1, 3} <= set(items) else False
    ) == [3, 1]


def test_fewest_gives_what_it_has_when_the_time_is_up() -> None:
    tries = iter(range(3))

    def fails(items: list[int]) -> bool:
        if next(tries, None) is None:
            raise OutOfTime
        return 7 in items

    found = fewest(range(16), fails)
    assert 7 in found and len(found) < 16


def tree_of(message: Any, api: str, version: int) -> dict[str, Any]:
    return to_json(Request(5, api, version, message, "x" * 300), Names())


def test_smallest_leaves_only_what_matters() -> None:
    kind = messages.CreateTopicsRequest.CreatableTopic
    rows = [kind(name=f"t{number}", num_partitions=3) for number in range(40)]
    rows[17].num_partitions = -5
    tree = tree_of(
        messages.CreateTopicsRequest(topics=rows, timeout_ms=100, validate_only=True), "CreateTopics", 7
    )

    def fails(smaller: dict[str, Any]) -> bool:
        request = from_json(smaller, Names())
        return any(topic.num_partitions == -5 for topic in request.message.topics)

    least = smallest(tree, fails)
    assert least["message"] == {"topics": {"array": [[1, {"num_partitions": -5}]]}}
    assert least["client"] == "storm"


def test_smallest_shortens_runs_and_texts() -> None:
    tree = tree_of(messages.DescribeGroupsRequest(groups=["abcdefgh" * 100] * 1000), "DescribeGroups", 5)

    def fails(smaller: dict[str, Any]) -> bool:
        groups = from_json(smaller, Names()).message.groups
        return len(groups) >= 3 and all(len(group) >= 10 for group in groups)

    ((count, text),) = smallest(tree, fails)["message"]["groups"]["array"]
    assert count == 3 and 10 <= len(text) < 20


def test_smallest_drops_changes_of_bytes() -> None:
    tree = tree_of(messages.ListGroupsRequest(), "ListGroups", 4) | {
        "patches": [[9, "ff"], [10, "00"], [11, "01"]]
    }
    assert smallest(tree, lambda smaller: [10, "00"] in smaller["patches"])["patches"] == [[10, "00"]]


# -- the judge


def test_holds_of_the_log_name_the_request() -> None:
    request = Request(3017, "DeleteTopics", 6, messages.DeleteTopicsRequest(), "storm-3017")
    line = (
        "[2026-11-19 05:01:44,110] WARN [server] DeleteTopics v6 from 127.0.0.1:1234 (client 'storm-3017', 720113 bytes) "
        "held the loop for {} ms of CPU"
    )
    (fault,) = of_log([line.format(52)], [Fate(request)])
    assert (fault.kind, fault.about, fault.number) == (HOLD, "DeleteTopics", 3017)
    assert of_log([line.format(49)], [Fate(request)]) == []


def test_holds_of_anything_else_are_one_kind_whatever_their_numbers() -> None:
    lines = [
        f"[t] WARN [server] call_later turn of periodic.py:{n} held the loop for {n} ms of CPU"
        for n in (60, 70)
    ]
    assert len({fault for line in lines for fault in of_log([line], [])}) == 1


def test_errors_of_the_log_are_told_by_their_place() -> None:
    lines = [
        f"[t] ERROR [dispatcher] a request failed; its connection is closed: IndexError: {n} (topic_creation.py:194)"
        for n in (1, 2)
    ]
    found = {fault for line in lines for fault in of_log([line, "[t] INFO [server] all is well"], [])}
    assert [(fault.kind, fault.about) for fault in found] == [(LOGGED, "topic_creation.py:194")]


def test_a_closed_connection_is_a_fault_unless_bytes_were_changed() -> None:
    request = Request(1, "ListGroups", 0, messages.ListGroupsRequest(), None)
    changed = Request(2, "ListGroups", 0, messages.ListGroupsRequest(), None, [(5, b"\xff")])
    fates = [
        Fate(request, "closed", port=4711),
        Fate(changed, "closed"),
        Fate(request, "answered"),
        Fate(request, "late"),
    ]
    log = ["[t] INFO [server] closed the connection of 127.0.0.1:4711: it was 3 bytes too long"]
    found = of_fates(fates, log)
    assert [fault.kind for fault in found] == [CLOSES, LATE]
    assert "3 bytes too long" in found[0].text


def test_the_neighbour_is_asked() -> None:
    # A busy machine, not the broker.
    assert of_neighbour(Report(2, [1.0, 900.0], [0.1, 0.2], []), held=False) == []
    assert of_neighbour(Report(2, [1.0, 900.0], [0.1, 880.0], []), held=False)[0].kind == HOLD
    # The log has named the one that caused it.
    assert of_neighbour(Report(2, [1.0, 900.0], [0.1, 880.0], []), held=True) == []
    assert of_neighbour(Report(0, [], [], ["TimeoutError: timed out"]), held=False)


def test_the_same_fault_is_one() -> None:
    assert (
        Fault(HOLD, "Fetch", "51 ms", 1)
        == Fault(HOLD, "Fetch", "70 ms", 2)
        != Fault(HOLD, "Produce", "51 ms", 1)
    )


def test_percentile() -> None:
    assert percentile([]) == 0.0
    assert percentile([float(number) for number in range(1000)]) == 990.0
    assert percentile([5.0]) == 5.0
