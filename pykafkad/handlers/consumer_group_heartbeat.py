"""ConsumerGroupHeartbeat (key 68), versions 0 and 1: a member of a consumer group reports its subscription and the
partitions it owns, and receives its assignment (KIP-848). Since version 1 members can subscribe by regular expression
and generate their member ids (KIP-1082). The rules are in `pure/groups/consumer_heartbeat`.
"""

from __future__ import annotations

from pykafkad import errors
from pykafkad.errors import KafkaError
from pykafkad.handlers.permits import topics_shown
from pykafkad.handlers.pieces import FEW, in_order
from pykafkad.messages import ConsumerGroupHeartbeatResponse
from pykafkad.pure.authorization import DESCRIBE, GROUP, READ, TOPIC, Need
from pykafkad.slices import let_go

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pykafkad.context import Context
    from pykafkad.handlers.broker import Broker
    from pykafkad.handlers.permits import Permits
    from pykafkad.messages import ConsumerGroupHeartbeatRequest
    from pykafkad.pure.effects import Caller, Effects
    from pykafkad.pure.groups.registry import Groups
    from pykafkad.slices import OrWork, Work


PROTOCOLS = "group.coordinator.rebalance.protocols"
CONSUMER = "consumer"


needs = (
    Need(READ, GROUP, "group_id"),
    Need(DESCRIBE, TOPIC, "subscribed_topic_names"),
    Need(DESCRIBE, TOPIC, by_handler=True),
)


def handle(
    broker: Broker, request: ConsumerGroupHeartbeatRequest, context: Context
) -> OrWork[ConsumerGroupHeartbeatResponse | Context]:
    from pykafkad.pure.groups.consumer_heartbeat import check_request

    if not is_served(broker):
        return refused(KafkaError(errors.UNSUPPORTED_VERSION))
    try:
        check_request(request, context.version, broker.group_coordinator.settings.consumer_assignors)
    except KafkaError as error:
        return refused(error)
    if len(request.subscribed_topic_names or ()) > FEW:
        return in_slices(broker, request, context)
    return beat(broker, request, context)


def is_served(broker: Broker) -> bool:
    return CONSUMER in broker.config[PROTOCOLS]


def said_first(
    broker: Broker, request: ConsumerGroupHeartbeatRequest, context: Context, permits: Permits
) -> Work[ConsumerGroupHeartbeatResponse | None]:
    yield
    return None if is_served(broker) else refused(KafkaError(errors.UNSUPPORTED_VERSION))


def unauthorized(
    request: ConsumerGroupHeartbeatRequest, version: int, code: int
) -> ConsumerGroupHeartbeatResponse:
    return ConsumerGroupHeartbeatResponse(error_code=code)


def in_slices(
    broker: Broker, request: ConsumerGroupHeartbeatRequest, context: Context
) -> Work[ConsumerGroupHeartbeatResponse | Context]:
    """Very many topics are brought into order first, as the group will want them."""
    told = request.subscribed_topic_names or []
    request.subscribed_topic_names = yield from in_order(told)
    yield from let_go(told)
    return beat(broker, request, context)


def beat(
    broker: Broker, request: ConsumerGroupHeartbeatRequest, context: Context
) -> ConsumerGroupHeartbeatResponse | Context:
    may_describe = topics_shown(broker, context)

    def heartbeat(groups: Groups, caller: Caller) -> Effects:
        caller.may_describe = may_describe
        return groups.consumer_heartbeat(request, caller, broker.clock.now_ms())

    return broker.group_coordinator.ask(
        request.group_id,
        context,
        heartbeat,
        refused,
    )


def refused(error: KafkaError) -> ConsumerGroupHeartbeatResponse:
    return ConsumerGroupHeartbeatResponse(error_code=error.code, error_message=error.message)
