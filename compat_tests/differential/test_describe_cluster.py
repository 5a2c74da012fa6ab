"""DescribeCluster: brokers and controllers, with the authorized operations."""

from __future__ import annotations

import pytest

from compat_tests.differential.pair import Pair
from compat_tests.differential.versions import at_every_version
from pykafkad.messages import DescribeClusterRequest


@at_every_version("DescribeCluster")
@pytest.mark.parametrize("operations", [False, True])
def test_the_brokers(pair: Pair, version: int, operations: bool) -> None:
    pair.same(DescribeClusterRequest(include_cluster_authorized_operations=operations), version)


@at_every_version("DescribeCluster", since=1)
@pytest.mark.parametrize("endpoint_type", [0, 1, 2, 3, 127, -1])
def test_endpoint_types(pair: Pair, version: int, endpoint_type: int) -> None:
    pair.same(DescribeClusterRequest(endpoint_type=endpoint_type), version)


@at_every_version("DescribeCluster", since=2)
def test_fenced_brokers_too(pair: Pair, version: int) -> None:
    pair.same(DescribeClusterRequest(include_fenced_brokers=True), version)
