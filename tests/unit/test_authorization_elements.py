"""What becomes of requests of which a part is denied: that part is refused or left out, the rest is answered."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from pykafkad import errors, messages
from pykafkad.handlers import (
    alter_configs,
    alter_partition_reassignments,
    create_partitions,
    create_topics,
    delete_topics,
    describe_cluster,
    describe_topic_partitions,
    incremental_alter_configs,
    leader_and_isr,
    list_partition_reassignments,
    stop_replica,
)
from pykafkad.hot.wire import fields
from pykafkad.pure.authorization import (
    ALTER_CONFIGS,
    CLUSTER,
    CLUSTER_ACTION,
    CREATE,
    DELETE,
    DENIED,
    DESCRIBE,
    READ,
)
from pykafkad.slices import finish, is_work
from tests.unit.coordinator_kit import GroupDesk
from tests.unit.data_kit import batch, fetch, produce, values_of
from tests.unit.metadata_fakes import FakeContext, call, creatable, create, open_broker

OPEN, SECRET, NEITHER = "open", "secret", "secret-none"
REFUSALS = set(DENIED.values())


class Secrets:
    """An authorizer that denies what is on names that begin with "secret", and operations on the cluster at will."""

    def __init__(self, *on_cluster: int) -> None:
        self.on_cluster = on_cluster
        self.allowed: set[tuple[int, str]] = set()  # though they are secret

    def allows(self, principal: Any, host: str, operation: int, resource: int, name: str) -> bool:
        if resource == CLUSTER:
            return operation in self.on_cluster
        assert name, "nobody asks for what a version has not"
        return not name.startswith(SECRET) or (operation, name) in self.allowed

    def allows_some(self, principal: Any, host: str, operation: int, resource: int) -> bool:
        return True

    def note_denied(self, principal: Any, host: str, operation: int, resource: int, name: str) -> None:
        assert not self.allows(principal, host, operation, resource, name)


@pytest.fixture
def desk(tmp_path: Path) -> GroupDesk:
    made = GroupDesk(tmp_path)
    made.create("__transaction_state", 1, cleanup_policy="compact")
    for name in (OPEN, SECRET):
        made.create(name)
    made.authorizer = Secrets()
    nothing: Any = SimpleNamespace(is_auto_creating=lambda topic: False)
    made.controller = nothing
    connection: Any = made.connection
    connection.listener = SimpleNamespace(owner=SimpleNamespace(name="PLAINTEXT"))
    return made


NAMES = (SECRET, OPEN, NEITHER)


def produced(desk: GroupDesk) -> Any:
    request = produce(SECRET, 0, batch(b"a"))
    request.topic_data += (
        produce(OPEN, 0, batch(b"a")).topic_data + produce(NEITHER, 0, batch(b"a")).topic_data
    )
    return request


def fetched(desk: GroupDesk) -> Any:
    request = fetch(SECRET, {"partition": 0})
    request.topics += fetch(OPEN, {"partition": 0}).topics + fetch(NEITHER, {"partition": 0}).topics
    return request


def of_topics(kind: Any, topic: str, part: Any, field: str = "partitions", **rest: Any) -> Any:
    topics = [getattr(kind, topic)(**{"name": name, field: [part]}) for name in NAMES]
    return kind(topics=topics, **rest)


def epochs(desk: GroupDesk) -> Any:
    kind = messages.OffsetForLeaderEpochRequest
    part = kind.OffsetForLeaderPartition(current_leader_epoch=-1)
    return kind(topics=[kind.OffsetForLeaderTopic(topic=name, partitions=[part]) for name in NAMES])


def offsets_of_groups(desk: GroupDesk) -> Any:
    kind = messages.OffsetFetchRequest
    groups = [kind.OffsetFetchRequestGroup(group_id=name, topics=[]) for name in NAMES]
    return kind(groups=groups)


def offsets_of_topics(desk: GroupDesk) -> Any:
    kind = messages.OffsetFetchRequest
    topics = [kind.OffsetFetchRequestTopics(name=name, partition_indexes=[0]) for name in NAMES]
    return kind(groups=[kind.OffsetFetchRequestGroup(group_id="g", topics=topics)])


def partitions_of_a_transaction(desk: GroupDesk) -> Any:
    kind = messages.AddPartitionsToTxnRequest
    topics = [kind.AddPartitionsToTxnTopic(name=name, partitions=[0]) for name in NAMES]
    return kind(v3_and_below_transactional_id="t", v3_and_below_topics=topics)


CASES: list[tuple[int, Any]] = [
    (11, produced),
    (12, fetched),
    (7, lambda _: of_topics(messages.ListOffsetsRequest, "ListOffsetsTopic",
                            messages.ListOffsetsRequest.ListOffsetsPartition(timestamp=-1))),
    (8, lambda _: of_topics(messages.OffsetCommitRequest, "OffsetCommitRequestTopic",
                            messages.OffsetCommitRequest.OffsetCommitRequestPartition(committed_offset=1),
                            group_id="g")),
    (3, lambda _: of_topics(messages.TxnOffsetCommitRequest, "TxnOffsetCommitRequestTopic",
                            messages.TxnOffsetCommitRequest.TxnOffsetCommitRequestPartition(committed_offset=1),
                            group_id="g", transactional_id="t")),
    (0, lambda _: of_topics(messages.OffsetDeleteRequest, "OffsetDeleteRequestTopic",
                            messages.OffsetDeleteRequest.OffsetDeleteRequestPartition(), group_id="gone")),
    (2, lambda _: of_topics(messages.DeleteRecordsRequest, "DeleteRecordsTopic",
                            messages.DeleteRecordsRequest.DeleteRecordsPartition())),
    (0, lambda _: of_topics(messages.DescribeProducersRequest, "TopicRequest", 0, "partition_indexes")),
    (4, epochs),
    (8, offsets_of_groups),
    (8, offsets_of_topics),
    (5, lambda _: messages.FindCoordinatorRequest(coordinator_keys=list(NAMES))),
    (5, lambda _: messages.FindCoordinatorRequest(key_type=1, coordinator_keys=list(NAMES))),
    (5, lambda _: messages.DescribeGroupsRequest(groups=list(NAMES))),
    (2, lambda _: messages.DeleteGroupsRequest(groups_names=list(NAMES))),
    (1, lambda _: messages.ConsumerGroupDescribeRequest(group_ids=list(NAMES))),
    (0, lambda _: messages.DescribeTransactionsRequest(transactional_ids=list(NAMES))),
    (3, partitions_of_a_transaction),
]  # fmt: skip


def rows_of(answer: Any) -> Iterator[Any]:
    """The elements of an answer that have one of the names, however deep."""
    for field in fields(type(answer)):
        value = getattr(answer, field.attribute)
        for element in value if isinstance(value, list) else ():
            if hasattr(element, "unknown_tags"):
                if name_of(element) is not None:
                    yield element
                else:
                    yield from rows_of(element)


def name_of(element: Any) -> str | None:
    """The name, unless there are elements with names within."""
    own = [getattr(element, field.attribute) for field in fields(type(element)) if field.type == "string"]
    return next((text for text in own if text in NAMES), None)


def codes_of(element: Any) -> set[int]:
    found = set()
    for field in fields(type(element)):
        value = getattr(element, field.attribute)
        if field.attribute in ("error_code", "partition_error_code"):
            found.add(value)
        for inner in value if isinstance(value, list) else ():
            if hasattr(inner, "unknown_tags"):
                found |= codes_of(inner)
    return found


@pytest.mark.parametrize(("version", "build"), CASES)
def test_what_is_denied_is_refused_by_itself(desk: GroupDesk, version: int, build: Any) -> None:
    request = build(desk)
    answer = desk.ask_in_turns(request, version)
    if isinstance(
        request, messages.OffsetDeleteRequest
    ):  # whose group is not there, which is all that is said
        assert answer.error_code == errors.GROUP_ID_NOT_FOUND
        return
    told = {name_of(row): codes_of(row) for row in rows_of(answer)}
    assert told[SECRET] == told[NEITHER], "whether it is there must not be told"
    assert told[SECRET] <= REFUSALS
    assert not told[OPEN] & REFUSALS


@pytest.mark.parametrize(("version", "build"), CASES)
def test_what_is_denied_does_not_depend_on_whether_it_is_there(
    desk: GroupDesk, version: int, build: Any
) -> None:
    """If nothing is left, the answer has the refusals alone."""
    everything = desk.authorizer = Secrets()
    everything.allows = lambda principal, host, operation, resource, name: name in ("g", "t")  # type: ignore[method-assign]
    request = build(desk)
    answer = desk.ask_in_turns(request, version)
    told = [codes_of(row) for row in rows_of(answer)]
    assert all(code <= REFUSALS for code in told)


@pytest.mark.parametrize(("version", "build"), CASES)
def test_what_is_there_is_denied_all_the_same(
    desk: GroupDesk, version: int, build: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Requests that nothing else is wrong with may be handled in a shorter way."""
    monkeypatch.setattr(f"{__name__}.NAMES", (SECRET, OPEN))
    request = build(desk)
    for field in ("topic_data", "topics"):
        if hasattr(request, field) and build in (produced, fetched):
            getattr(request, field).pop()
    answer = desk.ask_in_turns(request, version)
    if isinstance(request, messages.OffsetDeleteRequest):
        return
    told = {name_of(row): codes_of(row) for row in rows_of(answer)}
    assert told[SECRET] and told[SECRET] <= REFUSALS
    assert not told[OPEN] & REFUSALS


