"""Brokers of a cluster with an authorizer, as processes on a ZooKeeper of the tests' own: only who has an ACL may do
anything, and that includes the brokers, which are all User:ANONYMOUS here."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from pykafkad import errors
from pykafkad.config_authorizer import OF_ZOOKEEPER
from pykafkad.messages import CreateAclsRequest, DeleteAclsRequest, DescribeAclsRequest, MetadataRequest
from pykafkad.testing.client import Client
from pykafkad.testing.cluster import Cluster
from pykafkad.zookeeper import znodes
from pykafkad.zookeeper.client import Create
from pykafkad.zookeeper.config_znodes import ACL_PATHS, Acl, Pattern, acl, write_acls
from tests.net.zookeeper_server import ZooKeeperServer

DEADLINE_S = 60.0
ME, ALLOW, ALL, DESCRIBE, TOPIC, CLUSTER, LITERAL = "User:ANONYMOUS", 3, 2, 8, 2, 4, 3
CONFIG = {
    "authorizer.class.name": OF_ZOOKEEPER,
    "zookeeper.session.timeout.ms": "6000",
    "zookeeper.connection.timeout.ms": "30000",
}
EVERYTHING: dict[str, Any] = {
    "resource_type_filter": 1,
    "resource_name_filter": None,
    "pattern_type_filter": 1,
    "principal_filter": None,
    "host_filter": None,
    "operation": 1,
    "permission_type": 1,
}


@pytest.fixture(scope="module")
def server() -> Iterator[ZooKeeperServer]:
    """Somebody has given the brokers what they need, before there was one."""
    server = ZooKeeperServer()
    may = [Acl(ME, ALLOW, "127.0.0.1", operation) for operation in (9, 5, 7, 8)]
    paths = sorted({above for path in ACL_PATHS for above in znodes.parents(path)})
    with server.lock:
        server.memory.do(*map(Create, paths))
        server.memory.do(Create(acl(Pattern(CLUSTER, "kafka-cluster", LITERAL)), write_acls(may)))
    yield server
    server.close()


@pytest.fixture(scope="module")
def cluster(server: ZooKeeperServer) -> Iterator[Cluster]:
    with Cluster(2, {"orders": 2}, CONFIG, zookeeper=server.address) as cluster:
        yield cluster


def ask(cluster: Cluster, id: int, request: Any, version: int = 3) -> Any:
    broker = cluster.home.brokers[id]
    with Client(broker.host, broker.port) as client:
        return client.call(request, version)


def until(there: Callable[[], bool], what: str) -> None:
    deadline = time.monotonic() + DEADLINE_S
    while not there():
        assert time.monotonic() < deadline, what
        time.sleep(0.02)


def code(cluster: Cluster, id: int) -> int:
    kind = MetadataRequest.MetadataRequestTopic
    request = MetadataRequest(topics=[kind(name="orders")], allow_auto_topic_creation=False)
    found: int = ask(cluster, id, request, 9).topics[0].error_code
    return found


def names(cluster: Cluster, id: int) -> set[str]:
    answer = ask(cluster, id, DescribeAclsRequest(**EVERYTHING))
    assert answer.error_code == 0
    return {row.resource_name for row in answer.resources}


def test_brokers_replicate_by_their_acl_and_clients_have_none(cluster: Cluster) -> None:
    until(lambda: all(len(row["isr"]) == 2 for row in cluster.status()["partitions"]), "in sync")
    assert [code(cluster, id) for id in (0, 1)] == [errors.TOPIC_AUTHORIZATION_FAILED] * 2


def test_an_acl_counts_everywhere_and_after_a_lost_session(server: ZooKeeperServer, cluster: Cluster) -> None:
    creation = CreateAclsRequest.AclCreation(
        resource_type=TOPIC, resource_name="orders", principal=ME, host="*", operation=DESCRIBE
    )
    creation.permission_type = ALLOW
    assert ask(cluster, 0, CreateAclsRequest(creations=[creation])).results[0].error_code == 0
    assert code(cluster, 0) == 0
    until(lambda: code(cluster, 1) == 0, "what one has made counts at the other")
    with server.lock:
        owner = server.memory.nodes[znodes.broker(1)].owner
        server.memory.end_session(owner)
        server._sessions[owner].cut()
        server.memory.do(Create(acl(Pattern(TOPIC, "new", LITERAL)), write_acls([Acl(ME, ALLOW, "*", ALL)])))
    until(lambda: "new" in names(cluster, 1), "what nobody was told of is read in the next session")
    wanted = DeleteAclsRequest.DeleteAclsFilter(**EVERYTHING | {"resource_name_filter": "orders"})
    deleted = ask(cluster, 1, DeleteAclsRequest(filters=[wanted]))
    assert len(deleted.filter_results[0].matching_acls) == 1
    denied = errors.TOPIC_AUTHORIZATION_FAILED
    assert code(cluster, 1) == denied
    until(lambda: code(cluster, 0) == denied, "what one has removed counts no more at the other")
