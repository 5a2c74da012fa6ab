"""What clients get that may do something, nothing, or some of what they ask for, from both brokers."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from compat_tests.differential.conftest import CONFIG, OUR_CONFIG
from compat_tests.differential.guarded_pair import (
    ALL,
    ALTER,
    ALTER_CONFIGS,
    CLUSTER,
    CLUSTER_ACTION,
    CREATE,
    DELETE,
    DESCRIBE,
    DESCRIBE_CONFIGS,
    EVERYTHING,
    GROUP,
    IDEMPOTENT_WRITE,
    LITERAL,
    PREFIXED,
    READ,
    READY_SECONDS,
    TOPIC,
    TRANSACTIONAL_ID,
    WRITE,
    GuardedPair,
    guarded_pair,
)
from compat_tests.differential.offset_requests import commit_of, consumer, group, wanted
from compat_tests.differential.pair import Each, NoAnswer, Side
from compat_tests.differential.requests import batch, creatable, create, fetch, fetch_partition, topic_id
from compat_tests.differential.samples import SAMPLES
from compat_tests.differential.versions import at_every_version, versions
from pykafkad import errors, messages

OPEN, SECRET = "open-1", "secret-1"  # both there
OPEN_NONE, SECRET_NONE = "open-none", "secret-none"
NAMES = (SECRET, OPEN, SECRET_NONE, OPEN_NONE)
OF_OPEN = [(resource, PREFIXED, "open", ALL) for resource in (TOPIC, GROUP, TRANSACTIONAL_ID)]
THE_CLUSTER = "kafka-cluster"


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory) -> Iterator[GuardedPair]:
    directory = tmp_path_factory.mktemp("guarded")
    with guarded_pair(directory, OUR_CONFIG, CONFIG) as made:
        made.grant(*EVERYTHING)
        for name in (OPEN, SECRET):
            for side in made.sides:
                made._create(side, name, 2, {})
            for side in made.sides:
                made._wait_for_leaders(side, name, 2)
        group(made, "open-group")
        for transactional_id in ("open-t", "secret-t"):  # so that both have coordinators of transactions
            for side in made.sides:
                begin(side, transactional_id)
        yield made


def begin(side: Side, transactional_id: str) -> None:
    kind = messages.InitProducerIdRequest
    request = kind(
        transactional_id=transactional_id, transaction_timeout_ms=60_000, producer_id=-1, producer_epoch=-1
    )
    deadline = time.monotonic() + READY_SECONDS
    while time.monotonic() < deadline:
        asked = messages.FindCoordinatorRequest(key_type=1, coordinator_keys=[transactional_id])
        if not side.demand(asked, 4).coordinators[0].error_code and not side.demand(request, 4).error_code:
            return
        time.sleep(0.05)
    raise AssertionError(f"{side.name} gives {transactional_id} no producer id")


ASK_NOTHING = ("PushTelemetry", "GetTelemetrySubscriptions")


def every_version() -> list[Any]:
    apis = (api for api in SAMPLES if api not in ASK_NOTHING)
    return [pytest.param(api, version, id=f"{api}-{version}") for api in apis for version in versions(api)]


@pytest.mark.parametrize(("api", "version"), every_version())
def test_with_nothing_allowed(pair: GuardedPair, api: str, version: int) -> None:
    pair.grant()
    pair.same(move_nothing() if api == "AlterReplicaLogDirs" else SAMPLES[api](version), version)


@pytest.mark.parametrize("version", [1, 2, 3])
def test_acls_belong_to_the_cluster(pair: GuardedPair, version: int) -> None:
    pair.grant(*OF_OPEN)
    acl: dict[str, Any] = {"resource_type": TOPIC, "resource_name": "t", "principal": "User:a", "host": "*"}
    creation = messages.CreateAclsRequest.AclCreation(**acl, operation=READ, permission_type=3)
    pair.same(messages.CreateAclsRequest(creations=[creation, creation]), version)
    anything: dict[str, Any] = {
        "resource_type_filter": 1,
        "pattern_type_filter": 1,
        "operation": 1,
        "permission_type": 1,
    }
    unknown: dict[str, Any] = {"resource_name_filter": None, "principal_filter": None, "host_filter": None}
    pair.same(messages.DescribeAclsRequest(**anything, **unknown), version)
    kind = messages.DeleteAclsRequest
    pair.same(kind(filters=[kind.DeleteAclsFilter(**anything, **unknown)]), version)


def move_nothing() -> Any:
    kind = messages.AlterReplicaLogDirsRequest
    topics = [kind.AlterReplicaLogDirTopic(name=SECRET, partitions=[0, 1])]
    return kind(dirs=[kind.AlterReplicaLogDir(path="/nowhere", topics=topics)])


# -- some of it


def produce(version: int, side: Side) -> Any:
    kind = messages.ProduceRequest
    topics = [
        kind.TopicProduceData(
            name=name,
            topic_id=topic_id(side, name),
            partition_data=[kind.PartitionProduceData(index=index, records=batch(b"a")) for index in (0, 7)],
        )
        for name in (NAMES if version < 13 else NAMES[:3])  # without ids for two that are not there
    ]
    return kind(acks=-1, timeout_ms=10_000, topic_data=topics)


def fetched(version: int, side: Side) -> Any:
    return fetch({name: [fetch_partition(0, 0), fetch_partition(7, 0)] for name in NAMES})(side)


def offsets(version: int, side: Side) -> Any:
    kind = messages.ListOffsetsRequest
    parts = [kind.ListOffsetsPartition(partition_index=index, timestamp=-2) for index in (0, 7)]
    return kind(replica_id=-1, topics=[kind.ListOffsetsTopic(name=name, partitions=parts) for name in NAMES])


def metadata(version: int, side: Side) -> Any:
    kind = messages.MetadataRequest
    fields: dict[str, Any] = {"allow_auto_topic_creation": False} if version >= 4 else {}
    if version >= 8:
        fields["include_topic_authorized_operations"] = True
    if 8 <= version <= 10:
        fields["include_cluster_authorized_operations"] = True
    names = NAMES if version >= 4 else NAMES[:3]  # before, what may be created is created
    return kind(topics=[kind.MetadataRequestTopic(name=name) for name in names], **fields)


def commit(version: int, side: Side) -> Any:
    return commit_of(side, "open-group", [(name, [(0, 5), (7, 5)]) for name in NAMES])


def offset_fetch(version: int, side: Side) -> Any:
    kind = messages.OffsetFetchRequest
    if version >= 8:
        groups = ("secret-group", "open-group", "open-none")
        asked = [(name, [0, 1, 7]) for name in NAMES]
        return kind(groups=[wanted(side, group_id, asked) for group_id in groups])
    topics = [kind.OffsetFetchRequestTopic(name=name, partition_indexes=[0, 1]) for name in NAMES]
    return kind(group_id="open-group", topics=topics)


def coordinator(version: int, side: Side) -> Any:
    keys = ["secret-group", "open-group", "secret-other"]
    kind = messages.FindCoordinatorRequest
    return kind(coordinator_keys=keys) if version >= 4 else kind(key="open-group")


def delete_topics(version: int, side: Side) -> Any:
    kind = messages.DeleteTopicsRequest
    if version < 6:
        return kind(topic_names=[SECRET, SECRET_NONE, OPEN_NONE], timeout_ms=10_000)
    names = (SECRET, SECRET_NONE, OPEN_NONE, "open-twice", "secret-twice", "secret-twice")
    topics = [kind.DeleteTopicState(name=name) for name in names]
    topics.append(kind.DeleteTopicState(name=None, topic_id=bytes(15) + b"x"))
    return kind(topics=topics, timeout_ms=10_000)


def delete_topics_by_id(version: int, side: Side) -> Any:
    kind = messages.DeleteTopicsRequest
    topics = [kind.DeleteTopicState(name=None, topic_id=topic_id(side, SECRET))]
    return kind(topics=topics, timeout_ms=10_000)


def create_topics(version: int, side: Side) -> Any:
    names = ("secret-new", "open-new", SECRET, OPEN, "secret-twice", "secret-twice", "__cluster_metadata")
    topics = [creatable(name) for name in names]
    return create(*topics, validate_only=True)


def delete_records(version: int, side: Side) -> Any:
    kind = messages.DeleteRecordsRequest
    parts = [kind.DeleteRecordsPartition(partition_index=index, offset=0) for index in (0, 7)]
    topics = [kind.DeleteRecordsTopic(name=name, partitions=parts) for name in NAMES]
    return kind(topics=topics, timeout_ms=10_000)


def leader_epochs(version: int, side: Side) -> Any:
    kind = messages.OffsetForLeaderEpochRequest
    parts = [
        kind.OffsetForLeaderPartition(partition=index, current_leader_epoch=-1, leader_epoch=0)
        for index in (0, 7)
    ]
    return kind(
        replica_id=-1, topics=[kind.OffsetForLeaderTopic(topic=name, partitions=parts) for name in NAMES]
    )


def add_partitions(version: int, side: Side) -> Any:
    kind = messages.AddPartitionsToTxnRequest
    topics = [kind.AddPartitionsToTxnTopic(name=name, partitions=[0, 7]) for name in NAMES]
    if version < 4:
        return kind(v3_and_below_transactional_id="open-t", v3_and_below_topics=topics)
    return kind(transactions=[kind.AddPartitionsToTxnTransaction(transactional_id="open-t", topics=topics)])


def add_one_allowed(version: int, side: Side) -> Any:
    kind = messages.AddPartitionsToTxnRequest
    topics = [kind.AddPartitionsToTxnTopic(name=name, partitions=[0]) for name in (OPEN, SECRET)]
    return kind(v3_and_below_transactional_id="open-t", v3_and_below_topics=topics)


def add_offsets(version: int, side: Side) -> Any:
    return messages.AddOffsetsToTxnRequest(transactional_id="open-t", group_id="secret-group")


def txn_commit(version: int, side: Side) -> Any:
    kind = messages.TxnOffsetCommitRequest
    parts = [kind.TxnOffsetCommitRequestPartition(partition_index=7, committed_offset=1)]
    topics = [kind.TxnOffsetCommitRequestTopic(name=name, partitions=parts) for name in NAMES]
    return kind(transactional_id="open-t", group_id="open-group", producer_id=1, topics=topics)


def txn_commit_of_a_secret_group(version: int, side: Side) -> Any:
    request = txn_commit(version, side)
    request.group_id = "secret-group"
    return request


RESOURCES = [
    (2, SECRET), (2, OPEN), (2, SECRET_NONE), (2, OPEN_NONE), (32, "secret-group"), (32, "open-group"),
    (4, "1"), (4, ""), (4, "9"), (8, "1"), (16, "secret-metrics"),
]  # fmt: skip


def describe_configs(version: int, side: Side) -> Any:
    kind = messages.DescribeConfigsRequest
    resources = [
        kind.DescribeConfigsResource(
            resource_type=type, resource_name=name, configuration_keys=["retention.ms"]
        )
        for type, name in RESOURCES
    ]
    return kind(resources=resources)


def alter_configs(version: int, side: Side) -> Any:
    kind = messages.AlterConfigsRequest
    config = kind.AlterableConfig(name="retention.ms", value="1000")
    resources = [
        kind.AlterConfigsResource(
            resource_type=type, resource_name=name, configs=[config] if type == 2 else []
        )
        for type, name in (*RESOURCES[:6], (16, "secret-metrics"))
    ]
    return kind(resources=resources, validate_only=True)


def incremental_alter_configs(version: int, side: Side) -> Any:
    kind = messages.IncrementalAlterConfigsRequest
    config = kind.AlterableConfig(name="retention.ms", config_operation=0, value="1000")
    resources = [
        kind.AlterConfigsResource(
            resource_type=type, resource_name=name, configs=[config] if type == 2 else []
        )
        for type, name in (*RESOURCES, (2, "secret-2"), (2, "secret-2"))
    ]
    return kind(resources=resources, validate_only=True)


def create_partitions(version: int, side: Side) -> Any:
    kind = messages.CreatePartitionsRequest
    names = (*NAMES, "secret-twice", "secret-twice")
    topics = [kind.CreatePartitionsTopic(name=name, count=3) for name in names]
    return kind(topics=topics, timeout_ms=10_000, validate_only=True)


def describe_groups(version: int, side: Side) -> Any:
    fields: dict[str, Any] = {"include_authorized_operations": True} if version >= 3 else {}
    return messages.DescribeGroupsRequest(groups=["open-none", "secret-group", "open-group"], **fields)


def delete_groups(version: int, side: Side) -> Any:
    names = ["open-none", "secret-group", "secret-none", "secret-group"]
    return messages.DeleteGroupsRequest(groups_names=names)


def offset_delete(version: int, side: Side) -> Any:
    kind = messages.OffsetDeleteRequest
    parts = [kind.OffsetDeleteRequestPartition(partition_index=7)]
    topics = [kind.OffsetDeleteRequestTopic(name=name, partitions=parts) for name in NAMES]
    return kind(group_id="open-group", topics=topics)


def producers(version: int, side: Side) -> Any:
    kind = messages.DescribeProducersRequest
    names = (*NAMES, "a bad name")
    return kind(topics=[kind.TopicRequest(name=name, partition_indexes=[1, 7]) for name in names])


def transactions(version: int, side: Side) -> Any:
    ids = ["open-none", "secret-t", "secret-none"]
    return messages.DescribeTransactionsRequest(transactional_ids=ids)


def topic_partitions(version: int, side: Side) -> Any:
    kind = messages.DescribeTopicPartitionsRequest
    return kind(topics=[kind.TopicRequest(name=name) for name in NAMES], response_partition_limit=2000)


def heartbeat(version: int, side: Side) -> Any:
    return messages.ConsumerGroupHeartbeatRequest(
        group_id="open-c", member_id="A" * 22, member_epoch=5, subscribed_topic_names=[OPEN, SECRET]
    )


def describe_consumers(version: int, side: Side) -> Any:
    return messages.ConsumerGroupDescribeRequest(
        group_ids=["open-none", "secret-c", "open-group"], include_authorized_operations=True
    )


SOME = {
    "Produce": [produce],
    "Fetch": [fetched],
    "ListOffsets": [offsets],
    "Metadata": [metadata],
    "OffsetCommit": [commit],
    "OffsetFetch": [offset_fetch],
    "FindCoordinator": [coordinator],
    "DeleteTopics": [delete_topics],
    "CreateTopics": [create_topics],
    "DeleteRecords": [delete_records],
    "OffsetForLeaderEpoch": [leader_epochs],
    "AddPartitionsToTxn": [add_partitions],
    "AddOffsetsToTxn": [add_offsets],
    "TxnOffsetCommit": [txn_commit, txn_commit_of_a_secret_group],
    "DescribeConfigs": [describe_configs],
    "AlterConfigs": [alter_configs],
    "IncrementalAlterConfigs": [incremental_alter_configs],
    "CreatePartitions": [create_partitions],
    "DescribeGroups": [describe_groups],
    "DeleteGroups": [delete_groups],
    "OffsetDelete": [offset_delete],
    "DescribeProducers": [producers],
    "DescribeTransactions": [transactions],
    "DescribeTopicPartitions": [topic_partitions],
    "ConsumerGroupHeartbeat": [heartbeat],
    "ConsumerGroupDescribe": [describe_consumers],
}


def some_of_every_version() -> list[Any]:
    return [
        pytest.param(build, version, id=f"{build.__name__}-{version}")
        for api, builders in SOME.items()
        for build in builders
        for version in versions(api)
    ]


@pytest.mark.parametrize(("build", "version"), some_of_every_version())
def test_with_some_of_it_allowed(pair: GuardedPair, build: Any, version: int) -> None:
    pair.grant(*OF_OPEN)
    pair.same(at(version, build), version)


@pytest.mark.parametrize(("build", "version"), some_of_every_version())
def test_with_some_of_it_described(pair: GuardedPair, build: Any, version: int) -> None:
    """Of the rest it may be known that it is there."""
    described = [(resource, LITERAL, "*", DESCRIBE) for resource in (TOPIC, GROUP, TRANSACTIONAL_ID)]
    pair.grant(*OF_OPEN, *described, (CLUSTER, LITERAL, THE_CLUSTER, DESCRIBE))
    pair.same(at(version, build), version)


# -- what a request is about decides


def at(version: int, build: Callable[[int, Side], Any]) -> Each:
    return lambda side: build(version, side)


def one(build: Callable[..., Any], *arguments: Any, **fields: Any) -> Each:
    return lambda side: build(side, *arguments, **fields)


def on_cluster(*operations: int) -> list[Any]:
    return [(CLUSTER, LITERAL, THE_CLUSTER, operation) for operation in operations]


def on(resource: int, name: str, *operations: int) -> list[Any]:
    return [(resource, LITERAL, name, operation) for operation in operations]


def produced(side: Side, name: str, records: bytes, **fields: Any) -> Any:
    kind = messages.ProduceRequest
    parts = [kind.PartitionProduceData(index=0, records=records)]
    topic = kind.TopicProduceData(name=name, topic_id=topic_id(side, name), partition_data=parts)
    return kind(**{"acks": -1, "timeout_ms": 10_000, "topic_data": [topic], **fields})


@at_every_version("Produce", since=3)
@pytest.mark.parametrize("transactional_id", [None, "secret-t", "open-t"])
def test_batches_of_transactions(pair: GuardedPair, version: int, transactional_id: str | None) -> None:
    """Who may write to the transaction is asked for these alone, and before anything else."""
    pair.grant(*OF_OPEN)
    in_one = batch(b"a", producer_id=77, producer_epoch=0, base_sequence=0, transactional=True)
    plain = batch(b"a")
    for name in (SECRET, OPEN):
        if transactional_id != "open-t" or name == SECRET:
            pair.same(one(produced, name, in_one, transactional_id=transactional_id), version)
        pair.same(one(produced, name, plain, transactional_id=transactional_id), version)


@at_every_version("Produce", since=3)
def test_what_is_denied_without_an_answer_ends_the_connection(pair: GuardedPair, version: int) -> None:
    pair.grant(*OF_OPEN)
    in_one = batch(b"a", producer_id=77, producer_epoch=0, base_sequence=0, transactional=True)
    for name, records in ((SECRET, batch(b"a")), (OPEN, in_one)):

        def sent(side: Side, name: str = name, records: bytes = records) -> bytes:
            return side.client.frame(produced(side, name, records, acks=0), version)

        assert pair.same_outcome(sent).closed

    def both(side: Side) -> bytes:
        request = produced(side, SECRET, batch(b"b"), acks=0)
        request.topic_data += produced(side, OPEN, batch(b"b")).topic_data
        return side.client.frame(request, version)

    before = ends(pair)
    assert pair.same_outcome(both).closed
    assert ends(pair) == [end + 1 for end in before]


def ends(pair: GuardedPair) -> list[int]:
    """Where the open topic's first partition ends on both."""
    kind = messages.ListOffsetsRequest
    parts = [kind.ListOffsetsPartition(partition_index=0, timestamp=-1)]
    request = kind(replica_id=-1, topics=[kind.ListOffsetsTopic(name=OPEN, partitions=parts)])
    return [side.demand(request, 7).topics[0].partitions[0].offset for side in pair.sides]