def test_brokers_add_partitions_of_any_transaction(desk: GroupDesk) -> None:
    kind = messages.AddPartitionsToTxnRequest
    topics = [kind.AddPartitionsToTxnTopic(name=SECRET, partitions=[0])]
    request = kind(transactions=[kind.AddPartitionsToTxnTransaction(transactional_id=SECRET, topics=topics)])
    secrets: Any = desk.authorizer
    for version in (4, 5):
        secrets.on_cluster = ()
        answer = desk.ask_in_turns(request, version)
        assert answer.error_code == errors.CLUSTER_AUTHORIZATION_FAILED
        secrets.on_cluster = (CLUSTER_ACTION,)
        answer = desk.ask_in_turns(request, version)
        (transaction,) = answer.results_by_transaction
        assert answer.error_code == errors.NONE and not codes_of(transaction.topic_results[0]) & REFUSALS


@pytest.mark.parametrize("named", [{}, {"protocol_type": "consumer"}, {"protocol_name": "range"}])
def test_a_sync_that_names_no_protocol_is_told_that_first(desk: GroupDesk, named: dict[str, Any]) -> None:
    """Before anybody looks who may read from the group, as in Kafka."""
    request = messages.SyncGroupRequest(group_id=SECRET, generation_id=1, member_id="m", **named)
    assert desk.ask(request, 5).error_code == errors.INCONSISTENT_GROUP_PROTOCOL
    assert desk.ask(request, 4).error_code == errors.GROUP_AUTHORIZATION_FAILED


