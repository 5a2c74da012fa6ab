"""A cluster of Apache Kafka 4.3.1 whose controllers and brokers have an authorizer, a broker of ours too: ACLs are
changed by way of it, and count at both."""

from __future__ import annotations

from typing import Any

import pytest

from compat_tests.cluster.kraft import AUTHORIZER, DEADLINE_S, KAFKA, OURS, KraftCluster
from compat_tests.cluster.test_kraft_forwarded import acl
from compat_tests.differential.acl_requests import PREFIXED, create_acls, creation, everything
from compat_tests.differential.requests import creatable, create
from pykafkad import errors
from pykafkad.messages import CreateAclsRequest, DeleteAclsRequest, DescribeAclsRequest, MetadataRequest

REAL, OURS_2 = 1, 2
STANDARD = {AUTHORIZER: "org.apache.kafka.metadata.authorizer.StandardAuthorizer"}
CONFIG = {
    **STANDARD,
    "super.users": "User:ANONYMOUS",  # without TLS and SASL they are all called so, brokers too
}
pytestmark = pytest.mark.long


def ask(cluster: KraftCluster, id: int, request: Any, version: int) -> Any:
    with cluster.connected(id) as client:
        return client.call(client.any_broker(), request, at_most=version)


def users(cluster: KraftCluster, id: int) -> list[str]:
    """With an ACL, as this broker says."""
    answer = ask(cluster, id, everything(DescribeAclsRequest), 3)
    assert answer.error_code == 0, answer
    return [entry.principal for row in answer.resources for entry in row.acls]


def until_users(cluster: KraftCluster, *names: str) -> None:
    cluster.until(f"{names} have ACLs", lambda: users(cluster, REAL) == users(cluster, OURS_2) == [*names])


def test_acls_are_changed_by_way_of_a_broker_of_ours() -> None:
    with KraftCluster([KAFKA, OURS], config=CONFIG) as cluster:
        made = ask(cluster, OURS_2, CreateAclsRequest(creations=[acl(CreateAclsRequest.AclCreation)]), 3)
        assert [row.error_code for row in made.results] == [0]
        until_users(cluster, "User:ann")
        topics = ask(cluster, OURS_2, create(creatable("made", replication_factor=2)), 7)
        assert [row.error_code for row in topics.topics] == [0]
        cluster.until_in_sync("made")
        cluster.stop(OURS_2)
        cluster.start(OURS_2)
        until_users(cluster, "User:ann")
        gone = ask(
            cluster, OURS_2, DeleteAclsRequest(filters=[everything(DeleteAclsRequest.DeleteAclsFilter)]), 3
        )
        assert [len(row.matching_acls) for row in gone.filter_results] == [1]
        until_users(cluster)


def test_who_is_denied_by_one_is_denied_by_the_other() -> None:
    config = {**STANDARD, "super.users": "User:nobody", "allow.everyone.if.no.acl.found": "true"}
    with KraftCluster([KAFKA, OURS], config=config) as cluster:
        names = ("open", "shut")
        ask(cluster, OURS_2, create(*(creatable(name, replication_factor=2) for name in names)), 7)
        cluster.until_in_sync(*names)
        denied = errors.TOPIC_AUTHORIZATION_FAILED
        made = ask(cluster, OURS_2, create_acls(creation("shut", principal="User:bob")), 3)
        assert [row.error_code for row in made.results] == [0]
        for id in (REAL, OURS_2):
            cluster.until("it is denied", lambda id=id: codes(cluster, id) == {"open": 0, "shut": denied})  # type: ignore[misc]
        everybody = creation("sh", principal="User:*", host="127.0.0.1", resource_pattern_type=PREFIXED)
        ask(cluster, REAL, create_acls(everybody), 3)
        for id in (REAL, OURS_2):
            cluster.until("it is allowed", lambda id=id: codes(cluster, id) == {"open": 0, "shut": 0})  # type: ignore[misc]


def codes(cluster: KraftCluster, id: int) -> dict[str, int]:
    kind = MetadataRequest.MetadataRequestTopic
    request = MetadataRequest(
        topics=[kind(name=name) for name in ("open", "shut")], allow_auto_topic_creation=False
    )
    return {row.name: row.error_code for row in ask(cluster, id, request, 12).topics}


def test_a_broker_that_is_not_allowed_to_take_part_says_so() -> None:
    config = {**CONFIG, "super.users": "User:nobody", "initial.broker.registration.timeout.ms": "8000"}
    with KraftCluster([], config=config) as cluster:
        broker = cluster.add(OURS)
        broker.start()
        assert broker.process is not None
        assert broker.process.wait(DEADLINE_S) == 1
        assert "which cluster this is: CLUSTER_AUTHORIZATION_FAILED" in broker.end_of_log()
        broker.process = None
