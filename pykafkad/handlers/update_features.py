"""UpdateFeatures (key 57), versions 0 to 2: raises or lowers finalized feature levels (KIP-584; kinds of downgrade and
`validate_only` in 1, KIP-778; no result for each feature from 2 on).

The rules are in cluster/feature_changes. The timeout is ignored, as in Kafka.
"""

from __future__ import annotations

from pykafkad import errors
from pykafkad.cluster import feature_changes
from pykafkad.errors import KafkaError
from pykafkad.messages import UpdateFeaturesResponse
from pykafkad.pure.authorization import ALTER, CLUSTER, Need

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pykafkad.cluster.feature_changes import Update
    from pykafkad.cluster.metadata_records import Record
    from pykafkad.context import Context
    from pykafkad.handlers.broker import Broker
    from pykafkad.messages import UpdateFeaturesRequest
    from pykafkad.slices import Work


Result = UpdateFeaturesResponse.UpdatableFeatureResult
LAST_WITH_RESULTS = 1
A_TIME = 64  # features between two looks at the clock


needs = (Need(ALTER, CLUSTER),)


def handle(broker: Broker, request: UpdateFeaturesRequest, context: Context) -> Work[Context]:
    updates = []
    for number, item in enumerate(request.feature_updates):
        updates.append(feature_changes.update_of(item, context.version))
        if number % A_TIME == 0:
            yield
    # The value of the properties file, since this change may remove the dynamic one.
    min_isr = broker.config.texts.get("min.insync.replicas", "1")

    def plan() -> list[Record]:
        records = feature_changes.plan(updates, broker.image, broker.controller.controller_id, min_isr)
        return [] if request.validate_only else records

    def done(error: KafkaError | None) -> None:
        broker.dispatcher.give(context, answer(updates, error, context.version))

    broker.controller.in_turn(plan, done)
    return context


def answer(updates: list[Update], error: KafkaError | None, version: int) -> Work[UpdateFeaturesResponse]:
    if error is not None:
        if not errors.fits(error.text):
            error = KafkaError(errors.UNKNOWN_SERVER_ERROR)
        text = error.text if error.code != errors.UNKNOWN_SERVER_ERROR else error.message
        return UpdateFeaturesResponse(error_code=error.code, error_message=text)
    response = UpdateFeaturesResponse(error_message=None)
    results = []
    for number, update in enumerate(updates if version <= LAST_WITH_RESULTS else ()):
        # Kafka puts the name of "no error" where a text is expected.
        results.append(Result(feature=update.name, error_message="NONE"))
        if number % A_TIME == 0:
            yield
    response.results = results
    return response
