"""DeleteGroups: empty groups, groups with members, groups that do not exist."""

from __future__ import annotations

from compat_tests.differential.offset_requests import (
    commit,
    consumer,
    fetch,
    group,
    member,
    same_list,
)
from compat_tests.differential.pair import Pair
from compat_tests.differential.versions import at_every_version
from pykafkad.messages import DeleteGroupsRequest, ListGroupsRequest


def delete(*names: str) -> DeleteGroupsRequest:
    return DeleteGroupsRequest(groups_names=list(names))


@at_every_version("DeleteGroups")
def test_a_group_that_only_commits(pair: Pair, version: int) -> None:
    topic, name = pair.topic(), group(pair)
    pair.same(commit(name, topic, (0, 5)), 8)
    pair.same(delete(name), version)
    pair.same(fetch(8, name, [(topic, [0])]), 8)
    pair.same(delete(name), version)
    same_list(pair, ListGroupsRequest(), 5, [name])


@at_every_version("DeleteGroups")
def test_groups_with_members_stay(pair: Pair, version: int) -> None:
    topic, name, other, consumers = pair.topic(), group(pair), group(pair), group(pair)
    pair.same(commit(other, topic, (0, 5)), 8)
    for side in pair.sides:
        member(side, name, topic)
        consumer(side, consumers, topic)
    pair.same(delete(name, other, consumers, "not-there"), version)
    same_list(pair, ListGroupsRequest(), 5, [name, other, consumers])


@at_every_version("DeleteGroups")
def test_odd_names(pair: Pair, version: int) -> None:
    group(pair)
    pair.same(delete(), version)
    pair.same(delete(""), version)
    pair.same(delete("nobody", "nobody", ""), version)


@at_every_version("DeleteGroups")
def test_the_empty_name(pair: Pair, version: int) -> None:
    topic = pair.topic()
    group(pair)
    pair.same(commit("", topic, (0, 5)), 8)
    pair.same(delete(""), version)
    pair.same(fetch(8, "", None), 8)
