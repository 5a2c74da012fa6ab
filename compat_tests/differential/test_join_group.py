"""JoinGroup: which members are admitted and how, protocols, static members, rebalances of several members."""

from __future__ import annotations

import time
from typing import Any

import pytest

from compat_tests.differential.cast import ARRIVE_SECONDS, MEMBER_ID_REQUIRED, Cast, metadata
from compat_tests.differential.versions import at_every_version

STATIC = {"one": "first desk", "two": "second desk"}


@at_every_version("JoinGroup")
def test_a_first_member(cast: Cast, version: int) -> None:
    cast.knock("one", version)
    answer = cast.join("one", version)
    assert (answer.error_code, answer.generation_id) == (0, 1)
    assert cast.join("one", version).generation_id == 1  # the answer may have been lost
    cast.describe()


@at_every_version("JoinGroup")
def test_two_members(cast: Cast, version: int) -> None:
    generation = cast.found("one", "two", version=version)
    assert generation == 2
    cast.describe()
    assert cast.join("two", version).generation_id == 2  # nothing new
    cast.send_join("one", version)  # the leader asks for a rebalance
    assert cast.heartbeat("two", 2) == 27
    cast.describe()
    cast.send_join("two", version)
    assert cast.hear("one").generation_id == cast.hear("two").generation_id == 3


@at_every_version("JoinGroup")
@pytest.mark.parametrize(
    "fields",
    [
        {"group_id": ""},
        {"session_timeout_ms": 5_999},
        {"session_timeout_ms": 1_800_001},
        {"session_timeout_ms": -1},
        {"member_id": "nobody"},
        {"member_id": "nobody", "session_timeout_ms": 1},
        {"group_id": "", "member_id": "nobody"},
        {"protocol_type": ""},
        {"protocols": ()},
        {"protocols": (), "member_id": "nobody"},
        {"protocol_type": "", "member_id": "nobody"},
    ],
    ids=str,
)
def test_refusals(cast: Cast, version: int, fields: dict[str, Any]) -> None:
    assert cast.join("one", version, **fields).error_code != 0
    time.sleep(ARRIVE_SECONDS)  # Kafka refuses before it stores the group, and lists it only then
    cast.describe()
    if "member_id" not in fields:
        cast.ids = {side: {} for side in cast.ids}
        cast.knock("two", version)
        assert cast.join("two", version).error_code == 0


@at_every_version("JoinGroup")
@pytest.mark.parametrize(
    "fields",
    [
        {"member_id": "nobody"},
        {"protocol_type": "connect"},
        {"protocol_type": ""},
        {"protocols": (("sticky", metadata(b"")),)},
        {"protocols": ()},
        {"protocol_type": "connect", "member_id": "nobody"},
    ],
    ids=str,
)
def test_refusals_of_a_group_that_is_there(cast: Cast, version: int, fields: dict[str, Any]) -> None:
    cast.found("one", version=version)
    assert cast.join("two", version, **fields).error_code != 0
    assert cast.heartbeat("one", 1) == 0


@at_every_version("JoinGroup", since=5)
@pytest.mark.parametrize("instance", ["desk", "", "ü" * 20, "a b"])
def test_static_names(cast: Cast, version: int, instance: str) -> None:
    assert cast.join("one", version, group_instance_id=instance).generation_id == 1
    assert cast.join("one", version, group_instance_id=instance).generation_id == 1
    assert cast.join("one", version).generation_id == 1  # the member is identified by its id
    assert cast.join("one", version, group_instance_id="other").error_code == 25


@at_every_version("JoinGroup", since=5)
def test_a_static_name_with_an_id_for_dynamic_members(cast: Cast, version: int) -> None:
    cast.knock("one", version)
    cast.join("one", version, group_instance_id="desk")


