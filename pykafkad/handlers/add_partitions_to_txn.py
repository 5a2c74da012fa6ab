"""AddPartitionsToTxn (key 24), versions 0 to 5: partitions take part in a transaction (KIP-98).

Since version 4 brokers ask for many producers at once, and may ask only whether partitions take part already (KIP-890).
Either all partitions of a transaction are added or none: where one does not exist, the others are not attempted.
"""

from __future__ import annotations

from pykafkad import errors
from pykafkad.cluster import topic_names
from pykafkad.errors import KafkaError
from pykafkad.handlers.permits import Permits
from pykafkad.handlers.pieces import pieces
from pykafkad.messages import AddPartitionsToTxnRequest, AddPartitionsToTxnResponse
from pykafkad.pure.authorization import CLUSTER, CLUSTER_ACTION, TOPIC, TRANSACTIONAL_ID, WRITE, Need
from pykafkad.slices import finish

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pykafkad.context import Context
    from pykafkad.coordinator.runtime.callers import AskerInSlices
    from pykafkad.handlers.broker import Broker
    from pykafkad.pure.transactions.transaction import Partition
    from pykafkad.slices import Work


Topic = AddPartitionsToTxnRequest.AddPartitionsToTxnTopic
Result = AddPartitionsToTxnResponse.AddPartitionsToTxnResult
TopicResult = AddPartitionsToTxnResponse.AddPartitionsToTxnTopicResult
PartitionResult = AddPartitionsToTxnResponse.AddPartitionsToTxnPartitionResult

MANY_SINCE = 4
FENCED_SINCE = 2
# The transaction version of who asks for a transaction of its own, and of brokers that ask for producers.
CLIENTS, BROKERS = 0, 2


needs = (
    Need(WRITE, TRANSACTIONAL_ID, "v3_and_below_transactional_id", until=MANY_SINCE - 1),
    Need(WRITE, TOPIC, by_handler=True),
    Need(CLUSTER_ACTION, CLUSTER, since=MANY_SINCE),
)


def handle(
    broker: Broker, request: AddPartitionsToTxnRequest, context: Context
) -> Work[AddPartitionsToTxnResponse]:
    version = context.version  # who refuses must not know the context, which knows it
    asker = broker.transaction_coordinator.asker_in_slices(
        context, lambda error: finish(unauthorized(request, version, error.code))
    )
    if version < MANY_SINCE:
        permits = None if broker.authorizer is None else Permits(broker.authorizer, context)
        topics = yield from Adding(broker, asker, request.v3_and_below_topics, permits).results(
            request.v3_and_below_transactional_id,
            (request.v3_and_below_producer_id, request.v3_and_below_producer_epoch),
            verify_only=False,
        )
        return asker.answer(AddPartitionsToTxnResponse(results_by_topic_v3_and_below=topics))
    results = []
    for each in request.transactions:
        topics = yield from Adding(broker, asker, each.topics).results(
            each.transactional_id, (each.producer_id, each.producer_epoch), verify_only=each.verify_only
        )
        results.append(Result(transactional_id=each.transactional_id, topic_results=topics))
    return asker.answer(AddPartitionsToTxnResponse(results_by_transaction=results))


