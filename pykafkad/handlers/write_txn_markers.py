"""WriteTxnMarkers (key 27), versions 1 and 2: another broker's transaction coordinator ends transactions in partitions
that this broker leads, or an administrator ends one that hangs.

Version 2 says the transaction version (KIP-1228): from 2 on a marker's epoch must be above that of what it ends.
"""

from __future__ import annotations

from pykafkad.cluster.markers import Marker
from pykafkad.messages import WriteTxnMarkersResponse
from pykafkad.pure.authorization import ALTER, CLUSTER, CLUSTER_ACTION, Need
from pykafkad.slices import GO_ON, Wait, begun, chunks, each

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Generator, Iterator

    from pykafkad.context import Context
    from pykafkad.handlers.broker import Broker
    from pykafkad.messages import WriteTxnMarkersRequest
    from pykafkad.slices import OrWork, Work

    TopicRequest = WriteTxnMarkersRequest.WritableTxnMarkerTopic
    Codes = dict[tuple[str, int], int]

MARKERS_AT_ONCE = 64  # that are on their way together
PARTITIONS_AT_ONCE = 64

needs = (Need(CLUSTER_ACTION, CLUSTER, or_on_cluster=ALTER),)

ProducerResult = WriteTxnMarkersResponse.WritableTxnMarkerResult
TopicResult = WriteTxnMarkersResponse.WritableTxnMarkerTopicResult
PartitionResult = WriteTxnMarkersResponse.WritableTxnMarkerPartitionResult


def handle(
    broker: Broker, request: WriteTxnMarkersRequest, context: Context
) -> OrWork[WriteTxnMarkersResponse]:
    return begun(answer(broker, request.markers))


def answer(
    broker: Broker, asked: list[WriteTxnMarkersRequest.WritableTxnMarker]
) -> Work[WriteTxnMarkersResponse]:
    """One entry a producer, which may have several markers: of a partition that two of them name, the later one's code
    is told, as in Kafka."""
    codes_of: dict[int, Codes] = {}
    for some in chunks(asked, MARKERS_AT_ONCE):
        waits: list[tuple[int, Wait]] = []
        for one in some:
            wait = yield from written(broker, one)
            if wait is not None:
                waits.append((one.producer_id, wait))
            yield GO_ON
        for producer_id, wait in waits:
            codes = yield from wait.result()
            known = codes_of.setdefault(producer_id, codes)
            if known is not codes:
                known.update(codes)
    results = []
    for pause, (producer_id, codes) in each(codes_of.items()):
        if pause:
            yield GO_ON
        topics = yield from by_topic(codes)
        results.append(ProducerResult(producer_id=producer_id, topics=topics))
    return WriteTxnMarkersResponse(markers=results)


def written(
    broker: Broker, asked: WriteTxnMarkersRequest.WritableTxnMarker
) -> Generator[bool, None, Wait | None]:
    """Begin to write a marker; None: it names no partition."""
    partitions = []
    for pause, (topic, index) in each(indexes_of(asked.topics), PARTITIONS_AT_ONCE):
        if pause:
            yield GO_ON
        if index is not None:
            partitions.append((topic.name, index))
    if not partitions:
        return None
    marker = Marker(
        asked.producer_id,
        asked.producer_epoch,
        asked.coordinator_epoch,
        asked.transaction_result,
        asked.transaction_version,
    )
    wait = Wait()
    broker.markers.write(marker, partitions, wait.come)
    return wait


def indexes_of(topics: list[TopicRequest]) -> Iterator[tuple[TopicRequest, int | None]]:
    """Pairs of a topic and the index of one of its partitions; (topic, None) for a topic without any."""
    for topic in topics:
        if not topic.partition_indexes:
            yield topic, None
        for index in topic.partition_indexes:
            yield topic, index


def by_topic(codes: Codes) -> Generator[bool, None, list[TopicResult]]:
    topics: dict[str, TopicResult] = {}
    for pause, ((name, index), code) in each(codes.items(), PARTITIONS_AT_ONCE):
        if pause:
            yield GO_ON
        if name not in topics:
            topics[name] = TopicResult(name=name, partitions=[])
        topics[name].partitions.append(PartitionResult(partition_index=index, error_code=code))
    return list(topics.values())
