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
    "DescribeTopicPartitions": 75,
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
    "DescribeTopicPartitions": (0, 0),
}
SERVED = {**ADVERTISED, "Produce": (3, 13)}


def versions(api: str, since: int = 0, until: int = 99) -> list[int]:
    low, high = SERVED[api]
    return list(range(max(low, since), min(high, until) + 1))


def at_every_version(api: str, since: int = 0, until: int = 99) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("version", versions(api, since, until))
