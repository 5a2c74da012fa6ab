"""DeleteGroups (key 42), versions 0 to 2: deletes groups without members, together with their offsets (KIP-229).

The groups of one partition of `__consumer_offsets` are deleted by one batch of records, as in Kafka; if there are very
many, by several.
"""

from __future__ import annotations

from pykafkad.errors import GROUP_AUTHORIZATION_FAILED, KafkaError
from pykafkad.handlers.permits import Permits
from pykafkad.handlers.pieces import pieces
from pykafkad.messages import DeleteGroupsResponse
from pykafkad.pure.authorization import DELETE, GROUP, Need
from pykafkad.pure.effects import Effects
from pykafkad.slices import GO_ON

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pykafkad.context import Context
    from pykafkad.coordinator.runtime.callers import Asker
    from pykafkad.handlers.broker import Broker
    from pykafkad.messages import DeleteGroupsRequest
    from pykafkad.pure.groups.registry import Groups
    from pykafkad.slices import Work


AT_ONCE = 500  # groups

Result = DeleteGroupsResponse.DeletableGroupResult


needs = (Need(DELETE, GROUP, by_handler=True),)


def handle(broker: Broker, request: DeleteGroupsRequest, context: Context) -> Work[DeleteGroupsResponse]:
    names = list(dict.fromkeys(request.groups_names))
    denied: list[str] = []
    if broker.authorizer is not None:
        permits = Permits(broker.authorizer, context)
        names, denied = yield from permits.split(DELETE, GROUP, names, str)
    asker = broker.group_coordinator.asker_in_slices(
        context, lambda error: response_of(dict.fromkeys(names, error.code))
    )
    by_partition: dict[int, list[str]] = {}
    for name in names:
        by_partition.setdefault(broker.group_coordinator.partition_of(name), []).append(name)
        yield
    codes: dict[str, int] = {}
    for group_ids in by_partition.values():
        for piece in pieces(group_ids, AT_ONCE):
            codes.update(delete(broker, list(piece), asker))
            yield GO_ON
    codes.update(dict.fromkeys(denied, GROUP_AUTHORIZATION_FAILED))
    return asker.answer(response_of(codes))


def delete(broker: Broker, group_ids: list[str], asker: Asker) -> dict[str, int]:
    """Delete groups of one partition; returns the error code of each."""
    codes: dict[str, int] = {}

    def operation(groups: Groups) -> Effects:
        effects = Effects()
        codes.update(groups.delete_groups(group_ids, effects))
        return effects

    try:
        broker.group_coordinator.do(group_ids[0], asker, operation)
    except KafkaError as error:
        return dict.fromkeys(group_ids, error.code)
    return codes


def response_of(codes: dict[str, int]) -> DeleteGroupsResponse:
    return DeleteGroupsResponse(
        results=[Result(group_id=name, error_code=code) for name, code in codes.items()]
    )