@at_every_version("Fetch", since=7)
def test_sessions(pair: GuardedPair, version: int) -> None:
    """What is denied stays in the session, and is an error in each answer until it is allowed."""
    pair.grant(*OF_OPEN)
    asked = {SECRET: [fetch_partition(0, 0)], OPEN: [fetch_partition(0, 0)]}
    ours, theirs = pair.same_of_each(fetch(asked, session_id=0, session_epoch=0), version)
    ids = {pair.ours.name: ours.session_id, pair.theirs.name: theirs.session_id}
    assert all(ids.values())
    for epoch, grants in enumerate((OF_OPEN, [*OF_OPEN, *on(TOPIC, SECRET, READ)], [], OF_OPEN), 1):
        pair.grant(*grants)
        pair.same(one(next_of_session, ids, epoch), version)


def next_of_session(side: Side, ids: dict[str, int], epoch: int) -> Any:
    return fetch({}, session_id=ids[side.name], session_epoch=epoch)(side)


@at_every_version("Fetch")
def test_followers_need_the_cluster(pair: GuardedPair, version: int) -> None:
    def asked(side: Side) -> Any:
        fields: dict[str, Any] = {"replica_id": 5}
        if version >= 15:
            fields = {"replica_state": messages.FetchRequest.ReplicaState(replica_id=5)}
        return fetch({SECRET: [fetch_partition(0, 0)], SECRET_NONE: [fetch_partition(0, 0)]}, **fields)(side)

    pair.grant(*OF_OPEN)
    pair.same(asked, version)
    pair.grant(*on_cluster(CLUSTER_ACTION))
    pair.same(asked, version)


