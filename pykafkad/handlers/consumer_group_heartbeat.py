"""ConsumerGroupHeartbeat (key 68), versions 0 and 1: a member of a consumer group says that it is there, what it wants
and what it has, and is told what it should have (KIP-848). Since version 1 members subscribe by expressions and make
their ids themselves (KIP-1082). The group's machine does it: `pure/groups/consumer_heartbeat`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pykafkad import errors
from pykafkad.errors import KafkaError
from pykafkad.messages import ConsumerGroupHeartbeatResponse

if TYPE_CHECKING:
    from pykafkad.dispatcher import Context
    from pykafkad.server import Broker


PROTOCOLS = "group.coordinator.rebalance.protocols"
CONSUMER = "consumer"


def handle(broker: Broker, request: Any, context: Context) -> Any:
    from pykafkad.pure.groups.consumer_heartbeat import check_request

    if CONSUMER not in broker.config[PROTOCOLS]:
        return ConsumerGroupHeartbeatResponse(error_code=errors.UNSUPPORTED_VERSION)
    try:
        check_request(request, context.version, broker.groups.settings.consumer_assignors)
    except KafkaError as error:
        return refused(error)
    return broker.groups.ask(
        request.group_id,
        context,
        lambda groups, caller: groups.consumer_heartbeat(request, caller, broker.clock.now_ms()),
        refused,
    )


def refused(error: KafkaError) -> Any:
    return ConsumerGroupHeartbeatResponse(error_code=error.code, error_message=error.message)
