"""FindCoordinator (key 10), versions 0 to 6: which broker coordinates a group (KIP-699 for many keys at
once).

A single node coordinates everything, once the topic that holds the coordinator's state is there: the first
request makes it, and is answered when it can be used (Kafka says COORDINATOR_NOT_AVAILABLE meanwhile).
Missing: coordinators of transactions and of share groups; they are refused with a text that says so.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pykafkad import errors
from pykafkad.cluster import topic_names
from pykafkad.cluster.image import NO_LEADER
from pykafkad.handlers.cluster_view import reachable_brokers
from pykafkad.messages import FindCoordinatorResponse

if TYPE_CHECKING:
    from pykafkad.cluster.topic_creation import Planned
    from pykafkad.dispatcher import Context
    from pykafkad.server import Broker


Coordinator = FindCoordinatorResponse.Coordinator

GROUP, TRANSACTION, SHARE = 0, 1, 2
MANY_KEYS_SINCE = 4
REFUSED = {
    TRANSACTION: "This broker does not serve transactions: there is no coordinator for transactional ids.",
    SHARE: "This broker does not serve share groups: there is no coordinator for share partitions.",
}


def handle(broker: Broker, request: Any, context: Context) -> Any:
    if request.key_type != GROUP:
        text = REFUSED.get(request.key_type, errors.MESSAGES[errors.INVALID_REQUEST])
        return respond(request, context, errors.INVALID_REQUEST, text)
    if topic_names.CONSUMER_OFFSETS in broker.image.topics:
        return found(broker, request, context)
    promise = context.defer()

    def created(planned: Planned) -> None:
        if planned.error is None or planned.error.code == errors.TOPIC_ALREADY_EXISTS:
            promise.answer(found(broker, request, context))
        else:
            promise.answer(not_available(request, context))

    broker.controller.auto_create(topic_names.CONSUMER_OFFSETS, created)
    return promise


def found(broker: Broker, request: Any, context: Context) -> Any:
    for info, endpoint in reachable_brokers(broker, context):
        if info.id == broker.node_id:
            text = "" if context.version >= MANY_KEYS_SINCE else "NONE"
            response = respond(request, context, errors.NONE, text, info.id, endpoint.host, endpoint.port)
            return without_leaderless(broker, request, context, response)
    return not_available(request, context)


def without_leaderless(broker: Broker, request: Any, context: Context, response: Any) -> Any:
    """Groups whose partition of __consumer_offsets has no leader (its log directory is offline) have no coordinator."""
    partitions = broker.image.topics[topic_names.CONSUMER_OFFSETS].partitions
    leaderless = {index for index, partition in enumerate(partitions) if partition.leader == NO_LEADER}
    if leaderless:
        refusal = not_available(request, context)
        if context.version < MANY_KEYS_SINCE:
            return refusal if broker.groups.partition_of(request.key) in leaderless else response
        for slot, key in enumerate(request.coordinator_keys):
            if broker.groups.partition_of(key) in leaderless:
                response.coordinators[slot] = refusal.coordinators[slot]
    return response


def not_available(request: Any, context: Context) -> Any:
    # With many keys in a request Kafka leaves the texts of this error empty.
    text = "" if context.version >= MANY_KEYS_SINCE else errors.MESSAGES[errors.COORDINATOR_NOT_AVAILABLE]
    return respond(request, context, errors.COORDINATOR_NOT_AVAILABLE, text)


def respond(
    request: Any, context: Context, code: int, text: str, node_id: int = -1, host: str = "", port: int = -1
) -> Any:
    """The same for every key that was asked for."""
    if context.version < MANY_KEYS_SINCE:
        return FindCoordinatorResponse(
            error_code=code, error_message=text, node_id=node_id, host=host, port=port
        )
    return FindCoordinatorResponse(
        coordinators=[
            Coordinator(key=key, node_id=node_id, host=host, port=port, error_code=code, error_message=text)
            for key in request.coordinator_keys
        ]
    )