LISTED = [
    [],
    OF_OPEN,
    on_cluster(DESCRIBE),
    [*OF_OPEN, *on(GROUP, "*", DELETE), *on(TRANSACTIONAL_ID, "*", WRITE), *on(TOPIC, "*", ALTER)],
]


@pytest.mark.parametrize("grants", LISTED)
def test_lists_leave_out_what_is_denied(pair: GuardedPair, grants: list[Any]) -> None:
    pair.grant(*EVERYTHING)
    for group_id in ("open-listed", "secret-listed"):
        for side in pair.sides:
            side.demand(commit_of(side, group_id, [(OPEN, [(0, 5)]), (SECRET, [(1, 6)])]), 8)
    pair.learn_topics()
    pair.grant(*grants)
    for version in versions("ListGroups"):
        pair.same(messages.ListGroupsRequest(), version)
    for version in versions("ListTransactions"):
        pair.same(messages.ListTransactionsRequest(), version)
    for version in versions("Metadata", since=1):
        fields: dict[str, Any] = {"include_topic_authorized_operations": True} if version >= 8 else {}
        pair.same(messages.MetadataRequest(topics=None, **fields), version)
    pair.same(messages.MetadataRequest(topics=[]), 0)
    pair.same(messages.DescribeTopicPartitionsRequest(response_partition_limit=2000), 0)
    for version in versions("OffsetFetch", since=2):
        for group_id in ("open-listed", "secret-listed"):
            pair.same(all_offsets(version, group_id), version)