def test_what_is_allowed_is_done(desk: GroupDesk) -> None:
    answer = desk.ask(produced(desk), 11)
    assert [topic.name for topic in answer.responses] == [OPEN, SECRET, NEITHER]
    assert isinstance(desk.authorizer, Secrets)
    desk.authorizer.allowed = {(READ, SECRET)}
    read = {topic.topic: topic.partitions[0] for topic in desk.ask(fetched(desk), 12).responses}
    assert (values_of(read[OPEN]), values_of(read[SECRET])) == ([b"a"], [])
    assert read[NEITHER].error_code == errors.TOPIC_AUTHORIZATION_FAILED


def test_an_answer_that_comes_later_has_the_refusals_too(desk: GroupDesk) -> None:
    """A fetch waits for what is allowed."""
    request = fetched(desk)
    request.topics.pop()
    request.max_wait_ms, request.min_bytes = 500, 1
    given = desk.send(request, 12)
    desk.end_pass()
    assert given.parts is None
    desk.ask(produce(OPEN, 0, batch(b"later")), 11)
    answer = desk.answer_of(given, "FetchRequest", 12)
    assert [(topic.topic, topic.partitions[0].error_code) for topic in answer.responses] == [
        (OPEN, errors.NONE),
        (SECRET, errors.TOPIC_AUTHORIZATION_FAILED),
    ]


def test_a_large_answer_has_the_refusals_too(desk: GroupDesk) -> None:
    """It is written by a thread, and let go of then."""
    kind = messages.DescribeProducersRequest
    many = [kind.TopicRequest(name=OPEN, partition_indexes=list(range(50_000)))]
    request = kind(topics=[kind.TopicRequest(name=SECRET, partition_indexes=[0]), *many])
    answer = desk.ask_in_turns(request, 0)
    assert [(topic.name, len(topic.partitions)) for topic in answer.topics] == [(SECRET, 1), (OPEN, 50_000)]
    assert desk.connection.closed is None


