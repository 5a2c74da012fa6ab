"""Classic and consumer members in one group: upgrades, members of the classic protocol, downgrades."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from compat_tests.differential.cast import Cast
from compat_tests.differential.pair import Pair
from compat_tests.differential.play import Play
from compat_tests.differential.versions import at_every_version
from pykafkad import errors
from pykafkad.messages import (
    ConsumerProtocolAssignment,
    ConsumerProtocolSubscription,
    HeartbeatRequest,
    JoinGroupRequest,
    LeaveGroupRequest,
    SyncGroupRequest,
)


def subscription(*topics: str, version: int = 1, owned: Any = (), rack: str | None = None) -> bytes:
    kind = ConsumerProtocolSubscription
    rows = [kind.TopicPartition(topic=name, partitions=list(each)) for name, each in dict(owned).items()]
    return version.to_bytes(2) + kind(topics=list(topics), owned_partitions=rows, rack_id=rack).encode(
        version
    )


def assignment(**topics: Any) -> bytes:
    kind = ConsumerProtocolAssignment
    rows = [kind.TopicPartition(topic=name, partitions=list(each)) for name, each in topics.items()]
    return (1).to_bytes(2) + kind(assigned_partitions=rows).encode(1)


class Mixed(Play):
    """A play with members of the classic protocol too; they generate their own ids, which a consumer group accepts."""

    def classic_join(self, member: str, *topics: str, version: int = 9, **fields: Any) -> Any:
        kind = JoinGroupRequest
        data = fields.pop("metadata", None) or subscription(*topics, owned=fields.pop("owned", ()))
        names = fields.pop("names", ("range",))
        given = {
            "group_id": self.group_id,
            "session_timeout_ms": 30_000,
            "rebalance_timeout_ms": 40_000,
            "member_id": member,
            "protocol_type": "consumer",
            "protocols": [kind.JoinGroupRequestProtocol(name=name, metadata=data) for name in names],
        }
        answers = self.pair.same_of_each(kind(**{**given, **fields}), version)
        if not member:  # from here on the ids made by each broker are treated as the same
            name = self.pair.new_name("made")
            for side, answer in zip(self.pair.sides, answers, strict=True):
                side.member_names[answer.member_id] = name
        if not answers[1].error_code:
            self.epochs[member] = answers[1].generation_id
        return answers[1]

    def classic_sync(
        self, member: str, generation: int | None = None, version: int = 5, **fields: Any
    ) -> Any:
        given = {
            "group_id": self.group_id,
            "member_id": member,
            "generation_id": self.epochs.get(member, 0) if generation is None else generation,
            "protocol_type": "consumer",
            "protocol_name": "range",
        }
        return self.pair.same(SyncGroupRequest(**{**given, **fields}), version)

    def classic_beat(
        self, member: str, generation: int | None = None, version: int = 4, **fields: Any
    ) -> int:
        epoch = self.epochs.get(member, 0) if generation is None else generation
        given = {"group_id": self.group_id, "member_id": member, "generation_id": epoch}
        code = self.pair.same(HeartbeatRequest(**{**given, **fields}), version).error_code
        assert isinstance(code, int)
        return code

    def classic_leave(self, member: str, instance: str | None = None, version: int = 5) -> Any:
        kind = LeaveGroupRequest
        if version < 3:
            return self.pair.same(kind(group_id=self.group_id, member_id=member), version)
        who = kind.MemberIdentity(member_id=member, group_instance_id=instance)
        return self.pair.same(kind(group_id=self.group_id, members=[who]), version)


@pytest.fixture
def cast(pair: Pair) -> Iterator[Cast]:
    made = Cast(pair)
    yield made
    made.close()


# -- classic members in a consumer group


@at_every_version("JoinGroup")
def test_a_classic_member_joins(pair: Pair, version: int) -> None:
    topic = pair.topic("m", 4)
    play = Mixed(pair)
    play.join("a", topic, server_assignor="range")
    answer = play.classic_join("c", topic, version=version)
    assert (answer.error_code, answer.generation_id) == (0, 3)
    play.describe()
    play.classic_sync("c")
    assert play.classic_beat("c") == 0
    play.beat("a", owned={topic: range(4)})
    assert play.classic_beat("c") == 0
    play.beat("a", owned={topic: range(2)})
    assert play.classic_beat("c") == errors.REBALANCE_IN_PROGRESS
    assert play.classic_join("c", topic, version=version).generation_id == 3
    play.classic_sync("c")
    assert play.classic_beat("c") == 0
    play.describe()
    play.compare_records(in_order=False)


@at_every_version("JoinGroup")
def test_a_classic_member_without_an_id(pair: Pair, version: int) -> None:
    topic = pair.topic("m", 2)
    play = Mixed(pair)
    play.join("a", topic)
    play.classic_join("", topic, version=version)
    if version >= 5:
        play.classic_join("", topic, version=version, group_instance_id="i")


@pytest.mark.parametrize(
    "fields",
    [
        {"protocol_type": "connect"},
        {"protocol_type": ""},
        {"names": ()},
        {"names": ("sticky",)},
        {"names": ("sticky", "range")},
        {"metadata": b"\0"},
        {"metadata": b"\xff\xff"},
        {"metadata": b"\0\1\0\0"},
        {"metadata": subscription("x", version=0)},
        {"metadata": subscription("x", version=3, rack="r")},
        {"metadata": b"\0\x09" + subscription("x", version=3)[2:] + b"more"},
        {"session_timeout_ms": 1},
        {"group_instance_id": "i"},
    ],
    ids=str,
)
def test_classic_members_that_may_be_refused(pair: Pair, fields: dict[str, Any]) -> None:
    topic = pair.topic("m", 2)
    play = Mixed(pair)
    play.join("a", topic)
    play.classic_join("c", topic)
    play.classic_join("d", topic, **fields)
    play.describe()


@pytest.mark.parametrize(
    "fields",
    [
        {},
        {"generation": 2},
        {"generation": 4},
        {"protocol_type": "connect"},
        {"protocol_name": "sticky"},
        {"protocol_name": None, "protocol_type": None},
        {"group_instance_id": "i"},
        {"member_id": "a"},
        {"member_id": "nobody"},
    ],
    ids=str,
)
def test_syncs(pair: Pair, fields: dict[str, Any]) -> None:
    topic = pair.topic("m", 2)
    play = Mixed(pair)
    play.join("a", topic)
    play.classic_join("c", topic)
    play.classic_sync("c", **fields)
    if "protocol_type" not in fields and "protocol_name" not in fields:
        play.classic_beat("c", **fields)
    play.join("b", topic)
    play.classic_sync("c", **fields)
    play.classic_beat("c")


@at_every_version("LeaveGroup")
def test_classic_members_leave(pair: Pair, version: int) -> None:
    topic = pair.topic("m", 2)
    play = Mixed(pair)
    play.join("a", topic)
    play.classic_join("c", topic)
    play.classic_leave("c", version=version)
    play.classic_leave("c", version=version)
    play.describe()
    play.compare_records(in_order=False)


def test_static_classic_members(pair: Pair) -> None:
    topic = pair.topic("m", 2)
    play = Mixed(pair)
    play.join("a", topic, server_assignor="range")
    play.classic_join("", topic, group_instance_id="i")
    play.describe()
    play.classic_leave("", "i")
    play.classic_leave("", "j")
    play.classic_leave("x", "i")
    play.describe()


def test_a_consumer_member_becomes_a_classic_one_under_its_static_name(pair: Pair) -> None:
    topic = pair.topic("m", 2)
    play = Mixed(pair)
    play.join("a", topic, instance_id="i", server_assignor="range")
    play.join("b", topic, server_assignor="range")
    play.classic_join("", topic, group_instance_id="i")
    play.describe()


def test_a_classic_member_becomes_a_consumer_one(pair: Pair) -> None:
    topic = pair.topic("m", 2)
    play = Mixed(pair)
    play.join("a", topic, server_assignor="range")
    play.classic_join("c", topic)
    play.join("c", topic)
    play.describe()
    play.classic_beat("c")
    play.classic_sync("c")
    play.compare_records(in_order=False)


# -- a classic group becomes a consumer group


def test_an_upgrade_of_a_stable_group(pair: Pair, cast: Cast) -> None:
    topic = pair.topic("m", 4)
    meta = (("range", subscription(topic)),)
    cast.knock("one", protocols=meta)
    generation = cast.join("one", protocols=meta).generation_id
    assert cast.sync("one", generation, {"one": assignment(**{topic: [0, 1, 2, 3]})}).error_code == 0
    play = Mixed(pair)
    play.group_id = cast.group_id
    play.configure("consumer.assignment.interval.ms", "0")
    assert play.join("new", topic, server_assignor="range").member_epoch == generation + 1
    play.describe()
    assert cast.heartbeat("one", generation) == errors.REBALANCE_IN_PROGRESS
    answer = cast.join("one", protocols=(("range", subscription(topic, owned={topic: range(4)})),))
    cast.sync("one", answer.generation_id)
    play.describe()
    assert cast.heartbeat("one", answer.generation_id) == errors.REBALANCE_IN_PROGRESS
    play.compare_records(in_order=False)


def test_an_upgrade_while_members_wait(pair: Pair, cast: Cast) -> None:
    topic = pair.topic("m", 2)
    meta = (("range", subscription(topic)),)
    cast.knock("one", protocols=meta)
    generation = cast.join("one", protocols=meta).generation_id
    cast.sync("one", generation, {"one": assignment(**{topic: [0, 1]})})
    cast.knock("two", protocols=meta)
    cast.send_join("two", protocols=meta)
    play = Mixed(pair)
    play.group_id = cast.group_id
    play.join("new", topic)
    assert cast.hear("two").error_code == errors.REBALANCE_IN_PROGRESS
    cast.heartbeat("one", generation)


# For bytes that are malformed in another way than being too short for a version Kafka answers UNKNOWN_SERVER_ERROR;
# here they are "malformed" (GROUP_ID_NOT_FOUND) too.
@pytest.mark.parametrize("given", [b"\0", b"\0\1\0\0\0\0\0\0\0\2hi"])
def test_groups_that_cannot_be_upgraded(pair: Pair, cast: Cast, given: bytes) -> None:
    meta = (("range", subscription("x")),)
    cast.knock("one", protocols=meta)
    generation = cast.join("one", protocols=meta).generation_id
    cast.sync("one", generation, {"one": given})
    play = Mixed(pair)
    play.group_id = cast.group_id
    assert play.join("new", "x").error_code == errors.GROUP_ID_NOT_FOUND
    assert cast.heartbeat("one", generation) == 0
    cast.describe()


def test_a_group_of_another_kind_is_not_upgraded(pair: Pair, cast: Cast) -> None:
    cast.knock("one", protocol_type="connect")
    cast.join("one", protocol_type="connect")
    play = Mixed(pair)
    play.group_id = cast.group_id
    assert play.join("new", "x").error_code == errors.GROUP_ID_NOT_FOUND
    play.beat("new", 5)
    play.leave("new")


def test_an_empty_classic_group_makes_way(pair: Pair, cast: Cast) -> None:
    topic = pair.topic("m", 2)
    meta = (("range", subscription(topic)),)
    cast.found("one", protocols=meta)
    cast.leave("one")
    play = Mixed(pair)
    play.group_id = cast.group_id
    assert play.join("new", topic).member_epoch == 2
    play.describe()
    play.leave("new")
    cast.ids = {side: {} for side in cast.ids}
    cast.knock("two", protocols=meta)
    assert cast.join("two", protocols=meta).error_code == 0
    play.compare_records(in_order=False)


# -- and back


def test_a_downgrade_when_the_last_consumer_member_leaves(pair: Pair) -> None:
    topic = pair.topic("m", 2)
    play = Mixed(pair)
    play.join("a", topic, server_assignor="range")
    play.classic_join("c", topic)
    play.classic_sync("c")
    play.leave("a")
    play.describe()
    assert play.classic_beat("c") == errors.REBALANCE_IN_PROGRESS
    answer = play.classic_join("c", topic)
    assert answer.error_code == 0 and answer.leader == "c"
    play.classic_sync("c")
    play.compare_records(in_order=False)


def test_a_downgrade_when_the_last_consumer_member_is_replaced(pair: Pair) -> None:
    topic = pair.topic("m", 2)
    play = Mixed(pair)
    play.join("a", topic, instance_id="i", server_assignor="range")
    answer = play.classic_join("", topic, group_instance_id="i")
    assert answer.error_code == 0
    play.describe()
