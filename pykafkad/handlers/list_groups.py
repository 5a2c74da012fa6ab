"""ListGroups (key 16), versions 0 to 5: all groups, or those in some states (4, KIP-518) or of some types (5, KIP-848).

While a partition of `__consumer_offsets` is still loading nobody can say which groups there are, and nobody is told.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pykafkad.errors import KafkaError
from pykafkad.messages import ListGroupsResponse

if TYPE_CHECKING:
    from pykafkad.dispatcher import Context
    from pykafkad.server import Broker


def handle(broker: Broker, request: Any, context: Context) -> Any:
    states = {state.lower().strip() for state in request.states_filter}
    types = {name.lower() for name in request.types_filter}
    try:
        everywhere = broker.groups.look_everywhere(broker.groups.asker(context, refused))
    except KafkaError as error:
        return refused(error)
    rows = []
    for groups in everywhere:
        rows += groups.list_groups(states, types)
    return ListGroupsResponse(groups=rows)


def refused(error: KafkaError) -> Any:
    return ListGroupsResponse(error_code=error.code)