@pytest.mark.parametrize("transactional_id", [None, SECRET])
def test_batches_of_transactions_need_their_id(desk: GroupDesk, transactional_id: str | None) -> None:
    request = produce(
        OPEN, 0, batch(b"a", transactional=True, producer_id=5, producer_epoch=0, base_sequence=0)
    )
    request.transactional_id = transactional_id
    (topic,) = desk.ask(request, 11).responses
    assert codes_of(topic) == {errors.TRANSACTIONAL_ID_AUTHORIZATION_FAILED}
    plain = produce(OPEN, 0, batch(b"a"))
    plain.transactional_id = SECRET
    (topic,) = desk.ask(plain, 11).responses
    assert codes_of(topic) == {errors.NONE}


@pytest.mark.parametrize("version", [9, 13])
def test_a_denied_transaction_is_refused_for_each_partition(desk: GroupDesk, version: int) -> None:
    fields: dict[str, Any] = {
        "transactional": True,
        "producer_id": 5,
        "producer_epoch": 0,
        "base_sequence": 0,
    }
    request = produce(OPEN, 0, batch(b"a"), topic_id=desk.image.topics[OPEN].id)
    request.topic_data[0].partition_data += (
        produce(OPEN, 7, batch(b"a", **fields)).topic_data[0].partition_data
    )
    request.transactional_id = SECRET
    (topic,) = desk.ask(request, version).responses
    assert topic.topic_id == desk.image.topics[OPEN].id if version == 13 else topic.name == OPEN
    denied = errors.TRANSACTIONAL_ID_AUTHORIZATION_FAILED
    assert [(row.index, row.error_code, row.base_offset) for row in topic.partition_responses] == [
        (0, denied, -1),
        (7, denied, -1),
    ]
    request.acks = 0
    assert desk.ask(request, version) is None and desk.connection.closed is not None
    assert desk.storage.partitions[OPEN, 0].log_end_offset == 0


def test_a_denial_that_is_not_answered_ends_the_connection(desk: GroupDesk) -> None:
    request = produced(desk)
    request.acks = 0
    assert desk.ask(request, 11) is None
    assert desk.connection.closed is not None
    assert values_of(desk.ask(fetched(desk), 12).responses[0].partitions[0]) == [b"a"]


def test_a_session_is_told_of_what_is_denied_until_it_is_allowed(desk: GroupDesk) -> None:
    request = fetched(desk)
    request.session_epoch = 0
    first = desk.ask(request, 12)
    session = {"session_id": first.session_id, "session_epoch": 1}
    again = desk.ask(fetch("", **session), 12)
    assert [(topic.topic, codes_of(topic)) for topic in again.responses] == [
        (SECRET, {errors.TOPIC_AUTHORIZATION_FAILED}),
        (NEITHER, {errors.TOPIC_AUTHORIZATION_FAILED}),
    ]
    assert isinstance(desk.authorizer, Secrets)
    desk.authorizer.allowed.add((READ, SECRET))
    later = desk.ask(fetch("", session_id=first.session_id, session_epoch=2), 12)
    assert [(topic.topic, codes_of(topic)) for topic in later.responses] == [
        (SECRET, {errors.NONE}),
        (NEITHER, {errors.TOPIC_AUTHORIZATION_FAILED}),
    ]


def test_one_denied_topic_keeps_the_others_out_of_a_transaction(desk: GroupDesk) -> None:
    answer = desk.ask_in_turns(partitions_of_a_transaction(desk), 3)
    rows = {row.name: codes_of(row) for row in answer.results_by_topic_v3_and_below}
    denied = {errors.TOPIC_AUTHORIZATION_FAILED}
    assert rows == {SECRET: denied, OPEN: {errors.OPERATION_NOT_ATTEMPTED}, NEITHER: denied}


def test_lists_leave_out_what_is_denied(desk: GroupDesk) -> None:
    for group_id in ("g", "secret-g"):
        desk.authorizer = None
        desk.commit(group_id, (0, 5))
        desk.authorizer = Secrets()
    listed = desk.ask(messages.ListGroupsRequest(), 5).groups
    assert [group.group_id for group in listed] == ["g"]
    desk.authorizer = Secrets(DESCRIBE)
    assert len(desk.ask(messages.ListGroupsRequest(), 5).groups) == 2


def test_offsets_of_all_topics_leave_out_those_that_are_denied(desk: GroupDesk) -> None:
    desk.authorizer = None
    desk.commit("g", (0, 5), topic=OPEN)
    desk.commit("g", (0, 6), topic=SECRET)
    desk.authorizer = Secrets()
    kind = messages.OffsetFetchRequest
    (group,) = desk.ask(kind(groups=[kind.OffsetFetchRequestGroup(group_id="g", topics=None)]), 8).groups
    assert [topic.name for topic in group.topics] == [OPEN]


