"""SyncGroup: from leaders and others, in every state of a group, and from unknown members."""

from __future__ import annotations

from typing import Any

import pytest

from compat_tests.differential.cast import STATIC_STRANGERS, STRANGERS, Cast, metadata
from compat_tests.differential.versions import at_every_version


@at_every_version("SyncGroup")
def test_the_leader_assigns(cast: Cast, version: int) -> None:
    generation = cast.found("one", "two")
    cast.rejoin("one", "two")
    generation += 1
    cast.send_sync("two", generation, version=version)
    given = {"one": b"1", "two": b"2", "nobody": b"3"}
    assert cast.sync("one", generation, given, version=version).assignment == b"1"
    assert cast.hear("two").assignment == b"2"
    assert cast.sync("two", generation, version=version).assignment == b"2"
    assert cast.sync("one", generation, {"one": b"late"}, version=version).assignment == b"1"
    cast.describe()


@at_every_version("SyncGroup")
def test_the_leader_forgets_some_and_names_one_twice(cast: Cast, version: int) -> None:
    generation = cast.found("one", "two") + 1
    cast.rejoin("one", "two")
    cast.send_sync("two", generation, version=version)
    assert cast.sync("one", generation, {"one": b""}, version=version).error_code == 0
    assert cast.hear("two").assignment == b""
    cast.describe()


@at_every_version("SyncGroup")
@pytest.mark.parametrize("fields", STRANGERS, ids=str)
def test_syncs_that_are_refused(cast: Cast, version: int, fields: dict[str, Any]) -> None:
    generation = cast.found("one")
    assert cast.sync("one", generation, version=version, **fields).error_code != 0
    assert cast.heartbeat("one", generation) == 0


@at_every_version("SyncGroup", since=3)
@pytest.mark.parametrize("fields", STATIC_STRANGERS, ids=str)
def test_syncs_of_static_strangers(cast: Cast, version: int, fields: dict[str, Any]) -> None:
    generation = cast.found("one")
    assert cast.sync("one", generation, version=version, **fields).error_code != 0


@at_every_version("SyncGroup", since=5)
@pytest.mark.parametrize(
    "fields",
    [
        {"protocol_type": None},
        {"protocol_name": None},
        {"protocol_type": "connect"},
        {"protocol_name": "sticky"},
        {"protocol_type": "", "protocol_name": ""},
        {"protocol_type": None, "protocol_name": None},
        {"protocol_type": None, "group_id": ""},
        {"protocol_name": "sticky", "generation_id": 7},
    ],
    ids=str,
)
def test_a_sync_names_the_protocol(cast: Cast, version: int, fields: dict[str, Any]) -> None:
    generation = cast.found("one")
    assert cast.sync("one", generation, version=version, **fields).error_code != 0


@at_every_version("SyncGroup")
def test_syncs_while_the_group_rebalances_or_is_empty(cast: Cast, version: int) -> None:
    generation = cast.found("one", "two")
    cast.send_join("two", protocols=(("range", metadata(b"new")),))
    assert cast.sync("one", generation, version=version).error_code == 27
    assert cast.sync("one", generation + 1, version=version).error_code == 22
    cast.leave("one", "two")
    assert cast.hear("two").error_code == 25
    assert cast.sync("one", generation, version=version).error_code == 25
    cast.describe()
