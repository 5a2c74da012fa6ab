"""The versions at which every API is compared: what a 4.3.1 broker advertises.

test_api_versions checks this table.
"""

from __future__ import annotations

import pytest

API_KEYS = {
    "Produce": 0,
    "Fetch": 1,
    "ListOffsets": 2,
    "Metadata": 3,
    "FindCoordinator": 10,
    "ApiVersions": 18,
    "CreateTopics": 19,
    "DeleteTopics": 20,
    "InitProducerId": 22,
    "OffsetForLeaderEpoch": 23,
    "DescribeCluster": 60,
    "DescribeConfigs": 32,
    "AlterConfigs": 33,
    "IncrementalAlterConfigs": 44,
    "DescribeClientQuotas": 48,
    "AlterClientQuotas": 49,
    "ListConfigResources": 74,
    "DescribeTopicPartitions": 75,
    "OffsetCommit": 8,
    "OffsetFetch": 9,
    "JoinGroup": 11,
    "Heartbeat": 12,
    "LeaveGroup": 13,
    "SyncGroup": 14,
    "DescribeGroups": 15,
    "ListGroups": 16,
    "ConsumerGroupHeartbeat": 68,
    "ConsumerGroupDescribe": 69,
    "DeleteGroups": 42,
    "OffsetDelete": 47,
    "DeleteRecords": 21,
    "AlterReplicaLogDirs": 34,
    "DescribeLogDirs": 35,
    "CreatePartitions": 37,
    "ElectLeaders": 43,
    "AlterPartitionReassignments": 45,
    "ListPartitionReassignments": 46,
    "DescribeQuorum": 55,
    "UpdateFeatures": 57,
    "DescribeProducers": 61,
    "UnregisterBroker": 64,
    "AddRaftVoter": 80,
    "RemoveRaftVoter": 81,
}

# Produce is advertised from 0 for the sake of old librdkafka, but served from 3.
ADVERTISED = {
    "Produce": (0, 13),
    "Fetch": (4, 18),
    "ListOffsets": (1, 11),
    "Metadata": (0, 13),
    "FindCoordinator": (0, 6),
    "ApiVersions": (0, 4),
    "CreateTopics": (2, 7),
    "DeleteTopics": (1, 6),
    "InitProducerId": (0, 5),
    "OffsetForLeaderEpoch": (2, 4),
    "DescribeCluster": (0, 2),
    "DescribeConfigs": (1, 4),
    "AlterConfigs": (0, 2),
    "IncrementalAlterConfigs": (0, 1),
    "DescribeClientQuotas": (0, 1),
    "AlterClientQuotas": (0, 1),
    "ListConfigResources": (0, 1),
    "DescribeTopicPartitions": (0, 0),
    "OffsetCommit": (2, 10),
    "OffsetFetch": (1, 10),
    "JoinGroup": (0, 9),
    "Heartbeat": (0, 4),
    "LeaveGroup": (0, 5),
    "SyncGroup": (0, 5),
    "DescribeGroups": (0, 6),
    "ListGroups": (0, 5),
    "ConsumerGroupHeartbeat": (0, 1),
    "ConsumerGroupDescribe": (0, 1),
    "DeleteGroups": (0, 2),
    "OffsetDelete": (0, 0),
    "DeleteRecords": (0, 2),
    "AlterReplicaLogDirs": (1, 2),
    "DescribeLogDirs": (1, 5),
    "CreatePartitions": (0, 3),
    "ElectLeaders": (0, 2),
    "AlterPartitionReassignments": (0, 1),
    "ListPartitionReassignments": (0, 0),
    "DescribeQuorum": (0, 2),
    "UpdateFeatures": (0, 2),
    "DescribeProducers": (0, 0),
    "UnregisterBroker": (0, 0),
    "AddRaftVoter": (0, 1),
    "RemoveRaftVoter": (0, 0),
}
SERVED = {**ADVERTISED, "Produce": (3, 13)}


def versions(api: str, since: int = 0, until: int = 99) -> list[int]:
    low, high = SERVED[api]
    return list(range(max(low, since), min(high, until) + 1))


def at_every_version(api: str, since: int = 0, until: int = 99) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("version", versions(api, since, until))