def test_expressions_match_what_the_member_may_describe(desk: GroupDesk) -> None:
    kind = messages.ConsumerGroupHeartbeatRequest
    joining = kind(
        group_id="g",
        member_id="a",
        rebalance_timeout_ms=10_000,
        subscribed_topic_regex="open|secret",
        topic_partitions=[],
    )
    assert desk.ask(joining, 1).error_code == errors.NONE
    desk.settle()
    answer = desk.ask(kind(group_id="g", member_id="a", member_epoch=1), 1)
    ids = [desk.image.topics_by_id[each.topic_id].name for each in answer.assignment.topic_partitions]
    assert ids == [OPEN]


def test_a_subscription_to_what_is_denied_is_refused(desk: GroupDesk) -> None:
    kind = messages.ConsumerGroupHeartbeatRequest
    request = kind(group_id="g", member_id="a", rebalance_timeout_ms=1, topic_partitions=[])
    request.subscribed_topic_names = [OPEN, SECRET]
    answer = desk.ask(request, 1)
    assert (answer.error_code, answer.error_message) == (errors.TOPIC_AUTHORIZATION_FAILED, None)


def test_consumer_groups_with_hidden_topics_are_hidden(desk: GroupDesk) -> None:
    desk.authorizer = None
    kind = messages.ConsumerGroupHeartbeatRequest
    for group_id, name in (("g", SECRET), ("h", OPEN)):
        request = kind(group_id=group_id, member_id="a", rebalance_timeout_ms=1, topic_partitions=[])
        request.subscribed_topic_names = [name]
        assert desk.ask(request, 1).error_code == errors.NONE
    desk.authorizer = Secrets()
    answer = desk.ask(messages.ConsumerGroupDescribeRequest(group_ids=["g", "h"]), 1)
    assert [(group.error_code, len(group.members)) for group in answer.groups] == [
        (errors.TOPIC_AUTHORIZATION_FAILED, 0),
        (errors.NONE, 1),
    ]


# -- metadata


@pytest.fixture
def broker(tmp_path: Path) -> Any:
    made = open_broker(tmp_path, auto_create_topics_enable="true")
    for name in (OPEN, SECRET):
        assert create(made, creatable(name))[0].error is None
    made.authorizer = Secrets()
    return made


def metadata(broker: Any, version: int = 12, **asked: Any) -> Any:
    from pykafkad.handlers import metadata as module

    context: Any = FakeContext(version)
    kind = messages.MetadataRequest
    request = kind(**{"allow_auto_topic_creation": False, **asked})
    result: Any = module.handle_guarded(broker, request, context)
    result = finish(result) if is_work(result) else result
    return context.answers[0] if result is context else result


def topics_of(answer: Any) -> list[tuple[str | None, int]]:
    return [(topic.name, topic.error_code) for topic in answer.topics]


HIDDEN = errors.TOPIC_AUTHORIZATION_FAILED
Named = messages.MetadataRequest.MetadataRequestTopic


def test_metadata_of_all_topics(broker: Any) -> None:
    assert topics_of(metadata(broker, topics=None)) == [(OPEN, 0)]
    assert topics_of(metadata(broker, 0, topics=[])) == [(OPEN, 0)]


def test_metadata_by_name_and_by_id(broker: Any) -> None:
    answer = metadata(broker, topics=[Named(name=name) for name in NAMES])
    assert topics_of(answer) == [(OPEN, 0), (SECRET, HIDDEN), (NEITHER, HIDDEN)]
    assert [topic.topic_id for topic in answer.topics[1:]] == [bytes(16)] * 2
    ids = [broker.image.topics[name].id for name in (SECRET, OPEN)]
    answer = metadata(broker, topics=[Named(name=None, topic_id=each) for each in ids])
    assert [(topic.name, topic.topic_id, topic.error_code) for topic in answer.topics] == [
        (OPEN, ids[1], 0),
        (None, ids[0], HIDDEN),
    ]
    assert topics_of(metadata(broker, 0, topics=[Named(name=SECRET)])) == [(SECRET, HIDDEN)]


