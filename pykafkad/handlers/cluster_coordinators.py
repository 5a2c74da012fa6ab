"""FindCoordinator in a cluster: the coordinator of a key is whoever leads the key's partition of the internal topic."""

from __future__ import annotations

from pykafkad import errors
from pykafkad.cluster.topic_creation import Planned
from pykafkad.errors import KafkaError
from pykafkad.handlers.cluster_view import reachable_brokers
from pykafkad.handlers.find_coordinator import (
    MANY_KEYS_SINCE,
    TOPICS,
    Coordinator,
    not_available,
    partition_of,
)
from pykafkad.messages import FindCoordinatorResponse
from pykafkad.slices import begun, chunks

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pykafkad.context import Context
    from pykafkad.handlers.broker import Broker
    from pykafkad.messages import FindCoordinatorRequest
    from pykafkad.slices import OrWork, Work

    Place = tuple[int, str, int]


def not_created(topic: str) -> Planned:
    """Or not yet: the client is to ask again."""
    planned = Planned(topic)
    planned.error = KafkaError(errors.COORDINATOR_NOT_AVAILABLE)
    return planned


class Coordinators:
    """As this request's listener shows them."""

    def __init__(self, broker: Broker, request: FindCoordinatorRequest, context: Context) -> None:
        self._broker = broker
        self._key_type = request.key_type
        topic = broker.image.topics.get(TOPICS[request.key_type])
        self._leaders = [each.leader for each in topic.partitions] if topic is not None else []
        self._points = {info.id: endpoint for info, endpoint in reachable_brokers(broker, context)}

    def of(self, key: str) -> Place | None:
        """None: nobody leads the partition who can be reached."""
        index = partition_of(self._broker, self._key_type, key)
        leader = self._leaders[index] if index < len(self._leaders) else -1
        point = self._points.get(leader)
        return (leader, point.host, point.port) if point is not None else None


def found_in_cluster(
    broker: Broker, request: FindCoordinatorRequest, context: Context
) -> OrWork[FindCoordinatorResponse]:
    coordinators = Coordinators(broker, request, context)
    if context.version >= MANY_KEYS_SINCE:
        return begun(answers(request.coordinator_keys, coordinators))
    place = coordinators.of(request.key)
    if place is None:
        return not_available(request, context)
    node_id, host, port = place
    return FindCoordinatorResponse(
        error_code=errors.NONE, error_message="NONE", node_id=node_id, host=host, port=port
    )


def answers(keys: list[str], coordinators: Coordinators) -> Work[FindCoordinatorResponse]:
    rows: list[Coordinator] = []
    for some in chunks(keys):
        rows += [row(key, coordinators.of(key)) for key in some]
        yield
    return FindCoordinatorResponse(coordinators=rows)


def row(key: str, place: Place | None) -> Coordinator:
    if place is None:
        return Coordinator(key=key, node_id=-1, port=-1, error_code=errors.COORDINATOR_NOT_AVAILABLE)
    node_id, host, port = place
    return Coordinator(
        key=key, node_id=node_id, host=host, port=port, error_code=errors.NONE, error_message=""
    )
