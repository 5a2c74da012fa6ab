"""FindCoordinator (key 10), versions 0 to 6: which broker coordinates a group or a transactional id (KIP-699 for many
keys at once).

A single node coordinates everything once the coordinator's internal topic exists. The first request creates the topic,
and is answered when the partition of its key can be used (Kafka answers COORDINATOR_NOT_AVAILABLE until then, and
clients ask again after 100 ms). Nobody is sent to a partition whose log is still to be made, since clients that are
refused there sleep for up to 3 s. Missing: coordinators of share groups. Requests for them are refused with a text that
says so.
"""

from __future__ import annotations

from pykafkad import errors, unserved
from pykafkad.cluster import topic_names
from pykafkad.cluster.image import NO_LEADER
from pykafkad.handlers.cluster_view import reachable_brokers
from pykafkad.handlers.pieces import FEW, pieces
from pykafkad.messages import FindCoordinatorResponse
from pykafkad.pure.authorization import (
    CLUSTER,
    CLUSTER_ACTION,
    DESCRIBE,
    GROUP,
    IN_PLACE,
    TRANSACTIONAL_ID,
    Need,
)
from pykafkad.slices import is_work

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from pykafkad.cluster.topic_creation import Planned
    from pykafkad.context import Context
    from pykafkad.handlers.broker import Broker
    from pykafkad.messages import FindCoordinatorRequest
    from pykafkad.slices import OrWork, Work


Coordinator = FindCoordinatorResponse.Coordinator

GROUP_KEY, TRANSACTION_KEY, SHARE_KEY = 0, 1, 2
MANY_KEYS_SINCE = 4
SHARE_KEYS_SINCE = 6
TOPICS = {GROUP_KEY: topic_names.CONSUMER_OFFSETS, TRANSACTION_KEY: topic_names.TRANSACTION_STATE}
REFUSED = {
    SHARE_KEY: "This broker does not serve share groups: there is no coordinator for share partitions.",
}


def is_group(request: FindCoordinatorRequest) -> bool:
    return request.key_type == GROUP_KEY


def is_transaction(request: FindCoordinatorRequest) -> bool:
    return request.key_type == TRANSACTION_KEY


def is_share(request: FindCoordinatorRequest) -> bool:
    return request.key_type == SHARE_KEY


needs = (
    Need(DESCRIBE, GROUP, "key", when=is_group, until=MANY_KEYS_SINCE - 1),
    Need(DESCRIBE, TRANSACTIONAL_ID, "key", when=is_transaction, until=MANY_KEYS_SINCE - 1),
    Need(DESCRIBE, GROUP, "coordinator_keys", when=is_group, since=MANY_KEYS_SINCE, denied=IN_PLACE),
    Need(
        DESCRIBE,
        TRANSACTIONAL_ID,
        "coordinator_keys",
        when=is_transaction,
        since=MANY_KEYS_SINCE,
        denied=IN_PLACE,
    ),
    Need(CLUSTER_ACTION, CLUSTER, when=is_share, since=SHARE_KEYS_SINCE),
)


def handle(
    broker: Broker, request: FindCoordinatorRequest, context: Context
) -> OrWork[FindCoordinatorResponse | Context]:
    topic = TOPICS.get(request.key_type)
    if topic is None:
        text = REFUSED.get(request.key_type, errors.MESSAGES[errors.INVALID_REQUEST])
        if request.key_type in REFUSED:
            unserved.say(broker.quiet, context, f"asked for a coordinator. {text}")
        return respond(request, context, errors.INVALID_REQUEST, text)
    if topic in broker.image.topics and not broker.controller.is_auto_creating(topic):
        return found(broker, request, context)
    promise = context.defer()

    def created(planned: Planned) -> None:
        if planned.error is None or planned.error.code == errors.TOPIC_ALREADY_EXISTS:
            response = found(broker, request, context)
        elif request.key_type == TRANSACTION_KEY and planned.error.code == errors.POLICY_VIOLATION:
            # It will never be there (`pykafkad open`), and producers would wait for it.
            response = respond(request, context, planned.error.code, planned.error.text or "")
        else:
            response = not_available(request, context)
        if is_work(response):
            broker.slices.run(response, promise.answer, lambda: not context.connection.closed)
        else:
            promise.answer(response)

    told = created
    if broker.cluster is not None:
        from pykafkad.handlers.cluster_coordinators import not_created
        from pykafkad.handlers.cluster_waits import in_time

        told = in_time(broker, created, not_created(topic))
    keys = request.coordinator_keys if context.version >= MANY_KEYS_SINCE else [request.key]
    broker.controller.auto_create(topic, told, needed(broker, request.key_type, keys))
    return promise


