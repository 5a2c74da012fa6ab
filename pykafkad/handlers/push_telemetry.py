"""PushTelemetry (key 72), version 0: a client's metrics (KIP-714).

Not advertised, as in Kafka without a receiver of metrics. What is pushed is checked, unfolded as far as a push may be
large, counted, and handed to nobody.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pykafkad import errors
from pykafkad.errors import KafkaError
from pykafkad.logs import logger
from pykafkad.messages import PushTelemetryResponse

if TYPE_CHECKING:
    from pykafkad.dispatcher import Context
    from pykafkad.server import Broker


log = logger("telemetry")


def handle(broker: Broker, request: Any, context: Context) -> Any:
    from pykafkad.cluster.telemetry import attributes
    from pykafkad.uuids import to_text

    connection = context.connection
    telemetry = broker.telemetry
    size = len(request.metrics or b"")
    try:
        telemetry.push(
            request.client_instance_id,
            lambda found: attributes(found, context.client_id, connection),
            connection,
            broker.clock.now_ms(),
            subscription_id=request.subscription_id,
            is_terminating=request.terminating,
            compression=request.compression_type,
            size=size,
        )
        unfolded = unfold(request.compression_type, request.metrics or b"", telemetry.max_bytes)
    except KafkaError as error:
        return PushTelemetryResponse(error_code=error.code)
    telemetry.count(size)
    log.debug(f"client instance {to_text(request.client_instance_id)} pushed {unfolded} bytes of metrics")
    return PushTelemetryResponse()


def unfold(codec: int, metrics: bytes, max_bytes: int) -> int:
    """How many bytes come out; KafkaError if they do not, or if they are too many."""
    from pykafkad import compression

    size = 0
    try:
        for piece in compression.pieces(codec, memoryview(metrics)) if metrics else ():
            size += len(piece)
            if size > max_bytes:
                raise compression.ExpansionError
    except (compression.DecompressionError, compression.ExpansionError):
        raise KafkaError(errors.INVALID_RECORD) from None
    return size
