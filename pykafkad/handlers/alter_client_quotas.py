"""AlterClientQuotas (key 49), versions 0 and 1: sets and removes quotas of users, client ids and addresses (KIP-546,
KIP-612).

The answer is sent when the new quotas are durable.
"""

from __future__ import annotations

from pykafkad import errors
from pykafkad.errors import KafkaError
from pykafkad.messages import AlterClientQuotasResponse
from pykafkad.pure.authorization import ALTER_CONFIGS, CLUSTER, Need
from pykafkad.slices import chunks, let_go

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pykafkad.cluster.client_quotas import Change
    from pykafkad.context import Context
    from pykafkad.handlers.broker import Broker
    from pykafkad.messages import AlterClientQuotasRequest
    from pykafkad.slices import Work


Entry = AlterClientQuotasResponse.EntryData
Entity = AlterClientQuotasResponse.EntityData


needs = (Need(ALTER_CONFIGS, CLUSTER),)


def handle(broker: Broker, request: AlterClientQuotasRequest, context: Context) -> Work[Context]:
    from pykafkad.cluster.client_quotas import Change

    asked = []
    for entry in request.entries:
        types = {part.entity_type: part.entity_name for part in entry.entity}
        operations = [(each.key, None if each.remove else each.value) for each in entry.ops]
        asked.append(Change(types, operations))
        yield

    def done(changes: list[Change] | Exception) -> None:
        broker.dispatcher.give(context, answer(changes))

    broker.client_quotas.alter(asked, request.validate_only, done)
    return context


def answer(changes: list[Change] | Exception) -> Work[AlterClientQuotasResponse]:
    if isinstance(changes, Exception):
        raise changes
    texts_fit = True
    for some in chunks(changes):
        texts_fit = texts_fit and all(each.error is None or errors.fits(each.error.message) for each in some)
        yield
    entries = []
    for change in changes:
        entries.append(result(change, texts_fit))
        yield
    yield from let_go(changes)
    return AlterClientQuotasResponse(entries=entries)


def result(change: Change, texts_fit: bool) -> Entry:
    """If one of the texts is too long for an answer, all entries fail with UNKNOWN_SERVER_ERROR, as in Kafka."""
    code = errors.UNKNOWN_SERVER_ERROR
    error = change.error if texts_fit else KafkaError(code, errors.MESSAGES[code])
    return Entry(
        error_code=0 if error is None else error.code,
        error_message=None if error is None else error.message,
        entity=[Entity(entity_type=type, entity_name=change.entity[type]) for type in change.types],
    )


def unauthorized(
    request: AlterClientQuotasRequest, version: int, code: int
) -> Work[AlterClientQuotasResponse]:
    entries = []
    for entry in request.entries:
        parts = [Entity(entity_type=part.entity_type, entity_name=part.entity_name) for part in entry.entity]
        entries.append(Entry(error_code=code, error_message=errors.MESSAGES[code], entity=parts))
        yield
    return AlterClientQuotasResponse(entries=entries)