def all_offsets(version: int, group_id: str) -> Any:
    kind = messages.OffsetFetchRequest
    if version < 8:
        return kind(group_id=group_id, topics=None)
    return kind(groups=[kind.OffsetFetchRequestGroup(group_id=group_id, topics=None)])


@at_every_version("Metadata", since=12)
@pytest.mark.parametrize("grants", [[], OF_OPEN])
def test_metadata_by_id(pair: GuardedPair, version: int, grants: list[Any]) -> None:
    kind = messages.MetadataRequest

    def asked(side: Side) -> Any:
        ids = [topic_id(side, SECRET), topic_id(side, OPEN), bytes(15) + b"x"]
        topics = [kind.MetadataRequestTopic(name=None, topic_id=each) for each in ids]
        return kind(topics=topics, include_topic_authorized_operations=True)

    pair.grant(*grants)
    pair.same(asked, version)


@pytest.mark.parametrize(
    ("grants", "is_created"),
    [
        ([], False),
        (on(TOPIC, "*", DESCRIBE), False),
        ([*on(TOPIC, "*", DESCRIBE), *on_cluster(CREATE)], True),
        (on(TOPIC, "*", DESCRIBE, CREATE), True),
        (on(TOPIC, "*", CREATE), False),
    ],
)
def test_topics_are_created_for_who_may_create_them(
    pair: GuardedPair, grants: list[Any], is_created: bool
) -> None:
    name = pair.new_name("automatic")
    kind = messages.MetadataRequest
    request = kind(topics=[kind.MetadataRequestTopic(name=name)], allow_auto_topic_creation=True)
    pair.grant(*grants)
    if not is_created:
        pair.same(request, 12)
    else:  # pykafkad's answer waits for it
        for side in pair.sides:
            assert side.demand(request, 12).topics[0].error_code != errors.TOPIC_AUTHORIZATION_FAILED
    pair.grant(*EVERYTHING)
    is_there = []
    for side in pair.sides:
        deadline = time.monotonic() + (READY_SECONDS if is_created else 0)
        while not is_known(side, name) and time.monotonic() < deadline:
            time.sleep(0.05)
        is_there.append(is_known(side, name))
    assert is_there == [is_created] * 2


