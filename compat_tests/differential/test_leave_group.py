"""LeaveGroup: one or many, members and others."""

from __future__ import annotations

import pytest

from compat_tests.differential.cast import Cast
from compat_tests.differential.versions import at_every_version


@at_every_version("LeaveGroup")
def test_one_leaves(cast: Cast, version: int) -> None:
    generation = cast.found("one", "two")
    cast.leave("one", version=version)
    assert cast.heartbeat("two", generation) == 27
    cast.describe()
    assert cast.join("two").generation_id == generation + 1
    cast.settle(generation + 1, "two")
    cast.leave("one", version=version)
    cast.leave("two", version=version)
    cast.describe()


@at_every_version("LeaveGroup")
@pytest.mark.parametrize("name", ["nobody", ""])
def test_who_is_no_member_cannot_leave(cast: Cast, version: int, name: str) -> None:
    cast.leave(name, version=version)  # no group
    generation = cast.found("one")
    cast.leave(name, version=version)
    assert cast.heartbeat("one", generation) == 0
    cast.leave("one", version=version)
    cast.leave("one", version=version)  # an empty group


@at_every_version("LeaveGroup")
def test_an_id_that_nobody_joined_with_leaves(cast: Cast, version: int) -> None:
    generation = cast.found("one")
    cast.knock("two")
    cast.leave("two", version=version)
    cast.describe()
    cast.heartbeat("one", generation)


@at_every_version("LeaveGroup")
def test_no_group_id(cast: Cast, version: int) -> None:
    cast.group_id = ""
    cast.leave("one", version=version)


@at_every_version("LeaveGroup", since=3)
def test_many_leave(cast: Cast, version: int) -> None:
    cast.found("one", "two", "three", instances={"two": "desk", "three": "chair"})
    wanted: list[str | tuple[str, str | None]] = [
        "nobody",
        ("", None),
        ("", "table"),
        ("one", "desk"),
        ("two", "chair"),
        ("", "desk"),
        "three",
        "one",
    ]
    cast.leave(*wanted, "one", ("", "desk"), version=version)
    cast.describe()
    cast.leave(version=version)
    cast.leave("one", version=version)


@at_every_version("LeaveGroup", since=5)
@pytest.mark.parametrize("reason", [None, "", "because", "ü" * 1000])
def test_reasons_of_leaving_are_only_logged(cast: Cast, version: int, reason: str | None) -> None:
    cast.found("one")
    assert cast.leave("one", version=version, reason=reason).error_code == 0


@at_every_version("LeaveGroup")
def test_leaving_while_waiting(cast: Cast, version: int) -> None:
    generation = cast.found("one", "two")
    cast.send_join("one")
    cast.leave("one", version=version)
    assert cast.hear("one").error_code == 25
    assert cast.join("two").generation_id == generation + 1