@at_every_version("JoinGroup", since=5)
@pytest.mark.parametrize("name", ["one", "two"])
def test_a_static_member_comes_back(cast: Cast, version: int, name: str) -> None:
    generation = cast.found("one", "two", version=version, instances=STATIC)
    old_ids = {side: dict(ids) for side, ids in cast.ids.items()}
    answer = cast.join(name, version, member_id="", group_instance_id=STATIC[name])
    assert (answer.error_code, answer.generation_id) == (0, generation)
    cast.describe()
    assert cast.heartbeat(name, generation, group_instance_id=STATIC[name]) == 0
    assert cast.sync(name, generation, group_instance_id=STATIC[name]).error_code == 0
    new_ids, cast.ids = cast.ids, old_ids
    assert cast.heartbeat(name, generation, group_instance_id=STATIC[name]) == 82
    assert cast.heartbeat(name, generation) == 25
    assert cast.sync(name, generation, group_instance_id=STATIC[name]).error_code == 82
    fenced = cast.ask("ghost", cast.joining(name, group_instance_id=STATIC[name]), version)
    assert fenced.error_code == 82
    cast.leave((name, STATIC[name]))
    cast.ids = new_ids
    for other in STATIC:
        assert cast.heartbeat(other, generation, group_instance_id=STATIC[other]) == 0


@at_every_version("JoinGroup", since=5)
def test_a_static_member_comes_back_with_other_metadata(cast: Cast, version: int) -> None:
    both = (("range", metadata(b"r")), ("sticky", metadata(b"s")))
    generation = cast.found("one", "two", version=version, instances=STATIC, protocols=both)
    new = (("range", metadata(b"R")), ("sticky", metadata(b"s")))
    cast.join("two", version, member_id="", group_instance_id=STATIC["two"], protocols=new)
    cast.describe()
    assert cast.heartbeat("one", generation) == 0
    cast.send_join(
        "two", version, member_id="", group_instance_id=STATIC["two"], protocols=(("sticky", metadata(b"s")),)
    )
    assert cast.heartbeat("one", generation) == 27
    cast.send_join("one", version, group_instance_id=STATIC["one"], protocols=both)
    assert cast.hear("one").protocol_name == cast.hear("two").protocol_name == "sticky"


@at_every_version("JoinGroup", since=5)
def test_static_members_that_come_back_while_the_others_rebalance(cast: Cast, version: int) -> None:
    generation = cast.found("one", "two", version=version, instances=STATIC)
    cast.knock("new", version)
    cast.send_join("new", version)
    assert cast.heartbeat("one", generation) == 27
    cast.send_join("two", version, member_id="", group_instance_id=STATIC["two"])
    cast.send_join("one", version, group_instance_id=STATIC["one"])
    assert {cast.hear(name).generation_id for name in ("new", "two", "one")} == {generation + 1}
    # After the join and before the sync: the leader may assign partitions to an id that is gone.
    cast.send_sync("two", generation + 1, group_instance_id=STATIC["two"])
    cast.send("another two", cast.joining("", member_id="", group_instance_id=STATIC["two"]), version)
    assert cast.hear("two").error_code == 82
    cast.send_join("one", version, group_instance_id=STATIC["one"])
    cast.send_join("new", version)
    assert {cast.hear(name).generation_id for name in ("new", "another two", "one")} == {generation + 2}


@at_every_version("JoinGroup")
@pytest.mark.parametrize(
    ("mine", "others"),
    [
        ("a b", "b a"),
        ("b a", "a b"),
        ("range roundrobin", "roundrobin range"),
        ("roundrobin range", "range roundrobin"),
        ("sticky cooperative-sticky", "cooperative-sticky sticky"),
        ("cooperative-sticky range", "range cooperative-sticky"),
        ("a b c", "c b"),
        ("x y z", "z y x"),
        ("Aa BB", "BB"),
        ("é ü", "ü é"),
    ],
)
def test_the_votes_for_a_protocol(cast: Cast, version: int, mine: str, others: str) -> None:
    cast.knock("one", version, protocols=named(mine))
    assert cast.join("one", version, protocols=named(mine)).protocol_name == mine.split()[0]
    cast.knock("two", version, protocols=named(others))
    cast.send_join("two", version, protocols=named(others))
    cast.send_join("one", version, protocols=named(mine))
    assert cast.hear("one").error_code == cast.hear("two").error_code == 0


def named(protocols: str) -> tuple[tuple[str, bytes], ...]:
    return tuple((name, metadata(name.encode())) for name in protocols.split())


@at_every_version("JoinGroup")
def test_new_metadata_is_a_rebalance(cast: Cast, version: int) -> None:
    generation = cast.found("one", "two", version=version)
    cast.send_join("two", version, protocols=(("range", metadata(b"new")),))
    assert cast.heartbeat("one", generation) == 27
    cast.send_join("one", version)
    assert cast.hear("two").generation_id == cast.hear("one").generation_id == generation + 1
    # Before any sync: the same request again only means a lost answer, other metadata a rebalance.
    assert cast.join("two", version, protocols=(("range", metadata(b"new")),)).generation_id == generation + 1
    assert cast.join("one", version).generation_id == generation + 1
    cast.send_sync("one", generation + 1)
    cast.hear("one")
    cast.send_sync("two", generation + 1)
    cast.hear("two")