@pytest.mark.parametrize(("cluster", "is_made"), [((), False), ((CREATE,), True)])
def test_topics_are_created_for_who_may(broker: Any, cluster: tuple[int, ...], is_made: bool) -> None:
    broker.authorizer = Secrets(*cluster)
    broker.authorizer.allowed = {(DESCRIBE, NEITHER)}
    answer = metadata(broker, topics=[Named(name=NEITHER)], allow_auto_topic_creation=True)
    assert topics_of(answer) == [(NEITHER, 0 if is_made else HIDDEN)]
    assert (NEITHER in broker.image.topics) == is_made


@pytest.mark.parametrize(("client", "node"), [(False, "true"), (True, "false")])
def test_where_nothing_is_to_be_created_nobody_needs_to_be_allowed_to(
    tmp_path: Path, client: bool, node: str
) -> None:
    broker = open_broker(tmp_path, auto_create_topics_enable=node)
    broker.authorizer = Secrets()
    broker.authorizer.allowed = {(DESCRIBE, NEITHER)}
    answer = metadata(broker, topics=[Named(name=NEITHER)], allow_auto_topic_creation=client)
    assert topics_of(answer) == [(NEITHER, errors.UNKNOWN_TOPIC_OR_PARTITION)]


def test_operations_are_those_that_are_allowed(broker: Any) -> None:
    request = {"include_topic_authorized_operations": True, "include_cluster_authorized_operations": True}
    broker.authorizer = Secrets(DESCRIBE, CREATE)
    broker.authorizer.allowed = {(DESCRIBE, SECRET), (READ, SECRET)}
    answer = metadata(broker, 9, topics=[Named(name=SECRET)], **request)
    assert answer.topics[0].topic_authorized_operations == 1 << DESCRIBE | 1 << READ
    assert answer.cluster_authorized_operations == 1 << DESCRIBE | 1 << CREATE
    broker.authorizer = Secrets(CREATE)
    assert metadata(broker, 9, topics=[], **request).cluster_authorized_operations == 0
    told = call(broker, describe_cluster, 1, include_cluster_authorized_operations=True)
    assert told.cluster_authorized_operations == 0 and told.brokers, "who may nothing may know the brokers"


def test_topics_are_made_and_their_configs_hidden(broker: Any) -> None:
    broker.authorizer.allowed = {(CREATE, "secret-made")}
    topics = [creatable(name) for name in ("secret-made", "secret-not", "open-made", "secret-2", "secret-2")]
    answer = call(broker, create_topics, 7, topics=topics, timeout_ms=1000)
    found = {topic.name: topic for topic in answer.topics}
    assert {name: topic.error_code for name, topic in found.items()} == {
        "secret-made": 0,
        "secret-not": HIDDEN,
        "open-made": 0,
        "secret-2": errors.INVALID_REQUEST,
    }
    assert found["secret-made"].topic_config_error_code == HIDDEN and not found["secret-made"].configs
    assert found["open-made"].topic_config_error_code == 0 and found["open-made"].configs
    assert found["secret-made"].num_partitions == -1 and found["open-made"].num_partitions == 1
    broker.authorizer = Secrets(CREATE)
    (made,) = call(broker, create_topics, 7, topics=[creatable("secret-3")], timeout_ms=1000).topics
    assert made.error_code == 0


def test_topics_are_grown_by_who_may(broker: Any) -> None:
    kind = messages.CreatePartitionsRequest.CreatePartitionsTopic
    topics = [kind(name=name, count=2, assignments=None) for name in (*NAMES, "secret-2", "secret-2")]
    answer = call(broker, create_partitions, 3, topics=topics, timeout_ms=1000)
    assert {row.name: row.error_code for row in answer.results} == {
        OPEN: 0,
        SECRET: HIDDEN,
        NEITHER: HIDDEN,
        "secret-2": errors.INVALID_REQUEST,
    }
    assert {row.error_message for row in answer.results if row.error_code == HIDDEN} == {None}


def test_a_cluster_on_zookeeper_says_in_words_who_may_not_grow(tmp_path: Path) -> None:
    broker = open_broker(tmp_path, zookeeper_connect="localhost:1", broker_id="1")
    broker.authorizer = Secrets()
    kind = messages.CreatePartitionsRequest.CreatePartitionsTopic
    topics = [kind(name=SECRET, count=2, assignments=None)]
    (row,) = call(broker, create_partitions, 3, topics=topics, timeout_ms=1000).results
    assert (row.error_code, row.error_message) == (HIDDEN, "The topic authorization is failed.")


