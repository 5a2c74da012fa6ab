"""Texts of clients that are too long for an answer or a record: because something is added, or because malformed UTF-8
is repaired (each bad byte becomes three). Kafka answers UNKNOWN_SERVER_ERROR, or never (we close the connection).
"""

from __future__ import annotations

from typing import Any

import pytest

from compat_tests.differential.offset_requests import group
from compat_tests.differential.pair import Pair, Side
from compat_tests.raw import RawClient, decode_answer
from pykafkad.messages import (
    ConsumerGroupHeartbeatRequest,
    JoinGroupRequest,
    LeaveGroupRequest,
    OffsetFetchRequest,
)

SIZE = 20_000
MENDED = "Q" * SIZE  # it becomes longer when it is read
LONGEST = 32_767
UNKNOWN_SERVER_ERROR, MEMBER_ID_REQUIRED = -1, 79


def asked(side: Side, request: Any, version: int, client_id: str = "c") -> Any:
    client = RawClient(side.port, client_id=client_id)
    client.send(client.frame(request, version).replace(MENDED.encode(), b"\xff" * SIZE))
    answer = decode_answer(request, version, client.receive())
    client.socket.close()
    return answer


def join(group_id: str, **fields: Any) -> JoinGroupRequest:
    protocol = JoinGroupRequest.JoinGroupRequestProtocol(name=fields.pop("protocol", "range"), metadata=b"")
    return JoinGroupRequest(
        group_id=group_id,
        session_timeout_ms=6_000,
        rebalance_timeout_ms=6_000,
        protocol_type="consumer",
        protocols=[protocol],
        **fields,
    )


def beat(**fields: Any) -> ConsumerGroupHeartbeatRequest:
    whole = {
        "member_id": "m",
        "member_epoch": 0,
        "rebalance_timeout_ms": 1_000,
        "subscribed_topic_names": ["t"],
        "topic_partitions": [],
    }
    return ConsumerGroupHeartbeatRequest(**{**whole, **fields})


@pytest.mark.parametrize("version", [0, 3, 4, 6, 9])
@pytest.mark.parametrize("size", [32_730, 32_731, 32_760, LONGEST])
def test_a_client_id_that_makes_a_long_member_id(pair: Pair, version: int, size: int) -> None:
    request = join(group(pair, "long"))
    ours, theirs = (asked(side, request, version, "x" * size) for side in pair.sides)
    fits = size + 1 + 36 <= LONGEST
    assert theirs.error_code == (
        UNKNOWN_SERVER_ERROR if not fits else MEMBER_ID_REQUIRED if version > 3 else 0
    )
    assert (ours.error_code, len(ours.member_id), ours.protocol_name) == (
        theirs.error_code,
        len(theirs.member_id),
        theirs.protocol_name,
    )


@pytest.mark.parametrize("size", [32_731, LONGEST])
def test_a_static_name_that_makes_a_long_member_id(pair: Pair, size: int) -> None:
    request = join(group(pair, "long"), group_instance_id="y" * size)
    ours, theirs = (asked(side, request, 5) for side in pair.sides)
    assert ours == theirs and theirs.error_code == UNKNOWN_SERVER_ERROR


@pytest.mark.parametrize(
    "fields",
    [{"member_id": MENDED}, {"protocol": MENDED}, {"group_instance_id": MENDED}, {"group_id": MENDED}],
    ids=lambda fields: next(iter(fields)),
)
def test_join_with_what_cannot_be_told(pair: Pair, fields: dict[str, Any]) -> None:
    """Since version 4 Kafka notices it when the member comes back with its id; we do at once."""
    request = join(**{"group_id": group(pair, "long"), **fields})
    version = 5 if "group_instance_id" in fields else 3
    ours, theirs = (asked(side, request, version) for side in pair.sides)
    assert ours == theirs and theirs.error_code == UNKNOWN_SERVER_ERROR


def test_a_client_id_that_cannot_be_told(pair: Pair) -> None:
    request = join(group(pair, "long"))
    ours, theirs = (asked(side, request, 3, MENDED) for side in pair.sides)
    assert ours == theirs and theirs.error_code == UNKNOWN_SERVER_ERROR


@pytest.mark.parametrize(
    "fields",
    [
        {"group_id": MENDED},
        {"member_id": MENDED},
        {"instance_id": MENDED},
        {"rack_id": MENDED},
        {"subscribed_topic_names": [MENDED]},
    ],
    ids=lambda fields: next(iter(fields)),
)
def test_a_consumer_with_what_cannot_be_written(pair: Pair, fields: dict[str, Any]) -> None:
    request = beat(**{"group_id": group(pair, "long"), **fields})
    ours, theirs = (asked(side, request, 1) for side in pair.sides)
    assert ours == theirs and theirs.error_code == UNKNOWN_SERVER_ERROR


@pytest.mark.parametrize("version", [3, 5])
def test_leave_with_what_cannot_be_told(pair: Pair, version: int) -> None:
    leaving = LeaveGroupRequest.MemberIdentity(member_id=MENDED)
    request = LeaveGroupRequest(group_id=group(pair, "long"), members=[leaving])
    ours, theirs = (asked(side, request, version) for side in pair.sides)
    assert ours == theirs and theirs.error_code == UNKNOWN_SERVER_ERROR


def test_offsets_of_a_topic_that_cannot_be_told(pair: Pair) -> None:
    kind, group_id = OffsetFetchRequest, group(pair, "long")
    old = kind(group_id=group_id, topics=[kind.OffsetFetchRequestTopic(name=MENDED, partition_indexes=[0])])
    topics = [kind.OffsetFetchRequestTopics(name=MENDED, partition_indexes=[0])]
    new = kind(groups=[kind.OffsetFetchRequestGroup(group_id=group_id, topics=topics)])
    for request, version in ((old, 5), (new, 8)):
        ours, theirs = (asked(side, request, version) for side in pair.sides)
        assert ours == theirs
