"""Heartbeat: in every state of a group, and from unknown members."""

from __future__ import annotations

from typing import Any

import pytest

from compat_tests.differential.cast import STATIC_STRANGERS, STRANGERS, Cast
from compat_tests.differential.versions import at_every_version


@at_every_version("Heartbeat")
@pytest.mark.parametrize("fields", STRANGERS, ids=str)
def test_heartbeats_that_are_refused(cast: Cast, version: int, fields: dict[str, Any]) -> None:
    generation = cast.found("one")
    assert cast.heartbeat("one", generation, version, **fields) != 0


@at_every_version("Heartbeat", since=3)
@pytest.mark.parametrize("fields", STATIC_STRANGERS, ids=str)
def test_heartbeats_of_static_strangers(cast: Cast, version: int, fields: dict[str, Any]) -> None:
    generation = cast.found("one")
    assert cast.heartbeat("one", generation, version, **fields) == 25


@at_every_version("Heartbeat")
def test_heartbeats_in_every_state(cast: Cast, version: int) -> None:
    cast.knock("one")
    assert cast.heartbeat("one", 0, version) == 25  # only a pending id
    cast.join("one")
    assert cast.heartbeat("one", 1, version) == 0  # not synced
    cast.settle(1, "one")
    assert cast.heartbeat("one", 1, version) == 0
    cast.knock("two")
    cast.send_join("two")
    assert cast.heartbeat("one", 1, version) == 27
    assert cast.heartbeat("two", 1, version) == 27  # it does not know the generation yet, but is allowed to
    cast.leave("one")
    assert cast.hear("two").generation_id == 2
    assert cast.heartbeat("one", 2, version) == 25
    cast.leave("two")
    assert cast.heartbeat("two", 3, version) == 25