@at_every_version("JoinGroup")
def test_new_metadata_while_others_wait_for_the_leader(cast: Cast, version: int) -> None:
    generation = cast.found("one", "two", version=version)
    cast.send_join("one", version)
    cast.send_join("two", version)
    assert cast.hear("one").generation_id == cast.hear("two").generation_id == generation + 1
    cast.send_sync("two", generation + 1)
    cast.send_join("one", version, protocols=(("range", metadata(b"new")),))
    assert cast.hear("two").error_code == 27
    cast.send_join("two", version)
    assert cast.hear("one").generation_id == cast.hear("two").generation_id == generation + 2


@pytest.mark.parametrize("version", [1, 5, 9])  # version 0 has no rebalance timeout, and a session of seconds
def test_who_does_not_come_back_in_time_is_out(cast: Cast, version: int) -> None:
    generation = cast.found("one", "two", version=version, rebalance_timeout_ms=3_000)
    new = {"rebalance_timeout_ms": 3_000, "protocols": (("range", metadata(b"new")),)}
    answer = cast.join("two", version, **new)
    assert answer.generation_id == generation + 1
    assert cast.heartbeat("one", generation + 1) == 25
    cast.describe()


@at_every_version("JoinGroup", since=1)
@pytest.mark.parametrize("timeout_ms", [0, -1, 2**31 - 1, -(2**31)])
def test_rebalance_timeouts_are_not_checked(cast: Cast, version: int, timeout_ms: int) -> None:
    cast.knock("one", version, rebalance_timeout_ms=timeout_ms)
    assert cast.join("one", version, rebalance_timeout_ms=timeout_ms).error_code == 0


@pytest.mark.parametrize("client_id", [None, "", "a b", "ü"])
def test_a_member_id_begins_with_the_clients(cast: Cast, client_id: str | None) -> None:
    for side in cast.pair.sides:
        cast.client(side, "one").client_id = client_id
    answer = cast.join("one")
    assert answer.error_code == MEMBER_ID_REQUIRED
    assert answer.member_id.startswith(f"{client_id or ''}-")
    cast.join("one")
    cast.describe()


@at_every_version("JoinGroup", since=8)
@pytest.mark.parametrize("reason", [None, "", "because", "x" * 30_000])
def test_reasons_are_only_logged(cast: Cast, version: int, reason: str | None) -> None:
    cast.knock("one", version, reason=reason)
    assert cast.join("one", version, reason=reason).error_code == 0


def test_unknown_tags_are_passed_over(cast: Cast) -> None:
    build = cast.joining("one", unknown_tags={7: b"abc", 9000: b""})
    assert cast.ask("one", build, 9).error_code == MEMBER_ID_REQUIRED


def test_who_is_silent_for_its_session_is_out(cast: Cast) -> None:
    generation = cast.found("one", "two", session_timeout_ms=6_000)
    cast.knock("three", session_timeout_ms=6_000)  # a pending id lasts as long
    for _ in range(7):
        time.sleep(1)
        cast.heartbeat("two", generation)
    assert cast.heartbeat("one", generation) == 25
    assert cast.heartbeat("two", generation) == 27
    assert cast.join("three", session_timeout_ms=6_000).error_code == 25
    assert cast.join("two", session_timeout_ms=6_000).generation_id == generation + 1
    cast.describe()


@pytest.mark.parametrize("version", [4, 9])  # before version 4 nobody knows its id before it has joined
def test_a_full_group(cast: Cast, version: int) -> None:
    """As many as group.max.size have joined; the first one has not come back yet."""
    cast.found("first", version=version)
    names = [f"m{number}" for number in range(20)]
    for name in names:
        cast.knock(name, version)
        cast.send_join(name, version)
    assert cast.join("late", version).error_code == 81
    assert cast.heartbeat("first", 1) == 27
    assert cast.join("first", version).error_code == 81
    assert cast.heartbeat("first", 1) == 25
    cast.leave("m0")
    assert cast.hear("m0").error_code == 25