@pytest.mark.parametrize(
    ("allowed", "by_name", "by_id"),
    [
        ([], (HIDDEN, False), (HIDDEN, None)),
        ([DESCRIBE], (HIDDEN, False), (HIDDEN, SECRET)),
        ([DESCRIBE, DELETE], (0, True), (0, SECRET)),
    ],
)
def test_topics_are_deleted_by_who_may(
    broker: Any, allowed: list[int], by_name: tuple[int, bool], by_id: tuple[int, str | None]
) -> None:
    kind = messages.DeleteTopicsRequest.DeleteTopicState
    broker.authorizer.allowed = {(operation, SECRET) for operation in allowed}
    topic_id = broker.image.topics[SECRET].id
    if not by_name[1]:
        (row,) = call(broker, delete_topics, 6, topics=[kind(name=SECRET)], timeout_ms=1000).responses
        assert (row.error_code, row.name, row.topic_id) == (by_name[0], SECRET, bytes(16))
        (row,) = call(broker, delete_topics, 6, topics=[kind(name=NEITHER)], timeout_ms=1000).responses
        assert (row.error_code, row.name, row.topic_id) == (HIDDEN, NEITHER, bytes(16))
    asked = [kind(name=None, topic_id=topic_id)]
    (row,) = call(broker, delete_topics, 6, topics=asked, timeout_ms=1000).responses
    assert (row.error_code, row.name, row.topic_id) == (*by_id, topic_id)


@pytest.mark.parametrize(
    ("properties", "code"),
    [
        ({}, errors.UNKNOWN_TOPIC_OR_PARTITION),
        ({"zookeeper_connect": "localhost:1", "broker_id": "1"}, HIDDEN),
    ],
)
def test_who_may_describe_a_topic_may_hear_that_it_is_not_there(
    tmp_path: Path, properties: dict[str, Any], code: int
) -> None:
    """But a cluster on ZooKeeper asks first who may delete it."""
    broker = open_broker(tmp_path, **properties)
    broker.authorizer = Secrets()
    broker.authorizer.allowed = {(DESCRIBE, NEITHER)}
    kind = messages.DeleteTopicsRequest.DeleteTopicState
    (row,) = call(broker, delete_topics, 6, topics=[kind(name=NEITHER)], timeout_ms=1000).responses
    assert (row.name, row.topic_id, row.error_code) == (NEITHER, bytes(16), code)


def test_all_topics_are_deleted_by_who_may_do_all_on_the_cluster(broker: Any) -> None:
    kind = messages.DeleteTopicsRequest.DeleteTopicState
    broker.authorizer = Secrets(DELETE)
    (row,) = call(broker, delete_topics, 6, topics=[kind(name=SECRET)], timeout_ms=1000).responses
    assert row.error_code == 0


@pytest.mark.parametrize("module", [alter_configs, incremental_alter_configs])
def test_configs_are_altered_by_who_may(broker: Any, module: Any) -> None:
    from pykafkad.cluster.config_changes import ConfigChanges

    broker.config_changes = ConfigChanges(broker.config, broker.controller, broker.slices.run)
    name = "AlterConfigsRequest" if module is alter_configs else "IncrementalAlterConfigsRequest"
    kind = getattr(messages, name)
    rows = [(2, SECRET), (2, OPEN), (2, NEITHER), (32, "secret-g"), (4, ""), (16, "m")]
    resources = [kind.AlterConfigsResource(resource_type=type, resource_name=name) for type, name in rows]
    resources[1].configs = [kind.AlterableConfig(name="retention.ms", value="5")]
    answer = call(broker, module, 1, resources=resources)
    assert [row.error_code for row in answer.responses] == [
        HIDDEN,
        0,
        HIDDEN,
        errors.GROUP_AUTHORIZATION_FAILED,
        errors.CLUSTER_AUTHORIZATION_FAILED,
        errors.CLUSTER_AUTHORIZATION_FAILED,
    ]
    assert broker.image.configs[2, OPEN]["retention.ms"] == "5"
    broker.authorizer = Secrets(ALTER_CONFIGS)
    answer = call(broker, module, 1, resources=resources[-1:])
    assert [row.error_code for row in answer.responses] == [0]


def test_levels_of_loggers_are_set_by_who_may(broker: Any) -> None:
    from pykafkad import logs
    from pykafkad.cluster.config_changes import ConfigChanges

    broker.config_changes = ConfigChanges(broker.config, broker.controller, broker.slices.run)
    kind = messages.IncrementalAlterConfigsRequest
    config = kind.AlterableConfig(name="groups", value="ERROR")
    resource = kind.AlterConfigsResource(resource_type=8, resource_name="1", configs=[config])
    before = dict(logs.levels())
    (row,) = call(broker, incremental_alter_configs, 1, resources=[resource]).responses
    assert row.error_code == errors.CLUSTER_AUTHORIZATION_FAILED and logs.levels() == before


