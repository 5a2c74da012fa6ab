"""AlterConfigs (key 33), versions 0 to 2: replaces all configs of resources; those not named are removed (KIP-133).

The answer is sent when the new configs are durable and in effect.
"""

from __future__ import annotations

from pykafkad import errors
from pykafkad.errors import KafkaError
from pykafkad.handlers.permits import Permits
from pykafkad.messages import AlterConfigsResponse
from pykafkad.pure.authorization import (
    ALTER_CONFIGS,
    CLUSTER,
    CONFIGS_OF_A_GROUP,
    CONFIGS_OF_A_TOPIC,
    DENIED,
    GROUP,
    THE_CLUSTER,
    TOPIC,
    on_configs,
)
from pykafkad.slices import chunks, let_go

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, TypeVar

    from pykafkad.cluster.config_changes import Alteration, Denial
    from pykafkad.context import Context
    from pykafkad.handlers.broker import Broker
    from pykafkad.messages import AlterConfigsRequest, IncrementalAlterConfigsResponse
    from pykafkad.slices import Work

    Response = TypeVar("Response", AlterConfigsResponse, IncrementalAlterConfigsResponse)
    Result = TypeVar(
        "Result",
        AlterConfigsResponse.AlterConfigsResourceResponse,
        IncrementalAlterConfigsResponse.AlterConfigsResourceResponse,
    )


OF_THEIR_OWN = {CONFIGS_OF_A_TOPIC: TOPIC, CONFIGS_OF_A_GROUP: GROUP}  # all others belong to the cluster


needs = on_configs(ALTER_CONFIGS, by_handler=True)


def handle(broker: Broker, request: AlterConfigsRequest, context: Context) -> Work[Context]:
    wanted = yield from wanted_of(request)
    return alter(broker, wanted, request.validate_only, context, AlterConfigsResponse)


def wanted_of(request: AlterConfigsRequest) -> Work[list[Alteration]]:
    from pykafkad.cluster.config_changes import Alteration
    from pykafkad.cluster.config_rules import SET

    wanted = []
    for resource in request.resources:
        alteration = Alteration(resource.resource_type, resource.resource_name, is_legacy=True)
        for some in chunks(resource.configs):
            alteration.changes += [(config.name, SET, config.value) for config in some]
            yield
        wanted.append(alteration)
        yield
    return wanted


def alter(
    broker: Broker, wanted: list[Alteration], validate_only: bool, context: Context, response: type[Response]
) -> Context:
    """Make the alterations, and answer when they are in effect."""

    def done(error: Exception | None) -> None:
        broker.dispatcher.give(context, answer(wanted, error, response))

    broker.config_changes.alter(wanted, validate_only, done, denial_of(broker, context))
    return context


def denial_of(broker: Broker, context: Context) -> Denial | None:
    """What is denied to the client, if there is an authorizer."""
    if broker.authorizer is None:
        return None
    permits = Permits(broker.authorizer, context)

    def denial(type: int, name: str) -> int:
        resource = OF_THEIR_OWN.get(type, CLUSTER)
        whose = THE_CLUSTER if resource == CLUSTER else name
        return errors.NONE if permits.allow(ALTER_CONFIGS, resource, whose) else DENIED[resource]

    return denial


def answer(wanted: list[Alteration], error: Exception | None, response: type[Response]) -> Work[Response]:
    if error is not None:
        raise error
    texts_fit = True
    for some in chunks(wanted):
        texts_fit = texts_fit and all(each.error is None or errors.fits(each.error.message) for each in some)
        yield
    results: list[Any] = []
    for some in chunks(wanted):
        results += [result(each, response.AlterConfigsResourceResponse, texts_fit) for each in some]
        yield
    yield from let_go(wanted)
    return response(responses=results)


def result(alteration: Alteration, kind: type[Result], texts_fit: bool) -> Result:
    """If one of the texts is too long for an answer, all resources fail with UNKNOWN_SERVER_ERROR, as in Kafka."""
    error = alteration.error if texts_fit else KafkaError(errors.UNKNOWN_SERVER_ERROR)
    return kind(
        error_code=0 if error is None else error.code,
        error_message=None if error is None else error.message,
        resource_type=alteration.type,
        resource_name=alteration.name,
    )
