"""ConsumerGroupDescribe (key 69), versions 0 and 1: consumer groups, their members and epochs (KIP-848). Version 1
shows which members use the classic protocol.
"""

from __future__ import annotations

from pykafkad import errors
from pykafkad.errors import KafkaError
from pykafkad.handlers.consumer_group_heartbeat import is_served
from pykafkad.handlers.describe_groups import operations_on
from pykafkad.handlers.permits import Permits
from pykafkad.messages import ConsumerGroupDescribeResponse
from pykafkad.pure.authorization import DESCRIBE, FIRST, GROUP, TOPIC, Need

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Generator

    from pykafkad.context import Context
    from pykafkad.coordinator.runtime.callers import Asker
    from pykafkad.handlers.broker import Broker
    from pykafkad.messages import ConsumerGroupDescribeRequest
    from pykafkad.slices import Work


DescribedGroup = ConsumerGroupDescribeResponse.DescribedGroup

HIDDEN = "The group has described topic(s) that the client is not authorized to describe."


needs = (
    Need(DESCRIBE, GROUP, "group_ids", denied=FIRST),
    Need(DESCRIBE, TOPIC, by_handler=True),
)


def handle(
    broker: Broker, request: ConsumerGroupDescribeRequest, context: Context
) -> Work[ConsumerGroupDescribeResponse]:
    if not is_served(broker):
        return refused(request, KafkaError(errors.UNSUPPORTED_VERSION))
    asker = broker.group_coordinator.asker_in_slices(context, lambda error: refused(request, error))
    permits = None if broker.authorizer is None else Permits(broker.authorizer, context)
    known: dict[str, DescribedGroup] = {}
    groups: list[DescribedGroup] = []
    for group_id in request.group_ids:
        described = known.get(group_id)
        if described is None:
            described = yield from describe(broker, group_id, asker)
            if request.include_authorized_operations and not described.error_code:
                described.authorized_operations = operations_on(broker, context, group_id)
            if permits is not None and not (yield from may_see_all(permits, described)):
                described = DescribedGroup(
                    group_id=group_id, error_code=errors.TOPIC_AUTHORIZATION_FAILED, error_message=HIDDEN
                )
            known[group_id] = described
        groups.append(described)
        yield
    return asker.answer(ConsumerGroupDescribeResponse(groups=groups))


def said_first(
    broker: Broker, request: ConsumerGroupDescribeRequest, context: Context, permits: Permits
) -> Work[ConsumerGroupDescribeResponse | None]:
    yield
    return None if is_served(broker) else refused(request, KafkaError(errors.UNSUPPORTED_VERSION))


def may_see_all(permits: Permits, described: DescribedGroup) -> Work[bool]:
    """Whether the client may describe the topics of all members."""
    for member in described.members:
        for each in (member.assignment, member.target_assignment):
            for topic in each.topic_partitions:
                if not permits.allow(DESCRIBE, TOPIC, topic.topic_name):
                    return False
            yield
    return True


def describe(broker: Broker, group_id: str, asker: Asker) -> Generator[None, None, DescribedGroup]:
    from pykafkad.pure.groups.consumer import ConsumerGroup
    from pykafkad.pure.groups.consumer_describe import described

    if not group_id:
        return DescribedGroup(group_id=group_id, error_code=errors.INVALID_GROUP_ID)
    try:
        group = broker.group_coordinator.look(group_id, asker).by_id.get(group_id)
    except KafkaError as error:
        return DescribedGroup(group_id=group_id, error_code=error.code)
    if isinstance(group, ConsumerGroup):
        return (yield from described(group))
    text = f"Group {group_id} not found." if group is None else f"Group {group_id} is not a consumer group."
    return DescribedGroup(group_id=group_id, error_code=errors.GROUP_ID_NOT_FOUND, error_message=text)


def refused(request: ConsumerGroupDescribeRequest, error: KafkaError) -> ConsumerGroupDescribeResponse:
    return ConsumerGroupDescribeResponse(
        groups=[DescribedGroup(group_id=group_id, error_code=error.code) for group_id in request.group_ids]
    )
