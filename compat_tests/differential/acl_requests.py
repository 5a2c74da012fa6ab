"""Requests about ACLs: what is not said is READ on the topic `t`, allowed to User:ann everywhere; filters take all."""

from __future__ import annotations

from typing import Any

from pykafkad import messages

TOPIC, GROUP, CLUSTER, TRANSACTIONAL_ID = 2, 3, 4, 5
ALL, READ, WRITE, ALTER, DESCRIBE = 2, 3, 4, 7, 8
DENY, ALLOW = 2, 3
ANY, MATCH, LITERAL, PREFIXED = 1, 2, 3, 4


def creation(name: str = "t", /, **fields: Any) -> Any:
    usual: dict[str, Any] = {"resource_type": TOPIC, "principal": "User:ann", "host": "*"}
    usual |= {"operation": READ, "permission_type": ALLOW}
    return messages.CreateAclsRequest.AclCreation(resource_name=name, **usual | fields)


def create_acls(*creations: Any) -> Any:
    return messages.CreateAclsRequest(creations=list(creations))


def everything(kind: Any, **fields: Any) -> Any:
    usual: dict[str, Any] = {
        "resource_type_filter": ANY,
        "resource_name_filter": None,
        "pattern_type_filter": ANY,
    }
    usual |= {"principal_filter": None, "host_filter": None, "operation": ANY, "permission_type": ANY}
    return kind(**usual | fields)


def describe_acls(**fields: Any) -> Any:
    return everything(messages.DescribeAclsRequest, **fields)


def acl_filter(**fields: Any) -> Any:
    return everything(messages.DeleteAclsRequest.DeleteAclsFilter, **fields)


def delete_acls(*filters: Any) -> Any:
    return messages.DeleteAclsRequest(filters=list(filters))