def test_topics_are_described_to_who_may(broker: Any) -> None:
    kind = messages.DescribeTopicPartitionsRequest
    all_of_them = call(broker, describe_topic_partitions, 0)
    assert topics_of(all_of_them) == [(OPEN, 0)], "what is not asked for is left out"
    asked = [kind.TopicRequest(name=name) for name in NAMES]
    answer = call(broker, describe_topic_partitions, 0, topics=asked)
    assert topics_of(answer)[0] == (OPEN, 0)
    assert sorted(topics_of(answer)[1:]) == [(SECRET, HIDDEN), (NEITHER, HIDDEN)]
    for topic in answer.topics[1:]:
        assert (topic.topic_id, topic.partitions) == (bytes(16), [])
    broker.authorizer.allowed = {(DESCRIBE, SECRET), (READ, SECRET)}
    open_, secret = call(broker, describe_topic_partitions, 0).topics
    assert secret.topic_authorized_operations == 1 << DESCRIBE | 1 << READ
    assert open_.topic_authorized_operations & ~secret.topic_authorized_operations


def test_who_may_not_reassign_is_told_so_of_each_partition_and_of_the_whole() -> None:
    kind = messages.AlterPartitionReassignmentsRequest
    topics = [
        kind.ReassignableTopic(
            name=name, partitions=[kind.ReassignablePartition(partition_index=each) for each in indexes]
        )
        for name, indexes in ((OPEN, [3, 0]), (SECRET, [1]))
    ]
    code = errors.CLUSTER_AUTHORIZATION_FAILED
    answer = finish(alter_partition_reassignments.unauthorized(kind(topics=topics), 1, code))
    said = code, errors.MESSAGES[code]
    assert (answer.error_code, answer.error_message) == said
    assert [
        (topic.name, [(row.partition_index, row.error_code, row.error_message) for row in topic.partitions])
        for topic in answer.responses
    ] == [(OPEN, [(3, *said), (0, *said)]), (SECRET, [(1, *said)])]


def test_who_may_not_see_reassignments_is_told_of_each_partition_nothing() -> None:
    kind = messages.ListPartitionReassignmentsRequest
    code = errors.CLUSTER_AUTHORIZATION_FAILED
    topics = [
        kind.ListPartitionReassignmentsTopics(name=name, partition_indexes=indexes)
        for name, indexes in ((OPEN, [3, 0]), (SECRET, [1]))
    ]
    answer = finish(list_partition_reassignments.unauthorized(kind(topics=topics), 0, code))
    assert (answer.error_code, answer.error_message) == (code, errors.MESSAGES[code])
    assert [
        (topic.name, [(row.partition_index, row.replicas) for row in topic.partitions])
        for topic in answer.topics
    ] == [(OPEN, [(3, []), (0, [])]), (SECRET, [(1, [])])]
    of_all = finish(list_partition_reassignments.unauthorized(kind(topics=None), 0, code))
    assert (of_all.error_code, of_all.topics) == (code, [])


# -- what only brokers ask


def test_what_the_controller_asks_is_refused_for_each_partition() -> None:
    code = errors.CLUSTER_AUTHORIZATION_FAILED
    kind = messages.LeaderAndIsrRequest
    state = kind.LeaderAndIsrPartitionState(partition_index=3)
    topics = [kind.LeaderAndIsrTopicState(topic_name="t", topic_id=b"i" * 16, partition_states=[state])]
    answer = finish(leader_and_isr.unauthorized(kind(topic_states=topics), 7, code))
    assert (answer.error_code, answer.topics[0].topic_id) == (code, b"i" * 16)
    assert codes_of(answer.topics[0]) == {code}
    stop = messages.StopReplicaRequest
    part = stop.StopReplicaPartitionState(partition_index=3)
    stopping = stop(topic_states=[stop.StopReplicaTopicState(topic_name="t", partition_states=[part])])
    stopped = stop_replica.unauthorized(stopping, 3, code)
    assert stopped.error_code == code
    assert [(row.topic_name, row.partition_index, row.error_code) for row in stopped.partition_errors] == [
        ("t", 3, code)
    ]
