"""GetTelemetrySubscriptions (key 71), version 0: which metrics a client is to push, and how often (KIP-714).

Not advertised, as in Kafka without a receiver of metrics; who asks all the same is answered.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pykafkad.errors import KafkaError
from pykafkad.messages import GetTelemetrySubscriptionsResponse

if TYPE_CHECKING:
    from pykafkad.dispatcher import Context
    from pykafkad.server import Broker


def handle(broker: Broker, request: Any, context: Context) -> Any:
    from pykafkad.cluster.telemetry import attributes
    from pykafkad.pure.telemetry import COMPRESSIONS, NO_ID
    from pykafkad.uuids import random_uuid

    connection = context.connection
    instance_id = request.client_instance_id if request.client_instance_id != NO_ID else random_uuid()
    try:
        instance = broker.telemetry.get(
            instance_id,
            lambda found: attributes(found, context.client_id, connection),
            connection,
            broker.clock.now_ms(),
        )
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
