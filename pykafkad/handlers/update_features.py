"""UpdateFeatures (key 57), versions 0 to 2: finalized feature levels go up or down (KIP-584; kinds of downgrade
and `validate_only` in 1, KIP-778; no result for each feature from 2 on).

The rules are in cluster/feature_changes. The timeout is not looked at, as in Kafka.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pykafkad.cluster import feature_changes
from pykafkad.errors import KafkaError
from pykafkad.messages import UpdateFeaturesResponse

if TYPE_CHECKING:
    from pykafkad.cluster.metadata_records import Record
    from pykafkad.dispatcher import Context
    from pykafkad.server import Broker


Result = UpdateFeaturesResponse.UpdatableFeatureResult
LAST_WITH_RESULTS = 1


def handle(broker: Broker, request: Any, context: Context) -> Any:
    updates = feature_changes.updates_of(request, context.version)
    # As the properties say: what is dynamic may go with this very change.
    min_isr = broker.config.texts.get("min.insync.replicas", "1")
    promise = context.defer()

    def plan() -> list[Record]:
        records = feature_changes.plan(updates, broker.image, broker.node_id, min_isr)
        return [] if request.validate_only else records

    def done(error: KafkaError | None) -> None:
        if error is not None:
            promise.answer(UpdateFeaturesResponse(error_code=error.code, error_message=error.text))
            return
        response = UpdateFeaturesResponse(error_message=None)
        if context.version <= LAST_WITH_RESULTS:
            # Kafka puts the name of "no error" where a text would be.
            response.results = [Result(feature=update.name, error_message="NONE") for update in updates]
        promise.answer(response)

    broker.controller.in_turn(plan, done)
    return promise