def partition_of(broker: Broker, key_type: int, key: str) -> int:
    if key_type == TRANSACTION_KEY:
        return broker.transaction_coordinator.partition_of(key)
    return broker.group_coordinator.partition_of(key)


def needed(broker: Broker, key_type: int, keys: list[str]) -> Callable[[], int] | None:
    """The partition that this request cannot do without; of several keys' partitions all are waited for."""
    return (lambda: partition_of(broker, key_type, keys[0])) if len(keys) == 1 else None


def found(
    broker: Broker, request: FindCoordinatorRequest, context: Context
) -> OrWork[FindCoordinatorResponse]:
    if broker.cluster is not None:
        from pykafkad.handlers.cluster_coordinators import found_in_cluster

        return found_in_cluster(broker, request, context)
    leaderless = partitions_without_leader(broker, TOPICS[request.key_type])

    def is_led(key: str) -> bool:
        return not leaderless or partition_of(broker, request.key_type, key) not in leaderless

    for info, endpoint in reachable_brokers(broker, context):
        if info.id == broker.node_id:
            text = "" if context.version >= MANY_KEYS_SINCE else "NONE"
            if context.version < MANY_KEYS_SINCE and not is_led(request.key):
                break
            return respond(request, context, errors.NONE, text, info.id, endpoint.host, endpoint.port, is_led)
    return not_available(request, context)


def partitions_without_leader(broker: Broker, name: str) -> frozenset[int]:
    """Keys whose partition of the topic has no leader (its log directory is offline) have no coordinator."""
    topic = broker.image.topics.get(name)
    if topic is None:  # deleted while this request waited for it
        return frozenset()
    return frozenset(index for index, each in enumerate(topic.partitions) if each.leader == NO_LEADER)


def not_available(request: FindCoordinatorRequest, context: Context) -> OrWork[FindCoordinatorResponse]:
    # If a request has many keys, Kafka leaves the text of this error empty.
    text = "" if context.version >= MANY_KEYS_SINCE else errors.MESSAGES[errors.COORDINATOR_NOT_AVAILABLE]
    return respond(request, context, errors.COORDINATOR_NOT_AVAILABLE, text)


def respond(
    request: FindCoordinatorRequest,
    context: Context,
    code: int,
    text: str,
    node_id: int = -1,
    host: str = "",
    port: int = -1,
    is_led: Callable[[str], bool] | None = None,
) -> OrWork[FindCoordinatorResponse]:
    """The same answer for every key, except for groups whose partition has no leader."""
    if context.version < MANY_KEYS_SINCE:
        return FindCoordinatorResponse(
            error_code=code, error_message=text, node_id=node_id, host=host, port=port
        )

    def coordinator(key: str) -> Coordinator:
        if is_led is not None and not is_led(key):
            return Coordinator(key=key, node_id=-1, port=-1, error_code=errors.COORDINATOR_NOT_AVAILABLE)
        return Coordinator(
            key=key, node_id=node_id, host=host, port=port, error_code=code, error_message=text
        )

    keys = request.coordinator_keys
    if len(keys) <= FEW:
        return FindCoordinatorResponse(coordinators=[coordinator(key) for key in keys])
    return in_slices(keys, coordinator)


def in_slices(keys: list[str], coordinator: Callable[[str], Coordinator]) -> Work[FindCoordinatorResponse]:
    """The same for many keys. A repeated key gets the same object as its answer."""
    known: dict[str, Coordinator] = {}
    rows = []
    for piece in pieces(keys):
        for key in piece:
            row = known.get(key)
            if row is None:
                row = known[key] = coordinator(key)
            rows.append(row)
        yield
    return FindCoordinatorResponse(coordinators=rows)
