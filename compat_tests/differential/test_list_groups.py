"""ListGroups: states and types, valid and invalid filters."""

from __future__ import annotations

import pytest

from compat_tests.differential.offset_requests import commit, consumer, group, member, same_list
from compat_tests.differential.pair import Pair
from compat_tests.differential.versions import at_every_version
from pykafkad.messages import ListGroupsRequest


@pytest.fixture(scope="module")
def names(pair: Pair) -> list[str]:
    """A group that only commits, one with a member, one whose member's topics are unknown, a consumer group."""
    topic = pair.topic()
    simple, with_member, other = group(pair, "simple"), group(pair, "member"), group(pair, "é")
    consumers = group(pair, "consumers")
    pair.same(commit(simple, topic, (0, 5)), 8)
    for side in pair.sides:
        member(side, with_member, topic)
        member(side, other, "never-made")
        consumer(side, consumers, topic)
    return [simple, with_member, other, consumers]


@at_every_version("ListGroups")
def test_all(pair: Pair, names: list[str], version: int) -> None:
    assert len(same_list(pair, ListGroupsRequest(), version, names).groups) == 4


@at_every_version("ListGroups", since=4)
@pytest.mark.parametrize(
    "states",
    [["Empty"], ["stable"], ["STABLE", "Empty"], [" Empty "], ["Dead"], ["nonsense"], [""], ["", "Stable"]],
)
def test_states(pair: Pair, names: list[str], version: int, states: list[str]) -> None:
    same_list(pair, ListGroupsRequest(states_filter=states), version, names)


@at_every_version("ListGroups", since=5)
@pytest.mark.parametrize(
    "types",
    [
        ["classic"],
        ["Classic"],
        ["consumer"],
        ["CONSUMER", "classic"],
        [" classic "],
        ["share"],
        ["nonsense"],
        [""],
    ],
)
@pytest.mark.parametrize("states", [[], ["Stable"]])
def test_types(pair: Pair, names: list[str], version: int, types: list[str], states: list[str]) -> None:
    same_list(pair, ListGroupsRequest(types_filter=types, states_filter=states), version, names)
