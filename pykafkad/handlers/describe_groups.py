"""DescribeGroups (key 15), versions 0 to 6: classic groups and their members.

A group that is not there is Dead, and since version 6 an error as well (KIP-1043); so is one of another protocol.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pykafkad.errors import KafkaError
from pykafkad.messages import DescribeGroupsResponse
from pykafkad.pure.groups.classic_answers import describe_missing

if TYPE_CHECKING:
    from pykafkad.dispatcher import Context
    from pykafkad.server import Broker


DescribedGroup = DescribeGroupsResponse.DescribedGroup

# READ, DELETE, DESCRIBE, DESCRIBE_CONFIGS, ALTER_CONFIGS: what may be done with a group where nobody is kept from it
ALL_OPERATIONS = 1 << 3 | 1 << 6 | 1 << 8 | 1 << 10 | 1 << 11


def handle(broker: Broker, request: Any, context: Context) -> Any:
    asker = broker.groups.asker(context, lambda error: refused(request, error))
    groups = []
    for group_id in request.groups:
        described = describe(broker, group_id, context.version, asker)
        if request.include_authorized_operations and not described.error_code:
            described.authorized_operations = ALL_OPERATIONS
        groups.append(described)
    return DescribeGroupsResponse(groups=groups)


def describe(broker: Broker, group_id: str, version: int, asker: Any) -> DescribedGroup:
    try:
        groups = broker.groups.look(group_id, asker)
    except KafkaError as error:
        return DescribedGroup(group_id=group_id, error_code=error.code)
    group = groups.by_id.get(group_id)
    if group is None:
        return describe_missing(group_id, version, f"Group {group_id} not found.")
    return group.describe(version)


def refused(request: Any, error: KafkaError) -> Any:
    groups = [DescribedGroup(group_id=group_id, error_code=error.code) for group_id in request.groups]
    return DescribeGroupsResponse(groups=groups)