def is_known(side: Side, name: str) -> bool:
    answer = side.demand(messages.MetadataRequest(topics=None), 12)
    return name in [topic.name for topic in answer.topics]


@at_every_version("InitProducerId")
@pytest.mark.parametrize(
    "grants", [[], on_cluster(IDEMPOTENT_WRITE), on(TOPIC, "some", WRITE), on(TOPIC, "some", READ)]
)
def test_producer_ids(pair: GuardedPair, version: int, grants: list[Any]) -> None:
    pair.grant(*grants)
    pair.same(messages.InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=1000), version)
    pair.same(messages.InitProducerIdRequest(transactional_id="", transaction_timeout_ms=1000), version)


@at_every_version("CreateTopics")
@pytest.mark.parametrize(
    "grants",
    [
        on_cluster(CREATE),
        on(TOPIC, "*", CREATE),
        on(TOPIC, "*", CREATE, DESCRIBE_CONFIGS),
        [*on_cluster(CREATE), *on(TOPIC, "*", ALTER_CONFIGS)],
    ],
)
def test_configs_of_new_topics(pair: GuardedPair, version: int, grants: list[Any]) -> None:
    pair.grant(*grants)
    pair.same(create(creatable(pair.new_name("made"), {"retention.ms": "5000"})), version)


