"""AlterConfigs (key 33), versions 0 to 2: all configs of resources, as a whole: what is not named is removed (KIP-133).

Answered when the new configs are durable and count.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pykafkad.messages import AlterConfigsResponse

if TYPE_CHECKING:
    from pykafkad.dispatcher import Context
    from pykafkad.server import Broker


Result = AlterConfigsResponse.AlterConfigsResourceResponse


def handle(broker: Broker, request: Any, context: Context) -> Any:
    from pykafkad.cluster.config_changes import Alteration
    from pykafkad.cluster.config_rules import SET

    wanted = [
        Alteration(
            resource.resource_type,
            resource.resource_name,
            [(config.name, SET, config.value) for config in resource.configs],
            is_legacy=True,
        )
        for resource in request.resources
    ]
    return alter(broker, wanted, request.validate_only, context, AlterConfigsResponse, Result)


def alter(
    broker: Broker, wanted: Any, validate_only: bool, context: Context, response: Any, kind: Any
) -> Any:
    """Has the alterations made; the answer, at once or later."""
    answered: list[Any] = []
    promises: list[Context] = []

    def done() -> None:
        answer = response(responses=[result(each, kind) for each in wanted])
        if promises:
            promises[0].answer(answer)
        else:
            answered.append(answer)

    broker.config_changes.alter(wanted, validate_only, done)
    if answered:
        return answered[0]
    promises.append(context.defer())
    return promises[0]


def result(alteration: Any, kind: Any) -> Any:
    error = alteration.error
    return kind(
        error_code=0 if error is None else error.code,
        error_message=None if error is None else error.message,
        resource_type=alteration.type,
        resource_name=alteration.name,
    )
