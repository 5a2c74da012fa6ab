"""ConsumerGroupDescribe (key 69), versions 0 and 1: consumer groups, their members and epochs (KIP-848). Since version 1
members of the classic protocol can be told from the others."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pykafkad import errors
from pykafkad.errors import KafkaError
from pykafkad.handlers.consumer_group_heartbeat import CONSUMER, PROTOCOLS
from pykafkad.handlers.describe_groups import ALL_OPERATIONS
from pykafkad.messages import ConsumerGroupDescribeResponse

if TYPE_CHECKING:
    from pykafkad.dispatcher import Context
    from pykafkad.server import Broker


DescribedGroup = ConsumerGroupDescribeResponse.DescribedGroup


def handle(broker: Broker, request: Any, context: Context) -> Any:
    if CONSUMER not in broker.config[PROTOCOLS]:
        return refused(request, KafkaError(errors.UNSUPPORTED_VERSION))
    asker = broker.groups.asker(context, lambda error: refused(request, error))
    groups = []
    for group_id in request.group_ids:
        described = describe(broker, group_id, asker)
        if request.include_authorized_operations and not described.error_code:
            described.authorized_operations = ALL_OPERATIONS
        groups.append(described)
    return ConsumerGroupDescribeResponse(groups=groups)


def describe(broker: Broker, group_id: str, asker: Any) -> DescribedGroup:
    from pykafkad.pure.groups.consumer import ConsumerGroup
    from pykafkad.pure.groups.consumer_describe import described

    if not group_id:
        return DescribedGroup(group_id=group_id, error_code=errors.INVALID_GROUP_ID)
    try:
        group = broker.groups.look(group_id, asker).by_id.get(group_id)
    except KafkaError as error:
        return DescribedGroup(group_id=group_id, error_code=error.code)
    if isinstance(group, ConsumerGroup):
        return described(group)
    text = f"Group {group_id} not found." if group is None else f"Group {group_id} is not a consumer group."
    return DescribedGroup(group_id=group_id, error_code=errors.GROUP_ID_NOT_FOUND, error_message=text)


def refused(request: Any, error: KafkaError) -> Any:
    return ConsumerGroupDescribeResponse(
        groups=[DescribedGroup(group_id=group_id, error_code=error.code) for group_id in request.group_ids]
    )
