"""DeleteGroups (key 42), versions 0 to 2: groups without members go, with their offsets (KIP-229).

The groups of one partition of `__consumer_offsets` go in one batch of records, as in Kafka.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pykafkad.errors import KafkaError
from pykafkad.messages import DeleteGroupsResponse
from pykafkad.pure.groups.effects import Effects

if TYPE_CHECKING:
    from pykafkad.coordinator.shard import Asker
    from pykafkad.dispatcher import Context
    from pykafkad.pure.groups.registry import Groups
    from pykafkad.server import Broker


Result = DeleteGroupsResponse.DeletableGroupResult


def handle(broker: Broker, request: Any, context: Context) -> Any:
    names = list(dict.fromkeys(request.groups_names))
    asker = broker.groups.asker(context, lambda error: response_of(dict.fromkeys(names, error.code)))
    by_partition: dict[int, list[str]] = {}
    for name in names:
        by_partition.setdefault(broker.groups.partition_of(name), []).append(name)
    codes: dict[str, int] = {}
    for group_ids in by_partition.values():
        codes.update(delete(broker, group_ids, asker))
    return response_of(codes)


def delete(broker: Broker, group_ids: list[str], asker: Asker) -> dict[str, int]:
    """Groups of one partition; the error code of each."""
    codes: dict[str, int] = {}

    def operation(groups: Groups) -> Effects:
        effects = Effects()
        codes.update(groups.delete_groups(group_ids, effects))
        return effects

    try:
        broker.groups.do(group_ids[0], asker, operation)
    except KafkaError as error:
        return dict.fromkeys(group_ids, error.code)
    return codes


def response_of(codes: dict[str, int]) -> Any:
    return DeleteGroupsResponse(
        results=[Result(group_id=name, error_code=code) for name, code in codes.items()]
    )
