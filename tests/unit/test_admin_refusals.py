"""What administrators are refused, in Kafka's words: deletions, users, voters, brokers, endpoints."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from pykafkad import errors
from pykafkad import messages as m
from pykafkad.handlers import (
    add_raft_voter,
    delete_topics,
    describe_cluster,
    describe_user_scram_credentials,
    remove_raft_voter,
    unregister_broker,
)
from pykafkad.slices import finish
from pykafkad.uuids import ZERO
from tests.unit.metadata_fakes import FakeContext, call, creatable, create, handled, open_broker

INVALID, UNKNOWN = errors.INVALID_REQUEST, errors.UNKNOWN_TOPIC_OR_PARTITION
NEITHER = "Neither topic name nor id were specified."
BOTH = "You may not specify both topic name and topic id."
SAME = "The provided topic name maps to an ID that was already supplied."
NO_TOPIC = "This server does not host this topic-partition."
NO_ID = "This server does not host this topic ID."
OTHER_ID = b"\5" * 16


@pytest.fixture
def broker(tmp_path: Path) -> Any:
    made = open_broker(tmp_path)
    create(made, creatable("orders"), creatable("bills"))
    return made


# -- deletions of topics


def deleted(broker: Any, *topics: tuple[str | None, bytes], version: int = 6) -> list[tuple[Any, ...]]:
    kind = m.DeleteTopicsRequest.DeleteTopicState
    asked = [kind(name=name, topic_id=topic_id) for name, topic_id in topics]
    names = [name for name, _ in topics]
    fields: dict[str, Any] = {"topics": asked} if version >= 6 else {"topic_names": names}
    answer = call(broker, delete_topics, version, timeout_ms=1, **fields)
    return [(row.name, row.topic_id != ZERO, row.error_code, row.error_message) for row in answer.responses]


def test_topics_are_deleted_by_name_or_by_id(broker: Any) -> None:
    orders, bills = (broker.image.topics[name].id for name in ("orders", "bills"))
    assert deleted(broker, ("orders", ZERO), (None, bills)) == [
        ("bills", True, 0, None),
        ("orders", True, 0, None),
    ]
    assert not broker.image.topics
    assert deleted(broker, ("orders", ZERO), (None, orders)) == [
        (None, True, errors.UNKNOWN_TOPIC_ID, NO_ID),
        ("orders", False, UNKNOWN, NO_TOPIC),
    ]


def test_what_does_not_name_one_topic_deletes_none(broker: Any) -> None:
    orders, bills = (broker.image.topics[name].id for name in ("orders", "bills"))
    assert deleted(broker, (None, ZERO), ("orders", orders)) == [
        (None, False, INVALID, NEITHER),
        ("orders", True, INVALID, BOTH),
    ]
    assert deleted(broker, ("orders", ZERO), ("orders", ZERO)) == [
        ("orders", False, INVALID, "Duplicate topic name.")
    ]
    assert deleted(broker, (None, bills), (None, bills)) == [(None, True, INVALID, "Duplicate topic id.")]
    assert deleted(broker, ("orders", ZERO), (None, orders)) == [("orders", True, INVALID, SAME)]
    assert set(broker.image.topics) == {"orders", "bills"}


@pytest.mark.parametrize("version", [1, 5])
def test_older_clients_name_topics(broker: Any, version: int) -> None:
    found = deleted(broker, ("orders", ZERO), ("none", ZERO), version=version)
    texts = (None, NO_TOPIC) if version >= 5 else (None, None)
    assert found == [("orders", False, 0, texts[0]), ("none", False, UNKNOWN, texts[1])]
    assert set(broker.image.topics) == {"bills"}


def test_no_time_is_no_deletion(broker: Any) -> None:
    for timeout_ms in (0, -1):
        answer = call(broker, delete_topics, 5, topic_names=["orders"], timeout_ms=timeout_ms)
        assert [(row.name, row.error_code) for row in answer.responses] == [
            ("orders", errors.REQUEST_TIMED_OUT)
        ]
    assert "orders" in broker.image.topics


def test_on_zookeeper_who_is_named_twice_is_answered_twice_and_without_words(tmp_path: Path) -> None:
    broker = open_broker(tmp_path, zookeeper_connect="localhost:1", broker_id="1")
    create(broker, creatable("orders"))
    assert deleted(broker, ("none", ZERO), ("orders", ZERO), ("orders", ZERO)) == [
        ("orders", True, 0, None),
        ("orders", True, 0, None),
        ("none", False, UNKNOWN, None),
    ]
    assert (
        deleted(broker, (None, OTHER_ID), (None, OTHER_ID))
        == [(None, True, errors.UNKNOWN_TOPIC_ID, None)] * 2
    )


def test_only_the_controller_of_a_cluster_deletes(tmp_path: Path) -> None:
    broker = open_broker(tmp_path, zookeeper_connect="localhost:1", broker_id="1")
    create(broker, creatable("orders"))
    broker.cluster = SimpleNamespace(controlling=SimpleNamespace(is_active=False))
    assert [row[2] for row in deleted(broker, ("orders", ZERO))] == [errors.NOT_CONTROLLER]
    assert "orders" in broker.image.topics


# -- users


def scram(broker: Any, *names: str) -> list[tuple[Any, ...]]:
    kind = m.DescribeUserScramCredentialsRequest
    users = [kind.UserName(name=name) for name in names] or None
    answer = call(broker, describe_user_scram_credentials, 0, users=users)
    assert (answer.error_code, answer.error_message) == (0, "")
    return [
        (
            row.user,
            row.error_code,
            row.error_message,
            [(each.mechanism, each.iterations) for each in row.credential_infos],
        )
        for row in answer.results
    ]


def test_users_are_described_who_are_known_and_named_once(broker: Any) -> None:
    for name, mechanism in (("ann", 2), ("ann", 1), ("bob", 1)):
        broker.image.apply(
            m.UserScramCredentialRecord(name=name, mechanism=mechanism, iterations=4096 * mechanism)
        )
    ann, bob = ("ann", 0, "", [(1, 4096), (2, 8192)]), ("bob", 0, "", [(1, 4096)])
    assert scram(broker) == [ann, bob] and scram(broker, "bob") == [bob]
    twice = "Cannot describe SCRAM credentials for the same user twice in a single request: ann"
    missing = "Attempt to describe a user credential that does not exist: eve"
    assert scram(broker, "ann", "eve", "ann", "bob") == [
        ("ann", errors.DUPLICATE_RESOURCE, twice, []),
        ("eve", errors.RESOURCE_NOT_FOUND, missing, []),
        bob,
    ]


def test_a_text_that_no_answer_can_have_is_everybodys_error(broker: Any) -> None:
    kind = m.DescribeUserScramCredentialsRequest
    users = [kind.UserName(name=name) for name in ("x" * 32_767, "bob")]
    request = kind(users=users)
    answer = finish(describe_user_scram_credentials.handle(broker, request, FakeContext(0)))  # type: ignore[arg-type]
    unknown = errors.UNKNOWN_SERVER_ERROR
    assert answer.error_code == unknown and [row.error_code for row in answer.results] == [unknown] * 2


# -- voters


def voter(broker: Any, handler: Any, version: int, **fields: Any) -> tuple[int, str | None]:
    answer = call(broker, handler, version, **fields)
    return answer.error_code, answer.error_message


@pytest.mark.parametrize(
    ("handler", "version", "word", "verb"),
    [(add_raft_voter, 1, "Add", "adding"), (remove_raft_voter, 0, "Remove", "removing")],
)
def test_a_quorum_whose_voters_the_log_does_not_name_stays_as_it_is(
    broker: Any, handler: Any, version: int, word: str, verb: str
) -> None:
    point = m.AddRaftVoterRequest.Listener(name="controller", host="h", port=1)
    more = {"listeners": [point]} if handler is add_raft_voter else {}
    good = {"cluster_id": None, "voter_id": 0, "voter_directory_id": OTHER_ID, **more}
    why = f"Cluster doesn't support {verb} voter because the kraft.version feature is 0"
    for cluster_id in (None, broker.cluster_id):
        found = voter(broker, handler, version, **{**good, "cluster_id": cluster_id})
        assert found == (errors.UNSUPPORTED_VERSION, why)
    why = f'The given id "x" doesn\'t match the cluster id "{broker.cluster_id}"'
    assert voter(broker, handler, version, **{**good, "cluster_id": "x"}) == (
        errors.INCONSISTENT_CLUSTER_ID,
        why,
    )
    for bad in ({"voter_id": -1}, {"voter_directory_id": ZERO}):
        why = f"{word} voter request didn't include a valid voter"
        assert voter(broker, handler, version, **{**good, **bad}) == (INVALID, why)


def test_a_voter_is_reached_by_the_controllers_listener(broker: Any) -> None:
    points = [m.AddRaftVoterRequest.Listener(name=name, host="h", port=5) for name in ("a", "B")]
    fields = {"cluster_id": None, "voter_id": 2, "voter_directory_id": OTHER_ID}
    shown = "ListenerName(A)=h/<unresolved>:5, ListenerName(B)=h/<unresolved>:5"
    why = (
        f"Add voter request didn't include the endpoint (Endpoints(endpoints={{{shown}}})) for the default"
        " listener ListenerName(CONTROLLER)"
    )
    assert voter(broker, add_raft_voter, 1, listeners=points, **fields) == (INVALID, why)


# -- brokers


def test_a_broker_is_forgotten_that_is_known_and_is_another_one(broker: Any) -> None:
    broker.image.apply(m.RegisterBrokerRecord(broker_id=5, broker_epoch=9))
    assert voter(broker, unregister_broker, 0, broker_id=6) == (
        errors.BROKER_ID_NOT_REGISTERED,
        "Broker ID 6 is not currently registered",
    )
    assert voter(broker, unregister_broker, 0, broker_id=1) == (
        INVALID,
        "Broker 1 serves this request and is the only one of its cluster",
    )
    assert voter(broker, unregister_broker, 0, broker_id=5) == (0, "")
    assert set(broker.image.brokers) == {1}


@pytest.mark.parametrize(
    ("wanted", "code", "why"),
    [
        (1, 0, None),
        (
            2,
            errors.MISMATCHED_ENDPOINT_TYPE,
            "The request was sent to an endpoint of type BROKER, but we wanted an endpoint of type CONTROLLER",
        ),
        (3, errors.UNSUPPORTED_ENDPOINT_TYPE, "Unsupported endpoint type 3"),
        (0, errors.UNSUPPORTED_ENDPOINT_TYPE, "Unsupported endpoint type 0"),
    ],
)
def test_brokers_describe_brokers(broker: Any, wanted: int, code: int, why: str | None) -> None:
    request = m.DescribeClusterRequest(endpoint_type=wanted)
    answer = handled(broker, describe_cluster, request, FakeContext(2))
    assert (answer.error_code, answer.error_message) == (code, why)
    assert [each.broker_id for each in answer.brokers] == ([] if code else [1])
    assert answer.cluster_id == ("" if code else broker.cluster_id)
