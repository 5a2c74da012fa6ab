"""What the torture takes for a fault in transactions: halves, what was aborted, what is gone, what nobody sent."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from tests.torture import transactional
from tests.torture.ledger import Fault
from tests.torture.transactional import Producer, State, Transaction

NUMBERS = {"left": [1, 2], "right": [3]}
SEEN = {"left": {1, 2}, "right": {3}}
UNSEEN: dict[str, set[int]] = {"left": set(), "right": set()}


def transaction(state: State) -> Transaction:
    return Transaction(copy.deepcopy(NUMBERS), state)


@pytest.mark.parametrize(
    ("state", "seen", "expected"),
    [
        ("committed", SEEN, True),
        ("ending", SEEN, True),
        ("ending", UNSEEN, False),
        ("open", UNSEEN, False),
        ("aborted", UNSEEN, False),
    ],
)
def test_what_may_be(state: State, seen: dict[str, set[int]], expected: bool) -> None:
    left = copy.deepcopy(seen)
    assert transactional.is_seen("giver", transaction(state), left) is expected
    assert left == UNSEEN


@pytest.mark.parametrize(
    ("state", "seen", "text"),
    [
        ("committed", UNSEEN, "is not seen"),
        ("open", SEEN, "never committed"),
        ("aborted", SEEN, "never committed"),
        ("ending", {"left": {1, 2}, "right": set()}, "half"),
        ("ending", {"left": {1}, "right": {3}}, "half"),
        ("committed", {"left": {2}, "right": {3}}, "half"),
    ],
)
def test_what_must_not_be(state: State, seen: dict[str, set[int]], text: str) -> None:
    with pytest.raises(Fault, match=text):
        transactional.is_seen("giver", transaction(state), copy.deepcopy(seen))


@pytest.mark.parametrize(
    ("count", "offset", "is_fault"), [(1, 3, False), (1, -1, True), (0, -1, False), (0, 3, True)]
)
def test_offsets_follow_the_last_transaction(count: int, offset: int, is_fault: bool) -> None:
    producer = Producer("giver", transactions=[transaction("committed")] * count)
    if is_fault:
        with pytest.raises(Fault, match="group-of-giver has committed"):
            transactional.check_offset(producer, offset)
    else:
        transactional.check_offset(producer, offset)


@pytest.mark.parametrize(
    ("left", "text"), [([1, 2, 2], "twice"), ([1, 2, 9], "no transaction sent"), ([1, 2], "")]
)
def test_what_is_read(monkeypatch: pytest.MonkeyPatch, left: list[int], text: str) -> None:
    found = {"left": left, "right": [3]}
    monkeypatch.setattr(transactional, "come_back", lambda client, producer: None)
    monkeypatch.setattr(transactional, "wait_until_stable", lambda client, topic: None)
    monkeypatch.setattr(transactional, "read_committed", lambda client, topic: found[topic])
    client: Any = type("Client", (), {"call": lambda *arguments: None})()
    known = {"giver": Producer("giver", transactions=[transaction("ending"), transaction("open")])}
    known["giver"].transactions[1].numbers = {"left": [7], "right": [8]}
    if text:
        with pytest.raises(Fault, match=text):
            transactional.settle(client, known, lambda client, group: 3)
    else:
        transactional.settle(client, known, lambda client, group: 3)
        assert [each.state for each in known["giver"].transactions] == ["committed"]
