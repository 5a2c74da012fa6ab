"""PushTelemetry (key 72), version 0: a client's metrics (KIP-714).

The API is not advertised, as in a Kafka without a telemetry plugin. Metrics that clients push are checked, decompressed
up to the largest size that is allowed, counted, and dropped.
"""

from __future__ import annotations

from pykafkad import errors
from pykafkad.errors import KafkaError
from pykafkad.logs import logger
from pykafkad.messages import PushTelemetryResponse
from pykafkad.slices import begun, is_work

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pykafkad.context import Context
    from pykafkad.handlers.broker import Broker
    from pykafkad.messages import PushTelemetryRequest
    from pykafkad.pure.telemetry import Evaluated
    from pykafkad.slices import OrWork, Work


log = logger("telemetry")


needs = ()  # as in Kafka, where metrics are taken from everybody


def handle(broker: Broker, request: PushTelemetryRequest, context: Context) -> OrWork[PushTelemetryResponse]:
    return begun(answer(broker, request, context))


def answer(broker: Broker, request: PushTelemetryRequest, context: Context) -> Work[PushTelemetryResponse]:
    from pykafkad.cluster.telemetry import answered
    from pykafkad.uuids import to_text

    found = answered(broker, request.client_instance_id, context, lambda evaluated: evaluated)
    evaluated: Evaluated | None = (yield from found) if is_work(found) else found
    telemetry = broker.telemetry
    size = len(request.metrics or b"")
    try:
        telemetry.push(
            request.client_instance_id,
            evaluated,
            context.connection,
            broker.clock.now_ms(),
            subscription_id=request.subscription_id,
            is_terminating=request.terminating,
            compression=request.compression_type,
            size=size,
        )
        unfolded = yield from unfold(
            broker, request.compression_type, request.metrics or b"", telemetry.max_bytes
        )
    except KafkaError as error:
        return PushTelemetryResponse(error_code=error.code)
    telemetry.count(size)
    log.debug(f"client instance {to_text(request.client_instance_id)} pushed {unfolded} bytes of metrics")
    return PushTelemetryResponse()


def unfold(broker: Broker, codec: int, metrics: bytes, max_bytes: int) -> Work[int]:
    """How many bytes decompression gives; KafkaError if it fails, or if there are too many."""
    from pykafkad import compression

    size = 0
    kept = compression.Kept()
    stay = broker.unfolding.stay()
    try:
        for piece in (
            compression.pieces(codec, memoryview(metrics), kept=kept, most=max_bytes) if metrics else ()
        ):
            size += len(piece)
            yield
            yield from stay.keep(kept.bytes)
    except (compression.DecompressionError, compression.ExpansionError):
        raise KafkaError(errors.INVALID_RECORD) from None
    finally:
        stay.leave()
    return size