class Adding:
    """What is asked for one transaction; by clients with `permits`, if there is an authorizer."""

    def __init__(
        self, broker: Broker, asker: AskerInSlices, topics: list[Topic], permits: Permits | None = None
    ) -> None:
        self._broker = broker
        self._asker = asker
        self._topics = topics
        self._permits = permits
        self._bad: dict[Partition, int] = {}
        self._partitions: set[Partition] = set()

    def results(
        self, transactional_id: str, producer: tuple[int, int], *, verify_only: bool
    ) -> Work[list[TopicResult]]:
        yield from self._sort()
        codes = self._bad
        others = errors.OPERATION_NOT_ATTEMPTED
        if not codes:
            try:
                partitions = frozenset(self._partitions)
                codes = self._ask(transactional_id, producer, partitions, verify_only=verify_only)
                others = errors.NONE
            except KafkaError as error:
                others = self._told(error.code)
        if verify_only or self._bad:
            return (yield from answers((yield from once(self._topics)), codes, others))
        return (yield from answers(self._topics, codes, others))

    def _sort(self) -> Work[None]:
        """Who may take part, and who may not."""
        for topic in self._topics:
            known = self._broker.image.topics.get(topic.name)
            count = 0 if known is None else len(known.partitions)
            hidden = self._is_hidden(topic.name)
            code = errors.TOPIC_AUTHORIZATION_FAILED if hidden else errors.UNKNOWN_TOPIC_OR_PARTITION
            name = topic.name if known is None else known.name  # one text for all transactions
            for indexes in pieces(topic.partitions):
                for index in indexes:
                    if hidden or not 0 <= index < count:
                        self._bad[name, index] = code
                    else:
                        self._partitions.add((name, index))
                yield

    def _is_hidden(self, name: str) -> bool:
        """From a client: topics that only coordinators write to, and those that it may not write to."""
        if self._asker.version < MANY_SINCE and name in topic_names.INTERNAL:
            return True
        return self._permits is not None and not self._permits.allow(WRITE, TOPIC, name)

    def _ask(
        self,
        transactional_id: str,
        producer: tuple[int, int],
        partitions: frozenset[Partition],
        *,
        verify_only: bool,
    ) -> dict[Partition, int]:
        """The error codes of the partitions that have one. KafkaError: all have."""
        coordinator = self._broker.transaction_coordinator
        if not transactional_id:
            raise KafkaError(errors.INVALID_REQUEST)
        if verify_only:
            known = coordinator.look(transactional_id, self._asker).taking_part(transactional_id, producer)
            return dict.fromkeys(partitions - known, errors.TRANSACTION_ABORTABLE)
        now_ms = self._broker.clock.now_ms()
        version = CLIENTS if self._asker.version < MANY_SINCE else BROKERS
        coordinator.do(
            transactional_id,
            self._asker,
            lambda machine: machine.add(transactional_id, producer, partitions, version, now_ms),
        )
        return {}

    def _told(self, code: int) -> int:
        return told(code, self._asker.version)


def told(code: int, version: int) -> int:
    """Old clients know no other word for a producer that was fenced."""
    if code == errors.PRODUCER_FENCED and version < FENCED_SINCE:
        return errors.INVALID_PRODUCER_EPOCH
    return code


def once(topics: list[Topic]) -> Work[list[Topic]]:
    """The same with each partition once, in one place: what is said of partitions rather than of the transaction."""
    found: dict[str, dict[int, None]] = {}
    for topic in topics:
        for indexes in pieces(topic.partitions):
            if indexes:
                found.setdefault(topic.name, {}).update(dict.fromkeys(indexes))
            yield
    return [Topic(name=name, partitions=list(indexes)) for name, indexes in found.items()]


def answers(topics: list[Topic], codes: dict[Partition, int], others: int) -> Work[list[TopicResult]]:
    """For each topic and partition as asked: its code, or that of all others."""
    results = []
    for topic in topics:
        rows = []
        for indexes in pieces(topic.partitions):
            rows += [
                PartitionResult(
                    partition_index=index, partition_error_code=codes.get((topic.name, index), others)
                )
                for index in indexes
            ]
            yield
        results.append(TopicResult(name=topic.name, results_by_partition=rows))
    return results


def unauthorized(
    request: AddPartitionsToTxnRequest, version: int, code: int
) -> Work[AddPartitionsToTxnResponse]:
    if version >= MANY_SINCE:
        return AddPartitionsToTxnResponse(error_code=code)
    topics = yield from answers(request.v3_and_below_topics, {}, code)
    return AddPartitionsToTxnResponse(results_by_topic_v3_and_below=topics)