DELETING = [
    [],
    on(TOPIC, "*", DESCRIBE),
    on_cluster(ALL),
    on(TOPIC, "*", DELETE),
]


@at_every_version("DeleteTopics")
@pytest.mark.parametrize("grants", DELETING)
def test_deletions(pair: GuardedPair, version: int, grants: list[Any]) -> None:
    pair.grant(*EVERYTHING)
    name, other = pair.topic("going"), pair.topic("going")
    pair.grant(*grants)
    kind = messages.DeleteTopicsRequest

    def asked(side: Side) -> Any:
        if version < 6:
            return kind(topic_names=[name, "going-nowhere"], timeout_ms=10_000)
        topics = [kind.DeleteTopicState(name=each) for each in (name, "going-nowhere")]
        topics += [kind.DeleteTopicState(name=None, topic_id=topic_id(side, each)) for each in (other, name)]
        return kind(topics=topics, timeout_ms=10_000)

    pair.same(asked, version)


@pytest.mark.parametrize(
    "operations", [[], [ALTER], [DESCRIBE], [DESCRIBE_CONFIGS, IDEMPOTENT_WRITE, ALTER], [ALL]]
)
def test_operations_that_are_told_of(pair: GuardedPair, operations: list[int]) -> None:
    topics, groups = (
        [(each, PREFIXED, "secret", operation) for operation in operations if operation != IDEMPOTENT_WRITE]
        for each in (TOPIC, GROUP)
    )
    known = [grant for grant in groups if grant[3] != ALTER]
    pair.grant(*on_cluster(*operations), *topics, *known)
    for version in versions("DescribeCluster"):
        pair.same(messages.DescribeClusterRequest(include_cluster_authorized_operations=True), version)
    for version in versions("Metadata", since=8):
        pair.same(at(version, metadata), version)
    pair.same(at(0, topic_partitions), 0)
    for version in versions("DescribeGroups"):
        pair.same(at(version, describe_groups), version)


