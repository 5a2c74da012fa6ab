"""What clients get that may do something, nothing, or some of what they ask for, from both brokers."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from compat_tests.differential.conftest import CONFIG, OUR_CONFIG
from compat_tests.differential.guarded_pair import (
    ALL,
    CLUSTER,
    DESCRIBE,
    EVERYTHING,
    GROUP,
    LITERAL,
    PREFIXED,
    TOPIC,
    TRANSACTIONAL_ID,
    GuardedPair,
    guarded_pair,
)
from compat_tests.differential.offset_requests import commit_of, group, wanted
from compat_tests.differential.pair import Side
from compat_tests.differential.requests import batch, creatable, create, fetch, fetch_partition, topic_id
from compat_tests.differential.samples import SAMPLES
from compat_tests.differential.versions import versions
from pykafkad import messages

OPEN, SECRET = "open-1", "secret-1"  # both there
OPEN_NONE, SECRET_NONE = "open-none", "secret-none"
NAMES = (SECRET, OPEN, SECRET_NONE, OPEN_NONE)
OF_OPEN = [(resource, PREFIXED, "open", ALL) for resource in (TOPIC, GROUP, TRANSACTIONAL_ID)]
THE_CLUSTER = "kafka-cluster"


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory) -> Iterator[GuardedPair]:
    directory = tmp_path_factory.mktemp("guarded")
    off = {"auto.create.topics.enable": "false"}
    with guarded_pair(directory, OUR_CONFIG | off, CONFIG | off) as made:
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
    for _ in range(1000):
        asked = messages.FindCoordinatorRequest(key_type=1, coordinator_keys=[transactional_id])
        if not side.demand(asked, 4).coordinators[0].error_code and not side.demand(request, 4).error_code:
            return
    raise AssertionError(f"{side.name} gives {transactional_id} no producer id")


def every_version() -> list[Any]:
    return [pytest.param(api, version, id=f"{api}-{version}") for api in SAMPLES for version in versions(api)]


@pytest.mark.parametrize(("api", "version"), every_version())
def test_with_nothing_allowed(pair: GuardedPair, api: str, version: int) -> None:
    pair.grant()
    if api in ("PushTelemetry", "GetTelemetrySubscriptions"):
        pytest.skip("nothing is asked")
    pair.same(move_nothing() if api == "AlterReplicaLogDirs" else SAMPLES[api](version), version)


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
    return kind(topics=[kind.MetadataRequestTopic(name=name) for name in NAMES], **fields)


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
    pair.same(lambda side: build(version, side), version)


@pytest.mark.parametrize(("build", "version"), some_of_every_version())
def test_with_some_of_it_described(pair: GuardedPair, build: Any, version: int) -> None:
    """Of the rest it may be known that it is there."""
    described = [(resource, LITERAL, "*", DESCRIBE) for resource in (TOPIC, GROUP, TRANSACTIONAL_ID)]
    pair.grant(*OF_OPEN, *described, (CLUSTER, LITERAL, THE_CLUSTER, DESCRIBE))
    pair.same(lambda side: build(version, side), version)
