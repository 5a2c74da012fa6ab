"""ListGroups: which groups a client is shown, by their states and types."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from pykafkad import errors, messages
from tests.unit.coordinator_kit import GroupDesk


@pytest.fixture
def desk(tmp_path: Path) -> GroupDesk:
    """With the groups `old`, which is empty, and `new`, which waits for its only member's assignment."""
    desk = GroupDesk(tmp_path)
    desk.commit("old", (0, 1))
    kind = messages.JoinGroupRequest
    joined = desk.send(
        kind(
            group_id="new",
            session_timeout_ms=10_000,
            rebalance_timeout_ms=10_000,
            protocol_type="consumer",
            protocols=[kind.JoinGroupRequestProtocol(name="range", metadata=b"")],
        ),
        3,
    )
    desk.end_pass()
    desk.settle()
    assert joined is not None
    return desk


def listed(desk: GroupDesk, version: int = 5, **filters: Any) -> dict[str, tuple[str, str, str]]:
    """Protocol type, state and type of each."""
    answer = desk.ask(messages.ListGroupsRequest(**filters), version)
    assert answer.error_code == errors.NONE
    return {row.group_id: (row.protocol_type, row.group_state, row.group_type) for row in answer.groups}


def state_of_new(desk: GroupDesk) -> str:
    return listed(desk)["new"][1]


def test_all_are_shown_with_what_they_are(desk: GroupDesk) -> None:
    state = state_of_new(desk)
    assert state != "Empty"
    assert listed(desk) == {"old": ("", "Empty", "classic"), "new": ("consumer", state, "classic")}


@pytest.mark.parametrize("spelled", ["Empty", "empty", " EMPTY "])
def test_a_state_is_spelled_in_any_way(desk: GroupDesk, spelled: str) -> None:
    assert set(listed(desk, states_filter=[spelled])) == {"old"}


def test_several_states_are_any_of_them(desk: GroupDesk) -> None:
    assert set(listed(desk, states_filter=[state_of_new(desk)])) == {"new"}
    assert set(listed(desk, states_filter=["Dead", "Empty", state_of_new(desk)])) == {"old", "new"}
    assert listed(desk, states_filter=["Dead"]) == {}


@pytest.mark.parametrize(
    ("types", "shown"),
    [(["classic"], {"old", "new"}), (["Classic"], {"old", "new"}), (["consumer"], set()), (["share"], set())],
)
def test_types_are_filtered_as_well(desk: GroupDesk, types: list[str], shown: set[str]) -> None:
    assert set(listed(desk, types_filter=types)) == shown


def test_both_filters_count(desk: GroupDesk) -> None:
    assert set(listed(desk, states_filter=["Empty"], types_filter=["classic"])) == {"old"}
    assert listed(desk, states_filter=["Empty"], types_filter=["consumer"]) == {}


def test_a_coordinator_that_is_going_says_so(desk: GroupDesk) -> None:
    desk.group_coordinator.stop()
    answer = desk.ask(messages.ListGroupsRequest(), 5)
    assert (answer.error_code, answer.groups) == (errors.COORDINATOR_NOT_AVAILABLE, [])