@at_every_version("AddPartitionsToTxn")
def test_one_denied_topic_keeps_the_others_out_of_the_transaction(pair: GuardedPair, version: int) -> None:
    pair.grant(*OF_OPEN)
    build = add_one_allowed if version < 4 else add_partitions
    pair.same(at(version, build), version)


@pytest.mark.parametrize("grants", [on_cluster(ALTER), on_cluster(CLUSTER_ACTION), on_cluster(DESCRIBE)])
def test_what_the_cluster_gives(pair: GuardedPair, grants: list[Any]) -> None:
    pair.grant(*grants)
    for api in (
        "WriteTxnMarkers",
        "AddPartitionsToTxn",
        "OffsetForLeaderEpoch",
        "ElectLeaders",
        "DescribeQuorum",
    ):
        for version in versions(api):
            pair.same(SAMPLES[api](version), version)
    for version in versions("OffsetForLeaderEpoch"):
        pair.same(at(version, leader_epochs), version)


def kinds_of_coordinators() -> list[tuple[int, int]]:
    """Before version 6 share groups are refused by both, with other texts: they are not served here."""
    found = [(kind, version) for kind in (1, 2, 3) for version in versions("FindCoordinator")]
    return [(kind, version) for kind, version in found if kind != 2 or version >= 6]


