"""A request of every API that is served, which does no harm and is answered by both brokers alike.

Requests that change something only concern topics, groups, users and brokers that do not exist, or only validate.
READING are those that change nothing, whatever their bytes are overwritten with.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from compat_tests.differential.acl_requests import (
    acl_filter,
    create_acls,
    creation,
    delete_acls,
    describe_acls,
)
from compat_tests.differential.config_requests import (
    TOPIC as TOPIC_RESOURCE,
)
from compat_tests.differential.config_requests import (
    alter_one,
    alter_quotas,
    describe_one,
    describe_quotas,
    quota,
    replace,
    replaced,
)
from compat_tests.differential.offset_requests import commit, delete, subscription
from compat_tests.differential.offset_requests import fetch as fetch_offsets
from compat_tests.differential.requests import (
    batch,
    creatable,
    create,
    fetch,
    fetch_partition,
    leader_epochs,
    list_offsets,
    produce,
)
from compat_tests.differential.test_log_dirs import alter as move
from compat_tests.differential.test_log_dirs import describe as describe_log_dirs
from compat_tests.differential.test_quorum import describe as describe_quorum
from compat_tests.differential.test_reassignments import alter as reassign
from compat_tests.differential.test_reassignments import elect
from compat_tests.differential.test_update_features import request as update_features
from pykafkad import messages

TOPIC = "frames-1"
NOBODY = "nobody"
NO_TOPIC = "never-made"
SOME_ID = bytes(range(16))


def metadata(version: int) -> Any:
    fields: dict[str, Any] = {"allow_auto_topic_creation": False} if version >= 4 else {}
    return messages.MetadataRequest(
        topics=[messages.MetadataRequest.MetadataRequestTopic(name=TOPIC)], **fields
    )


def coordinator(version: int) -> Any:
    kind = messages.FindCoordinatorRequest
    return kind(coordinator_keys=[""]) if version >= 4 else kind(key="")


def delete_topics(version: int) -> Any:
    kind = messages.DeleteTopicsRequest
    if version < 6:
        return kind(topic_names=[NO_TOPIC], timeout_ms=100)
    return kind(topics=[kind.DeleteTopicState(name=NO_TOPIC)], timeout_ms=100)


def topic_partitions(version: int) -> Any:
    kind = messages.DescribeTopicPartitionsRequest
    cursor = kind.Cursor(topic_name=TOPIC, partition_index=0)
    return kind(topics=[kind.TopicRequest(name=TOPIC)], cursor=cursor)


def offsets_of_a_transaction(version: int) -> Any:
    kind = messages.TxnOffsetCommitRequest
    parts = [kind.TxnOffsetCommitRequestPartition(partition_index=0, committed_offset=1)]
    topics = [kind.TxnOffsetCommitRequestTopic(name=NO_TOPIC, partitions=parts)]
    return kind(transactional_id=NOBODY, group_id=NOBODY, producer_id=1, topics=topics)


def markers(version: int) -> Any:
    kind = messages.WriteTxnMarkersRequest
    topics = [kind.WritableTxnMarkerTopic(name=NO_TOPIC, partition_indexes=[0])]
    return kind(markers=[kind.WritableTxnMarker(producer_id=1, topics=topics)])


def add_partitions(version: int) -> Any:
    kind = messages.AddPartitionsToTxnRequest
    topic = kind.AddPartitionsToTxnTopic(name=NO_TOPIC, partitions=[0])
    if version < 4:
        return kind(v3_and_below_transactional_id="", v3_and_below_topics=[topic])
    return kind(transactions=[kind.AddPartitionsToTxnTransaction(transactional_id="", topics=[topic])])


def list_transactions(version: int) -> Any:
    fields: dict[str, Any] = {"transactional_id_pattern": "[a-"} if version >= 2 else {}
    return messages.ListTransactionsRequest(state_filters=["Nonsense"], producer_id_filters=[-1], **fields)


def join(version: int) -> Any:
    kind = messages.JoinGroupRequest
    protocol = kind.JoinGroupRequestProtocol(name="range", metadata=subscription(TOPIC))
    return kind(group_id="", session_timeout_ms=1000, protocol_type="consumer", protocols=[protocol])


def leave(version: int) -> Any:
    kind = messages.LeaveGroupRequest
    if version < 3:
        return kind(group_id=NOBODY, member_id="a")
    return kind(group_id=NOBODY, members=[kind.MemberIdentity(member_id="a")])


def sync(version: int) -> Any:
    kind = messages.SyncGroupRequest
    assignment = kind.SyncGroupRequestAssignment(member_id="a", assignment=b"abc")
    return kind(group_id=NOBODY, generation_id=1, member_id="a", assignments=[assignment])


def consumer_heartbeat(version: int) -> Any:
    kind = messages.ConsumerGroupHeartbeatRequest
    owned = [kind.TopicPartitions(topic_id=SOME_ID, partitions=[0])]
    return kind(group_id=NOBODY, member_id="a", member_epoch=5, topic_partitions=owned)


def list_groups(version: int) -> Any:
    return (
        messages.ListGroupsRequest(states_filter=["Nonsense"])
        if version >= 4
        else messages.ListGroupsRequest()
    )


def delete_records(version: int) -> Any:
    kind = messages.DeleteRecordsRequest
    partition = kind.DeleteRecordsPartition(partition_index=0, offset=0)
    return kind(topics=[kind.DeleteRecordsTopic(name=NO_TOPIC, partitions=[partition])], timeout_ms=100)


def create_partitions(version: int) -> Any:
    kind = messages.CreatePartitionsRequest
    topic = kind.CreatePartitionsTopic(name=NO_TOPIC, count=2)
    return kind(topics=[topic], timeout_ms=100, validate_only=True)


def reassignments(version: int) -> Any:
    kind = messages.ListPartitionReassignmentsRequest
    return kind(topics=[kind.ListPartitionReassignmentsTopics(name=TOPIC, partition_indexes=[0])])


def producers(version: int) -> Any:
    kind = messages.DescribeProducersRequest
    return kind(topics=[kind.TopicRequest(name=TOPIC, partition_indexes=[0])])


def credentials(version: int) -> Any:
    kind = messages.DescribeUserScramCredentialsRequest
    return kind(users=[kind.UserName(name=NOBODY)])


def add_voter(version: int) -> Any:
    kind = messages.AddRaftVoterRequest
    listener = kind.Listener(name="CONTROLLER", host="127.0.0.1", port=9999)
    return kind(cluster_id=None, voter_id=2, voter_directory_id=SOME_ID, listeners=[listener], timeout_ms=100)


def config_resources(version: int) -> Any:
    kind = messages.ListConfigResourcesRequest
    return kind(resource_types=[16]) if version >= 1 else kind()


def push(version: int) -> Any:
    fields: dict[str, Any] = {"terminating": True, "compression_type": 0, "metrics": b""}
    return messages.PushTelemetryRequest(client_instance_id=SOME_ID, subscription_id=1, **fields)


SAMPLES: dict[str, Callable[[int], Any]] = {
    "Produce": lambda _: produce(NO_TOPIC, {0: batch(b"a"), 1: b""}),
    "Fetch": lambda _: fetch({NO_TOPIC: [fetch_partition(0, 0)]}),
    "ListOffsets": lambda _: list_offsets(TOPIC, (0, -1)),
    "Metadata": metadata,
    "OffsetCommit": lambda _: commit(
        NOBODY, NO_TOPIC, (0, 1), generation_id_or_member_epoch=1, member_id="a"
    ),
    "OffsetFetch": lambda version: fetch_offsets(version, NOBODY, [(NO_TOPIC, [0])]),
    "FindCoordinator": coordinator,
    "JoinGroup": join,
    "WriteTxnMarkers": markers,
    "TxnOffsetCommit": offsets_of_a_transaction,
    "AddPartitionsToTxn": add_partitions,
    "AddOffsetsToTxn": lambda _: messages.AddOffsetsToTxnRequest(transactional_id="", group_id=NOBODY),
    "EndTxn": lambda _: messages.EndTxnRequest(transactional_id=""),
    "DescribeTransactions": lambda _: messages.DescribeTransactionsRequest(transactional_ids=[""]),
    "ListTransactions": list_transactions,
    "Heartbeat": lambda _: messages.HeartbeatRequest(group_id=NOBODY, generation_id=1, member_id="a"),
    "LeaveGroup": leave,
    "SyncGroup": sync,
    "DescribeGroups": lambda _: messages.DescribeGroupsRequest(groups=[NOBODY]),
    "ListGroups": list_groups,
    "ApiVersions": lambda _: messages.ApiVersionsRequest(
        client_software_name="raw", client_software_version="1"
    ),
    "CreateTopics": lambda _: create(creatable("a b", {"retention.ms": "1"}), validate_only=True),
    "DeleteTopics": delete_topics,
    "DeleteRecords": delete_records,
    "InitProducerId": lambda _: messages.InitProducerIdRequest(transactional_id="", transaction_timeout_ms=1),
    "OffsetForLeaderEpoch": lambda _: leader_epochs(TOPIC, (0, -1, 0)),
    "DescribeAcls": lambda _: describe_acls(),
    "CreateAcls": lambda _: create_acls(creation("")),
    "DeleteAcls": lambda _: delete_acls(acl_filter(resource_name_filter=NOBODY)),
    "DescribeConfigs": lambda _: describe_one(TOPIC_RESOURCE, TOPIC, ["retention.ms"]),
    "AlterConfigs": lambda _: replace(
        replaced(TOPIC_RESOURCE, NO_TOPIC, ("retention.ms", "1")), validate_only=True
    ),
    "AlterReplicaLogDirs": lambda _: move(("/nowhere", [(NO_TOPIC, [0])])),
    "DescribeLogDirs": lambda _: describe_log_dirs((TOPIC, [0])),
    "CreatePartitions": create_partitions,
    "DeleteGroups": lambda _: messages.DeleteGroupsRequest(groups_names=[NOBODY]),
    "ElectLeaders": lambda _: elect((NO_TOPIC, [0])),
    "IncrementalAlterConfigs": lambda _: alter_one(
        TOPIC_RESOURCE, NO_TOPIC, ("retention.ms", 0, "1"), validate_only=True
    ),
    "AlterPartitionReassignments": lambda _: reassign((NO_TOPIC, [(0, [1])])),
    "ListPartitionReassignments": reassignments,
    "OffsetDelete": lambda _: delete(NOBODY, (TOPIC, [0])),
    "DescribeClientQuotas": lambda _: describe_quotas(("user", 0, NOBODY)),
    "AlterClientQuotas": lambda _: alter_quotas(
        quota({"user": NOBODY}, ("producer_byte_rate", 1.0)), validate_only=True
    ),
    "DescribeUserScramCredentials": credentials,
    "DescribeQuorum": lambda _: describe_quorum(("other", [0])),
    "UpdateFeatures": lambda version: update_features(version, ("no.such.version", 1, 1)),
    "DescribeCluster": lambda _: messages.DescribeClusterRequest(),
    "DescribeProducers": producers,
    "UnregisterBroker": lambda _: messages.UnregisterBrokerRequest(broker_id=99),
    "ConsumerGroupHeartbeat": consumer_heartbeat,
    "ConsumerGroupDescribe": lambda _: messages.ConsumerGroupDescribeRequest(group_ids=[NOBODY]),
    "GetTelemetrySubscriptions": lambda _: messages.GetTelemetrySubscriptionsRequest(
        client_instance_id=SOME_ID
    ),
    "PushTelemetry": push,
    "ListConfigResources": config_resources,
    "DescribeTopicPartitions": topic_partitions,
    "AddRaftVoter": add_voter,
    "RemoveRaftVoter": lambda _: messages.RemoveRaftVoterRequest(
        cluster_id=None, voter_id=2, voter_directory_id=SOME_ID
    ),
}
READING = [
    "ListOffsets",
    "OffsetFetch",
    "Heartbeat",
    "LeaveGroup",
    "SyncGroup",
    "DescribeGroups",
    "ApiVersions",
    "OffsetForLeaderEpoch",
    "DescribeConfigs",
    "ListPartitionReassignments",
    "DescribeClientQuotas",
    "DescribeUserScramCredentials",
    "DescribeCluster",
    "DescribeProducers",
    "ConsumerGroupDescribe",
    "ListConfigResources",
    "DescribeTopicPartitions",
    "DescribeTransactions",
    "ListTransactions",
]
