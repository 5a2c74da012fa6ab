"""GetTelemetrySubscriptions (key 71), version 0: which metrics a client is to push, and how often (KIP-714).

The API is not advertised, as in a Kafka without a telemetry plugin, but clients that use it anyway are answered.
"""

from __future__ import annotations

from functools import partial

from pykafkad.errors import KafkaError
from pykafkad.messages import GetTelemetrySubscriptionsResponse

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pykafkad.context import Context
    from pykafkad.handlers.broker import Broker
    from pykafkad.messages import GetTelemetrySubscriptionsRequest
    from pykafkad.pure.telemetry import Evaluated
    from pykafkad.slices import OrWork


needs = ()  # as in Kafka, where metrics are taken from everybody


def handle(
    broker: Broker, request: GetTelemetrySubscriptionsRequest, context: Context
) -> OrWork[GetTelemetrySubscriptionsResponse]:
    from pykafkad.cluster.telemetry import answered
    from pykafkad.uuids import ZERO, random_uuid

    instance_id = request.client_instance_id if request.client_instance_id != ZERO else random_uuid()
    return answered(broker, instance_id, context, partial(answer, broker, instance_id, context))


def answer(
    broker: Broker, instance_id: bytes, context: Context, evaluated: Evaluated | None
) -> GetTelemetrySubscriptionsResponse:
    from pykafkad.pure.telemetry import COMPRESSIONS

    try:
        instance = broker.telemetry.get(instance_id, evaluated, context.connection, broker.clock.now_ms())
    except KafkaError as error:
        return GetTelemetrySubscriptionsResponse(error_code=error.code)
    return GetTelemetrySubscriptionsResponse(
        client_instance_id=instance_id,
        subscription_id=instance.subscription_id,
        accepted_compression_types=list(COMPRESSIONS),
        push_interval_ms=instance.interval_ms,
        telemetry_max_bytes=broker.telemetry.max_bytes,
        delta_temporality=True,
        requested_metrics=instance.metrics,
    )
