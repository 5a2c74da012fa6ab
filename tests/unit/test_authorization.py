"""What must be allowed for every API, and that none is served without it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from pykafkad import errors, messages
from pykafkad.handlers import APIS, Api, cluster_apis, kraft_apis
from pykafkad.handlers.authorized import guarded
from pykafkad.handlers.permits import Permits
from pykafkad.hot.wire import fields
from pykafkad.pure import authorization
from pykafkad.pure.authorization import (
    ALTER_CONFIGS,
    ANONYMOUS,
    CLUSTER,
    DENIED,
    DESCRIBE,
    GROUP,
    TOPIC,
    WRITE,
    Need,
    Principal,
    on_configs,
)
from tests.unit.data_kit import Desk, batch

KAFKA = json.loads((Path(__file__).parents[2] / "protocol" / "authorization.json").read_text())["apis"]
RESOURCES = {"Topic": 2, "Group": 3, "Cluster": 4, "TransactionalId": 5}
NOT_SERVED = {"TWO_PHASE_COMMIT TransactionalId"}  # a field of InitProducerId's version 6
Asked = tuple[int, int, str]
OPERATIONS = (
    "READ WRITE CREATE DELETE ALTER DESCRIBE CLUSTER_ACTION DESCRIBE_CONFIGS ALTER_CONFIGS IDEMPOTENT_WRITE"
)


def test_operations_and_resources_have_kafkas_numbers() -> None:
    """Of org.apache.kafka.common.acl.AclOperation, .resource.ResourceType and .config.ConfigResource.Type."""
    needs = [Need(getattr(authorization, name), TOPIC) for name in OPERATIONS.split()]
    assert [need.operation for need in needs] == list(range(3, 13))
    assert (TOPIC, GROUP, CLUSTER, authorization.TRANSACTIONAL_ID) == (2, 3, 4, 5)
    assert (authorization.CONFIGS_OF_A_TOPIC, authorization.CONFIGS_OF_A_GROUP) == (2, 32)


def test_configs_belong_to_their_topic_or_group_and_all_others_to_the_cluster() -> None:
    kind = messages.IncrementalAlterConfigsRequest

    def needed(*resources: tuple[int, str]) -> list[tuple[int, str]]:
        rows = [kind.AlterConfigsResource(resource_type=each, resource_name=name) for each, name in resources]
        return [
            (need.resource, name)
            for need in on_configs(ALTER_CONFIGS)
            for row in rows
            if (name := need.name_in(row, 0, lambda topic_id: None)) is not None
        ]

    cluster = (CLUSTER, "kafka-cluster")
    assert needed((2, "t"), (32, "g")) == [(TOPIC, "t"), (GROUP, "g")]
    assert needed((4, "1"), (16, "m")) == [cluster, cluster]
    assert needed((4, "1"), (2, "t")) == [(TOPIC, "t"), cluster]


class Book:
    """An authorizer that denies what a test says, and notes what it was asked."""

    def __init__(self, *denied: tuple[int | None, int | None, str | None]) -> None:
        self.denied = denied
        self.asked: list[Asked] = []
        self.noted: list[Asked] = []
        self.some: set[tuple[int, int]] = set()

    def allows(self, principal: Principal, host: str, operation: int, resource: int, name: str) -> bool:
        assert principal is ANONYMOUS and host == "127.0.0.1"
        self.asked.append((operation, resource, name))
        asked = (operation, resource, name)
        return not any(
            all(part in (None, given) for part, given in zip(row, asked, strict=True)) for row in self.denied
        )

    def allows_some(self, principal: Principal, host: str, operation: int, resource: int) -> bool:
        return (operation, resource) in self.some

    def note_denied(self, principal: Principal, host: str, operation: int, resource: int, name: str) -> None:
        self.noted.append((operation, resource, name))


EVERYTHING = (None, None, None)


def desk(path: Path, book: Book) -> Desk:
    made = Desk(path)
    made.authorizer = book
    return made


def spoken(need: Need) -> set[str]:
    """A need in the words of protocol/authorization.json, one for each alternative."""
    operations = {getattr(authorization, name): name for name in OPERATIONS.split()}
    resources = {number: name for name, number in RESOURCES.items()}
    ways = {f"{operations[need.operation]} {resources[need.resource]}"}
    if need.or_on_cluster is not None:
        ways.add(f"{operations[need.or_on_cluster]} Cluster")
    if need.or_on_some_topic is not None:
        ways.add(f"{operations[need.or_on_some_topic]} some Topic")
    return ways


@pytest.mark.parametrize("api", APIS.values(), ids=lambda api: api.name)
def test_every_api_declares_what_kafka_asks_for(api: Api) -> None:
    needs = api.load().needs
    declared = {frozenset(spoken(need)) for need in needs}
    kafkas = {
        frozenset(row.removeprefix("filter ").split(" | "))
        for row in KAFKA[api.name]
        if row not in NOT_SERVED
    }
    assert declared == kafkas
    assert all(need.by_handler or need.path or need.resource == CLUSTER for need in needs), (
        "who checks it must know its name"
    )
    left_out = {frozenset(row[7:].split(" | ")) for row in KAFKA[api.name] if row.startswith("filter ")}
    assert left_out <= {frozenset(spoken(need)) for need in needs if need.by_handler}


@pytest.mark.parametrize(
    "apis", [APIS, cluster_apis.APIS, kraft_apis.APIS], ids=["one", "zookeeper", "kraft"]
)
def test_every_api_can_be_guarded(apis: dict[int, Api]) -> None:
    for api in apis.values():
        assert callable(guarded(api, api.load(), Book()))


def filled(kind: Any, version: int) -> Any:
    """A message with one element in each array, and a name in each text."""
    made = kind()
    for field in fields(kind):
        if not field.versions[0] <= version <= field.versions[1]:
            continue
        if field.type.startswith("[]"):
            element = (
                filled(field.struct, version) if field.struct else "x" if field.type == "[]string" else 0
            )
            setattr(made, field.attribute, [element])
        elif field.type == "string" and not field.attribute.startswith(("rack", "group_instance")):
            setattr(made, field.attribute, "x")
    return made


def refusable() -> Iterator[Any]:
    for api in APIS.values():
        if not any(not need.by_handler for need in api.load().needs):
            continue
        kind = getattr(messages, f"{api.name}Request")
        for version in range(max(api.versions[0], kind.min_version), api.versions[1] + 1):
            yield pytest.param(api, version, id=f"{api.name}-{version}")


def codes(answer: Any) -> Iterator[int]:
    if isinstance(answer, list):
        for element in answer:
            yield from codes(element)
    elif hasattr(answer, "unknown_tags"):
        for field in fields(type(answer)):
            if field.attribute in ("error_code", "partition_error_code"):
                yield getattr(answer, field.attribute)
            elif field.struct:
                yield from codes(getattr(answer, field.attribute))


@pytest.mark.parametrize(("api", "version"), list(refusable()))
def test_no_api_goes_on_without_it(
    api: Api, version: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    book = Book(EVERYTHING)
    desk_ = desk(tmp_path, book)
    monkeypatch.setattr(api.load(), "handle", lambda *_: pytest.fail("the handler was called"))
    request = filled(getattr(messages, f"{api.name}Request"), version)
    if api.name in ("Produce", "Fetch", "OffsetCommit", "OffsetFetch"):
        desk_.create("x")
        for topic in topics_of(request):
            if hasattr(topic, "topic_id"):
                topic.topic_id = (
                    desk_.image.topics["x"].id if not topic_name(topic, version) else topic.topic_id
                )
    if api.name == "Produce":
        request.acks = -1
    if api.name == "DescribeConfigs":
        request.resources[0].resource_type = authorization.CONFIGS_OF_A_TOPIC
    answer = desk_.ask(request, version)
    assert book.asked
    if api.name != "DescribeLogDirs" or version >= 3:  # which has no field for it in earlier versions
        assert set(codes(answer)) & set(DENIED.values())
    assert set(codes(answer)) <= {*DENIED.values(), errors.NONE}


def topics_of(request: Any) -> Iterator[Any]:
    for field in fields(type(request)):
        value = getattr(request, field.attribute)
        if field.type.startswith("[]") and field.struct and value:
            for element in value:
                yield element
                yield from topics_of(element)


def topic_name(topic: Any, version: int) -> str:
    names = [
        getattr(topic, field.attribute)
        for field in fields(type(topic))
        if field.attribute in ("name", "topic") and field.versions[0] <= version <= field.versions[1]
    ]
    return names[0] if names else ""


def test_names_come_from_ids(tmp_path: Path) -> None:
    book = Book((WRITE, TOPIC, "secret"))
    desk_ = desk(tmp_path, book)
    secret, known = desk_.create("secret"), desk_.create("known")
    kind = messages.ProduceRequest
    topics = [
        kind.TopicProduceData(
            topic_id=each, partition_data=[kind.PartitionProduceData(index=3, records=batch(b"a"))]
        )
        for each in (secret, bytes(15) + b"?", known)
    ]
    answer = desk_.ask(kind(acks=-1, topic_data=topics), 13)
    assert book.asked == [(WRITE, TOPIC, "secret"), (WRITE, TOPIC, "known")]
    found = {
        topic.topic_id: [(part.index, part.error_code) for part in topic.partition_responses]
        for topic in answer.responses
    }
    assert found == {
        topics[1].topic_id: [(3, errors.UNKNOWN_TOPIC_ID)],
        known: [(3, errors.UNKNOWN_TOPIC_OR_PARTITION)],
        secret: [(3, errors.TOPIC_AUTHORIZATION_FAILED)],
    }


def test_the_cluster_is_enough_instead(tmp_path: Path) -> None:
    kind = messages.OffsetForLeaderEpochRequest
    request = kind(replica_id=-2, topics=[kind.OffsetForLeaderTopic(topic="t", partitions=[])])
    book = Book((DESCRIBE, TOPIC, "t"))
    assert set(codes(desk(tmp_path / "a", book).ask(request, 4))) == set()  # the handler's answer
    book = Book((DESCRIBE, TOPIC, "t"), (authorization.CLUSTER_ACTION, CLUSTER, authorization.THE_CLUSTER))
    desk_ = desk(tmp_path / "b", book)
    desk_.ask(request, 4)
    assert book.asked[-1] == (authorization.CLUSTER_ACTION, CLUSTER, "kafka-cluster")


def test_what_is_enough_instead() -> None:
    context: Any = SimpleNamespace(principal=ANONYMOUS, connection=SimpleNamespace(peer=("127.0.0.1", 1)))
    plain = Need(DESCRIBE, TOPIC, "t")
    on_cluster = Need(DESCRIBE, TOPIC, "t", or_on_cluster=authorization.ALTER)
    on_some = Need(DESCRIBE, TOPIC, "t", or_on_some_topic=WRITE)

    def allowed(book: Book) -> list[bool]:
        return [Permits(book, context).satisfy(need, "t") for need in (plain, on_cluster, on_some)]

    assert not plain.by_handler and str(context.principal) == "User:ANONYMOUS"
    assert allowed(Book()) == [True] * 3
    book = Book(EVERYTHING)
    assert allowed(book) == [False] * 3
    book.some = {(WRITE, TOPIC)}
    assert allowed(book) == [False, False, True]
    assert allowed(Book((None, TOPIC, None))) == [False, True, False]


def test_some_topic_is_enough_for_a_producer_id(tmp_path: Path) -> None:
    request = messages.InitProducerIdRequest(transactional_id="", producer_id=5, producer_epoch=-1)
    request.transactional_id = None
    book = Book(EVERYTHING)
    desk_ = desk(tmp_path, book)
    assert desk_.ask(request, 4).error_code == errors.CLUSTER_AUTHORIZATION_FAILED
    book.some = {(WRITE, TOPIC)}
    assert desk_.ask(request, 4).error_code == errors.INVALID_REQUEST  # the handler's


def test_a_follower_is_asked_for_as_one(tmp_path: Path) -> None:
    book = Book()
    desk_ = desk(tmp_path, book)
    topic_id = desk_.create("t")
    kind = messages.FetchRequest
    parts = [kind.FetchPartition(partition=0)]
    topics = [kind.FetchTopic(topic_id=topic_id, topic="t", partitions=parts)]
    desk_.ask(kind(max_wait_ms=0, topics=topics, replica_id=2), 12)
    desk_.ask(kind(max_wait_ms=0, topics=topics, replica_state=kind.ReplicaState(replica_id=2)), 17)
    desk_.ask(kind(max_wait_ms=0, topics=topics), 17)
    action = (authorization.CLUSTER_ACTION, CLUSTER, "kafka-cluster")
    assert book.asked == [action, action, (authorization.READ, TOPIC, "t")]


def test_many_names_are_checked_in_slices(tmp_path: Path) -> None:
    book = Book()
    desk_ = desk(tmp_path, book)
    desk_.slices._clock = SlowClock()  # type: ignore[assignment]
    names = [f"g{number}" for number in range(5000)]
    desk_.send(messages.DeleteGroupsRequest(groups_names=names), 2)
    assert 0 < len(book.asked) < 2000
    while len(book.asked) < 5000:
        before = len(book.asked)
        desk_.advance(0)
        assert before < len(book.asked) < before + 2000
    assert set(book.asked) == {(authorization.DELETE, GROUP, name) for name in names}


def test_what_is_left_of_many_elements_is_answered_with_the_refusals(tmp_path: Path) -> None:
    """What is left is so little that it is answered at once."""
    denied = [f"t{number}" for number in range(1000)]
    book = Book(*[(None, None, name) for name in denied])
    desk_ = desk(tmp_path, book)
    desk_.create("open")
    desk_.slices._clock = SlowClock()  # type: ignore[assignment]
    kind = messages.ListOffsetsRequest
    parts = [kind.ListOffsetsPartition(partition_index=0, timestamp=-1)]
    topics = [kind.ListOffsetsTopic(name=name, partitions=parts) for name in (*denied, "open")]
    given = desk_.send(kind(replica_id=-1, topics=topics), 7)
    while given.parts is None:
        desk_.advance(0)
        desk_.end_pass()
        assert desk_.timers or given.parts is not None, desk_.connection.closed
    answer = desk_.answer_of(given, "ListOffsetsRequest", 7)
    assert [(topic.name, topic.partitions[0].error_code) for topic in answer.topics] == [
        ("open", errors.NONE),
        *((name, errors.TOPIC_AUTHORIZATION_FAILED) for name in denied),
    ]


def test_many_elements_are_checked_and_refused_in_slices(tmp_path: Path) -> None:
    book = Book(*[(None, None, f"t{number}") for number in range(0, 3000, 2)])
    desk_ = desk(tmp_path, book)
    desk_.slices._clock = SlowClock()  # type: ignore[assignment]
    kind = messages.ListOffsetsRequest
    parts = [kind.ListOffsetsPartition(partition_index=0, timestamp=-1)]
    names = [f"t{number}" for number in (*range(3000), *range(3000))]
    topics = [kind.ListOffsetsTopic(name=name, partitions=parts) for name in names]
    given = desk_.send(kind(replica_id=-1, topics=topics), 7)
    asked = [len(book.asked)]
    while given.parts is None:
        desk_.advance(0)
        asked.append(len(book.asked))
    steps = [after - before for before, after in pairwise(asked)]
    assert 0 < asked[0] < 2000 and max(steps) < 500
    assert book.asked == [(DESCRIBE, TOPIC, name) for name in names[:3000]]  # each of them once
    answer = desk_.answer_of(given, "ListOffsetsRequest", 7)
    codes_of = [(topic.name, topic.partitions[0].error_code) for topic in answer.topics]
    assert codes_of == [
        *((name, errors.INVALID_REQUEST) for name in names[1:3000:2]),  # it is asked for twice
        *((name, errors.TOPIC_AUTHORIZATION_FAILED) for name in names[::2]),
    ]


class SlowClock:
    """A clock that moves on by half a millisecond with each look."""

    _us = 0

    def monotonic_us(self) -> int:
        self._us += 500
        return self._us
