"""ACLs of the program: who is denied, and what is there after a stop and after a kill."""

from __future__ import annotations

from typing import Any

import pytest

from pykafkad import errors, messages
from pykafkad.config_authorizer import OF_ZOOKEEPER, STANDARD
from pykafkad.messages import CreateAclsRequest, DeleteAclsRequest, DescribeAclsRequest, MetadataRequest
from pykafkad.testing import Broker, BrokerError

ME, BOB, ALL, READ, DENY, ALLOW, TOPIC, CLUSTER = "User:ANONYMOUS", "User:bob", 2, 3, 2, 3, 2, 4
DENIED = errors.TOPIC_AUTHORIZATION_FAILED
EVERYTHING: dict[str, Any] = {
    "resource_type_filter": 1,
    "resource_name_filter": None,
    "pattern_type_filter": 1,
    "principal_filter": None,
    "host_filter": None,
    "operation": 1,
    "permission_type": 1,
}


def ask(broker: Broker, request: Any, version: int = 3) -> Any:
    with broker.client() as client:
        return client.call(request, version)


def create(broker: Broker, *rows: tuple[str, str, int, int]) -> None:
    """Names, principals, operations and permissions."""
    creations = [
        CreateAclsRequest.AclCreation(
            resource_type=TOPIC,
            resource_name=name,
            principal=principal,
            host="*",
            operation=operation,
            permission_type=permission,
        )
        for name, principal, operation, permission in rows
    ]
    answer = ask(broker, CreateAclsRequest(creations=creations))
    assert not any(row.error_code for row in answer.results), answer


def count(broker: Broker) -> int:
    answer = ask(broker, DescribeAclsRequest(**EVERYTHING))
    assert answer.error_code == 0
    return sum(len(row.acls) for row in answer.resources)


def codes(broker: Broker, *names: str) -> list[int]:
    kind = MetadataRequest.MetadataRequestTopic
    request = MetadataRequest(topics=[kind(name=name) for name in names], allow_auto_topic_creation=False)
    found = {row.name: row.error_code for row in ask(broker, request, 12).topics}
    return [found[name] for name in names]


def broker_with(**config: object) -> Broker:
    keys = {key.replace("_", "."): value for key, value in config.items()}
    return Broker(["open", "shut"], {"authorizer.class.name": STANDARD, **keys})


def test_acls_count_at_once_and_after_a_stop_and_a_kill() -> None:
    with broker_with(allow_everyone_if_no_acl_found=True) as broker:
        assert codes(broker, "open", "shut") == [0, 0]
        create(broker, ("shut", BOB, ALL, ALLOW), ("open", ME, READ, ALLOW), ("open", ME, ALL, DENY))
        assert codes(broker, "open", "shut") == [DENIED, DENIED]
        kind = DeleteAclsRequest.DeleteAclsFilter
        deleted = ask(broker, DeleteAclsRequest(filters=[kind(**EVERYTHING | {"permission_type": DENY})]))
        assert len(deleted.filter_results[0].matching_acls) == 1
        assert codes(broker, "open", "shut") == [0, DENIED]
        for end in (broker.stop, broker.kill):
            end()
            broker.start()
            assert codes(broker, "open", "shut") == [0, DENIED] and count(broker) == 2
        line = "User:ANONYMOUS from 127.0.0.1 is denied DESCRIBE of topic shut"
        assert line in broker.log_text()


def test_a_super_user_may_do_what_nobody_else_may() -> None:
    with broker_with(super_users=f"{BOB};{ME}") as broker:
        create(broker, ("open", ME, ALL, DENY))
        assert codes(broker, "open", "shut") == [0, 0] and count(broker) == 1
    with Broker(config={"authorizer.class.name": STANDARD, "super.users": BOB}) as broker:
        assert (
            ask(broker, DescribeAclsRequest(**EVERYTHING)).error_code == errors.CLUSTER_AUTHORIZATION_FAILED
        )
        assert codes(broker, "open") == [DENIED]


def test_who_may_describe_the_cluster_is_shown_what_may_be_done_to_it() -> None:
    with broker_with(allow_everyone_if_no_acl_found=True) as broker:
        request = messages.DescribeClusterRequest(include_cluster_authorized_operations=True)
        everything = ask(broker, request, 0).cluster_authorized_operations
        kind = CreateAclsRequest.AclCreation
        row: dict[str, Any] = {
            "resource_name": "kafka-cluster",
            "principal": ME,
            "host": "*",
            "permission_type": ALLOW,
        }
        creation = kind(resource_type=CLUSTER, operation=8, **row)
        assert ask(broker, CreateAclsRequest(creations=[creation])).results[0].error_code == 0
        assert everything != ask(broker, request, 0).cluster_authorized_operations == 1 << 8


def test_thousands_of_acls_hold_nobody_up() -> None:
    with broker_with(super_users=ME) as broker:
        create(broker, *((f"n{number}", BOB, READ, ALLOW) for number in range(10_000)))
        assert count(broker) == 10_000
        kind = DeleteAclsRequest.DeleteAclsFilter
        deleted = ask(broker, DeleteAclsRequest(filters=[kind(**EVERYTHING)]))
        assert len(deleted.filter_results[0].matching_acls) == 10_000 and count(broker) == 0
        assert "held the loop" not in broker.log_text()


@pytest.mark.parametrize(
    "config",
    [
        {"authorizer.class.name": OF_ZOOKEEPER},
        {"authorizer.class.name": STANDARD, "super.users": "ann"},
    ],
)
def test_what_cannot_be_obeyed_refuses_the_start(config: dict[str, str]) -> None:
    with pytest.raises(BrokerError, match=r"authorizer\.class\.name|super\.users"):
        Broker(config=config)
