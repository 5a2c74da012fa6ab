"""AlterClientQuotas (key 49), versions 0 and 1: quotas of users, client ids and addresses set and removed (KIP-546,
KIP-612).

Answered when the new quotas are durable.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pykafkad.messages import AlterClientQuotasResponse

if TYPE_CHECKING:
    from pykafkad.cluster.client_quotas import Change
    from pykafkad.dispatcher import Context
    from pykafkad.server import Broker


Entry = AlterClientQuotasResponse.EntryData
Entity = AlterClientQuotasResponse.EntityData


def handle(broker: Broker, request: Any, context: Context) -> Any:
    answered: list[Any] = []
    promises: list[Context] = []

    def done(changes: list[Change]) -> None:
        answer = AlterClientQuotasResponse(entries=[result(change) for change in changes])
        if promises:
            promises[0].answer(answer)
        else:
            answered.append(answer)

    asked = [
        (
            {part.entity_type: part.entity_name for part in entry.entity},
            [(operation.key, None if operation.remove else operation.value) for operation in entry.ops],
        )
        for entry in request.entries
    ]
    broker.client_quotas.alter(asked, request.validate_only, done)
    if answered:
        return answered[0]
    promises.append(context.defer())
    return promises[0]


def result(change: Change) -> Any:
    return Entry(
        error_code=0 if change.error is None else change.error.code,
        error_message=None if change.error is None else change.error.message,
        entity=[Entity(entity_type=type, entity_name=change.entity[type]) for type in change.types],
    )