@pytest.mark.parametrize(("key_type", "version"), kinds_of_coordinators())
def test_coordinators_of_other_kinds(pair: GuardedPair, version: int, key_type: int) -> None:
    kind = messages.FindCoordinatorRequest
    pair.grant(*OF_OPEN)
    fields: dict[str, Any] = {"key_type": key_type} if version >= 1 else {}
    keys = ["secret-t", "open-t"]
    pair.same(
        kind(coordinator_keys=keys, **fields) if version >= 4 else kind(key="secret-t", **fields), version
    )


@pytest.mark.parametrize(
    "grants", [on_cluster(ALTER_CONFIGS), on(TOPIC, SECRET, ALTER_CONFIGS), on(GROUP, "*", ALTER_CONFIGS)]
)
def test_configs(pair: GuardedPair, grants: list[Any]) -> None:
    pair.grant(*grants)
    for api, build in (
        ("DescribeConfigs", describe_configs),
        ("AlterConfigs", alter_configs),
        ("IncrementalAlterConfigs", incremental_alter_configs),
    ):
        for version in versions(api):
            pair.same(at(version, build), version)


def test_users_are_refused_even_where_kafka_forgets_to_answer(pair: GuardedPair) -> None:
    pair.grant()
    answer = pair.ours.ask(messages.DescribeUserScramCredentialsRequest(users=None), 0)
    assert answer.error_code == errors.CLUSTER_AUTHORIZATION_FAILED and answer.results == []
    assert isinstance(pair.theirs.ask(messages.DescribeUserScramCredentialsRequest(users=None), 0), NoAnswer)


def test_consumer_groups_are_described_to_who_may_describe_their_topics(pair: GuardedPair) -> None:
    pair.grant(*EVERYTHING)
    for name, topic in (("open-of-secret", SECRET), ("open-of-open", OPEN)):
        for side in pair.sides:
            consumer(side, name, topic)
    request = messages.ConsumerGroupDescribeRequest(
        group_ids=["open-of-secret", "open-of-open", "secret-none"], include_authorized_operations=True
    )
    for grants in (OF_OPEN, [*OF_OPEN, *on(TOPIC, SECRET, DESCRIBE)]):
        pair.grant(*grants)
        for version in versions("ConsumerGroupDescribe"):
            pair.same(request, version)


def test_regular_expressions_match_what_may_be_described(pair: GuardedPair) -> None:
    pair.grant(*OF_OPEN)
    group_id, member_id = "open-by-regex", "A" * 21 + "Q"
    for side in pair.sides:
        epoch, assigned = 0, None
        deadline = time.monotonic() + READY_SECONDS
        while time.monotonic() < deadline:
            answer = side.demand(
                messages.ConsumerGroupHeartbeatRequest(
                    group_id=group_id,
                    member_id=member_id,
                    member_epoch=epoch,
                    rebalance_timeout_ms=60_000,
                    subscribed_topic_names=None if epoch else [],
                    subscribed_topic_regex=None if epoch else "(open|secret)-1",
                    topic_partitions=[] if not epoch else None,
                ),
                1,
            )
            assert not answer.error_code, answer
            epoch, assigned = answer.member_epoch, answer.assignment or assigned
            if assigned is not None and assigned.topic_partitions:
                break
            time.sleep(0.05)
        assert assigned is not None
        names = [side.topic_name(each.topic_id) for each in assigned.topic_partitions]
        assert names == [OPEN], side.name
