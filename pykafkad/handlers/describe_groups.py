"""DescribeGroups (key 15), versions 0 to 6: classic groups and their members.

A group that does not exist is reported as Dead, since version 6 with an error (KIP-1043). The same holds for a group of
the consumer protocol.
"""

from __future__ import annotations

from pykafkad.errors import KafkaError
from pykafkad.handlers.permits import Permits
from pykafkad.messages import DescribeGroupsResponse
from pykafkad.pure.authorization import DESCRIBE, FIRST, GROUP, Need
from pykafkad.pure.groups.classic_answers import describe_missing

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Generator

    from pykafkad.context import Context
    from pykafkad.coordinator.runtime.callers import Asker
    from pykafkad.handlers.broker import Broker
    from pykafkad.messages import DescribeGroupsRequest
    from pykafkad.slices import Work


DescribedGroup = DescribeGroupsResponse.DescribedGroup

# READ, DELETE, DESCRIBE, DESCRIBE_CONFIGS, ALTER_CONFIGS: the operations on a group that everybody is allowed to do
ALL_OPERATIONS = 1 << 3 | 1 << 6 | 1 << 8 | 1 << 10 | 1 << 11


needs = (Need(DESCRIBE, GROUP, "groups", denied=FIRST),)


def handle(broker: Broker, request: DescribeGroupsRequest, context: Context) -> Work[DescribeGroupsResponse]:
    asker = broker.group_coordinator.asker_in_slices(context, lambda error: refused(request, error))
    known: dict[str, DescribedGroup] = {}
    groups: list[DescribedGroup] = []
    for group_id in request.groups:
        described = known.get(group_id)
        if described is None:
            described = known[group_id] = yield from describe(broker, group_id, context.version, asker)
            if request.include_authorized_operations and not described.error_code:
                described.authorized_operations = operations_on(broker, context, group_id)
        groups.append(described)
        yield
    return asker.answer(DescribeGroupsResponse(groups=groups))


def operations_on(broker: Broker, context: Context, group_id: str) -> int:
    if broker.authorizer is None:
        return ALL_OPERATIONS
    return Permits(broker.authorizer, context).operations(GROUP, group_id)


def describe(
    broker: Broker, group_id: str, version: int, asker: Asker
) -> Generator[None, None, DescribedGroup]:
    try:
        groups = broker.group_coordinator.look(group_id, asker)
    except KafkaError as error:
        return DescribedGroup(group_id=group_id, error_code=error.code)
    group = groups.by_id.get(group_id)
    if group is None:
        return describe_missing(group_id, version, f"Group {group_id} not found.")
    return (yield from group.describe(version))


def refused(request: DescribeGroupsRequest, error: KafkaError) -> DescribeGroupsResponse:
    groups = [DescribedGroup(group_id=group_id, error_code=error.code) for group_id in request.groups]
    return DescribeGroupsResponse(groups=groups)
