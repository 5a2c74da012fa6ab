"""ElectLeaders of a single node: nobody else could be elected, so it says of each partition why there is no election."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from pykafkad import errors
from pykafkad.handlers import elect_leaders
from pykafkad.messages import ElectLeadersRequest
from tests.unit.metadata_fakes import call, creatable, create, open_broker

PREFERRED, UNCLEAN = 0, 1
NOT_NEEDED = (errors.ELECTION_NOT_NEEDED, "Leader election not needed for topic partition.")


@pytest.fixture
def broker(tmp_path: Path) -> Any:
    """With the topic `t`, whose second partition of three has no leader."""
    broker = open_broker(tmp_path)
    create(broker, creatable("t", 3))
    broker.image.topics["t"].partitions[1].leader = -1
    return broker


def told(
    broker: Any, asked: list[tuple[str, list[int]]] | None, version: int = 2, **fields: Any
) -> tuple[int, list[tuple[str, int, int, str | None]]]:
    """The error of the whole request, and (topic, partition, error, text) of each."""
    topics = None
    if asked is not None:
        kind = ElectLeadersRequest.TopicPartitions
        topics = [kind(topic=name, partitions=partitions) for name, partitions in asked]
    fields = {"election_type": PREFERRED, "timeout_ms": 1000, **fields}
    answer = call(broker, elect_leaders, version, topic_partitions=topics, **fields)
    rows = [
        (topic.topic, row.partition_id, row.error_code, row.error_message)
        for topic in answer.replica_election_results
        for row in topic.partition_result
    ]
    return answer.error_code, rows


@pytest.mark.parametrize(
    ("kind", "code"),
    [
        (PREFERRED, errors.PREFERRED_LEADER_NOT_AVAILABLE),
        (UNCLEAN, errors.ELIGIBLE_LEADERS_NOT_AVAILABLE),
    ],
)
def test_a_leader_is_not_elected_again_and_nobody_is_there_to_follow_none(
    broker: Any, kind: int, code: int
) -> None:
    assert told(broker, [("t", [0, 1, 2])], election_type=kind) == (
        errors.NONE,
        [("t", 0, *NOT_NEEDED), ("t", 1, code, errors.MESSAGES[code]), ("t", 2, *NOT_NEEDED)],
    )


def test_of_all_partitions_those_that_need_no_election_are_left_out(broker: Any) -> None:
    code, rows = told(broker, None)
    assert code == errors.NONE
    assert [row[:3] for row in rows] == [("t", 1, errors.PREFERRED_LEADER_NOT_AVAILABLE)]


def test_what_is_not_there_is_told(broker: Any) -> None:
    unknown = errors.UNKNOWN_TOPIC_OR_PARTITION
    assert told(broker, [("t", [3, -1, 2]), ("u", [0])]) == (
        errors.NONE,
        [
            ("t", 3, unknown, "No such partition as t-3"),
            ("t", -1, unknown, "No such partition as t--1"),
            ("t", 2, *NOT_NEEDED),
            ("u", 0, unknown, "No such topic as u"),
        ],
    )


def test_nothing_is_elected_of_nothing(broker: Any) -> None:
    assert told(broker, []) == (errors.NONE, [])
    assert told(broker, [], election_type=7, timeout_ms=0) == (errors.NONE, [])


@pytest.mark.parametrize(
    ("version", "fields", "code", "text"),
    [
        (1, {"election_type": 2}, errors.INVALID_REQUEST, "Unknown election type 2"),
        (2, {"election_type": -1}, errors.INVALID_REQUEST, "Unknown election type -1"),
        (0, {"timeout_ms": 0}, errors.REQUEST_TIMED_OUT, None),
        (1, {"timeout_ms": 0}, errors.REQUEST_TIMED_OUT, None),
        (2, {"timeout_ms": -1, "election_type": 2}, errors.REQUEST_TIMED_OUT, None),
    ],
)
def test_a_refusal_is_of_the_whole_and_of_each_partition(
    broker: Any, version: int, fields: dict[str, int], code: int, text: str | None
) -> None:
    of_all, rows = told(broker, [("t", [0, 1]), ("u", [5])], version, **fields)
    assert of_all == (code if version else errors.NONE), "version 0 has no field for it"
    assert rows == [("t", 0, code, text), ("t", 1, code, text), ("u", 5, code, text)]
    assert told(broker, None, version, **fields) == (of_all, [])


def test_with_a_millisecond_there_is_time(broker: Any) -> None:
    assert told(broker, [("t", [0])], timeout_ms=1) == (errors.NONE, [("t", 0, *NOT_NEEDED)])


def test_a_name_that_no_answer_can_hold_is_our_fault(broker: Any) -> None:
    """As in Kafka, which fails to write it."""
    name = "n" * 32_767
    assert told(broker, [(name, [0])]) == (
        errors.UNKNOWN_SERVER_ERROR,
        [(name, 0, errors.UNKNOWN_SERVER_ERROR, None)],
    )
