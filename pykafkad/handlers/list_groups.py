"""ListGroups (key 16), versions 0 to 5: all groups, or those in some states (4, KIP-518) or of some types (5, KIP-848).

While a partition of `__consumer_offsets` is being loaded its groups are not known, so the request is refused.
"""

from __future__ import annotations

from operator import attrgetter

from pykafkad.errors import KafkaError
from pykafkad.handlers.permits import Permits
from pykafkad.handlers.pieces import pieces
from pykafkad.messages import ListGroupsResponse
from pykafkad.pure.authorization import CLUSTER, DESCRIBE, GROUP, Need

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pykafkad.context import Context
    from pykafkad.handlers.broker import Broker
    from pykafkad.messages import ListGroupsRequest
    from pykafkad.slices import Work


Listed = ListGroupsResponse.ListedGroup


needs = (Need(DESCRIBE, GROUP, or_on_cluster=DESCRIBE, by_handler=True),)


def handle(broker: Broker, request: ListGroupsRequest, context: Context) -> Work[ListGroupsResponse]:
    states, types = set[str](), set[str]()
    for piece in pieces(request.states_filter):
        states.update([state.lower().strip() for state in piece])
        yield
    for piece in pieces(request.types_filter):
        types.update([name.lower() for name in piece])
        yield
    asker = broker.group_coordinator.asker_in_slices(context, refused)
    rows: list[Listed] = []
    try:
        for groups in broker.group_coordinator.look_everywhere(asker):
            rows += yield from groups.list_groups(states, types)
        if broker.authorizer is not None:
            rows = yield from described_to(Permits(broker.authorizer, context), rows)
    except KafkaError as error:
        return refused(error)
    return asker.answer(ListGroupsResponse(groups=rows))


def described_to(permits: Permits, rows: list[Listed]) -> Work[list[Listed]]:
    """Those that the client may know of: all, if it may describe the cluster."""
    if permits.show(DESCRIBE, CLUSTER):
        return rows
    return (yield from permits.only(DESCRIBE, GROUP, rows, attrgetter("group_id")))


def refused(error: KafkaError) -> ListGroupsResponse:
    return ListGroupsResponse(error_code=error.code)
