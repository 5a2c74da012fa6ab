"""DescribeGroups: classic groups in every state, and groups that do not exist."""

from __future__ import annotations

from typing import Any

import pytest

from compat_tests.differential.cast import Cast
from compat_tests.differential.versions import at_every_version


@at_every_version("DescribeGroups")
@pytest.mark.parametrize(
    "group_ids", [[""], ["no such group"], ["no such", "no such either"], ["same", "same"], ["ü"]]
)
def test_groups_that_are_not_there(cast: Cast, version: int, group_ids: list[str]) -> None:
    cast.describe(*group_ids, version=version)


@at_every_version("DescribeGroups", since=3)
@pytest.mark.parametrize("asked", [False, True])
def test_what_may_be_done(cast: Cast, version: int, asked: bool) -> None:
    cast.found("one")
    cast.describe(cast.group_id, "no such", version=version, include_authorized_operations=asked)


@at_every_version("DescribeGroups")
def test_a_group_in_every_state(cast: Cast, version: int) -> None:
    def look() -> Any:
        return cast.describe(version=version)[0].group_state

    cast.knock("one")
    assert look() == "Empty"
    cast.join("one")
    assert look() == "CompletingRebalance"
    cast.settle(1, "one")
    assert look() == "Stable"
    cast.send_join("two", version=3, group_instance_id=None)
    assert look() == "PreparingRebalance"
    cast.leave("one")
    cast.hear("two")
    assert look() == "CompletingRebalance"
    cast.leave("two")
    assert look() == "Empty"


@at_every_version("DescribeGroups")
def test_a_static_group(cast: Cast, version: int) -> None:
    cast.found("one", "two", instances={"one": "first", "two": "second"})
    cast.describe(version=version)


@at_every_version("DescribeGroups")
def test_a_group_of_another_kind(cast: Cast, version: int) -> None:
    cast.knock("one", protocol_type="connect")
    cast.join("one", protocol_type="connect")
    cast.describe(version=version)
