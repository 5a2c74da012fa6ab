"""A cluster of Apache Kafka 4.3.1 whose controllers and brokers have an authorizer, and a broker of ours that has none:
ACLs that are changed by way of it count for the others, and what it forwards is guarded by the controllers."""

from __future__ import annotations

from typing import Any

import pytest

from compat_tests.cluster.kraft import AUTHORIZER, DEADLINE_S, KAFKA, OURS, KraftCluster
from compat_tests.cluster.test_kraft_forwarded import acl, acl_filter
from compat_tests.differential.requests import creatable, create
from pykafkad import errors
from pykafkad.messages import CreateAclsRequest, DeleteAclsRequest, DescribeAclsRequest

REAL, OURS_2 = 1, 2
CONFIG = {
    AUTHORIZER: "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "super.users": "User:ANONYMOUS",  # without TLS and SASL they are all called so, brokers too
}
pytestmark = pytest.mark.long


def ask(cluster: KraftCluster, id: int, request: Any, version: int) -> Any:
    with cluster.connected(id) as client:
        return client.call(client.any_broker(), request, at_most=version)


def users(cluster: KraftCluster) -> list[str]:
    """With an ACL, as the broker with an authorizer says."""
    answer = ask(cluster, REAL, acl_filter(DescribeAclsRequest), 3)
    assert answer.error_code == 0, answer
    return [entry.principal for row in answer.resources for entry in row.acls]


def test_acls_are_changed_by_way_of_a_broker_without_an_authorizer() -> None:
    with KraftCluster([KAFKA, OURS], config=CONFIG) as cluster:
        made = ask(cluster, OURS_2, CreateAclsRequest(creations=[acl(CreateAclsRequest.AclCreation)]), 3)
        assert [row.error_code for row in made.results] == [0]
        cluster.until("the ACL counts", lambda: users(cluster) == ["User:ann"])
        unknown = ask(cluster, OURS_2, acl_filter(DescribeAclsRequest), 3)
        assert unknown.error_code == errors.SECURITY_DISABLED
        topics = ask(cluster, OURS_2, create(creatable("made", replication_factor=2)), 7)
        assert [row.error_code for row in topics.topics] == [0]
        cluster.until_in_sync("made")
        gone = ask(
            cluster, OURS_2, DeleteAclsRequest(filters=[acl_filter(DeleteAclsRequest.DeleteAclsFilter)]), 3
        )
        assert [len(row.matching_acls) for row in gone.filter_results] == [1]
        cluster.until("no ACL is left", lambda: users(cluster) == [])


def test_a_broker_that_is_not_allowed_to_take_part_says_so() -> None:
    config = {**CONFIG, "super.users": "User:nobody", "initial.broker.registration.timeout.ms": "8000"}
    with KraftCluster([], config=config) as cluster:
        broker = cluster.add(OURS)
        broker.start()
        assert broker.process is not None
        assert broker.process.wait(DEADLINE_S) == 1
        assert "which cluster this is: CLUSTER_AUTHORIZATION_FAILED" in broker.end_of_log()
        broker.process = None
